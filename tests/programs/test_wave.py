"""The wave equation in two dimensions, and the gradient of its final state through all steps."""

import numpy as np

import tinote as ti


def test_wave_equation_and_its_gradient() -> None:
    ti.init(default_fp=ti.f64)
    n, steps, dt, dx = 16, 12, 0.05, 1.0 / 16
    p = ti.field(ti.f64, shape=(steps + 1, n, n), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    c2 = 0.05

    @ti.kernel
    def step(t: ti.i32):
        for i, j in ti.ndrange((1, n - 1), (1, n - 1)):
            laplacian = (
                p[t - 1, i - 1, j] + p[t - 1, i + 1, j] + p[t - 1, i, j - 1] + p[t - 1, i, j + 1] - 4 * p[t - 1, i, j]
            ) / dx**2
            p[t, i, j] = 2 * p[t - 1, i, j] - p[t - 2, i, j] + c2 * dt * dt * laplacian * (1 + p[t - 1, i, j] ** 2)

    @ti.kernel
    def measure():
        for i, j in ti.ndrange(n, n):
            loss[None] += p[steps, i, j] ** 2 * (i + j)

    x = np.linspace(-1, 1, n)
    start = np.zeros((steps + 1, n, n))
    start[0] = start[1] = np.exp(-6 * (x[:, None] ** 2 + (x - 0.3) ** 2))

    def reference(begin: np.ndarray) -> tuple[np.ndarray, float]:
        q = begin.copy()
        for t in range(2, steps + 1):
            a = q[t - 1]
            laplacian = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]) / dx**2
            q[t, 1:-1, 1:-1] = (
                2 * a[1:-1, 1:-1] - q[t - 2, 1:-1, 1:-1] + c2 * dt * dt * laplacian * (1 + a[1:-1, 1:-1] ** 2)
            )
        return q, (q[steps] ** 2 * np.add.outer(np.arange(n), np.arange(n))).sum()

    p.from_numpy(start)
    with ti.ad.Tape(loss=loss):
        for t in range(2, steps + 1):
            step(t)
        measure()
    expected, value = reference(start)
    np.testing.assert_allclose(p.to_numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(loss[None], value, rtol=1e-12)
    gradient = p.grad.to_numpy()
    for at in ((0, 8, 8), (1, 8, 8), (1, 3, 12), (0, 0, 5), (1, 15, 7)):
        h = 1e-5
        moved = [start.copy(), start.copy()]
        moved[0][at] += h
        moved[1][at] -= h
        difference = (reference(moved[0])[1] - reference(moved[1])[1]) / (2 * h)
        np.testing.assert_allclose(gradient[at], difference, rtol=1e-6, atol=1e-8)
