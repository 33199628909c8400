"""A long material point simulation differentiated in bounded memory: how a throw's miss depends on its velocity.

    python examples/checkpointed_mpm.py --steps 10000 --memory 128

A block of particles (MLS-MPM, weakly compressible as in the 88-line program) is thrown in a box. The loss is the mean
squared distance from a target at the end; its derivative by the initial velocity and by the stiffness goes back through
all steps. All fields are overwritten in each step: a plain tape would keep some of them 10,000 times.
`ti.ad.checkpoint` saves the states that fit into the memory limit and recomputes steps from them.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import tinote as ti

__all__ = ["TITLE", "Throw", "main", "view"]

TITLE = "An elastic throw"


@ti.data_oriented
class Throw:
    """`particles` in a box of `grid` × `grid` cells; a step takes `dt` seconds."""

    def __init__(self, particles: int = 4096, grid: int = 64, dt: float = 1e-4) -> None:
        def vectors(shape: Any) -> Any:
            return ti.Vector.field(2, ti.f32, shape=shape, needs_grad=True)

        self.particles, self.grid, self.dt = particles, grid, dt
        self.dx, self.inv_dx = 1.0 / grid, float(grid)
        self.volume = (0.3 / particles**0.5) ** 2
        self.velocity, self.stiffness = vectors(()), ti.field(ti.f32, shape=(), needs_grad=True)
        self.x, self.v = vectors(particles), vectors(particles)
        self.C = ti.Matrix.field(2, 2, ti.f32, shape=particles, needs_grad=True)
        self.J = ti.field(ti.f32, shape=particles, needs_grad=True)
        self.grid_v = vectors((grid, grid))
        self.grid_m = ti.field(ti.f32, shape=(grid, grid), needs_grad=True)
        self.loss = ti.field(ti.f32, shape=(), needs_grad=True)
        self.velocity[None], self.stiffness[None] = (1.0, 0.5), 200.0

    @ti.kernel
    def start(self):
        side = ti.cast(ti.sqrt(ti.cast(self.particles, ti.f32)), ti.i32)
        for p in self.x:
            self.x[p] = [0.2 + 0.3 * (p % side) / side, 0.3 + 0.3 * (p // side) / side]
            self.v[p] = self.velocity[None]
            self.C[p] = ti.Matrix.zero(ti.f32, 2, 2)
            self.J[p] = 1.0

    @ti.func
    def weights(self, x):
        base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
        fx = x * self.inv_dx - ti.cast(base, ti.f32)
        return base, fx, [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]

    @ti.kernel
    def particles_to_grid(self):
        for p in self.x:
            base, fx, w = self.weights(self.x[p])
            stress = -self.dt * 4 * self.stiffness[None] * self.volume * (self.J[p] - 1) * self.inv_dx**2
            affine = ti.Matrix([[stress, 0.0], [0.0, stress]]) + self.volume * self.C[p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                dpos = (offset.cast(ti.f32) - fx) * self.dx
                weight = w[i].x * w[j].y
                self.grid_v[base + offset] += weight * (self.volume * self.v[p] + affine @ dpos)
                self.grid_m[base + offset] += weight * self.volume

    @ti.kernel
    def move_grid(self):
        for i, j in self.grid_m:
            if self.grid_m[i, j] > 0:
                v = self.grid_v[i, j] / self.grid_m[i, j]
                v.y -= self.dt * 9.8
                if (i < 3 and v.x < 0) or (i > self.grid - 3 and v.x > 0):
                    v.x = 0.0
                if (j < 3 and v.y < 0) or (j > self.grid - 3 and v.y > 0):
                    v.y = 0.0
                self.grid_v[i, j] = v

    @ti.kernel
    def grid_to_particles(self):
        for p in self.x:
            base, fx, w = self.weights(self.x[p])
            new_v, new_C = ti.Vector.zero(ti.f32, 2), ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                dpos = (ti.Vector([i, j]).cast(ti.f32) - fx) * self.dx
                weight = w[i].x * w[j].y
                g = self.grid_v[base + ti.Vector([i, j])]
                new_v += weight * g
                new_C += 4 * weight * g.outer_product(dpos) * self.inv_dx**2
            self.v[p] = new_v
            self.x[p] += self.dt * new_v
            self.J[p] *= 1 + self.dt * new_C.trace()
            self.C[p] = new_C

    @ti.kernel
    def measure(self):
        for p in self.x:
            self.loss[None] += (self.x[p] - ti.Vector([0.7, 0.3])).norm_sqr() / self.particles

    def step(self, _: int) -> None:
        """One time step, in place."""
        self.grid_v.fill(0)
        self.grid_m.fill(0)
        self.particles_to_grid()
        self.move_grid()
        self.grid_to_particles()

    def differentiate(self, steps: int, memory: int | None = None, progress: bool = True) -> ti.ad.Checkpoints:
        """The gradients of the loss after `steps` steps; `memory`: bytes for the states that are kept."""
        with ti.ad.Tape(self.loss):
            self.start()
            report = ti.ad.checkpoint(self.step, steps, memory=memory, progress=progress)
            self.measure()
        return report

    def value(self, steps: int) -> float:
        """The loss alone."""
        self.loss[None] = 0
        self.start()
        for t in range(steps):
            self.step(t)
        self.measure()
        return self.loss[None]


def view() -> ti.viz.Particles:
    """A live view of a throw."""
    ti.init(arch=ti.cpu)
    throw = Throw(2304)
    throw.velocity[None] = (3.0, 2.0)
    throw.start()
    return ti.viz.Particles(
        throw.x, lambda: throw.step(0), reset=throw.start, color="#d08a3c", radius=2, steps_per_frame=20,
        unattended_frames=86, label="an elastic block that is thrown",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--particles", type=int, default=4096)
    parser.add_argument("--grid", type=int, default=64)
    parser.add_argument("--memory", type=int, default=128, help="megabytes for the states that are kept")
    options = parser.parse_args()
    ti.init(arch=ti.cpu)
    throw = Throw(options.particles, options.grid)
    print(f"{options.steps:,} steps of {options.particles:,} particles, and their gradient …", flush=True)
    started = time.perf_counter()
    report = throw.differentiate(options.steps, options.memory << 20)
    seconds = time.perf_counter() - started
    print(report)
    print(f"loss {throw.loss[None]:.6f}; by the velocity {throw.velocity.grad[None].to_list()}, ", end="")
    print(f"by the stiffness {throw.stiffness.grad[None]:.3e}")
    print(f"{seconds:.1f} s")


if __name__ == "__main__":
    main()
