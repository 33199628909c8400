"""Each element of one array has all elements of another one added to it.

The derivative by the other array was 1, and 5 where a local variable was used in between.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/8356"
RIGHT = [[1.0] * 5, [5.0] * 3]
KNOWN = "x has five elements, to each of which every y is added once"


def dialect(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, 5, needs_grad=True), ti.field(ti.f32, 3, needs_grad=True)
    y.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def add():
        for i in x:
            for j in range(3):
                x[i] += y[j]

    add()
    x.grad.fill(1.0)
    add.grad()
    return [x.grad.to_numpy(), y.grad.to_numpy()]
