"""Contour lines of a grid of numbers, by marching squares."""

from __future__ import annotations

import numpy as np

from tinote.ir.types import i32
from tinote.lang.data.types import ndarray
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import select
from tinote.lang.maths.language import loop_config
from tinote.viz.space.geometry import fixed

FIRST_ROOM = 4096
"""Lines that there is room for at first; a grid that has more is marched over once more."""


@func
def add_line(lines: ndarray(ndim=2), found, level, x0, y0, x1, y1):  # type: ignore[valid-type]
    """Add a line of the level with that number, if there is room. How many there are now."""
    if found < lines.shape[0]:
        lines[found, 0], lines[found, 1], lines[found, 2], lines[found, 3] = x0, y0, x1, y1
        lines[found, 4] = level
    return found + 1


def march(
    values: ndarray(ndim=2),  # type: ignore[valid-type]
    levels: ndarray(ndim=1),  # type: ignore[valid-type]
    lines: ndarray(ndim=2),  # type: ignore[valid-type]
) -> i32:  # type: ignore[valid-type]
    """Find where linear interpolation along the sides of each square of four values meets each level. The lines that
    join these places: x and y of either end in units of the grid, and the level's number; how many there are, of which
    those that there is room for are written.
    """
    found = 0
    loop_config(serialize=True)  # The same lines in the same order.
    for i in range(values.shape[0] - 1):
        for j in range(values.shape[1] - 1):
            a, b = values[i, j], values[i + 1, j]
            d, c = values[i, j + 1], values[i + 1, j + 1]
            low, high = min(a, b, c, d), max(a, b, c, d)
            total = a + b + c + d
            if total - total == 0:  # All four are finite.
                for level in range(levels.shape[0]):
                    at = levels[level]
                    if low <= at and at < high:
                        # Where the sides are crossed; of a side that is not, any place.
                        below, right = i + (at - a) / (b - a), j + (at - b) / (c - b)
                        above, left = i + (at - d) / (c - d), j + (at - a) / (d - a)
                        on_below, on_right = (a > at) != (b > at), (b > at) != (c > at)
                        on_above, on_left = (d > at) != (c > at), (a > at) != (d > at)
                        x0, y0, x1, y1 = above, j + 1.0, i + 0.0, left
                        if on_below:
                            x0, y0 = below, j + 0.0
                        elif on_right:
                            x0, y0 = i + 1.0, right
                        if on_below and on_right and on_above:
                            # A saddle: its middle says which corners belong together, and so which sides.
                            joins_right = (total > 4 * at) == (a > at)
                            found = add_line(
                                lines,
                                found,
                                level,
                                above,
                                j + 1.0,
                                select(joins_right, i + 0.0, i + 1.0),
                                select(joins_right, left, right),
                            )
                            if joins_right:
                                x1, y1 = i + 1.0, right
                        elif not on_left:
                            x1, y1 = select(on_above, above, i + 1.0), select(on_above, j + 1.0, right)
                        found = add_line(lines, found, level, x0, y0, x1, y1)
    return found


_march = fixed(march)


def contour_lines(values: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The contour lines of `values` (columns, rows) at `levels`, as separate pieces: the ends of each in units of the
    grid, (M, 4), x0, y0, x1, y1, the first value being at (0, 0); and the number of its level, (M,). Squares with a
    value that is not finite have none.
    """
    values = np.ascontiguousarray(values, np.float64)
    levels = np.ascontiguousarray(levels, np.float64)
    lines = np.empty((FIRST_ROOM, 5))
    found = _march(values, levels, lines)
    if found > len(lines):
        lines = np.empty((found, 5))
        _march(values, levels, lines)
    return lines[:found, :4], lines[:found, 4].astype(np.int64)
