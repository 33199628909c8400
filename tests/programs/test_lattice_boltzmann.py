"""Lattice Boltzmann, D2Q9 with single relaxation time: flow around a cylinder in a channel.

Nine populations a node stream to its neighbours and relax towards equilibrium. They enter at the left with a given
velocity, leave at the right without gradient, and bounce back from the walls and the cylinder.
"""

import numpy as np
import pytest

import tinote as ti

W = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)
E = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


@ti.data_oriented
class Channel:
    """A channel of `nx` by `ny` nodes; `cylinder` is its centre and radius."""

    def __init__(self, nx: int, ny: int, viscosity: float, speed: float, cylinder: tuple[float, float, float]) -> None:
        self.nx, self.ny, self.speed, self.cylinder = nx, ny, speed, cylinder
        self.inverse_tau = 1.0 / (3.0 * viscosity + 0.5)
        self.rho = ti.field(float, shape=(nx, ny))
        self.vel = ti.Vector.field(2, float, shape=(nx, ny))
        self.mask = ti.field(ti.u1, shape=(nx, ny))
        self.f_old = ti.Vector.field(9, float, shape=(nx, ny), layout=ti.Layout.SOA)
        self.f_new = ti.Vector.field(9, float, shape=(nx, ny), layout=ti.Layout.SOA)
        self.w = ti.types.vector(9, float)(W)
        self.e = ti.types.matrix(9, 2, int)(E)

    @ti.func
    def f_eq(self, rho, u):
        eu = self.e @ u
        return self.w * rho * (1.0 + 3.0 * eu + 4.5 * eu * eu - 1.5 * u.dot(u))

    @ti.kernel
    def init(self):
        self.vel.fill(0)
        self.rho.fill(1)
        for i, j in self.mask:
            x, y, r = self.cylinder
            self.mask[i, j] = (i - x) ** 2 + (j - y) ** 2 <= r**2 or j == 0 or j == self.ny - 1
        for i, j in self.f_old:
            self.f_new[i, j] = self.f_old[i, j] = self.f_eq(self.rho[i, j], self.vel[i, j])

    @ti.kernel
    def collide_and_stream(self):
        for i, j in ti.ndrange((1, self.nx - 1), (1, self.ny - 1)):
            for k in ti.static(range(9)):
                ip = i - self.e[k, 0]
                jp = j - self.e[k, 1]
                equilibrium = self.f_eq(self.rho[ip, jp], self.vel[ip, jp])
                kept = (1 - self.inverse_tau) * self.f_old[ip, jp][k]
                self.f_new[i, j][k] = kept + equilibrium[k] * self.inverse_tau

    @ti.kernel
    def update_macroscopic(self):
        for i, j in ti.ndrange((1, self.nx - 1), (1, self.ny - 1)):
            self.rho[i, j] = 0
            self.vel[i, j] = 0, 0
            for k in ti.static(range(9)):
                self.f_old[i, j][k] = self.f_new[i, j][k]
                self.rho[i, j] += self.f_new[i, j][k]
                self.vel[i, j] += ti.Vector([self.e[k, 0], self.e[k, 1]]) * self.f_new[i, j][k]
            self.vel[i, j] /= self.rho[i, j]

    @ti.kernel
    def apply_boundaries(self):
        for j in range(1, self.ny - 1):
            self.set_node(0, j, 1, j, ti.Vector([self.speed, 0.0]))
            self.set_node(self.nx - 1, j, self.nx - 2, j, self.vel[self.nx - 2, j])
        for i in range(self.nx):
            self.set_node(i, self.ny - 1, i, self.ny - 2, ti.Vector([0.0, 0.0]))
            self.set_node(i, 0, i, 1, ti.Vector([0.0, 0.0]))
        for i, j in ti.ndrange((1, self.nx - 1), (1, self.ny - 1)):
            if self.mask[i, j]:
                self.vel[i, j] = 0, 0
                self.f_old[i, j] = self.f_eq(self.rho[i, j], self.vel[i, j])

    @ti.func
    def set_node(self, i, j, inner_i, inner_j, velocity):
        """A node of the boundary takes what its inner neighbour has beyond equilibrium (Guo's extrapolation)."""
        self.vel[i, j] = velocity
        self.rho[i, j] = self.rho[inner_i, inner_j]
        self.f_old[i, j] = (
            self.f_eq(self.rho[i, j], self.vel[i, j])
            - self.f_eq(self.rho[inner_i, inner_j], self.vel[inner_i, inner_j])
            + self.f_old[inner_i, inner_j]
        )

    def step(self) -> None:
        self.collide_and_stream()
        self.update_macroscopic()
        self.apply_boundaries()


class Reference:
    """The same on arrays: `f` of shape (9, nx, ny)."""

    def __init__(self, channel: Channel) -> None:
        self.c, self.w, self.e = channel, np.array(W)[:, None, None], np.array(E)
        self.rho, self.vel = np.ones((channel.nx, channel.ny)), np.zeros((2, channel.nx, channel.ny))
        x, y, r = channel.cylinder
        i, j = np.meshgrid(np.arange(channel.nx), np.arange(channel.ny), indexing="ij")
        self.inside = ((i - x) ** 2 + (j - y) ** 2 <= r * r)[1:-1, 1:-1]
        self.f = self.equilibrium(self.rho, self.vel)

    def equilibrium(self, rho: np.ndarray, vel: np.ndarray) -> np.ndarray:
        eu = np.tensordot(self.e, vel, (1, 0))
        w = self.w if eu.ndim == 3 else self.w[..., 0]
        return w * rho * (1 + 3 * eu + 4.5 * eu**2 - 1.5 * (vel**2).sum(0))

    def extrapolate(self, to: tuple, inner: tuple, velocity: np.ndarray) -> None:
        before = self.f[:, *inner] - self.equilibrium(self.rho[inner], self.vel[:, *inner])
        self.vel[:, *to], self.rho[to] = velocity, self.rho[inner]
        self.f[:, *to] = self.equilibrium(self.rho[to], self.vel[:, *to]) + before

    def step(self) -> None:
        relaxed = self.f + self.c.inverse_tau * (self.equilibrium(self.rho, self.vel) - self.f)
        inner = (slice(1, -1), slice(1, -1))
        for k, (ex, ey) in enumerate(self.e):
            self.f[k][inner] = np.roll(relaxed[k], (ex, ey), (0, 1))[inner]
        self.rho[inner] = self.f.sum(0)[inner]
        self.vel[:, *inner] = np.tensordot(self.e, self.f, (0, 0))[:, *inner] / self.rho[inner]
        middle, every = slice(1, -1), slice(None)
        self.extrapolate((0, middle), (1, middle), np.array([[self.c.speed], [0.0]]))
        self.extrapolate((-1, middle), (-2, middle), self.vel[:, -2, middle])
        self.extrapolate((every, -1), (every, -2), np.zeros((2, 1)))
        self.extrapolate((every, 0), (every, 1), np.zeros((2, 1)))
        self.vel[:, 1:-1, 1:-1][:, self.inside] = 0
        self.f[:, 1:-1, 1:-1][:, self.inside] = self.equilibrium(self.rho, self.vel)[:, 1:-1, 1:-1][:, self.inside]


def test_lattice_boltzmann() -> None:
    channel = Channel(96, 32, viscosity=0.02, speed=0.08, cylinder=(20.0, 15.5, 4.0))
    channel.init()
    reference = Reference(channel)
    for _ in range(100):
        channel.step()
        reference.step()
    vel = channel.vel.to_numpy()
    np.testing.assert_allclose(channel.rho.to_numpy(), reference.rho, atol=2e-5)
    np.testing.assert_allclose(np.moveaxis(vel, -1, 0), reference.vel, atol=2e-5)
    assert vel[25:28, 14:18, 0].max() < 0.03 < 0.1 < vel[20, 20:, 0].max()
    assert vel[..., 1].max() == pytest.approx(-vel[..., 1].min(), rel=1e-3)
