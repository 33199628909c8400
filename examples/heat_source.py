"""Where a plate is heated, found from its steady temperature.

    python examples/heat_source.py

The temperature of a plate whose edges are kept at zero fulfils a linear equation, whose matrix a kernel fills and which
is factorised once. The sum of squared differences from what thermometers show is differentiated through the solution by
the source in every cell: one more solve, with the transpose. A penalty on the source keeps the noise out of it.

Method: Tikhonov regularisation; Vogel, "Computational Methods for Inverse Problems", SIAM, 2002, chapter 1.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

import tinote as ti

__all__ = ["recover"]


def recover(size: int = 24, noise: float = 0.002, penalty: float = 1e-9, seed: int = 0) -> tuple[Any, Any]:
    """The true source and the one that was found, in watts per cell, of `size` by `size` cells."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    source = ti.field(ti.f64, (size, size), needs_grad=True)
    temperature = ti.field(ti.f64, (size, size), needs_grad=True)
    shown = ti.field(ti.f64, (size, size))
    misfit = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder()):
        for i, j in source:
            k = i * size + j
            conductivity = 1.0 + 2.0 * (j >= size // 2)  # the right half conducts better
            A[k, k] += 4.0 * conductivity
            if i > 0:
                A[k, k - size] -= conductivity
            if i < size - 1:
                A[k, k + size] -= conductivity
            if j > 0:
                A[k, k - 1] -= conductivity
            if j < size - 1:
                A[k, k + 1] -= conductivity

    @ti.kernel
    def compare():
        for i, j in source:
            misfit[None] += (temperature[i, j] - shown[i, j]) ** 2 + penalty * source[i, j] ** 2

    builder = ti.linalg.SparseMatrixBuilder(size * size, max_num_triplets=5 * size * size, dtype=ti.f64)
    fill(builder)
    solver = ti.linalg.SparseSolver(ti.f64, "LU")
    solver.compute(builder.build())

    def measure() -> None:
        solver.solve(source, out=temperature)
        compare()

    rows, columns = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    truth = np.exp(-((rows - 0.3 * size) ** 2 + (columns - 0.6 * size) ** 2) / (0.02 * size * size))
    source.from_numpy(truth)
    solver.solve(source, out=shown)
    shown.from_numpy(shown.to_numpy() + noise * np.random.default_rng(seed).standard_normal((size, size)))
    numbers = itertools.count(1)
    slope = ti.ad.value_and_grad(measure, wrt=source, output=misfit)

    def both(values: Any) -> tuple[float, Any]:
        source.from_numpy(values.reshape(size, size))
        value, gradient = slope()
        bar.update()
        if bar.disable and not (number := next(numbers)) % 25:  # no terminal, so no bar
            print(f"gradient {number}: misfit {value:.4g}", flush=True)
        return value, gradient.ravel()

    options = {"maxiter": 400, "ftol": 1e-14}
    with tqdm(desc="gradients", disable=None, leave=False) as bar:
        found = minimize(both, np.zeros(size * size), jac=True, method="L-BFGS-B", options=options)
    return truth, found.x.reshape(size, size)


if __name__ == "__main__":
    print("looking for the source (about 5 s) …", flush=True)
    truth, found = recover()
    error = np.linalg.norm(found - truth) / np.linalg.norm(truth)
    row, column = np.unravel_index(found.argmax(), found.shape)
    print(f"the source is found up to {100 * error:.1f} per cent; its peak is in row {row}, column {column}")
