"""The four programs in the dialect, for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here, so a kernel's argument types have to
be evaluated where the kernel is defined.
"""

import importlib
from collections.abc import Callable

import numpy as np

from benchmarks.gradients.system import (
    COURANT_SQUARED,
    DAMPING,
    FACTOR,
    GRAVITY,
    MASSES,
    NEIGHBOURS,
    PARTICLES,
    RECURRENCES,
    REST_LENGTH,
    SIZE,
    SOFTENING,
    SPRING_SOFTENING,
    SPRING_STEPS,
    STEPS,
    SUMMAND,
    TIME_STEP,
    TURNS,
    GradientSystem,
    initial_values,
    places_on_a_ring,
)

__all__ = ["create"]


class DialectGradient(GradientSystem):
    """One of the programs, for the module `ti`; `overwrite`: what the tape does where launches overwrite."""

    def __init__(self, ti, program: str, part: str, overwrite: str) -> None:
        super().__init__(program, part)
        # Quadrants refuses the gradient of a loop that carries a value unless told to save the values.
        ti.init(arch=ti.cpu, **({"ad_stack_experimental_enabled": True} if ti.__name__ == "quadrants" else {}))
        loss = ti.field(dtype=ti.f32, shape=(), needs_grad=True)
        programs = {"nbody": nbody, "wave": wave, "recurrence": recurrence, "mass_spring": mass_spring}
        variable, run = programs[program](ti, loss)
        options = {"on_overwrite": overwrite} if overwrite else {}

        def primal() -> None:
            loss[None] = 0
            run()

        def gradient() -> None:
            with ti.ad.Tape(loss=loss, **options):
                run()

        self._loss, self._variable = loss, variable
        self._run = primal if part == "primal" else gradient
        # Some of the dialect find out which thread synchronises only when asked.
        self._finish: Callable[[], None] = ti.sync

    def run(self, count: int) -> None:
        run = self._run
        for _ in range(count):
            run()
        self._finish()

    def value(self) -> float:
        return float(self._loss[None])

    def gradient(self) -> np.ndarray:
        found = self._variable.grad.to_numpy()
        return found[:2] if self.program == "wave" else found


def nbody(ti, loss):
    """Every ordered pair of particles."""
    x = ti.Vector.field(2, dtype=ti.f32, shape=PARTICLES, needs_grad=True)
    x.from_numpy(initial_values("nbody"))

    @ti.kernel
    def energy():
        for i, j in ti.ndrange(PARTICLES, PARTICLES):
            r = x[i] - x[j]
            loss[None] += -1 / r.norm(SOFTENING)

    return x, energy


def wave(ti, loss):
    """Every time has a slice of its own: nothing is overwritten."""
    u = ti.field(dtype=ti.f32, shape=(STEPS + 2, SIZE, SIZE), needs_grad=True)
    slices = np.zeros((STEPS + 2, SIZE, SIZE), np.float32)
    slices[:2] = initial_values("wave")
    u.from_numpy(slices)

    @ti.kernel
    def advance(t: ti.i32):
        for i, j in ti.ndrange((1, SIZE - 1), (1, SIZE - 1)):
            laplacian = u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1] - 4 * u[t, i, j]
            u[t + 1, i, j] = 2 * u[t, i, j] - u[t - 1, i, j] + COURANT_SQUARED * laplacian

    @ti.kernel
    def measure():
        for i, j in ti.ndrange(SIZE, SIZE):
            loss[None] += u[STEPS + 1, i, j] ** 2

    def run() -> None:
        for t in range(1, STEPS + 1):
            advance(t)
        measure()

    return u, run


def recurrence(ti, loss):
    """A value that a loop carries."""
    x = ti.field(dtype=ti.f32, shape=RECURRENCES, needs_grad=True)
    x.from_numpy(initial_values("recurrence"))

    @ti.kernel
    def iterate():
        for i in x:
            v = x[i]
            for _ in range(TURNS):
                v = FACTOR * ti.sin(v) + SUMMAND
            loss[None] += v

    return x, iterate


def mass_spring(ti, loss):
    """Every time has a slice of its own; the neighbours of the first mass are the last ones."""
    stiffness = ti.field(dtype=ti.f32, shape=MASSES, needs_grad=True)
    stiffness.from_numpy(initial_values("mass_spring"))
    x, v = (ti.Vector.field(2, dtype=ti.f32, shape=(SPRING_STEPS + 1, MASSES), needs_grad=True) for _ in range(2))
    slices = np.zeros((SPRING_STEPS + 1, MASSES, 2), np.float32)
    slices[0] = places_on_a_ring()
    x.from_numpy(slices)

    @ti.kernel
    def advance(t: ti.i32):
        for i in range(MASSES):
            force = ti.Vector([0.0, GRAVITY])
            for shift in ti.static(NEIGHBOURS):
                to = x[t, (i + shift) % MASSES] - x[t, i]
                length = to.norm(SPRING_SOFTENING)
                force += stiffness[i] * (length - REST_LENGTH) / length * to
            after = DAMPING * v[t, i] + TIME_STEP * force
            v[t + 1, i] = after
            x[t + 1, i] = x[t, i] + TIME_STEP * after

    @ti.kernel
    def measure():
        for i in range(MASSES):
            loss[None] += x[SPRING_STEPS, i].norm_sqr()

    def run() -> None:
        for t in range(SPRING_STEPS):
            advance(t)
        measure()

    return stiffness, run


def create(package: str, program: str, part: str, overwrite: str = "") -> DialectGradient:
    """Return the program for the module called `package`."""
    return DialectGradient(importlib.import_module(package), program, part, overwrite)
