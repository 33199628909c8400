"""What every gravity contender has in common: initial data, constants, the NumPy reference."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["SOFTENING", "TIME_STEP", "GravitySystem", "initial_positions", "reference_forces"]

TIME_STEP = 1e-5
SOFTENING = 1e-3


def initial_positions(n: int) -> np.ndarray:
    """Return n positions in the unit square, (n, 2) f32, the same in every process."""
    return np.random.default_rng(7).random((n, 2), dtype=np.float32)


def reference_forces(positions: np.ndarray) -> np.ndarray:
    """Return minus the gradient of the energy, (n, 2) f64."""
    x = positions.astype(np.float64)
    difference = x[:, None, :] - x[None, :, :]
    cubed = ((difference**2).sum(axis=-1) + SOFTENING) ** 1.5
    # A pair is counted in both orders, hence the 2.
    return -2 * (difference / cubed[..., None]).sum(axis=1)


class GravitySystem(Subject):
    """N particles. After construction they rest at their initial positions."""

    def __init__(self, n: int) -> None:
        self.n = n

    def run(self, count: int) -> None:
        for _ in range(count):
            self.substep()
        self.finish()

    @abstractmethod
    def substep(self) -> None:
        """Advance by one time step; may return before it is done."""

    def finish(self) -> None:
        """Wait until the substeps so far are done."""

    @abstractmethod
    def set_positions(self, positions: np.ndarray) -> None:
        """Place the particles at `positions`, (n, 2) f32, at rest."""

    @abstractmethod
    def velocities(self) -> np.ndarray:
        """Return the velocities, (n, 2)."""

    def deviation(self) -> float:
        # From rest, one substep makes the velocity dt times the force, whatever the contender keeps its forces in.
        self.set_positions(initial_positions(self.n))
        self.run(1)
        return relative_deviation(self.velocities() / TIME_STEP, reference_forces(initial_positions(self.n)))
