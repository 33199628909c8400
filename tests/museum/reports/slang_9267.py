"""The largest of three inputs, which a loop loads one after another at an index that it counts up itself.

The gradient went to the wrong inputs, and depended on how they were loaded.
"""

import numpy as np

REPORT = "https://github.com/shader-slang/slang/issues/9267"
RIGHT = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
KNOWN = "the derivative of a maximum is 1 at the one that is largest"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, (2, 3), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([[1.0, 4.0, 2.0], [3.0, -1.0, 2.0]]))

    @ti.kernel
    def largest(n: ti.i32):
        for i in range(2):
            best = -1e9
            k = 0
            while k < n:
                best = ti.max(best, x[i, k])
                k += 1
            y[None] += best

    with ti.ad.Tape(y):
        largest(3)
    return x.grad.to_numpy()
