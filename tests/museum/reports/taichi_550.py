"""An element is read, and then written by a later kernel, under one tape.

The manual forbade it and nothing noticed it: the gradient was computed from the later value.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/550"
RIGHT = [24.0, 24.0]
KNOWN = "the loss is b x³ + b (x³ + 8): 6 b x² by x and 2x³ + 8 by b, at x = 2, b = 1"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, b, y = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))
    loss = ti.field(ti.f64, (), needs_grad=True)
    x[None], b[None], y[None] = 2.0, 1.0, 1.0

    @ti.kernel
    def multiply():
        y[None] = y[None] * x[None]

    @ti.kernel
    def read():
        loss[None] += b[None] * y[None]

    @ti.kernel
    def add():
        y[None] += 8.0

    with ti.ad.Tape(loss):
        for _ in range(3):
            multiply()
        read()
        add()
        read()
    return [x.grad[None], b.grad[None]]
