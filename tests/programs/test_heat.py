"""Which temperature was there before? A state from the past is reconstructed through nonlinear diffusion, whose two
fields change places every step: the tape keeps what they held.
"""

import numpy as np

import tinote as ti

N, STEPS, RATE = 24, 30, 0.15


def conductivity(u: np.ndarray) -> np.ndarray:
    return RATE / (1 + u * u)


def flow(u: np.ndarray) -> np.ndarray:
    """The change in one step, on a torus: the flux through an edge is the mean conductivity times the difference."""
    change = np.zeros_like(u)
    for axis in (0, 1):
        other = np.roll(u, -1, axis)
        flux = 0.5 * (conductivity(u) + conductivity(other)) * (other - u)
        change += flux - np.roll(flux, 1, axis)
    return change


def flow_adjoint(u: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """The transposed derivative of `flow` at u, applied to a seed."""
    slope = -2 * RATE * u / (1 + u * u) ** 2
    found = np.zeros_like(u)
    for axis in (0, 1):
        other, other_slope = np.roll(u, -1, axis), np.roll(slope, -1, axis)
        flux_seed = seed - np.roll(seed, -1, axis)
        mean = 0.5 * (conductivity(u) + conductivity(other))
        found += flux_seed * (0.5 * slope * (other - u) - mean)
        found += np.roll(flux_seed * (0.5 * other_slope * (other - u) + mean), 1, axis)
    return found


def test_an_earlier_temperature_is_reconstructed() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    initial = ti.field(ti.f64, shape=(N, N), needs_grad=True)
    buffers = [ti.field(ti.f64, shape=(N, N), needs_grad=True) for _ in range(2)]
    seen = ti.field(ti.f64, shape=(N, N))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.func
    def k(u):
        return RATE / (1.0 + u**2)

    @ti.func
    def flux(u: ti.template(), here, there):
        return (k(u[here]) + k(u[there])) / 2 * (u[there] - u[here])

    @ti.kernel
    def diffuse(new: ti.template(), old: ti.template()):
        for here in ti.grouped(old):
            change = 0.0
            for d in ti.static([(1, 0), (-1, 0), (0, 1), (0, -1)]):
                there = (here + ti.Vector(d) + N) % N
                change += flux(old, here, there)
            new[here] = old[here] + change

    @ti.kernel
    def compare(u: ti.template()):
        for i, j in u:
            loss[None] += (u[i, j] - seen[i, j]) ** 2 / 2

    def simulate():
        buffers[0].copy_from(initial)
        for t in range(STEPS):
            diffuse(buffers[(t + 1) % 2], buffers[t % 2])
        return buffers[STEPS % 2]

    y, x = np.meshgrid(np.linspace(0, 2 * np.pi, N, endpoint=False), np.linspace(0, 2 * np.pi, N, endpoint=False))
    truth = 1.5 * np.exp(-3 * (1 - np.cos(x - 2)) - 2 * (1 - np.cos(y - 4))) + 0.3 * np.sin(2 * x + y)
    initial.from_numpy(truth)
    seen.from_numpy(simulate().to_numpy())

    guess = np.zeros((N, N))
    losses: list[float] = []
    for iteration in range(40):
        initial.from_numpy(guess)
        with ti.ad.Tape(loss):
            compare(simulate())
        losses.append(loss[None])
        gradient = initial.grad.to_numpy()
        if iteration in (0, 20):
            states = [guess]
            for _ in range(STEPS):
                states.append(states[-1] + flow(states[-1]))
            adjoint = states[-1] - seen.to_numpy()
            np.testing.assert_allclose(losses[-1], (adjoint**2).sum() / 2, rtol=1e-12)
            for state in reversed(states[:-1]):
                adjoint = adjoint + flow_adjoint(state, adjoint)
            np.testing.assert_allclose(gradient, adjoint, rtol=1e-10, atol=1e-14)
        guess = guess - 1.5 * gradient
    assert losses[-1] < 1e-3 * losses[0]
    assert abs(guess - truth).max() < 0.1 * abs(truth).max()
