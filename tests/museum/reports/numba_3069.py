"""Elements that several iterations share are written as `h[k] = h[k] + 1`.

It means the same as `h[k] += 1`, and additions were lost.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/3069"
DATA = np.random.default_rng(0).integers(0, 8, 20000).astype(np.int32)
RIGHT = np.bincount(DATA, minlength=8).tolist()
HISTORY = "tinote 0.1 lost more than half of the additions, on one thread, too."
KNOWN = "NumPy's bincount of the same numbers"


def dialect(ti):
    ti.init(arch=ti.cpu)
    data, count = ti.field(ti.i32, len(DATA)), ti.field(ti.i32, 8)
    data.from_numpy(DATA)

    @ti.kernel
    def histogram():
        for i in data:
            k = data[i] & 7
            count[k] = count[k] + 1

    histogram()
    return count.to_numpy()


def numba(numba):
    @numba.njit(parallel=True)
    def histogram(data):
        count = np.zeros(8, np.int64)
        for i in numba.prange(len(data)):
            k = data[i] & 7
            count[k] = count[k] + 1
        return count

    return histogram(DATA)
