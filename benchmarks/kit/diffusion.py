"""Diffusion on a plane, by `ti.multigrid`, pyamg, and SciPy's factors; without boundaries also by `ti.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from benchmarks.contract import Subject, relative_deviation

__all__ = ["RESIDUAL", "create"]

RESIDUAL = 1e-8
"""The norm of the residual at which iterations end, over that of the source."""


def coefficient(n: int, kind: str) -> NDArray[Any]:
    """1, or discs that conduct a hundred times better."""
    found = np.ones((n, n))
    if kind == "discs":
        rng, (x, y) = np.random.default_rng(1), (np.indices((n, n)) + 0.5) / n
        for a, b, r in rng.random((20, 3)):
            found[(x - a) ** 2 + (y - b) ** 2 < (0.02 + 0.06 * r) ** 2] = 100.0
    return found


def matrix(k: NDArray[Any], is_periodic: bool) -> Any:
    """That of the differences, with 0 at the boundary, or in a box without one."""
    n = len(k)
    places, found = np.arange(n * n).reshape(n, n), scipy.sparse.csr_array((n * n, n * n))
    for axis in range(2):
        one, other = places, np.roll(places, -1, axis)
        link = n**2 * 2 / (1 / k + 1 / np.roll(k, -1, axis))
        if not is_periodic:
            one, other, link = (np.delete(part, n - 1, axis) for part in (one, other, link))
            for end in (0, n - 1):
                at = np.take(places, end, axis)
                held = (2 * n**2 * np.take(k, end, axis), (at, at))
                found += scipy.sparse.coo_array(held, shape=found.shape)
        rows, columns, values = (part.ravel() for part in (one, other, link))
        for i, j, sign in ((rows, rows, 1), (columns, columns, 1), (rows, columns, -1), (columns, rows, -1)):
            found += scipy.sparse.coo_array((sign * values, (i, j)), shape=found.shape)
    return found.tocsr()


class Solver(Subject):
    """A run solves for one source, from 0."""

    def __init__(self, n: int, kind: str) -> None:
        self.k = coefficient(n, kind)
        self.source = np.random.default_rng(0).normal(size=(n, n))
        self.source -= self.source.mean()
        self.is_periodic = kind == "periodic"

    def solution(self) -> NDArray[Any]:
        """Solve."""
        raise NotImplementedError

    def deviation(self) -> float:
        found = np.asarray(self.solution(), float).ravel()
        return relative_deviation(matrix(self.k, self.is_periodic) @ found, self.source.ravel())


class Kit(Solver):
    """`ti.multigrid.Diffusion`, whose set-up is a part of each run where k is a field; or `ti.fft.Poisson`."""

    def __init__(self, n: int, kind: str, method: str) -> None:
        import tinote as ti

        super().__init__(n, kind)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        f, self._u, k = (ti.field(ti.f64, shape=(n, n)) for _ in range(3))
        f.from_numpy(self.source)
        k.from_numpy(self.k)
        if method == "transforms":
            f.from_numpy(-self.source)
            self._solve = ti.capture(ti.fft.Poisson(f, self._u, scheme="differences").solve)
        else:
            boundary = "periodic" if self.is_periodic else "dirichlet"
            equation = ti.multigrid.Diffusion(f, self._u, k if kind == "discs" else 1.0, boundary=boundary)
            self._solve = lambda: equation.solve(rtol=RESIDUAL)

    def run(self, count: int) -> None:
        for _ in range(count):
            self._u.fill(0.0)
            self._solve()

    def solution(self) -> NDArray[Any]:
        self.run(1)
        found: NDArray[Any] = self._u.to_numpy()
        return found


class Library(Solver):
    """Algebraic multigrid with conjugate gradients, or a factorisation; `with_set_up`: in each run."""

    def __init__(self, n: int, kind: str, method: str, with_set_up: int) -> None:
        super().__init__(n, kind)
        self._method, self._with_set_up = method, with_set_up
        self._matrix = matrix(self.k, self.is_periodic)
        self._made = self._set_up()

    def _set_up(self) -> Any:
        if self._method == "factors":
            return scipy.sparse.linalg.splu(self._matrix.tocsc())
        import pyamg

        makers = {"classical": pyamg.ruge_stuben_solver, "aggregation": pyamg.smoothed_aggregation_solver}
        return makers[self._method](self._matrix)

    def run(self, count: int) -> None:
        for _ in range(count):
            self.solution()

    def solution(self) -> NDArray[Any]:
        made = self._set_up() if self._with_set_up else self._made
        if self._method == "factors":
            return np.asarray(made.solve(self.source.ravel()))
        return np.asarray(made.solve(self.source.ravel(), tol=RESIDUAL, accel="cg"))


def create(package: str | None, n: int, kind: str, method: str, with_set_up: int = 0) -> Solver:
    """Return the solver."""
    return Kit(n, kind, method) if package == "tinote" else Library(n, kind, method, with_set_up)
