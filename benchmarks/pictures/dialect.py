"""Both pictures in the dialect: one program for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here, so a kernel's argument types have to
be evaluated where the kernel is defined.
"""

import importlib
from collections.abc import Callable

import numpy as np

from benchmarks.confine import confine
from benchmarks.pictures.system import (
    BOUNCES,
    BOXES,
    CAMERA,
    CORNERS,
    ESCAPE,
    FAR,
    FOCUS,
    ITERATIONS,
    JULIA_SIZE,
    NEAR,
    PROBE,
    SCENE_SIZE,
    SPHERES,
    STEPS,
    SUN,
    TIME,
    PictureSubject,
)

__all__ = ["create"]


class DialectPicture(PictureSubject):
    """One of the pictures, for the module `ti`."""

    def __init__(self, ti, picture: str, threads: int) -> None:
        super().__init__(picture)
        ti.init(arch=ti.cpu, **({"cpu_max_num_threads": threads} if threads else {}))
        self._pixels, self._paint = {"julia": julia, "scene": scene}[picture](ti)
        # Some of the dialect find out which thread synchronises only when asked.
        self._finish: Callable[[], None] = ti.sync

    def run(self, count: int) -> None:
        paint = self._paint
        for _ in range(count):
            paint(TIME)
        self._finish()

    def clear(self) -> None:
        self._pixels.fill(0)

    def result(self) -> np.ndarray:
        return self._pixels.to_numpy()


def julia(ti):
    """How soon each point escapes."""
    width, height = JULIA_SIZE
    pixels = ti.field(dtype=ti.f32, shape=(width, height))

    @ti.func
    def squared(z):
        return ti.Vector([z.x**2 - z.y**2, 2 * z.x * z.y])

    @ti.kernel
    def paint(t: ti.f32):
        for i, j in pixels:
            c = ti.Vector([-0.8, 0.2 * ti.cos(t)])
            z = 2 * ti.Vector([i / height - 1, j / height - 0.5])
            iterations = 0
            while z.norm() < ESCAPE and iterations < ITERATIONS:
                z = squared(z) + c
                iterations += 1
            pixels[i, j] = 1 - iterations * 0.02

    return pixels, paint


def scene(ti):
    """Spheres and boxes above a plane, which mirror each other. The picture does not depend on the time."""
    width, height = SCENE_SIZE
    pixels = ti.Vector.field(3, dtype=ti.f32, shape=(width, height))

    @ti.func
    def distance_to_scene(place):
        nearest = place.y
        for k in ti.static(range(len(SPHERES))):
            nearest = ti.min(nearest, (place - ti.Vector(SPHERES[k][0])).norm() - SPHERES[k][1])
        for k in ti.static(range(len(BOXES))):
            beyond = ti.abs(place - ti.Vector(BOXES[k][0])) - ti.Vector(BOXES[k][1])
            outside = ti.max(beyond, 0.0).norm()
            nearest = ti.min(nearest, outside + ti.min(ti.max(beyond.x, beyond.y, beyond.z), 0.0))
        return nearest

    @ti.func
    def normal_at(place):
        found = ti.Vector([0.0, 0.0, 0.0])
        for k in ti.static(range(len(CORNERS))):
            corner = ti.Vector(CORNERS[k])
            found += corner * distance_to_scene(place + PROBE * corner)
        return found.normalized()

    @ti.func
    def sky(direction):
        above = ti.max(direction.y, 0.0)
        return (1 - above) * ti.Vector([0.8, 0.85, 0.9]) + above * ti.Vector([0.2, 0.4, 0.8])

    @ti.kernel
    def paint(t: ti.f32):
        for i, j in pixels:
            x, y = i + 0.5 - width / 2, j + 0.5 - height / 2
            origin = ti.Vector(CAMERA)
            direction = ti.Vector([x / height, y / height, -FOCUS]).normalized()
            colour = ti.Vector([0.0, 0.0, 0.0])
            share = 1.0
            for _ in range(BOUNCES + 1):
                travelled = 0.0
                distance = distance_to_scene(origin)
                steps = 0
                while steps < STEPS and distance >= NEAR and travelled < FAR:
                    travelled += distance
                    distance = distance_to_scene(origin + travelled * direction)
                    steps += 1
                if distance >= NEAR:
                    colour += share * sky(direction)
                    break
                place = origin + travelled * direction
                normal = normal_at(place)
                own = ti.Vector([0.9, 0.8, 0.6])
                mirrors = 0.25
                if place.y < 2 * NEAR:
                    odd = (ti.floor(place.x) + ti.floor(place.z)) % 2
                    own = ti.Vector([1.0, 1.0, 1.0]) * (0.3 + 0.5 * odd)
                for k in ti.static(range(len(SPHERES))):
                    if (place - ti.Vector(SPHERES[k][0])).norm() - SPHERES[k][1] < 2 * NEAR:
                        own = ti.Vector([0.9 - 0.3 * k, 0.3, 0.3 + 0.3 * k])
                        mirrors = 0.6
                light = 0.25 + 0.75 * ti.max(normal.dot(ti.Vector(SUN)), 0.0)
                colour += share * (1 - mirrors) * light * own
                share *= mirrors
                origin = place + 2 * NEAR * normal
                direction -= 2 * direction.dot(normal) * normal
            pixels[i, j] = colour

    return pixels, paint


def create(package: str, picture: str, threads: int = 0) -> DialectPicture:
    """Return the picture for the module called `package`; `threads`: the most that it may use (0: all cores)."""
    confine(threads)
    return DialectPicture(importlib.import_module(package), picture, threads)
