"""The fields, kernels and functions that random programs of Python are made of (`python_writer.py`)."""

#: the fields that a program starts from and is differentiated with respect to: expressions, and shapes of their numbers
FIELDS = {"x": (3,), "y": (3,), "v": (2, 2), "s": (), "m": (2, 2), "p.mass": (2,), "p.at": (2, 2)}

#: what has no derivative of its own, and what it holds at the start: numbers pass through it
SCRATCH = {"c": [0.3, -0.2, 0.5], "w": [[0.4, -0.1], [0.2, 0.6]], "e": [-0.4, 0.1, 0.7]}

LIBRARY = """\
import functools
import math

import numpy as np

import tinote as ti

both = {"needs_grad": True, "needs_dual": True}
x, y = [ti.field(ti.f64, 3, name=name, **both) for name in "xy"]
v = ti.Vector.field(2, ti.f64, 2, name="v", **both)
s, loss = [ti.field(ti.f64, (), name=name, **both) for name in ("s", "loss")]
m = ti.Matrix.field(2, 2, ti.f64, (), name="m", **both)
p = ti.Struct.field({"mass": ti.f64, "at": ti.types.vector(2, ti.f64)}, shape=2, **both)
c = ti.field(ti.f64, 3, name="c")
w = ti.Vector.field(2, ti.f64, 2, name="w")
e = ti.ndarray(ti.f64, 3, name="e")
numbers = ti.types.ndarray(dtype=ti.f64, ndim=1)


def wave(u, height=0.5):
    if u > 2.1:
        return height * ti.sin(2.1)
    return height * ti.sin(u)


def rotated(u, angle):
    cos, sin = ti.cos(angle), ti.sin(angle)
    return ti.Vector([cos * u.x - sin * u.y, sin * u.x + cos * u.y])


def damped(share, u):
    return share * ti.tanh(u)


lightly = functools.partial(damped, 0.3)


@ti.kernel
def norm2() -> ti.f64:
    found = 0.0
    for i in x:
        found += x[i] ** 2
    return found


@ti.kernel
def total(f: ti.template()) -> ti.f64:
    found = 0.0
    for i in f:
        found += ti.sin(f[i]) * (i + 1)
    return found


@ti.kernel
def pair(a: ti.f64, i: ti.i32) -> tuple[ti.f64, ti.f64]:
    return a * x[i] - y[i], ti.sin(a) + s[None]


@ti.kernel
def count() -> ti.i32:
    found = 0
    for i in x:
        if x[i] > 0.1:
            found += 1
    return found


@ti.kernel
def scaled(a: ti.f64):
    for i in x:
        loss[None] += a * x[i]


@ti.kernel
def advance(a: ti.f64):
    for i in y:
        y[i] = 0.8 * y[i] + wave(a + x[i])


@ti.kernel
def mix(f: ti.template(), g: ti.template(), a: ti.f64):
    for i in f:
        f[i] = 0.6 * f[i] + lightly(a * g[i])


@ti.kernel
def put(f: ti.template(), i: ti.i32, a: ti.f64):
    f[i] = 0.5 * f[i] * a + 0.2 * a


@ti.kernel
def spin(a: ti.f64):
    for i in v:
        v[i] = rotated(v[i], a)
        v[i].y += 0.1 * a


@ti.kernel
def push(i: ti.i32, u: ti.types.vector(2, ti.f64)):
    v[i] = 0.7 * v[i] + 0.4 * u


@ti.kernel
def centre() -> ti.types.vector(2, ti.f64):
    return 0.5 * (v[0] + v[1]) * s[None]


@ti.kernel
def shear(a: ti.f64):
    for _ in range(1):
        m[None] = 0.5 * m[None] + 0.2 * a * ti.Matrix([[m[None][1, 0], a], [s[None], m[None][0, 1]]])


@ti.kernel
def drift(i: ti.i32, a: ti.f64) -> ti.f64:
    p[i].at = 0.8 * p[i].at + 0.3 * a * p[i].mass * v[i]
    return p[i].at.norm_sqr()


@ti.kernel
def weigh(q: numbers, a: ti.f64) -> ti.f64:
    found = 0.0
    for i in q:
        found += q[i] * x[i] * a
    return found


@ti.kernel
def spread(q: numbers, a: ti.f64):
    for i in q:
        y[i] += 0.3 * q[i] * a


@ti.kernel
def ripple(q: numbers):
    for i in q:
        q[i] = ti.sin(q[i] + 0.3)


@ti.kernel
def use_c():
    for i in c:
        x[i] += 0.2 * c[i]


@ti.kernel
def lay(i: ti.i32, a: ti.f64):
    c[i] = 0.7 * c[i] + 0.2 * a * x[i]
    w[i % 2] = 0.5 * w[i % 2] + a * v[i % 2] * c[i]


@ti.kernel
def take(i: ti.i32, a: ti.f64) -> ti.f64:
    v[i] = 0.8 * v[i] + 0.3 * a * w[1 - i]
    return w[i].norm_sqr()


@ti.kernel
def begin(q: numbers):
    for i in q:
        loss[None] += 0.05 * q[i] * x[i]
    for i in x:
        loss[None] += 0.1 * x[i] * y[i] + 0.2 * ti.sin(x[i])
    for i in v:
        loss[None] += 0.3 * v[i].x * v[i].y * s[None] + 0.2 * p[i].mass * p[i].at.norm_sqr()
    loss[None] += 0.1 * m[None].determinant()


@ti.kernel
def finish():
    for i in x:
        loss[None] += 0.3 * x[i] * (i + 1) + 0.2 * y[i] ** 2 + x[i] * y[i]
    for i in v:
        loss[None] += v[i].x * v[i].y * (i + 0.5) + 0.1 * s[None] * v[i].x
        loss[None] += 0.2 * p[i].mass * p[i].at.x + 0.1 * p[i].at.y ** 2
    loss[None] += 0.3 * m[None].determinant() + 0.2 * m[None][0, 1] ** 2


@ti.data_oriented
class Body:
    def __init__(self):
        self.rate = 0.7

    def weighted(self, u):
        return self.rate * u

    @ti.kernel
    def energy(self, a: ti.f64) -> ti.f64:
        return self.weighted(s[None] ** 2) * a + x[0] * y[1]

    @ti.kernel
    def decay(self):
        s[None] = self.weighted(s[None]) + 0.1 * x[2]

    def step(self, a):
        self.decay()
        return 0.5 * self.energy(a) + a


body = Body()


def squash(u):
    return u / (1 + u * u)
"""
