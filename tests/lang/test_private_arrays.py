"""Threads that scatter into a small array add to copies of their own; the length of the array decides at launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti

SIZES = (1, 3, 100, 8191, 8192, 8193, 20_000)
UPDATES = 50_000


@pytest.fixture(autouse=True)
def threads() -> None:
    ti.init(arch=ti.cpu, num_threads=3, default_fp=ti.f64)


@pytest.mark.parametrize("dtype", [ti.i32, ti.f64])
def test_a_histogram_of_any_size(dtype: Any) -> None:
    @ti.kernel
    def histogram(labels: ti.types.ndarray(), counts: ti.types.ndarray()):
        for i in labels:
            counts[labels[i]] += 1

    for size in SIZES:
        labels = np.random.default_rng(size).integers(0, size, UPDATES).astype(np.int32)
        counts = ti.ndarray(dtype, size)
        counts.fill(2)
        histogram(labels, counts)
        np.testing.assert_array_equal(counts.to_numpy(), np.bincount(labels, minlength=size) + 2)


def test_rows_and_vectors() -> None:
    @ti.kernel
    def scatter(labels: ti.types.ndarray(), sums: ti.types.ndarray(dtype=ti.math.vec2), least: ti.types.ndarray()):
        for i in labels:
            for j in range(least.shape[1]):
                sums[labels[i], j] += ti.Vector([1.0, j])
                ti.atomic_min(least[labels[i], j], i - j)

    for rows in (1, 50, 2000):
        labels = np.random.default_rng(rows).integers(0, rows, UPDATES).astype(np.int32)
        sums, least = ti.Vector.ndarray(2, ti.f64, (rows, 3)), np.full((rows, 3), 1 << 30, np.int32)
        scatter(labels, sums, least)
        counts = np.bincount(labels, minlength=rows)
        expected = counts[:, None, None] * np.array([[1, j] for j in range(3)])
        np.testing.assert_array_equal(sums.to_numpy(), expected)
        first = np.full(rows, 1 << 30)
        np.minimum.at(first, labels, np.arange(UPDATES))
        np.testing.assert_array_equal(
            least, np.where(first[:, None] == 1 << 30, 1 << 30, first[:, None] - np.arange(3))
        )


def test_a_gradient_of_shared_parameters() -> None:
    @ti.kernel
    def fit(x: ti.types.ndarray(), a: ti.types.ndarray(), loss: ti.template()):
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(x.shape[0]):
                s += a[i, j] * x[j]
            loss[None] += s * s

    loss = ti.field(ti.f64, (), needs_grad=True)
    rows = np.random.default_rng(0).normal(size=(3000, 17))
    x = ti.ndarray(ti.f64, 17, needs_grad=True)
    x.from_numpy(np.linspace(-1, 1, 17))
    with ti.ad.Tape(loss):
        fit(x, rows, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * rows.T @ (rows @ np.linspace(-1, 1, 17)), rtol=1e-10)


def test_the_table_of_tasks_tells_the_copies() -> None:
    @ti.kernel
    def histogram(labels: ti.types.ndarray(), counts: ti.types.ndarray()):
        for i in labels:
            counts[labels[i]] += 1

    histogram(np.zeros(10, np.int32), np.zeros(4, np.int32))
    tasks = histogram.tasks()
    assert [(copy.target, copy.nbytes) for task in tasks for copy in task.privates] == [("counts", None)]
    assert [len(task.atomics) for task in tasks if task.parallel] == [0, 1]
    assert "counts, its size per thread" in str(tasks)
