"""Points in space as seen by a camera that circles the box of the bounds, z pointing up.

The camera looks at the middle of the box from `DISTANCE` times the radius of the sphere around it, so that perspective
is mild, and that sphere touches the picture's nearer edges: the box stays in sight however it is turned.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinote.viz.live.cover import Cover
from tinote.viz.space.camera import Eye
from tinote.viz.space.content import Content, Lighting, Spheres
from tinote.viz.space.rasterise import Fog, Rasteriser

DISTANCE = 4.0
FOG = np.array([0x8A, 0x90, 0x99], np.float32)
"""What distant particles fade towards: it stands out from neither a light nor a dark page."""

THICKEST_FOG = 0.65


AS_THEY_ARE = Lighting((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), ())
"""Colours are shown without light and shadow, as the page paints them."""


class OrbitCamera(NamedTuple):
    """Where the camera stands: angles in degrees, `azimuth` from the x axis around z, `elevation` above the xy plane;
    `aspect` is the picture's width over its height, and `room` how much more than the sphere around the box is seen.
    """

    azimuth: float
    elevation: float
    aspect: float = 1.0
    room: float = 1.0


class ProjectedPoints(NamedTuple):
    """Points as fractions of the picture from its bottom left, shape (M, 2); how near each is, from 0 to 1; and which
    of the points they are. The farthest comes first, so that later ones lie over it.
    """

    positions: np.ndarray
    nearness: np.ndarray
    index: np.ndarray


def see(points: np.ndarray, bounds: np.ndarray, camera: OrbitCamera) -> ProjectedPoints:
    """What the camera sees of `points` (N, 3): those within `bounds`, shape (3, 2)."""
    low, high = bounds.T
    with np.errstate(invalid="ignore"):
        index = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
    positions, nearness = project(points[index], bounds, camera)
    order = np.argsort(nearness, kind="stable")
    return ProjectedPoints(positions[order], nearness[order], index[order])


def faded(colors: np.ndarray, nearness: np.ndarray) -> np.ndarray:
    """Colours (3,) or (N, 3) as they look at their distance, shape (N, 3), uint8."""
    fog = (THICKEST_FOG * (1.0 - nearness))[:, None]
    return (colors * (1.0 - fog) + FOG * fog + 0.5).astype(np.uint8)


def eye_of(bounds: np.ndarray, camera: OrbitCamera) -> Eye:
    """The camera of this view in the units of the scene."""
    center, radius = _sphere(bounds)
    towards = _axes(camera)[2]
    angle = 2.0 * math.degrees(math.atan(float(_extent(camera)[1]) / math.sqrt(DISTANCE**2 - 1.0)))
    position = center + DISTANCE * radius * towards
    near, far = (DISTANCE - 2.0) * radius, (DISTANCE + 2.0) * radius
    return Eye(tuple(position.tolist()), tuple(center.tolist()), (0.0, 0.0, 1.0), angle, None, near, far)


def rasterised(
    rasteriser: Rasteriser,
    points: np.ndarray,
    bounds: np.ndarray,
    camera: OrbitCamera,
    size: tuple[int, int],
    radii: float | np.ndarray,
    colors: np.ndarray,
) -> Cover:
    """What the camera sees of many particles at `points` (N, 3), those within `bounds`, in a picture of `size` (width,
    height): the nearest in each pixel, whose colour fades with the distance. `radii` in pixels, one or (N,); `colors`
    (3,) or (N, 3), uint8.
    """
    spheres = Spheres(
        np.ascontiguousarray(points, np.float32),
        np.array(radii, np.float32).reshape(-1),
        np.ascontiguousarray(colors.reshape(-1, 3)),
        in_pixels=True,
    )
    _, radius = _sphere(bounds)
    fog = Fog(THICKEST_FOG, (DISTANCE - 1.0) * radius, (DISTANCE + 1.0) * radius, FOG.tolist())
    content = Content((spheres,), AS_THEY_ARE)
    # Where nothing is, the colour does not matter, but a JPEG of it blends best with the fog's.
    found = rasteriser.layer(content, eye_of(bounds, camera), size, FOG.tolist(), box=bounds.tolist(), fog=fog)
    return Cover(found.cover, found.picture, found.within, is_sharp=True)


def depth(points: np.ndarray, bounds: np.ndarray, camera: OrbitCamera) -> Any:
    """How far in front of the middle of the box points (..., 3) lie, towards the camera, in radii of the sphere around
    the box.
    """
    center, radius = _sphere(bounds)
    return (points - center) @ _axes(camera)[2] / radius


def point_at(position: tuple[float, float], depth: float, bounds: np.ndarray, camera: OrbitCamera) -> np.ndarray:
    """The point (3,) at that depth that the camera sees at a place of the picture, given as fractions from its bottom
    left.
    """
    right, up, towards = _axes(camera)
    center, radius = _sphere(bounds)
    across, above = (2.0 * np.array(position) - 1.0) * _extent(camera) / _scale(depth)
    return center + radius * (across * right + above * up + depth * towards)


def _sphere(bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The middle of the box, and the radius of the sphere around it."""
    return bounds.mean(axis=1), 0.5 * float(np.linalg.norm(bounds[:, 1] - bounds[:, 0]))


def _axes(camera: OrbitCamera) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit vectors to the picture's right, upwards in it, and towards the camera."""
    around, above = math.radians(camera.azimuth), math.radians(camera.elevation)
    towards = np.array([math.cos(above) * math.cos(around), math.cos(above) * math.sin(around), math.sin(above)])
    right = np.array([-math.sin(around), math.cos(around), 0.0])
    return right, np.cross(towards, right), towards


def _extent(camera: OrbitCamera) -> np.ndarray:
    """Half the picture's width and height; its nearer edges are `room` from the middle."""
    return camera.room * np.array([max(camera.aspect, 1.0), max(1.0 / camera.aspect, 1.0)])


def _scale(depth: Any) -> Any:
    """How large a unit at that depth is in the picture: without room the rays that touch the sphere reach its nearer
    edges.
    """
    return math.sqrt(DISTANCE**2 - 1.0) / (DISTANCE - depth)


def project(points: np.ndarray, bounds: np.ndarray, camera: OrbitCamera) -> tuple[np.ndarray, np.ndarray]:
    """Fractions of the picture and nearness of points, in units of the sphere around the box."""
    right, up, towards = _axes(camera)
    center, radius = _sphere(bounds)
    centered = (points - center) / radius
    near = centered @ towards
    flat = np.stack([centered @ right, centered @ up], -1) * _scale(near)[:, None]
    return 0.5 + 0.5 * flat / _extent(camera), ((near + 1.0) / 2.0).clip(0.0, 1.0)
