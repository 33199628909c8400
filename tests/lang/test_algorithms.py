"""Sorting and prefix sums of whole fields."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError, FieldError


@pytest.mark.parametrize("dtype", [ti.i32, ti.u8, ti.i64, ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("count", [1, 2, 1000, 4097])
def test_sorting(dtype: Any, count: int) -> None:
    keys, values = ti.field(dtype, shape=count), ti.Vector.field(2, ti.i32, shape=count)
    numbers = np.random.default_rng(count).integers(0, 100, count).astype(keys.to_numpy().dtype)
    pairs = np.stack([np.arange(count), -np.arange(count)], axis=1).astype(np.int32)
    keys.from_numpy(numbers)
    values.from_numpy(pairs)
    ti.algorithms.parallel_sort(keys, values)
    order = np.argsort(numbers, kind="stable")
    np.testing.assert_array_equal(keys.to_numpy(), numbers[order])
    np.testing.assert_array_equal(values.to_numpy(), pairs[order])
    keys.from_numpy(numbers)
    ti.algorithms.parallel_sort(keys)
    np.testing.assert_array_equal(keys.to_numpy(), np.sort(numbers))


def test_kernels_see_the_order() -> None:
    keys = ti.field(ti.i32, shape=5)
    keys.from_numpy([3, 1, 2, 5, 4])

    @ti.kernel
    def ascending() -> ti.i32:
        found = 1
        for i in range(4):
            if keys[i] > keys[i + 1]:
                found = 0
        return found

    assert ascending() == 0
    ti.algorithms.parallel_sort(keys)
    assert ascending() == 1


def test_prefix_sums() -> None:
    x = ti.field(ti.i32, shape=1000)
    numbers = np.random.default_rng(1).integers(-5, 5, 1000)
    x.from_numpy(numbers.astype(np.int32))
    sums = ti.algorithms.PrefixSumExecutor(1000)
    sums.run(x)
    np.testing.assert_array_equal(x.to_numpy(), np.cumsum(numbers))
    x.fill(2**31 - 1)
    sums.run(x)
    assert x[1] == -2  # wraps like a kernel's addition


def test_what_cannot_be_sorted_or_summed() -> None:
    line, grid, floats = ti.field(ti.i32, shape=4), ti.field(ti.i32, shape=(2, 2)), ti.field(ti.f32, shape=4)
    for wrong in (
        lambda: ti.algorithms.parallel_sort(grid),
        lambda: ti.algorithms.parallel_sort([3, 1]),
        lambda: ti.algorithms.parallel_sort(line, ti.field(ti.i32, shape=5)),
        lambda: ti.algorithms.PrefixSumExecutor(0),
        lambda: ti.algorithms.PrefixSumExecutor(3).run(line),
        lambda: ti.algorithms.PrefixSumExecutor(4).run(floats),
    ):
        with pytest.raises(FieldError):
            wrong()


@pytest.mark.parametrize("kind", [ti.field, ti.ndarray])
def test_sorting_under_a_tape_is_refused_and_its_hint_helps(kind: Any) -> None:
    ti.init(default_fp=ti.f64)
    x = kind(ti.f64, 3, needs_grad=True)
    copy, order = ti.field(ti.f64, 3), ti.field(ti.i32, 3)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([3.0, 1.0, 2.0]))
    order.from_numpy(np.arange(3, dtype=np.int32))

    @ti.kernel
    def weigh(x: ti.types.ndarray()):
        for i in order:
            loss[None] += (i + 1) * x[order[i]]

    with pytest.raises(DifferentiationError, match="sorting is not differentiated"), ti.ad.Tape(loss):
        ti.algorithms.parallel_sort(x)
    # The order in which they come is no part of the derivative.
    with pytest.warns(UserWarning, match="its derivative is lost"), ti.ad.Tape(loss):
        copy.from_numpy(x.to_numpy())
        ti.algorithms.parallel_sort(copy, order)
        weigh(x)
    assert loss[None] == 14
    assert x.grad.to_numpy().tolist() == [3, 1, 2]
    ti.algorithms.parallel_sort(x)
    assert x.to_numpy().tolist() == [1, 2, 3]
