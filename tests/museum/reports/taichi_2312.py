"""A variable is made in an `if`, written again in one inside of it, and squared.

The compiler failed on its own intermediate representation.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/2312"
RIGHT = 6.0
KNOWN = "the inner condition never holds: d x²/dx = 2x, at x = 3"


def dialect(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x[None] = 3.0

    @ti.kernel
    def square():
        if x[None] > x[None] - 1:
            m = x[None]
            if x[None] < x[None] - 1:
                m = x[None]
            loss[None] = m * m

    with ti.ad.Tape(loss):
        square()
    return x.grad[None]
