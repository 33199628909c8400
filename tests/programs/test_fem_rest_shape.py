"""A strained beam of triangles and its energy by the rest shape. The inverse edges and areas at rest, which a kernel
computes from the rest positions, are scratch fields without gradients.
"""

import numpy as np
import pytest

import tinote as ti

COLUMNS, ROWS = 4, 2
MU, LAM = 40.0, 60.0


@ti.data_oriented
class Beam:
    """`COLUMNS` by `ROWS` squares, each cut into two triangles. The energy of positions `x` in the material whose rest
    positions are `rest`: Σ area · (μ/2 (tr FᵀF - 2) - μ log J + λ/2 log² J), with F = D(x) D(rest)⁻¹.
    """

    def __init__(self) -> None:
        vertices, elements = (COLUMNS + 1) * (ROWS + 1), 2 * COLUMNS * ROWS
        self.corners = ti.Vector.field(3, ti.i32, elements)
        self.rest = ti.Vector.field(2, ti.f64, vertices, needs_grad=True)
        self.x = ti.Vector.field(2, ti.f64, vertices, needs_grad=True)
        self.inverse = ti.Matrix.field(2, 2, ti.f64, elements)  # of the edges at rest: scratch
        self.area = ti.field(ti.f64, elements)  # at rest: scratch
        self.stretch = ti.field(ti.f64, elements)  # to look at
        self.energy = ti.field(ti.f64, (), needs_grad=True)
        grid = np.array([[i, j] for i in range(COLUMNS + 1) for j in range(ROWS + 1)], float)
        self.rest.from_numpy(grid + 0.05 * np.sin(3 * grid[:, ::-1]))
        self.x.from_numpy(grid * [1.1, 0.97] + 0.04 * np.cos(2 * grid[:, ::-1]))
        corners = []
        for i in range(COLUMNS):
            for j in range(ROWS):
                a, b = i * (ROWS + 1) + j, (i + 1) * (ROWS + 1) + j
                corners += [[a, b, b + 1], [a, b + 1, a + 1]]
        self.corners.from_numpy(np.array(corners, np.int32))

    @ti.func
    def edges(self, positions: ti.template(), e):
        a, b, c = self.corners[e]
        return ti.Matrix.cols([positions[b] - positions[a], positions[c] - positions[a]])

    @ti.kernel
    def build(self):
        for e in self.corners:
            D = self.edges(self.rest, e)
            self.inverse[e] = D.inverse()
            self.area[e] = D.determinant() / 2

    @ti.kernel
    def total(self):
        for e in self.corners:
            F = self.edges(self.x, e) @ self.inverse[e]
            log_J = ti.log(F.determinant())
            self.stretch[e] = F.norm()
            density = MU / 2 * ((F.transpose() @ F).trace() - 2) - MU * log_J + LAM / 2 * log_J**2
            self.energy[None] += self.area[e] * density

    def run(self) -> None:
        self.energy[None] = 0
        self.build()
        self.total()


def energy(beam: Beam, rest: np.ndarray, x: np.ndarray) -> float:
    """The same by NumPy."""
    a, b, c = beam.corners.to_numpy().T
    D, M = [np.stack([p[b] - p[a], p[c] - p[a]], -1) for p in (x, rest)]
    F = D @ np.linalg.inv(M)
    log_J = np.log(np.linalg.det(F))
    density = MU / 2 * ((F**2).sum((1, 2)) - 2) - MU * log_J + LAM / 2 * log_J**2
    return float((np.linalg.det(M) / 2 * density).sum())


def slopes(beam: Beam, h: float = 1e-6) -> np.ndarray:
    rest, x = beam.rest.to_numpy(), beam.x.to_numpy()
    found = np.zeros_like(rest)
    for at in np.ndindex(rest.shape):
        step = np.zeros_like(rest)
        step[at] = h
        found[at] = (energy(beam, rest + step, x) - energy(beam, rest - step, x)) / (2 * h)
    return found


def test_the_energy_by_the_rest_shape() -> None:
    ti.init(default_fp=ti.f64)
    beam = Beam()
    for _ in range(2):
        with ti.ad.Tape(beam.energy) as tape:
            beam.run()
        assert beam.energy[None] == pytest.approx(energy(beam, beam.rest.to_numpy(), beam.x.to_numpy()), rel=1e-12)
        np.testing.assert_allclose(beam.rest.grad.to_numpy(), slopes(beam), rtol=1e-6, atol=1e-7)
    assert {b.name for b in tape.graph().temporaries} >= {beam.inverse.name, beam.area.name}
    np.testing.assert_allclose(
        ti.ad.grad(beam.run, wrt=beam.rest, loss=beam.energy)(), slopes(beam), rtol=1e-6, atol=1e-7
    )


def test_descent_finds_the_rest_shape() -> None:
    """With the positions held, the energy is least where the rest shape is that of the positions, up to a motion."""
    ti.init(default_fp=ti.f64)
    beam = Beam()
    history = []
    for _ in range(60):
        with ti.ad.Tape(beam.energy):
            beam.run()
        history.append(beam.energy[None])
        beam.rest.from_numpy(beam.rest.to_numpy() - 2e-3 * beam.rest.grad.to_numpy())
    assert history == sorted(history, reverse=True)
    assert history[-1] < 0.1 * history[0]
