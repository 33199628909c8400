"""What every contender has in common: the cloth, and its derivative in SciPy."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from benchmarks.contract import Subject, relative_deviation

__all__ = ["DAMPING", "GRAVITY", "STIFFNESS", "TIME_STEP", "Cloth", "ImplicitSystem", "cloth"]

TIME_STEP, MASS, DAMPING, GRAVITY = 0.02, 0.01, 0.005, 9.81
HELD = 1e6  # the mass of the two corners that are held
STIFFNESS = 40.0

CHECKED = 5
"""The number of steps after which results are compared with the reference."""


class Cloth(NamedTuple):
    """Places (masses, 3), the two ends of each spring, its length at rest, and the mass and weight of each mass."""

    places: np.ndarray
    ends: np.ndarray
    lengths: np.ndarray
    masses: np.ndarray
    weights: np.ndarray


def cloth(size: int) -> Cloth:
    """Return a cloth of `size` by `size` masses that lies flat, one metre wide."""
    at = np.arange(size * size).reshape(size, size)
    pairs = [(at[1:], at[:-1]), (at[:, 1:], at[:, :-1]), (at[1:, 1:], at[:-1, :-1])]
    ends = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    rows, columns = np.divmod(np.arange(size * size), size)
    places = np.stack([columns / (size - 1), rows / (size - 1), np.zeros(size * size)], axis=1)
    held = np.isin(np.arange(size * size), (0, size - 1))
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    return Cloth(places, ends, lengths, np.where(held, HELD, MASS), np.where(held, 0.0, -GRAVITY * MASS))


@functools.cache
def reference(size: int, steps: int) -> tuple[float, float]:
    """Return the result and its derivative by the stiffness, by a step along the imaginary axis."""
    tiny = 1e-30
    it = cloth(size)
    i, j = it.ends.T
    x, v = it.places.astype(complex), np.zeros_like(it.places, complex)
    stiffness = STIFFNESS + 1j * tiny
    components = 3 * np.arange(len(x))[:, None] + np.arange(3)
    for _ in range(steps):
        d = x[j] - x[i]
        length = np.sqrt((d * d).sum(axis=1))
        along = d[:, :, None] * d[:, None, :] / (length * length)[:, None, None]
        across = 1 - it.lengths / length
        across = np.where(across.real > 0, across, 0)[:, None, None]
        slope = stiffness * (along + across * (np.eye(3) - along))
        force = stiffness * ((length - it.lengths) / length)[:, None] * d
        change = TIME_STEP * force + TIME_STEP**2 * np.einsum("spq,sq->sp", slope, v[j] - v[i])
        b = -TIME_STEP * DAMPING * v
        b[:, 2] += TIME_STEP * it.weights
        np.add.at(b, i, change)
        np.add.at(b, j, -change)
        rows, columns, values = (
            [components.ravel()],
            [components.ravel()],
            [np.repeat(it.masses + TIME_STEP * DAMPING, 3)],
        )
        for one, other, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            rows.append(np.repeat(components[one], 3, axis=1).ravel())
            columns.append(np.tile(components[other], (1, 3)).ravel())
            values.append(sign * TIME_STEP**2 * slope.ravel())
        whole = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        matrix = scipy.sparse.coo_array(whole, shape=(x.size, x.size)).tocsc()
        v = v + scipy.sparse.linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A").solve(b.ravel()).reshape(b.shape)
        x = x + TIME_STEP * v
    found = (x * x).sum()
    return float(found.real), float(found.imag / tiny)


class ImplicitSystem(Subject):
    """The rollout; `part` says whether a run is the simulation alone or with its gradient."""

    def __init__(self, part: str, size: int, steps: int) -> None:
        self.part = part
        self.size = size
        self.steps = steps

    def run(self, count: int) -> None:
        for _ in range(count):
            self.compute(self.steps)

    @abstractmethod
    def compute(self, steps: int) -> tuple[float, float]:
        """Run this number of steps; return the result, and its derivative, if that is computed."""

    def deviation(self) -> float:
        """After the first steps: the reference is slow."""
        steps = min(CHECKED, self.steps)
        count = 1 if self.part == "primal" else 2
        pairs = list(zip(self.compute(steps), reference(self.size, steps), strict=True))[:count]
        return max(relative_deviation(np.array(one), np.array(other)) for one, other in pairs)
