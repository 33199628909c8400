"""Fields of every type and of every rank, with any order of their dimensions and any first index."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelIndexError, TinoteError

TYPES = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u1": np.bool_,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
EXTENTS = (2, 3, 1, 2, 2, 1, 3, 2)


@pytest.mark.parametrize("name", TYPES)
def test_a_kernel_reads_and_writes_every_type(name: str) -> None:
    x, y = (ti.field(getattr(ti, name), shape=6) for _ in range(2))
    given = np.array([0, 1, 2, 3, 100, 101]).astype(TYPES[name])
    x.from_numpy(given)

    @ti.kernel
    def copy() -> None:
        for i in x:
            y[5 - i] = x[i]

    copy()
    assert y.to_numpy().dtype == TYPES[name]
    np.testing.assert_array_equal(y.to_numpy(), given[::-1])


@pytest.mark.parametrize("name", [name for name in TYPES if name != "u1"])
def test_atomic_sums_wrap_or_round_as_numpy_does(name: str) -> None:
    total = ti.field(getattr(ti, name), shape=())
    x = ti.field(getattr(ti, name), shape=16)
    given = (np.arange(16) * 17).astype(TYPES[name])
    x.from_numpy(given)

    @ti.kernel
    def add() -> None:
        for i in x:
            total[None] += x[i]

    add()
    assert total[None] == given.sum(dtype=TYPES[name])


@pytest.mark.parametrize("rank", range(9))
@pytest.mark.parametrize("element", [(), (2,), (2, 3)], ids=str)
def test_a_kernel_indexes_every_rank(rank: int, element: tuple[int, ...]) -> None:
    shape = EXTENTS[:rank]
    if len(element) == 2:
        x = ti.Matrix.field(2, 3, ti.i32, shape=shape)
    else:
        x = ti.Vector.field(2, ti.i32, shape=shape) if element else ti.field(ti.i32, shape=shape)

    if rank == 0:

        @ti.kernel
        def number() -> None:
            x[None] += 7
    else:

        @ti.kernel
        def number() -> None:
            for index in ti.grouped(x):
                n = 7
                for axis in ti.static(range(rank)):
                    n = n * 10 + index[axis]
                x[index] += n

    number()
    wanted = np.full(shape, 7)
    for axis, index in enumerate(np.indices(shape)):
        assert axis < rank
        wanted = wanted * 10 + index
    found = x.to_numpy()
    assert found.shape == shape + element
    np.testing.assert_array_equal(found, np.broadcast_to(wanted.reshape(shape + (1,) * len(element)), found.shape))


def test_eight_loop_indices() -> None:
    x = ti.field(ti.i32, shape=EXTENTS)

    @ti.kernel
    def number() -> None:
        for i, j, k, q, m, n, o, p in x:
            x[i, j, k, q, m, n, o, p] = i + 2 * j + 3 * k + 5 * q + 7 * m + 11 * n + 13 * o + 17 * p

    number()
    weights = (1, 2, 3, 5, 7, 11, 13, 17)
    wanted = sum(w * index for w, index in zip(weights, np.indices(EXTENTS), strict=True))
    np.testing.assert_array_equal(x.to_numpy(), wanted)
    assert x[1, 2, 0, 1, 1, 0, 2, 1] == wanted[1, 2, 0, 1, 1, 0, 2, 1]


def test_twelve_dimensions() -> None:
    extents = (2, 1, 3, 1, 1, 1, 1, 2, 1, 1, 1, 2)
    x = ti.field(ti.i32, shape=extents)
    y = ti.field(ti.i32)
    ti.root.dense(ti.axes(*range(12)), extents).place(y)

    @ti.kernel
    def number(a: ti.types.ndarray(dtype=ti.i32, ndim=12)):
        for index in ti.grouped(x):
            x[index] = index[0] + 2 * index[2] + 6 * index[7] + 12 * index[11]
            a[index] = 1 + x[index]
            y[index] = 2 + x[index]

    a = np.zeros(extents, np.int32)
    number(a)
    along = np.indices(extents)
    wanted = along[0] + 2 * along[2] + 6 * along[7] + 12 * along[11]
    for found, more in ((x.to_numpy(), 0), (a, 1), (y.to_numpy(), 2)):
        np.testing.assert_array_equal(found, wanted + more)
    assert x[1, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1] == 23


def test_thirteen_dimensions_are_refused() -> None:
    with pytest.raises(FieldError, match="at most 12 dimensions, not 13"):
        ti.field(ti.f32, shape=(1,) * 13)


@pytest.mark.parametrize("order", ["".join(p) for p in permutations("ijk")])
@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
def test_the_order_changes_memory_and_nothing_else(order: str, layout: Any) -> None:
    shape = (2, 3, 4)
    x = ti.Vector.field(2, ti.f32, shape=shape, order=order, layout=layout)

    @ti.kernel
    def number() -> None:
        for i, j, k in x:
            x[i, j, k] = ti.Vector([100 * i + 10 * j + k, -i])

    number()
    i, j, k = np.indices(shape)
    wanted = np.stack([100 * i + 10 * j + k, -i], axis=-1).astype(np.float32)
    np.testing.assert_array_equal(x.to_numpy(), wanted)
    # The same numbers as they lie in memory.
    axes = ["ijk".index(letter) for letter in order]
    axes = [*axes, 3] if layout is ti.Layout.AOS else [3, *axes]
    np.testing.assert_array_equal(np.frombuffer(x.memory.view(), np.float32), wanted.transpose(axes).ravel())


def test_a_wrong_order_is_refused() -> None:
    for wrong in ("ii", "i", "ijk", "xy"):
        with pytest.raises(FieldError, match="does not name each of the 2 dimensions once"):
            ti.field(ti.f32, shape=(2, 3), order=wrong)


@pytest.mark.parametrize("offset", [(-2, 5), (3, -1), (0, 7), (0, 0)], ids=str)
def test_an_offset_moves_the_indices(offset: tuple[int, int]) -> None:
    shape = (4, 3)
    a, b = offset
    x = ti.field(ti.f32, shape=shape, offset=offset, order="ji", needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def number(n: ti.i32) -> None:
        for i, j in x:
            x[i, j] = 100 * i + j
        for index in ti.grouped(x):
            x[index] += 0.5
        x[a, b] = 7
        x[n, b] = 8

    @ti.kernel
    def measure() -> None:
        for i, j in x:
            loss[None] += x[i, j] * i

    number(a + 1)
    i, j = np.indices(shape)
    wanted = 100.0 * (i + a) + (j + b) + 0.5
    wanted[0, 0], wanted[1, 0] = 7, 8
    np.testing.assert_array_equal(x.to_numpy(), wanted)
    assert x[a, b] == 7
    x[a + 3, b + 2] = 9
    assert x.to_numpy()[3, 2] == 9
    with ti.ad.Tape(loss):
        measure()
    np.testing.assert_array_equal(x.grad.to_numpy(), (i + a).astype(np.float32))
    assert x.grad[a + 3, b] == a + 3


def test_indices_outside_of_an_offset_field_are_errors() -> None:
    x = ti.field(ti.f32, shape=4, offset=-2)

    @ti.kernel
    def write(n: ti.i32) -> None:
        x[n] = 1

    write(-2)
    write(1)
    assert x.to_numpy().tolist() == [1, 0, 0, 1]
    with pytest.raises(KernelIndexError, match=r"index 2 is out of bounds .*'x' of shape \(4,\): valid are -2 to 1"):
        write(2)
    with pytest.raises(KernelIndexError, match=r"index -3 is out of bounds .* valid are -2 to 1"):
        write(-3)
    with pytest.raises(KernelIndexError, match=r"index 2 is out of range .* valid are -2 to 1"):
        x[2]
    with pytest.raises(KernelIndexError):
        x[-3]


def test_a_window_of_an_offset_field_that_is_checked_at_once_counts_as_the_user_does() -> None:
    x = ti.field(ti.f32, shape=8, offset=-4)

    @ti.kernel
    def window(n: ti.i32) -> ti.f32:
        s = 0.0
        for k in ti.static(range(3)):
            s += x[n + k]
        return s

    x.fill(1)
    assert window(-4) == window(1) == 3
    with pytest.raises(KernelIndexError, match=r"index -5 is out of bounds .*: valid are -4 to 3"):
        window(-5)
    with pytest.raises(KernelIndexError, match=r"index 4 is out of bounds .*: valid are -4 to 3"):
        window(2)


def test_wrong_offsets_are_refused() -> None:
    for wrong, message in (((1, 2), "needs 1 numbers"), (1.5, "made of integers"), (2**31, "made of integers")):
        with pytest.raises(FieldError, match=message):
            ti.field(ti.f32, shape=3, offset=wrong)
    with pytest.raises(FieldError, match="32-bit"):
        ti.field(ti.u1, shape=2**31 - 1, offset=1)
    with pytest.raises(FieldError, match="needs a shape"):
        ti.field(ti.f32, offset=1)


def test_unrolled_loops_count_from_the_offset() -> None:
    x = ti.field(ti.i32, shape=3, offset=10)

    @ti.kernel
    def number() -> None:
        for i in ti.static(x):
            x[i] = i

    number()
    assert x.to_numpy().tolist() == [10, 11, 12]


def test_the_old_spellings() -> None:
    x = ti.var(dt=ti.f64, shape=3)
    v = ti.Vector.field(2, dt=ti.i32, shape=())
    assert x.dtype is ti.f64 and v.dtype is ti.i32


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_gradients_of_every_float_type(name: str) -> None:
    dtype = getattr(ti, name)
    x = ti.field(dtype, shape=4, needs_grad=True)
    loss = ti.field(dtype, shape=(), needs_grad=True)
    x.from_numpy(np.array([1, 2, 3, 4], TYPES[name]))

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += x[i] * x[i]

    with ti.ad.Tape(loss):
        measure()
    np.testing.assert_array_equal(x.grad.to_numpy(), np.array([2, 4, 6, 8], TYPES[name]))


def test_integers_have_no_gradient() -> None:
    with pytest.raises(TinoteError, match="cannot have a gradient"):
        ti.field(ti.i32, shape=3, needs_grad=True)


def test_the_lists_of_types() -> None:
    types = ti.types.primitive_types
    assert set(types.all_types) == set(types.integer_types) | set(types.real_types) | ({ti.u1} & set(types.all_types))
    assert {ti.i8, ti.u64, ti.f16, ti.f64} <= set(types.all_types)
    x = [ti.field(t, ()) for t in types.all_types]

    @ti.kernel
    def run():
        for field in ti.static(x):
            field[None] = 1

    run()
    assert [field[None] for field in x] == [1] * len(x)
