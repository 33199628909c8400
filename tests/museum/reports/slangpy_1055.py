"""A function that contains a loop with weights that depend on the data returns a vector.

With a scalar in place of the vector the gradient was right, with the vector it had wrong sizes and signs.
"""

import numpy as np

REPORT = "https://github.com/shader-slang/slangpy/issues/1055"
X = np.array([0.3, -0.2, 0.8, 0.1])


def value(x):
    weights = np.exp(-((x[1:] - x[:-1]) ** 2))
    return (weights * x[1:]).sum() + 2 * (weights * x[1:] ** 2).sum() + 3 * weights.sum()


RIGHT = [(value(X + 1e-6 * e) - value(X - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
TOLERANCE = 1e-7
KNOWN = "central differences of the same function in NumPy"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 4, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(X)

    @ti.func
    def filtered(n):
        total = ti.Vector([0.0, 0.0, 0.0])
        for j in range(1, n):
            weight = ti.exp(-((x[j] - x[j - 1]) ** 2))
            total += weight * ti.Vector([x[j], x[j] * x[j], 1.0])
        return total

    @ti.kernel
    def evaluate(n: ti.i32):
        for _ in range(1):
            y[None] += filtered(n).dot(ti.Vector([1.0, 2.0, 3.0]))

    with ti.ad.Tape(y):
        evaluate(4)
    return x.grad.to_numpy()
