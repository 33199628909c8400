"""The systems as programs of the dialect have them: in each step particles are sorted into cells as wide as the radius,
and each looks into the 27 around it.

Without `from __future__ import annotations`: the module `ti` is a parameter here.
"""

import importlib
import math

import numpy as np

from benchmarks.kit.system import (
    CUTOFF,
    RADIUS,
    REST,
    STIFFNESS,
    TIME_STEP,
    Particles,
    beginning,
    length_of,
)

__all__ = ["create"]


class Grid(Particles):
    """A grid by hand for the module `ti`."""

    def __init__(self, ti, kind: str, n: int) -> None:
        super().__init__(kind, n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        is_liquid = kind == "liquid"
        radius = CUTOFF if is_liquid else RADIUS
        # The fluid stays within a margin of its beginning.
        length = length_of(n) if is_liquid else math.ceil(n ** (1 / 3)) + 8 * RADIUS
        low = 0.0 if is_liquid else -4 * RADIUS
        m = int(length / radius)
        x, v = (ti.Vector.field(3, ti.f32, shape=n) for _ in range(2))
        density = ti.field(ti.f32, shape=n)
        first, free, ids = ti.field(ti.i32, shape=m**3 + 1), ti.field(ti.i32, shape=m**3), ti.field(ti.i32, shape=n)

        @ti.func
        def cell_of(p):
            return ti.math.clamp(ti.floor((p - low) * (m / length), ti.i32), 0, m - 1)

        @ti.func
        def number_of(c):
            return (c[0] * m + c[1]) * m + c[2]

        @ti.kernel
        def sort():
            for c in free:
                free[c] = 0
            for i in x:
                free[number_of(cell_of(x[i]))] += 1
            ti.loop_config(serialize=True)
            for c in range(m**3):
                first[c + 1] = first[c] + free[c]
            for c in free:
                free[c] = first[c]
            for i in x:
                ids[ti.atomic_add(free[number_of(cell_of(x[i]))], 1)] = i

        @ti.kernel
        def push_liquid():
            for i in x:
                a = ti.Vector([0.0, 0.0, 0.0])
                here = cell_of(x[i])
                for o in ti.grouped(ti.ndrange((-1, 2), (-1, 2), (-1, 2))):
                    c = number_of((here + o + m) % m)
                    for k in range(first[c], first[c + 1]):
                        j = ids[k]
                        d = x[j] - x[i]
                        d -= length * ti.round(d / length)
                        r2 = d.norm_sqr()
                        if r2 <= CUTOFF**2 and i != j:
                            s = 1 / r2
                            cube = s * s * s
                            a -= 24 * s * cube * (2 * cube - 1) * d
                v[i] += TIME_STEP * a

        @ti.kernel
        def push_fluid():
            for i in x:
                total = 0.0
                here = cell_of(x[i])
                for o in ti.grouped(ti.ndrange((-1, 2), (-1, 2), (-1, 2))):
                    if (here + o).min() >= 0 and (here + o).max() < m:
                        c = number_of(here + o)
                        for k in range(first[c], first[c + 1]):
                            w = 1 - (x[ids[k]] - x[i]).norm_sqr() / RADIUS**2
                            if w >= 0:
                                total += w**3
                density[i] = total
            for i in x:
                a = ti.Vector([0.0, 0.0, 0.0])
                here = cell_of(x[i])
                for o in ti.grouped(ti.ndrange((-1, 2), (-1, 2), (-1, 2))):
                    if (here + o).min() >= 0 and (here + o).max() < m:
                        c = number_of(here + o)
                        for k in range(first[c], first[c + 1]):
                            j = ids[k]
                            d = x[j] - x[i]
                            w = 1 - d.norm_sqr() / RADIUS**2
                            if w >= 0:
                                a -= STIFFNESS * (density[i] + density[j] - 2 * REST) * w * w * d
                v[i] += TIME_STEP * a

        @ti.kernel
        def drift():
            for i in x:
                x[i] += TIME_STEP * v[i]
                if ti.static(is_liquid):
                    x[i] -= length * ti.floor(x[i] / length)

        self._sort, self._push, self._drift = sort, push_liquid if is_liquid else push_fluid, drift
        self._x, self._v, self._length = x, v, length if is_liquid else None
        self.begin(*beginning(kind, n))

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        self._x.from_numpy(x if self._length is None else (x % self._length).astype(np.float32))
        self._v.from_numpy(v)

    def step(self) -> None:
        self._sort()
        self._push()
        self._drift()

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x.to_numpy(), self._v.to_numpy()


def create(package: str, kind: str, n: int) -> Grid:
    """Return the system for the module called `package`."""
    return Grid(importlib.import_module(package), kind, n)
