"""Small programs of many kinds, with the features that programs of this dialect use, each against NumPy.

A program gives what it computed and what NumPy computes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
import tinote.math as tm
from tinote.math import vec2

Pair = tuple[Any, Any]
PROGRAMS: dict[str, tuple[dict[str, Any], Callable[[], Pair]]] = {}


def program(**options: Any) -> Callable[[Callable[[], Pair]], Callable[[], Pair]]:
    def listed(function: Callable[[], Pair]) -> Callable[[], Pair]:
        PROGRAMS[function.__name__] = options, function
        return function

    return listed


@program(default_fp=ti.f64)
def boxes_that_fall() -> Pair:
    """Rigid bodies in the plane, as structs with methods: impulses at the corners that meet the ground."""
    vector = ti.types.vector(2, ti.f64)
    n, dt, restitution = 3, 0.01, 0.3

    @ti.dataclass
    class Body:
        position: vector
        velocity: vector
        angle: ti.f64
        spin: ti.f64
        inverse_mass: ti.f64
        inverse_inertia: ti.f64
        half: vector

        @ti.func
        def corner(self, k: ti.i32):
            sides = ti.Vector([1.0 if k & 1 else -1.0, 1.0 if k & 2 else -1.0])
            return tm.rotation2d(self.angle) @ (sides * self.half)

        @ti.func
        def velocity_at(self, r):
            return self.velocity + self.spin * ti.Vector([-r.y, r.x])

    bodies = Body.field(shape=(n,))
    for i in range(n):
        bodies[i].position = [i * 2.0, 1.0 + i]
        bodies[i].half = [0.5, 0.25]
        bodies[i].angle = 0.3 * i
        bodies[i].inverse_mass = 1 / (1.0 + i)
        bodies[i].inverse_inertia = 12 / ((1.0 + i) * 1.25)

    @ti.kernel
    def step():
        for i in bodies:
            b = bodies[i]
            b.velocity.y -= 9.8 * dt
            for k in ti.static(range(4)):
                r = b.corner(k)
                falling = b.velocity_at(r).y
                if (b.position + r).y < 0 and falling < 0:
                    impulse = -(1 + restitution) * falling / (b.inverse_mass + r.x**2 * b.inverse_inertia)
                    b.velocity.y += impulse * b.inverse_mass
                    b.spin += r.x * impulse * b.inverse_inertia
            b.position += b.velocity * dt
            b.angle += b.spin * dt
            bodies[i] = b

    for _ in range(200):
        step()

    expected = []
    for i in range(n):
        p, v, angle, spin = np.array([i * 2.0, 1.0 + i]), np.zeros(2), 0.3 * i, 0.0
        m, inertia = 1 / (1.0 + i), 12 / ((1.0 + i) * 1.25)
        for _ in range(200):
            v[1] -= 9.8 * dt
            c, s = math.cos(angle), math.sin(angle)
            for y, x in itertools.product((-0.25, 0.25), (-0.5, 0.5)):
                rx, ry = c * x - s * y, s * x + c * y
                falling = v[1] + spin * rx
                if p[1] + ry < 0 and falling < 0:
                    impulse = -(1 + restitution) * falling / (m + rx**2 * inertia)
                    v[1] += impulse * m
                    spin += rx * impulse * inertia
            p += v * dt
            angle += spin * dt
        expected.append(p)
    return bodies.position.to_numpy(), expected


@program()
def falling_sand() -> Pair:
    """A cellular automaton that changes its cells in order, in a plain nested loop."""
    width, height = 24, 18
    EMPTY, SAND, WATER, WALL = range(4)
    grid = ti.field(ti.u8, shape=(width, height))

    @ti.func
    def is_free(i, j):
        free = False
        if 0 <= i < width and 0 <= j < height:
            free = grid[i, j] == EMPTY
        return free

    @ti.func
    def swap(i, j, k, m):
        grid[i, j], grid[k, m] = grid[k, m], grid[i, j]

    @ti.kernel
    def fill(x: ti.i32, y: ti.i32, r: ti.i32, kind: ti.u8):
        for i, j in ti.ndrange((x - r, x + r + 1), (y - r, y + r + 1)):
            if (i - x) ** 2 + (j - y) ** 2 <= r * r and is_free(i, j):
                grid[i, j] = kind

    @ti.kernel
    def step(frame: int):
        ti.loop_config(serialize=True)
        for j in range(height):
            for k in range(width):
                i = k if frame % 2 == 0 else width - 1 - k
                kind = grid[i, j]
                if kind in (SAND, WATER):
                    side = 1 if (i + j + frame) % 2 else -1
                    if is_free(i, j - 1):
                        swap(i, j, i, j - 1)
                    elif is_free(i - 1, j - 1):
                        swap(i, j, i - 1, j - 1)
                    elif is_free(i + 1, j - 1):
                        swap(i, j, i + 1, j - 1)
                    elif kind == WATER and is_free(i + side, j):
                        swap(i, j, i + side, j)

    for x, y, r, kind in ((14, 12, 4, SAND), (5, 6, 3, WATER), (14, 4, 2, WALL)):
        fill(x, y, r, kind)
    cells = grid.to_numpy()
    for frame in range(30):
        step(frame)
        for j, k in itertools.product(range(height), range(width)):
            i = k if frame % 2 == 0 else width - 1 - k
            side = 1 if (i + j + frame) % 2 else -1
            for a, b, who in ((0, -1, 3), (-1, -1, 3), (1, -1, 3), (side, 0, 2)):
                kinds = (SAND, WATER) if who == 3 else (WATER,)
                if cells[i, j] in kinds and 0 <= i + a < width and j + b >= 0 and cells[i + a, j + b] == EMPTY:
                    cells[i, j], cells[i + a, j + b] = EMPTY, cells[i, j]
                    break
    return grid.to_numpy(), cells


@program(default_fp=ti.f64)
def conjugate_gradients() -> Pair:
    """Fields as template arguments, loops over neighbours with unit vectors, and a reduction that is returned."""
    n = 12
    x, p, q, r, b = (ti.field(ti.f64) for _ in range(5))
    ti.root.dense(ti.ij, (n, n)).place(x, p, q, r, b)
    alpha, beta = ti.field(ti.f64, ()), ti.field(ti.f64, ())

    @ti.kernel
    def begin():
        for i, j in b:
            b[i, j] = ti.sin(math.pi * i / n) * ti.cos(2 * math.pi * j / n)
            r[i, j] = p[i, j] = b[i, j]

    @ti.kernel
    def apply():
        for at in ti.grouped(q):
            total = 4 * p[at]
            for k in ti.static(range(2)):
                for sign in ti.static((-1, 1)):
                    near = at + sign * ti.Vector.unit(2, k)
                    if all(near >= 0) and not any(near > n - 1):
                        total -= p[near]
            q[at] = total

    @ti.kernel
    def dot(u: ti.template(), v: ti.template()) -> ti.f64:
        total = 0.0
        for at in ti.grouped(u):
            total += u[at] * v[at]
        return total

    @ti.kernel
    def advance():
        for at in ti.grouped(p):
            x[at] += alpha[None] * p[at]
            r[at] -= alpha[None] * q[at]

    @ti.kernel
    def turn():
        for at in ti.grouped(p):
            p[at] = r[at] + beta[None] * p[at]

    begin()
    rest = dot(r, r)
    for _ in range(200):
        apply()
        alpha[None] = rest / dot(p, q)
        advance()
        before, rest = rest, dot(r, r)
        if ti.sqrt(rest) < 1e-13:
            break
        beta[None] = rest / before
        turn()
    one = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    matrix = np.kron(one, np.eye(n)) + np.kron(np.eye(n), one)
    return x.to_numpy().ravel(), np.linalg.solve(matrix, b.to_numpy().ravel())


@program(default_fp=ti.f64)
def rope_of_constraints() -> Pair:
    """Positions that obey constraints, in ndarrays whose type is annotated in several ways."""
    n, dt, rest = 12, 0.01, 0.1

    @ti.kernel
    def predict(x: ti.types.ndarray(dtype=ti.types.vector(2, ti.f64), ndim=1), v: ti.types.ndarray(ndim=1), h: ti.f64):
        for i in x:
            if i > 0:
                v[i] += ti.Vector([0.0, -9.8]) * h
            x[i] += v[i] * h

    @ti.kernel
    def solve(x: ti.types.ndarray(), weight: ti.types.ndarray(dtype=float), odd: ti.i32):
        for k in range((x.shape[0] - odd) // 2):
            a, b = 2 * k + odd, 2 * k + odd + 1
            d = x[a] - x[b]
            move = (d.norm() - rest) / (weight[a] + weight[b]) * d.normalized()
            x[a] -= weight[a] * move
            x[b] += weight[b] * move

    @ti.kernel
    def finish(x: ti.types.ndarray(), before: ti.types.ndarray(), v: ti.types.ndarray(), h: float):
        for at in ti.grouped(x):
            v[at] = (x[at] - before[at]) / h

    x, v, before = (ti.Vector.ndarray(2, ti.f64, n) for _ in range(3))
    weight = np.r_[0.0, np.ones(n - 1)]
    X, V = np.stack([np.arange(n) * rest, np.ones(n)], 1), np.zeros((n, 2))
    x.from_numpy(X)
    for _ in range(20):
        before.copy_from(x)
        predict(x, v, dt)
        start = X.copy()
        V[1:, 1] -= 9.8 * dt
        X = X + V * dt
        for odd in (0, 1) * 10:
            solve(x, weight, odd)
            for a in range(odd, n - 1, 2):
                d = X[a] - X[a + 1]
                length = np.linalg.norm(d)
                move = (length - rest) / (weight[a] + weight[a + 1]) * d / length
                X[a] -= weight[a] * move
                X[a + 1] += weight[a + 1] * move
        finish(x, before, v, dt)
        V = (X - start) / dt
    return x.to_numpy(), X


@program(default_fp=ti.f64)
def spots_and_stripes() -> Pair:
    """A reaction with diffusion: weights in a NumPy array that the unrolled loops read, two phases in one field."""
    n, feed, kill = 16, 0.06, 0.062
    weights = np.array([[0.05, 0.2, 0.05], [0.2, -1, 0.2], [0.05, 0.2, 0.05]])
    uv = ti.Vector.field(2, ti.f64, shape=(2, n, n))

    @ti.kernel
    def begin(seed: ti.types.ndarray()):
        for t, i, j in uv:
            uv[t, i, j] = [1.0, seed[i, j]]

    @ti.kernel
    def step(phase: int):
        for i, j in ti.ndrange(n, n):
            here = uv[phase, i, j]
            spread = ti.Vector.zero(ti.f64, 2)
            for k, m in ti.static(ti.ndrange(3, 3)):
                spread += weights[k, m] * uv[phase, (i + k - 1) % n, (j + m - 1) % n]
            made = here[0] * here[1] ** 2
            change = vec2(0.16 * spread.x - made + feed * (1 - here.x), 0.08 * spread.y + made - (feed + kill) * here.y)
            uv[1 - phase, i, j] = here + 0.5 * change

    v = np.zeros((n, n))
    v[6:10, 6:10] = 1
    begin(v)
    u = np.ones((n, n))
    for t in range(20):
        step(t & 1)
        spread = [sum(w * np.roll(a, (1 - k, 1 - m), (0, 1)) for (k, m), w in np.ndenumerate(weights)) for a in (u, v)]
        made = u * v**2
        u, v = (
            u + 0.5 * (0.16 * spread[0] - made + feed * (1 - u)),
            v + 0.5 * (0.08 * spread[1] + made - (feed + kill) * v),
        )
    return uv.to_numpy()[0], np.stack([u, v], -1)


@program(default_fp=ti.f64)
def tops_that_spin() -> Pair:
    """Rotations as matrices, the inertia of a rigid body in space, and the moment that stays."""
    n, dt = 3, 1e-3
    rotation, momentum = ti.Matrix.field(3, 3, ti.f64, n), ti.Vector.field(3, ti.f64, n)
    inertia = ti.Matrix([[1.0, 0, 0], [0, 2.0, 0], [0, 0, 3.0]])

    @ti.func
    def rotated(axis, angle: float):
        c, s, (x, y, z) = ti.cos(angle), ti.sin(angle), axis
        skew = ti.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return ti.Matrix.identity(float, 3) + s * skew + (1 - c) * skew @ skew

    @ti.kernel
    def step():
        for i in rotation:
            r = rotation[i]
            w = r @ inertia.inverse() @ r.transpose() @ momentum[i]
            rotation[i] = rotated(w.normalized(), w.norm() * dt) @ r

    for i in range(n):
        rotation[i] = np.eye(3)
        momentum[i] = [0.1, 2.0 + i, 0.1]
    for _ in range(50):
        step()
    expected = []
    for i in range(n):
        r, L = np.eye(3), np.array([0.1, 2.0 + i, 0.1])
        for _ in range(50):
            w = r @ np.diag([1, 1 / 2, 1 / 3]) @ r.T @ L
            x, y, z = w / np.linalg.norm(w)
            k, a = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), np.linalg.norm(w) * dt
            r = (np.eye(3) + math.sin(a) * k + (1 - math.cos(a)) * k @ k) @ r
        expected.append(r)
    return rotation.to_numpy(), expected


@program()
def sparks() -> Pair:
    """Structs with methods and swizzles, a field of them placed in a tree, and a kernel that gives a struct."""

    @ti.dataclass
    class Spark:
        p: vec2
        v: vec2
        life: float

        @ti.func
        def alive(self):
            return self.life > 0

    Summary = ti.types.struct(centre=vec2, count=int)
    sparks = Spark.field()
    ti.root.dense(ti.i, 64).place(sparks)

    @ti.kernel
    def emit(origin: vec2, n: int) -> int:
        born = 0
        ti.loop_config(serialize=True)
        for i in range(sparks.shape[0]):
            if not sparks[i].alive() and born < n:
                sparks[i] = Spark(p=origin, v=vec2(i, 0.5 * i), life=0.25 * (i + 1))
                born += 1
        return born

    @ti.kernel
    def advance(dt: float) -> Summary:
        centre, count = vec2(0), 0
        for i in sparks:
            if sparks[i].alive():
                sparks[i].v.xy += vec2(0, -8).xy * dt
                sparks[i].p += sparks[i].v.xy * dt
                sparks[i].life -= dt
                centre += sparks[i].p.yx
                count += 1
        return Summary(centre=centre.yx / max(count, 1), count=count)

    born = emit(vec2(1, 2), 4)
    first, second = advance(0.5), advance(0.5)
    alive = np.array([1.0, 2.0, 3.0])  # the life of the first ends in the first step, that of the second, too
    assert born == 4 and sparks.life.to_numpy()[:4].tolist() == [-0.25, 0.0, -0.25, 0.0]
    return [*first.centre, first.count, second.count, emit(vec2(0), 9)], [
        1 + 0.5 * np.arange(4).mean(),
        2 + 0.5 * (0.5 * np.arange(4) - 4).mean(),
        4,
        len(alive) - 1,
        9,
    ]


@program()
def distances_on_a_grid() -> Pair:
    """Sweeps until nothing changes: truth values, infinity, clamped indices, a flag that the kernel returns."""
    n = 16
    distance, inside, count = ti.field(ti.f32, (n, n)), ti.field(ti.u1, (n, n)), ti.field(ti.u32, ())

    @ti.kernel
    def seed():
        for at in ti.grouped(distance):
            distance[at] = tm.inf
            inside[at] = (at - ti.Vector([8, 8])).norm() < 4
            if inside[at]:
                distance[at] = 0
                count[None] += ti.u32(1)

    @ti.kernel
    def sweep() -> ti.i32:
        changed = 0
        ti.loop_config(serialize=True)
        for at in ti.grouped(distance):
            best = distance[at]
            for D in ti.static([ti.Vector([1, 0]), ti.Vector([-1, 0]), ti.Vector([0, 1]), ti.Vector([0, -1])]):
                best = ti.min(best, distance[tm.clamp(at + D, 0, n - 1)] + 1)
            if best < distance[at]:
                distance[at] = best
                changed |= 1
        return changed

    seed()
    while sweep():
        pass
    i, j = np.mgrid[:n, :n]
    disc = (i - 8) ** 2 + (j - 8) ** 2 < 16
    assert count[None] == disc.sum() and (inside.to_numpy() == disc).all()
    return distance.to_numpy(), [[np.min(abs(i[disc] - a) + abs(j[disc] - b)) for b in range(n)] for a in range(n)]


@program(default_fp=ti.f64)
def pendulum() -> Pair:
    """A function that takes a function, tuples as results, a `while` with a `break`, and a struct that is returned."""
    State = ti.types.struct(x=ti.f64, v=ti.f64, t=ti.f64)

    @ti.func
    def rk4(f: ti.template(), s, h):
        ax, av = f(s.x, s.v)
        bx, bv = f(s.x + h / 2 * ax, s.v + h / 2 * av)
        cx, cv = f(s.x + h / 2 * bx, s.v + h / 2 * bv)
        dx, dv = f(s.x + h * cx, s.v + h * cv)
        s.x += h / 6 * (ax + 2 * bx + 2 * cx + dx)
        s.v += h / 6 * (av + 2 * bv + 2 * cv + dv)
        s.t += h
        return s

    @ti.func
    def swing(x, v):
        return v, -ti.sin(x)

    @ti.kernel
    def simulate(x: ti.f64, h: ti.f64) -> State:
        s = State(x=x, v=0, t=0)
        while True:
            if s.v < 0 and s.x < 0:
                break
            s = rk4(swing, s, h)
        return s

    found = simulate(1.0, 1e-3)
    mean = 1.0
    other = math.cos(0.5)
    for _ in range(6):
        mean, other = (mean + other) / 2, math.sqrt(mean * other)
    return found.t, math.ceil(math.pi / (2 * mean) / 1e-3) * 1e-3  # a quarter of its period


@program()
def sorting() -> Pair:
    """Bits of indices, swaps in place, a histogram by atomics, old values of atomics as places."""
    n = 256
    a, out = ti.field(ti.i32, n), ti.field(ti.i32, n)
    histogram, first = ti.field(ti.i32, 16), ti.field(ti.i32, 16)
    numbers = np.random.default_rng(4).integers(0, 2**16, n).astype(np.int32)

    @ti.kernel
    def exchange(size: ti.i32, distance: ti.i32):
        for i in range(n):
            j = i ^ distance
            if j > i:
                upwards = (i & size) == 0
                if (upwards and a[i] > a[j]) or (not upwards and a[i] < a[j]):
                    a[i], a[j] = a[j], a[i]

    @ti.kernel
    def by_digit(shift: ti.i32):
        for d in histogram:
            histogram[d] = 0
        for i in a:
            ti.atomic_add(histogram[(a[i] >> shift) & 15], 1)
        total = 0
        ti.loop_config(serialize=True)
        for d in range(16):
            first[d] = total
            total += histogram[d]
        ti.loop_config(serialize=True)
        for i in range(n):
            out[ti.atomic_add(first[(a[i] >> shift) & 15], 1)] = a[i]
        for i in a:
            a[i] = out[i]

    found = []
    a.from_numpy(numbers)
    for size in (2**k for k in range(1, 9)):
        distance = size >> 1
        while distance:
            exchange(size, distance)
            distance >>= 1
    found.append(a.to_numpy())
    a.from_numpy(numbers)
    for shift in range(0, 16, 4):
        by_digit(shift)
    return [*found, a.to_numpy()], [np.sort(numbers)] * 2


@program(default_fp=ti.f64)
def a_layer_that_learns() -> Pair:
    """Classes with fields and kernels as methods, called in a tape; the gradient is that of the formula."""

    @ti.data_oriented
    class Layer:
        def __init__(self, inputs: int, outputs: int, samples: int = 8, bent: bool = True) -> None:
            self.inputs, self.outputs, self.samples, self.bent = inputs, outputs, samples, bent
            self.w, self.b, self.y = (ti.field(ti.f64, needs_grad=True) for _ in range(3))
            ti.root.dense(ti.ij, (outputs, inputs)).place(self.w)
            ti.root.dense(ti.i, outputs).place(self.b)
            ti.root.dense(ti.ij, (samples, outputs)).place(self.y)
            ti.root.lazy_grad()

        @ti.kernel
        def forward(self, x: ti.template()):
            for m, i in ti.ndrange(self.samples, self.outputs):
                total = self.b[i]
                for j in range(self.inputs):
                    total += self.w[i, j] * x[m, j]
                self.y[m, i] = ti.tanh(total) if ti.static(self.bent) else total

    random = np.random.default_rng(0)
    x, loss = ti.field(ti.f64, (8, 2)), ti.field(ti.f64, (), needs_grad=True)
    layers = [Layer(2, 3), Layer(3, 1, bent=False)]
    X, target = random.normal(size=(8, 2)), random.normal(size=8)
    x.from_numpy(X)
    for layer in layers:
        layer.w.from_numpy(random.normal(size=layer.w.shape))

    @ti.kernel
    def measure(t: ti.types.ndarray()):
        for m in range(8):
            loss[None] += (layers[1].y[m, 0] - t[m]) ** 2

    with ti.ad.Tape(loss):
        for layer, given in zip(layers, (x, layers[0].y), strict=True):
            layer.forward(given)
        measure(target)
    W, U = (layer.w.to_numpy() for layer in layers)
    hidden = np.tanh(X @ W.T)
    error = 2 * (hidden @ U.T - target[:, None])
    return np.r_[layers[0].w.grad.to_numpy().ravel(), layers[1].w.grad.to_numpy().ravel()], np.r_[
        ((error @ U * (1 - hidden**2)).T @ X).ravel(), (error.T @ hidden).ravel()
    ]


@program()
def blocks_with_an_offset() -> Pair:
    """Fields that begin at a negative index, in blocks, with loops over the blocks and over the cells of each."""
    height = ti.field(ti.i32)
    highest = ti.field(ti.i32, (3, 3))
    blocks = ti.root.dense(ti.ij, 3)
    cells = blocks.dense(ti.ij, 4)
    cells.place(height, offset=(-6, -6))

    @ti.kernel
    def run():
        for i, j in height:
            height[i, j] = (i * i * 7 + j * 5) % 23
        for bi, bj in blocks:
            for di, dj in ti.ndrange(4, 4):
                ti.atomic_max(highest[bi, bj], height[bi * 4 + di - 6, bj * 4 + dj - 6])

    run()
    i, j = np.mgrid[-6:6, -6:6]
    heights = (i * i * 7 + j * 5) % 23
    return highest.to_numpy(), heights.reshape(3, 4, 3, 4).max((1, 3))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_what_numpy_does(name: str) -> None:
    options, run = PROGRAMS[name]
    ti.init(arch=ti.cpu, **options)
    found, expected = run()
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-7, atol=1e-12)
