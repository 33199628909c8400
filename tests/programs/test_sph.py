"""Smoothed particle hydrodynamics of a falling block: weakly compressible, neighbours from a grid.

Particles are sorted into cells by counting, a prefix sum and atomics; the sum over neighbours takes the summand as a
function, and what it adds to by reference.
"""

import numpy as np
import pytest

import tinote as ti


@ti.data_oriented
class ParticleSystem:
    """Particles of mass `mass` in a unit square, with the cubic spline kernel of support `h`."""

    def __init__(self, positions: np.ndarray, h: float) -> None:
        self.count = len(positions)
        self.h = h
        self.cells = int(1 / h)
        self.mass = 1000.0 * (h / 2) ** 2
        self.stiffness, self.viscosity, self.dt = 500.0, 0.05, 5e-4
        particle = ti.types.struct(x=ti.math.vec2, v=ti.math.vec2, a=ti.math.vec2, density=ti.f32, pressure=ti.f32)
        self.particles = particle.field(shape=self.count)
        self.particles.x.from_numpy(positions)
        total = self.cells**2
        self.cell_end = ti.field(ti.i32, shape=total)
        self.cursor = ti.field(ti.i32, shape=total)
        self.sorted = ti.field(ti.i32, shape=self.count)
        self.prefix_sum = ti.algorithms.PrefixSumExecutor(total)

    @ti.func
    def cell_of(self, x):
        return ti.math.clamp(ti.floor(x / self.h, ti.i32), 0, self.cells - 1)

    @ti.func
    def flatten(self, cell):
        return cell.x * self.cells + cell.y

    @ti.kernel
    def count_particles(self):
        for c in self.cell_end:
            self.cell_end[c] = 0
        for i in range(self.count):
            ti.atomic_add(self.cell_end[self.flatten(self.cell_of(self.particles[i].x))], 1)

    @ti.kernel
    def place_particles(self):
        for c in self.cursor:
            self.cursor[c] = self.cell_end[c]
        for i in range(self.count):
            slot = ti.atomic_sub(self.cursor[self.flatten(self.cell_of(self.particles[i].x))], 1) - 1
            self.sorted[slot] = i

    def sort(self) -> None:
        self.count_particles()
        self.prefix_sum.run(self.cell_end)
        self.place_particles()

    @ti.func
    def for_all_neighbours(self, i, task: ti.template(), result: ti.template()):
        cell = self.cell_of(self.particles[i].x)
        for offset in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
            other = cell + offset
            if (other >= 0).all() and (other < self.cells).all():
                c = self.flatten(other)
                begin = 0
                if c > 0:
                    begin = self.cell_end[c - 1]
                for slot in range(begin, self.cell_end[c]):
                    j = self.sorted[slot]
                    if i != j and (self.particles[i].x - self.particles[j].x).norm() < self.h:
                        task(i, j, result)

    @ti.func
    def spline(self, r: ti.f32) -> ti.f32:
        result = 0.0
        q = r / self.h
        if q <= 0.5:
            result = 6 * (q**3 - q**2) + 1
        elif q <= 1:
            result = 2 * (1 - q) ** 3
        return result * 40 / 7 / ti.math.pi / self.h**2

    @ti.func
    def spline_gradient(self, r: ti.math.vec2) -> ti.math.vec2:
        length = r.norm()
        q = length / self.h
        result = ti.math.vec2(0, 0)
        if length > 1e-5:
            slope = q * (3 * q - 2) if q <= 0.5 else -((1 - q) ** 2)
            result = slope * r / (length * self.h)
        return 6 * 40 / 7 / ti.math.pi / self.h**2 * result

    @ti.func
    def density_task(self, i, j, density: ti.template()):
        density += self.mass * self.spline((self.particles[i].x - self.particles[j].x).norm())

    @ti.func
    def force_task(self, i, j, a: ti.template()):
        p, q = self.particles[i], self.particles[j]
        r = p.x - q.x
        gradient = self.spline_gradient(r)
        a -= self.mass * (p.pressure / p.density**2 + q.pressure / q.density**2) * gradient
        a += (
            8
            * self.viscosity
            * self.mass
            / q.density
            * (p.v - q.v).dot(r)
            / (r.norm_sqr() + 0.01 * self.h**2)
            * gradient
        )

    @ti.kernel
    def compute_forces(self):
        for i in self.particles:
            density = self.mass * self.spline(0.0)
            self.for_all_neighbours(i, self.density_task, density)
            self.particles[i].density = ti.max(density, 1000.0)
            self.particles[i].pressure = self.stiffness * ((self.particles[i].density / 1000) ** 7 - 1)
        for i in self.particles:
            a = ti.math.vec2(0.0, -9.8)
            self.for_all_neighbours(i, self.force_task, a)
            self.particles[i].a = a

    @ti.kernel
    def advance(self):
        for i in self.particles:
            self.particles[i].v += self.dt * self.particles[i].a
            self.particles[i].x += self.dt * self.particles[i].v
            for d in ti.static(range(2)):
                if self.particles[i].x[d] < 0.02:
                    self.particles[i].x[d] = 0.02
                    self.particles[i].v[d] *= -0.5
                elif self.particles[i].x[d] > 0.98:
                    self.particles[i].x[d] = 0.98
                    self.particles[i].v[d] *= -0.5

    def step(self) -> None:
        self.sort()
        self.compute_forces()
        self.advance()


def reference_step(x: np.ndarray, v: np.ndarray, s: ParticleSystem) -> tuple[np.ndarray, np.ndarray]:
    """One step over all pairs; returns the new positions and velocities."""
    r = x[:, None] - x[None]
    distance = np.linalg.norm(r, axis=-1)
    q = distance / s.h
    scale = 40 / 7 / np.pi / s.h**2
    w = scale * np.where(q <= 0.5, 6 * (q**3 - q**2) + 1, np.where(q <= 1, 2 * (1 - q) ** 3, 0))
    slope = np.where(q <= 0.5, q * (3 * q - 2), np.where(q <= 1, -((1 - q) ** 2), 0))
    gradient = (6 * scale * slope / (np.where(distance > 1e-5, distance, np.inf) * s.h))[..., None] * r
    density = np.maximum(s.mass * w.sum(1), 1000)
    pressure = s.stiffness * ((density / 1000) ** 7 - 1)
    share = pressure / density**2
    a = -s.mass * ((share[:, None] + share)[..., None] * gradient).sum(1)
    approach = ((v[:, None] - v[None]) * r).sum(-1) / (distance**2 + 0.01 * s.h**2)
    a += 8 * s.viscosity * s.mass * ((approach / density)[..., None] * gradient).sum(1)
    a[:, 1] -= 9.8
    v = v + s.dt * a
    x = x + s.dt * v
    outside = (x < 0.02) | (x > 0.98)
    return np.clip(x, 0.02, 0.98), np.where(outside, -0.5 * v, v)


def test_sph() -> None:
    h = 1 / 16
    grid = np.stack(np.meshgrid(np.arange(16), np.arange(12), indexing="ij"), -1).reshape(-1, 2)
    shaken = np.random.default_rng(3).uniform(-0.1, 0.1, grid.shape)
    x = ((grid + shaken) * 0.45 * h + 0.03).astype(np.float32)
    fluid = ParticleSystem(x, h)
    x, v = x.astype(float), np.zeros((len(x), 2))
    for _ in range(40):
        fluid.step()
        x, v = reference_step(x, v, fluid)
    np.testing.assert_allclose(fluid.particles.x.to_numpy(), x, atol=1e-4)
    np.testing.assert_allclose(fluid.particles.v.to_numpy(), v, atol=1e-2)
    # The cells hold every particle once.
    assert sorted(fluid.sorted.to_numpy()) == list(range(fluid.count))
    assert fluid.particles.density.to_numpy().max() > 1050
    assert fluid.particles[0].v.norm() == pytest.approx(np.linalg.norm(v[0]), abs=1e-2)
