"""A component of a local vector is read, added to and written back, three times.

Written as `v[0] = v[0] + x`, and not as `v[0] += x`, each earlier addition was counted once more per later one.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1697"
RIGHT = [3.0]
KNOWN = "v[0] is 3x after three additions, so its derivative is 3"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 0.5

    @ti.kernel
    def add_to_a_component():
        for i in x:
            v = ti.Vector([0.0, 1.0])
            v[0] = v[0] + x[i]
            v[0] = v[0] + x[i]
            v[0] = v[0] + x[i]
            y[None] += v[0]

    with ti.ad.Tape(y):
        add_to_a_component()
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def add_to_a_component(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        v = wp.vec2(0.0, 1.0)
        v[0] = v[0] + x[0]
        v[0] = v[0] + x[0]
        v[0] = v[0] + x[0]
        y[0] = v[0]

    x = wp.array(np.array([0.5]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(add_to_a_component, 1, inputs=[x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()
