"""What contenders have in common, and the results by NumPy: inner gradients by hand, outer ones by complex steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["CONTROLS", "INNER", "OUTER", "RATES", "START", "Nested", "expected"]

INNER = OUTER = 10
"""Steps of each descent."""

RATES = {"saddle": (0.1, 0.1), "particle": (0.05, 0.5)}
"""Of the outer descent and of the inner one."""

START = {"saddle": np.array([1.0, -0.7]), "particle": np.array([0.8])}

CONTROLS = 8
"""Steps of the particle, each with a control."""


def _height(p: Any, q: Any) -> Any:
    return (p * p).sum() + (p * q).sum() - (q * q).sum() + 0.1 * np.sin(p[0] * q[1])


def _saddle(p: Any) -> Any:
    q = np.zeros(2, p.dtype)
    for _ in range(INNER):
        slope = p - 2 * q
        slope[1] += 0.1 * np.cos(p[0] * q[1]) * p[0]
        q = q + RATES["saddle"][1] * slope
    return _height(p, q)


def _particle(target: Any) -> Any:
    u = np.zeros(CONTROLS, target.dtype)
    for step in range(INNER + 1):
        x = v = np.zeros((), target.dtype)
        path = []
        for control in u:
            path.append(x)
            v = v + 0.2 * (control - 0.3 * np.sin(x))
            x = x + 0.2 * v
        if step == INNER:
            break
        by_x, by_v, slope = 2 * (x - target[0]), 0.0, 0.02 * u
        for t in reversed(range(CONTROLS)):
            by_v = by_v + 0.2 * by_x
            slope[t] += 0.2 * by_v
            by_x = by_x - 0.06 * np.cos(path[t]) * by_v
        u = u - RATES["particle"][1] * slope
    return (0.01 * u * u).sum() + (x - target[0]) ** 2 + 0.1 * (target[0] - 2.0) ** 2


def expected(problem: str) -> np.ndarray:
    """Return where the outer descent comes to."""
    objective: Callable[[Any], Any] = {"saddle": _saddle, "particle": _particle}[problem]
    found = START[problem].copy()
    for _ in range(OUTER):
        shifted = found + 1e-30j * np.eye(found.size)
        slope = np.array([objective(one).imag for one in shifted]) / 1e-30
        found -= RATES[problem][0] * slope
    return found


class Nested(Subject):
    """One problem, with modes of both derivatives."""

    def __init__(self, problem: str, outer: str, inner: str) -> None:
        self.problem = problem
        self.outer = outer
        self.inner = inner

    def deviation(self) -> float:
        self.run(1)
        return relative_deviation(self.result(), expected(self.problem))

    @abstractmethod
    def result(self) -> np.ndarray:
        """Return where the last descent came to."""
