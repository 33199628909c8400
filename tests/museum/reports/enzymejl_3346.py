"""A directional derivative of a gradient that is itself taken by forward mode.

The perturbations of both were confused: (4, 4, 6) for (2, 0, 0).
"""

import numpy as np

REPORT = "https://github.com/EnzymeAD/Enzyme.jl/issues/3346"
RIGHT = [2.0, 0.0, 0.0]
KNOWN = "the gradient of Σx² is 2x, whose derivative along the first axis is (2, 0, 0)"


def tinote(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)

    @ti.kernel
    def square(x: ti.types.ndarray(ti.f64, 1)) -> ti.f64:
        total = 0.0
        for i in range(3):
            total += x[i] ** 2
        return total

    x, direction = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 0.0])

    def slope(axis):
        return lambda x: ti.ad.jvp(square)(axis, x)[1]

    return [ti.ad.jvp(slope(axis))(direction, x)[1] for axis in np.eye(3)]


def jax(jax):
    jnp = jax.numpy

    def gradient(x):
        return jax.jacfwd(lambda x: jnp.sum(x**2))(x)

    x = jnp.array([1.0, 2.0, 3.0])
    return jax.jvp(gradient, (x,), (jnp.array([1.0, 0.0, 0.0]),))[1].tolist()
