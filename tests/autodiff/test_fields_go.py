"""Fields, their gradients and their memory go with the last reference to them; nothing waits for Python's search for
cycles.
"""

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.lang.session.state import session


@pytest.fixture(autouse=True)
def without_a_collector() -> Iterator[None]:
    ti.init(arch=ti.cpu, default_fp=ti.f64, opt_level=0)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def scalars() -> Any:
    return ti.field(ti.f64, 3, needs_grad=True, needs_dual=True)


def vectors() -> Any:
    found = ti.Vector.field(2, ti.f64, 3, needs_grad=True, needs_dual=True)
    found.get_scalar_field(1)[0] = found.get_scalar_field(0)[1]
    found[0].x = 1.0
    return found


def structs(layout: Any) -> Any:
    kind = ti.types.struct(mass=ti.f64, pos=ti.types.vector(2, ti.f64))
    found = kind.field(shape=3, layout=layout, needs_grad=True, needs_dual=True)
    found[0].pos.x = found[1].mass
    assert found.mass.parent() is not None
    return found.mass


def arrays() -> Any:
    found = ti.ndarray(ti.f64, 3, needs_grad=True, needs_dual=True)

    @ti.kernel
    def double(a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in a:
            a[i] *= 2

    double(found)
    double.grad(found)
    return found


MAKES: list[Callable[[], Any]] = [
    scalars,
    vectors,
    lambda: structs(ti.Layout.AOS),
    lambda: structs(ti.Layout.SOA),
    arrays,
]


@pytest.mark.parametrize("make", MAKES)
def test_a_field_goes_with_its_shadows(make: Callable[[], Any]) -> None:
    field = make()
    parts = [field, field.grad, field.dual]
    left = [weakref.ref(one) for part in parts for one in (part, part.memory, part.buffer)]
    del field, parts
    assert [one() for one in left] == [None] * len(left)


def test_a_gradient_outlives_its_field() -> None:
    field = scalars()
    gradient = field.grad
    gradient[1] = 3.0
    del field
    assert gradient[1] == 3.0
    assert gradient.name.endswith(".grad")

    @ti.kernel
    def double():
        for i in gradient:
            gradient[i] *= 2

    double()
    assert gradient.to_numpy().tolist() == [0.0, 6.0, 0.0]


def test_functional_derivatives_leave_no_field() -> None:
    @ti.kernel
    def potential(x: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        found = 0.0
        for i in x:
            found += x[i] ** 3
        return found

    before = len(session.fields)
    x = np.ones(3)
    for _ in range(2):
        ti.ad.grad(potential)(x)
        ti.ad.hvp(potential)(x, x)
        ti.ad.jvp(potential)(x, x)
        ti.ad.jacobian(potential)(x)
        assert len(session.fields) == before
