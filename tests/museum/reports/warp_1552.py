"""A maximum over a grid of candidates, in a loop that skips some of them with `continue`.

The derivative was that of the last candidate looked at, whichever had won.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1552"
COEFFICIENTS = np.array([[1.0, 0.0, 5.0], [0.0, 2.0, -0.5], [3.0, 0.0, 0.5]])
RIGHT = [10.0, -1.5]
KNOWN = "by hand: for x > 0 the largest coefficient wins (5 · (1 + 1)), for x < 0 the smallest"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    c, x = ti.field(ti.f64, (3, 3)), ti.field(ti.f64, 2, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    c.from_numpy(COEFFICIENTS)
    x.from_numpy(np.array([2.0, -2.0]))

    @ti.kernel
    def largest(n: ti.i32):
        for i in x:
            best = -1e20
            for p in range(n):
                for q in range(n):
                    if c[p, q] == 0.0:
                        continue
                    v = x[i] * c[p, q] * (p + 1 + (q == 2))
                    if v > best:
                        best = v
            y[None] += best

    with ti.ad.Tape(y):
        largest(3)
    return x.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def largest(n: int, c: wp.array2d(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        best = float(-1e20)
        for p in range(n):
            for q in range(n):
                if c[p, q] == 0.0:
                    continue
                last = float(0.0)
                if q == 2:
                    last = float(1.0)
                v = x[i] * c[p, q] * (float(p + 1) + last)
                if v > best:
                    best = v
        wp.atomic_add(y, 0, best)

    c = wp.array(COEFFICIENTS, dtype=float, device="cpu")
    x = wp.array(np.array([2.0, -2.0]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(largest, 2, inputs=[3, c, x, y], device="cpu")
    tape.backward(y)
    return x.grad.numpy()
