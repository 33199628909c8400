"""The same matrix is used twice in a product.

The derivative through its transpose was lost: 1 for 2.
"""

REPORT = "https://github.com/NervanaSystems/neon/issues/169"
RIGHT = 6.0
KNOWN = "x xᵀ of a matrix with one element is x²: 2x, at x = 3"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.Matrix.field(1, 1, ti.f64, shape=1, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    x.fill(3.0)

    @ti.kernel
    def product():
        for i in x:
            y[None] += (x[i] @ x[i].transpose())[0, 0]

    with ti.ad.Tape(y):
        product()
    return float(x.grad.to_numpy().ravel()[0])
