"""The second derivative of tanh(u) u² where tanh(u) is 1 to the last bit.

Forward mode gave the right number, and everything with reverse mode outermost 0.
"""

REPORT = "https://github.com/jax-ml/jax/issues/40315"
RIGHT = -2e16
KNOWN = "with tanh constant at -1 what is left is -u² = -(cv)², whose second derivative is -2c², c = 10⁸"


def tinote(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)

    @ti.kernel
    def value(v: ti.f64) -> ti.f64:
        u = -1e8 * v
        return ti.tanh(u) * u * u

    return ti.ad.grad(ti.ad.grad(value))(1.0)


def jax(jax):
    def value(v):
        u = -1e8 * v
        return jax.numpy.tanh(u) * u * u

    return float(jax.grad(jax.grad(value))(1.0))
