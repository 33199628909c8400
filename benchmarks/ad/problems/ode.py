"""Runge–Kutta steps of a chain of equations, y₀' = x₀ and yᵢ' = xᵢ yᵢ₋₁, from 0 to t = 2; the result is the last y."""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["STEPS", "TIME", "RungeKutta"]

STEPS = 100
TIME = 2.0


class RungeKutta(Problem):
    """A chain of `n` equations, and the sum of all y at the end, so that every x counts.

    With the last y alone, the derivative of a chain longer than four times the number of steps is zero.
    """

    wrt = ("x",)

    def __init__(self, n: int) -> None:
        self.inputs = {"x": np.random.default_rng(0).uniform(0.5, 1.5, n)}

    def primal(self, x: np.ndarray) -> np.ndarray:
        def slope(y: np.ndarray) -> np.ndarray:
            return x * np.concatenate([np.ones(1), y[:-1]])

        y = np.zeros_like(x)
        h = TIME / STEPS
        for _ in range(STEPS):
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y.sum()


create = RungeKutta
