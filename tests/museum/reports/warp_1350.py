"""The input of a recorded kernel is overwritten by another one before the backward pass.

The gradient was computed at the new value, 100, in place of the recorded one, 3.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1350"
RIGHT = [6.0]
KNOWN = "d x²/dx = 2x, at the x that the square has read"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 3.0

    @ti.kernel
    def square():
        for i in x:
            y[None] += x[i] * x[i]

    @ti.kernel
    def overwrite():
        for i in x:
            x[i] = 100.0

    with ti.ad.Tape(y):
        square()
        overwrite()
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = x[0] * x[0]

    x = wp.array(np.array([3.0]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(square, 1, inputs=[x, y], device="cpu")
    x.fill_(100.0)
    tape.backward(y)
    return x.grad.numpy()
