"""The loops in the dialect: one program for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here.
"""

import importlib

import numpy as np

from benchmarks.contract import Subject, relative_deviation
from benchmarks.roofline.system import FACTOR, OMEGA, SHAPES, VELOCITIES, WEIGHTS, beginning, expected

__all__ = ["create"]


class Loop(Subject):
    """One of the loops, for the module `ti`."""

    def __init__(self, ti, loop: str) -> None:
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._loop = loop
        self._arrays = beginning(loop)
        shape, together = SHAPES[loop], loop == "boltzmann"
        self._fields = [
            ti.Vector.field(19, ti.f32, shape, layout=ti.Layout.SOA) if together else ti.field(ti.f32, shape)
            for _ in self._arrays
        ]
        result = ti.field(ti.f32, 1)
        self._result = result if loop == "total" else self._fields[-1]
        x, y, z = (*self._fields, None)[:3]
        last = shape[0] - 1

        @ti.kernel
        def axpy():
            for i in x:
                y[i] += FACTOR * x[i]

        @ti.kernel
        def total():
            result[0] = 0.0
            for i in x:
                result[0] += x[i]

        @ti.kernel
        def jacobi():
            for i, j in ti.ndrange((1, last), (1, last)):
                z[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - y[i, j])

        @ti.kernel
        def stencil():
            for i, j, k in ti.ndrange((1, last), (1, last), (1, last)):
                around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
                y[i, j, k] = FACTOR * x[i, j, k] + 0.1 * (around + x[i, j, k - 1] + x[i, j, k + 1])

        @ti.kernel
        def boltzmann():
            for i, j, k in ti.ndrange((1, last), (1, last), (1, last)):
                came = ti.Vector([0.0] * 19)
                density = 0.0
                u = ti.Vector([0.0, 0.0, 0.0])
                for q in ti.static(range(19)):
                    c = ti.static(VELOCITIES[q])
                    came[q] = x[i - c[0], j - c[1], k - c[2]][q]
                    density += came[q]
                    for axis in ti.static(range(3)):
                        if ti.static(c[axis] != 0):
                            u[axis] += c[axis] * came[q]
                u /= density
                for q in ti.static(range(19)):
                    c = ti.static(VELOCITIES[q])
                    along = 3.0 * (c[0] * u[0] + c[1] * u[1] + c[2] * u[2])
                    still = WEIGHTS[q] * density * (1.0 + along + 0.5 * along * along - 1.5 * u.dot(u))
                    y[i, j, k][q] = (1.0 - OMEGA) * came[q] + OMEGA * still

        self._kernel = {k.__name__: k for k in (axpy, total, jacobi, stencil, boltzmann)}[loop]
        self._begin()

    def _begin(self) -> None:
        for field, array in zip(self._fields, self._arrays, strict=True):
            field.from_numpy(np.ascontiguousarray(np.moveaxis(array, 0, -1)) if self._loop == "boltzmann" else array)

    def run(self, count: int) -> None:
        for _ in range(count):
            self._kernel()

    def deviation(self) -> float:
        self._begin()
        self.run(1)
        found = self._result.to_numpy()
        found = np.moveaxis(found, -1, 0) if self._loop == "boltzmann" else found
        return relative_deviation(found, expected(self._loop, self._arrays))


def create(package: str, loop: str) -> Loop:
    """Return a loop of the module called `package`."""
    return Loop(importlib.import_module(package), loop)
