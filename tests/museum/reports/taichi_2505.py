"""An element is multiplied in place: x = cos θ · x.

The derivative by the angle used the new x; into another field it was right.
"""

import math

REPORT = "https://github.com/taichi-dev/taichi/issues/2505"
RIGHT = [-2 * math.sin(0.5), math.cos(0.5)]
KNOWN = "d (x cos θ)/dθ = -x sin θ and d/dx = cos θ, at x = 2, θ = 0.5"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, angle = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    x[None], angle[None] = 2.0, 0.5

    @ti.kernel
    def turn():
        x[None] = ti.cos(angle[None]) * x[None]

    @ti.kernel
    def read():
        y[None] += x[None]

    with ti.ad.Tape(y):
        turn()
        read()
    return [angle.grad[None], x.grad[None]]
