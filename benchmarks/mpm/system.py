"""The fluid that every MPM contender moves: constants, initial data, the NumPy reference."""

from __future__ import annotations

import numpy as np

__all__ = [
    "BOUND",
    "DX",
    "GRAVITY",
    "N_GRID",
    "N_PARTICLES",
    "P_MASS",
    "P_VOL",
    "TIME_STEP",
    "E",
    "initial_positions",
    "reference_velocities",
]

N_PARTICLES = 8192
N_GRID = 128
DX = 1 / N_GRID
TIME_STEP = 2e-4
P_VOL = (DX * 0.5) ** 2
P_MASS = P_VOL * 1.0
E = 400.0
GRAVITY = 9.8
BOUND = 3  # nodes from the walls


def initial_positions(count: int = N_PARTICLES) -> np.ndarray:
    """Return the particles of a block, (count, 2) f32, in no order, the same in every process."""
    return np.random.default_rng(7).random((count, 2), dtype=np.float32) * np.float32(0.4) + np.float32(0.2)


def reference_velocities(substeps: int) -> np.ndarray:
    """Return the velocities after some substeps in f64, (N_PARTICLES, 2); at first all particles fall with speed 1."""
    x = initial_positions().astype(np.float64)
    v = np.tile([0.0, -1.0], (N_PARTICLES, 1))
    C = np.zeros((N_PARTICLES, 2, 2))
    J = np.ones(N_PARTICLES)
    for _ in range(substeps):
        base = (x / DX - 0.5).astype(int)
        fx = x / DX - base
        w = np.stack([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2])
        stress = -TIME_STEP * 4 * E * P_VOL * (J - 1) / DX**2
        affine = stress[:, None, None] * np.eye(2) + P_MASS * C
        momentum, mass = np.zeros((N_GRID, N_GRID, 2)), np.zeros((N_GRID, N_GRID))
        window = []
        for i, j in np.ndindex(3, 3):
            at = base[:, 0] + i, base[:, 1] + j
            dpos = (np.array([i, j]) - fx) * DX
            weight = w[i, :, 0] * w[j, :, 1]
            np.add.at(momentum, at, weight[:, None] * (P_MASS * v + np.einsum("nab,nb->na", affine, dpos)))
            np.add.at(mass, at, weight * P_MASS)
            window.append((at, dpos, weight))
        grid_v = momentum / np.where(mass > 0, mass, 1)[..., None]
        grid_v[..., 1] -= TIME_STEP * GRAVITY
        grid_v[:BOUND, :, 0] = np.maximum(grid_v[:BOUND, :, 0], 0)
        grid_v[N_GRID - BOUND + 1 :, :, 0] = np.minimum(grid_v[N_GRID - BOUND + 1 :, :, 0], 0)
        grid_v[:, :BOUND, 1] = np.maximum(grid_v[:, :BOUND, 1], 0)
        grid_v[:, N_GRID - BOUND + 1 :, 1] = np.minimum(grid_v[:, N_GRID - BOUND + 1 :, 1], 0)
        v, C = np.zeros_like(v), np.zeros_like(C)
        for at, dpos, weight in window:
            g = weight[:, None] * grid_v[at]
            v += g
            C += 4 * g[:, :, None] * dpos[:, None, :] / DX**2
        x += TIME_STEP * v
        J *= 1 + TIME_STEP * np.trace(C, axis1=1, axis2=2)
    return v
