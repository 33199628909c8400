"""Stable fluids (Stam, 1999): semi-Lagrangian advection, Jacobi pressure projection, in two pairs of fields."""

import numpy as np

import tinote as ti


class Pair:
    """Two fields that change places."""

    def __init__(self, now, next_) -> None:
        self.now = now
        self.next = next_

    def swap(self) -> None:
        self.now, self.next = self.next, self.now


def test_stable_fluid() -> None:
    n, dt, jacobi = 32, 0.03, 20
    velocity = Pair(ti.Vector.field(2, float, shape=(n, n)), ti.Vector.field(2, float, shape=(n, n)))
    pressure = Pair(ti.field(float, shape=(n, n)), ti.field(float, shape=(n, n)))
    dye = Pair(ti.field(float, shape=(n, n)), ti.field(float, shape=(n, n)))
    divergence = ti.field(float, shape=(n, n))

    @ti.func
    def sample(qf, u, v):
        at = ti.Vector([int(u), int(v)])
        at = ti.max(0, ti.min(n - 1, at))
        return qf[at]

    @ti.func
    def lerp(a, b, f):
        return a + f * (b - a)

    @ti.func
    def bilerp(vf, p):
        u, v = p
        s, t = u - 0.5, v - 0.5
        iu, iv = ti.floor(s), ti.floor(t)
        fu, fv = s - iu, t - iv
        a = sample(vf, iu, iv)
        b = sample(vf, iu + 1, iv)
        c = sample(vf, iu, iv + 1)
        d = sample(vf, iu + 1, iv + 1)
        return lerp(lerp(a, b, fu), lerp(c, d, fu), fv)

    @ti.kernel
    def advect(vf: ti.template(), qf: ti.template(), new_qf: ti.template()):
        for i, j in vf:
            p = ti.Vector([i, j]) + 0.5
            p = p - dt * n * vf[i, j]
            new_qf[i, j] = bilerp(qf, p)

    @ti.kernel
    def diverge(vf: ti.template()):
        for i, j in vf:
            left = sample(vf, i - 1, j)
            right = sample(vf, i + 1, j)
            below = sample(vf, i, j - 1)
            above = sample(vf, i, j + 1)
            divergence[i, j] = (right.x - left.x + above.y - below.y) * 0.5

    @ti.kernel
    def relax(pf: ti.template(), new_pf: ti.template()):
        for i, j in pf:
            new_pf[i, j] = (
                sample(pf, i - 1, j)
                + sample(pf, i + 1, j)
                + sample(pf, i, j - 1)
                + sample(pf, i, j + 1)
                - divergence[i, j]
            ) * 0.25

    @ti.kernel
    def project(vf: ti.template(), pf: ti.template()):
        for i, j in vf:
            vf[i, j] -= 0.5 * ti.Vector(
                [sample(pf, i + 1, j) - sample(pf, i - 1, j), sample(pf, i, j + 1) - sample(pf, i, j - 1)]
            )

    y, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    v = np.stack([-y * np.exp(-4 * (x * x + y * y)), x * np.exp(-3 * x * x)], -1).astype(np.float32)
    d = np.exp(-8 * ((x - 0.3) ** 2 + y * y)).astype(np.float32)
    velocity.now.from_numpy(v)
    dye.now.from_numpy(d)

    indices = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1)

    def at(q, i, j):
        return q[np.clip(np.trunc(i).astype(int), 0, n - 1), np.clip(np.trunc(j).astype(int), 0, n - 1)]

    def back(field, q):
        p = indices + 0.5 - dt * n * field - 0.5
        whole = np.floor(p)
        f = p - whole
        i, j = whole[..., 0], whole[..., 1]
        fu, fv = (f[..., 0:1], f[..., 1:2]) if q.ndim == 3 else (f[..., 0], f[..., 1])
        a, b, c, e = at(q, i, j), at(q, i + 1, j), at(q, i, j + 1), at(q, i + 1, j + 1)
        low, high = a + fu * (b - a), c + fu * (e - c)
        return low + fv * (high - low)

    i, j = indices[..., 0], indices[..., 1]
    p = np.zeros((n, n))
    v, d = v.astype(float), d.astype(float)
    for _ in range(5):
        advect(velocity.now, velocity.now, velocity.next)
        advect(velocity.now, dye.now, dye.next)
        velocity.swap()
        dye.swap()
        diverge(velocity.now)
        for _ in range(jacobi):
            relax(pressure.now, pressure.next)
            pressure.swap()
        project(velocity.now, pressure.now)

        v, d = back(v, v), back(v, d)
        div = 0.5 * (
            at(v, i + 1, j)[..., 0] - at(v, i - 1, j)[..., 0] + at(v, i, j + 1)[..., 1] - at(v, i, j - 1)[..., 1]
        )
        for _ in range(jacobi):
            p = 0.25 * (at(p, i - 1, j) + at(p, i + 1, j) + at(p, i, j - 1) + at(p, i, j + 1) - div)
        v = v - 0.5 * np.stack([at(p, i + 1, j) - at(p, i - 1, j), at(p, i, j + 1) - at(p, i, j - 1)], -1)
    np.testing.assert_allclose(velocity.now.to_numpy(), v, atol=2e-5)
    np.testing.assert_allclose(pressure.now.to_numpy(), p, atol=2e-5)
    np.testing.assert_allclose(dye.now.to_numpy(), d, atol=2e-5)
    # Swapping fields makes an instance for each order, and no more.
    assert len(relax.instances) == 2
    assert len(advect.instances) == 4
