"""Sphere tracing of a signed distance function: a soft-shadowed scene, one picture per moment."""

import numpy as np

import tinote as ti
from tinote.math import clamp, cross, dot, normalize, vec2, vec3

EYE = (0.0, 1.2, -3.2)
SUN = (0.5, 0.7, -0.4)
WIDTH, HEIGHT = 96, 64
STEPS, FAR, NEAR = 80, 20.0, 1e-3


def render(moments: list[float]) -> list[np.ndarray]:
    """The pictures at these moments, each of shape (WIDTH, HEIGHT, 3)."""
    pixels = ti.Vector.field(3, dtype=float, shape=(WIDTH, HEIGHT))
    eye, sun = vec3(*EYE), vec3(*SUN).normalized()

    @ti.func
    def sd_sphere(p: vec3, r: float) -> float:
        return p.norm() - r

    @ti.func
    def sd_box(p: vec3, b: vec3) -> float:
        q = abs(p) - b
        return ti.max(q, 0.0).norm() + ti.min(q.max(), 0.0)

    @ti.func
    def sd_torus(p: vec3, t: vec2) -> float:
        return vec2(p.xz.norm() - t.x, p.y).norm() - t.y

    @ti.func
    def smooth_union(a, b, k):
        h = clamp(0.5 + 0.5 * (b - a) / k, 0.0, 1.0)
        return ti.math.mix(b, a, h) - k * h * (1 - h)

    @ti.func
    def scene(p: vec3, t: float) -> vec2:
        """The distance, and which material is nearest."""
        ball = sd_sphere(p - vec3(0.7 * ti.cos(t), 0.5 + 0.2 * ti.sin(3 * t), 0.7 * ti.sin(t)), 0.4)
        q = p - vec3(0, 0.4, 0)
        q.xz = ti.math.rotation2d(t) @ q.xz
        shape = smooth_union(ball, sd_box(q, vec3(0.3, 0.4, 0.3)) - 0.05, 0.2)
        ring = sd_torus(p - vec3(0, 0.1, 0), vec2(1.3, 0.1))
        found = vec2(p.y, 0.0)
        for k, d in ti.static(enumerate((shape, ring))):
            if d < found.x:
                found = vec2(d, k + 1)
        return found

    @ti.func
    def normal(p: vec3, t: float) -> vec3:
        n = vec3(0)
        for k in ti.static(range(3)):
            e = ti.Vector.unit(3, k, ti.f32) * 1e-2
            n[k] = scene(p + e, t).x - scene(p - e, t).x
        return n.normalized()

    @ti.func
    def march(origin: vec3, direction: vec3, t: float):
        depth, hit = 0.0, False
        for _ in range(STEPS):
            d = scene(origin + depth * direction, t).x
            if d < NEAR:
                hit = True
                break
            depth += d
            if depth > FAR:
                break
        return depth, hit

    @ti.func
    def shadow(origin: vec3, t: float) -> float:
        light, depth = 1.0, 0.05
        while depth < 4.0 and light > 0.02:
            d = scene(origin + depth * sun, t).x
            light = ti.min(light, 8 * d / depth)
            depth += clamp(d, 0.05, 0.5)
        return ti.max(light, 0.0)

    @ti.func
    def shade(p: vec3, t: float) -> vec3:
        material = int(scene(p, t).y)
        colour = vec3(0.9, 0.4, 0.2) if material == 1 else vec3(0.2, 0.5, 0.9)
        if material == 0:
            squares = int(ti.floor(p.x * 2)) + int(ti.floor(p.z * 2))
            colour = vec3(0.8 if squares & 1 else 0.3)
        diffuse = ti.max(dot(normal(p, t), sun), 0.0)
        return colour * (0.15 + 0.85 * diffuse * shadow(p, t))

    @ti.kernel
    def paint(t: float):
        forward = normalize(vec3(0, 0.3, 0) - eye)
        right = normalize(cross(vec3(0, 1, 0), forward))
        up = cross(forward, right)
        for i, j in pixels:
            uv = (vec2(i, j) + 0.5 - 0.5 * vec2(WIDTH, HEIGHT)) / HEIGHT
            direction = normalize(uv.x * right + uv.y * up + 1.2 * forward)
            depth, hit = march(eye, direction, t)
            colour = vec3(0.5, 0.7, 1.0) * (1 - 0.5 * direction.y)
            if hit:
                colour = ti.math.mix(shade(eye + depth * direction, t), colour, 1 - ti.exp(-0.01 * depth**2))
            pixels[i, j] = ti.sqrt(clamp(colour, 0, 1))

    pictures = []
    for t in moments:
        paint(t)
        pictures.append(pixels.to_numpy())
    return pictures


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def scene(p: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Distances and materials at points of shape (..., 3)."""
    ball = np.linalg.norm(p - [0.7 * np.cos(t), 0.5 + 0.2 * np.sin(3 * t), 0.7 * np.sin(t)], axis=-1) - 0.4
    c, s = np.cos(t), np.sin(t)
    q = np.stack([c * p[..., 0] - s * p[..., 2], p[..., 1] - 0.4, s * p[..., 0] + c * p[..., 2]], -1)
    q = abs(q) - [0.3, 0.4, 0.3]
    box = np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0) - 0.05
    h = np.clip(0.5 + 2.5 * (box - ball), 0, 1)
    shape = box + (ball - box) * h - 0.2 * h * (1 - h)
    ring = np.hypot(np.hypot(p[..., 0], p[..., 2]) - 1.3, p[..., 1] - 0.1) - 0.1
    every = np.stack([p[..., 1], shape, ring])
    return every.min(0), every.argmin(0)


def picture(t: float) -> np.ndarray:
    """The scene at moment `t`, all rays at once."""
    eye, sun = np.array(EYE), unit(np.array(SUN))
    forward = unit(np.array([0, 0.3, 0]) - eye)
    right = unit(np.cross([0, 1, 0], forward))
    ij = np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT), indexing="ij"), -1)
    uv = (ij + 0.5 - 0.5 * np.array([WIDTH, HEIGHT])) / HEIGHT
    ray = unit(uv[..., :1] * right + uv[..., 1:] * np.cross(forward, right) + 1.2 * forward)
    depth, hit, going = np.zeros(ij.shape[:2]), np.zeros(ij.shape[:2], bool), np.ones(ij.shape[:2], bool)
    for _ in range(STEPS):
        d, _ = scene(eye + depth[..., None] * ray, t)
        hit |= going & (d < NEAR)
        going &= d >= NEAR
        depth += going * d
        going &= depth <= FAR
    p = eye + depth[..., None] * ray
    steps = 1e-2 * np.eye(3)
    n = unit(np.stack([scene(p + e, t)[0] - scene(p - e, t)[0] for e in steps], -1))
    light, s = np.ones(ij.shape[:2]), np.full(ij.shape[:2], 0.05)
    for _ in range(100):
        going = (s < 4) & (light > 0.02)
        d, _ = scene(p + s[..., None] * sun, t)
        light = np.where(going, np.minimum(light, 8 * d / s), light)
        s += going * np.clip(d, 0.05, 0.5)
    diffuse = np.maximum(n @ sun, 0) * np.maximum(light, 0)
    squares = np.floor(2 * p[..., 0]).astype(int) + np.floor(2 * p[..., 2]).astype(int)
    floor = np.where(squares % 2, 0.8, 0.3)[..., None] * np.ones(3)
    colours = np.stack([floor, np.broadcast_to([0.9, 0.4, 0.2], p.shape), np.broadcast_to([0.2, 0.5, 0.9], p.shape)])
    material = scene(p, t)[1]
    colour = np.take_along_axis(colours, material[None, ..., None], 0)[0] * (0.15 + 0.85 * diffuse)[..., None]
    sky = np.array([0.5, 0.7, 1.0]) * (1 - 0.5 * ray[..., 1:2])
    haze = np.where(hit, 1 - np.exp(-0.01 * depth**2), 1)[..., None]
    return np.sqrt(np.clip(colour + (sky - colour) * haze, 0, 1))


def test_ray_marching() -> None:
    moments = [0.0, 0.9]
    found = render(moments)
    for t, image in zip(moments, found, strict=True):
        off = abs(image - picture(t)).max(-1)
        # Single precision decides a few pixels on edges differently.
        assert (off < 2e-3).mean() > 0.97
        assert off.mean() < 3e-3
    assert abs(found[0] - found[1]).max() > 0.3
