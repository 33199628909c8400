"""A sum over a parallel loop that does not begin with 0, with a condition.

What it began with was counted once more per thread.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/7344"
CONDITION = np.random.default_rng(0).integers(0, 2, 100).astype(np.int32)
RIGHT = 5 + int(CONDITION.sum())
KNOWN = "5, and 1 for each condition that holds"


def dialect(ti):
    ti.init(arch=ti.cpu)
    condition, result = ti.field(ti.i32, 100), ti.field(ti.i32, ())
    condition.from_numpy(CONDITION)

    @ti.kernel
    def count():
        s = 5
        for i in condition:
            if condition[i]:
                s += 1
        result[None] = s

    count()
    return result[None]


def numba(numba):
    @numba.njit(parallel=True)
    def count(condition):
        s = 5
        for i in numba.prange(len(condition)):
            if condition[i]:
                s += 1
        return s

    return count(CONDITION)
