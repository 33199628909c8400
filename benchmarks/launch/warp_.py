"""Launches in Warp, of kernels as `wp.launch` takes them."""

from __future__ import annotations

import numpy as np
import warp as wp

from benchmarks.launch.system import ARGUMENT, SIZE, LaunchSystem, initial_values

__all__ = ["create"]


class WarpLaunch(LaunchSystem):
    """Both kernels."""

    def __init__(self, kernel: str) -> None:
        super().__init__(kernel)

        @wp.kernel
        def scalar(value: float, s: wp.array(dtype=float)):  # pyright: ignore
            s[0] = value

        @wp.kernel
        def loop(x: wp.array(dtype=float), y: wp.array(dtype=float)):  # pyright: ignore
            i = wp.tid()
            y[i] = 2.0 * x[i] + 1.0

        single = kernel != "loop"
        self._kernel = scalar if single else loop
        self._dim = 1 if single else SIZE
        self._result = wp.zeros(self._dim, dtype=float, device="cpu")
        self._input = ARGUMENT if single else wp.array(initial_values(), dtype=float, device="cpu")

    def run(self, count: int) -> None:
        for _ in range(count):
            wp.launch(self._kernel, dim=self._dim, inputs=[self._input, self._result], device="cpu")

    def clear(self) -> None:
        self._result.zero_()

    def result(self) -> np.ndarray:
        return self._result.numpy()


def create(package: str, kernel: str) -> WarpLaunch:
    """Return the launches."""
    return WarpLaunch(kernel)
