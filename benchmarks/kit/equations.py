"""Lorenz's equations from many beginnings, with step control, by `ti.integrate`, Diffrax and SciPy's `solve_ivp`."""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

END, RTOL, ATOL = 1.0, 1e-6, 1e-8


def rates(_: float, y: NDArray[Any]) -> NDArray[Any]:
    """For SciPy: all of the first numbers, then all of the second and of the third."""
    a, b, c = y.reshape(3, -1)
    return np.concatenate([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])


class Solution(Subject):
    """A run goes from the beginning to the end of an equation."""

    def end(self) -> NDArray[Any]:
        """Integrate."""
        raise NotImplementedError

    def exact(self) -> NDArray[Any]:
        """What `end` gives, but for errors of the steps."""
        raise NotImplementedError

    def run(self, count: int) -> None:
        for _ in range(count):
            self.end()

    def deviation(self) -> float:
        return relative_deviation(self.end(), self.exact())


class Equations(Solution):
    """Lorenz's."""

    def __init__(self, n: int) -> None:
        self.begin = 1 + np.random.default_rng(0).random((n, 3))

    def exact(self) -> NDArray[Any]:
        found = solve_ivp(rates, (0, END), self.begin.T.ravel(), rtol=1e-11, atol=1e-11, method="DOP853")
        return np.asarray(found.y[:, -1].reshape(3, -1).T)


class Kit(Equations):
    """Dormand and Prince's method, in a field of vectors."""

    def __init__(self, n: int) -> None:
        import tinote as ti

        super().__init__(n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._x, rate = (ti.Vector.field(3, ti.f64, shape=n) for _ in range(2))
        x = self._x

        @ti.kernel
        def lorenz():
            for i in x:
                p = x[i]
                rate[i] = ti.Vector([10 * (p.y - p.x), p.x * (28 - p.z) - p.y, p.x * p.y - 8 / 3 * p.z])

        self._ode = ti.integrate.RungeKutta(lorenz, {x: rate}, "dopri5")

    def end(self) -> NDArray[Any]:
        self._x.from_numpy(self.begin)
        self._ode.solve(0.0, END, rtol=RTOL, atol=ATOL)
        found: NDArray[Any] = self._x.to_numpy()
        return found


class Library(Equations):
    """SciPy's program of the same method, which takes the same steps."""

    def end(self) -> NDArray[Any]:
        found = solve_ivp(rates, (0, END), self.begin.T.ravel(), rtol=RTOL, atol=ATOL, method="RK45")
        return np.asarray(found.y[:, -1].reshape(3, -1).T)


class Jitted(Equations):
    """Diffrax's program of the same method, compiled once."""

    def __init__(self, n: int) -> None:
        import diffrax
        import jax
        import jax.numpy as jnp

        super().__init__(n)
        jax.config.update("jax_enable_x64", True)

        def lorenz(_: Any, y: Any, __: Any) -> Any:
            a, b, c = y[:, 0], y[:, 1], y[:, 2]
            return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], 1)

        control = diffrax.PIDController(rtol=RTOL, atol=ATOL)
        solve = partial(diffrax.diffeqsolve, diffrax.ODETerm(lorenz), diffrax.Dopri5(), 0.0, END, None)
        self._end = jax.jit(lambda y: solve(y, stepsize_controller=control, max_steps=4096).ys[-1])

    def end(self) -> NDArray[Any]:
        return np.asarray(self._end(self.begin))


def create(package: str | None, n: int) -> Equations:
    """Return the equations."""
    return {None: Library, "tinote": Kit, "diffrax": Jitted}[package](n)
