"""Compressible gas on a periodic square: the Euler equations, second order, with the HLL flux.

The state of a cell is (ρ, ρu, ρv, E). Slopes are limited by minmod (van Leer's MUSCL scheme), fluxes are those of
Harten, Lax and van Leer (1983), and time advances by Heun's method.
"""

import numpy as np
import pytest

import tinote as ti

GAMMA = 1.4
vec4 = ti.types.vector(4, ti.f64)


@ti.data_oriented
class EulerFluid:
    """`n` by `n` cells of a unit square."""

    def __init__(self, n: int, cfl: float = 0.4) -> None:
        self.n = n
        self.h = 1.0 / n
        self.cfl = cfl
        self.Q = ti.Vector.field(4, dtype=ti.f64, shape=(n, n))
        self.Q_old = ti.Vector.field(4, dtype=ti.f64, shape=(n, n))
        self.W = ti.Vector.field(4, dtype=ti.f64, shape=(n, n))
        # Fluxes through the lower face of a cell in each direction.
        self.F = [ti.Vector.field(4, dtype=ti.f64, shape=(n, n)) for _ in range(2)]
        self.dt = ti.field(ti.f64, shape=())
        self.fastest = ti.field(ti.f64, shape=())

    @ti.func
    def to_primitive(self, q: vec4) -> vec4:
        rho, u, v = q[0], q[1] / q[0], q[2] / q[0]
        return vec4(rho, u, v, (GAMMA - 1) * (q[3] - 0.5 * rho * (u**2 + v**2)))

    @ti.func
    def to_conserved(self, w: vec4) -> vec4:
        return vec4(w[0], w[0] * w[1], w[0] * w[2], w[3] / (GAMMA - 1) + 0.5 * w[0] * w[1:3].norm_sqr())

    @ti.func
    def sound(self, w):
        return ti.sqrt(GAMMA * w[3] / w[0])

    @ti.func
    def wrapped(self, c):
        return (c + self.n) % self.n

    @ti.func
    def minmod(self, a, b):
        return ti.select(a * b > 0, ti.math.sign(a) * ti.min(abs(a), abs(b)), 0.0)

    @ti.func
    def flux(self, w, d: ti.template()):
        q = self.to_conserved(w)
        f = q * w[1 + d]
        f[1 + d] += w[3]
        f[3] += w[3] * w[1 + d]
        return f

    @ti.func
    def hll(self, left, right, d: ti.template()):
        c_left, c_right = self.sound(left), self.sound(right)
        slow = ti.min(left[1 + d] - c_left, right[1 + d] - c_right)
        fast = ti.max(left[1 + d] + c_left, right[1 + d] + c_right)
        result = vec4(0)
        if slow >= 0:
            result = self.flux(left, d)
        elif fast <= 0:
            result = self.flux(right, d)
        else:
            jump = self.to_conserved(right) - self.to_conserved(left)
            result = (fast * self.flux(left, d) - slow * self.flux(right, d) + slow * fast * jump) / (fast - slow)
        return result

    @ti.func
    def slope(self, c, d: ti.template()):
        e = ti.Vector.unit(2, d)
        here = self.W[c]
        return self.minmod(here - self.W[self.wrapped(c - e)], self.W[self.wrapped(c + e)] - here)

    @ti.kernel
    def limit_step(self):
        self.fastest[None] = 0.0
        for c in ti.grouped(self.Q):
            w = self.to_primitive(self.Q[c])
            ti.atomic_max(self.fastest[None], ti.max(abs(w[1]), abs(w[2])) + self.sound(w))
        self.dt[None] = self.cfl * self.h / self.fastest[None]

    @ti.kernel
    def stage(self, weight: ti.f64):
        for c in ti.grouped(self.Q):
            self.W[c] = self.to_primitive(self.Q[c])
        for d in ti.static(range(2)):
            for c in ti.grouped(self.F[d]):
                before = self.wrapped(c - ti.Vector.unit(2, d))
                left = self.W[before] + 0.5 * self.slope(before, d)
                right = self.W[c] - 0.5 * self.slope(c, d)
                self.F[d][c] = self.hll(left, right, d)
        for c in ti.grouped(self.Q):
            change = vec4(0)
            for d in ti.static(range(2)):
                change += self.F[d][self.wrapped(c + ti.Vector.unit(2, d))] - self.F[d][c]
            self.Q[c] = (1 - weight) * self.Q_old[c] + weight * (self.Q[c] - self.dt[None] / self.h * change)

    def step(self) -> None:
        self.limit_step()
        self.Q_old.copy_from(self.Q)
        self.stage(1.0)
        self.stage(0.5)


class Reference:
    """The same scheme on arrays of shape (4, n, n)."""

    def __init__(self, q: np.ndarray, h: float, cfl: float) -> None:
        self.q, self.h, self.cfl = q, h, cfl

    @staticmethod
    def primitive(q: np.ndarray) -> np.ndarray:
        u, v = q[1] / q[0], q[2] / q[0]
        return np.stack([q[0], u, v, (GAMMA - 1) * (q[3] - 0.5 * q[0] * (u * u + v * v))])

    @staticmethod
    def conserved_and_flux(w: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
        rho, u, v, p = w
        q = np.stack([rho, rho * u, rho * v, p / (GAMMA - 1) + 0.5 * rho * (u * u + v * v)])
        f = q * w[1 + d]
        f[1 + d] += p
        f[3] += p * w[1 + d]
        return q, f

    def change(self, q: np.ndarray) -> np.ndarray:
        w, total = self.primitive(q), np.zeros_like(q)
        for d in (0, 1):
            axis = 1 + d
            a, b = w - np.roll(w, 1, axis), np.roll(w, -1, axis) - w
            slope = np.where(a * b > 0, np.sign(a) * np.minimum(abs(a), abs(b)), 0)
            left, right = np.roll(w + slope / 2, 1, axis), w - slope / 2
            (q_left, f_left), (q_right, f_right) = self.conserved_and_flux(left, d), self.conserved_and_flux(right, d)
            c_left, c_right = np.sqrt(GAMMA * left[3] / left[0]), np.sqrt(GAMMA * right[3] / right[0])
            slow = np.minimum(0, np.minimum(left[1 + d] - c_left, right[1 + d] - c_right))
            fast = np.maximum(0, np.maximum(left[1 + d] + c_left, right[1 + d] + c_right))
            flux = (fast * f_left - slow * f_right + slow * fast * (q_right - q_left)) / (fast - slow)
            total += np.roll(flux, -1, axis) - flux
        return total / self.h

    def step(self) -> None:
        w = self.primitive(self.q)
        fastest = (np.maximum(abs(w[1]), abs(w[2])) + np.sqrt(GAMMA * w[3] / w[0])).max()
        dt = self.cfl * self.h / fastest
        once = self.q - dt * self.change(self.q)
        self.q = (self.q + once - dt * self.change(once)) / 2


def test_euler_fluid() -> None:
    ti.init(default_fp=ti.f64)
    n = 32
    fluid = EulerFluid(n)
    # A dense and fast blob in gas at rest: subsonic and supersonic faces in both directions.
    x, y = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n, indexing="ij")
    inside = (x - 0.4) ** 2 + (y - 0.5) ** 2 < 0.04
    rho, u, v, p = (
        np.where(inside, 2.0, 1.0),
        np.where(inside, 3.0, 0.0),
        np.where(inside, -0.5, 0.1),
        1.0 + 0.5 * inside,
    )
    q = np.stack([rho, rho * u, rho * v, p / (GAMMA - 1) + 0.5 * rho * (u**2 + v**2)])
    fluid.Q.from_numpy(np.moveaxis(q, 0, -1))
    reference = Reference(q, fluid.h, fluid.cfl)
    for _ in range(25):
        fluid.step()
        reference.step()
    found = np.moveaxis(fluid.Q.to_numpy(), -1, 0)
    np.testing.assert_allclose(found, reference.q, atol=1e-12)
    assert found.sum((1, 2)) == pytest.approx(q.sum((1, 2)), rel=1e-13)
    assert abs(found - q).max() > 1
