"""The norm of a vector that is zero.

The gradient was NaN, which an optimiser spreads to all parameters.
"""

REPORT = "https://github.com/pytorch/pytorch/issues/2421"
RIGHT = [0.0, 0.0]
KNOWN = "the subgradient of least norm; every vector of at most unit length is one"
CONVENTION = "A norm has the gradient 0 at 0, as `abs` has the derivative 0 there."


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.Vector.field(2, ti.f64, shape=1, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def length():
        for i in x:
            y[None] += x[i].norm()

    with ti.ad.Tape(y):
        length()
    return x.grad.to_numpy()[0]


def jax(jax):
    return jax.grad(jax.numpy.linalg.norm)(jax.numpy.zeros(2)).tolist()
