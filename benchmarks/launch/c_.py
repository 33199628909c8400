"""Launches in C: the scalar one is called from Python through ctypes; the parallel loop is forked and joined in C."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.c_compiler import load
from benchmarks.launch.system import ARGUMENT, CAPTURED, SIZE, LaunchSystem, initial_values

__all__ = ["create"]

FLOATS = ctypes.POINTER(ctypes.c_float)


class CLaunch(LaunchSystem):
    """The kernels."""

    def __init__(self, kernel: str) -> None:
        super().__init__(kernel)
        library = load(Path(__file__).with_name("launch.c"))
        self._scalar = library.launch_scalar
        self._scalar.argtypes = [ctypes.c_float, FLOATS]
        self._scalar.restype = None
        self._scalars = library.launch_scalars
        self._scalars.argtypes = [ctypes.c_int, ctypes.c_float, FLOATS]
        self._scalars.restype = None
        self._loop = library.launch_loop
        self._loop.argtypes = [ctypes.c_int, ctypes.c_int, FLOATS, FLOATS]
        self._loop.restype = None
        self._x = initial_values()
        self._result = np.zeros(SIZE if kernel == "loop" else 1, dtype=np.float32)

    def run(self, count: int) -> None:
        result = self._result.ctypes.data_as(FLOATS)
        if self.kernel == "loop":
            self._loop(count, SIZE, self._x.ctypes.data_as(FLOATS), result)
            return
        if self.kernel == "captured":
            self._scalars(count * CAPTURED, ARGUMENT, result)
            return
        launch = self._scalar
        for _ in range(count):
            launch(ARGUMENT, result)

    def clear(self) -> None:
        self._result.fill(0)

    def result(self) -> np.ndarray:
        return self._result


def create(package: None, kernel: str) -> CLaunch:
    """Return the launches."""
    return CLaunch(kernel)
