"""The sine of a large argument in single precision.

The argument was reduced with a rounded multiple of π, so that the error grew with the argument.
"""

import numpy as np

REPORT = "https://github.com/raspberrypi/pico-sdk/issues/1255"
X = np.logspace(2, 38, 64).astype(np.float32)
RIGHT = np.sin(X.astype(np.float64)).tolist()
TOLERANCE = 1e-6
KNOWN = "the sine in double precision of the same numbers, which single precision holds exactly"
HISTORY = "tinote 0.1 gave NaN beyond 10¹⁵ with `fast_math=True`, the default."


def dialect(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, len(X)), ti.field(ti.f32, len(X))
    x.from_numpy(X)

    @ti.kernel
    def sines():
        for i in x:
            y[i] = ti.sin(x[i])

    sines()
    return y.to_numpy()


def warp(wp):
    @wp.kernel
    def sines(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.sin(x[i])

    x = wp.array(X, dtype=float, device="cpu")
    y = wp.zeros(len(X), dtype=float, device="cpu")
    wp.launch(sines, len(X), inputs=[x, y], device="cpu")
    return y.numpy()


def jax(jax):
    return jax.numpy.sin(jax.numpy.asarray(X)).tolist()


def numba(numba):
    @numba.njit(fastmath=True)
    def sines(x):
        y = np.empty_like(x)
        for i in range(len(x)):
            y[i] = np.sin(x[i])
        return y

    return sines(X)
