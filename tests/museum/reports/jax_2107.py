"""The derivative of softplus at 0, written without overflow as max(x, 0) + log(1 + exp(-|x|)).

It was 0 and is 1/2: the terms have kinks at 0 whose conventions have to add up.
"""

REPORT = "https://github.com/jax-ml/jax/issues/2107"
RIGHT = 0.5
KNOWN = "the function is smooth, with the derivative 1 / (1 + exp(-x))"
CONVENTION = (
    "At a kink of `max` the derivative here is that of the second operand, and that of `abs` is 0, so this way of "
    "writing gives 0 at x = 0 exactly. `log(exp(0) + exp(x))` has no kink and gives 1/2."
)
TINOTE = 0.0


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def softplus():
        y[None] = ti.max(x[None], 0.0) + ti.log(1.0 + ti.exp(-abs(x[None])))

    with ti.ad.Tape(y):
        softplus()
    return x.grad[None]


def jax(jax):
    def softplus(x):
        return jax.numpy.maximum(x, 0.0) + jax.numpy.log(1.0 + jax.numpy.exp(-abs(x)))

    return float(jax.grad(softplus)(0.0))
