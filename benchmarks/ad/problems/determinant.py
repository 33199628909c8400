"""The determinant of a matrix by expansion along its rows: minors of minors, n! products."""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["Determinant"]


class Determinant(Problem):
    """Of an n × n matrix."""

    wrt = ("a",)

    def __init__(self, n: int) -> None:
        self.inputs = {"a": np.random.default_rng(0).uniform(-1, 1, (n, n))}

    def primal(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.det(a))


create = Determinant
