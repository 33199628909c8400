"""The squared norm of a vector that is zero.

The function is smooth, and its gradient was NaN: 0 times the infinite slope of the square root.
"""

REPORT = "https://github.com/jax-ml/jax/issues/4177"
RIGHT = [0.0, 0.0]
KNOWN = "d |x|²/dx = 2x"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.Vector.field(2, ti.f64, shape=1, needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def squared():
        for i in x:
            y[None] += x[i].norm() ** 2

    with ti.ad.Tape(y):
        squared()
    return x.grad.to_numpy()[0]


def jax(jax):
    gradient = jax.grad(lambda x: jax.numpy.linalg.norm(x) ** 2)
    return gradient(jax.numpy.zeros(2)).tolist()
