"""A running minimum, kept by `if (neighbour <= least) least = neighbour`.

The gradient went to the wrong element; with the difference compared to 0 it was right.
"""

import numpy as np

REPORT = "https://github.com/EnzymeAD/Enzyme/issues/2002"
RIGHT = [0.0, 0.0, 1.0, 0.0]
KNOWN = "the derivative of a minimum is 1 at the one that is least"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 4, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([3.0, 1.5, 0.5, 2.0]))

    @ti.kernel
    def least(n: ti.i32):
        for _ in range(1):
            found = x[0]
            for i in range(1, n):
                if x[i] <= found:
                    found = x[i]
            y[None] += found

    with ti.ad.Tape(y):
        least(4)
    return x.grad.to_numpy()
