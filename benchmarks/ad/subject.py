"""What the contenders of these workloads have in common."""

from __future__ import annotations

import importlib
from abc import abstractmethod

import numpy as np

from benchmarks.ad.problems.problem import Problem
from benchmarks.contract import Subject

__all__ = ["DerivativeSubject", "problem_of"]


class DerivativeSubject(Subject):
    """One workload in one system; `part` says whether a run is the program alone ("primal") or with its derivative."""

    def __init__(self, problem: Problem, part: str) -> None:
        self.problem = problem
        self.part = part

    @abstractmethod
    def value(self) -> np.ndarray:
        """Return what the last run computed."""

    @abstractmethod
    def derivative(self) -> np.ndarray:
        """Return the derivative of the last run, which had one, in the shape that the problem says."""

    def deviation(self) -> float:
        self.run(1)
        return self.problem.deviation(self.value(), None if self.part == "primal" else self.derivative())


def problem_of(workload: str, sizes: str) -> Problem:
    """Return the problem of a workload; `sizes`: its numbers, separated by commas."""
    module = importlib.import_module(f"benchmarks.ad.problems.{workload}")
    return module.create(*map(int, sizes.split(",")))
