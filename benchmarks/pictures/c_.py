"""The Julia set in C, on one thread."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.pictures.system import JULIA_SIZE, TIME, PictureSubject

__all__ = ["create"]

FLOATS = ctypes.POINTER(ctypes.c_float)


class CJulia(PictureSubject):
    """Masked vectors."""

    def __init__(self) -> None:
        super().__init__("julia")
        self._function = load(Path(__file__).with_name("julia.c")).julia
        self._function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_float, FLOATS]
        self._function.restype = None
        self._pixels = np.zeros(JULIA_SIZE, np.float32)

    def run(self, count: int) -> None:
        self._function(count, *JULIA_SIZE, TIME, self._pixels.ctypes.data_as(FLOATS))

    def clear(self) -> None:
        self._pixels.fill(0)

    def result(self) -> np.ndarray:
        return self._pixels


def create(package: None, picture: str) -> CJulia:
    """Return the picture."""
    assert picture == "julia"
    return CJulia()
