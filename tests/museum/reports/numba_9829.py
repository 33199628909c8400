"""A loop gives the elements that are still free the next numbers, in order.

The counter was carried from iteration to iteration of a parallel loop.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/9829"
INDEX = np.array([9, 11, 12, 15, 19])
RIGHT = [5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 14, 1, 2, 15, 16, 3, 17, 18, 19, 4, 20]
KNOWN = "the same in Python"


def dialect(ti):
    ti.init(arch=ti.cpu)
    a, index = ti.field(ti.i32, 21), ti.field(ti.i32, 5)
    a.fill(-1)
    index.from_numpy(INDEX.astype(np.int32))

    @ti.kernel
    def number():
        for i in index:
            a[index[i]] = i
        following = 4
        for i in range(21):
            if a[i] == -1:
                following += 1
                a[i] = following

    number()
    return a.to_numpy()


def numba(numba):
    @numba.njit(parallel=True)
    def number(index):
        a = np.full(21, -1)
        for i in numba.prange(len(index)):
            a[index[i]] = i
        following = 4
        for i in numba.prange(21):
            if a[i] == -1:
                following += 1
                a[i] = following
        return a

    return number(INDEX)
