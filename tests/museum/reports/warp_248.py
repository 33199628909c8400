"""The components of a vector in memory are written one by one.

The gradient of the input was zero.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/248"
RIGHT = [9.0, 9.0, 9.0]
KNOWN = "the components are 2x, 3x and 4x, and their sum is differentiated"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 3, needs_grad=True), ti.Vector.field(3, ti.f64, shape=3, needs_grad=True)
    total = ti.field(ti.f64, (), needs_grad=True)
    x.fill(1.0)

    @ti.kernel
    def components():
        for i in x:
            y[i].x = x[i] * 2.0
            y[i].y = x[i] * 3.0
            y[i].z = x[i] * 4.0

    @ti.kernel
    def add():
        for i in y:
            total[None] += y[i].sum()

    with ti.ad.Tape(total):
        components()
        add()
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def components(x: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        y[i].x = x[i] * 2.0
        y[i].y = x[i] * 3.0
        y[i].z = x[i] * 4.0

    x = wp.array(np.ones(3), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(3, dtype=wp.vec3, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(components, 3, inputs=[x, y], device="cpu")
    tape.backward(grads={y: wp.array(np.ones((3, 3)), dtype=wp.vec3, device="cpu")})
    return x.grad.numpy()
