"""The sweeps in the dialect: one program for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here.
"""

import importlib
import math

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

BOX, PART = 1024, 100


class Sweep(Subject):
    """A sweep for the module `ti`: over active blocks, or over a dense field of the same number of cells."""

    def __init__(self, ti, block: str, dense: bool) -> None:
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        bi, bj, bk = cells = [int(n) for n in block.split()]
        blocks = [BOX // n for n in cells]
        count = math.prod(blocks) // PART
        self._x = x = ti.field(ti.f32)
        if dense:
            ti.root.dense(ti.i, count * math.prod(cells)).place(x)
        else:
            ti.root.pointer(ti.ijk, blocks).dense(ti.ijk, cells).place(x)
        side = round(count ** (1 / 3))
        width = (side, side, -(-count // side**2))

        @ti.kernel
        def begin():
            for i, j, k in ti.ndrange(*width):
                x[i * bi, j * bj, k * bk] = 0.0

        @ti.kernel
        def sweep():
            for i, j, k in x:
                x[i, j, k] = x[i, j, k] * 0.5 + 1.0

        @ti.kernel
        def sweep_line():
            for i in x:
                x[i] = x[i] * 0.5 + 1.0

        @ti.kernel
        def sums() -> ti.f64:  # pyright: ignore[reportInvalidTypeForm]
            total = ti.cast(0.0, ti.f64)
            for index in ti.grouped(x):
                total += x[index]
            return total

        if not dense:
            begin()
        self._sweep, self._sums, self._dense = sweep_line if dense else sweep, sums, dense
        self._cells = count * math.prod(cells) if dense else math.prod(width) * math.prod(cells)
        self._runs = 0

    def run(self, count: int) -> None:
        self._runs += count
        for _ in range(count):
            self._sweep()

    def deviation(self) -> float:
        self.run(1)
        expected = self._cells * (2.0 - 2.0 * 0.5**self._runs)
        return relative_deviation(np.array(self._sums()), np.array(expected))


def create(package: str, block: str, dense: bool) -> Sweep:
    """Return a sweep of the module called `package`."""
    return Sweep(importlib.import_module(package), block, dense)
