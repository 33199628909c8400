"""A small array is made again in each iteration of a parallel loop, and written.

It kept what another iteration of the thread had written.
"""

REPORT = "https://github.com/numba/numba/issues/5979"
RIGHT = [0, 64]
KNOWN = "each iteration begins with 0 and ends with 1"


def dialect(ti):
    ti.init(arch=ti.cpu)
    before, after = ti.field(ti.i32, ()), ti.field(ti.i32, ())

    @ti.kernel
    def write():
        for _ in range(64):
            a = ti.Vector([0])
            before[None] += a[0]
            for j in range(1):
                a[j] = 1
            after[None] += a[0]

    write()
    return [before[None], after[None]]


def numba(numba):
    @numba.njit(parallel=True)
    def write():
        before = after = 0
        for _ in numba.prange(64):
            a = [0]
            before += a[0]
            for j in range(1):
                a[j] = 1
            after += a[0]
        return [before, after]

    return write()
