"""The gradients of launches are called by hand, again and again, and compared with those of a tape.

`kernel.grad()` adds to what gradients hold, where a tape sets them to 0 first: both are meant.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/8119"
RIGHT = [2.0, 4.0, 2.0]
KNOWN = "d 2x/dx = 2; the second call by hand adds another 2, the tape begins at 0"
CONVENTION = "A tape clears gradients when it begins, `kernel.grad()` accumulates: the documented behaviour of both."


def dialect(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def double():
        y[None] += 2 * x[None]

    found = []
    for _ in range(2):
        double()
        y.grad[None] = 1.0
        double.grad()
        found.append(x.grad[None])
    with ti.ad.Tape(y):
        double()
    return [*found, x.grad[None]]
