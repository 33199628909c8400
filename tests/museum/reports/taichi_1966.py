"""A field between two kernels has no gradient, since none was asked for.

The chain of derivatives ended there, and the gradient was 0 without a word.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/1966"
RIGHT = 9.0
KNOWN = "d (3x)²/dx = 18x, at x = 1/2"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, loss = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    between = ti.field(ti.f64, ())
    x[None] = 0.5

    @ti.kernel
    def first():
        between[None] = 3 * x[None]

    @ti.kernel
    def second():
        loss[None] = between[None] ** 2

    with ti.ad.Tape(loss):
        first()
        second()
    return x.grad[None]
