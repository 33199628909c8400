"""A function sums in a loop of unknown length and returns the reciprocal of the sum.

The adjoint divided by what the sum began with: infinite where it began with 0, and plausibly wrong where it did not.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1740"
RIGHT = [-0.0625, -0.0625]
KNOWN = "d (1 / Σx)/dx = -1 / (Σx)², with Σx = 4"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.0, 3.0]))

    @ti.func
    def reciprocal_of_the_sum(n):
        total = 0.0
        for j in range(n):
            total += x[j]
        return 1.0 / total

    @ti.kernel
    def evaluate(n: ti.i32):
        for _ in range(1):
            y[None] += reciprocal_of_the_sum(n)

    with ti.ad.Tape(y):
        evaluate(2)
    return x.grad.to_numpy()


def warp(wp):
    @wp.func
    def reciprocal_of_the_sum(n: int, x: wp.array(dtype=float)) -> float:
        total = float(0.0)
        for j in range(n):
            total += x[j]
        return 1.0 / total

    @wp.kernel
    def evaluate(n: int, x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = reciprocal_of_the_sum(n, x)

    x = wp.array(np.array([1.0, 3.0]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(evaluate, 1, inputs=[2, x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()
