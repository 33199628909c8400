"""What the contenders of these workloads have in common."""

from __future__ import annotations

import importlib
import os
from abc import abstractmethod

import numpy as np

from benchmarks.ad.problems.problem import Problem
from benchmarks.contract import Subject

__all__ = ["DerivativeSubject", "confine", "problem_of"]


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


def confine(threads: int) -> None:
    """Keep this process to `threads` cores (0: all), where the system can: pools that are made later have that size."""
    if threads and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
