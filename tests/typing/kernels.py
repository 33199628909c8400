"""Kernels and device functions, as functions and as methods, with the annotations that are types."""

from typing import Any, assert_type

import tinote as ti
from tinote.math import vec3
from tinote.types import i32

ti.init()
N = 8
x = ti.Vector.field(3, ti.f32, shape=N, needs_grad=True)
energy = ti.field(ti.f32, shape=(), needs_grad=True)


@ti.func
def square(a):
    """a²."""
    return a * a


@ti.func
def along(a: vec3, b: ti.math.vec3) -> ti.f32:
    return a.dot(b)


@ti.kernel
def potential(stiffness: ti.f32, count: i32 = 1) -> ti.f32:
    total = 0.0
    ti.loop_config(serialize=True)
    for i, j in ti.ndrange(N, (0, N)):
        r = x[i] - x[j]
        total += stiffness * ti.sqrt(r.norm_sqr() + 1e-3) + square(r.x)
    for i in x:
        energy[None] += ti.max(x[i].dot(x[i]), 0.0) + along(x[i], ti.math.vec3(0.0, 1.0, 0.0))
        for k in ti.static(range(3)):
            ti.atomic_add(energy[None], x[i][k] * ti.random())
    return total


@ti.kernel
def fade(steps: ti.u8):
    for index in ti.grouped(x):
        x[index] *= ti.exp(-ti.cast(steps, ti.f32))


@ti.kernel
def push(by: vec3, gravity: ti.math.vec3) -> vec3:
    for i in range(N):
        x[i] += by + 0.1 * gravity
    return 2.0 * by


@ti.data_oriented
class Solver:
    def __init__(self, n: int) -> None:
        self.pressure = ti.field(ti.f32, shape=n)

    @ti.kernel
    def relax(self, rate: ti.f32) -> ti.f32:
        for i in self.pressure:
            self.pressure[i] *= rate
        return self.clipped(rate)

    @ti.func
    def clipped(self, a: ti.f32) -> ti.f32:
        return ti.min(a, 1.0)


assert_type(potential(2.0), float)
assert_type(potential(2.0, count=3), float)
potential.grad(2.0)
fade(3)
push(ti.Vector([1.0, 0.0, 0.0]), gravity=vec3(0.0))
push(x[0], x[1] + vec3(0.0, 1.0, 0.0))
solver = Solver(N)
assert_type(solver.relax(0.5), float)
solver.relax.grad(0.5)
print(potential.ir(), potential.loops(), potential.source.name, square(3.0))
s: Any = ti.sin(1.0) + ti.math.mix(0.0, 1.0, 0.5)
