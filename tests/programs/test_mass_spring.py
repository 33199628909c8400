"""A hanging net of springs with damping, in a data-oriented class, and the fit of its stiffness by gradient."""

import numpy as np
import pytest

import tinote as ti


@ti.data_oriented
class Net:
    """An `n` by `n` net, fixed at two corners."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.dt = 1e-3
        self.x = ti.Vector.field(3, ti.f64, shape=(n, n))
        self.v = ti.Vector.field(3, ti.f64, shape=(n, n))
        self.offsets = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)]

    @ti.kernel
    def start(self):
        for i, j in self.x:
            self.x[i, j] = ti.Vector([i * 0.1, 1.0, j * 0.1])
            self.v[i, j] = ti.Vector([0, 0, 0])

    @ti.kernel
    def step(self, stiffness: ti.f64, damping: ti.f64):
        for at in ti.grouped(self.x):
            force = ti.Vector([0.0, -9.8, 0.0], dt=ti.f64)
            for d in ti.static(self.offsets):
                other = at + ti.Vector([d[0], d[1]])
                if 0 <= other[0] < self.n and 0 <= other[1] < self.n:
                    relative = self.x[at] - self.x[other]
                    rest = ti.cast(0.1 * (d[0] ** 2 + d[1] ** 2) ** 0.5, ti.f64)
                    force += -stiffness * relative.normalized() * (relative.norm() - rest)
            self.v[at] = (self.v[at] + self.dt * force) * ti.exp(-damping * self.dt)
        for i, j in self.x:
            if not (j == 0 and (i == 0 or i == self.n - 1)):
                self.x[i, j] += self.dt * self.v[i, j]


def test_mass_spring_net() -> None:
    n, steps, stiffness, damping = 6, 50, 500.0, 0.7
    net = Net(n)
    net.start()
    ij = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1)
    x = np.stack([ij[..., 0] * 0.1, np.ones((n, n)), ij[..., 1] * 0.1], -1)
    v = np.zeros_like(x)
    for _ in range(steps):
        net.step(stiffness, damping)
        force = np.zeros_like(x)
        force[..., 1] = -9.8
        for di, dj in net.offsets:
            rest = np.float64(np.float32(0.1 * (di**2 + dj**2) ** 0.5))
            for i in range(n):
                for j in range(n):
                    if 0 <= i + di < n and 0 <= j + dj < n:
                        r = x[i, j] - x[i + di, j + dj]
                        length = np.linalg.norm(r)
                        force[i, j] -= stiffness * r / length * (length - rest)
        v = (v + net.dt * force) * np.exp(-damping * net.dt)
        moving = np.ones((n, n, 1))
        moving[0, 0] = moving[n - 1, 0] = 0
        x = x + net.dt * v * moving
    # Constants such as 0.1 are of the default float type in kernels.
    np.testing.assert_allclose(net.x.to_numpy(), x, atol=1e-6)
    assert net.x[3, n - 1].y < 1


def test_the_stiffness_of_a_chain_is_found_by_gradient() -> None:
    """Differentiate a short simulation, each step in its own slice, with respect to the stiffness."""
    ti.init(default_fp=ti.f64)
    n, steps, dt = 5, 40, 0.02
    x = ti.field(ti.f64, shape=(steps + 1, n), needs_grad=True)
    v = ti.field(ti.f64, shape=(steps + 1, n), needs_grad=True)
    stiffness = ti.field(ti.f64, shape=(), needs_grad=True)
    target = ti.field(ti.f64, shape=n)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(n):
            force = -0.5 * v[t, i] - 1.0
            if i > 0:
                force -= stiffness[None] * (x[t, i] - x[t, i - 1])
            else:
                force -= stiffness[None] * x[t, i]
            if i < n - 1:
                force -= stiffness[None] * (x[t, i] - x[t, i + 1])
            v[t + 1, i] = v[t, i] + dt * force
            x[t + 1, i] = x[t, i] + dt * (v[t, i] + dt * force)

    @ti.kernel
    def measure():
        for i in range(n):
            loss[None] += (x[steps, i] - target[i]) ** 2

    def simulate() -> None:
        for t in range(steps):
            step(t)
        measure()

    stiffness[None] = 7.0
    simulate()
    target.from_numpy(x.to_numpy()[steps])
    stiffness[None] = 3.0
    losses = []
    for _ in range(150):
        with ti.ad.Tape(loss=loss):
            simulate()
        losses.append(loss[None])
        stiffness[None] -= np.clip(200 * stiffness.grad[None], -0.5, 0.5)
    assert losses[-1] < 1e-4 * losses[0]
    assert stiffness[None] == pytest.approx(7, abs=0.1)
