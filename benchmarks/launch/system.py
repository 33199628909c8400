"""What every launch contender has in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["ARGUMENT", "CAPTURED", "SIZE", "LaunchSystem", "initial_values"]

SIZE = 1024

ARGUMENT = 3.25

CAPTURED = 100


def initial_values() -> np.ndarray:
    """Return x of the loop, f32."""
    return np.linspace(-1, 1, SIZE, dtype=np.float32)


class LaunchSystem(Subject):
    """A kernel, `scalar`, `template`, `array` or `loop`, ready to be launched; or `captured`, a step that launches
    `scalar` `CAPTURED` times.
    """

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.parts = CAPTURED if kernel == "captured" else 1

    def deviation(self) -> float:
        self.clear()
        self.run(1)
        expected = 2 * initial_values().astype(np.float64) + 1 if self.kernel == "loop" else np.array([ARGUMENT])
        return relative_deviation(self.result().reshape(-1), expected)

    @abstractmethod
    def clear(self) -> None:
        """Forget the last launch's result."""

    @abstractmethod
    def result(self) -> np.ndarray:
        """Return what the last launch stored."""
