"""What a workload is: inputs, a NumPy program of them, and a check of derivatives against that program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from benchmarks.contract import relative_deviation

__all__ = ["Problem", "largest", "log_sum_exp", "smallest"]

Array = np.ndarray

DIRECTIONS = 3

# A step so small that its square vanishes beside 1: a complex step has no error of truncation or cancellation.
COMPLEX_STEP = 1e-30


class Problem(ABC):
    """One workload at one size.

    `inputs`: arrays by name. `wrt`: the names of those that the program is differentiated with respect to.
    """

    inputs: Mapping[str, Array]
    wrt: tuple[str, ...]

    @abstractmethod
    def primal(self, **inputs: Array) -> Array:
        """Return what the program computes, a number or an array, for real and for complex inputs."""

    def along(self, derivative: Array, directions: Mapping[str, Array]) -> Array:
        """Return the derivative times directions of the shapes of the inputs `wrt`.

        `derivative` has the shape of the result followed by a flat axis over the inputs `wrt`, one after the other.
        """
        return derivative @ np.concatenate([directions[name].ravel() for name in self.wrt])

    def deviation(self, value: Array, derivative: Array | None) -> float:
        """Return the largest relative deviation of a value, and of a derivative along random directions, from NumPy's.

        Derivatives of the NumPy program are complex steps, which are exact to rounding.
        """
        deviations = [relative_deviation(value, np.asarray(self.primal(**self.inputs)))]
        if derivative is not None:
            random = np.random.default_rng(1)
            for _ in range(DIRECTIONS):
                directions = {name: random.standard_normal(self.inputs[name].shape) for name in self.wrt}
                moved = {name: self.inputs[name] + 1j * COMPLEX_STEP * along for name, along in directions.items()}
                expected = self.primal(**{**self.inputs, **moved}).imag / COMPLEX_STEP
                deviations.append(relative_deviation(self.along(derivative, directions), expected))
        return max(deviations)


def largest(values: Array, axis: int = -1) -> Array:
    """Return the numbers with the largest real parts along an axis, which stays with length 1."""
    return np.take_along_axis(values, np.expand_dims(values.real.argmax(axis), axis), axis)


def smallest(values: Array, axis: int = -1) -> Array:
    """Return the numbers with the smallest real parts along an axis, which stays with length 1."""
    return np.take_along_axis(values, np.expand_dims(values.real.argmin(axis), axis), axis)


def log_sum_exp(values: Array, axis: int = -1) -> Array:
    """Return the logarithm of the sum of exponentials along an axis."""
    shift = largest(values, axis)
    return np.squeeze(shift + np.log(np.exp(values - shift).sum(axis, keepdims=True)), axis)
