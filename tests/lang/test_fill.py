"""`fill` in kernels: of fields, arrays, their components, structs and variables."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelTypeError, TinoteError

Particle = ti.types.struct(pos=ti.math.vec3, mass=ti.f32, tag=ti.types.struct(id=ti.i32))


def test_a_field() -> None:
    x = ti.field(ti.f32, shape=(3, 4), offset=(-1, 2))
    v = ti.Vector.field(3, ti.f32, shape=5)
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def fill(a: ti.f32):
        x.fill(2 * a)
        v.fill(ti.Vector([a, 0, a + 1]))
        n.fill(7)

    fill(1.5)
    assert (x.to_numpy() == 3).all() and n[None] == 7
    assert (v.to_numpy() == [1.5, 0, 2.5]).all()


def test_what_is_passed_as_a_template() -> None:
    x, s = ti.field(ti.f32, shape=6), Particle.field(shape=6)

    @ti.kernel
    def fill(target: ti.template()):
        target.fill(4)

    fill(x)
    fill(s)
    assert (x.to_numpy() == 4).all()
    assert (s.pos.to_numpy() == 4).all() and (s.mass.to_numpy() == 4).all() and (s.tag.id.to_numpy() == 4).all()


def test_a_field_of_structs_with_a_struct() -> None:
    s = Particle.field(shape=(2, 3))

    @ti.kernel
    def fill(m: ti.f32):
        s.fill(Particle(pos=ti.math.vec3(1, 2, m), mass=m))

    fill(5)
    assert (s.pos.to_numpy() == [1, 2, 5]).all() and (s.mass.to_numpy() == 5).all()
    assert (s.tag.id.to_numpy() == 0).all()


def test_members_and_components() -> None:
    s = Particle.field(shape=4)
    heights = s.pos.get_scalar_field(1)

    @ti.kernel
    def fill():
        s.mass.fill(2)
        heights.fill(9)

    fill()
    assert (s.mass.to_numpy() == 2).all() and (s.pos.to_numpy() == [0, 9, 0]).all()


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
def test_an_array(shape: tuple[int, ...]) -> None:
    @ti.kernel
    def fill(a: ti.types.ndarray(), b: ti.f32):
        a.fill(b)

    own, numpys = ti.ndarray(ti.f32, shape=shape), np.zeros(shape, np.float32)
    fill(own, 2.5)
    fill(numpys, 3.5)
    assert (own.to_numpy() == 2.5).all() and (numpys == 3.5).all()


def test_an_array_of_vectors_and_its_gradient() -> None:
    v = ti.Vector.ndarray(2, ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def fill(a: ti.types.ndarray(dtype=ti.math.vec2, ndim=1, needs_grad=True)):
        a.fill([1, 2])
        a.grad.fill(3)

    fill(v)
    assert (v.to_numpy() == [1, 2]).all() and (v.grad.to_numpy() == 3).all()


def test_one_element_and_a_variable() -> None:
    s, v = Particle.field(shape=4), ti.Vector.field(2, ti.i32, shape=4)

    @ti.kernel
    def fill() -> ti.math.vec2:
        for i in range(3):
            s[i].fill(i)
            v[i].fill(-i)
        p = Particle(mass=1)
        p.fill(6)
        w = ti.Vector([0.0, 1.0])
        w.fill(p.mass)
        return w

    assert (fill() == [6, 6]).all()
    assert s.mass.to_numpy().tolist() == [0, 1, 2, 0] and s.tag.id.to_numpy().tolist() == [0, 1, 2, 0]
    assert v.to_numpy().tolist() == [[0, 0], [-1, -1], [-2, -2], [0, 0]]


def test_inside_a_loop_it_runs_in_order() -> None:
    x, sums = ti.field(ti.i32, shape=4), ti.field(ti.i32, shape=3)

    @ti.kernel
    def repeat():
        for _ in range(1):
            for k in range(3):
                x.fill(k)
                for j in range(4):
                    sums[k] += x[j]

    repeat()
    assert sums.to_numpy().tolist() == [0, 4, 8]


def test_the_value_has_a_gradient() -> None:
    x = ti.field(ti.f64, shape=5, needs_grad=True)
    a, loss = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))
    a[None] = 3

    @ti.kernel
    def spread():
        x.fill(a[None] ** 2)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] * (i + 1)

    with ti.ad.Tape(loss):
        spread()
        measure()
    assert loss[None] == 135 and a.grad[None] == pytest.approx(2 * 3 * 15)


def _message(body: Any) -> str:
    with pytest.raises(TinoteError) as caught:
        body()
    return str(caught.value)


def test_what_does_not_fit() -> None:
    v, s = ti.Vector.field(3, ti.f32, shape=5), Particle.field(shape=2)

    @ti.kernel
    def shapes():
        v.fill(ti.Vector([1, 2]))

    @ti.kernel
    def members():
        s.fill(ti.Struct(pos=ti.math.vec3(0), weight=1))

    @ti.kernel
    def nothing():
        (v[0] + 1).fill(0)

    assert "v.fill(ti.Vector([1, 2]))" in _message(shapes)
    assert "both need the same members" in _message(members)
    assert "cannot be filled" in _message(nothing)
    with pytest.raises(KernelTypeError):
        shapes()
