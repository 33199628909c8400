"""The two systems: their constants, their beginnings, and what a step does to some of the particles, in NumPy.

- A liquid: particles in a periodic cube with the potential 4 (r⁻¹² - r⁻⁶), cut off at 2.5, at the density 0.8442.
- A fluid: particles in the open with densities Σ w³, where w = 1 - r²/R², and
  accelerations -Σ (pᵢ + pⱼ) w² d with p = K (ρ - ρ₀).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = [
    "CUTOFF", "PARTS", "RADIUS", "REST", "SKIN", "STIFFNESS", "TIME_STEP", "Particles", "beginning", "length_of",
]  # fmt: skip

DENSITY, CUTOFF, SKIN, TIME_STEP = 0.8442, 2.5, 0.3, 0.004
RADIUS, REST, STIFFNESS = 2.0, 12.0, 0.05
PARTS = 20
"""Steps in a run, so that each has its share of the lists that are built."""


def length_of(n: int) -> float:
    """The length of the liquid's cube."""
    return float((n / DENSITY) ** (1 / 3))


def beginning(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities: a lattice, shaken, in an order that says nothing of places."""
    rng = np.random.default_rng(0)
    side = int(np.ceil(n ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n].astype(float)
    x = (lattice * (length_of(n) / side) if kind == "liquid" else lattice) + rng.normal(0, 0.05, (n, 3))
    rng.shuffle(x)
    v = rng.normal(0, 0.85 if kind == "liquid" else 0.1, (n, 3))
    return x.astype(np.float32), v.astype(np.float32)


def acceleration(kind: str, x: np.ndarray, some: np.ndarray) -> np.ndarray:
    """The accelerations of some of the particles."""
    x = x.astype(float)
    found = np.zeros((len(some), 3))
    if kind == "liquid":
        length = length_of(len(x))
        for row, i in enumerate(some):
            d = x - x[i]
            d -= length * np.round(d / length)
            r2 = (d**2).sum(1)
            r2[i] = np.inf
            s = np.where(r2 <= CUTOFF**2, 1 / r2, 0.0)
            found[row] = -((24 * s**4 * (2 * s**3 - 1))[:, None] * d).sum(0)
        return found

    def weights(i: int) -> np.ndarray:
        return np.maximum(0.0, 1 - ((x - x[i]) ** 2).sum(1) / RADIUS**2)

    def pressure(i: int) -> float:
        return STIFFNESS * float((weights(i) ** 3).sum() - REST)

    for row, i in enumerate(some):
        w = weights(i)
        for j in np.flatnonzero(w > 0):
            found[row] -= (pressure(i) + pressure(int(j))) * w[j] ** 2 * (x[j] - x[i])
    return found


class Particles(Subject):
    """One of the systems."""

    parts = PARTS

    def __init__(self, kind: str, n: int) -> None:
        self.kind, self.n = kind, n

    @abstractmethod
    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        """Take these positions and velocities."""

    @abstractmethod
    def step(self) -> None:
        """One step: v += dt a(x), x += dt v."""

    @abstractmethod
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities now, of any order of the particles."""

    def run(self, count: int) -> None:
        for _ in range(count * PARTS):
            self.step()

    def deviation(self) -> float:
        x, v = beginning(self.kind, self.n)
        self.begin(x, v)
        self.step()
        after, velocities = self.state()
        some = np.random.default_rng(1).integers(0, self.n, 20)
        expected = v[some] + TIME_STEP * acceleration(self.kind, x, some)
        moved = x[some] + TIME_STEP * expected
        places = [int(((after - one) ** 2).sum(1).argmin()) for one in moved]
        return relative_deviation(velocities[places], expected)
