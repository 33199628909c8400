"""Elements that several iterations share are increased in a parallel loop.

Additions were lost between threads.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/7133"
RIGHT = [20000, 20000]
KNOWN = "20,000 iterations add 1 to each element"


def dialect(ti):
    ti.init(arch=ti.cpu)
    count = ti.field(ti.i32, 2)

    @ti.kernel
    def add():
        for _ in range(20000):
            for j in range(2):
                count[j] += 1

    add()
    return count.to_numpy()


def numba(numba):
    @numba.njit(parallel=True)
    def add():
        count = np.zeros(2, np.int64)
        for _ in numba.prange(20000):
            for j in range(2):
                count[j] += 1
        return count

    return add()
