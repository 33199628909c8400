"""A path tracer: a box with coloured walls, a lamp in its ceiling and two balls. Compared with exact radiometry, and
with an independent tracer whose random numbers are other ones.
"""

import numpy as np
import pytest

import tinote as ti
from tinote.math import cross, dot, normalize, reflect, vec3

DIFFUSE, MIRROR, LAMP = 0, 1, 2
FAR = 1e9


@ti.dataclass
class Ray:
    origin: vec3
    direction: vec3

    @ti.func
    def at(self, t):
        return self.origin + t * self.direction


@ti.dataclass
class Sphere:
    centre: vec3
    radius: ti.f32
    colour: vec3
    material: ti.i32

    @ti.func
    def hit(self, ray):
        """The distance to the first intersection in front of the ray, or FAR."""
        oc = ray.origin - self.centre
        b = dot(oc, ray.direction)
        discriminant = b * b - oc.norm_sqr() + self.radius**2
        t = ti.f32(FAR)
        if discriminant > 0:
            root = ti.sqrt(discriminant)
            if -b - root > 1e-3:
                t = -b - root
            elif -b + root > 1e-3:
                t = -b + root
        return t


Hit = ti.types.struct(t=ti.f32, point=vec3, normal=vec3, colour=vec3, material=ti.i32)


@ti.data_oriented
class Tracer:
    """Spheres in a room |x| < `half`, |y| < half, |z| < half whose walls are diffuse; `lamp` is half the width of the
    square that shines in the ceiling.
    """

    def __init__(self, spheres: list, half: float, walls: float, lamp: float, resolution: int, depth: int) -> None:
        self.count = len(spheres)
        self.spheres = Sphere.field(shape=max(self.count, 1))
        for k, sphere in enumerate(spheres):
            self.spheres[k] = sphere
        self.half, self.walls, self.lamp, self.depth = half, walls, lamp, depth
        self.image = ti.Vector.field(3, ti.f32, shape=(resolution, resolution))

    @ti.func
    def room(self, ray):
        """Where a ray from inside meets the walls."""
        hit = Hit(t=FAR, material=DIFFUSE, colour=vec3(self.walls))
        for axis in ti.static(range(3)):
            if ray.direction[axis] != 0:
                side = ti.math.sign(ray.direction[axis])
                t = (side * self.half - ray.origin[axis]) / ray.direction[axis]
                if 0 < t < hit.t:
                    hit.t = t
                    hit.normal = -side * ti.Vector.unit(3, axis, ti.f32)
        hit.point = ray.at(hit.t)
        if ti.static(self.lamp > 0):
            if hit.normal.y < -0.5 and abs(hit.point.x) < self.lamp and abs(hit.point.z) < self.lamp:
                hit.material = LAMP
        if hit.normal.x > 0.5:
            hit.colour = vec3(self.walls, 0.2 * self.walls, 0.2 * self.walls)
        elif hit.normal.x < -0.5:
            hit.colour = vec3(0.2 * self.walls, self.walls, 0.2 * self.walls)
        return hit

    @ti.func
    def intersect(self, ray):
        nearest = self.room(ray)
        for k in range(self.count):
            t = self.spheres[k].hit(ray)
            if t < nearest.t:
                point = ray.at(t)
                normal = normalize(point - self.spheres[k].centre)
                nearest = Hit(t, point, normal, self.spheres[k].colour, self.spheres[k].material)
        return nearest

    @ti.func
    def cosine_direction(self, normal):
        """A direction above a surface, as likely as the cosine of its angle with the normal."""
        helper = vec3(1, 0, 0) if abs(normal.x) < 0.5 else vec3(0, 1, 0)
        u = normalize(cross(helper, normal))
        v = cross(normal, u)
        phi, r = 2 * ti.math.pi * ti.random(), ti.random()
        return ti.sqrt(r) * (ti.cos(phi) * u + ti.sin(phi) * v) + ti.sqrt(1 - r) * normal

    @ti.func
    def radiance(self, start):
        ray = start
        colour, throughput = vec3(0), vec3(1)
        for _ in range(self.depth):
            hit = self.intersect(ray)
            if hit.material == LAMP:
                colour += throughput * 4.0
                break
            if hit.material == MIRROR:
                throughput *= hit.colour
                ray.direction = reflect(ray.direction, hit.normal)
            else:
                # Russian roulette: a path ends as likely as its surface absorbs.
                survival = hit.colour.max()
                if ti.random() > survival:
                    break
                throughput *= hit.colour / survival
                ray.direction = self.cosine_direction(hit.normal)
            ray.origin = hit.point + 1e-4 * hit.normal
        return colour

    @ti.kernel
    def render(self, samples: ti.i32):
        n = self.image.shape[0]
        for i, j in self.image:
            total = vec3(0)
            for _ in range(samples):
                u, v = (i + ti.random()) / n * 2 - 1, (j + ti.random()) / n * 2 - 1
                direction = normalize(vec3(0.6 * u, 0.6 * v, 1))
                total += self.radiance(Ray(vec3(0, 0, -0.99 * self.half), direction))
            self.image[i, j] = total / samples

    @ti.kernel
    def irradiance(self, samples: ti.i32) -> ti.f32:
        """What arrives at the middle of the floor from the lamp, over π."""
        total = 0.0
        for _ in range(samples):
            ray = Ray(vec3(0, -self.half + 1e-3, 0), self.cosine_direction(vec3(0, 1, 0)))
            total += self.radiance(ray).x
        return total / samples


def reference(tracer: Tracer, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Samples of each pixel's radiance, shape (resolution, resolution, samples, 3), all paths at once."""
    n, half = tracer.image.shape[0], tracer.half
    shape = (n, n, samples)
    i, j, _ = np.meshgrid(np.arange(n), np.arange(n), np.arange(samples), indexing="ij")
    uv = (np.stack([i, j], -1) + rng.random((*shape, 2))) / n * 2 - 1
    d = np.concatenate([0.6 * uv, np.ones((*shape, 1))], -1).reshape(-1, 3)
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    o = np.tile([0, 0, -0.99 * half], (len(d), 1))
    colour, throughput, alive = np.zeros_like(d), np.ones_like(d), np.ones(len(d), bool)
    spheres = [tracer.spheres[k] for k in range(tracer.count)]
    for _ in range(tracer.depth):
        with np.errstate(divide="ignore"):
            walls = np.where(d != 0, (np.sign(d) * half - o) / d, FAR)
        axis = walls.argmin(1)
        t, rows = walls.min(1), np.arange(len(d))
        normal = np.zeros_like(d)
        normal[rows, axis] = -np.sign(d[rows, axis])
        p = o + t[:, None] * d
        albedo = np.full_like(d, tracer.walls)
        albedo[normal[:, 0] > 0.5, 1:] *= 0.2
        albedo[normal[:, 0] < -0.5] *= [0.2, 1, 0.2]
        lit = (normal[:, 1] < -0.5) & (abs(p[:, 0]) < tracer.lamp) & (abs(p[:, 2]) < tracer.lamp)
        material = np.where(lit, LAMP, DIFFUSE)
        for s in spheres:
            oc = o - s.centre.to_numpy()
            b = (oc * d).sum(1)
            inside = b**2 - (oc**2).sum(1) + s.radius**2
            root = np.sqrt(np.maximum(inside, 0))
            near = np.where(-b - root > 1e-3, -b - root, np.where(-b + root > 1e-3, -b + root, FAR))
            closer = (inside > 0) & (near < t)
            t = np.where(closer, near, t)
            p = np.where(closer[:, None], o + t[:, None] * d, p)
            normal = np.where(closer[:, None], (p - s.centre.to_numpy()) / s.radius, normal)
            albedo = np.where(closer[:, None], s.colour.to_numpy(), albedo)
            material = np.where(closer, s.material, material)
        colour += 4 * throughput * (alive & (material == LAMP))[:, None]
        mirror = (material == MIRROR)[:, None]
        survival = albedo.max(1, keepdims=True)
        alive &= (material == MIRROR) | ((material == DIFFUSE) & (rng.random(len(d)) < survival[:, 0]))
        throughput *= np.where(mirror, albedo, albedo / survival)
        # A uniform point of the unit sphere on top of the normal is distributed as the cosine, too.
        ball = rng.standard_normal(d.shape)
        scattered = normal + ball / np.linalg.norm(ball, axis=1, keepdims=True)
        scattered /= np.linalg.norm(scattered, axis=1, keepdims=True)
        d = np.where(mirror, d - 2 * (d * normal).sum(1, keepdims=True) * normal, scattered)
        o = p + 1e-4 * normal
    return colour.reshape(*shape, 3)


def test_a_square_lamp_lights_the_floor_as_geometry_says() -> None:
    half, lamp = 1.0, 0.5
    tracer = Tracer([], half, walls=0.5, lamp=lamp, resolution=4, depth=1)
    found = tracer.irradiance(400_000)
    # The form factor of a parallel rectangle, one corner of which is above the point, four times.
    a = lamp / (2 * half - 1e-3)
    corner = 2 * a / np.sqrt(1 + a * a) * np.arctan(a / np.sqrt(1 + a * a)) / (2 * np.pi)
    assert found == pytest.approx(4 * 4 * corner, rel=0.01)


def test_path_tracing() -> None:
    ti.init(random_seed=7)
    balls = [
        Sphere(centre=vec3(-0.45, -0.6, 0.3), radius=0.4, colour=vec3(0.9), material=MIRROR),
        Sphere(centre=vec3(0.4, -0.65, -0.1), radius=0.35, colour=vec3(0.3, 0.4, 0.9), material=DIFFUSE),
    ]
    samples, resolution = 400, 16
    tracer = Tracer(balls, 1.0, walls=0.7, lamp=0.6, resolution=resolution, depth=6)
    tracer.render(samples)
    image = tracer.image.to_numpy()
    drawn = reference(tracer, 100, np.random.default_rng(1))
    expected = drawn.mean(2)
    # Both are means of independent samples: their difference, in standard deviations, has variance one.
    sigma = drawn.std(2) * np.sqrt(1 / 100 + 1 / samples)
    assert (((image - expected) / np.maximum(sigma, 1e-2)) ** 2).mean() < 1.3
    assert image.mean((0, 1)) == pytest.approx(expected.mean((0, 1)), abs=4 * (sigma**2).mean() ** 0.5 / resolution)
    # Red from the left wall, green from the right one.
    assert image[:4, 4:, 0].mean() > 1.2 * image[:4, 4:, 1].mean()
    assert image[-4:, 4:, 1].mean() > 1.2 * image[-4:, 4:, 0].mean()

    # The same seed gives the same picture.
    ti.init(random_seed=7)
    again = Tracer(balls, 1.0, walls=0.7, lamp=0.6, resolution=resolution, depth=6)
    again.render(samples)
    np.testing.assert_array_equal(again.image.to_numpy(), image)
