"""A cloth that falls on a ball: position-based dynamics with compliance (Macklin et al., 2016), constraints in parallel
with averaged corrections, friction at the ball.
"""

import numpy as np

import tinote as ti

GRAVITY = ti.Vector([0.0, -9.8, 0.0])
BALL, RADIUS, FRICTION = (0.5, 0.0, 0.5), 0.3, 0.3


@ti.dataclass
class Edge:
    i: ti.i32
    j: ti.i32
    rest: float
    compliance: float


@ti.data_oriented
class Cloth:
    """`n` by `n` particles over the unit square; the edges are threads, shear springs and bending springs."""

    def __init__(self, n: int, height: float, substeps: int = 4, iterations: int = 3) -> None:
        self.n, self.substeps, self.iterations = n, substeps, iterations
        self.dt = 1 / 60 / substeps
        self.x, self.old, self.v = [ti.Vector.field(3, float, shape=n * n) for _ in range(3)]
        self.correction = ti.Vector.field(3, float, shape=n * n)
        self.degree = ti.field(ti.i32, shape=n * n)
        self.edges = Edge.field()
        self.multiplier = ti.field(float)
        # Two threads a particle, two diagonals a cell, two bending springs a particle, less what leaves the square.
        self.count = 2 * n * (n - 1) + 2 * (n - 1) ** 2 + 2 * n * (n - 2)
        ti.root.dense(ti.i, self.count).place(self.edges, self.multiplier)
        self.used = ti.field(ti.i32, shape=())
        self.build(height)
        assert self.used[None] == self.count

    @ti.func
    def connect(self, a, di: ti.template(), dj: ti.template(), compliance: ti.template()):
        b = a + ti.Vector([di, dj])
        if 0 <= b.x < self.n and 0 <= b.y < self.n:
            slot = ti.atomic_add(self.used[None], 1)
            i, j = a.x * self.n + a.y, b.x * self.n + b.y
            self.edges[slot] = Edge(i, j, (self.x[i] - self.x[j]).norm(), compliance)
            self.degree[i] += 1
            self.degree[j] += 1

    @ti.kernel
    def build(self, height: float):
        for a in ti.grouped(ti.ndrange(self.n, self.n)):
            self.x[a.x * self.n + a.y] = [a.x / (self.n - 1), height, a.y / (self.n - 1)]
        for a in ti.grouped(ti.ndrange(self.n, self.n)):
            for di, dj, compliance in ti.static(
                ((1, 0, 1e-6), (0, 1, 1e-6), (1, 1, 1e-5), (1, -1, 1e-5), (2, 0, 1e-4), (0, 2, 1e-4))
            ):
                self.connect(a, di, dj, compliance)

    @ti.kernel
    def predict(self):
        for i in self.x:
            self.old[i] = self.x[i]
            self.v[i] += self.dt * GRAVITY
            self.x[i] += self.dt * self.v[i]
        self.multiplier.fill(0)

    @ti.kernel
    def relax(self):
        self.correction.fill(0)
        for e in self.edges:
            edge = self.edges[e]
            d = self.x[edge.i] - self.x[edge.j]
            length = d.norm()
            alpha = edge.compliance / self.dt**2
            change = -(length - edge.rest + alpha * self.multiplier[e]) / (2 + alpha)
            self.multiplier[e] += change
            push = change * d / length
            self.correction[edge.i] += push
            self.correction[edge.j] -= push
        for i in self.x:
            self.x[i] += self.correction[i] * 4 / self.degree[i]

    @ti.kernel
    def collide(self) -> ti.i32:
        touching = 0
        for i in self.x:
            away = self.x[i] - ti.Vector(BALL)
            distance = away.norm()
            if distance < RADIUS:
                normal = away / distance
                self.x[i] += (RADIUS - distance) * normal
                slide = self.x[i] - self.old[i]
                slide -= slide.dot(normal) * normal
                self.x[i] -= FRICTION * slide
                touching += 1
        return touching

    @ti.kernel
    def finish(self):
        for i in self.x:
            self.v[i] = (self.x[i] - self.old[i]) / self.dt

    def frame(self) -> int:
        """How many particles touched the ball in the last part of the frame."""
        touching = 0
        for _ in range(self.substeps):
            self.predict()
            for _ in range(self.iterations):
                self.relax()
            touching = self.collide()
            self.finish()
        return touching


def reference_frame(x: np.ndarray, v: np.ndarray, cloth: Cloth) -> tuple[np.ndarray, np.ndarray, int]:
    """The same frame on arrays, the edges in the order in which the cloth keeps them."""
    edges = cloth.edges.to_numpy()
    i, j, rest = edges["i"], edges["j"], edges["rest"].astype(float)
    alpha = edges["compliance"].astype(float) / cloth.dt**2
    degree = np.bincount(np.concatenate([i, j]))[:, None]
    touching = np.zeros(0, bool)
    for _ in range(cloth.substeps):
        old = x
        x = x + cloth.dt * (v + cloth.dt * GRAVITY.to_numpy())
        multiplier = np.zeros(len(i))
        for _ in range(cloth.iterations):
            d = x[i] - x[j]
            length = np.linalg.norm(d, axis=1)
            change = -(length - rest + alpha * multiplier) / (2 + alpha)
            multiplier += change
            push = (change / length)[:, None] * d
            total = np.zeros_like(x)
            np.add.at(total, i, push)
            np.add.at(total, j, -push)
            x = x + 4 * total / degree
        away = x - np.array(BALL)
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        touching = distance[:, 0] < RADIUS
        normal = away / distance
        outside = x + (RADIUS - distance) * normal
        slide = outside - old
        slide -= (slide * normal).sum(1, keepdims=True) * normal
        x = np.where(touching[:, None], outside - FRICTION * slide, x)
        v = (x - old) / cloth.dt
    return x, v, int(touching.sum())


def test_cloth_on_a_ball() -> None:
    ti.init(default_fp=ti.f64)
    n = 16
    cloth = Cloth(n, height=0.35)
    x, v = cloth.x.to_numpy(), np.zeros((n * n, 3))
    for frame in range(12):
        touching = cloth.frame()
        x, v, expected = reference_frame(x, v, cloth)
        assert touching == expected, frame
    np.testing.assert_allclose(cloth.x.to_numpy(), x, atol=1e-9)
    np.testing.assert_allclose(cloth.v.to_numpy(), v, atol=1e-7)
    # The middle lies on the ball, and the corners hang down.
    assert touching > 10
    assert x[:, 1].reshape(n, n)[n // 2, n // 2] > 0.29
    assert x[:, 1].reshape(n, n)[0, 0] < 0.25
    assert (np.linalg.norm(x - np.array(BALL), axis=1) > RADIUS - 1e-9).all()
