"""The material point method on a sparse grid, in the dialect: one program for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here.
"""

import importlib

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

SUBSTEPS_CHECKED = 10
STIFFNESS, GRAVITY, WALL = 400.0, 9.8, 3
#: For each number of dimensions: particles, cells of the unit length and time step; cells of the box along each axis,
#: and of the blocks of both levels.
SYSTEMS = {2: (8192, 128, 2e-4, 4096, 128, 16), 3: (32768, 32, 5e-4, 1024, 128, 4)}


def initial_positions(dims: int, count: int) -> np.ndarray:
    """Return the particles of a block, (count, dims) f32, in no order, the same in every process."""
    return np.random.default_rng(7).random((count, dims), dtype=np.float32) * np.float32(0.4) + np.float32(0.2)


def reference_velocities(dims: int, substeps: int) -> np.ndarray:
    """Return the velocities after some substeps in f64, (particles, dims); at first all particles fall with speed 1."""
    count, cells, dt = SYSTEMS[dims][:3]
    x = initial_positions(dims, count).astype(np.float64) * cells
    v = np.zeros((count, dims))
    v[:, 1] = -1.0
    c, density = np.zeros((count, dims, dims)), np.ones(count)
    for _ in range(substeps):
        base = (x - 0.5).astype(int)
        fx = x - base
        w = np.stack([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
        affine = (-dt * 4 * STIFFNESS * cells * (density - 1))[:, None, None] * np.eye(dims) + c / cells
        grid = np.zeros((*(cells,) * dims, dims + 1))
        window = []
        for offset in np.ndindex(*(3,) * dims):
            distance = np.array(offset) - fx
            weight = np.prod([w[k, :, axis] for axis, k in enumerate(offset)], axis=0)
            at = tuple((base + offset).T)
            momentum = v + np.einsum("nab,nb->na", affine, distance)
            np.add.at(grid, at, weight[:, None] * np.hstack([momentum, np.ones((count, 1))]))
            window.append((at, distance, weight))
        velocity = grid[..., :-1] / np.where(grid[..., -1:] > 0, grid[..., -1:], 1)
        velocity[..., 1] -= dt * GRAVITY
        for axis in range(dims):
            along = np.moveaxis(velocity, axis, 0)[..., axis]
            np.maximum(along[:WALL], 0, out=along[:WALL])
            np.minimum(along[cells - WALL + 1 :], 0, out=along[cells - WALL + 1 :])
        v, c = np.zeros_like(v), np.zeros_like(c)
        for at, distance, weight in window:
            v += weight[:, None] * velocity[at]
            c += 4 * cells * (weight[:, None] * velocity[at])[:, :, None] * distance[:, None, :]
        x += dt * cells * v
        density *= 1 + dt * np.trace(c, axis1=1, axis2=2)
    return v


class Material(Subject):
    """A block of fluid that falls in a corner of a large box, for the module `ti`: blocks become active where particles
    are, and inactive before each step. Lengths are in cells, masses in those of a particle.
    """

    def __init__(self, ti, dims: int) -> None:
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._dims = dims
        self._count, cells, dt, box, block, leaf = SYSTEMS[dims]
        axes = ti.ij if dims == 2 else ti.ijk
        x = ti.Vector.field(dims, float, self._count)
        v = ti.Vector.field(dims, float, self._count)
        c = ti.Matrix.field(dims, dims, float, self._count)
        density = ti.field(float, self._count)
        grid_v, grid_m = ti.Vector.field(dims, float), ti.field(float)
        grid = ti.root.pointer(axes, box // block)
        leaves = grid.pointer(axes, block // leaf).dense(axes, leaf)
        leaves.place(grid_v)
        leaves.place(grid_m)
        window = (3,) * dims

        @ti.func
        def weights(fx):
            return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]

        @ti.kernel
        def to_grid():
            for p in x:
                base = int(x[p] - 0.5)
                fx = x[p] - base
                w = weights(fx)
                stress = -dt * 4 * STIFFNESS * cells * (density[p] - 1)
                affine = stress * ti.Matrix.identity(float, dims) + c[p] / cells
                for offset in ti.static(ti.grouped(ti.ndrange(*window))):
                    weight = 1.0
                    for axis in ti.static(range(dims)):
                        weight *= w[offset[axis]][axis]
                    grid_v[base + offset] += weight * (v[p] + affine @ (offset - fx))
                    grid_m[base + offset] += weight

        @ti.kernel
        def on_grid():
            for I in ti.grouped(grid_m):  # noqa: E741
                if grid_m[I] > 0:
                    velocity = grid_v[I] / grid_m[I]
                    velocity[1] -= dt * GRAVITY
                    for axis in ti.static(range(dims)):
                        if I[axis] < WALL and velocity[axis] < 0:
                            velocity[axis] = 0
                        if I[axis] > cells - WALL and velocity[axis] > 0:
                            velocity[axis] = 0
                    grid_v[I] = velocity

        @ti.kernel
        def from_grid():
            for p in x:
                base = int(x[p] - 0.5)
                fx = x[p] - base
                w = weights(fx)
                new_v = ti.Vector.zero(float, dims)
                new_c = ti.Matrix.zero(float, dims, dims)
                for offset in ti.static(ti.grouped(ti.ndrange(*window))):
                    weight = 1.0
                    for axis in ti.static(range(dims)):
                        weight *= w[offset[axis]][axis]
                    g = weight * grid_v[base + offset]
                    new_v += g
                    new_c += 4 * cells * g.outer_product(offset - fx)
                v[p] = new_v
                c[p] = new_c
                x[p] += dt * cells * new_v
                density[p] *= 1 + dt * new_c.trace()

        @ti.kernel
        def reset():
            for p in x:
                v[p] = ti.Vector.zero(float, dims)
                v[p][1] = -1
                c[p] = ti.Matrix.zero(float, dims, dims)
                density[p] = 1

        self._steps = (grid.deactivate_all, to_grid, on_grid, from_grid)
        self._x, self._v, self._begin = x, v, reset
        self._positions = initial_positions(dims, self._count) * np.float32(cells)
        self.reset()

    def reset(self) -> None:
        """Put every particle where it was at first."""
        self._x.from_numpy(self._positions)
        self._begin()

    def run(self, count: int) -> None:
        for _ in range(count):
            for step in self._steps:
                step()

    def deviation(self) -> float:
        self.reset()
        self.run(SUBSTEPS_CHECKED)
        return relative_deviation(self._v.to_numpy(), reference_velocities(self._dims, SUBSTEPS_CHECKED))


def create(package: str, dims: int) -> Material:
    """Return the program for the module called `package`."""
    return Material(importlib.import_module(package), dims)
