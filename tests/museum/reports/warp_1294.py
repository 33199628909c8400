"""A kernel reads an array and writes to it in place, between a copy and a sum.

The adjoint of what was overwritten was counted along with that of the new value.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1294"
RIGHT = [1.0, 1.0, 1.0]
KNOWN = "the sum of x[i] + 1 has the derivative 1 by each x[i]"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 3, needs_grad=True), ti.field(ti.f64, 3, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.0, 2.0, 3.0]))

    @ti.kernel
    def copy():
        for i in x:
            y[i] = x[i]

    @ti.kernel
    def add_one():
        for i in y:
            y[i] = y[i] + 1.0

    @ti.kernel
    def add_up():
        for i in y:
            loss[None] += y[i]

    with ti.ad.Tape(loss):
        copy()
        add_one()
        add_up()
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def add_one(y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = y[i] + 1.0

    @wp.kernel
    def add_up(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
        wp.atomic_add(loss, 0, y[wp.tid()])

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(3, dtype=float, requires_grad=True, device="cpu")
    loss = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(add_one, 3, inputs=[y], device="cpu")
        wp.launch(add_up, 3, inputs=[y, loss], device="cpu")
    tape.backward(loss)
    return x.grad.numpy()
