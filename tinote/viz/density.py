"""Very many particles as one picture: how many lie in each pixel, counted by a kernel.

Sending and painting a million positions takes longer than a frame; a picture of 480 × 480 levels is 230 kB whatever
their number. The cover of a pixel is 1 - exp(-n / m) for n particles in it, m being the mean over the pixels that have
any: dense and thin places can both be told apart.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from tinote.config import Config
from tinote.ir.types import f32, i32
from tinote.lang.func import func
from tinote.lang.kernel import Kernel, kernel
from tinote.lang.types import ndarray

__all__ = ["DENSITY_COUNT", "Density", "density"]

DENSITY_COUNT = 150_000
"""More particles than this are shown as a density."""


class Density(NamedTuple):
    """`cover`: how much of each pixel is covered, uint8, shape (rows, columns), rows from the top; `colors`: the mean
    colour of its particles, (rows, columns, 3), where they have colours; `inside`: how many lie within the bounds.
    """

    cover: np.ndarray
    colors: np.ndarray | None
    inside: int


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
    """Count the particles of each pixel; `across` and `up` are pixels a unit."""
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


def _fixed(function: Kernel) -> Kernel:
    """A kernel that is compiled the same way whatever the session's options are: not as plain Python, not profiled."""
    return function.with_options(dataclasses.asdict(Config()))


_count, _add = _fixed(kernel(count_particles)), _fixed(kernel(add_colors))


def density(
    points: np.ndarray,
    bounds: tuple[tuple[float, float], ...],
    size: tuple[int, int],
    colors: np.ndarray,
) -> Density:
    """The density of `points` (N, 2) over `bounds` ((left, right), (bottom, top)), in `size` (columns, rows) pixels;
    `colors` is (3,) for one of all, or (N, 3), uint8, if each has its own.
    """
    (left, right), (bottom, top) = bounds
    columns, rows = size
    place = (columns, left, bottom, columns / (right - left), rows / (top - bottom))
    counts = np.zeros(rows * columns, np.int32)
    _count(points, counts, *place)
    inside = int(counts.sum())
    mean = inside / max(int(np.count_nonzero(counts)), 1)
    # Where it is covered to the last level, more particles change nothing.
    last = max(1, int(np.ceil(6.3 * mean)))
    tone = (255.0 * -np.expm1(-np.arange(last + 1) / max(mean, 1e-9)) + 0.5).astype(np.uint8)
    cover = tone[np.minimum(counts, last)].reshape(rows, columns)
    if colors.ndim == 1:
        return Density(cover, None, inside)
    sums = np.zeros((rows * columns, 3), np.int32)
    _add(points, colors, sums, *place)
    means = (sums // np.maximum(counts, 1)[:, None]).astype(np.uint8)
    return Density(cover, means.reshape(rows, columns, 3), inside)
