"""A minimum and its index, kept in local variables around a loop at the top of a kernel.

Iterations ran in parallel and overwrote each other's minimum.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/2378"
DATA = np.random.default_rng(123).random(10_000).astype(np.float32)
RIGHT = [float(DATA.min()), int(DATA.argmin())]
KNOWN = "NumPy's min and argmin of the same numbers"


def dialect(ti):
    ti.init(arch=ti.cpu)
    a, least, where = ti.field(ti.f32, len(DATA)), ti.field(ti.f32, ()), ti.field(ti.i32, ())
    a.from_numpy(DATA)

    @ti.kernel
    def find():
        smallest = 2.0
        index = 0
        for i in range(10_000):
            if smallest > a[i]:
                smallest = a[i]
                index = i
        least[None] = smallest
        where[None] = index

    find()
    return [least[None], where[None]]
