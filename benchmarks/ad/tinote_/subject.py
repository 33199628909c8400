"""A workload in one of tinote's styles."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.subject import DerivativeSubject, problem_of
from benchmarks.ad.tinote_.styles import STYLES
from benchmarks.confine import confine

__all__ = ["create"]


class TinoteSubject(DerivativeSubject):
    """Runs the program, or the program with its derivative."""

    def __init__(self, problem: Problem, workload: str, style: str, part: str, threads: int) -> None:
        super().__init__(problem, part)
        ti = importlib.import_module("tinote")
        ti.init(arch=ti.cpu, default_fp=ti.f64, **({"cpu_max_num_threads": threads} if threads else {}))
        made = STYLES[style](ti)
        module = importlib.import_module(f"benchmarks.ad.tinote_.{workload}")
        program = module.build(ti, problem, made)
        self._program = program
        self._combined = getattr(module, "combined", flat)
        if part == "primal":
            self._run = lambda: program.run(*program.wrt)
        else:
            self._run = module.derivative(made, program) if hasattr(module, "derivative") else made.gradient(program)

    def run(self, count: int) -> None:
        run = self._run
        for _ in range(count):
            self._found = run()

    def value(self) -> np.ndarray:
        return self._program.result.to_numpy()

    def derivative(self) -> np.ndarray:
        found = self._found if isinstance(self._found, list | tuple) else [self._found]
        return self._combined([as_numpy(one) for one in found])


def flat(found: list[np.ndarray]) -> np.ndarray:
    """One gradient after the other."""
    return np.concatenate([one.ravel() for one in found])


def as_numpy(found: Any) -> np.ndarray:
    """The contents of a field, an ndarray or an array."""
    return np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)


def create(package: str, workload: str, sizes: str, part: str, style: str, threads: int = 0) -> TinoteSubject:
    """Return the workload; `threads`: the most that it may use (0: all cores)."""
    confine(threads)
    return TinoteSubject(problem_of(workload, sizes), workload, style, part, threads)
