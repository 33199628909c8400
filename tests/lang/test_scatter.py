"""Sums into grids that are too large for registers: each thread has its own copy, and all copies are merged."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.ir.nodes import Task

pytestmark = pytest.mark.optimised

CELLS, UPDATES = 30_000, 200_000


def copies(kernel: Any) -> list[str]:
    """The names of the fields of which threads have copies."""
    fn = kernel.specialise().snapshots()[-1].after
    return [private.target.name for op in fn.region.body if isinstance(op, Task) for private in op.privates]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("layout", ["AOS", "SOA"])
def test_vectors_and_scalars(threads: int, layout: str) -> None:
    ti.init(num_threads=threads)
    momentum = ti.Vector.field(2, ti.i32, shape=CELLS, layout=getattr(ti.Layout, layout), name="momentum")
    mass = ti.field(ti.f32, shape=(CELLS // 100, 100), name="mass")
    where = ti.field(ti.i32, shape=UPDATES)
    indices = np.random.default_rng(3).integers(0, CELLS, UPDATES).astype(np.int32)
    where.from_numpy(indices)
    momentum.fill(7)

    @ti.kernel
    def scatter():
        for i in where:
            k = where[i]
            momentum[k] += ti.Vector([1, i])
            mass[k // 100, k % 100] += 0.5

    assert sorted(copies(scatter)) == ["mass", "momentum"]
    for launch in (1, 2):
        scatter()
        count = np.bincount(indices, minlength=CELLS)
        total = np.zeros(CELLS, np.int64)
        np.add.at(total, indices, np.arange(UPDATES))
        found = momentum.to_numpy()
        assert (found[:, 0] == 7 + launch * count).all()
        assert (found[:, 1] == (7 + launch * total).astype(np.int32)).all()
        assert (mass.to_numpy().reshape(-1) == 0.5 * launch * count).all()
