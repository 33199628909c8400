"""A variable that a loop of unknown length has computed is squared after the loop.

The adjoint of the square needs the value after the loop; what was replayed was the value before it.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1694"
RIGHT = [36.0]
KNOWN = "n = 3 additions of x make y = (3x)², so dy/dx = 18x, at x = 2"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 2.0

    @ti.kernel
    def square_of_a_sum(n: ti.i32):
        for i in x:
            total = 0.0
            for _ in range(n):
                total += x[i]
            y[None] += total * total

    with ti.ad.Tape(y):
        square_of_a_sum(3)
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def square_of_a_sum(n: int, x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
        total = wp.float64(0.0)
        for _ in range(n):
            total += x[0]
        y[0] = total * total

    x = wp.array(np.array([2.0]), dtype=wp.float64, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=wp.float64, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(square_of_a_sum, 1, inputs=[3, x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()
