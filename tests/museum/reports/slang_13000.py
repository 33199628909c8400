"""A dense layer as two nested loops, followed by another one.

Derivatives by the weights of the layer were right, those by its input wrong, so that everything before it was.
"""

import numpy as np

REPORT = "https://github.com/shader-slang/slang/issues/13000"
W1 = np.array([[0.2, -0.4], [0.5, 0.1], [-0.3, 0.7]])
W2 = np.array([[1.0, -2.0, 0.5]])
X = np.array([0.6, -0.9])
RIGHT = ((W2 * (1 - np.tanh(W1 @ X) ** 2)) @ W1)[0].tolist()
KNOWN = "the chain rule in matrices: W₂ diag(1 - tanh²(W₁x)) W₁"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    w1, w2 = ti.field(ti.f64, (3, 2)), ti.field(ti.f64, (1, 3))
    x, h = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, 3, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)
    w1.from_numpy(W1)
    w2.from_numpy(W2)
    x.from_numpy(X)

    @ti.kernel
    def hidden(inputs: ti.i32):
        for i in h:
            total = 0.0
            for j in range(inputs):
                total += w1[i, j] * x[j]
            h[i] = ti.tanh(total)

    @ti.kernel
    def output():
        for i, j in w2:
            y[None] += w2[i, j] * h[j]

    with ti.ad.Tape(y):
        hidden(2)
        output()
    return x.grad.to_numpy()
