"""What a scene in space holds: spheres, lines, triangle meshes and lights, as arrays that have been checked.

Positions have shape (N, 3), in the units of the scene. What is not finite is not drawn; what has a wrong shape, or an
index without a vertex, is a `ViewError` that names the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_array, as_colors
from tinote.viz.space.camera import Vector
from tinote.viz.space.geometry import edges_of, placed, vertex_normals

GREY = (0.5, 0.5, 0.5)


class Spheres(NamedTuple):
    """Spheres at `points` (N, 3), float32; `radii` (N,) or (1,), float32; `colors` (N, 3) or (1, 3), uint8. Radii are
    in the units of the scene, or in pixels.
    """

    points: np.ndarray
    radii: np.ndarray
    colors: np.ndarray
    in_pixels: bool = False

    KIND, PART = "spheres", "particle"
    ARGUMENTS = {"points": "centers", "radii": "radius"}


class Lines(NamedTuple):
    """Straight lines, `width` pixels wide, between `pairs` (M, 2), int32, of `points` (N, 3), float32; `colors` (N, 3)
    of the points, or (1, 3), uint8.
    """

    points: np.ndarray
    pairs: np.ndarray
    colors: np.ndarray
    width: float

    KIND, PART = "lines", "line"
    ARGUMENTS = {"points": "vertices", "pairs": "indices"}


class Triangles(NamedTuple):
    """`triangles` (T, 3), int32, over `points` and unit `normals` (N, 3), float32, and `colors` (N, 3) or (1, 3),
    uint8; the front shows its corners counter-clockwise, and without `two_sided` light reaches that side alone.
    `transforms` (M, 4, 4), float32: where copies of it are drawn, instead of once as it is.
    """

    points: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    two_sided: bool
    transforms: np.ndarray | None = None

    KIND, PART = "mesh", "triangle"
    ARGUMENTS = {"points": "vertices", "triangles": "indices", "normals": "normals", "transforms": "transforms"}

    def expanded(self) -> Triangles:
        """All copies as one mesh."""
        if self.transforms is None:
            return self
        copies, count = len(self.transforms), len(self.points)
        vertices, normals = placed(self.points, self.normals, self.transforms)
        offsets = (np.arange(copies, dtype=np.int32) * count)[:, None, None]
        # A mirrored copy turns the other way round.
        triangles = self.triangles[None].repeat(copies, axis=0)
        mirrored = np.linalg.det(self.transforms[:, :3, :3]) < 0
        triangles[mirrored] = triangles[mirrored][:, :, ::-1]
        colors = self.colors if len(self.colors) == 1 else np.tile(self.colors, (copies, 1))
        return Triangles(vertices, (triangles + offsets).reshape(-1, 3), normals, colors, self.two_sided)


Item = Spheres | Lines | Triangles
"""`KIND` is what pages call it, `PART` what users call a part of it; `ARGUMENTS` are those that its arrays, but for the
colours, are read from.
"""


class Light(NamedTuple):
    """A light at `position`, whose `color`, floats, is that of what it shines on at a right angle, if that is white. It
    does not fade with the distance.
    """

    position: Vector
    color: Vector


class Lighting(NamedTuple):
    """Light from all around, as it falls on what faces upwards (`sky`) and downwards (`ground`), and from `lights`; the
    positions of these are in the units of the scene, or `with_camera` in view coordinates, as shares of the distance to
    what the camera looks at.
    """

    sky: Vector
    ground: Vector
    lights: tuple[Light, ...]
    with_camera: bool = False


STUDIO = Lighting(
    (0.56, 0.57, 0.60),
    (0.26, 0.25, 0.25),
    (Light((-0.8, 1.1, 0.9), (0.52, 0.51, 0.49)), Light((1.2, 0.1, 0.3), (0.10, 0.11, 0.13))),
    with_camera=True,
)
"""The light of a scene to which none was given: from the camera's upper left, and weak from its right."""


def lit_by(ambient: np.ndarray | None, lights: Sequence[Light]) -> Lighting:
    """The light of a scene to which this was given; a studio's if nothing was."""
    if ambient is None and not lights:
        return STUDIO
    around: Any = (0.0, 0.0, 0.0) if ambient is None else tuple(ambient.tolist())
    return Lighting(around, around, tuple(lights))


class Content(NamedTuple):
    """Everything that a scene shows."""

    items: tuple[Item, ...]
    lighting: Lighting = STUDIO

    def enlarged(self, scale: float) -> Content:
        """The same for a picture with that many pixels for each: what is measured in pixels is larger."""

        def larger(item: Item) -> Item:
            if isinstance(item, Lines):
                return item._replace(width=item.width * scale)
            if isinstance(item, Spheres) and item.in_pixels:
                return item._replace(radii=item.radii * np.float32(scale))
            return item

        return self._replace(items=tuple(map(larger, self.items)))

    def points(self) -> list[np.ndarray]:
        """The positions of all items, arrays (N, 3)."""
        found = [item.expanded().points if isinstance(item, Triangles) else item.points for item in self.items]
        for item in self.items:
            if isinstance(item, Spheres) and not item.in_pixels and len(item.points):
                reach = item.radii[:, None] * np.ones(3, np.float32)
                found += [item.points - reach, item.points + reach]
        return found

    def primitives(self) -> int:
        """How many spheres, lines and triangles there are."""
        return sum(
            len(item.points)
            if isinstance(item, Spheres)
            else len(item.pairs)
            if isinstance(item, Lines)
            else len(item.triangles) * (1 if item.transforms is None else len(item.transforms))
            for item in self.items
        )


def points_in_space(value: Any, name: str) -> np.ndarray:
    """Positions (N, 3), float32 and contiguous, of anything that holds vectors of 3. Raises `ViewError`."""
    array = as_array(value)
    if array.dtype.kind not in "fiub":
        raise ViewError(f"{name} holds {array.dtype}, not numbers")
    if array.ndim < 1 or array.shape[-1] != 3:
        raise ViewError(f"{name} has shape {array.shape}; points in space have shape (N, 3)")
    points = np.ascontiguousarray(array.reshape(-1, 3), np.float32)
    # What a field gives is its own; an array may change before it is drawn.
    return points.copy() if points.base is not None and not hasattr(value, "to_numpy") else points


def indices_of(value: Any, vertices: int, corners: int, name: str) -> np.ndarray:
    """Numbers of vertices (M, corners), int32, of an array with as many to a row, or all in one row; `None` for each
    vertex in turn. Raises `ViewError`.
    """
    array = np.arange(vertices, dtype=np.int32) if value is None else as_array(value)
    what = f"{vertices} vertices" if value is None else f"{name} has {array.size} numbers, which"
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "b" or array.size == 0):
        raise ViewError(f"{name} holds {array.dtype}, not integers")
    if array.size % corners:
        raise ViewError(f"{what} are not a multiple of {corners}")
    if array.size and (array.min() < 0 or array.max() >= vertices):
        wrong = array.ravel()[int(np.argmax((array.ravel() < 0) | (array.ravel() >= vertices)))]
        raise ViewError(
            f"{name} has the number {wrong}, and there are {vertices} vertices",
            hint="vertices are counted from 0",
        )
    return np.ascontiguousarray(array.reshape(-1, corners), np.int32)


def colors_of(color: Any, each: Any, count: int, of: str) -> np.ndarray:
    """Colours (1, 3), or (count, 3) where `each` has its own, uint8. Raises `ViewError`."""
    if each is None:
        found = as_colors(color, count)
        return np.ascontiguousarray(found.reshape(-1, 3))
    array = as_array(each)
    if array.ndim >= 2 and array.shape[-1] in (3, 4):
        array = array.reshape(-1, array.shape[-1])[:, :3]
    if array.ndim != 2 or array.dtype.kind not in "fu":
        raise ViewError(
            f"per_vertex_color of shape {array.shape} and type {array.dtype} does not hold colours",
            hint="it has shape (N, 3), floats in [0, 1] or unsigned bytes",
        )
    if len(array) != count:
        raise ViewError(f"per_vertex_color has {len(array)} colours, and there are {count} {of}")
    return np.ascontiguousarray(as_colors(array, count))


def as_spheres(centers: Any, radius: Any, color: Any = GREY, per_vertex_color: Any = None) -> Spheres:
    """Spheres of arguments as users give them. Raises `ViewError`."""
    points = points_in_space(centers, "centers")
    radii = as_array(radius)
    if radii.dtype.kind not in "fiu" or radii.size not in (1, len(points)):
        raise ViewError(
            f"radius of shape {radii.shape} and type {radii.dtype} for {len(points)} particles",
            hint="it is a number, or one for each particle, in the units of the scene",
        )
    radii = np.ascontiguousarray(radii.ravel(), np.float32)
    if (radii < 0).any():
        raise ViewError(f"radius must not be negative, but is {float(radii.min()):g}")
    return Spheres(points, radii, colors_of(color, per_vertex_color, len(points), "particles"))


def as_lines(
    vertices: Any, width: float, indices: Any = None, color: Any = GREY, per_vertex_color: Any = None
) -> Lines:
    """Lines of arguments as users give them. Raises `ViewError`."""
    points = points_in_space(vertices, "vertices")
    if not float(width) > 0:
        raise ViewError(f"width must be a positive number of pixels, not {width}")
    pairs = indices_of(indices, len(points), 2, "indices")
    return Lines(points, pairs, colors_of(color, per_vertex_color, len(points), "vertices"), float(width))


def as_mesh(
    vertices: Any,
    indices: Any = None,
    normals: Any = None,
    color: Any = GREY,
    per_vertex_color: Any = None,
    two_sided: bool = False,
    transforms: Any = None,
) -> Triangles:
    """A mesh of arguments as users give them; normals are made of the triangles where there are none. Raises
    `ViewError`.
    """
    points = points_in_space(vertices, "vertices")
    triangles = indices_of(indices, len(points), 3, "indices")
    if not len(triangles):
        raise ViewError("the mesh has no triangles", hint=f"indices have shape (T, 3), vertices {points.shape}")
    if normals is None:
        across = vertex_normals(points, triangles)
    else:
        across = points_in_space(normals, "normals")
        if len(across) != len(points):
            raise ViewError(f"there are {len(across)} normals, and {len(points)} vertices")
        lengths = np.linalg.norm(across, axis=1, keepdims=True)
        across = np.divide(across, lengths, out=np.zeros_like(across), where=lengths > 0)
    places = None
    if transforms is not None:
        places = as_array(transforms)
        if places.ndim < 2 or places.shape[-2:] != (4, 4) or places.dtype.kind not in "fiu":
            raise ViewError(f"transforms have shape {places.shape}; matrices that place a mesh have shape (M, 4, 4)")
        places = np.ascontiguousarray(places.reshape(-1, 4, 4), np.float32)
    colors = colors_of(color, per_vertex_color, len(points), "vertices")
    return Triangles(points, triangles, across, colors, bool(two_sided), places)


def wireframe(mesh: Triangles, width: float = 1.0) -> Lines:
    """The edges of a mesh, of all copies."""
    whole = mesh.expanded()
    return Lines(whole.points, edges_of(whole.triangles), whole.colors, width)
