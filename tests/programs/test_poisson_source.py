"""A source is found from what it causes: the Poisson equation is solved by red-black successive over-relaxation, in
place, and the gradient through all sweeps is that of the adjoint equation.
"""

import numpy as np
import pytest

import tinote as ti

N, SWEEPS = 11, 45
OMEGA = 2 / (1 + np.sin(np.pi / (N + 1)))
H = 1 / (N + 1)


def laplacian() -> np.ndarray:
    """Minus the five-point Laplacian on the unit square with zero boundary, as a matrix."""
    line = 2 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
    return (np.kron(line, np.eye(N)) + np.kron(np.eye(N), line)) / H**2


@pytest.mark.parametrize("sweep_inside", [False, True])
def test_a_source_is_found(sweep_inside: bool) -> None:
    """`sweep_inside`: the sweeps are a serial loop in the kernel, or launches of their own."""
    ti.init(default_fp=ti.f64)
    u = ti.field(ti.f64, shape=(N + 2, N + 2), needs_grad=True)
    f = ti.field(ti.f64, shape=(N + 2, N + 2), needs_grad=True)
    measured = ti.field(ti.f64, shape=(N + 2, N + 2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.func
    def relax(i, j):
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        u[i, j] = (1 - OMEGA) * u[i, j] + OMEGA * 0.25 * (around + H**2 * f[i, j])

    @ti.kernel
    def sweep(colour: ti.i32):
        for i, j in ti.ndrange((1, N + 1), (1, N + 1)):
            if (i + j) % 2 == colour:
                relax(i, j)

    @ti.kernel
    def all_sweeps():
        ti.loop_config(serialize=True)
        for s in range(2 * SWEEPS):
            for i in range(1, N + 1):
                for j in range(1, N + 1):
                    if (i + j) % 2 == s % 2:
                        relax(i, j)

    @ti.kernel
    def misfit():
        for at in ti.grouped(u):
            loss[None] += 0.5 * (u[at] - measured[at]) ** 2

    def solve() -> None:
        u.fill(0)
        if sweep_inside:
            all_sweeps()
        else:
            for s in range(2 * SWEEPS):
                sweep(s % 2)

    A = laplacian()
    y = (np.arange(N)[:, None] + 1) * H
    x = y.T
    truth = np.exp(-40 * ((x - 0.3) ** 2 + (y - 0.6) ** 2)) - 0.5 * np.exp(-30 * (x - 0.7) ** 2)
    data = np.linalg.solve(A, truth.ravel())
    measured.from_numpy(np.pad(data.reshape(N, N), 1))

    guess = np.zeros((N, N))
    direction = previous = np.zeros((N, N))
    losses: list[float] = []
    for iteration in range(8):  # conjugate gradients
        f.from_numpy(np.pad(guess, 1))
        with ti.ad.Tape(loss):
            solve()
            misfit()
        losses.append(loss[None])
        gradient = f.grad.to_numpy()[1:-1, 1:-1]
        residual = np.linalg.solve(A, guess.ravel()) - data
        adjoint = np.linalg.solve(A.T, residual).reshape(N, N)
        assert loss[None] == pytest.approx(0.5 * residual @ residual, rel=1e-6, abs=1e-14)
        np.testing.assert_allclose(gradient, adjoint, rtol=1e-5, atol=1e-6 * abs(adjoint).max())
        beta = 0.0 if iteration == 0 else (gradient**2).sum() / (previous**2).sum()
        direction, previous = beta * direction - gradient, gradient
        change = np.linalg.solve(A, direction.ravel())
        guess = guess + (gradient**2).sum() / (change @ change) * direction
    assert losses[-1] < 1e-3 * losses[0]
