"""Structs: types, values in kernels and in Python, fields, device functions, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, TinoteError

vec2 = ti.types.vector(2, ti.f64)
vec3 = ti.types.vector(3, ti.f64)


@ti.dataclass
class Particle:
    pos: vec3
    mass: ti.f64
    n: ti.i32

    @ti.func
    def energy(self, g):
        return self.mass * g * self.pos.y

    @ti.func
    def moved(self, by):
        return Particle(pos=self.pos + by, mass=self.mass, n=self.n + 1)

    @ti.func
    def move(self, by):
        self.pos += by
        self.n += 1


Body = ti.types.struct(a=Particle, radius=ti.f32)
Inner = ti.types.struct(v=vec2, m=ti.types.matrix(2, 2, ti.f64))
Outer = ti.types.struct(x=ti.i32, inner=Inner)


def numbers(*shape: int) -> Any:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


# ---- fields


@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str)
def test_kernels_read_and_write_members(layout: Any, shape: tuple[int, ...]) -> None:
    s = Particle.field(shape=shape, layout=layout)
    assert s.shape == s.pos.shape == shape
    s.pos.from_numpy(numbers(*shape, 3))

    if shape:

        @ti.kernel
        def work() -> None:
            for index in ti.grouped(s):
                s[index].mass = s[index].pos.sum()
                s[index].pos.z += 0.5
                s[index].n -= 2
    else:

        @ti.kernel
        def work() -> None:
            s[None].mass = s[None].pos.sum()
            s[None].pos.z += 0.5
            s[None].n -= 2

    work()
    found = s.to_numpy()
    np.testing.assert_array_equal(found["mass"], numbers(*shape, 3).sum(-1))
    np.testing.assert_array_equal(found["pos"], numbers(*shape, 3) + np.array([0, 0, 0.5]))
    np.testing.assert_array_equal(found["n"], np.full(shape, -2))


def test_members_are_interleaved_or_apart() -> None:
    together, apart = Particle.field(shape=4), Particle.field(shape=4, layout=ti.Layout.SOA)
    assert together.pos.buffer.strides == together.mass.buffer.strides == together.n.buffer.strides == (40,)
    assert together.mass.memory.address - together.pos.memory.address == 24
    assert apart.mass.buffer.strides == (8,) and apart.n.buffer.strides == (4,)


def test_a_loop_over_a_field_of_structs_with_offset_and_order() -> None:
    s = ti.Struct.field({"a": ti.i32, "b": vec2}, shape=(2, 3), offset=(-1, 4), order="ji")

    @ti.kernel
    def number() -> None:
        for i, j in s:
            s[i, j].a = 10 * i + j
            s[i, j].b = [i, j]

    number()
    i, j = np.indices((2, 3))
    np.testing.assert_array_equal(s.a.to_numpy(), 10 * (i - 1) + j + 4)
    np.testing.assert_array_equal(s.b.to_numpy(), np.stack([i - 1, j + 4], -1))
    assert s[-1, 5].a == -5


@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
def test_gradients_through_a_field_of_structs(layout: Any) -> None:
    s = Particle.field(shape=4, needs_grad=True, layout=layout)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    s.pos.from_numpy(numbers(4, 3))
    s.mass.from_numpy(numbers(4))

    @ti.kernel
    def measure() -> None:
        for i in s:
            p = s[i]
            p.move(1.0)
            q = p.moved(ti.Vector([0.0, p.mass, 0.0]))
            loss[None] += q.energy(2.0) + q.n

    with ti.ad.Tape(loss):
        measure()
    y, m = numbers(4, 3)[:, 1], numbers(4)
    np.testing.assert_allclose(loss[None], (2 * m * (y + 1 + m) + 2).sum())
    np.testing.assert_allclose(s.grad.mass.to_numpy(), 2 * (y + 1) + 4 * m)
    np.testing.assert_allclose(s.grad.pos.to_numpy()[:, 1], 2 * m)
    assert s.grad[1].mass == s.mass.grad[1]
    assert "n" not in s.grad.keys
    with pytest.raises(FieldError, match="no member of 's' has a dual"):
        s.dual  # noqa: B018


def test_a_kernel_reads_and_writes_gradients_of_structs() -> None:
    s = Particle.field(shape=3, needs_grad=True)

    @ti.kernel
    def seed() -> None:
        for i in s:
            s.grad[i].mass = i
            s.pos.grad[i].x = 2 * i

    seed()
    np.testing.assert_array_equal(s.grad.to_numpy()["mass"], [0, 1, 2])
    np.testing.assert_array_equal(s.pos.grad.to_numpy()[:, 0], [0, 2, 4])


def test_a_tape_restores_members_one_by_one() -> None:
    s = ti.Struct.field({"a": ti.f64, "b": ti.f64}, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    s.a.from_numpy(numbers(3))
    s.b.from_numpy(10 * numbers(3))

    @ti.kernel
    def square() -> None:
        for i in s:
            s[i].a = s[i].a * s[i].a

    @ti.kernel
    def measure() -> None:
        for i in s:
            loss[None] += s[i].a * s[i].b

    with ti.ad.Tape(loss):
        square()
        measure()
    np.testing.assert_array_equal(s.a.grad.to_numpy(), 2 * numbers(3) * 10 * numbers(3))
    np.testing.assert_array_equal(s.b.to_numpy(), 10 * numbers(3))


def test_a_field_of_structs_is_placed() -> None:
    s, x = Particle.field(), ti.field(ti.i8)
    ti.root.dense(ti.ij, (2, 3)).place(s, x)
    ti.root.lazy_grad()
    assert s.shape == (2, 3)
    assert s.pos.buffer.strides == x.buffer.strides
    assert s.grad.mass.shape == (2, 3)
    t = Particle.field()
    with pytest.raises(FieldError, match=r"'t\.pos' has no place"):
        t[0]


def test_python_reads_and_writes_elements() -> None:
    s = Body.field(shape=(2,))
    s[0].a.pos = [1, 2, 3]
    s[0].a.pos[1] = 7
    s[0].radius = 2
    s[1] = Body(a=Particle(pos=4, n=5), radius=1.5)
    assert s[0].a.pos.to_list() == [1, 7, 3]
    assert s[1].a.n == 5 and s.radius.to_numpy().tolist() == [2, 1.5]
    assert s.a.pos[1].to_list() == [4, 4, 4]
    s.a.fill({"pos": [1, 1, 1], "mass": 2, "n": 3})
    assert s.a.mass.to_numpy().tolist() == [2, 2]
    t = Body.field(shape=2)
    t.copy_from(s)
    t.a.from_numpy({"pos": numbers(2, 3), "mass": numbers(2), "n": np.array([8, 9])})
    assert t.to_numpy()["a"]["n"].tolist() == [8, 9]
    assert t.radius[1] == 1.5
    assert t.get_member_field("a") is t.a
    with pytest.raises(FieldError, match="cannot take"):
        s[0] = {"a": 1}
    with pytest.raises(AttributeError, match="no member 'b'"):
        s[0].b = 1


# ---- values in kernels


def test_values_are_copies() -> None:
    s = Particle.field(shape=2)
    s.pos.from_numpy(numbers(2, 3))

    @ti.kernel
    def work() -> None:
        for i in s:
            p = s[i]
            q = p
            q.pos.x = -1
            q.mass = 9
            s[i].mass = p.mass + 1
            if i == 1:
                p = q
            s[i].n = ti.cast(p.pos.x, ti.i32)

    work()
    assert s.mass.to_numpy().tolist() == [1, 1]
    assert s.n.to_numpy().tolist() == [1, -1]
    np.testing.assert_array_equal(s.pos.to_numpy(), numbers(2, 3))


def test_whole_structs_are_assigned_and_returned() -> None:
    s = Outer.field(shape=4)

    @ti.func
    def chosen(i: int) -> Outer:
        if i == 0:
            return Outer(1, Inner(2, 3))
        if i == 1:
            return Outer(inner=Inner(v=[i, 2]), x=i)
        return Outer()

    @ti.func
    def doubled(o: Outer):
        o.inner.v *= 2
        return o

    @ti.kernel
    def work() -> None:
        for i in s:
            o = chosen(i)
            s[i] = doubled(o)
            s[i].inner.m += o.inner.m
            inner = s[i].inner
            inner.v[1] += 1
            s[i].inner = inner

    work()
    assert s.x.to_numpy().tolist() == [1, 1, 0, 0]
    np.testing.assert_array_equal(s.inner.v.to_numpy(), [[4, 5], [2, 5], [0, 1], [0, 1]])
    np.testing.assert_array_equal(s.inner.m.to_numpy()[:, 0, 0], [6, 0, 0, 0])


def test_methods_change_what_they_are_called_on() -> None:
    s = Particle.field(shape=3)

    @ti.kernel
    def work() -> None:
        for i in s:
            s[i].move(ti.Vector([i, 0, 1]))
            p = s[i]
            p.move(10)
            s[i].mass = p.pos.x

    work()
    assert s.n.to_numpy().tolist() == [1, 1, 1]
    np.testing.assert_array_equal(s.pos.to_numpy(), [[i, 0, 1] for i in range(3)])
    assert s.mass.to_numpy().tolist() == [10, 11, 12]


def test_a_template_parameter_is_the_struct_itself() -> None:
    s = Particle.field(shape=2)

    @ti.func
    def raise_mass(p: ti.template(), by):
        p.mass += by

    @ti.func
    def no_effect(p, by):
        p.mass += by

    @ti.kernel
    def work(field: ti.template()) -> None:
        for i in field:
            raise_mass(field[i], 2)
            no_effect(field[i], 5)
            p = field[i]
            raise_mass(p, 3)
            field[i].n = int(p.mass)

    work(s)
    assert s.mass.to_numpy().tolist() == [2, 2]
    assert s.n.to_numpy().tolist() == [5, 5]


def test_structs_without_a_type() -> None:
    total = ti.field(ti.f64, shape=())

    @ti.func
    def ray(i):
        return ti.Struct(origin=ti.Vector([i, 0.0]), hit=ti.Struct({"t": 2.5 * i}))

    @ti.kernel
    def work() -> None:
        for i in range(4):
            r = ray(i)
            r.hit.t += r.origin.x
            total[None] += r.hit.t

    work()
    assert total[None] == 3.5 * 6


def test_a_struct_changes_in_a_serial_loop() -> None:
    @ti.kernel
    def run(n: ti.i32) -> ti.f64:
        p = Particle(mass=1)
        best = p
        ti.loop_config(serialize=True)
        for i in range(n):
            p.mass *= 2
            if i == 2:
                best = p
        return p.mass + best.mass

    assert run(5) == 32 + 8


def test_iterations_share_a_struct_that_they_add_to() -> None:
    @ti.kernel
    def run(n: ti.i32) -> ti.f64:
        p = Particle()
        for i in range(n):
            p.mass += i
            p.pos.x += 1
        return p.mass + p.pos.x

    assert run(10) == 45 + 10


def test_captured_structs_are_constants() -> None:
    s = Particle.field(shape=2)
    start = Particle(pos=[1, 2, 3], mass=4, n=5)

    @ti.kernel
    def work() -> None:
        for i in s:
            s[i] = start
            p = start
            p.mass += start.energy(1.0)
            s[i].mass = p.mass

    work()
    assert s[1].pos.to_list() == [1, 2, 3] and s[1].mass == 12
    start.mass = 1
    work()
    assert s[1].mass == 3
    start.pos[1] = 10
    work()
    assert s[1].pos.to_list() == [1, 10, 3] and s[1].mass == 11


def test_structs_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    @ti.kernel
    def work() -> None:
        print(Outer(x=3, inner=Inner(v=[1, 2])).inner.v, ti.Struct(a=1, b=ti.Struct(c=2.5)))

    work()
    assert capfd.readouterr().out == "[1.0, 2.0] {a: 1, b: {c: 2.5}}\n"


# ---- arguments and results of kernels


def test_kernels_take_and_return_structs() -> None:
    @ti.kernel
    def work(o: Outer, by: ti.f64) -> Outer:
        r = o
        r.inner.v += by
        r.x += 1
        r.inner.m = o.inner.m.transpose()
        return r

    given = Outer(x=3, inner={"v": [1, 2], "m": [[1, 2], [3, 4]]})
    found = work(given, 0.5)
    assert isinstance(found, ti.Struct)
    assert found.x == 4
    assert found.inner.v.to_list() == [1.5, 2.5]
    assert found.inner.m.to_list() == [[1, 3], [2, 4]]
    assert given.x == 3
    assert work({"x": 1, "inner": Inner()}, 0).x == 2
    assert found == Outer(4, Inner([1.5, 2.5], [[1, 3], [2, 4]]))
    for wrong in (3, {"x": 1}, Particle()):
        with pytest.raises(TinoteError, match="must be a struct with members x, inner"):
            work(wrong, 0)
    with pytest.raises(TinoteError, match="member 'x'"):
        work({"x": "one", "inner": Inner()}, 0)
    with pytest.raises(TinoteError, match="a number of type f64"):
        work(given, "half")


def test_methods_run_in_python() -> None:
    p = Particle(pos=[1, 2, 3], mass=2)
    assert p.energy(10) == 40
    p.move(1)
    assert p.pos.to_list() == [2, 3, 4] and p.n == 1
    assert p.moved(1).pos.to_list() == [3, 4, 5]


def test_values_in_python() -> None:
    p = ti.Struct(a=1, b=[1, 2], c={"d": 2.5})
    assert p.b.x == 1 and p.c.d == 2.5 and p["a"] == 1 and p.keys == ["a", "b", "c"]
    p.a, p["b"] = 3, [5, 6]
    assert repr(p) == "{a: 3, b: [5, 6], c: {d: 2.5}}"
    assert p.to_dict()["b"].tolist() == [5, 6]
    assert Particle(mass=2.0).n == 0
    with pytest.raises(FieldError, match="cannot be 'x'"):
        Particle(mass="x")
    with pytest.raises(FieldError, match="has no member 'weight'"):
        Particle(weight=1)
    with pytest.raises(FieldError, match="its shape should be"):
        Particle(pos=[1, 2])


def test_a_conditional_chooses_a_struct() -> None:
    pair = ti.types.struct(a=ti.f32, b=ti.math.vec2)
    nest = ti.types.struct(s=pair, n=ti.i32)
    f = nest.field(shape=3)
    f[1] = nest(s=pair(1.0, [2, 3]), n=4)

    @ti.kernel
    def choose(c: ti.i32) -> ti.f32:
        r = f[1] if c > 0 else nest(s=pair(10.0, [20.0, 30.0]), n=40)
        r.n += 1
        return r.s.a + r.s.b[1] + r.n

    @ti.kernel
    def guarded(i: ti.i32) -> ti.f32:
        r = f[i] if i < 3 else nest()
        return r.s.a + r.s.b.y + r.n

    assert choose(1) == 1 + 3 + 5 and choose(0) == 10 + 30 + 41
    assert f[1].n == 4, "it is a copy"
    assert guarded(1) == 8 and guarded(3) == guarded(77) == 0


def test_the_gradient_flows_to_the_struct_that_was_chosen() -> None:
    pair = ti.types.struct(a=ti.f32, b=ti.f32)
    x = pair.field(shape=2, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    x[0], x[1] = pair(2, 3), pair(5, 7)

    @ti.kernel
    def choose(c: ti.i32):
        r = x[0] if c > 0 else x[1]
        loss[None] += r.a * r.b

    with ti.ad.Tape(loss):
        choose(0)
    assert (x.grad[1].a, x.grad[1].b, x.grad[0].a) == (7, 5, 0)


def test_structs_in_a_tuple_that_is_returned() -> None:
    @ti.kernel
    def both() -> (Inner, ti.i32, ti.math.vec2):
        return Inner(v=[1, 2], m=ti.Matrix([[1, 2], [3, 4]])), 5, ti.math.vec2(6, 7)

    inner, n, v = both()
    assert inner == Inner([1, 2], [[1, 2], [3, 4]]) and n == 5 and v.to_list() == [6, 7]

    @ti.kernel
    def twice() -> tuple[Inner, Inner]:
        return Inner(v=[1, 2]), Inner(v=[3, 4])

    first, second = twice()
    assert first.v.to_list() == [1, 2] and second.v.to_list() == [3, 4]


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_a_number_stands_for_the_first_member(arch: Any) -> None:
    ti.init(arch=arch)
    inner = ti.types.struct(a=ti.i32, b=ti.f32)
    outer = ti.types.struct(s=inner, v=ti.types.vector(2, ti.f32))
    deepest = ti.types.struct(o=outer, c=ti.f32)

    @ti.kernel
    def k(n: ti.i32) -> deepest:
        return deepest(n)

    for found in (deepest(3), k(3)):
        assert found.to_dict()["o"]["s"] == {"a": 3, "b": 0} and found.c == 0 and found.o.v.to_list() == [0, 0]
    assert outer(s=2, v=1).v.to_list() == [1, 1]


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_a_dataclass_of_methods_only(arch: Any) -> None:
    ti.init(arch=arch)

    @ti.dataclass
    class Tools:
        @ti.func
        def twice(self, x):
            return 2 * x

    kit = Tools()

    @ti.kernel
    def k(x: ti.i32) -> ti.i32:
        own = Tools()
        return own.twice(x) + kit.twice(1)

    assert k(4) == 10 and kit.twice(5) == 10
    with pytest.raises(ti.errors.FieldError, match="has no members"):
        Tools.field(shape=3)
    with pytest.raises(ti.errors.FieldError, match="needs members"):
        ti.types.struct()
