"""Fields from Python and from kernels: every type, rank and kind of element."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelIndexError, KernelTypeError, TinoteError

TYPES = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
}
SHAPES: list[tuple[int, ...]] = [(), (5,), (3, 4), (2, 3, 4)]
ELEMENTS: list[tuple[int, ...]] = [(), (1,), (3,), (2, 2), (2, 3)]


def make(dtype: Any, shape: tuple[int, ...], element: tuple[int, ...], **more: Any) -> Any:
    if not element:
        return ti.field(dtype, shape=shape, **more)
    if len(element) == 1:
        return ti.Vector.field(element[0], dtype, shape=shape, **more)
    return ti.Matrix.field(*element, dtype, shape=shape, **more)


def numbers(name: str, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape))
    return (np.arange(size).reshape(shape) % 100 + 1).astype(TYPES[name])


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", TYPES)
def test_arrays_go_in_and_out(name: str, shape: tuple[int, ...], element: tuple[int, ...]) -> None:
    x = make(getattr(ti, name), shape, element)
    assert x.shape == shape
    assert not x.to_numpy().any()
    wanted = numbers(name, shape + element)
    x.from_numpy(wanted)
    found = x.to_numpy()
    assert found.dtype == TYPES[name]
    np.testing.assert_array_equal(found, wanted)
    found += 1
    np.testing.assert_array_equal(x.to_numpy(), wanted)
    assert x.to_numpy(dtype=np.float64).dtype == np.float64
    x.fill(7)
    np.testing.assert_array_equal(x.to_numpy(), np.full(shape + element, 7, TYPES[name]))


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["f32", "f64", "i32", "i64", "u8"])
def test_a_kernel_reads_and_writes(name: str, shape: tuple[int, ...], element: tuple[int, ...]) -> None:
    """`y = 2 x + 1` through grouped indices."""
    dtype = getattr(ti, name)
    x, y = make(dtype, shape, element), make(dtype, shape, element)
    wanted = numbers(name, shape + element)
    x.from_numpy(wanted)

    if shape:

        @ti.kernel
        def run():
            for at in ti.grouped(x):
                y[at] = x[at] * 2 + 1
    else:

        @ti.kernel
        def run():
            y[None] = x[None] * 2 + 1

    run()
    np.testing.assert_array_equal(y.to_numpy(), wanted * TYPES[name](2) + TYPES[name](1))


@pytest.mark.parametrize("name", ["f32", "f64", "i32", "i64", "u8", "i8", "u16"])
def test_atomic_sum_over_a_field(name: str) -> None:
    dtype = getattr(ti, name)
    x, s = ti.field(dtype, shape=(40, 50)), ti.field(dtype, shape=())
    values = (np.arange(2000).reshape(40, 50) % 3).astype(TYPES[name])
    x.from_numpy(values)

    @ti.kernel
    def run():
        for i, j in x:
            s[None] += x[i, j]

    run()
    assert s[None] == values.sum(dtype=TYPES[name])


def test_all_atomics() -> None:
    n = 1000
    x = ti.field(ti.i32, shape=n)
    x.from_numpy(((np.arange(n) * 7919) % 1009).astype(np.int32))
    out = ti.field(ti.i32, shape=7)
    out.from_numpy(np.array([0, 0, 2**31 - 1, -(2**31), -1, 0, 0], np.int32))

    @ti.kernel
    def run():
        for i in x:
            ti.atomic_add(out[0], x[i])
            ti.atomic_sub(out[1], x[i])
            ti.atomic_min(out[2], x[i])
            ti.atomic_max(out[3], x[i])
            ti.atomic_and(out[4], x[i] | 1024)
            ti.atomic_or(out[5], x[i])
            ti.atomic_xor(out[6], x[i])

    run()
    a = x.to_numpy()
    assert out.to_numpy().tolist() == [
        a.sum(),
        -a.sum(),
        a.min(),
        a.max(),
        np.bitwise_and.reduce(a | 1024),
        np.bitwise_or.reduce(a),
        np.bitwise_xor.reduce(a),
    ]


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_float_atomic_extremes(name: str) -> None:
    x = ti.field(getattr(ti, name), shape=500)
    low, high = ti.field(getattr(ti, name), shape=()), ti.field(getattr(ti, name), shape=())
    x.from_numpy(np.cos(np.arange(500)).astype(TYPES[name]) - TYPES[name](0.5))

    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(low[None], x[i])
            ti.atomic_max(high[None], x[i])

    run()
    assert low[None] == x.to_numpy().min()
    assert high[None] == x.to_numpy().max()


def test_an_atomic_gives_the_old_value() -> None:
    """Appending to a list: every slot is taken once."""
    n = 512
    count, slots = ti.field(ti.i32, shape=()), ti.field(ti.i32, shape=n)

    @ti.kernel
    def run():
        for i in range(n):
            if i % 3 == 0:
                at = ti.atomic_add(count[None], 1)
                slots[at] = i + 1

    run()
    used = slots.to_numpy()
    assert count[None] == 171
    assert sorted(used[:171].tolist()) == [i + 1 for i in range(0, n, 3)]
    assert not used[171:].any()


def test_elements_from_python() -> None:
    x = ti.field(ti.f32, shape=(2, 3))
    x[1, 2] = 2.5
    assert x[1, 2] == 2.5
    assert isinstance(x[1, 2], float)
    k = ti.field(ti.i32, shape=4)
    k[np.int64(3)] = 7
    k[0] += 5
    assert k[3] == 7
    assert k[0] == 5
    assert isinstance(k[3], int)
    s = ti.field(ti.f64, shape=())
    s[None] = 0.1
    s[None] += 1
    assert s[None] == 1.1


def test_vector_elements_from_python() -> None:
    v = ti.Vector.field(3, ti.f32, shape=4)
    v[1] = [1, 2, 3]
    v[2] = ti.Vector([4.0, 5.0, 6.0])
    v[3] = np.array([7, 8, 9])
    v[2][1] = 50
    v[3].x = 70
    v[1] += ti.Vector([1, 1, 1])
    assert v.to_numpy().tolist() == [[0, 0, 0], [2, 3, 4], [4, 50, 6], [70, 8, 9]]
    assert v[2].y == 50
    assert v[2].norm() == pytest.approx(np.linalg.norm([4, 50, 6]))
    m = ti.Matrix.field(2, 3, ti.f64, shape=(2,))
    m[1] = [[1, 2, 3], [4, 5, 6]]
    m[1][0, 2] = 30
    assert m[1][0, 2] == 30
    assert m[1][1, 0] == 4
    assert (m.n, m.m) == (2, 3)


@pytest.mark.parametrize("bad", [5, -1, -6, (1, 2), None, 1.0, "1", slice(None)], ids=repr)
def test_bad_indices_from_python(bad: Any) -> None:
    x = ti.field(ti.f32, shape=5)
    for act in (lambda: x[bad], lambda: x.__setitem__(bad, 1.0)):
        with pytest.raises(KernelIndexError):
            act()


@pytest.mark.parametrize("bad", ["no", None, [1, 2], object, 1j], ids=repr)
def test_bad_values_from_python(bad: Any) -> None:
    for dtype in (ti.f32, ti.i32):
        x = ti.field(dtype, shape=5)
        with pytest.raises(FieldError):
            x[1] = bad
        assert x[1] == 0


def test_a_number_that_does_not_fit_is_refused() -> None:
    x = ti.field(ti.u8, shape=2)
    for bad in (256, -1, 1 << 70):
        with pytest.raises(FieldError):
            x[0] = bad
    assert x.to_numpy().tolist() == [0, 0]


def test_from_numpy_checks_the_shape() -> None:
    x = ti.field(ti.f32, shape=(2, 3))
    for bad in (np.zeros(6), np.zeros((3, 2)), np.zeros((2, 3, 1)), 5.0):
        with pytest.raises(FieldError):
            x.from_numpy(bad)
    x.from_numpy(np.arange(12.0).reshape(2, 6)[:, ::2])
    assert x.to_numpy().tolist() == [[0, 2, 4], [6, 8, 10]]


def test_fill_checks_its_value() -> None:
    v = ti.Vector.field(2, ti.f32, shape=3)
    v.fill([1, 2])
    assert v.to_numpy().tolist() == [[1, 2]] * 3
    for bad in ([1, 2, 3], "no", None):
        with pytest.raises(FieldError):
            v.fill(bad)
    x = ti.field(ti.i32, shape=3)
    with pytest.raises(FieldError):
        x.fill([1, 2, 3])
    assert x.to_numpy().tolist() == [0, 0, 0]


def test_the_view_shares_memory() -> None:
    x = ti.field(ti.f32, shape=4)
    view = x.numpy_view()

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2

    view[:] = [1, 2, 3, 4]
    double()
    assert view.tolist() == [2, 4, 6, 8]
    assert x[3] == 8


def test_a_view_outlives_its_field() -> None:
    x = ti.field(ti.f32, shape=1000)
    x.fill(3)
    view = x.numpy_view()
    del x
    ti.init()
    gc.collect()
    for _ in range(20):
        ti.field(ti.f32, shape=1000).fill(9)
    assert (view == 3).all()
    view[:] = 4
    assert view.sum() == 4000


def test_gradients_are_fields() -> None:
    x = ti.Vector.field(2, ti.f32, shape=3, needs_grad=True)
    assert x.grad.shape == x.shape
    assert x.grad.to_numpy().shape == (3, 2)
    x.grad[1] = [1, 2]
    assert x.grad[1].to_list() == [1, 2]
    ti.ad.clear_all_gradients()
    assert not x.grad.to_numpy().any()
    with pytest.raises(FieldError, match="has no gradient"):
        ti.field(ti.f32, shape=3).grad  # noqa: B018
    with pytest.raises(FieldError, match="cannot have a gradient"):
        ti.field(ti.i32, shape=3, needs_grad=True)


@pytest.mark.parametrize("bad", [-1, (2, -3), 1.5, "3", (2, None), 2**31, True, (2**20, 2**20, 2**20)], ids=repr)
def test_bad_shapes(bad: Any) -> None:
    with pytest.raises(FieldError):
        ti.field(ti.f32, shape=bad)


def test_an_empty_field() -> None:
    x = ti.field(ti.f32, shape=0)
    y = ti.field(ti.f32, shape=(3, 0))

    @ti.kernel
    def run():
        for i in x:
            x[i] = 1
        for i, j in y:
            y[i, j] = 1

    run()
    assert x.to_numpy().shape == (0,)
    assert y.to_numpy().shape == (3, 0)


@pytest.mark.parametrize("bad", ["f33", 5, None, complex], ids=repr)
def test_bad_types(bad: Any) -> None:
    with pytest.raises(FieldError):
        ti.field(bad, shape=3)


def test_python_and_numpy_types_name_types() -> None:
    assert ti.field(float, shape=1).dtype is ti.f32
    assert ti.field(int, shape=1).dtype is ti.i32
    assert ti.field(np.float64, shape=1).dtype is ti.f64
    assert ti.field(ti.float32, shape=1).dtype is ti.f32


def test_names_come_from_the_assignment() -> None:
    pressure = ti.field(ti.f32, shape=3)
    assert "pressure" in repr(pressure)
    first, (second, third) = ti.field(ti.f32, shape=3), (ti.field(ti.f32, shape=3), ti.Vector.field(2, ti.f32, shape=3))
    assert [first.name, second.name, third.name] == ["first", "second", "third"]
    longer = ti.field(
        ti.f32,
        shape=3,
        needs_grad=True,
    )
    assert longer.grad.name == "longer.grad"
    holder = types.SimpleNamespace()
    holder.inside = ti.field(ti.f32, shape=3)
    assert holder.inside.name == "inside"
    assert [ti.field(ti.f32, shape=3)][0].name == "field"
    assert ti.field(ti.f32, shape=3, name="given").name == "given"


def test_copy_from() -> None:
    x, y = ti.field(ti.f32, shape=3), ti.field(ti.f32, shape=3)
    x.from_numpy(np.array([1, 2, 3]))
    y.copy_from(x)
    assert y.to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(FieldError):
        y.copy_from(ti.field(ti.f32, shape=4))


def test_a_field_is_not_iterable_in_python() -> None:
    with pytest.raises(TypeError):
        list(ti.field(ti.f32, shape=3))


def test_a_field_from_before_a_reset() -> None:
    x = ti.field(ti.f32, shape=3)
    v = ti.Vector.field(2, ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def run():
        for i in x:
            x[i] = 1

    run()
    ti.reset()
    for act in (
        run,
        x.to_numpy,
        lambda: x[0],
        lambda: x.__setitem__(0, 1),
        lambda: x.fill(0),
        lambda: x.from_numpy(np.zeros(3)),
        x.numpy_view,
        lambda: v[0],
        lambda: v.grad[0],
    ):
        with pytest.raises(FieldError, match="is gone"):
            act()
    x = ti.field(ti.f32, shape=3)
    run()
    assert x.to_numpy().tolist() == [1, 1, 1]


def test_a_kernel_fills_fields() -> None:
    x = ti.field(ti.f32, shape=(3, 4), needs_grad=True, offset=(-1, 2))
    v = ti.Vector.field(2, ti.f32, shape=5)

    @ti.kernel
    def run(a: ti.f32):
        x.fill(a)
        x.grad.fill(2 * a)
        v.fill(ti.Vector([a, 2]))
        for i in v:
            v[i] += i

    run(3)
    run(4)
    np.testing.assert_array_equal(x.to_numpy(), np.full((3, 4), 4))
    np.testing.assert_array_equal(x.grad.to_numpy(), np.full((3, 4), 8))
    np.testing.assert_array_equal(v.to_numpy(), [[4 + i, 2 + i] for i in range(5)])
    assert len(run.instances) == 1

    @ti.kernel
    def wrong():
        x.fill(1, 2)

    with pytest.raises(KernelTypeError, match=r"`\.fill` takes 1 argument, not 2"):
        wrong()


def test_printing_shows_the_elements() -> None:
    x, v = ti.field(ti.i32, shape=(2, 2)), ti.Vector.field(2, ti.f32, shape=3)
    x.fill(3)
    v[1] = [1, 2]
    assert str(x) == f"{x}" == "[[3 3]\n [3 3]]"
    assert str(v) == str(v.to_numpy()) and str(v.get_scalar_field(1)) == "[0. 2. 0.]"
    assert repr(x) == "<field x: i32, shape (2, 2)>"
    later = ti.field(ti.f32)
    assert str(later) == repr(later)


class Unshown:
    """Its text raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("value", [10**5000, -(10**5000), [10**5000], Unshown(), [Unshown()]], ids=lambda _: "")
def test_errors_show_what_python_cannot_spell_out(value: Any) -> None:
    x = ti.field(ti.i32, shape=3)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: x.fill(value),
        lambda: x.__setitem__(0, value),
        lambda: x[value],
        lambda: x.from_numpy(value),
        lambda: ti.field(ti.i32, shape=value),
        lambda: ti.field(ti.i32, shape=3, offset=value),
        lambda: ti.root.dense(ti.i, value),
    )
    for call in calls:
        with pytest.raises(TinoteError):
            call()
