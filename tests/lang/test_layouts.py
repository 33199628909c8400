"""Layouts: where fields lie in memory, what shares a block, and that none of it changes what a program computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, NotAvailableError, TinoteError


def test_fields_of_one_level_are_interleaved() -> None:
    x, y, flag = ti.field(ti.f32), ti.Vector.field(3, ti.f64), ti.field(ti.i8)
    ti.root.dense(ti.ij, (3, 4)).place(flag, x, y)

    @ti.kernel
    def number() -> None:
        for i, j in x:
            flag[i, j] = i
            x[i, j] = 10 * i + j
            y[i, j] = ti.Vector([i, j, i * j])

    number()
    i, j = np.indices((3, 4))
    np.testing.assert_array_equal(flag.to_numpy(), i)
    np.testing.assert_array_equal(x.to_numpy(), 10 * i + j)
    np.testing.assert_array_equal(y.to_numpy(), np.stack([i, j, i * j], -1))
    # flag at 0, x at 4, y at 8: 32 bytes a cell.
    assert flag.buffer.strides == x.buffer.strides == y.buffer.strides == (128, 32)
    assert x.memory.address - flag.memory.address == 4
    assert y.memory.address - flag.memory.address == 8
    cells = np.ndarray((3, 4), np.float32, flag.memory.view(), offset=4, strides=(128, 32))
    np.testing.assert_array_equal(cells, x.to_numpy())


def test_levels_of_their_own_have_memory_of_their_own() -> None:
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 4).place(x)
    ti.root.dense(ti.i, 4).place(y)
    x.fill(1)
    assert x.buffer.strides == y.buffer.strides == (4,)
    assert not y.to_numpy().any()


def test_places_of_one_level_in_several_statements() -> None:
    cells = ti.root.dense(ti.i, 4)
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    cells.place(x)
    cells.place(y)
    assert x.shape == (4,)
    assert x.buffer.strides == y.buffer.strides == (8,)


def test_the_axes_of_levels_are_the_order_in_memory() -> None:
    x = ti.field(ti.i32)
    ti.root.dense(ti.j, 3).dense(ti.i, 2).place(x)

    @ti.kernel
    def number() -> None:
        for i, j in x:
            x[i, j] = 10 * i + j

    number()
    assert x.shape == (2, 3)
    assert np.frombuffer(x.memory.view(), np.int32).tolist() == [0, 10, 1, 11, 2, 12]
    np.testing.assert_array_equal(x.to_numpy(), [[0, 1, 2], [10, 11, 12]])


def test_a_level_below_another_lies_within_its_cells() -> None:
    mass, grid = ti.field(ti.f32), ti.field(ti.f32)
    rows = ti.root.dense(ti.i, 3)
    rows.place(mass)
    rows.dense(ti.j, 4).place(grid)

    @ti.kernel
    def number() -> None:
        for i in mass:
            mass[i] = -1 - i
        for i, j in grid:
            grid[i, j] = 10 * i + j

    number()
    assert mass.buffer.strides == (20,)
    assert grid.buffer.strides == (20, 4)
    np.testing.assert_array_equal(mass.to_numpy(), [-1, -2, -3])
    np.testing.assert_array_equal(grid.to_numpy(), 10 * np.arange(3)[:, None] + np.arange(4))
    np.testing.assert_array_equal(np.frombuffer(mass.memory.view(), np.float32)[:5], [-1, 0, 1, 2, 3])


def test_blocked_layouts_have_the_indices_they_would_have() -> None:
    x, y = ti.field(ti.i32), ti.field(ti.f64)
    ti.root.dense(ti.ij, (2, 4)).dense(ti.ij, (3, 2)).place(x, y)

    @ti.kernel
    def number() -> None:
        for i, j in x:
            x[i, j] = 10 * i + j
            y[i, j] = i

    number()
    assert x.shape == (6, 8)
    i, j = np.indices((6, 8))
    np.testing.assert_array_equal(x.to_numpy(), 10 * i + j)
    np.testing.assert_array_equal(y.to_numpy(), i)


def test_one_number_divides_all_axes() -> None:
    x = ti.field(ti.i32)
    ti.root.dense(ti.ijk, 3).place(x)
    assert x.shape == (3, 3, 3)
    y = ti.field(ti.i32)
    ti.root.dense(ti.axes(0, 2), (2, 5)).place(y)
    assert y.shape == (2, 5)


def test_single_values_at_the_root() -> None:
    loss, n = ti.field(ti.f32), ti.field(ti.i32)
    ti.root.place(loss, n)

    @ti.kernel
    def write() -> None:
        loss[None] = 1.5
        n[None] += 2

    write()
    assert (loss[None], n[None]) == (1.5, 2)
    assert loss.shape == ()


def test_an_offset_where_it_is_placed() -> None:
    x = ti.field(ti.i32)
    ti.root.dense(ti.i, 4).place(x, offset=(-2,))

    @ti.kernel
    def number() -> None:
        for i in x:
            x[i] = i

    number()
    assert x.to_numpy().tolist() == [-2, -1, 0, 1]
    assert x[-2] == -2


# ---- gradients


@pytest.mark.parametrize("way", ["placed with it", "placed elsewhere", "needs_grad", "lazy_grad", "root lazy_grad"])
def test_gradients_of_placed_fields(way: str) -> None:
    x = ti.Vector.field(2, ti.f64, needs_grad=way == "needs_grad")
    y = ti.field(ti.f64)
    loss = ti.field(ti.f64)
    level = ti.root.dense(ti.i, 5)
    if way == "placed with it":
        level.place(x, y, x.grad, y.grad)
        ti.root.place(loss, loss.grad)
    elif way == "placed elsewhere":
        level.place(x, y)
        ti.root.dense(ti.i, 5).place(x.grad, y.grad)
        ti.root.place(loss)
        ti.root.place(loss.grad)
    else:
        level.place(x, y)
        ti.root.place(loss)
        if way == "lazy_grad":
            level.lazy_grad()
        ti.root.lazy_grad()

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += x[i][0] * x[i][1] + i * y[i]

    given = np.arange(10.0).reshape(5, 2)
    x.from_numpy(given)
    for _ in range(2):  # the second tape begins with gradients of the first
        with ti.ad.Tape(loss):
            measure()
    np.testing.assert_array_equal(x.grad.to_numpy(), given[:, ::-1])
    np.testing.assert_array_equal(y.grad.to_numpy(), np.arange(5.0))
    np.testing.assert_array_equal(x.to_numpy(), given)
    ti.ad.clear_all_gradients()
    assert not x.grad.to_numpy().any()
    np.testing.assert_array_equal(x.to_numpy(), given)


def test_lazy_dual() -> None:
    x, loss = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(x)
    ti.root.place(loss)
    ti.root.lazy_dual()

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += (i + 1) * x[i] * x[i]

    x.from_numpy(np.array([1, 2, 3], np.float32))
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 1]):
        measure()
        assert loss.dual[None] == 2 + 18


def test_integers_are_left_out_by_lazy_grad() -> None:
    x, n = ti.field(ti.f32), ti.field(ti.i32)
    ti.root.dense(ti.i, 3).place(x, n)
    ti.root.lazy_grad()
    assert x.has_grad and not n.has_grad


def test_the_root_gives_gradients_to_fields_made_with_a_shape_too() -> None:
    x = ti.Vector.field(2, ti.f64, shape=(3,), offset=(1,))
    count, y, loss = ti.field(ti.i32, shape=3), ti.field(ti.f64), ti.field(ti.f64, shape=())
    ti.FieldsBuilder().lazy_grad()  # has no part in these
    assert not x.has_grad

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += x[i][0] * x[i][1] * y[i - 1]

    ti.root.dense(ti.i, 3).place(y)
    ti.root.lazy_grad()
    x.from_numpy(np.arange(6.0).reshape(3, 2))
    y.fill(2)
    with ti.ad.Tape(loss):
        measure()
    np.testing.assert_array_equal(x.grad.to_numpy(), 2 * np.arange(6.0).reshape(3, 2)[:, ::-1])
    assert y.has_grad and not count.has_grad
    gradient = x.grad
    ti.root.lazy_grad()
    assert x.grad is gradient


def test_a_tape_restores_one_interleaved_field_and_leaves_its_neighbour() -> None:
    x, other = ti.field(ti.f64), ti.field(ti.f64)
    ti.root.dense(ti.i, 4).place(x, other)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    ti.root.lazy_grad()

    @ti.kernel
    def square() -> None:
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def scale(n: ti.f64) -> None:
        for i in other:
            other[i] = other[i] * n

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += x[i] * other[i]

    a, b = np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8])
    x.from_numpy(a)
    other.from_numpy(b)
    with ti.ad.Tape(loss):
        square()
        scale(2.0)
        square()
        measure()
    np.testing.assert_allclose(x.to_numpy(), a**4)
    np.testing.assert_allclose(other.to_numpy(), 2 * b)
    np.testing.assert_allclose(x.grad.to_numpy(), 4 * a**3 * 2 * b)
    np.testing.assert_allclose(other.grad.to_numpy(), 2 * a**4)


@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str)
def test_vectors_and_matrices_of_either_layout(layout: Any, shape: tuple[int, ...]) -> None:
    v = ti.Vector.field(3, ti.f64, shape=shape, layout=layout, needs_grad=True)
    m = ti.Matrix.field(3, 3, ti.f64, shape=shape, layout=layout, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((*shape, 3)), rng.standard_normal((*shape, 3, 3))
    v.from_numpy(a)
    m.from_numpy(b)

    if shape:

        @ti.kernel
        def measure() -> None:
            for index in ti.grouped(v):
                loss[None] += v[index].dot(m[index] @ v[index])
    else:

        @ti.kernel
        def measure() -> None:
            loss[None] += v[None].dot(m[None] @ v[None])

    with ti.ad.Tape(loss):
        measure()
    np.testing.assert_allclose(loss[None], np.einsum("...i,...ij,...j->...", a, b, a).sum())
    np.testing.assert_allclose(m.grad.to_numpy(), a[..., :, None] * a[..., None, :])
    wanted = np.einsum("...ij,...j->...i", b + np.swapaxes(b, -1, -2), a)
    np.testing.assert_allclose(v.grad.to_numpy(), wanted)
    index = (0,) * len(shape) if shape else None
    v[index] = [1, 2, 3]
    v[index][1] = 5
    assert v[index].to_list() == [1, 5, 3]


def test_soa_gives_each_component_an_array() -> None:
    v = ti.Vector.field(2, ti.f32, shape=3, layout=ti.Layout.SOA)
    v.from_numpy(np.array([[1, 4], [2, 5], [3, 6]], np.float32))
    assert np.frombuffer(v.memory.view(), np.float32).tolist() == [1, 2, 3, 4, 5, 6]


def test_gradcheck_of_interleaved_fields() -> None:
    ti.init(default_fp=ti.f64)
    x, y = ti.field(ti.f64, needs_grad=True), ti.field(ti.f64, needs_grad=True)
    ti.root.dense(ti.i, 3).place(x, y)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure() -> None:
        for i in x:
            loss[None] += ti.sin(x[i]) * y[i]

    x.from_numpy(np.array([0.1, 0.2, 0.3]))
    y.from_numpy(np.array([1.0, 2.0, 3.0]))
    assert ti.ad.gradcheck(measure, wrt=[x, y], loss=loss).ok


# ---- views and whole fields


def test_whole_field_operations_of_interleaved_fields() -> None:
    x, y, z = ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 4).place(x, y)
    ti.root.dense(ti.i, 4).place(z)
    x.fill(3)
    y.from_numpy(np.arange(4, dtype=np.float32))
    z.copy_from(y)
    x[1] = 7
    assert x.to_numpy().tolist() == [3, 7, 3, 3]
    assert y.to_numpy().tolist() == z.to_numpy().tolist() == [0, 1, 2, 3]
    view = x.numpy_view()
    view[2] = 9
    assert x[2] == 9
    assert y[2] == 2
    del x, y
    ti.reset()
    assert view.tolist() == [3, 7, 9, 3]


@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
def test_components_as_scalar_fields(layout: Any) -> None:
    v = ti.Vector.field(3, ti.f32, shape=4, layout=layout, needs_grad=True)
    m = ti.Matrix.field(2, 2, ti.f32, shape=4, layout=layout)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    y, d = v.get_scalar_field(1), m.get_scalar_field(1, 0)
    assert y is v.get_scalar_field(1)
    assert y.shape == (4,)

    @ti.kernel
    def write(part: ti.template()) -> None:
        for i in part:
            part[i] = i
            v[i].x += part[i] + 1
            d[i] += 2 * i

    @ti.kernel
    def measure() -> None:
        for i in y:
            loss[None] += y[i] * y[i] * v[i][0]

    write(y)
    np.testing.assert_array_equal(v.to_numpy(), [[i + 1, i, 0] for i in range(4)])
    np.testing.assert_array_equal(d.to_numpy(), [0, 2, 4, 6])
    assert m[3][1, 0] == 6 and d[3] == 6
    with ti.ad.Tape(loss):
        measure()
    i = np.arange(4)
    np.testing.assert_array_equal(y.grad.to_numpy(), 2 * i * (i + 1))
    np.testing.assert_array_equal(v.get_scalar_field(0).grad.to_numpy(), i * i)
    y[2] = 8
    assert v[2].to_list() == [3, 8, 0]
    y.fill(1)
    d.from_numpy(np.arange(4, dtype=np.float32))
    assert v.to_numpy()[:, 1].tolist() == [1, 1, 1, 1]
    assert m.to_numpy()[:, 1, 0].tolist() == [0, 1, 2, 3]
    with pytest.raises(FieldError, match="there is no component"):
        v.get_scalar_field(3)
    with pytest.raises(FieldError, match="there is no component"):
        m.get_scalar_field(1)


# ---- builders and the life of a tree


def test_a_builder_is_a_root_of_its_own() -> None:
    builder = ti.FieldsBuilder()
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    builder.dense(ti.i, 3).place(x)
    builder.place(y)
    tree = builder.finalize()
    assert x.is_placed and y.is_placed

    @ti.kernel
    def number() -> None:
        for i in x:
            x[i] = i
        y[None] = 4

    number()
    assert x.to_numpy().tolist() == [0, 1, 2] and y[None] == 4
    with pytest.raises(FieldError, match="finalized"):
        builder.place(ti.field(ti.f32))
    tree.destroy()


def test_a_field_without_a_place_says_so_where_it_is_used() -> None:
    w = ti.field(ti.f32)
    assert repr(w) == "<field w: f32, not placed yet>"

    @ti.kernel
    def write() -> None:
        w[0] = 1

    with pytest.raises(FieldError, match="'w' has no place in memory yet") as caught:
        write()
    assert "w[0] = 1" in str(caught.value)
    assert "w = ti.field(ti.f32)" in str(caught.value)
    assert "place it first" in caught.value.hint
    for use in (lambda: w[0], lambda: w.fill(1), w.to_numpy, lambda: w.shape):
        with pytest.raises(FieldError, match="has no place"):
            use()
    ti.root.dense(ti.i, 3).place(w)
    write()
    assert w.to_numpy().tolist() == [1, 0, 0]


def test_nothing_is_added_to_what_was_used() -> None:
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    level = ti.root.dense(ti.i, 3)
    level.place(x)
    x[0] = 1
    with pytest.raises(FieldError, match="have been used already") as caught:
        level.place(y)
    assert "x[0] = 1" in str(caught.value)
    ti.root.dense(ti.i, 3).place(y)
    assert y[0] == 0


def test_a_field_is_placed_once() -> None:
    x = ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(x)
    with pytest.raises(FieldError, match="'x' is placed already"):
        ti.root.dense(ti.i, 3).place(x)
    with pytest.raises(FieldError, match="made with a shape"):
        ti.root.place(ti.field(ti.f32, shape=()))


def test_wrong_levels_are_refused() -> None:
    for axes, extents, message in (
        (ti.ij, (2, 3, 4), "needs 2 extents, not 3"),
        (ti.i, 0, "positive extents"),
        (ti.i, -1, "negative extent"),
        (ti.i, 2.5, "made of integers"),
        ("i", 3, "does not name dimensions"),
    ):
        with pytest.raises(FieldError, match=message):
            ti.root.dense(axes, extents)
    with pytest.raises(FieldError, match="named twice"):
        ti.axes(1, 1)
    with pytest.raises(FieldError, match="only fields are placed"):
        ti.root.place(3)
    with pytest.raises(NotAvailableError, match="quantised"):
        ti.root.bit_struct(32)
    with pytest.raises(FieldError, match="bytes"):
        x = ti.field(ti.f64)
        ti.root.dense(ti.ijkl, 2**15).place(x)
        x[0, 0, 0, 0] = 1


def test_a_gradient_of_another_shape_is_refused() -> None:
    x = ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(x)
    ti.root.dense(ti.i, 4).place(x.grad)
    with pytest.raises(FieldError, match=r"its grad was placed with shape \(4,\)"):
        x.fill(1)


def test_a_reset_ends_levels_and_fields() -> None:
    x = ti.field(ti.f32)
    level = ti.root.dense(ti.i, 3)
    level.place(x)
    ti.init()
    with pytest.raises(TinoteError, match="is gone"):
        x[0] = 1
    with pytest.raises(TinoteError, match="is gone"):
        level.place(ti.field(ti.f32))
    y = ti.field(ti.f32)
    ti.root.dense(ti.i, 3).place(y)
    assert y.to_numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("n", [16, 64, 100, 128])
def test_components_in_arrays_of_their_own_do_not_meet_in_one_set_of_a_cache(n: int):
    """Addresses that agree in their last twelve bits do, and a set holds about eight."""
    f = ti.Vector.field(19, ti.f32, shape=(n, n), layout=ti.Layout.SOA)
    starts = [f._array[0, 0, q:].ctypes.data for q in range(19)]
    assert len({start % 4096 // 64 for start in starts}) >= 16
    several = [ti.field(ti.f32, shape=(1024, 1024)) for _ in range(8)]
    assert len({one._array.ctypes.data % 4096 // 64 for one in several}) == 8
    f.fill(2.0)
    several[3].fill(1.0)
    assert f.to_numpy().sum() == 2 * 19 * n * n and not several[2].to_numpy().any()
