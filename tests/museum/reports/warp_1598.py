"""A function returns a struct, whose member is used after the call.

Derivatives through the struct were zero.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1598"
RIGHT = [8.0, 16.0, 24.0]
KNOWN = "d (2x · 2x)/dx = 8x, at x = (1, 2, 3)"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    vec3 = ti.types.vector(3, ti.f64)
    carrier = ti.types.struct(v=vec3)
    x = ti.Vector.field(3, ti.f64, shape=1, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    x[0] = [1.0, 2.0, 3.0]

    @ti.func
    def twice(v):
        return carrier(v=2.0 * v)

    @ti.kernel
    def through_a_struct():
        for i in x:
            s = twice(x[i])
            y[None] += s.v.dot(s.v)

    with ti.ad.Tape(y):
        through_a_struct()
    return x.grad.to_numpy()[0]


def warp(wp):
    @wp.struct
    class Carrier:
        v: wp.vec3

    @wp.func
    def twice(v: wp.vec3) -> Carrier:
        s = Carrier()
        s.v = 2.0 * v
        return s

    @wp.kernel
    def through_a_struct(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
        s = twice(x[0])
        y[0] = wp.dot(s.v, s.v)

    x = wp.array(np.array([[1.0, 2.0, 3.0]]), dtype=wp.vec3, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(through_a_struct, 1, inputs=[x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()[0]
