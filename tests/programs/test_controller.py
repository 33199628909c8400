"""A walker of masses and springs on a rough floor, whose muscles a small neural network drives. The network is trained
through the simulation (after Hu et al., DiffTaichi, 2020), and learns as one does that is trained with the
differences of the same simulation in NumPy.
"""

import numpy as np
import pytest

import tinote as ti

STEPS, DT, GRAVITY, DRAG, STIFFNESS, FRICTION = 240, 0.01, -4.8, 0.5, 120.0, 2.5
WAVES, HIDDEN, OMEGA = 3, 5, 12.0
GROUND = 0.1
POINTS = np.array([[0.1, 0.2], [0.2, 0.12], [0.35, 0.2], [0.2, 0.3]])
#: (a, b, how far a muscle changes the length)
SPRINGS = [(0, 1, 0.1), (1, 2, 0.15), (0, 2, 0.0), (0, 3, 0.1), (2, 3, 0.12), (1, 3, 0.1)]
N_OBJECTS, N_SPRINGS = len(POINTS), len(SPRINGS)
N_INPUT = WAVES + 2 * N_OBJECTS


def scalar():
    return ti.field(dtype=ti.f64)


def vec():
    return ti.Vector.field(2, dtype=ti.f64)


@ti.data_oriented
class Walker:
    def __init__(self) -> None:
        self.x, self.v, self.v_inc = vec(), vec(), vec()
        self.hidden, self.act = scalar(), scalar()
        self.weights1, self.bias1, self.weights2, self.bias2 = scalar(), scalar(), scalar(), scalar()
        self.loss = scalar()
        ti.root.dense(ti.i, STEPS + 1).dense(ti.j, N_OBJECTS).place(self.x, self.v, self.v_inc)
        ti.root.dense(ti.ij, (STEPS, HIDDEN)).place(self.hidden)
        ti.root.dense(ti.ij, (STEPS, N_SPRINGS)).place(self.act)
        ti.root.dense(ti.ij, (HIDDEN, N_INPUT)).place(self.weights1)
        ti.root.dense(ti.i, HIDDEN).place(self.bias1)
        ti.root.dense(ti.ij, (N_SPRINGS, HIDDEN)).place(self.weights2)
        ti.root.dense(ti.i, N_SPRINGS).place(self.bias2)
        ti.root.place(self.loss)
        ti.root.lazy_grad()
        self.anchor_a, self.anchor_b = ti.field(ti.i32, N_SPRINGS), ti.field(ti.i32, N_SPRINGS)
        self.length, self.muscle = ti.field(ti.f64, N_SPRINGS), ti.field(ti.f64, N_SPRINGS)
        for k, (a, b, muscle) in enumerate(SPRINGS):
            self.anchor_a[k], self.anchor_b[k], self.muscle[k] = a, b, muscle
            self.length[k] = np.linalg.norm(POINTS[a] - POINTS[b])
        for i, point in enumerate(POINTS):
            self.x[0, i] = point

    @property
    def parameters(self):
        return self.weights1, self.bias1, self.weights2, self.bias2

    @ti.kernel
    def nn1(self, t: ti.i32):
        for i in range(HIDDEN):
            actuation = self.bias1[i]
            for j in ti.static(range(WAVES)):
                actuation += self.weights1[i, j] * ti.sin(OMEGA * t * DT + 2 * np.pi / WAVES * j)
            center = ti.Vector([0.0, 0.0])
            for j in range(N_OBJECTS):
                center += self.x[t, j] / N_OBJECTS
            for j in ti.static(range(N_OBJECTS)):
                offset = self.x[t, j] - center
                actuation += self.weights1[i, WAVES + 2 * j] * offset[0] * 5
                actuation += self.weights1[i, WAVES + 2 * j + 1] * offset[1] * 5
            self.hidden[t, i] = ti.tanh(actuation)

    @ti.kernel
    def nn2(self, t: ti.i32):
        for i in range(N_SPRINGS):
            actuation = 0.0
            for j in ti.static(range(HIDDEN)):
                actuation += self.weights2[i, j] * self.hidden[t, j]
            self.act[t, i] = ti.tanh(actuation + self.bias2[i])

    @ti.kernel
    def apply_spring_force(self, t: ti.i32):
        for i in range(N_SPRINGS):
            a, b = self.anchor_a[i], self.anchor_b[i]
            dist = self.x[t, a] - self.x[t, b]
            length = dist.norm()
            target = self.length[i] * (1 + self.act[t, i] * self.muscle[i])
            impulse = DT * (length - target) * STIFFNESS / length * dist
            ti.atomic_add(self.v_inc[t + 1, a], -impulse)
            ti.atomic_add(self.v_inc[t + 1, b], impulse)

    @ti.kernel
    def advance(self, t: ti.i32):
        for i in range(N_OBJECTS):
            v = ti.exp(-DT * DRAG) * self.v[t - 1, i] + self.v_inc[t, i] + DT * GRAVITY * ti.Vector([0.0, 1.0])
            old_x = self.x[t - 1, i]
            toi = 0.0
            if old_x[1] + DT * v[1] < GROUND and v[1] < -1e-4:
                toi = ti.max((GROUND - old_x[1]) / v[1], 0.0)
            new_x = old_x + toi * v
            new_v = v
            if new_x[1] < GROUND + 1e-6 and v[1] < 0:
                slow = ti.max(1 - FRICTION * -v[1] / (ti.abs(v[0]) + 1e-3), 0.0)
                new_v = ti.Vector([v[0] * slow, 0.0])
            self.v[t, i] = new_v
            self.x[t, i] = new_x + (DT - toi) * new_v

    @ti.kernel
    def compute_loss(self):
        for i in range(N_OBJECTS):
            self.loss[None] += -self.x[STEPS, i][0] / N_OBJECTS

    def forward(self) -> None:
        self.v_inc.fill(0)
        for t in range(1, STEPS + 1):
            self.nn1(t - 1)
            self.nn2(t - 1)
            self.apply_spring_force(t - 1)
            self.advance(t)
        self.compute_loss()


def reference(parameters: list[np.ndarray]) -> np.ndarray:
    """The loss of many walkers at once: each array has their number as an additional first dimension."""
    weights1, bias1, weights2, bias2 = parameters
    x = np.tile(POINTS, (len(bias1), 1, 1))
    v = np.zeros_like(x)
    lengths = np.array([np.linalg.norm(POINTS[a] - POINTS[b]) for a, b, _ in SPRINGS])
    muscles = np.array([muscle for _, _, muscle in SPRINGS])
    for t in range(STEPS):
        waves = np.tile(np.sin(OMEGA * t * DT + 2 * np.pi / WAVES * np.arange(WAVES)), (len(x), 1))
        offsets = (5 * (x - x.mean(1, keepdims=True))).reshape(len(x), -1)
        hidden = np.tanh(bias1 + np.einsum("nij,nj->ni", weights1, np.hstack([waves, offsets])))
        act = np.tanh(bias2 + np.einsum("nij,nj->ni", weights2, hidden))
        v = np.exp(-DT * DRAG) * v
        v[..., 1] += DT * GRAVITY
        for k, (a, b, _) in enumerate(SPRINGS):
            dist = x[:, a] - x[:, b]
            norm = np.linalg.norm(dist, axis=-1)
            target = lengths[k] * (1 + act[:, k] * muscles[k])
            impulse = (DT * (norm - target) * STIFFNESS / norm)[:, None] * dist
            v[:, a] -= impulse
            v[:, b] += impulse
        hits = (x[..., 1] + DT * v[..., 1] < GROUND) & (v[..., 1] < -1e-4)
        toi = np.where(hits, np.maximum((GROUND - x[..., 1]) / np.where(hits, v[..., 1], 1), 0), 0)[..., None]
        x = x + toi * v
        touches = (x[..., 1] < GROUND + 1e-6) & (v[..., 1] < 0)
        slow = np.maximum(1 + FRICTION * v[..., 1] / (abs(v[..., 0]) + 1e-3), 0)
        v = np.where(touches[..., None], np.stack([v[..., 0] * slow, 0 * slow], -1), v)
        x = x + (DT - toi) * v
    return -x[..., 0].mean(-1)


def differences(flat: np.ndarray, shapes: list[tuple[int, ...]]) -> tuple[float, np.ndarray]:
    """The loss and its gradient by central differences, all parameters at once."""
    h, n = 1e-6, len(flat)
    moved = flat + np.vstack([np.zeros(n), h * np.eye(n), -h * np.eye(n)])
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    losses = reference([part.reshape(-1, *s) for part, s in zip(np.split(moved, cuts, 1), shapes, strict=True)])
    return losses[0], (losses[1 : n + 1] - losses[n + 1 :]) / (2 * h)


def test_a_walker_learns_to_walk() -> None:
    ti.init(default_fp=ti.f64)
    walker = Walker()
    random = np.random.default_rng(2)
    for parameter in walker.parameters:
        parameter.from_numpy(0.4 * random.normal(size=parameter.shape))
    shapes = [parameter.shape for parameter in walker.parameters]
    rival = np.concatenate([parameter.to_numpy().ravel() for parameter in walker.parameters])
    losses: list[float] = []
    for iteration in range(25):
        with ti.ad.Tape(loss=walker.loss):
            walker.forward()
        losses.append(walker.loss[None])
        gradient = np.concatenate([parameter.grad.to_numpy().ravel() for parameter in walker.parameters])
        if iteration < 5:
            value, by_differences = differences(rival, shapes)
            assert losses[-1] == pytest.approx(value, rel=1e-7)
            np.testing.assert_allclose(gradient, by_differences, atol=1e-5 * abs(gradient).max())
            rival -= 0.2 / np.linalg.norm(by_differences) * by_differences
        rate = 0.2 / np.linalg.norm(gradient)
        for parameter in walker.parameters:
            parameter.from_numpy(parameter.to_numpy() - rate * parameter.grad.to_numpy())
    assert losses[4] < losses[0] - 0.01
    assert losses[-1] < losses[0] - 0.03
