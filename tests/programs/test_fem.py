"""A soft block of triangles with a Neo-Hookean energy, whose forces are minus the gradient of the energy."""

import numpy as np
import pytest

import tinote as ti

N, DT, STEPS = 5, 2e-4, 150
MU, LAM, RHO, FLOOR = 800.0, 1500.0, 4.0, 0.02


@ti.data_oriented
class Block:
    """`N` by `N` squares, each cut into two triangles, falling onto a floor."""

    def __init__(self) -> None:
        self.n_vertices, self.n_elements = (N + 1) ** 2, 2 * N**2
        self.vertices = ti.Vector.field(3, ti.i32, self.n_elements)
        self.rest = ti.Matrix.field(2, 2, float, self.n_elements)  # the inverse of the edges at rest
        self.area = ti.field(float, self.n_elements)
        self.mass = ti.field(float, self.n_vertices)
        self.x = ti.Vector.field(2, float, self.n_vertices, needs_grad=True)
        self.v = ti.Vector.field(2, float, self.n_vertices)
        self.total_energy = ti.field(float, (), needs_grad=True)

    @ti.func
    def edges(self, e):
        a, b, c = self.vertices[e]
        return ti.Matrix.cols([self.x[a] - self.x[c], self.x[b] - self.x[c]])

    @ti.kernel
    def build(self):
        for i, j in ti.ndrange(N + 1, N + 1):
            at = i * (N + 1) + j
            self.x[at] = ti.Vector([i, j]) / N * 0.4 + ti.Vector([0.3, 0.03])
            self.v[at] = [0.2 * j, -1.0]
        for i, j in ti.ndrange(N, N):
            e, a = 2 * (i * N + j), i * (N + 1) + j
            b, c, d = a + 1, a + N + 1, a + N + 2
            self.vertices[e] = [a, b, d]
            self.vertices[e + 1] = [a, d, c]
        for e in self.vertices:
            D = self.edges(e)
            self.rest[e] = D.inverse()
            self.area[e] = abs(D.determinant()) / 2
            for k in ti.static(range(3)):
                self.mass[self.vertices[e][k]] += RHO * self.area[e] / 3

    @ti.kernel
    def compute_energy(self):
        for e in self.vertices:
            F = self.edges(e) @ self.rest[e]
            log_J = ti.log(F.determinant())
            density = MU / 2 * ((F @ F.transpose()).trace() - 2) - MU * log_J + LAM / 2 * log_J**2
            self.total_energy[None] += self.area[e] * density

    @ti.kernel
    def advance(self):
        for i in self.x:
            self.v[i] += DT * (-self.x.grad[i] / self.mass[i] - ti.Vector([0.0, 9.8]))
            if self.x[i].y < FLOOR and self.v[i].y < 0:
                self.v[i].y = 0
            self.x[i] += DT * self.v[i]


def forces(x: np.ndarray, vertices: np.ndarray, rest: np.ndarray, area: np.ndarray) -> np.ndarray:
    """By hand: the first Piola-Kirchhoff stress, P = mu (F - F^-T) + lambda log(J) F^-T, over each element's edges."""
    a, b, c = vertices.T
    F = np.stack([x[a] - x[c], x[b] - x[c]], -1) @ rest
    inverse_transposed = np.linalg.inv(F).transpose(0, 2, 1)
    log_J = np.log(np.linalg.det(F))[:, None, None]
    P = MU * (F - inverse_transposed) + LAM * log_J * inverse_transposed
    H = -area[:, None, None] * P @ rest.transpose(0, 2, 1)
    force = np.zeros_like(x)
    np.add.at(force, a, H[..., 0])
    np.add.at(force, b, H[..., 1])
    np.add.at(force, c, -H.sum(-1))
    return force


def test_fem_by_energy_gradient() -> None:
    ti.init(default_fp=ti.f64)
    block = Block()
    block.build()
    vertices, rest, area = (f.to_numpy() for f in (block.vertices, block.rest, block.area))
    mass = block.mass.to_numpy()[:, None]
    assert mass.sum() == pytest.approx(RHO * 0.16)
    x, v = block.x.to_numpy(), block.v.to_numpy()
    for _ in range(STEPS):
        with ti.ad.Tape(loss=block.total_energy):
            block.compute_energy()
        block.advance()
        v = v + DT * (forces(x, vertices, rest, area) / mass - [0, 9.8])
        v[(x[:, 1] < FLOOR) & (v[:, 1] < 0), 1] = 0
        x = x + DT * v
    np.testing.assert_allclose(block.x.to_numpy(), x, rtol=1e-9)
    np.testing.assert_allclose(block.v.to_numpy(), v, rtol=1e-8, atol=1e-9)
    assert block.total_energy[None] > 0.01  # the floor was hit, the block is bent
    assert (v[x[:, 1] < FLOOR, 1] >= 0).all()
