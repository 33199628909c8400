"""Poisson's equation by conjugate gradients, preconditioned with a multigrid V-cycle of red-black Gauss-Seidel."""

import numpy as np
import pytest

import tinote as ti


@ti.data_oriented
class MultigridPCG:
    """−∇²x = b on `n`**`dim` interior cells of a grid with unit spacing; x is zero outside."""

    def __init__(self, n: int, dim: int, levels: int, smoothing: int = 2, bottom: int = 30) -> None:
        self.n, self.dim, self.levels = n, dim, levels
        self.smoothing, self.bottom = smoothing, bottom
        self.r = [ti.field(dtype=ti.f64) for _ in range(levels)]
        self.z = [ti.field(dtype=ti.f64) for _ in range(levels)]
        self.x, self.p, self.Ap = ti.field(ti.f64), ti.field(ti.f64), ti.field(ti.f64)
        self.alpha, self.beta, self.total = ti.field(ti.f64), ti.field(ti.f64), ti.field(ti.f64)
        indices = ti.ijk if dim == 3 else ti.ij
        for level in range(levels):
            ti.root.dense(indices, [n >> level] * dim).place(self.r[level], self.z[level])
        ti.root.dense(indices, [n] * dim).place(self.x, self.p, self.Ap)
        ti.root.place(self.alpha, self.beta, self.total)

    @ti.kernel
    def start(self, b: ti.types.ndarray()):
        for cell in ti.grouped(self.x):
            self.r[0][cell] = b[cell]
            self.z[0][cell] = 0
            self.x[cell] = self.p[cell] = 0

    @ti.func
    def at(self, field, cell):
        value = ti.cast(0, ti.f64)
        if all(cell >= 0) and all(cell < ti.Vector(field.shape)):
            value = field[cell]
        return value

    @ti.func
    def neighbour_sum(self, field, cell):
        result = ti.cast(0, ti.f64)
        for d in ti.static(range(self.dim)):
            offset = ti.Vector.unit(self.dim, d)
            result += self.at(field, cell + offset) + self.at(field, cell - offset)
        return result

    @ti.kernel
    def multiply(self):
        for cell in ti.grouped(self.Ap):
            self.Ap[cell] = 2 * self.dim * self.p[cell] - self.neighbour_sum(self.p, cell)

    @ti.kernel
    def reduce(self, a: ti.template(), b: ti.template()):
        self.total[None] = 0
        for cell in ti.grouped(a):
            self.total[None] += a[cell] * b[cell]

    @ti.kernel
    def update_x(self):
        for cell in ti.grouped(self.p):
            self.x[cell] += self.alpha[None] * self.p[cell]
            self.r[0][cell] -= self.alpha[None] * self.Ap[cell]

    @ti.kernel
    def update_p(self):
        for cell in ti.grouped(self.p):
            self.p[cell] = self.z[0][cell] + self.beta[None] * self.p[cell]

    @ti.kernel
    def smooth(self, level: ti.template(), phase: ti.i32):
        for cell in ti.grouped(self.r[level]):
            if cell.sum() & 1 == phase:
                self.z[level][cell] = (self.r[level][cell] + self.neighbour_sum(self.z[level], cell)) / (2 * self.dim)

    @ti.kernel
    def restrict(self, level: ti.template()):
        for cell in ti.grouped(self.r[level + 1]):
            self.r[level + 1][cell] = 0
            self.z[level + 1][cell] = 0
        for cell in ti.grouped(self.r[level]):
            residual = self.r[level][cell] - (
                2 * self.dim * self.z[level][cell] - self.neighbour_sum(self.z[level], cell)
            )
            # A coarse cell has 2**dim fine ones, and its spacing is twice as large.
            self.r[level + 1][cell // 2] += residual * 4 / 2**self.dim

    @ti.kernel
    def prolongate(self, level: ti.template()):
        for cell in ti.grouped(self.z[level]):
            self.z[level][cell] += self.z[level + 1][cell // 2]

    def v_cycle(self) -> None:
        self.z[0].fill(0)
        for level in range(self.levels - 1):
            for sweep in range(2 * self.smoothing):
                self.smooth(level, sweep % 2)
            self.restrict(level)
        for sweep in range(2 * self.bottom):
            # There and back, so that the preconditioner is symmetric.
            self.smooth(self.levels - 1, sweep % 2 if sweep < self.bottom else (sweep + 1) % 2)
        for level in reversed(range(self.levels - 1)):
            self.prolongate(level)
            for sweep in range(2 * self.smoothing):
                self.smooth(level, 1 - sweep % 2)

    def dot(self, a: ti.ScalarField, b: ti.ScalarField) -> float:
        self.reduce(a, b)
        return self.total[None]

    def solve(self, b: np.ndarray, most: int, tolerance: float) -> list[float]:
        """The norm of the residual after each step."""
        self.start(b)
        norms = [self.dot(self.r[0], self.r[0]) ** 0.5]
        self.v_cycle()
        self.update_p()
        old = self.dot(self.z[0], self.r[0])
        while len(norms) <= most and norms[-1] > tolerance * norms[0]:
            self.multiply()
            self.alpha[None] = old / self.dot(self.p, self.Ap)
            self.update_x()
            norms.append(self.dot(self.r[0], self.r[0]) ** 0.5)
            self.v_cycle()
            new = self.dot(self.z[0], self.r[0])
            self.beta[None] = new / old
            self.update_p()
            old = new
        return norms


def laplacian(x: np.ndarray) -> np.ndarray:
    """−∇²x with zeros outside."""
    padded = np.pad(x, 1)
    inner = (slice(1, -1),) * x.ndim
    return sum(2 * x - np.roll(padded, 1, d)[inner] - np.roll(padded, -1, d)[inner] for d in range(x.ndim))


@pytest.mark.parametrize(("dim", "n", "levels"), [(2, 64, 5), (3, 16, 3)])
def test_multigrid_preconditioned_conjugate_gradients(dim: int, n: int, levels: int) -> None:
    ti.init(default_fp=ti.f64)
    solver = MultigridPCG(n, dim, levels)
    b = np.random.default_rng(dim).standard_normal((n,) * dim)
    norms = solver.solve(b, most=30, tolerance=1e-10)
    assert len(norms) < 20
    x = solver.x.to_numpy()
    assert np.linalg.norm(laplacian(x) - b) < 2e-10 * np.linalg.norm(b)

    # The sine transform diagonalises the operator.
    k = np.pi * np.arange(1, n + 1) / (n + 1)
    sines = np.sin(np.outer(np.arange(1, n + 1), k)) * (2 / (n + 1)) ** 0.5
    exact, eigenvalues = b, np.zeros((n,) * dim)
    for d in range(dim):
        exact = np.moveaxis(np.tensordot(sines, exact, (1, d)), 0, d)
        eigenvalues = eigenvalues + (2 - 2 * np.cos(k)).reshape([-1 if d == e else 1 for e in range(dim)])
    exact = exact / eigenvalues
    for d in range(dim):
        exact = np.moveaxis(np.tensordot(sines, exact, (1, d)), 0, d)
    np.testing.assert_allclose(x, exact, atol=1e-8)
    # Each level has an instance of its own.
    assert len(solver.smooth.instances) == levels
