"""MPM in the dialect: one program for tinote, Taichi and Quadrants."""

from __future__ import annotations

import importlib

from benchmarks.contract import Subject, relative_deviation
from benchmarks.mpm.system import (
    BOUND,
    DX,
    GRAVITY,
    N_GRID,
    N_PARTICLES,
    P_MASS,
    P_VOL,
    TIME_STEP,
    E,
    initial_positions,
    reference_velocities,
)

__all__ = ["DialectMpm", "create"]

SUBSTEPS_CHECKED = 20


class DialectMpm(Subject):
    """The classic program, for the module `ti`; with `refinement` times the cells and particles along each axis."""

    def __init__(self, ti, refinement: int = 1, **options: bool) -> None:
        ti.init(arch=ti.cpu, **options)
        particles, cells = N_PARTICLES * refinement**2, N_GRID * refinement
        dx, dt = DX / refinement, TIME_STEP / refinement
        volume, mass = P_VOL / refinement**2, P_MASS / refinement**2
        x = ti.Vector.field(2, float, particles)
        v = ti.Vector.field(2, float, particles)
        C = ti.Matrix.field(2, 2, float, particles)
        J = ti.field(float, particles)
        grid_v = ti.Vector.field(2, float, (cells, cells))
        grid_m = ti.field(float, (cells, cells))

        @ti.kernel
        def substep():
            for i, j in grid_m:
                grid_v[i, j] = [0, 0]
                grid_m[i, j] = 0
            for p in x:
                Xp = x[p] / dx
                base = int(Xp - 0.5)
                fx = Xp - base
                w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
                stress = -dt * 4 * E * volume * (J[p] - 1) / dx**2
                affine = ti.Matrix([[stress, 0], [0, stress]]) + mass * C[p]
                for i, j in ti.static(ti.ndrange(3, 3)):
                    offset = ti.Vector([i, j])
                    dpos = (offset - fx) * dx
                    weight = w[i].x * w[j].y
                    grid_v[base + offset] += weight * (mass * v[p] + affine @ dpos)
                    grid_m[base + offset] += weight * mass
            for i, j in grid_m:
                if grid_m[i, j] > 0:
                    grid_v[i, j] /= grid_m[i, j]
                grid_v[i, j].y -= dt * GRAVITY
                if i < BOUND and grid_v[i, j].x < 0:
                    grid_v[i, j].x = 0
                if i > cells - BOUND and grid_v[i, j].x > 0:
                    grid_v[i, j].x = 0
                if j < BOUND and grid_v[i, j].y < 0:
                    grid_v[i, j].y = 0
                if j > cells - BOUND and grid_v[i, j].y > 0:
                    grid_v[i, j].y = 0
            for p in x:
                Xp = x[p] / dx
                base = int(Xp - 0.5)
                fx = Xp - base
                w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
                new_v = ti.Vector.zero(float, 2)
                new_C = ti.Matrix.zero(float, 2, 2)
                for i, j in ti.static(ti.ndrange(3, 3)):
                    offset = ti.Vector([i, j])
                    dpos = (offset - fx) * dx
                    weight = w[i].x * w[j].y
                    g_v = grid_v[base + offset]
                    new_v += weight * g_v
                    new_C += 4 * weight * g_v.outer_product(dpos) / dx**2
                v[p] = new_v
                x[p] += dt * v[p]
                J[p] *= 1 + dt * new_C.trace()
                C[p] = new_C

        @ti.kernel
        def reset():
            for p in x:
                v[p] = [0, -1]
                C[p] = [[0, 0], [0, 0]]
                J[p] = 1

        self.substep = substep
        self.particles = particles
        self._reset, self._x, self._v = reset, x, v
        self.reset()

    def reset(self) -> None:
        """Put every particle where it was at first."""
        self._x.from_numpy(initial_positions(self.particles))
        self._reset()

    def run(self, count: int) -> None:
        substep = self.substep
        for _ in range(count):
            substep()

    def deviation(self) -> float:
        self.reset()
        self.run(SUBSTEPS_CHECKED)
        return relative_deviation(self._v.to_numpy(), reference_velocities(SUBSTEPS_CHECKED))


def create(package: str, checks: str = "default") -> DialectMpm:
    """Return the program for the module called `package`; `checks`: "off" for tinote without bounds checks."""
    options = {"bounds_check": False} if checks == "off" else {}
    return DialectMpm(importlib.import_module(package), **options)
