"""A loop multiplies by the variable, and begins with a constant.

The derivative was that of the last iteration alone.
"""

REPORT = "https://github.com/swiftlang/swift/pull/27796"
RIGHT = [6.0]
KNOWN = "x² from two multiplications: 2x, at x = 3"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 3.0

    @ti.kernel
    def square(n: ti.i32):
        for i in x:
            result = 1.0
            for _ in range(n):
                result = result * x[i]
            y[None] += result

    with ti.ad.Tape(y):
        square(2)
    return x.grad.to_numpy()
