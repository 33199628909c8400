"""The workloads in C, a function each. A run is a call from Python, which is in the figure."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.ad.problems.hand import BONES, PARAMETERS
from benchmarks.ad.problems.lstm import BITS
from benchmarks.ad.problems.ode import STEPS
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.subject import DerivativeSubject, problem_of
from benchmarks.c_compiler import load
from benchmarks.confine import confine

__all__ = ["create"]

LANES = 8

Sizes = Callable[[Problem], tuple[tuple[int, ...], int, tuple[int, ...]]]
"""The sizes that the C function takes, the numbers of room that it needs, the shape of the derivative."""


class CSubject(DerivativeSubject):
    """One workload."""

    def __init__(self, problem: Problem, workload: str, part: str) -> None:
        super().__init__(problem, part)
        names = [*problem.wrt, *(name for name in problem.inputs if name not in problem.wrt)]
        self._arrays = [np.ascontiguousarray(problem.inputs[name]) for name in names]
        sizes, room, shape = SIZES[workload](problem)
        self._value = np.zeros(np.shape(problem.primal(**problem.inputs)))
        self._derivative = np.zeros(shape)
        self._room = np.zeros(max(room, 1))
        self._sizes = np.array(sizes, np.int64)
        function = load(Path(__file__).with_name("ad.c"))[workload]
        function.restype = None
        arguments = (
            addresses([one for one in self._arrays if one.dtype == float]),
            addresses([one for one in self._arrays if one.dtype != float]),
            ctypes.c_void_p(self._sizes.ctypes.data),
            ctypes.c_void_p(self._value.ctypes.data),
            None if part == "primal" else ctypes.c_void_p(self._derivative.ctypes.data),
            ctypes.c_void_p(self._room.ctypes.data),
        )
        self._call = lambda: function(*arguments)

    def run(self, count: int) -> None:
        for _ in range(count):
            self._call()

    def value(self) -> np.ndarray:
        return self._value

    def derivative(self) -> np.ndarray:
        return self._derivative


def addresses(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    """The addresses of arrays, as C wants them."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*(one.ctypes.data for one in arrays))


def flat(problem: Problem) -> tuple[int, ...]:
    """The shape of the gradient of a number."""
    return (sum(problem.inputs[name].size for name in problem.wrt),)


def gaussian_mixture(problem: Problem) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    (n, d), k = problem.inputs["x"].shape, len(problem.inputs["alphas"])
    return (n, d, k), (n + LANES) * k + k * d, flat(problem)


def lstm(problem: Problem) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    length, layers = len(problem.inputs["text"]), len(problem.inputs["weights"])
    return (layers, length), length * (layers * 8 * BITS + BITS + 1), flat(problem)


def kmeans(problem: Problem) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    (k, d), n = problem.inputs["centroids"].shape, len(problem.inputs["points"])
    return (n, k, d), 0, (2, k * d)


def hand(problem: Problem) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    vertices, measured = len(problem.inputs["rest"]), len(problem.inputs["points"])
    assert problem.inputs["relative"].shape[0] == BONES
    return (vertices, measured), 3 * vertices * (1 + PARAMETERS), (measured, 3, PARAMETERS)


SIZES: dict[str, Sizes] = {
    "least_squares": lambda p: ((len(p.inputs["t"]), len(p.inputs["x"])), 0, flat(p)),
    "log_sum_exp": lambda p: ((len(p.inputs["x"]),), 0, flat(p)),
    "ode": lambda p: ((len(p.inputs["x"]), STEPS), (STEPS + 11) * len(p.inputs["x"]), flat(p)),
    "kmeans": kmeans,
    "gaussian_mixture": gaussian_mixture,
    "determinant": lambda p: ((len(p.inputs["a"]),), 0, flat(p)),
    "lstm": lstm,
    "bundle": lambda p: ((len(p.inputs["weights"]),), 0, (len(p.inputs["weights"]), 2, 15)),
    "hand": hand,
}


def create(package: None, workload: str, sizes: str, part: str, threads: int = 0) -> CSubject:
    """Return the workload, which needs one thread."""
    confine(threads)
    return CSubject(problem_of(workload, sizes), workload, part)
