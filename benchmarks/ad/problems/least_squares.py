"""A polynomial with 128 coefficients fitted to the sign function: f(x) = ½ Σᵢ (Σⱼ xⱼ tᵢʲ − sign tᵢ)²."""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["LeastSquares"]

COLUMNS = 128


class LeastSquares(Problem):
    """`n` points tᵢ, evenly from −1 to 1."""

    wrt = ("x",)

    def __init__(self, n: int) -> None:
        t = np.linspace(-1, 1, n)
        self.inputs = {"x": np.random.default_rng(0).standard_normal(COLUMNS), "t": t, "target": np.sign(t)}

    def primal(self, x: np.ndarray, t: np.ndarray, target: np.ndarray) -> np.ndarray:
        return 0.5 * ((np.vander(t, COLUMNS, increasing=True) @ x - target) ** 2).sum()


create = LeastSquares
