"""Calls of compiled functions in Numba."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.launch.system import ARGUMENT, SIZE, LaunchSystem, initial_values

__all__ = ["create"]


class NumbaLaunch(LaunchSystem):
    """A function that stores its argument, and a parallel loop."""

    def __init__(self, kernel: str) -> None:
        super().__init__(kernel)

        @numba.njit
        def scalar(value, s):
            s[0] = value

        @numba.njit(parallel=True)
        def loop(x, y):
            for i in numba.prange(x.shape[0]):
                y[i] = np.float32(2) * x[i] + np.float32(1)

        single = kernel != "loop"
        self._function = scalar if single else loop
        self._input = ARGUMENT if single else initial_values()
        self._result = np.zeros(1 if single else SIZE, dtype=np.float32)

    def run(self, count: int) -> None:
        function, argument, result = self._function, self._input, self._result
        for _ in range(count):
            function(argument, result)

    def clear(self) -> None:
        self._result.fill(0)

    def result(self) -> np.ndarray:
        return self._result


def create(package: str, kernel: str) -> NumbaLaunch:
    """Return the launches."""
    return NumbaLaunch(kernel)
