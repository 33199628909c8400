"""The sign of a vector is differentiated.

The adjoint that was written down for it was that of the absolute value.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1466"
RIGHT = [0.0, 0.0]
KNOWN = "the sign is constant on both sides of 0"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.Vector.field(2, ti.f64, shape=1, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    x[0] = [3.0, -2.0]

    @ti.kernel
    def signs():
        for i in x:
            y[None] += ti.math.sign(x[i]).sum()

    with ti.ad.Tape(y):
        signs()
    return x.grad.to_numpy()[0]


def warp(wp):
    @wp.kernel
    def signs(x: wp.array(dtype=wp.vec2), y: wp.array(dtype=float)):
        s = wp.sign(x[0])
        y[0] = s[0] + s[1]

    x = wp.array(np.array([[3.0, -2.0]]), dtype=wp.vec2, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(signs, 1, inputs=[x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()[0]
