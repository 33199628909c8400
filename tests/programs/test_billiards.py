"""Billiards with exact times of impact within a step: the cue ball's position and velocity are learnt so that the last
ball stops where it should. Kernels call plain methods, through the table and through its class.
"""

import numpy as np
import pytest

import tinote as ti

LAYERS, STEPS, DT, RADIUS, ELASTICITY = 3, 160, 0.02, 0.05, 0.8
N_BALLS = 1 + LAYERS * (LAYERS + 1) // 2
TARGET_BALL, GOAL = N_BALLS - 1, ti.Vector([0.95, 0.72])


def rack() -> np.ndarray:
    """The cue ball's place is free; the others stand in a triangle with small gaps."""
    places = [(0.0, 0.0)]
    for i in range(LAYERS):
        places += [(0.45 + i * 2.05 * RADIUS, 0.5 + (j - i / 2) * 2.3 * RADIUS) for j in range(i + 1)]
    return np.array(places)


@ti.data_oriented
class Table:
    def __init__(self) -> None:
        self.init_x = ti.Vector.field(2, float, shape=(), needs_grad=True)
        self.init_v = ti.Vector.field(2, float, shape=(), needs_grad=True)
        self.x = ti.Vector.field(2, float, shape=(STEPS, N_BALLS), needs_grad=True)
        self.v = ti.Vector.field(2, float, shape=(STEPS, N_BALLS), needs_grad=True)
        self.impulse = ti.Vector.field(2, float, shape=(STEPS, N_BALLS), needs_grad=True)
        self.x_inc = ti.Vector.field(2, float, shape=(STEPS, N_BALLS), needs_grad=True)
        self.loss = ti.field(float, shape=(), needs_grad=True)
        self.collisions = ti.field(int, shape=())

    @ti.kernel
    def initialize(self):
        self.x[0, 0] = self.init_x[None]
        self.v[0, 0] = self.init_v[None]

    @staticmethod
    def time_of_impact(distance, speed):
        return (distance - 2 * RADIUS) / ti.min(-1e-3, speed)

    @classmethod
    def push(cls, distance, direction, speed):
        """The impulse of a ball that another one meets, and what it moves more (or less) for meeting it within the
        step.
        """
        impulse = -(1 + ELASTICITY) * 0.5 * speed * direction
        return impulse, ti.min(cls.time_of_impact(distance, speed) - DT, 0) * impulse

    def collide_pair(self, t, i, j):
        """Ball j pushes ball i: the impulse acts at the time of impact, the rest of the step has the new velocity."""
        dist = (self.x[t, i] + DT * self.v[t, i]) - (self.x[t, j] + DT * self.v[t, j])
        imp = ti.Vector([0.0, 0.0])
        x_inc_contrib = ti.Vector([0.0, 0.0])
        if dist.norm() < 2 * RADIUS:
            direction = dist.normalized()
            relative_v = self.v[t, i] - self.v[t, j]
            projected_v = direction.dot(relative_v)
            if projected_v < 0:
                imp, x_inc_contrib = Table.push(dist.norm(), direction, projected_v)
                self.collisions[None] += 1
        self.x_inc[t + 1, i] += x_inc_contrib
        self.impulse[t + 1, i] += imp

    @ti.kernel
    def collide(self, t: ti.i32):
        for i in range(N_BALLS):
            for j in range(i):
                Table.collide_pair(self, t, i, j)
        for i in range(N_BALLS):
            for j in range(i + 1, N_BALLS):
                self.collide_pair(t, i, j)

    @ti.kernel
    def advance(self, t: ti.i32):
        for i in range(N_BALLS):
            self.v[t, i] = self.v[t - 1, i] + self.impulse[t, i]
            self.x[t, i] = self.x[t - 1, i] + DT * self.v[t, i] + self.x_inc[t, i]

    @ti.kernel
    def compute_loss(self):
        self.loss[None] = (self.x[STEPS - 1, TARGET_BALL] - GOAL).norm_sqr()

    def play(self) -> None:
        self.impulse.fill(0)
        self.x_inc.fill(0)
        self.collisions[None] = 0
        self.initialize()
        for t in range(1, STEPS):
            self.collide(t - 1)
            self.advance(t)
        self.compute_loss()


def reference(start: np.ndarray) -> float:
    """The loss for a cue ball's position and velocity."""
    x, v = rack(), np.zeros((N_BALLS, 2))
    x[0], v[0] = start[:2], start[2:]
    for _ in range(1, STEPS):
        moved = x + DT * v
        dist = moved[:, None] - moved
        norm = np.sqrt((dist**2).sum(-1)) + np.eye(N_BALLS)
        direction = dist / norm[..., None]
        projected = (direction * (v[:, None] - v)).sum(-1)
        touch = (norm < 2 * RADIUS) & (projected < 0) & ~np.eye(N_BALLS, dtype=bool)
        impulse = np.where(touch[..., None], -(1 + ELASTICITY) * 0.5 * projected[..., None] * direction, 0)
        toi = (norm - 2 * RADIUS) / np.minimum(-1e-3, projected)
        v = v + impulse.sum(1)
        x = x + DT * v + (np.minimum(toi - DT, 0)[..., None] * impulse).sum(1)
    return ((x[TARGET_BALL] - GOAL.to_numpy()) ** 2).sum()


def test_billiards_are_learnt() -> None:
    ti.init(default_fp=ti.f64)
    table = Table()
    start = table.x.to_numpy()
    start[0] = rack()
    table.x.from_numpy(start)
    table.init_x[None] = [0.1, 0.47]
    table.init_v[None] = [0.6, 0.05]
    losses: list[float] = []
    for iteration in range(10):
        with ti.ad.Tape(loss=table.loss):
            table.play()
        losses.append(table.loss[None])
        gradient = np.concatenate([table.init_x.grad.to_numpy(), table.init_v.grad.to_numpy()])
        if iteration in (0, 6):
            assert table.collisions[None] >= 10
            cue = np.concatenate([table.init_x.to_numpy(), table.init_v.to_numpy()])
            assert losses[-1] == pytest.approx(reference(cue), rel=1e-9)
            h = 1e-7 * np.eye(4)
            by_differences = [(reference(cue + h[k]) - reference(cue - h[k])) / 2e-7 for k in range(4)]
            np.testing.assert_allclose(gradient, by_differences, rtol=1e-5, atol=1e-7)
        step = gradient * min(0.02, 0.005 / np.linalg.norm(gradient))
        table.init_x[None] -= step[:2]
        table.init_v[None] -= step[2:]
    assert min(losses) < 0.01 * losses[0]
