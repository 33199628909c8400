"""The material point method with Lagrangian forces (Jiang et al., 2015): particles are the vertices of a mesh, their
forces are minus the gradient of the mesh's energy, and the grid carries momentum and contacts. The energy is corotated
linear elasticity, whose rotation is the polar decomposition's.
"""

import numpy as np

import tinote as ti

N_GRID, DT, STEPS = 24, 1e-3, 60
DX = 1 / N_GRID
MU, LAM = 12.0, 8.0
COLUMNS, ROWS = 7, 5
P_MASS, P_VOL = 0.01, 0.01
BOUND = 3


def mesh() -> tuple[np.ndarray, np.ndarray]:
    """Vertices of a sheet, and its triangles."""
    x = np.stack(np.meshgrid(np.linspace(0.3, 0.6, COLUMNS), np.linspace(0.2, 0.4, ROWS), indexing="ij"), -1)
    triangles = []
    for i in range(COLUMNS - 1):
        for j in range(ROWS - 1):
            a = i * ROWS + j
            triangles += [(a, a + ROWS, a + 1), (a + ROWS + 1, a + 1, a + ROWS)]
    return x.reshape(-1, 2), np.array(triangles, np.int32)


def forces(x: np.ndarray, triangles: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """By hand: P = 2 mu (F - R) + lambda (J - 1) J F^-T; the derivative of R has no share in it."""
    a, b, c = triangles.T
    F = np.stack([x[b] - x[a], x[c] - x[a]], -1) @ rest
    U, _, Vt = np.linalg.svd(F)
    J = np.linalg.det(F)[:, None, None]
    P = 2 * MU * (F - U @ Vt) + LAM * (J - 1) * J * np.linalg.inv(F).transpose(0, 2, 1)
    H = -P_VOL * P @ rest.transpose(0, 2, 1)
    force = np.zeros_like(x)
    np.add.at(force, b, H[..., 0])
    np.add.at(force, c, H[..., 1])
    np.add.at(force, a, -H.sum(-1))
    return force


def test_mpm_by_energy_gradient() -> None:
    ti.init(default_fp=ti.f64)
    start, triangles = mesh()
    n_particles, n_elements = len(start), len(triangles)
    x = ti.Vector.field(2, float, n_particles, needs_grad=True)
    v = ti.Vector.field(2, float, n_particles)
    C = ti.Matrix.field(2, 2, float, n_particles)
    grid_v = ti.Vector.field(2, float, (N_GRID, N_GRID))
    grid_m = ti.field(float, (N_GRID, N_GRID))
    rest_inverse = ti.Matrix.field(2, 2, float, n_elements)
    vertices = ti.field(int, (n_elements, 3))
    total_energy = ti.field(float, (), needs_grad=True)

    @ti.func
    def edges(p):
        a, b, c = vertices[p, 0], vertices[p, 1], vertices[p, 2]
        ab, ac = x[b] - x[a], x[c] - x[a]
        return ti.Matrix([[ab[0], ac[0]], [ab[1], ac[1]]])

    @ti.kernel
    def rest():
        for e in rest_inverse:
            rest_inverse[e] = edges(e).inverse()

    @ti.kernel
    def compute_total_energy():
        for e in range(n_elements):
            F = edges(e) @ rest_inverse[e]
            R, _ = ti.polar_decompose(F)
            total_energy[None] += P_VOL * (MU * (F - R).norm_sqr() + LAM / 2 * (F.determinant() - 1) ** 2)

    @ti.kernel
    def p2g():
        for p in x:
            base = ti.cast(x[p] / DX - 0.5, ti.i32)
            fx = x[p] / DX - ti.cast(base, float)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            affine = P_MASS * C[p]
            for i in ti.static(range(3)):
                for j in ti.static(range(3)):
                    offset = ti.Vector([i, j])
                    dpos = (offset.cast(float) - fx) * DX
                    weight = w[i][0] * w[j][1]
                    grid_v[base + offset] += weight * (P_MASS * v[p] - DT * x.grad[p] + affine @ dpos)
                    grid_m[base + offset] += weight * P_MASS

    @ti.kernel
    def grid_op():
        for i, j in grid_m:
            if grid_m[i, j] > 0:
                grid_v[i, j] = grid_v[i, j] / grid_m[i, j]
                grid_v[i, j].y -= DT * 9.8
                if i < BOUND and grid_v[i, j].x < 0:
                    grid_v[i, j].x = 0
                if j < BOUND and grid_v[i, j].y < 0:
                    grid_v[i, j].y = 0

    @ti.kernel
    def g2p():
        for p in x:
            base = ti.cast(x[p] / DX - 0.5, ti.i32)
            fx = x[p] / DX - float(base)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v = ti.Vector([0.0, 0.0])
            new_C = ti.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for at in ti.static(ti.grouped(ti.ndrange(3, 3))):
                dpos = float(at) - fx
                weight = w[at[0]][0] * w[at[1]][1]
                g_v = grid_v[base + at]
                new_v += weight * g_v
                new_C += 4 * weight * g_v.outer_product(dpos) / DX
            v[p], C[p] = new_v, new_C
            x[p] += DT * v[p]

    x.from_numpy(start)
    v.fill([-3.0, -2.0])
    vertices.from_numpy(triangles)
    rest()
    px, pv, pC = start.copy(), np.tile([-3.0, -2.0], (n_particles, 1)), np.zeros((n_particles, 2, 2))
    rest_np = rest_inverse.to_numpy()
    for _ in range(STEPS):
        grid_v.fill(0)
        grid_m.fill(0)
        with ti.ad.Tape(total_energy):
            compute_total_energy()
        p2g()
        grid_op()
        g2p()

        force = forces(px, triangles, rest_np)
        base = (px / DX - 0.5).astype(int)
        fx = px / DX - base
        w = np.stack([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
        momentum, mass = np.zeros((N_GRID, N_GRID, 2)), np.zeros((N_GRID, N_GRID, 1))
        weights = {(i, j): (w[i, :, 0] * w[j, :, 1])[:, None] for i in range(3) for j in range(3)}
        for (i, j), weight in weights.items():
            at = (base[:, 0] + i, base[:, 1] + j)
            dpos = ((i, j) - fx) * DX
            np.add.at(momentum, at, weight * (P_MASS * (pv + np.einsum("nij,nj->ni", pC, dpos)) + DT * force))
            np.add.at(mass, at, weight * P_MASS)
        g = np.where(mass > 0, momentum / np.where(mass > 0, mass, 1) - [0, DT * 9.8], 0)
        g[:BOUND, :, 0] = np.maximum(g[:BOUND, :, 0], 0)
        g[:, :BOUND, 1] = np.maximum(g[:, :BOUND, 1], 0)
        pv, pC = np.zeros_like(pv), np.zeros_like(pC)
        for (i, j), weight in weights.items():
            at = g[base[:, 0] + i, base[:, 1] + j]
            pv += weight * at
            pC += 4 * weight[..., None] * at[:, :, None] * ((i, j) - fx)[:, None, :] / DX
        px = px + DT * pv
    np.testing.assert_allclose(x.to_numpy(), px, rtol=1e-8)
    np.testing.assert_allclose(v.to_numpy(), pv, rtol=1e-7, atol=1e-8)
    a, b = triangles.T[:2]
    assert np.ptp(np.linalg.norm(px[b] - px[a], axis=1)) > 0.004  # the mesh is strained
    assert abs(total_energy[None]) > 1e-5
