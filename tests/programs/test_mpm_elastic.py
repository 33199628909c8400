"""A differentiable material point method: an elastic block is thrown at a target, and its initial velocity is learnt.

One grid serves all steps and keeps nothing: a replaced gradient fills it again before it goes back through a step.
"""

import numpy as np
import pytest

import tinote as ti

N, N_GRID, STEPS, DT = 16, 12, 50, 2e-3
DX, INV_DX = 1 / N_GRID, float(N_GRID)
P_MASS, P_VOL, MU, LAM = 1.0, 1.0, 4.0, 6.0
BOUND, GRAVITY = 2, 3.0
TARGET = (0.62, 0.5)


@ti.data_oriented
class Thrown:
    def __init__(self) -> None:
        def vectors(*shape: int):
            return ti.Vector.field(2, ti.f64, shape=shape, needs_grad=True)

        self.init_v = vectors()
        self.x, self.v = vectors(STEPS + 1, N), vectors(STEPS + 1, N)
        self.C = ti.Matrix.field(2, 2, ti.f64)
        self.F = ti.Matrix.field(2, 2, ti.f64)
        ti.root.dense(ti.ij, (STEPS + 1, N)).place(self.C, self.F)
        self.grid_v_in, self.grid_v_out = vectors(N_GRID, N_GRID), vectors(N_GRID, N_GRID)
        self.grid_m_in = ti.field(ti.f64, shape=(N_GRID, N_GRID), needs_grad=True)
        self.loss = ti.field(ti.f64, shape=())
        self.x_avg = ti.Vector.field(2, ti.f64, shape=())
        ti.root.lazy_grad()

    @ti.kernel
    def clear_grid(self):
        for i, j in self.grid_m_in:
            self.grid_v_in[i, j] = [0, 0]
            self.grid_m_in[i, j] = 0

    @ti.kernel
    def clear_grid_gradients(self):
        for i, j in self.grid_m_in:
            self.grid_v_in.grad[i, j] = [0, 0]
            self.grid_m_in.grad[i, j] = 0
            self.grid_v_out.grad[i, j] = [0, 0]

    @ti.func
    def weights(self, x):
        base = ti.cast(x * INV_DX - 0.5, ti.i32)
        fx = x * INV_DX - ti.cast(base, ti.f64)
        w = ti.Matrix.rows([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
        return base, fx, w

    @ti.kernel
    def p2g(self, f: ti.i32):
        for p in range(N):
            base, fx, w = self.weights(self.x[f, p])
            new_F = (ti.Matrix.identity(ti.f64, 2) + DT * self.C[f, p]) @ self.F[f, p]
            self.F[f + 1, p] = new_F
            R, _ = ti.polar_decompose(new_F)
            J = new_F.determinant()
            cauchy = 2 * MU * (new_F - R) @ new_F.transpose() + ti.Matrix.identity(ti.f64, 2) * LAM * J * (J - 1)
            affine = -(DT * P_VOL * 4 * INV_DX**2) * cauchy + P_MASS * self.C[f, p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                dpos = (offset.cast(ti.f64) - fx) * DX
                weight = w[i, 0] * w[j, 1]
                self.grid_v_in[base + offset] += weight * (P_MASS * self.v[f, p] + affine @ dpos)
                self.grid_m_in[base + offset] += weight * P_MASS

    @ti.kernel
    def grid_op(self):
        for i, j in self.grid_m_in:
            inv_m = 1 / (self.grid_m_in[i, j] + 1e-10)
            v_out = inv_m * self.grid_v_in[i, j]
            v_out[1] -= DT * GRAVITY
            if (i < BOUND and v_out[0] < 0) or (i > N_GRID - BOUND and v_out[0] > 0):
                v_out[0] = 0.0
            if j < BOUND and v_out[1] < 0:
                v_out = ti.Vector([0.0, 0.0])
            if j > N_GRID - BOUND and v_out[1] > 0:
                v_out[1] = 0
            self.grid_v_out[i, j] = v_out

    @ti.kernel
    def g2p(self, f: ti.i32):
        for p in range(N):
            base, fx, w = self.weights(self.x[f, p])
            new_v = ti.Vector.zero(ti.f64, 2)
            new_C = ti.Matrix.zero(ti.f64, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                dpos = ti.Vector([i, j]) - fx
                g_v = self.grid_v_out[base[0] + i, base[1] + j]
                weight = w[i, 0] * w[j, 1]
                new_v += weight * g_v
                new_C += 4 * weight * g_v.outer_product(dpos) * INV_DX
            self.v[f + 1, p] = new_v
            self.x[f + 1, p] = self.x[f, p] + DT * new_v
            self.C[f + 1, p] = new_C

    @ti.ad.grad_replaced
    def substep(self, f: int) -> None:
        self.clear_grid()
        self.p2g(f)
        self.grid_op()
        self.g2p(f)

    @ti.ad.grad_for(substep)
    def substep_grad(self, f: int) -> None:
        self.clear_grid()
        self.clear_grid_gradients()
        self.p2g(f)
        self.grid_op()
        self.g2p.grad(f)
        self.grid_op.grad()
        self.p2g.grad(f)

    @ti.kernel
    def set_v(self):
        for p in range(N):
            self.v[0, p] = self.init_v[None]

    @ti.kernel
    def average(self):
        for p in range(N):
            self.x_avg[None] += self.x[STEPS, p] / N

    @ti.kernel
    def compute_loss(self):
        self.loss[None] = (self.x_avg[None] - ti.Vector(TARGET)).norm_sqr()

    def forward(self, plain: bool = False) -> None:
        self.set_v()
        for f in range(STEPS):
            if plain:
                self.clear_grid()
                self.p2g(f)
                self.grid_op()
                self.g2p(f)
            else:
                self.substep(f)
        self.x_avg[None] = [0, 0]
        self.average()
        self.compute_loss()

    def start(self) -> None:
        for i in range(N):
            self.x[0, i] = [0.25 + 0.04 * (i % 4), 0.35 + 0.05 * (i // 4)]
            self.F[0, i] = [[1, 0.1], [0, 1]]


def test_elastic_mpm_learns_how_to_throw() -> None:
    ti.init(default_fp=ti.f64)
    thrown = Thrown()
    thrown.start()
    thrown.init_v[None] = [1.0, -2.0]

    def gradient(plain: bool) -> np.ndarray:
        with ti.ad.Tape(thrown.loss):
            thrown.forward(plain)
        return thrown.init_v.grad.to_numpy()

    # The replaced gradient is the one that the tape finds by itself, and that of differences.
    first = gradient(plain=False)
    np.testing.assert_allclose(first, gradient(plain=True), rtol=1e-10)
    for k in range(2):
        sides = []
        for sign in (1, -1):
            moved = np.array([1.0, -2.0])
            moved[k] += sign * 1e-5
            thrown.init_v.from_numpy(moved)
            thrown.forward(plain=True)
            sides.append(thrown.loss[None])
        assert first[k] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5)

    thrown.init_v[None] = [1.0, -2.0]
    losses = []
    for _ in range(25):
        with ti.ad.Tape(thrown.loss):
            thrown.forward()
        losses.append(thrown.loss[None])
        thrown.init_v[None] -= 20 * thrown.init_v.grad[None]
    assert losses[-1] < 1e-3 * losses[0]
    np.testing.assert_allclose(thrown.x.to_numpy()[STEPS].mean(0), TARGET, atol=0.01)
