"""Gravity in Numba, which does not differentiate: the forces are derived by hand."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.gravity.system import SOFTENING, TIME_STEP, GravitySystem, initial_positions

__all__ = ["create"]

# Below this many particles, waking a second thread costs more than it gains.
WORTH_THREADS = 128


class NumbaGravity(GravitySystem):
    """Force on each particle by a sum over the others; coordinates in separate rows, which Numba vectorises best."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        # Captured as f32: a Python float would turn the arithmetic into f64.
        softening, time_step, two, one = (np.float32(value) for value in (SOFTENING, TIME_STEP, 2, 1))
        zero = np.float32(0)

        @numba.njit(fastmath=True, parallel=n >= WORTH_THREADS)
        def substep(x, v):
            for i in numba.prange(x.shape[1]):
                force_x, force_y = zero, zero
                for j in range(x.shape[1]):
                    dx = x[0, i] - x[0, j]
                    dy = x[1, i] - x[1, j]
                    inverse = one / np.sqrt(dx * dx + dy * dy + softening)
                    cubed = inverse * inverse * inverse
                    force_x -= dx * cubed
                    force_y -= dy * cubed
                v[0, i] += time_step * two * force_x
                v[1, i] += time_step * two * force_y
            for i in range(x.shape[1]):
                x[0, i] += time_step * v[0, i]
                x[1, i] += time_step * v[1, i]

        self._substep = substep
        self.set_positions(initial_positions(n))

    def substep(self) -> None:
        self._substep(self._x, self._v)

    def set_positions(self, positions: np.ndarray) -> None:
        self._x = np.ascontiguousarray(positions.T)
        self._v = np.zeros_like(self._x)

    def velocities(self) -> np.ndarray:
        return self._v.T


def create(package: str, n: int) -> NumbaGravity:
    """Return the system."""
    return NumbaGravity(n)
