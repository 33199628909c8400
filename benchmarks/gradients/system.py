"""The four programs that are differentiated: constants, initial data, the NumPy references."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.contract import Subject, relative_deviation
from benchmarks.gravity.system import SOFTENING, initial_positions, reference_forces

__all__ = [
    "COURANT_SQUARED",
    "DAMPING",
    "FACTOR",
    "GRAVITY",
    "MASSES",
    "NEIGHBOURS",
    "PARTICLES",
    "RECURRENCES",
    "REST_LENGTH",
    "SIZE",
    "SOFTENING",
    "SPRING_SOFTENING",
    "SPRING_STEPS",
    "STEPS",
    "SUMMAND",
    "TIME_STEP",
    "TURNS",
    "GradientSystem",
    "Reference",
    "initial_values",
    "places_on_a_ring",
    "reference",
]

PARTICLES = 1536

SIZE = 256
STEPS = 40
COURANT_SQUARED = 0.1  # (wave speed times time step over spacing)²; nodes on the boundary rest at zero

RECURRENCES = 200_000
TURNS = 25
FACTOR = 0.9
SUMMAND = 0.1

MASSES = 1024
NEIGHBOURS = (-2, -1, 1, 2)
SPRING_STEPS = 128
TIME_STEP = 1e-3
REST_LENGTH = 0.01
SPRING_SOFTENING = 1e-4  # added to the square of a length
DAMPING = 0.999  # of a velocity, in one step
GRAVITY = -9.8


class Reference(NamedTuple):
    """The value of a program and its gradient with respect to its initial data, in f64."""

    value: float
    gradient: np.ndarray


def initial_values(program: str) -> np.ndarray:
    """Return what a program starts from, f32, the same in every process: positions (PARTICLES, 2), the first two
    slices of the wave (2, SIZE, SIZE), the starts of the recurrences (RECURRENCES,), or the stiffness of the springs of
    each mass (MASSES,).
    """
    if program == "mass_spring":
        return np.random.default_rng(7).uniform(50, 150, MASSES).astype(np.float32)
    if program == "nbody":
        return initial_positions(PARTICLES)
    if program == "recurrence":
        return np.random.default_rng(7).random(RECURRENCES, dtype=np.float32)
    place = np.linspace(-1, 1, SIZE, dtype=np.float32)
    bump = np.exp(-20 * (place[:, None] ** 2 + (place[None, :] - 0.2) ** 2))
    bump[[0, -1], :] = bump[:, [0, -1]] = 0
    return np.stack([bump, bump])


def places_on_a_ring() -> np.ndarray:
    """Return where the masses are at first, f32 (MASSES, 2): at distances that vary, or forces would cancel."""
    angle = np.linspace(0, 2 * np.pi, MASSES, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (ring + np.random.default_rng(8).normal(scale=0.002, size=ring.shape)).astype(np.float32)


def reference(program: str) -> Reference:
    """Return the value and gradient of a program at its initial data."""
    start = initial_values(program).astype(np.float64)
    return {"nbody": nbody, "wave": wave, "recurrence": recurrence, "mass_spring": mass_spring}[program](start)


def nbody(x: np.ndarray) -> Reference:
    """The energy as in `gravity`."""
    value = sum([-float(((((x - one) ** 2).sum(axis=1) + SOFTENING) ** -0.5).sum()) for one in x])
    return Reference(value, -reference_forces(x))


def wave(slices: np.ndarray) -> Reference:
    """Leapfrog steps, and the same backwards for the adjoint, which is a wave too."""
    before, now = slices
    for _ in range(STEPS):
        before, now = now, inside(2 * now - before) + COURANT_SQUARED * inside(laplacian(now))
    value, adjoint = float((now**2).sum()), 2 * now
    before_adjoint = np.zeros_like(adjoint)
    for _ in range(STEPS):
        # now' = inside(2 now - before + c² Δ now), before' = now
        arriving = inside(adjoint)
        adjoint, before_adjoint = before_adjoint + 2 * arriving + COURANT_SQUARED * laplacian(arriving), -arriving
    return Reference(value, np.stack([before_adjoint, adjoint]))


def inside(values: np.ndarray) -> np.ndarray:
    """Return `values` with the boundary at zero."""
    return np.pad(values[1:-1, 1:-1], 1)


def laplacian(values: np.ndarray) -> np.ndarray:
    """Return the sum of the four neighbours minus four times the value, with zeros around; symmetric as a matrix."""
    around = np.pad(values, 1)
    return around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * values


def recurrence(v: np.ndarray) -> Reference:
    """The chain rule, iteration by iteration."""
    slope = np.ones_like(v)
    for _ in range(TURNS):
        slope *= FACTOR * np.cos(v)
        v = FACTOR * np.sin(v) + SUMMAND
    return Reference(float(v.sum()), slope)


def mass_spring(stiffness: np.ndarray) -> Reference:
    """Steps of semi-implicit Euler, and their adjoints backwards."""
    x = places_on_a_ring().astype(np.float64)
    v, k = np.zeros_like(x), stiffness[:, None]
    history = []

    def springs(x: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        for shift in NEIGHBOURS:
            to = np.roll(x, -shift, axis=0) - x
            yield shift, to, np.sqrt((to**2).sum(axis=1, keepdims=True) + SPRING_SOFTENING)

    for _ in range(SPRING_STEPS):
        history.append(x)
        force = np.array([0.0, GRAVITY]) + sum(k * (1 - REST_LENGTH / length) * to for _, to, length in springs(x))
        v = DAMPING * v + TIME_STEP * force
        x = x + TIME_STEP * v
    value, d_x, d_v, d_k = float((x**2).sum()), 2 * x, np.zeros_like(x), np.zeros_like(k)
    for before in reversed(history):
        d_v = d_v + TIME_STEP * d_x
        d_force, d_v = TIME_STEP * d_v, DAMPING * d_v
        for shift, to, length in springs(before):
            along = (d_force * to).sum(axis=1, keepdims=True)
            d_k += (1 - REST_LENGTH / length) * along
            d_to = k * ((1 - REST_LENGTH / length) * d_force + REST_LENGTH / length**3 * along * to)
            d_x = d_x - d_to + np.roll(d_to, shift, axis=0)
    return Reference(value, d_k[:, 0])


class GradientSystem(Subject):
    """One program; `part` says whether a run is the program alone or with its gradient."""

    def __init__(self, program: str, part: str) -> None:
        self.program = program
        self.part = part

    @abstractmethod
    def value(self) -> float:
        """Return what the last run computed."""

    @abstractmethod
    def gradient(self) -> np.ndarray:
        """Return the gradient of the last run, which had one, in the shape of the initial data."""

    def deviation(self) -> float:
        self.run(1)
        expected = reference(self.program)
        deviation = relative_deviation(np.array(self.value()), np.array(expected.value))
        if self.part == "primal":
            return deviation
        return max(deviation, relative_deviation(self.gradient(), expected.gradient))
