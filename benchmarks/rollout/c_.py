"""The rollout in C, its gradient derived by hand."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.rollout.system import COUNT, STEPS, TIME_STEP, RolloutSystem, initial_angles

__all__ = ["create"]

DOUBLES = ctypes.POINTER(ctypes.c_double)


class CRollout(RolloutSystem):
    """One call of C a run."""

    def __init__(self) -> None:
        self._function = load(Path(__file__).with_name("rollout.c")).rollout
        self._function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_double, DOUBLES, DOUBLES, DOUBLES]
        self._function.restype = None
        self._first, self._gradient = initial_angles(), np.zeros(COUNT)
        self._room = np.zeros((STEPS + 3) * COUNT)

    def run(self, count: int) -> None:
        pointers = [array.ctypes.data_as(DOUBLES) for array in (self._first, self._room, self._gradient)]
        for _ in range(count):
            self._function(COUNT, STEPS, TIME_STEP, *pointers)

    def gradient(self) -> np.ndarray:
        return self._gradient


def create(package: None) -> CRollout:
    """Return the rollout."""
    return CRollout()
