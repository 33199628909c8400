"""The moving-least-squares material point method (Hu et al., 2018) in its short form: a falling block of fluid."""

import numpy as np

import tinote as ti

GRAVITY = 9.8


def test_mpm88() -> None:
    n_particles, n_grid = 400, 32
    dx = 1 / n_grid
    dt = 2e-4
    p_rho, p_vol = 1, (dx * 0.5) ** 2
    p_mass = p_vol * p_rho
    E, bound = 400, 3

    x = ti.Vector.field(2, float, n_particles)
    v = ti.Vector.field(2, float, n_particles)
    C = ti.Matrix.field(2, 2, float, n_particles)
    J = ti.field(float, n_particles)
    grid_v = ti.Vector.field(2, float, (n_grid, n_grid))
    grid_m = ti.field(float, (n_grid, n_grid))

    @ti.kernel
    def substep():
        for i, j in grid_m:
            grid_v[i, j] = [0, 0]
            grid_m[i, j] = 0
        for p in x:
            Xp = x[p] / dx
            base = int(Xp - 0.5)
            fx = Xp - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -dt * 4 * E * p_vol * (J[p] - 1) / dx**2
            affine = ti.Matrix([[stress, 0], [0, stress]]) + p_mass * C[p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                dpos = (offset - fx) * dx
                weight = w[i].x * w[j].y
                grid_v[base + offset] += weight * (p_mass * v[p] + affine @ dpos)
                grid_m[base + offset] += weight * p_mass
        for i, j in grid_m:
            if grid_m[i, j] > 0:
                grid_v[i, j] /= grid_m[i, j]
            grid_v[i, j].y -= dt * GRAVITY
            if i < bound and grid_v[i, j].x < 0:
                grid_v[i, j].x = 0
            if i > n_grid - bound and grid_v[i, j].x > 0:
                grid_v[i, j].x = 0
            if j < bound and grid_v[i, j].y < 0:
                grid_v[i, j].y = 0
            if j > n_grid - bound and grid_v[i, j].y > 0:
                grid_v[i, j].y = 0
        for p in x:
            Xp = x[p] / dx
            base = int(Xp - 0.5)
            fx = Xp - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v = ti.Vector.zero(float, 2)
            new_C = ti.Matrix.zero(float, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                dpos = (offset - fx) * dx
                weight = w[i].x * w[j].y
                g_v = grid_v[base + offset]
                new_v += weight * g_v
                new_C += 4 * weight * g_v.outer_product(dpos) / dx**2
            v[p] = new_v
            x[p] += dt * v[p]
            J[p] *= 1 + dt * new_C.trace()
            C[p] = new_C

    @ti.kernel
    def init():
        for i in range(n_particles):
            x[i] = [ti.random() * 0.4 + 0.2, ti.random() * 0.4 + 0.2]
            v[i] = [0, -1]
            J[i] = 1

    init()
    positions, velocities = x.to_numpy().astype(float), v.to_numpy().astype(float)
    assert positions.min() >= 0.2
    assert positions.max() < 0.6
    affine_c, volume = np.zeros((n_particles, 2, 2)), np.ones(n_particles)
    for _ in range(40):
        substep()
        scaled = positions / dx
        base = (scaled - 0.5).astype(int)
        fx = scaled - base
        w = np.stack([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
        stress = -dt * 4 * E * p_vol * (volume - 1) / dx**2
        affine = stress[:, None, None] * np.eye(2) + p_mass * affine_c
        momentum, mass = np.zeros((n_grid, n_grid, 2)), np.zeros((n_grid, n_grid))
        offsets = [(i, j) for i in range(3) for j in range(3)]
        for i, j in offsets:
            dpos = (np.array([i, j]) - fx) * dx
            weight = w[i, :, 0] * w[j, :, 1]
            at = (base[:, 0] + i, base[:, 1] + j)
            np.add.at(momentum, at, weight[:, None] * (p_mass * velocities + np.einsum("nij,nj->ni", affine, dpos)))
            np.add.at(mass, at, weight * p_mass)
        grid = np.where(mass[..., None] > 0, momentum / np.where(mass > 0, mass, 1)[..., None], momentum)
        grid[..., 1] -= dt * GRAVITY
        grid[:bound, :, 0] = np.maximum(grid[:bound, :, 0], 0)
        grid[n_grid - bound + 1 :, :, 0] = np.minimum(grid[n_grid - bound + 1 :, :, 0], 0)
        grid[:, :bound, 1] = np.maximum(grid[:, :bound, 1], 0)
        grid[:, n_grid - bound + 1 :, 1] = np.minimum(grid[:, n_grid - bound + 1 :, 1], 0)
        velocities, affine_c = np.zeros_like(velocities), np.zeros_like(affine_c)
        for i, j in offsets:
            dpos = (np.array([i, j]) - fx) * dx
            weight = w[i, :, 0] * w[j, :, 1]
            g = grid[base[:, 0] + i, base[:, 1] + j]
            velocities += weight[:, None] * g
            affine_c += 4 * weight[:, None, None] * g[:, :, None] * dpos[:, None, :] / dx**2
        positions = positions + dt * velocities
        volume *= 1 + dt * np.trace(affine_c, axis1=1, axis2=2)
    np.testing.assert_allclose(x.to_numpy(), positions, atol=2e-5)
    np.testing.assert_allclose(v.to_numpy(), velocities, atol=5e-3)
    np.testing.assert_allclose(J.to_numpy(), volume, atol=1e-3)
    np.testing.assert_allclose(grid_m.to_numpy().sum(), n_particles * p_mass, rtol=1e-5)
