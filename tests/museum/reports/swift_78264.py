"""A loop that runs at least once tests its condition at its end.

The adjoint of the value that it carries was added to where it had to be set.
"""

REPORT = "https://github.com/swiftlang/swift/issues/78264"
RIGHT = [12.0]
KNOWN = "the loop runs twice more after the first product: x³, so 3x², at x = 2"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 1, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x[0] = 2.0

    @ti.kernel
    def cube(n: ti.i32):
        for i in x:
            result = x[i]
            k = 0
            while True:
                result = result * x[i]
                k += 1
                if k >= n:
                    break
            y[None] += result

    with ti.ad.Tape(y):
        cube(2)
    return x.grad.to_numpy()
