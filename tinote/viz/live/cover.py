"""Many particles as one picture: their discs, or the number in each pixel, painted by a kernel.

Sending and painting a million positions takes longer than a frame; a picture of 480 × 480 levels is 230 kB whatever
their number. Discs cover the same pixels as those that the page paints. In a density the cover of a pixel is
1 - exp(-n / m) for n particles in it, m being the mean over the pixels that have any: both dense and sparse regions
show structure.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from tinote.ir.types import f32, i32
from tinote.lang.data.types import ndarray
from tinote.lang.kernels.func import func
from tinote.lang.maths.language import atomic_max
from tinote.viz.space.geometry import fixed

DENSITY_COUNT = 150_000
"""More particles than this are shown as a density."""

PHASES = 4
"""Discs are prepared at this many positions within a pixel, in either direction, so that slow ones do not jump."""


class Cover(NamedTuple):
    """`cover`: how much of each pixel is covered, uint8, shape (rows, columns), rows from the top; `colors`: the mean
    colour of its particles, (rows, columns, 3), where they have colours; `inside`: how many lie within the bounds;
    `is_sharp`: whether each pixel is covered wholly or not at all.
    """

    cover: np.ndarray
    colors: np.ndarray | None
    inside: int
    is_sharp: bool = False


@func
def pixel_at(x, y, left, bottom, across, up, columns, rows):
    """The number of the pixel that holds a point, counted along rows from the top; -1 outside, and for NaN."""
    u = (x - left) * across
    v = (y - bottom) * up
    found = -1
    if u >= 0 and v >= 0 and u <= columns and v <= rows:
        found = (rows - 1 - min(int(v), rows - 1)) * columns + min(int(u), columns - 1)
    return found


def count_particles(
    points: ndarray(ndim=2),  # type: ignore[valid-type]
    counts: ndarray(i32, 1),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    left: f32,  # type: ignore[valid-type]
    bottom: f32,  # type: ignore[valid-type]
    across: f32,  # type: ignore[valid-type]
    up: f32,  # type: ignore[valid-type]
):
    """Count the particles of each pixel; `across` and `up` are pixels per unit."""
    for n in range(points.shape[0]):
        pixel = pixel_at(points[n, 0], points[n, 1], left, bottom, across, up, columns, counts.shape[0] // columns)
        if pixel >= 0:
            counts[pixel] += 1


def add_colors(
    points: ndarray(ndim=2),  # type: ignore[valid-type]
    colors: ndarray(ndim=2),  # type: ignore[valid-type]
    sums: ndarray(i32, 2),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    left: f32,  # type: ignore[valid-type]
    bottom: f32,  # type: ignore[valid-type]
    across: f32,  # type: ignore[valid-type]
    up: f32,  # type: ignore[valid-type]
):
    """Add up the colours of the particles of each pixel."""
    for n in range(points.shape[0]):
        pixel = pixel_at(points[n, 0], points[n, 1], left, bottom, across, up, columns, sums.shape[0] // columns)
        if pixel >= 0:
            for channel in range(3):
                sums[pixel, channel] += int(colors[n, channel])


def cover_discs(
    points: ndarray(ndim=2),  # type: ignore[valid-type]
    cover: ndarray(i32, 1),  # type: ignore[valid-type]
    offsets: ndarray(i32, 2),  # type: ignore[valid-type]
    levels: ndarray(i32, 2),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    reach: i32,  # type: ignore[valid-type]
    left: f32,  # type: ignore[valid-type]
    bottom: f32,  # type: ignore[valid-type]
    across: f32,  # type: ignore[valid-type]
    up: f32,  # type: ignore[valid-type]
) -> i32:  # type: ignore[valid-type]
    """Raise `cover`, pixels along rows from the top with a margin of `reach` at each side, to that of each particle's
    disc: `levels[phase]` at `offsets[phase]` from its pixel. Returns the number of particles within the bounds.
    """
    inside = 0
    for n in range(points.shape[0]):
        x = (points[n, 0] - left) * across
        y = rows - (points[n, 1] - bottom) * up
        if x >= 0 and y >= 0 and x <= columns and y <= rows:
            inside += 1
            column, row = min(int(x), columns - 1), min(int(y), rows - 1)
            phase = min(int((y - row) * PHASES), PHASES - 1) * PHASES + min(int((x - column) * PHASES), PHASES - 1)
            center = (row + reach) * (columns + 2 * reach) + column + reach
            for part in range(offsets.shape[1]):
                at, level = center + offsets[phase, part], levels[phase, part]
                if cover[at] < level:  # Only what changes something has to be atomic.
                    atomic_max(cover[at], level)
    return inside


_count, _add, _cover = (fixed(function) for function in (count_particles, add_colors, cover_discs))


def density(
    points: np.ndarray,
    bounds: tuple[tuple[float, float], ...],
    size: tuple[int, int],
    colors: np.ndarray,
) -> Cover:
    """The density of `points` (N, 2) over `bounds` ((left, right), (bottom, top)), in `size` (columns, rows) pixels;
    `colors` is (3,) for one of all, or (N, 3), uint8, if each has its own.
    """
    (left, right), (bottom, top) = bounds
    columns, rows = size
    grid = (columns, left, bottom, columns / (right - left), rows / (top - bottom))
    counts = np.zeros(rows * columns, np.int32)
    _count(points, counts, *grid)
    inside = int(counts.sum())
    mean = inside / max(int(np.count_nonzero(counts)), 1)
    # Where it is covered to the last level, more particles change nothing.
    last = max(1, int(np.ceil(6.3 * mean)))
    tone = (255.0 * -np.expm1(-np.arange(last + 1) / max(mean, 1e-9)) + 0.5).astype(np.uint8)
    cover = tone[np.minimum(counts, last)].reshape(rows, columns)
    if colors.ndim == 1:
        return Cover(cover, None, inside)
    sums = np.zeros((rows * columns, 3), np.int32)
    _add(points, colors, sums, *grid)
    means = (sums // np.maximum(counts, 1)[:, None]).astype(np.uint8)
    return Cover(cover, means.reshape(rows, columns, 3), inside)


class Stamp(NamedTuple):
    """A disc around the pixel that holds its centre, for each position of the centre within it, those in a row
    together: `offsets` of the pixels that it covers and how much, 1 to 255, as `levels`, both (positions, pixels),
    int32; positions with fewer pixels are padded with zeros. No pixel is farther than `reach` from that one.
    """

    offsets: np.ndarray
    levels: np.ndarray
    reach: int


@functools.lru_cache(maxsize=8)
def _stamp(radius: float, columns: int) -> Stamp:
    """The disc of `radius` pixels in a picture of that many columns and a margin."""
    reach = math.ceil(radius + 0.5)
    pixels = np.arange(-reach, reach + 1)
    centers = (np.arange(PHASES) + 0.5) / PHASES - 0.5
    y, x = (part.reshape(-1, 1, 1) for part in np.meshgrid(centers, centers, indexing="ij"))
    away = np.hypot(pixels[:, None] - y, pixels - x).reshape(PHASES**2, -1)
    levels = (255.0 * (radius + 0.5 - away).clip(0.0, 1.0) + 0.5).astype(np.int32)
    offsets = (pixels[:, None] * (columns + 2 * reach) + pixels).astype(np.int32).ravel()
    # The most covered first, so that all positions have theirs within the same number of places.
    order = np.argsort(-levels, axis=1, kind="stable")[:, : int(np.count_nonzero(levels, axis=1).max())]
    levels = np.take_along_axis(levels, order, axis=1)
    return Stamp(np.ascontiguousarray(offsets[order] * (levels > 0)), np.ascontiguousarray(levels), reach)


def discs(points: np.ndarray, bounds: tuple[tuple[float, float], ...], size: tuple[int, int], radius: float) -> Cover:
    """Discs of `radius` pixels at `points` (N, 2) over `bounds` ((left, right), (bottom, top)), in `size` (columns,
    rows) pixels: how much of each pixel that one covers which covers it most. A particle outside has no disc.
    """
    (left, right), (bottom, top) = bounds
    columns, rows = size
    offsets, levels, reach = _stamp(radius, columns)
    cover = np.zeros((rows + 2 * reach, columns + 2 * reach), np.int32)
    grid = (columns, rows, reach, left, bottom, columns / (right - left), rows / (top - bottom))
    inside = _cover(points, cover.reshape(-1), offsets, levels, *grid)
    return Cover(cover[reach : reach + rows, reach : reach + columns].astype(np.uint8), None, inside)
