"""A variable is a second name of another one, and is then written in both branches of a condition.

The gradient was cut off at the copy.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/202"
RIGHT = [3.0, 4.0, 6.0]
KNOWN = "x³ for negative x and x² else: 3x² at -1, 2x at 2 and 3"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([-1.0, 2.0, 3.0]))

    @ti.func
    def power(a):
        b = a
        if b > 0.0:
            b = a * a
        else:
            b = a * a * a
        return b

    @ti.kernel
    def powers():
        for i in x:
            y[None] += power(x[i])

    with ti.ad.Tape(y):
        powers()
    return x.grad.to_numpy()


def warp(wp):
    @wp.func
    def power(a: wp.float32):
        b = a
        if b > 0.0:
            b = a * a
        else:
            b = a * a * a
        return b

    @wp.kernel
    def powers(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = power(x[i])

    x = wp.array(np.array([-1.0, 2.0, 3.0]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(3, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(powers, 3, inputs=[x, y], device="cpu")
    tape.backward(grads={y: wp.array(np.ones(3), dtype=float, device="cpu")})
    return x.grad.numpy()
