"""Gravity in C: what this machine can do. Both variants loop in C, so no call from Python is in the figure."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.gravity.system import SOFTENING, TIME_STEP, GravitySystem, initial_positions

__all__ = ["create"]

FLOATS = ctypes.POINTER(ctypes.c_float)


class CGravity(GravitySystem):
    """Separate coordinate arrays.

    `variant` is "mechanical" (the double loop, then its adjoint, with a private gradient a thread) or "by_hand" (the
    force on each particle as a sum over the others; no energy).
    """

    def __init__(self, n: int, variant: str) -> None:
        super().__init__(n)
        library = load(Path(__file__).with_name("gravity.c"))
        library.gravity_scratch_floats.argtypes = [ctypes.c_int]
        library.gravity_scratch_floats.restype = ctypes.c_size_t
        self._scratch = np.zeros(library.gravity_scratch_floats(n), dtype=np.float32)
        self._run = library.gravity_mechanical if variant == "mechanical" else library.gravity_by_hand
        self._run.argtypes = [ctypes.c_int, ctypes.c_int, FLOATS, FLOATS, FLOATS, ctypes.c_float, ctypes.c_float]
        self._run.restype = ctypes.c_float
        self.set_positions(initial_positions(n))

    def run(self, count: int) -> None:
        x, v, scratch = (array.ctypes.data_as(FLOATS) for array in (self._x, self._v, self._scratch))
        self._run(count, self.n, x, v, scratch, SOFTENING, TIME_STEP)

    def substep(self) -> None:
        self.run(1)

    def set_positions(self, positions: np.ndarray) -> None:
        self._x = np.ascontiguousarray(positions.T)
        self._v = np.zeros_like(self._x)

    def velocities(self) -> np.ndarray:
        return self._v.T


def create(package: None, n: int, variant: str) -> CGravity:
    """Return the system."""
    return CGravity(n, variant)
