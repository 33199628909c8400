"""The mixed second derivative of xʸ at y = 0.

One order of differentiation gave 23, the other 1/23.
"""

REPORT = "https://github.com/jax-ml/jax/issues/12033"
RIGHT = 1 / 23
KNOWN = "∂²xʸ/∂x∂y = xʸ⁻¹ (1 + y log x), at x = 23, y = 0; the order does not matter"


def tinote(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)

    @ti.kernel
    def power(x: ti.f64, y: ti.f64) -> ti.f64:
        return x**y

    def by_x(y):
        return ti.ad.grad(power)(23.0, y)

    return ti.ad.grad(by_x)(0.0)


def jax(jax):
    power = jax.lax.pow
    return float(jax.grad(jax.grad(power, 0), 1)(23.0, 0.0))
