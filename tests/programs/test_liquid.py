"""A drop of a nearly incompressible liquid that is thrown so that its centre lands where it should: the material point
method, differentiated with respect to the throw.

No helper function is decorated: kernels call plain functions, lambdas, a partial application and an object's methods.
"""

import functools

import numpy as np
import pytest

import tinote as ti

STEPS, SIDE, GRID, DT = 24, 6, 24, 2e-3
COUNT, DX = SIDE * SIDE, 1 / GRID
VOLUME = (DX / 2) ** 2
GRAVITY = (0.0, -9.8)
MARGIN = 3


def zero_vector():
    return [0.0, 0.0]


def zero_matrix():
    return [zero_vector(), zero_vector()]


def stencil():
    return ti.ndrange(3, 3)


def base_cell(x):
    return int(x * GRID - 0.5)


def weights(x):
    """Those of three cells along each axis."""
    f = x * GRID - base_cell(x)
    return [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]


def at_wall(v, cell):
    """Nothing leaves through a wall."""
    for d in ti.static(range(2)):
        if cell[d] < MARGIN and v[d] < 0:
            v[d] = 0.0
        if cell[d] > GRID - MARGIN and v[d] > 0:
            v[d] = 0.0
    return v


class Liquid:
    """Its pressure follows from how much it is compressed: `j` is the volume as a part of that at rest."""

    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    def pressure(self, j):
        return self.stiffness * (1 - j)

    def stress(self, j):
        return ti.Matrix([[self.pressure(j), 0.0], [0.0, self.pressure(j)]])


def scaled(factor, value):
    return factor * value


water = Liquid(60.0)
impulse_of = functools.partial(scaled, 4 * DT * VOLUME * GRID * GRID)
squared_distance = lambda a, b: (a - b).norm_sqr()  # noqa: E731


class Drop:
    def __init__(self) -> None:
        vector = functools.partial(ti.Vector.field, 2, float, needs_grad=True)
        self.throw, self.goal = vector(shape=()), ti.Vector.field(2, float, shape=())
        self.x, self.v = vector(shape=(STEPS + 1, COUNT)), vector(shape=(STEPS + 1, COUNT))
        self.c = ti.Matrix.field(2, 2, float, shape=(STEPS + 1, COUNT), needs_grad=True)
        self.j = ti.field(float, shape=(STEPS + 1, COUNT), needs_grad=True)
        self.momentum, self.velocity = vector(shape=(STEPS, GRID, GRID)), vector(shape=(STEPS, GRID, GRID))
        self.mass = ti.field(float, shape=(STEPS, GRID, GRID), needs_grad=True)
        self.centre, self.loss = vector(shape=()), ti.field(float, shape=(), needs_grad=True)

    @ti.kernel
    def begin(self):
        for p in range(COUNT):
            self.x[0, p] = ti.Vector([0.3 + 0.5 * DX * (p // SIDE), 0.2 + 0.5 * DX * (p % SIDE)])
            self.v[0, p] = self.throw[None]
            self.c[0, p] = ti.Matrix(zero_matrix())
            self.j[0, p] = 1.0
        for s, a, b in self.mass:
            self.mass[s, a, b] = 0.0
            self.momentum[s, a, b] = ti.Vector(zero_vector())
        self.centre[None] = ti.Vector(zero_vector())

    @ti.kernel
    def to_grid(self, s: ti.i32):
        for p in range(COUNT):
            x = self.x[s, p]
            w = [weights(x[0]), weights(x[1])]
            base = ti.Vector([base_cell(x[0]), base_cell(x[1])])
            affine = impulse_of(water.stress(self.j[s, p])) + VOLUME * self.c[s, p]
            for offset in ti.static(ti.grouped(stencil())):
                share = w[0][offset[0]] * w[1][offset[1]]
                r = (base + offset) * DX - x
                self.momentum[s, base + offset] += share * (VOLUME * self.v[s, p] + affine @ r)
                self.mass[s, base + offset] += share * VOLUME

    @ti.kernel
    def on_grid(self, s: ti.i32):
        for a, b in ti.ndrange(GRID, GRID):
            v = ti.Vector(zero_vector())
            if self.mass[s, a, b] > 1e-12:
                v = self.momentum[s, a, b] / self.mass[s, a, b] + DT * ti.Vector(GRAVITY)
            self.velocity[s, a, b] = at_wall(v, (a, b))

    @ti.kernel
    def from_grid(self, s: ti.i32):
        for p in range(COUNT):
            x = self.x[s, p]
            w = [weights(x[0]), weights(x[1])]
            base = ti.Vector([base_cell(x[0]), base_cell(x[1])])
            v, c = ti.Vector(zero_vector()), ti.Matrix(zero_matrix())
            for i, k in ti.static(stencil()):
                share = w[0][i] * w[1][k]
                g = self.velocity[s, base + ti.Vector([i, k])]
                v += share * g
                c += 4 * GRID * GRID * share * g.outer_product((base + ti.Vector([i, k])) * DX - x)
            self.v[s + 1, p], self.c[s + 1, p] = v, c
            self.x[s + 1, p] = x + DT * v
            self.j[s + 1, p] = self.j[s, p] * (1 + DT * c.trace())

    @ti.kernel
    def look(self):
        for p in range(COUNT):
            self.centre[None] += self.x[STEPS, p] / COUNT

    @ti.kernel
    def judge(self):
        self.loss[None] = squared_distance(self.centre[None], self.goal[None])

    def fly(self) -> None:
        self.begin()
        for s in range(STEPS):
            self.to_grid(s)
            self.on_grid(s)
            self.from_grid(s)
        self.look()
        self.judge()

    def loss_of(self, throw: np.ndarray) -> float:
        self.throw[None] = throw
        self.fly()
        return self.loss[None]


def reference(throw: np.ndarray, goal: np.ndarray) -> float:
    """The same in NumPy, with the same plain functions where they take arrays."""
    index = np.arange(COUNT)
    x = np.stack([0.3 + 0.5 * DX * (index // SIDE), 0.2 + 0.5 * DX * (index % SIDE)], 1)
    v, c, j = np.tile(throw, (COUNT, 1)), np.zeros((COUNT, 2, 2)), np.ones(COUNT)
    inside = np.arange(GRID)
    for _ in range(STEPS):
        base = (x * GRID - 0.5).astype(int)
        f = x * GRID - base
        w = np.stack([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2])
        momentum, mass = np.zeros((GRID, GRID, 2)), np.zeros((GRID, GRID))
        affine = impulse_of(water.pressure(j))[:, None, None] * np.eye(2) + VOLUME * c
        shares = {(a, b): w[a, :, 0] * w[b, :, 1] for a, b in stencil()}
        for (a, b), share in shares.items():
            at = base + np.array([a, b])
            r = at * DX - x
            np.add.at(
                momentum, (at[:, 0], at[:, 1]), share[:, None] * (VOLUME * v + np.einsum("pij,pj->pi", affine, r))
            )
            np.add.at(mass, (at[:, 0], at[:, 1]), share * VOLUME)
        full = mass > 1e-12
        g = np.where(full[..., None], momentum / np.where(full, mass, 1)[..., None] + DT * np.array(GRAVITY), 0)
        for d in range(2):
            low, high = (np.expand_dims(wall, 1 - d) for wall in (inside < MARGIN, inside > GRID - MARGIN))
            g[..., d] = np.where((low & (g[..., d] < 0)) | (high & (g[..., d] > 0)), 0, g[..., d])
        v, c = np.zeros_like(v), np.zeros_like(c)
        for (a, b), share in shares.items():
            at = base + np.array([a, b])
            here = g[at[:, 0], at[:, 1]]
            v += share[:, None] * here
            c += 4 * GRID * GRID * share[:, None, None] * here[:, :, None] * (at * DX - x)[:, None]
        x = x + DT * v
        j = j * (1 + DT * np.trace(c, axis1=1, axis2=2))
    return float(((x.mean(0) - goal) ** 2).sum())


def test_one_throw_and_its_gradient() -> None:
    ti.init(default_fp=ti.f64)
    drop = Drop()
    drop.goal[None] = goal = np.array([0.45, 0.3])
    drop.throw[None] = throw = np.array([1.5, -3.0])
    with ti.ad.Tape(drop.loss):
        drop.fly()
    assert drop.loss[None] == pytest.approx(reference(throw, goal), rel=1e-9)
    assert drop.j.to_numpy()[-1].min() < 0.99, "it is compressed"
    step = 1e-6 * np.eye(2)
    by_differences = [(reference(throw + h, goal) - reference(throw - h, goal)) / 2e-6 for h in step]
    np.testing.assert_allclose(drop.throw.grad.to_numpy(), by_differences, rtol=1e-6)


def test_a_throw_is_learnt() -> None:
    ti.init(default_fp=ti.f64)
    drop = Drop()
    drop.goal[None] = [0.45, 0.3]
    drop.throw[None] = [0.0, -3.0]
    losses: list[float] = []
    for _ in range(12):
        with ti.ad.Tape(drop.loss):
            drop.fly()
        losses.append(drop.loss[None])
        drop.throw[None] -= 120.0 * drop.throw.grad[None]
    assert losses[-1] < 1e-4 * losses[0]


def test_another_liquid_at_the_next_launch() -> None:
    """What a method reads is a constant of the kernels, for as long as it does not change."""
    ti.init(default_fp=ti.f64)
    drop, throw, goal = Drop(), np.array([1.5, -3.0]), np.array([0.45, 0.3])
    drop.goal[None] = goal
    first = drop.loss_of(throw)
    try:
        water.stiffness = 240.0
        assert drop.loss_of(throw) == pytest.approx(reference(throw, goal), rel=1e-9) != first
    finally:
        water.stiffness = 60.0
    assert drop.loss_of(throw) == first
