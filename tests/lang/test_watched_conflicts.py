"""In debug mode a launch warns, once for each loop, where iterations of a parallel loop have met in an element."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti

N = 40


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(debug=True, offline_cache=False, opt_level=1, num_threads=2)


def warned_of(run: Callable[..., Any], *args: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(*args)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def test_what_an_iteration_reads_another_has_written() -> None:
    x, k = ti.field(ti.f32, N), ti.field(ti.i32, N)
    x.from_numpy(np.arange(N, dtype=np.float32))

    @ti.kernel
    def pull():
        for i in range(2, N):
            x[i] = x[k[i]] + 1

    k.from_numpy(np.arange(N, dtype=np.int32))  # each its own
    assert warned_of(pull) == []
    k[9] = 5
    assert warned_of(pull) == [
        "iterations 5 and 9 of the parallel loop meet in 'x[5]': the first writes what the second reads, and "
        "iterations have no order"
    ]
    assert warned_of(pull) == []  # once


def test_what_an_iteration_writes_another_has_read() -> None:
    x, k = ti.field(ti.f32, N), ti.field(ti.i32, N)
    k.from_numpy(np.arange(N, dtype=np.int32))
    k[5] = 9

    @ti.kernel
    def pull():
        for i in x:
            x[i] = x[k[i]] + 1

    (text,) = warned_of(pull)
    assert text.startswith("iterations 5 and 9 of the parallel loop meet in 'x[9]': the first reads what the second ch")


def test_two_values_for_one_element() -> None:
    v, k = ti.Vector.field(2, ti.i32, (3, 4)), ti.field(ti.i32, (3, 4))
    k.fill(1)

    @ti.kernel
    def scatter():
        for i, j in k:
            v[i, k[i, j]][1] = j + 1

    (text,) = warned_of(scatter)
    assert text.startswith("iterations 0 and 1 of the parallel loop meet in 'v[0, 1][1]': the first writes what")


def test_an_element_of_no_dimension_and_an_update() -> None:
    x, s, y = ti.field(ti.f32, N), ti.field(ti.f32, ()), ti.field(ti.f32, N)

    @ti.kernel
    def run():
        for i in x:
            s[None] += 1
            y[i] = s[None]

    (text,) = warned_of(run)
    assert text.startswith("iterations 0 and 1 of the parallel loop meet in 's[None]': the first reads what the second")


def test_equal_stores_and_updates_are_no_conflict() -> None:
    x, seen, h = ti.field(ti.i32, N), ti.field(ti.i32, 4), ti.field(ti.i32, 4)

    @ti.kernel
    def run():
        for i in x:
            seen[i % 4] = i // N + 1
            h[i % 3] = h[i % 3] + i
            h[i % 3] += 1

    assert warned_of(run) == []


def test_values_are_those_of_one_thread() -> None:
    x, k = ti.field(ti.f32, N), ti.field(ti.i32, N)
    k.fill(3)

    @ti.kernel
    def run():
        for i in x:
            x[i] = x[k[i]] + i

    warned_of(run)
    expected = np.zeros(N, np.float32)
    for i in range(N):
        expected[i] = expected[3] + i
    np.testing.assert_array_equal(x.to_numpy(), expected)


def test_two_loops_warn_once_each() -> None:
    h, x = ti.field(ti.i32, 1), ti.field(ti.i32, N)

    @ti.kernel
    def run():
        for i in x:
            h[x[i]] = i
            x[h[0] * 0 + i] = 0
        for i in x:
            h[x[i]] = i + 1

    assert len(warned_of(run)) == 2
    assert warned_of(run) == []


def test_a_loop_says_which_memory_is_not_watched() -> None:
    small, large, k = ti.field(ti.f32, N), ti.field(ti.f32, 300_000), ti.field(ti.i32, N)

    @ti.kernel
    def run(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in range(N):
            small[i] = small[k[i]] + 1
        for i in range(N):
            large[i] = large[k[i]] + 1
        for i in range(N):
            a[i] = a[k[i]] + 1

    k.from_numpy(np.arange(N, dtype=np.int32))
    run(np.zeros(N, np.float32))
    said = str(run.loops())
    assert "debug mode does not watch `large`" in said and "debug mode does not watch `a`" in said
    assert "not watch `small`" not in said
