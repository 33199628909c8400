"""The loops in the dialect: one program for tinote, Taichi and Quadrants, and their meanings in NumPy.

Without `from __future__ import annotations`: the module `ti` is a parameter here.
"""

import importlib
import itertools

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

BOX, ROWS, COUNT, MARGIN = 144, 1024, 1 << 18, 4
STEPS, GATHERED = 64, 16


class Loop(Subject):
    """One of the loops, for the module `ti`."""

    def __init__(self, ti, loop: str, lanes: str) -> None:
        ti.init(arch=ti.cpu, cpu_max_num_threads=1, **({"lanes": lanes} if lanes else {}))
        rng = np.random.default_rng(1)
        boxes, matrices = (BOX + 2 * MARGIN,) * 3, (ROWS, ROWS)
        shapes = {"stencil": boxes, "turned": boxes, "vectors": matrices, "columns": matrices}
        shape = shapes.get(loop, (COUNT,))
        of_pairs = loop == "vectors"
        x, y = (ti.Vector.field(2, ti.f32, shape) if of_pairs else ti.field(ti.f32, shape) for _ in range(2))
        self._given = rng.random((*shape, 2) if of_pairs else shape, np.float32)
        x.from_numpy(self._given)
        places = ti.field(ti.i32, COUNT)
        self._places = rng.integers(0, COUNT, COUNT).astype(np.int32)
        places.from_numpy(self._places)
        last = ROWS - MARGIN

        @ti.kernel
        def stencil():
            for i, j, k in ti.ndrange((4, BOX + 4), (4, BOX + 4), (4, BOX + 4)):
                a = 0.0
                for q in range(4):
                    a += (q + 1.0) * (x[i, j, k + q] - x[i, j, k - q])
                y[i, j, k] = a

        @ti.kernel
        def turned():
            for k, j, i in ti.ndrange((4, BOX + 4), (4, BOX + 4), (4, BOX + 4)):
                a = 0.0
                for q in range(4):
                    a += (q + 1.0) * (x[i, j, k + q] - x[i, j, k - q])
                y[i, j, k] = a

        @ti.kernel
        def vectors():
            for i, j in ti.ndrange((4, last), (4, last)):
                a = ti.Vector([0.0, 0.0])
                for q in range(3):
                    a += x[i + q, j] * (q + 1.0)
                y[i, j] = a

        @ti.kernel
        def columns():
            for k in range(ROWS):
                a = 0.0
                for i in range(ROWS):
                    a = 0.5 * a + x[i, k]
                    y[i, k] = a

        @ti.kernel
        def escape():
            for i in x:
                a = x[i] + 1.0
                for _ in range(STEPS):
                    a = 0.5 * (a + 2.0 / a) + x[i]
                    if a > 3.0:
                        break
                y[i] = a

        @ti.kernel
        def gather():
            for i in x:
                a = 0.0
                for k in range(GATHERED):
                    a += x[places[(i + k) & (COUNT - 1)]]
                y[i] = a

        @ti.kernel
        def nest():
            for i in x:
                a = 0.0
                for j in range(3 + (i & 1)):
                    begin = places[(i + 37 * j) & (COUNT - 1)]
                    for k in range(2 + (begin & 3)):
                        a += x[(begin + k) & (COUNT - 1)] ** 2
                y[i] = a

        self._loop, self._result = loop, y
        self._kernel = {k.__name__: k for k in (stencil, turned, vectors, columns, escape, gather, nest)}[loop]

    def run(self, count: int) -> None:
        for _ in range(count):
            self._kernel()

    def deviation(self) -> float:
        self._result.fill(0)
        self.run(1)
        return relative_deviation(self._result.to_numpy(), getattr(self, f"_{self._loop}")())

    def _stencil(self) -> np.ndarray:
        x = self._given.astype(np.float64)
        found, at = np.zeros_like(x), slice(MARGIN, -MARGIN)
        for q in range(4):
            ahead, behind = (x[at, at, MARGIN + step : MARGIN + step + BOX] for step in (q, -q))
            found[at, at, at] += (q + 1.0) * (ahead - behind)
        return found

    _turned = _stencil

    def _vectors(self) -> np.ndarray:
        x = self._given.astype(np.float64)
        found, at = np.zeros_like(x), slice(MARGIN, -MARGIN)
        for q in range(3):
            found[at, at] += (q + 1.0) * x[MARGIN + q : q - MARGIN, at]
        return found

    def _columns(self) -> np.ndarray:
        found = self._given.astype(np.float64)
        for i in range(1, ROWS):
            found[i] += 0.5 * found[i - 1]
        return found

    def _escape(self) -> np.ndarray:
        x = self._given
        a, runs = x + np.float32(1), np.ones(COUNT, bool)
        for _ in range(STEPS):
            a = np.where(runs, np.float32(0.5) * (a + np.float32(2) / a) + x, a)
            runs &= ~(a > 3.0)
        return a.astype(np.float64)

    def _gather(self) -> np.ndarray:
        at = (np.arange(COUNT)[:, None] + np.arange(GATHERED)) % COUNT
        return self._given.astype(np.float64)[self._places[at]].sum(1)

    def _nest(self) -> np.ndarray:
        x, at, found = self._given.astype(np.float64), np.arange(COUNT), np.zeros(COUNT)
        for j, k in itertools.product(range(4), range(5)):
            begin = self._places[(at + 37 * j) % COUNT]
            runs = (j < 3 + (at & 1)) & (k < 2 + (begin & 3))
            found += np.where(runs, x[(begin + k) % COUNT] ** 2, 0)
        return found


def create(package: str, loop: str, lanes: str) -> Loop:
    """Return a loop of the module called `package`."""
    return Loop(importlib.import_module(package), loop, lanes)
