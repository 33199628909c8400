"""Stiff equations, by `ti.integrate.BDF` and by SciPy's program of that method: Robertson's reactions, and fronts."""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.kit.equations import Solution

__all__ = ["create"]

RTOL, ATOL, CELLS = 1e-6, 1e-10, 100
ENDS = {"robertson": 40.0, "fronts": 10.0}


def reactions(_: float, y: NDArray[Any]) -> NDArray[Any]:
    """Robertson's rates, for SciPy."""
    made, used = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.array([-made, made - used, used])


def fronts(_: float, y: NDArray[Any]) -> NDArray[Any]:
    """What diffuses and multiplies, for SciPy."""
    wide = np.concatenate([y[:1], y, y[-1:]])
    return 0.1 * CELLS**2 * (wide[:-2] - 2 * y + wide[2:]) + 20 * y * (1 - y) * (y - 0.2)


class Stiff(Solution):
    """One of the two."""

    def __init__(self, what: str) -> None:
        self.what = what
        line = (np.arange(CELLS) + 0.5) / CELLS
        self.begin = np.array([1.0, 0, 0]) if what == "robertson" else np.exp(-(((line - 0.3) / 0.1) ** 2))
        self.rates = reactions if what == "robertson" else fronts

    def exact(self) -> NDArray[Any]:
        found = solve_ivp(self.rates, (0, ENDS[self.what]), self.begin, "Radau", rtol=1e-11, atol=1e-14)
        return np.asarray(found.y[:, -1])


class Kit(Stiff):
    """Formulas of orders 1 to 5, in one launch."""

    def __init__(self, what: str) -> None:
        import tinote as ti

        super().__init__(what)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        if what == "robertson":
            x, rate = (ti.Vector.field(3, ti.f64, shape=()) for _ in range(2))

            @ti.kernel
            def rates():
                a, b, c = x[None]
                made, used = 0.04 * a - 1e4 * b * c, 3e7 * b * b
                rate[None] = ti.Vector([-made, made - used, used])
        else:
            x, rate = (ti.field(ti.f64, shape=CELLS) for _ in range(2))

            @ti.kernel
            def rates():
                for i in x:
                    y = x[i]
                    bend = x[ti.max(i - 1, 0)] - 2 * y + x[ti.min(i + 1, CELLS - 1)]
                    rate[i] = 0.1 * CELLS**2 * bend + 20 * y * (1 - y) * (y - 0.2)

        self._x = x
        self._ode = ti.integrate.BDF(rates, {x: rate}, band=None if what == "robertson" else (1, 1))

    def end(self) -> NDArray[Any]:
        self._x.from_numpy(self.begin)
        self._ode.solve(0.0, ENDS[self.what], rtol=RTOL, atol=ATOL)
        found: NDArray[Any] = self._x.to_numpy()
        return found


class Library(Stiff):
    """SciPy's program, which is given where a Jacobian has numbers."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        ones = [np.ones(CELLS)] * 3
        has = None if what == "robertson" else scipy.sparse.diags_array(ones, offsets=(-1, 0, 1), shape=(CELLS, CELLS))
        self._solve = partial(solve_ivp, method="BDF", rtol=RTOL, atol=ATOL, jac_sparsity=has)

    def end(self) -> NDArray[Any]:
        return np.asarray(self._solve(self.rates, (0, ENDS[self.what]), self.begin).y[:, -1])


def create(package: str | None, what: str) -> Stiff:
    """Return the equations."""
    return Library(what) if package is None else Kit(what)
