"""A row is copied and its first element increased, in a parallel loop.

The increase was lost for most rows.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/5942"
RIGHT = [[i + 1, i] for i in range(10)]
KNOWN = "row i is (i, i), with 1 added to the first element"


def dialect(ti):
    ti.init(arch=ti.cpu)
    a, b = ti.field(ti.i32, (10, 2)), ti.field(ti.i32, (10, 2))

    @ti.kernel
    def rows():
        for i in range(10):
            for n in range(2):
                a[i, n] = i
            for n in range(2):
                b[i, n] = a[i, n]
            b[i, 0] += 1

    rows()
    return b.to_numpy()


def numba(numba):
    @numba.njit(parallel=True)
    def rows():
        a, b = np.zeros((10, 2), np.int32), np.zeros((10, 2), np.int32)
        for i in numba.prange(10):
            for n in range(2):
                a[i, n] = i
            b[i, :] = a[i, :]
            b[i, 0] += 1
        return b

    return rows()
