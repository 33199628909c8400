"""The derivative of max(x, 0) at x = 0.

Systems differ: 0, 1/2 or 1. Mathematics allows each number between 0 and 1 there.
"""

import numpy as np

REPORT = "https://github.com/jax-ml/jax/issues/37821"
RIGHT = 0.0
KNOWN = "the convention below"
CONVENTION = "Of two equal operands the second has the derivative 1: max(x, 0) has 0 at 0, and max(0, x) has 1."


def dialect(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def ramp():
        y[None] = ti.max(x[None], 0.0)

    with ti.ad.Tape(y):
        ramp()
    return x.grad[None]


def jax(jax):
    return float(jax.grad(lambda x: jax.numpy.maximum(x, 0.0))(0.0))


def warp(wp):
    @wp.kernel
    def ramp(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = wp.max(x[0], 0.0)

    x = wp.array(np.zeros(1), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(ramp, 1, inputs=[x, y], device="cpu")
    tape.backward(y)
    return float(x.grad.numpy()[0])
