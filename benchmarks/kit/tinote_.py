"""The systems with `ti.spatial`. The order of particles is that of their cells from time to time."""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

import numpy as np

import tinote as ti
from benchmarks.kit.system import (
    CUTOFF,
    PARTS,
    RADIUS,
    REST,
    SKIN,
    STIFFNESS,
    TIME_STEP,
    Particles,
    beginning,
    length_of,
)

__all__ = ["create"]


class Kit(Particles):
    """A liquid with a list of neighbours, or a fluid with cells."""

    def __init__(self, kind: str, n: int, lanes: str) -> None:
        super().__init__(kind, n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1, lanes=lanes)
        self._x, self._v = (ti.Vector.field(3, ti.f32, shape=n) for _ in range(2))
        x, v, density = self._x, self._v, ti.field(ti.f32, shape=n)
        if kind == "liquid":
            near = ti.spatial.NeighbourList(x, CUTOFF, SKIN, (length_of(n),) * 3, most=128)

            @ti.kernel
            def push():
                for i in x:
                    a = 0 * x[i]
                    for j in near.near(i):
                        d = near.displacement(x[i], x[j])
                        s = 1 / d.norm_sqr()
                        cube = s * s * s
                        a -= 24 * s * cube * (2 * cube - 1) * d
                    v[i] += TIME_STEP * a
        else:
            near = ti.spatial.CellGrid(x, RADIUS)

            @ti.kernel
            def push():
                for i in x:
                    total = 0.0
                    for j in near.near(x[i]):
                        total += (1 - (x[j] - x[i]).norm_sqr() / RADIUS**2) ** 3
                    density[i] = total
                for i in x:
                    a = 0 * x[i]
                    for j in near.near(x[i]):
                        d = x[j] - x[i]
                        w = 1 - d.norm_sqr() / RADIUS**2
                        a -= STIFFNESS * (density[i] + density[j] - 2 * REST) * w * w * d
                    v[i] += TIME_STEP * a

        @ti.kernel
        def drift():
            for i in x:
                x[i] += TIME_STEP * v[i]

        self._near, self._push, self._drift, self._steps = near, push, drift, 0
        self.begin(*beginning(kind, n))

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        self._x.from_numpy(x)
        self._v.from_numpy(v)
        self._steps = 0

    def step(self) -> None:
        if self._steps % (10 * PARTS) == 0:
            self._near.sort(self._v)
        else:
            self._near.update()
        self._push()
        self._drift()
        self._steps += 1

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return self._x.to_numpy(), self._v.to_numpy()


def create(package: str, kind: str, n: int, lanes: str) -> Kit:
    """Return the system."""
    return Kit(kind, n, lanes)
