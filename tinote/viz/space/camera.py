"""Cameras: their position and target, and the projection of points in space to pixels.

Coordinates of the *view* are those of the camera: x to the picture's right, y upwards in it, z towards the camera, so
that what is seen has negative z. The *depth* of a point is -z, its distance along the line of sight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tinote.viz.draw.arrays import ViewError

Vector = tuple[float, ...]
"""Three numbers."""

FITTED_FIELD_OF_VIEW = 35.0
"""Degrees over the shorter side of the picture of a camera that is placed to show everything."""

ROOM = 1.2
"""How much more such a camera shows than there is at first, each way."""

CLOSEST = 1e-3
"""The near plane of a fitted camera, as a share of its distance from what it looks at."""


class Eye(NamedTuple):
    """A camera: `position` looks at `target`, with `up` upwards in the picture.

    `field_of_view` is the vertical angle in degrees of a perspective view. An orthographic one has a `box` instead:
    (left, right, bottom, top) in units of the scene around the line of sight. Nothing nearer than `near`, or farther
    than `far`, is seen.
    """

    position: Vector
    target: Vector
    up: Vector = (0.0, 1.0, 0.0)
    field_of_view: float = 45.0
    box: tuple[float, float, float, float] | None = None
    near: float = 0.1
    far: float = 1000.0


class CameraFrame(NamedTuple):
    """How a camera maps space to a picture of `columns` × `rows` pixels.

    `view` (3, 4): space to view coordinates. A point of view coordinates (x, y, -w) is seen at column `across * x / w +
    center[0]` and row `center[1] - upwards * y / w`, both from the top left; without `perspective`, w is 1 there.
    """

    view: np.ndarray
    across: float
    upwards: float
    center: tuple[float, float]
    near: float
    far: float
    perspective: bool
    columns: int
    rows: int


def axes(eye: Eye) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit vectors to the picture's right, upwards in it, and towards the camera. An `up` along the line of sight is
    replaced by another one. Raises `ViewError` for a camera that looks at where it stands.
    """
    towards = np.subtract(eye.position, eye.target)
    distance = float(np.linalg.norm(towards))
    if not (distance > 0 and math.isfinite(distance)):
        raise ViewError(
            f"the camera at {tuple(eye.position)} looks at {tuple(eye.target)}", hint="the two points must differ"
        )
    towards = towards / distance
    right = np.cross(eye.up, towards)
    if not np.linalg.norm(right) > 1e-6 * np.linalg.norm(eye.up):
        right = np.cross(np.eye(3)[int(np.argmin(np.abs(towards)))], towards)
    right = right / np.linalg.norm(right)
    return right, np.cross(towards, right), towards


def view_matrix(eye: Eye) -> np.ndarray:
    """Space to view coordinates, shape (3, 4)."""
    rotation = np.stack(axes(eye))
    return np.concatenate([rotation, -(rotation @ np.asarray(eye.position, float))[:, None]], axis=1)


def framed(eye: Eye, columns: int, rows: int) -> CameraFrame:
    """The mapping of a camera to a picture of that size."""
    if eye.box is None:
        across = upwards = rows / (2.0 * math.tan(math.radians(eye.field_of_view) / 2.0))
        center = (columns / 2.0, rows / 2.0)
    else:
        left, right, bottom, top = eye.box
        across, upwards = columns / (right - left), rows / (top - bottom)
        center = (-left * across, top * upwards)
    return CameraFrame(view_matrix(eye), across, upwards, center, eye.near, eye.far, eye.box is None, columns, rows)


def point_seen(frame: CameraFrame, column: float, row: float, depth: float) -> Vector:
    """The point in space, at that depth, that is seen at a place of the picture, in pixels from its top left."""
    w = depth if frame.perspective else 1.0
    seen = [(column - frame.center[0]) * w / frame.across, (frame.center[1] - row) * w / frame.upwards, -depth]
    return tuple((frame.view[:, :3].T @ (seen - frame.view[:, 3])).tolist())


def fitted(points: list[np.ndarray], azimuth: float, elevation: float, up: Vector, aspect: float = 1.0) -> Eye:
    """A camera at these angles in degrees, around the axis `up` and above the plane across it, that sees the finite
    points of arrays (N, 3) in a picture whose width is `aspect` times its height, and some room around them.
    """
    around, above = math.radians(azimuth), math.radians(elevation)
    upwards = np.asarray(up, float) / np.linalg.norm(up)
    # The axis that follows the one nearest to `up` in x, y, z, x: azimuth 0 is along x for z upwards, z for y upwards.
    first = np.roll(np.eye(3)[int(np.argmax(np.abs(upwards)))], 1)
    first = first - (first @ upwards) * upwards
    first /= np.linalg.norm(first)
    flat = math.cos(around) * first + math.sin(around) * np.cross(upwards, first)
    towards = math.cos(above) * flat + math.sin(above) * upwards
    known = [part[np.isfinite(part).all(axis=1)] for part in points]
    known = [part for part in known if len(part)] or [np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])]
    corners = [[part.min(axis=0), part.max(axis=0)] for part in known]
    low, high = np.min(corners, axis=(0, 1)).astype(float), np.max(corners, axis=(0, 1)).astype(float)
    center, radius = (low + high) / 2.0, max(float(np.linalg.norm(high - low)) / 2.0, 1e-6)
    half = math.tan(math.radians(FITTED_FIELD_OF_VIEW) / 2.0)  # Over the shorter side.
    extent = np.array([half * max(aspect, 1.0), half * max(1.0 / aspect, 1.0)]) / ROOM
    rotation = np.stack(axes(Eye(tuple(towards.tolist()), (0.0, 0.0, 0.0), tuple(upwards.tolist()))))
    # From this distance each point is within the pyramid of what is seen.
    distance = 0.2 * radius
    for part in known:
        seen = (part - center) @ rotation.T
        distance = max(distance, float((np.abs(seen[:, :2]) / extent + seen[:, 2:]).max()))
    position = center + distance * towards
    return Eye(
        tuple(position.tolist()),
        tuple(center.tolist()),
        tuple(upwards.tolist()),
        2.0 * math.degrees(math.atan(half * max(1.0 / aspect, 1.0))),
        near=CLOSEST * distance,
        far=1e3 * distance,
    )


def clip_matrix(eye: Eye, aspect: float) -> np.ndarray:
    """View to clip coordinates, shape (4, 4), for column vectors: depth 1 at the near plane, 0 at the far one."""
    found = np.zeros((4, 4))
    span = eye.far - eye.near
    if eye.box is None:
        scale = 1.0 / math.tan(math.radians(eye.field_of_view) / 2.0)
        found[0, 0], found[1, 1] = scale / aspect, scale
        found[2] = [0.0, 0.0, eye.near / span, eye.near * eye.far / span]
        found[3, 2] = -1.0
    else:
        left, right, bottom, top = eye.box
        found[0] = [2.0 / (right - left), 0.0, 0.0, -(right + left) / (right - left)]
        found[1] = [0.0, 2.0 / (top - bottom), 0.0, -(top + bottom) / (top - bottom)]
        found[2] = [0.0, 0.0, 1.0 / span, eye.far / span]
        found[3, 3] = 1.0
    return found


def clip_depth(eye: Eye, depth: np.ndarray) -> np.ndarray:
    """What `clip_matrix` makes of depths in the units of the scene, as a depth buffer holds it, float32: 1 at the near
    plane, 0 at the far one and behind it.
    """
    span = eye.far - eye.near
    left = np.maximum(eye.far - depth, 0.0)
    found = left / span if eye.box is not None else left * eye.near / (span * depth)
    return found.astype(np.float32)
