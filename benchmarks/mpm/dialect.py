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
    """The classic program, for the module `ti`."""

    def __init__(self, ti, **options: bool) -> None:
        ti.init(arch=ti.cpu, **options)
        x = ti.Vector.field(2, float, N_PARTICLES)
        v = ti.Vector.field(2, float, N_PARTICLES)
        C = ti.Matrix.field(2, 2, float, N_PARTICLES)
        J = ti.field(float, N_PARTICLES)
        grid_v = ti.Vector.field(2, float, (N_GRID, N_GRID))
        grid_m = ti.field(float, (N_GRID, N_GRID))

        @ti.kernel
        def substep():
            for i, j in grid_m:
                grid_v[i, j] = [0, 0]
                grid_m[i, j] = 0
            for p in x:
                Xp = x[p] / DX
                base = int(Xp - 0.5)
                fx = Xp - base
                w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
                stress = -TIME_STEP * 4 * E * P_VOL * (J[p] - 1) / DX**2
                affine = ti.Matrix([[stress, 0], [0, stress]]) + P_MASS * C[p]
                for i, j in ti.static(ti.ndrange(3, 3)):
                    offset = ti.Vector([i, j])
                    dpos = (offset - fx) * DX
                    weight = w[i].x * w[j].y
                    grid_v[base + offset] += weight * (P_MASS * v[p] + affine @ dpos)
                    grid_m[base + offset] += weight * P_MASS
            for i, j in grid_m:
                if grid_m[i, j] > 0:
                    grid_v[i, j] /= grid_m[i, j]
                grid_v[i, j].y -= TIME_STEP * GRAVITY
                if i < BOUND and grid_v[i, j].x < 0:
                    grid_v[i, j].x = 0
                if i > N_GRID - BOUND and grid_v[i, j].x > 0:
                    grid_v[i, j].x = 0
                if j < BOUND and grid_v[i, j].y < 0:
                    grid_v[i, j].y = 0
                if j > N_GRID - BOUND and grid_v[i, j].y > 0:
                    grid_v[i, j].y = 0
            for p in x:
                Xp = x[p] / DX
                base = int(Xp - 0.5)
                fx = Xp - base
                w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
                new_v = ti.Vector.zero(float, 2)
                new_C = ti.Matrix.zero(float, 2, 2)
                for i, j in ti.static(ti.ndrange(3, 3)):
                    offset = ti.Vector([i, j])
                    dpos = (offset - fx) * DX
                    weight = w[i].x * w[j].y
                    g_v = grid_v[base + offset]
                    new_v += weight * g_v
                    new_C += 4 * weight * g_v.outer_product(dpos) / DX**2
                v[p] = new_v
                x[p] += TIME_STEP * v[p]
                J[p] *= 1 + TIME_STEP * new_C.trace()
                C[p] = new_C

        @ti.kernel
        def reset():
            for p in x:
                v[p] = [0, -1]
                C[p] = [[0, 0], [0, 0]]
                J[p] = 1

        self.substep = substep
        self._reset, self._x, self._v = reset, x, v
        self.reset()

    def reset(self) -> None:
        """Put every particle where it was at first."""
        self._x.from_numpy(initial_positions())
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
