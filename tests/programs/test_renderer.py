"""A differentiable renderer: rays are marched through signed distances, and spheres are moved until the picture is the
wanted one. Silhouettes are soft, by the smallest distance that a ray kept.
"""

import numpy as np

import tinote as ti

RES, SPHERES, FAR = 20, 3, 6.0
EYE, LIGHT = (0.0, 0.0, -3.0), (-0.48, 0.6, -0.64)


@ti.dataclass
class Ray:
    origin: ti.types.vector(3, ti.f64)
    direction: ti.types.vector(3, ti.f64)

    @ti.func
    def at(self, t):
        return self.origin + t * self.direction


@ti.data_oriented
class Renderer:
    def __init__(self) -> None:
        self.center = ti.Vector.field(3, ti.f64, SPHERES, needs_grad=True)
        self.radius = ti.field(ti.f64, SPHERES, needs_grad=True)
        self.image = ti.field(ti.f64, (RES, RES), needs_grad=True)
        self.wanted = ti.field(ti.f64, (RES, RES))
        self.loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.func
    def sdf(self, p):
        """A smooth union of the spheres."""
        total = 0.0
        for k in range(SPHERES):
            total += ti.exp(-8 * ((p - self.center[k]).norm() - self.radius[k]))
        return -ti.log(total) / 8

    @ti.func
    def normal(self, p):
        n = ti.Vector.zero(ti.f64, 3)
        for k in ti.static(range(3)):
            step = ti.Vector.unit(3, k, ti.f64) * 1e-3
            n[k] = self.sdf(p + step) - self.sdf(p - step)
        return n.normalized()

    @ti.kernel
    def render(self):
        for i, j in self.image:
            uv = (ti.Vector([i, j]) + 0.5) / RES * 2 - 1
            ray = Ray(ti.Vector(EYE), ti.Vector([uv.x, uv.y, 2.0]).normalized())
            t, closest, iterations = 0.0, FAR, 0
            while t < FAR and iterations < 40:
                d = self.sdf(ray.at(t))
                closest = ti.min(closest, d)
                if d < 1e-4:
                    break
                t += d
                iterations += 1
            shade = 0.5 + 0.5 * self.normal(ray.at(t)).dot(ti.Vector(LIGHT))
            self.image[i, j] = ti.exp(-10 * ti.max(closest, 0.0)) * shade

    @ti.kernel
    def compare(self):
        for i, j in self.image:
            self.loss[None] += (self.image[i, j] - self.wanted[i, j]) ** 2


def reference(center: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The same picture, all rays at once."""

    def sdf(p: np.ndarray) -> np.ndarray:
        return -np.log(np.exp(-8 * (np.linalg.norm(p[..., None, :] - center, axis=-1) - radius)).sum(-1)) / 8

    uv = (np.stack(np.meshgrid(np.arange(RES), np.arange(RES), indexing="ij"), -1) + 0.5) / RES * 2 - 1
    direction = np.concatenate([uv, np.full((RES, RES, 1), 2.0)], -1)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    t, closest, going = np.zeros((RES, RES)), np.full((RES, RES), FAR), np.ones((RES, RES), bool)
    for _ in range(40):
        going &= t < FAR
        d = sdf(np.array(EYE) + t[..., None] * direction)
        closest = np.where(going, np.minimum(closest, d), closest)
        going &= d >= 1e-4
        t = np.where(going, t + d, t)
    p = np.array(EYE) + t[..., None] * direction
    normal = np.stack([sdf(p + e) - sdf(p - e) for e in 1e-3 * np.eye(3)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.exp(-10 * np.maximum(closest, 0)) * (0.5 + 0.5 * normal @ np.array(LIGHT))


def test_spheres_are_moved_until_the_picture_is_right() -> None:
    ti.init(default_fp=ti.f64)
    renderer = Renderer()
    places = np.array([[-0.5, 0.3, 0.1], [0.4, 0.5, -0.2], [0.1, -0.5, 0.3]])
    radii = np.array([0.4, 0.35, 0.45])
    wanted = reference(places, radii)
    assert wanted.max() > 0.9 and wanted.min() < 1e-3
    renderer.wanted.from_numpy(wanted)
    found = [places + 0.1 * np.random.default_rng(5).normal(size=(SPHERES, 3)), radii - 0.06]
    fields = (renderer.center, renderer.radius)
    losses: list[float] = []
    moments = [[np.zeros_like(value), np.zeros_like(value)] for value in found]
    for iteration in range(80):
        for field, value in zip(fields, found, strict=True):
            field.from_numpy(value)
        with ti.ad.Tape(renderer.loss):
            renderer.render()
            renderer.compare()
        losses.append(renderer.loss[None])
        gradients = [field.grad.to_numpy() for field in fields]
        if iteration == 0:
            np.testing.assert_allclose(renderer.image.to_numpy(), reference(*found), rtol=1e-7, atol=1e-10)
            for k, gradient in enumerate(gradients):
                for index in np.ndindex(gradient.shape):
                    sides = []
                    for sign in (1, -1):
                        moved = [value.copy() for value in found]
                        moved[k][index] += sign * 1e-7
                        sides.append(((reference(*moved) - wanted) ** 2).sum())
                    np.testing.assert_allclose(gradient[index], (sides[0] - sides[1]) / 2e-7, rtol=1e-4, atol=1e-5)
        for value, gradient, moment in zip(found, gradients, moments, strict=True):  # Adam
            moment[0] = 0.9 * moment[0] + 0.1 * gradient
            moment[1] = 0.99 * moment[1] + 0.01 * gradient**2
            mean, square = moment[0] / (1 - 0.9 ** (iteration + 1)), moment[1] / (1 - 0.99 ** (iteration + 1))
            value -= 0.01 * mean / (np.sqrt(square) + 1e-8)
    assert losses[-1] < 0.02 * losses[0]
    assert abs(found[1] - radii).max() < 0.03
