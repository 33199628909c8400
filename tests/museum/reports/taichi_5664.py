"""The polar decomposition of a matrix is differentiated.

The transformation ended in an assertion of the compiler.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/5664"
F = np.array([[1.0, 0.3], [-0.2, 1.4]])


def rotation(f):
    angle = np.arctan2(f[1, 0] - f[0, 1], f[0, 0] + f[1, 1])
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def difference(i, j):
    step = np.zeros((2, 2))
    step[i, j] = 1e-6
    return (rotation(F + step)[1, 0] - rotation(F - step)[1, 0]) / 2e-6


RIGHT = [[difference(i, j) for j in range(2)] for i in range(2)]
TOLERANCE = 1e-7
KNOWN = "central differences of the closed form of the rotation in the plane"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    f = ti.Matrix.field(2, 2, ti.f64, shape=1, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    f[0] = F.tolist()

    @ti.kernel
    def decompose():
        for i in f:
            r, _s = ti.polar_decompose(f[i])
            loss[None] += r[1, 0]

    with ti.ad.Tape(loss):
        decompose()
    return f.grad.to_numpy()[0]
