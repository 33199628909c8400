"""Loops over active cells that read neighbours: what vector code makes of rows of cells, against NumPy, bit for bit."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinote as ti

#: Blocks of 2-D and 3-D fields: with rows of full vectors, of parts of them, and too short for any.
BLOCKS = [(8, 16), (4, 8), (2, 32), (3, 9), (5, 12), (4, 4), (16, 1), (2, 3, 16), (4, 4, 8)]


@settings(max_examples=60)
@given(
    cells=st.sampled_from(BLOCKS),
    steps=st.lists(st.tuples(st.integers(-2, 2), st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=4),
    kind=st.sampled_from(["pointer", "bitmasked", "in a pointer"]),
    element=st.sampled_from([1, 3]),
    way=st.sampled_from(["guarded", "unguarded", "ignored", "in another tree"]),
    offset=st.sampled_from([0, -5]),
    seed=st.integers(0, 10**6),
)
def test_neighbours(
    cells: tuple[int, ...], steps: list[tuple[int, ...]], kind: str, element: int, way: str, offset: int, seed: int
) -> None:
    ti.init(bounds_check="ignore" if way == "ignored" else True)
    dims = len(cells)
    axes = ti.ij if dims == 2 else ti.ijk
    blocks = (3, 4, 2)[:dims]
    shape = tuple(n * k for n, k in zip(blocks, cells, strict=True))
    moves = [step[::-1][:dims] for step in steps]

    def made() -> Any:
        return ti.field(ti.f32) if element == 1 else ti.Vector.field(element, ti.f32)

    def level() -> Any:
        if kind == "in a pointer":
            return ti.root.pointer(axes, 1).pointer(axes, blocks).dense(axes, cells)
        return getattr(ti.root, kind)(axes, blocks).dense(axes, cells)

    x, y = made(), made()
    first = (offset,) * dims
    one = level()
    one.place(x, offset=first)
    (level() if way == "in another tree" else one).place(y, offset=first)

    @ti.kernel
    def gather() -> None:
        for index in ti.grouped(x):
            total = x[index] * 0.5
            for k in ti.static(range(len(moves))):
                at = index + ti.Vector(moves[k])
                if ti.static(way in ("guarded", "in another tree")):
                    inside = True
                    for axis in ti.static(range(dims)):
                        inside = inside and 0 <= at[axis] - offset < shape[axis]
                    if inside:
                        total += (k + 1) * x[at]
                else:
                    total += (k + 1) * x[at]
            y[index] = total

    rng = np.random.default_rng(seed)
    dense = np.zeros((*shape, *((element,) if element > 1 else ())), np.float32)
    active = np.zeros(shape, bool)
    # Unguarded neighbours are in the box: the blocks at its border stay empty.
    margin = 1 if way == "unguarded" else 0
    reach = max(abs(k) for move in moves for k in move)
    if margin and (min(cells) < reach or min(blocks) < 3):
        return
    for block in np.ndindex(*blocks):
        if any(b < margin or b >= n - margin for b, n in zip(block, blocks, strict=True)) or rng.random() < 0.4:
            continue
        place = tuple(slice(b * n, (b + 1) * n) for b, n in zip(block, cells, strict=True))
        dense[place] = rng.integers(1, 100, dense[place].shape)
        active[place] = True
    x.from_numpy(dense)
    gather()
    pad = [(2, 2)] * dims + [(0, 0)] * (dense.ndim - dims)
    padded = np.pad(dense, pad)
    wanted = dense * np.float32(0.5)
    for k, move in enumerate(moves):
        wanted += (k + 1) * padded[tuple(slice(2 + m, 2 + m + n) for m, n in zip(move, shape, strict=True))]
    written = active.reshape(active.shape + (1,) * (dense.ndim - dims))
    np.testing.assert_array_equal(y.to_numpy(), np.where(written, wanted, 0))
    assert math.prod(y.to_sparse()[0].shape) == dims * active.sum()
    if way == "ignored":
        with warnings.catch_warnings():  # of what was outside, if anything was
            warnings.simplefilter("ignore")
            ti.reset()


@pytest.mark.parametrize("cells", [(8, 16), (4, 8), (3, 9)])
def test_gradients_of_neighbours(cells: tuple[int, int]) -> None:
    def run(sparse: bool) -> list[Any]:
        ti.init(default_fp=ti.f64)
        x, y = ti.field(ti.f64, needs_grad=True), ti.field(ti.f64, needs_grad=True)
        rows, columns = 3 * cells[0], 2 * cells[1]
        level = ti.root.pointer(ti.ij, (3, 2)).dense(ti.ij, cells) if sparse else ti.root.dense(ti.ij, (rows, columns))
        level.place(x, y)
        loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def diffuse() -> None:
            for i, j in x:
                if 0 < i < rows - 1 and 0 < j < columns - 1:
                    y[i, j] = x[i, j + 1] * x[i, j - 1] + x[i + 1, j] * ti.sin(x[i - 1, j])

        @ti.kernel
        def measure() -> None:
            for i, j in y:
                loss[None] += y[i, j] ** 2 * (i + 2 * j)

        given = np.random.default_rng(0).random((rows, columns)) + 0.1
        x.from_numpy(given)
        with ti.ad.Tape(loss):
            diffuse()
            measure()
        return [loss[None], x.grad.to_numpy(), y.to_numpy()]

    for found, wanted in zip(run(sparse=True), run(sparse=False), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_row_that_changes_what_it_reads() -> None:
    """One cell after the other, in the order of the loop."""
    x = ti.field(ti.i32)
    ti.root.pointer(ti.i, 4).dense(ti.i, 16).place(x)

    @ti.kernel
    def sweep() -> None:
        ti.loop_config(serialize=True)
        for i in x:
            if i < 63:
                x[i] += 2 * x[i + 1]
            if i > 0:
                x[i] += x[i - 1]

    given = np.arange(1, 65, dtype=np.int32) % 7 + 1
    x.from_numpy(given)
    sweep()
    wanted = given.copy()
    for i in range(64):
        if i < 63:
            wanted[i] += 2 * wanted[i + 1]
        if i > 0:
            wanted[i] += wanted[i - 1]
    np.testing.assert_array_equal(x.to_numpy(), wanted)
