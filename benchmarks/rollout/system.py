"""What every contender has in common: pendulums, and the gradient in NumPy."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["COUNT", "STEPS", "TIME_STEP", "RolloutSystem", "initial_angles"]

COUNT, STEPS, TIME_STEP = 8, 100, 0.01


def initial_angles() -> np.ndarray:
    """Return the angles at the begin, f64."""
    return np.linspace(0.3, 1.2, COUNT)


def reference() -> np.ndarray:
    """Return the gradient, by the reverse sweep as one writes it."""
    angles, velocities = [initial_angles()], np.zeros(COUNT)
    for _ in range(STEPS):
        velocities = velocities - TIME_STEP * np.sin(angles[-1])
        angles.append(angles[-1] + TIME_STEP * velocities)
    by_angle, by_velocity = 2 * angles[-1], np.zeros(COUNT)
    for angle in reversed(angles[:-1]):
        by_velocity = by_velocity + TIME_STEP * by_angle
        by_angle = by_angle - TIME_STEP * np.cos(angle) * by_velocity
    return by_angle


class RolloutSystem(Subject):
    """A rollout and its gradient."""

    parts = STEPS

    def deviation(self) -> float:
        self.run(1)
        return relative_deviation(self.gradient(), reference())

    @abstractmethod
    def gradient(self) -> np.ndarray:
        """Return the gradient by the first angles that the last run has left."""
