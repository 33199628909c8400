"""The standard deviation of equal numbers.

Its gradient was NaN. The function has a kink there, as a norm has at 0.
"""

import numpy as np

REPORT = "https://github.com/jax-ml/jax/issues/11716"
RIGHT = [0.0, 0.0]
KNOWN = "the standard deviation is the norm of the differences to the mean: the convention for norms"
CONVENTION = (
    "A square root has an infinite slope at 0, and times a 0 that is NaN: written out like this, the kink shows. "
    "`norm()` is known to have one, and has the gradient 0 there."
)
TINOTE = [float("nan")] * 2


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.ones(2))

    @ti.kernel
    def deviation(n: ti.i32):
        for _ in range(1):
            mean = 0.0
            for i in range(n):
                mean += x[i] / n
            variance = 0.0
            for i in range(n):
                variance += (x[i] - mean) ** 2 / n
            y[None] += ti.sqrt(variance)

    with ti.ad.Tape(y):
        deviation(2)
    return x.grad.to_numpy()


def jax(jax):
    return jax.grad(jax.numpy.std)(jax.numpy.ones(2)).tolist()
