"""The pictures that every contender computes, and the same ones in NumPy.

A pixel of the Julia set is how soon a point escapes, one of the scene what a ray meets: at an edge, rounding decides
between two colours. A pixel counts as decided where the NumPy program gives nearly the same colour from beside it, too,
and only decided ones are compared.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.contract import Subject, relative_deviation

__all__ = [
    "BOUNCES",
    "BOXES",
    "CAMERA",
    "CORNERS",
    "ESCAPE",
    "FAR",
    "FOCUS",
    "ITERATIONS",
    "JULIA_SIZE",
    "NEAR",
    "PROBE",
    "SCENE_SIZE",
    "SPHERES",
    "STEPS",
    "SUN",
    "TIME",
    "PictureSubject",
    "reference",
]

JULIA_SIZE = (1280, 640)
ITERATIONS, ESCAPE, TIME = 50, 20.0, 0.3

SCENE_SIZE = (640, 360)
STEPS, BOUNCES = 100, 2
NEAR, FAR = 1e-3, 20.0
PROBE = 1e-3
"""How far from a place its normal is measured."""
CAMERA, FOCUS = (0.2, 1.3, 5.0), 1.4
SUN = (0.48, 0.8, 0.36)

SPHERES = (((-1.5, 0.7, -0.3), 0.7), ((0.3, 0.5, 0.9), 0.5), ((1.7, 1.0, -0.8), 1.0))
"""Centres and radii, above a plane at height 0."""
BOXES = (((-0.3, 0.6, -2.0), (0.7, 0.6, 0.5)), ((-1.9, 0.25, 1.5), (0.3, 0.25, 0.4)))
"""Centres and half of the lengths of the edges."""
CORNERS = ((1.0, -1.0, -1.0), (-1.0, -1.0, 1.0), (-1.0, 1.0, -1.0), (1.0, 1.0, 1.0))
"""Of a tetrahedron."""

SAME = 0.02
"""How much the colours of a decided pixel may differ as seen from beside it."""

COMPARED = 4
"""Of this many columns of a picture, one is computed in NumPy and compared."""


class Reference(NamedTuple):
    """Columns of a picture, and which of their pixels are decided."""

    picture: np.ndarray
    decided: np.ndarray


class PictureSubject(Subject):
    """A picture, "julia" or "scene"."""

    def __init__(self, picture: str) -> None:
        self.picture = picture

    def deviation(self) -> float:
        self.clear()
        self.run(1)
        found = np.asarray(self.result())[::COMPARED]
        expected, decided = reference(self.picture)
        if found.shape != expected.shape or not np.isfinite(found).all():
            return float("inf")
        return relative_deviation(found[decided], expected[decided])

    @abstractmethod
    def clear(self) -> None:
        """Forget the last run's picture."""

    @abstractmethod
    def result(self) -> np.ndarray:
        """Return the picture of the last run: (width, height), or (width, height, 3) with colours."""


@cache
def reference(picture: str) -> Reference:
    """Return the picture in f64, computed in place and from beside each pixel."""
    program, step = {"julia": (julia, 1e-6), "scene": (scene, 1e-3)}[picture]
    found = program(0.0, 0.0)
    apart = np.zeros(found.shape)
    for to_right, upwards in ((step, 0.3 * step), (-step, step), (0.3 * step, -step)):
        apart = np.maximum(apart, np.abs(program(to_right, upwards) - found))
    decided = apart < (SAME if picture == "scene" else 1e-9)
    return Reference(found, decided.all(axis=2) if picture == "scene" else decided)


def julia(to_right: float, upwards: float) -> np.ndarray:
    """Return every `COMPARED`th column of the set of z² - 0.8 + 0.2 i cos t, a little beside the places of pixels."""
    width, height = JULIA_SIZE
    x = 2 * (np.arange(0, width, COMPARED)[:, None] / height - 1)
    y = 2 * (np.arange(height) / height - 0.5)
    z = (x + to_right + 1j * (y + upwards)).ravel()
    c = -0.8 + 0.2j * np.cos(TIME)
    iterations, within = np.zeros(len(z)), np.arange(len(z))
    for _ in range(ITERATIONS):
        within = within[np.abs(z[within]) < ESCAPE]
        z[within] = z[within] ** 2 + c
        iterations[within] += 1
    return (1 - 0.02 * iterations).reshape(-1, height)


def scene(to_right: float, upwards: float) -> np.ndarray:
    """Return every `COMPARED`th column as a camera a little beside its place sees it. Vectors are columns: (3, n)."""
    width, height = SCENE_SIZE
    x = np.arange(0, width, COMPARED)[:, None] + 0.5 - width / 2
    y = np.arange(height) + 0.5 - height / 2
    direction = normalised(np.stack(np.broadcast_arrays(x / height, y / height, -FOCUS)).reshape(3, -1))
    origin = np.zeros_like(direction) + column(CAMERA) + column((to_right, upwards, 0))
    colour, share = np.zeros_like(direction), np.ones(direction.shape[1])
    rays = np.arange(direction.shape[1])
    for _ in range(BOUNCES + 1):
        travelled, distance = march(origin[:, rays], direction[:, rays])
        missed = distance >= NEAR
        gone, rays = rays[missed], rays[~missed]
        colour[:, gone] += share[gone] * sky(direction[:, gone])
        place = origin[:, rays] + travelled[~missed] * direction[:, rays]
        normal = normalised(sum([column(corner) * distances(place + PROBE * column(corner)) for corner in CORNERS]))
        own, mirrors = material(place)
        light = 0.25 + 0.75 * np.maximum(np.array(SUN) @ normal, 0)
        colour[:, rays] += share[rays] * (1 - mirrors) * light * own
        share[rays] *= mirrors
        origin[:, rays] = place + 2 * NEAR * normal
        direction[:, rays] -= 2 * (direction[:, rays] * normal).sum(axis=0) * normal
    return colour.T.reshape(-1, height, 3)


def march(origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each ray comes, and how far it is from the scene then."""
    travelled, distance = np.zeros(origin.shape[1]), distances(origin)
    on = np.arange(origin.shape[1])
    for _ in range(STEPS):
        on = on[(distance[on] >= NEAR) & (travelled[on] < FAR)]
        travelled[on] += distance[on]
        distance[on] = distances(origin[:, on] + travelled[on] * direction[:, on])
    return travelled, distance


def distances(place: np.ndarray) -> np.ndarray:
    """The distance of places from the scene, negative inside."""
    nearest = place[1]
    for centre, radius in SPHERES:
        nearest = np.minimum(nearest, length(place - column(centre)) - radius)
    for centre, half in BOXES:
        beyond = np.abs(place - column(centre)) - column(half)
        nearest = np.minimum(nearest, length(np.maximum(beyond, 0)) + np.minimum(beyond.max(axis=0), 0))
    return nearest


def material(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The own colour of places on the scene, and which share of the light they mirror."""
    odd = (np.floor(place[0]) + np.floor(place[2])) % 2
    own = np.where(place[1] < 2 * NEAR, 0.3 + 0.5 * odd, column((0.9, 0.8, 0.6)))
    mirrors = np.full(place.shape[1], 0.25)
    for k, (centre, radius) in enumerate(SPHERES):
        there = length(place - column(centre)) - radius < 2 * NEAR
        own[:, there], mirrors[there] = column((0.9 - 0.3 * k, 0.3, 0.3 + 0.3 * k)), 0.6
    return own, mirrors


def sky(direction: np.ndarray) -> np.ndarray:
    """The colour of the sky."""
    above = np.maximum(direction[1], 0)
    return (1 - above) * column((0.8, 0.85, 0.9)) + above * column((0.2, 0.4, 0.8))


def column(vector: tuple[float, float, float]) -> np.ndarray:
    """A vector that meets many."""
    return np.array(vector)[:, None]


def length(vectors: np.ndarray) -> np.ndarray:
    """How long they are."""
    x, y, z = vectors
    return np.sqrt(x * x + y * y + z * z)


def normalised(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1."""
    return vectors / length(vectors)
