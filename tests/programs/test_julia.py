"""The Julia set of z² + c as a picture of escape times."""

import numpy as np

import tinote as ti


def test_julia_set() -> None:
    n, most = 80, 50
    pixels = ti.field(dtype=float, shape=(n * 2, n))

    @ti.func
    def complex_sqr(z):
        return ti.Vector([z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2])

    @ti.kernel
    def paint(t: float):
        for i, j in pixels:
            c = ti.Vector([-0.8, ti.cos(t) * 0.2])
            z = ti.Vector([i / n - 1, j / n - 0.5]) * 2
            iterations = 0
            while z.norm() < 20 and iterations < most:
                z = complex_sqr(z) + c
                iterations += 1
            pixels[i, j] = 1 - iterations * 0.02

    for t in (0.0, 0.7):
        paint(t)
        c = -0.8 + 0.2j * np.cos(t)
        x, y = np.meshgrid(np.arange(2 * n) / n - 1, np.arange(n) / n - 0.5, indexing="ij")
        z, iterations = 2 * (x + 1j * y), np.zeros((2 * n, n), int)
        for _ in range(most):
            going = abs(z) < 20
            z = np.where(going, z * z + c, z)
            iterations += going
        found = np.round((1 - pixels.to_numpy()) / 0.02).astype(int)
        # Orbits are chaotic: single precision decides a few pixels near the boundary differently.
        assert (found == iterations).mean() > 0.98
        assert abs(found - iterations).mean() < 0.15
        assert iterations.min() < 5 < 40 < iterations.max()
