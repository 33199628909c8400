"""The loops in C, and the triad."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.contract import Subject, relative_deviation
from benchmarks.roofline.system import BYTES, FACTOR, OMEGA, SHAPES, beginning, expected

__all__ = ["create"]

FACTORS = {"axpy": FACTOR, "stencil": FACTOR, "boltzmann": OMEGA}


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """Where an array's numbers begin."""
    return ctypes.c_void_p(array.ctypes.data)


class ByHand(Subject):
    """A loop, or the triad over as many bytes."""

    def __init__(self, loop: str, as_triad: int) -> None:
        library = load(Path(__file__).with_name("loops.c"))
        self._loop, self._given = loop, beginning(loop)
        if as_triad:
            n = BYTES[loop] // 12
            self._given = [np.zeros(n, np.float32), np.ones(n, np.float32), np.full(n, 2, np.float32)]
            self._expected = np.full(n, 7.0)
            self._call = library.triad
        else:
            self._expected = expected(loop, self._given)
            self._call = getattr(library, loop)
            if loop == "total":
                self._given[1] = np.zeros(1, np.float32)
        factor = FACTORS.get(loop)
        numbers = [] if as_triad or factor is None else [ctypes.c_float(factor)]
        self._arrays = [array.copy() for array in self._given]
        n = self._arrays[0].size if as_triad else SHAPES[loop][0]
        self._arguments = [*map(pointer, self._arrays), ctypes.c_size_t(n), *numbers]
        self._result = self._arrays[0 if as_triad else -1]

    def run(self, count: int) -> None:
        for _ in range(count):
            self._call(*self._arguments)

    def deviation(self) -> float:
        for array, given in zip(self._arrays, self._given, strict=True):
            array[...] = given
        self.run(1)
        return relative_deviation(self._result, self._expected)


def create(package: None, loop: str, as_triad: int) -> ByHand:
    """Return a loop in C."""
    return ByHand(loop, as_triad)
