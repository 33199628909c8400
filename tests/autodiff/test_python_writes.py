"""What Python writes between launches, down to single components and members: constants, or the old value shifted. Both
modes agree with differences, which run the whole program.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites

N = 4


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def number() -> Any:
    return ti.field(ti.f64, (), needs_grad=True, needs_dual=True)


def line() -> Any:
    x = ti.field(ti.f64, N, needs_grad=True, needs_dual=True)
    x.from_numpy([0.3, -0.7, 1.1, 0.55])
    return x


def vectors(x: Any, loss: Any) -> tuple[Any, list[Callable[[], None]]]:
    v = ti.Vector.field(3, ti.f64, N, needs_grad=True, needs_dual=True)

    @ti.kernel
    def begin():
        for i in x:
            v[i] = ti.Vector([x[i], x[i] ** 2, 1.0])

    @ti.kernel
    def step():
        for i in x:
            v[i] = v[i] * v[i].x + v[i].yzx

    @ti.kernel
    def end():
        for i in x:
            loss[None] += v[i].norm_sqr()

    return v, [begin, step, end]


def matrices(x: Any, loss: Any) -> tuple[Any, list[Callable[[], None]]]:
    m = ti.Matrix.field(2, 2, ti.f64, N, needs_grad=True, needs_dual=True)

    @ti.kernel
    def begin():
        for i in x:
            m[i] = ti.Matrix([[x[i], x[i] ** 2], [1.0, x[i]]])

    @ti.kernel
    def step():
        for i in x:
            m[i] = m[i] @ m[i]

    @ti.kernel
    def end():
        for i in x:
            loss[None] += m[i].norm_sqr()

    return m, [begin, step, end]


def structs(x: Any, loss: Any) -> tuple[Any, list[Callable[[], None]]]:
    kind = ti.types.struct(a=ti.f64, v=ti.types.vector(2, ti.f64))
    s = kind.field(shape=N, needs_grad=True, needs_dual=True)

    @ti.kernel
    def begin():
        for i in x:
            s[i].a = x[i] ** 2
            s[i].v = ti.Vector([x[i], x[i] * 2])

    @ti.kernel
    def step():
        for i in x:
            s[i].a = s[i].a ** 2
            s[i].v = s[i].v * s[i].a

    @ti.kernel
    def end():
        for i in x:
            loss[None] += s[i].a + s[i].v.norm_sqr()

    return s, [begin, step, end]


WRITES = [
    (vectors, "w[1][0] = 0.5"),
    (vectors, "w[1].x = 0.5; w[2].y += 1.0"),
    (vectors, "w[3].xy = [1.0, 2.0]"),
    (vectors, "w[3].xy += 1.0"),
    (vectors, "w[3][0:2] = [1.0, 2.0]"),
    (vectors, "w[np.int32(2)][np.int64(1)] = 0.3"),
    (vectors, "w[1].x = 0.2; w[1] = [1.0, 1.0, 1.0]"),
    (vectors, "w.get_scalar_field(1).fill(2.0)"),
    (vectors, "w.get_scalar_field(1)[2] = 2.0"),
    (vectors, "w.get_scalar_field(1)[2] += 2.0"),
    (vectors, "w.get_scalar_field(2).from_numpy(np.ones(4))"),
    (matrices, "w[1][0, 1] = 0.5"),
    (matrices, "w[1][1, :] = [0.5, 0.2]"),
    (matrices, "w[2][0, 0] -= 1; w[2][0, 1] = 3.0"),
    (structs, "w[1].a = 0.5"),
    (structs, "w[1].a += 0.5"),
    (structs, "w[1].v[0] = 0.5; w[2].v.y += 0.5"),
    (structs, "w[2] = dict(a=1.0, v=[1.0, 2.0])"),
    (structs, "w[0]['a'] = 0.7; w.v[2].x = 0.1"),
]


@pytest.mark.parametrize(("made", "statement"), WRITES, ids=[statement for _, statement in WRITES])
@overwrites
def test_components_and_members(made: Any, statement: str) -> None:
    x, loss = line(), number()
    written, (begin, step, end) = made(x, loss)

    def run() -> None:
        begin()
        exec(statement, {"w": written, "np": np})
        step()
        exec(statement, {"w": written, "np": np})
        end()

    report = ti.ad.gradcheck(run, [x], loss)
    assert report.ok, report
    assert report.forward is not None, report.forward_note


def test_forward_mode_takes_a_shifted_element_for_what_it_was() -> None:
    x, loss = number(), number()

    @ti.kernel
    def use():
        loss[None] += ti.sin(x[None]) + 1.0

    with ti.ad.FwdMode(loss=loss, param=x):
        use()
        loss[None] += 1.0
        use()
    assert loss.dual[None] == 2.0


def test_second_derivatives_of_shifted_elements() -> None:
    x, y, loss = line(), line(), number()

    @ti.kernel
    def cube():
        for i in x:
            y[i] = x[i] ** 3

    @ti.kernel
    def end():
        for i in x:
            loss[None] += y[i] ** 2

    def run() -> None:
        cube()
        y[0] += 1.0
        y[1] = 2.0
        end()

    x.fill(0.5)
    found = ti.ad.hvp(run, wrt=x, loss=loss)(np.ones(N))
    np.testing.assert_allclose(found, [30 * 0.5**4 + 6, 0, 30 * 0.5**4, 30 * 0.5**4])
