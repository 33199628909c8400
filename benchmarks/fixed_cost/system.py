"""What every contender has in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["FixedCost", "initial_values", "vector"]

SIZE = 16


def initial_values() -> np.ndarray:
    """Return x, f64."""
    return np.linspace(0.25, 2, SIZE)


def vector() -> np.ndarray:
    """Return what the Hessian is multiplied by."""
    return np.linspace(-1, 1, SIZE)


class FixedCost(Subject):
    """One derivative, `tape`, `ndarray`, `numpy` or `hvp`."""

    def __init__(self, derivative: str) -> None:
        self.derivative = derivative

    def deviation(self) -> float:
        self.run(1)
        x = initial_values()
        expected = {"tape": 2 * x, "hvp": 6 * x * vector()}.get(self.derivative, 3 * x**2)
        return relative_deviation(self.result(), expected)

    @abstractmethod
    def result(self) -> np.ndarray:
        """Return what the last run found."""
