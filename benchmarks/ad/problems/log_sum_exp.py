"""The logarithm of a sum of exponentials, f(x) = m + log Σᵢ exp(xᵢ − m), where m is the largest xᵢ."""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem, log_sum_exp

__all__ = ["LogSumExp"]


class LogSumExp(Problem):
    """Of `n` numbers."""

    wrt = ("x",)

    def __init__(self, n: int) -> None:
        self.inputs = {"x": np.random.default_rng(0).uniform(-1, 1, n)}

    def primal(self, x: np.ndarray) -> np.ndarray:
        return log_sum_exp(x)


create = LogSumExp
