"""A vector that is carried through a loop is made again of its own components in each iteration.

Values were right; the derivative mixed components of different iterations.
"""

import numpy as np

REPORT = "https://github.com/Genesis-Embodied-AI/quadrants/issues/797"
RIGHT = [float(3 * 0.7**2 * np.cos(0.7**3))]
KNOWN = "the second component after two iterations is sin(x³): 3x² cos(x³), at x = 0.7"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 0.7

    @ti.kernel
    def recurrence(n: ti.i32):
        for i in x:
            v = ti.Vector([x[i], 0.0])
            for _ in range(n):
                v = ti.Vector([v[0] * x[i], ti.sin(v[0] * x[i])])
            y[None] += v[1]

    with ti.ad.Tape(y):
        recurrence(2)
    return x.grad.to_numpy()
