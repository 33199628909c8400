"""Both branches of a conditional expression read the same element.

The backward pass returned zeros; the same written with `if` and `else` was right.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1736"
RIGHT = [0.25, 0.25]
KNOWN = "d (x / 4)/dx = 1/4"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, d = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, 2)
    y = ti.field(ti.f64, (), needs_grad=True)
    x.fill(3.0)
    d.fill(4.0)

    @ti.kernel
    def chosen(flag: ti.i32):
        for i in x:
            y[None] += x[i] / d[i] if flag else x[i]

    with ti.ad.Tape(y):
        chosen(1)
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def chosen(flag: wp.bool, x: wp.array(dtype=float), d: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        value = x[i] / d[i] if flag else x[i]
        y[i] = value

    x = wp.array(np.array([3.0, 3.0]), dtype=float, requires_grad=True, device="cpu")
    d = wp.array(np.array([4.0, 4.0]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(2, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(chosen, 2, inputs=[True, x, d, y], device="cpu")
    tape.backward(grads={y: wp.array(np.array([1.0, 1.0]), dtype=float, device="cpu")})
    return x.grad.numpy()
