"""Gravitating bodies by leapfrog: forces by hand and as the gradient of the energy give the same orbits."""

import numpy as np
import pytest

import tinote as ti


def test_nbody_by_forces_and_by_energy() -> None:
    ti.init(default_fp=ti.f64)
    n, dt, steps, eps = 12, 1e-3, 100, 1e-2
    x = ti.Vector.field(3, ti.f64, shape=n, needs_grad=True)
    v = ti.Vector.field(3, ti.f64, shape=n)
    m = ti.field(ti.f64, shape=n)
    U = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def compute_U():  # noqa: N802
        for i in range(n):
            for j in range(i):
                U[None] += -m[i] * m[j] / (x[i] - x[j]).norm(eps)

    @ti.kernel
    def kick_by_energy(h: ti.f64):
        for i in x:
            v[i] -= h / m[i] * x.grad[i]

    @ti.kernel
    def kick_by_forces(h: ti.f64):
        for i in x:
            a = ti.Vector.zero(ti.f64, 3)
            for j in range(n):
                if i != j:
                    r = x[j] - x[i]
                    a += m[j] * r / r.norm(eps) ** 3
            v[i] += h * a

    @ti.kernel
    def drift():
        for i in x:
            x[i] += dt * v[i]

    @ti.kernel
    def kinetic() -> ti.f64:
        e = 0.0
        for i in v:
            e += 0.5 * m[i] * v[i].norm_sqr()
        return e

    random = np.random.default_rng(2)
    begin_x, begin_v, masses = random.normal(size=(n, 3)), 0.3 * random.normal(size=(n, 3)), random.random(n) + 0.5

    def simulate(by_energy: bool) -> tuple[np.ndarray, list[float]]:
        x.from_numpy(begin_x)
        v.from_numpy(begin_v)
        m.from_numpy(masses)
        energies: list[float] = []
        for _ in range(steps):
            for half in (0, 1):
                if by_energy:
                    with ti.ad.Tape(loss=U):
                        compute_U()
                    kick_by_energy(dt / 2)
                else:
                    kick_by_forces(dt / 2)
                if half == 0:
                    drift()
            if by_energy:
                energies.append(U[None] + kinetic())
        return x.to_numpy(), energies

    by_forces, _ = simulate(False)
    by_energy, energies = simulate(True)
    np.testing.assert_allclose(by_energy, by_forces, rtol=1e-9, atol=1e-9)
    assert max(energies) - min(energies) < 1e-4 * abs(energies[0])

    px, pv = begin_x.copy(), begin_v.copy()
    for _ in range(steps):
        for half in (0, 1):
            r = px[None] - px[:, None]
            pv += dt / 2 * (masses[None, :, None] * r / ((r**2).sum(-1) + eps)[..., None] ** 1.5).sum(1)
            if half == 0:
                px += dt * pv
    np.testing.assert_allclose(by_forces, px, rtol=1e-9, atol=1e-9)
    assert np.linalg.norm(by_forces - begin_x) == pytest.approx(np.linalg.norm(px - begin_x))
