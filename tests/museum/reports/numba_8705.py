"""The same cosine is used twice, once together with another one, of an argument that is 0.

Vectors of mathematical functions mixed up their lanes: -0.99254141 for -1.
"""

import numpy as np

REPORT = "https://github.com/numba/numba/issues/8705"
RIGHT = [0.0, 0.0, -1.0]
KNOWN = "cos 0 = 1"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 2), ti.field(ti.f64, 3)

    @ti.kernel
    def cosines():
        for _ in range(1):
            y[0] = x[0]
            y[1] = ti.cos(x[0]) * x[0]
            y[2] = -ti.cos(x[0]) * ti.cos(x[1])

    cosines()
    return y.to_numpy()


def numba(numba):
    @numba.njit
    def cosines(x):
        return np.array([x[0], np.cos(x[0]) * x[0], -np.cos(x[0]) * np.cos(x[1])])

    return cosines(np.zeros(2))
