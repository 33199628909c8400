"""Gravity in the dialect: one program for tinote, Taichi and Quadrants."""

from __future__ import annotations

import importlib

import numpy as np

from benchmarks.contract import UnavailableError
from benchmarks.gravity.system import SOFTENING, TIME_STEP, GravitySystem, initial_positions

__all__ = ["create"]


class DialectGravity(GravitySystem):
    """The classic program, for the module `ti`. `captured`: its substep is a program of one native call."""

    def __init__(self, ti, n: int, captured: bool) -> None:
        super().__init__(n)
        if captured and not hasattr(ti, "capture"):
            raise UnavailableError("it captures no steps")
        ti.init(arch=ti.cpu)
        x = ti.Vector.field(2, dtype=ti.f32, shape=n, needs_grad=True)
        v = ti.Vector.field(2, dtype=ti.f32, shape=n)
        U = ti.field(dtype=ti.f32, shape=(), needs_grad=True)

        @ti.kernel
        def compute_energy():
            for i, j in ti.ndrange(n, n):
                r = x[i] - x[j]
                U[None] += -1 / r.norm(SOFTENING)

        @ti.kernel
        def advance():
            for i in x:
                v[i] += TIME_STEP * -x.grad[i]
            for i in x:
                x[i] += TIME_STEP * v[i]

        def substep() -> None:
            with ti.ad.Tape(loss=U):
                compute_energy()
            advance()

        self._x, self._v = x, v
        self._substep = ti.capture(substep) if captured else substep
        self.set_positions(initial_positions(n))

    def run(self, count: int) -> None:
        substep = self._substep
        for _ in range(count):
            substep()

    def substep(self) -> None:
        self._substep()

    def set_positions(self, positions: np.ndarray) -> None:
        self._x.from_numpy(positions)
        self._v.fill(0)

    def velocities(self) -> np.ndarray:
        return self._v.to_numpy()


def create(package: str, n: int, captured: bool = False) -> DialectGravity:
    """Return the system for the module called `package`."""
    return DialectGravity(importlib.import_module(package), n, captured)
