"""Straight strokes over or under the contents of a view: edges, arrows, trails, contours.

What is in a picture is data, made here once and drawn twice by the same rule: by the page (`draw/strokes.js`), and
into still pictures by a kernel. A stroke runs between two points of the picture and may get narrower on the way, so
that an arrow's head is a stroke as well. How much of a pixel it covers follows from the distance of the pixel's centre.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinote.ir.types import f64, i32, u8
from tinote.lang.data.types import ndarray
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import cast
from tinote.lang.maths.language import loop_config
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.vector import VectorPicture
from tinote.viz.space.geometry import fixed

MARGIN = 0.5
"""Strokes are seen up to so far over each side of the picture, as a fraction of it: they are wide."""

HEAD_LENGTH, HEAD_SLOPE = 9.0, 0.45
"""An arrow's head: its length in pixels, at a shaft up to 2 pixels wide, and half its width over its length."""

MOST_HEAD, SHORTEST_ARROW = 0.6, 1.5
"""What part of a short arrow its head is at most; and an arrow of fewer pixels is left out."""


HALO, HALO_LIGHT = 3.5, 0.4
"""How many radii the halo of a glowing disc reaches, and how bright it is next to the disc."""

OUTLINE, OUTLINE_COVER = 1.0, 0.5
"""The edge of an arrow that has one: its width in pixels, and how much of what is below it covers."""

NO_LENGTH, FARTHEST = 1e-6, 1e30


class Strokes(NamedTuple):
    """`ends`: (M, 4), float32, where each begins and ends; `inks`: (3,) for one colour of all, or (M, 3), uint8."""

    ends: np.ndarray
    inks: np.ndarray


def as_strokes(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strokes between places, both (M, 2), that may be seen: their ends, (K, 4), float32, and which of them these
    are, (K,). A stroke with an end that is not finite is left out.
    """
    with np.errstate(over="ignore"):
        ends = np.concatenate([begin, end], axis=1).astype(np.float32)
    low, high = np.minimum(ends[:, :2], ends[:, 2:]), np.maximum(ends[:, :2], ends[:, 2:])
    seen = ((low <= 1.0 + MARGIN) & (high >= -MARGIN)).all(axis=1) & np.isfinite(ends).all(axis=1)
    index = np.flatnonzero(seen)
    return ends[index], index


def in_pixels(places: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Places (..., 2) as pixels of a picture of `size` (width, height), x to the right and y down."""
    return places * [size[0], -size[1]] + [0, size[1]]


def arrow_strokes(ends: np.ndarray, width: float, outline: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Arrows from and to pixels, (M, 4), `outline` pixels larger all around, as strokes: ends and half widths at either
    of them, (2 K, 6), that of a shaft before that of its head; and whose each is, (2 K,).
    """
    vector = ends[:, 2:] - ends[:, :2]
    length = np.hypot(*vector.T)
    shown = length >= SHORTEST_ARROW
    vector, length, whose = vector[shown], length[shown, None], np.flatnonzero(shown)
    begin, tip, along = ends[shown, :2], ends[shown, 2:], vector / length
    head = np.minimum(HEAD_LENGTH * max(1.0, width / 2.0), MOST_HEAD * length)
    neck = tip - head * along
    half = np.minimum(0.5 * width, 0.5 * HEAD_SLOPE * head)
    # A triangle grows by `outline` on all sides where its base and its tip move outwards by so much.
    beyond = outline * math.hypot(1.0, HEAD_SLOPE) / HEAD_SLOPE
    shafts = np.hstack([begin - outline * along, neck, half + outline, half + outline])
    base = HEAD_SLOPE * (head + outline + beyond)
    heads = np.hstack([neck - outline * along, tip + beyond * along, base, np.zeros_like(base)])
    return np.stack([shafts, heads], axis=1).reshape(-1, 6), np.repeat(whose, 2)


@func
def mixed(below, above, part, glowing):
    """A channel, 0 to 255, of a pixel whose `part`/256 is covered: by a colour, or with its light added."""
    light = above * part >> 8
    found = below + light - below * light // 255
    if glowing == 0:
        found = (below * (256 - part) + above * part) >> 8
    return found


def fill_strokes(
    pixels: ndarray(ndim=3),  # type: ignore[valid-type]
    strokes: ndarray(f64, 2),  # type: ignore[valid-type]
    inks: ndarray(ndim=2),  # type: ignore[valid-type]
    covers: ndarray(ndim=1),  # type: ignore[valid-type]
    rounded: i32,  # type: ignore[valid-type]
    glowing: i32,  # type: ignore[valid-type]
):
    """Paint strokes (x0, y0, x1, y1, half width at either end) over `pixels`, one after the other; `inks` and `covers`,
    which are 256 where nothing shines through, have one row for all or one a stroke.
    """
    rows, columns = pixels.shape[0], pixels.shape[1]
    loop_config(serialize=True)  # Later ones lie over earlier ones.
    for n in range(strokes.shape[0]):
        x0, y0, h0, h1 = strokes[n, 0], strokes[n, 1], strokes[n, 4], strokes[n, 5]
        dx, dy = strokes[n, 2] - x0, strokes[n, 3] - y0
        length = (dx * dx + dy * dy) ** 0.5
        ink, cover = min(n, inks.shape[0] - 1), covers[min(n, covers.shape[0] - 1)]
        if length < FARTHEST:  # False for NaN as well.
            ux, uy = cast(1.0, f64), cast(0.0, f64)  # An end may be far away.
            if length > NO_LENGTH:
                ux, uy = dx / length, dy / length
            reach = max(h0, h1) + 1.0
            top = int(max(min(y0, y0 + dy) - reach, 0.0))
            bottom = int(max(min(max(y0, y0 + dy) + reach, rows - 1.0), -1.0)) + 1
            for row in range(top, bottom):
                # The pixels of this row within reach of the stroke: next to it, and beyond its ends.
                down = row + 0.5 - y0
                low, high = -x0, columns - x0
                if abs(uy) > NO_LENGTH:
                    a, b = (down * ux - reach) / uy, (down * ux + reach) / uy
                    low, high = max(low, min(a, b)), min(high, max(a, b))
                if abs(ux) > NO_LENGTH:
                    a, b = (-reach - down * uy) / ux, (length + reach - down * uy) / ux
                    low, high = max(low, min(a, b)), min(high, max(a, b))
                first = int(max(min(low + x0, 1.0 * columns), 0.0))
                for column in range(first, int(max(min(high + x0, columns - 1.0), -1.0)) + 1):
                    right = column + 0.5 - x0
                    along = right * ux + down * uy
                    away = abs(right * uy - down * ux)
                    half = h0 + (h1 - h0) * min(max(along / max(length, NO_LENGTH), 0.0), 1.0)
                    within = 1.0
                    if rounded != 0:
                        over = max(-along, along - length, 0.0)
                        away = (away * away + over * over) ** 0.5
                    else:
                        within = min(max(min(along, length - along) + 0.5, 0.0), 1.0)
                    part = int(min(max(half + 0.5 - away, 0.0), 1.0) * within * cover + 0.5)
                    if part > 0:
                        for channel in range(3):
                            below, above = int(pixels[row, column, channel]), int(inks[ink, channel])
                            pixels[row, column, channel] = cast(mixed(below, above, part, glowing), u8)


def fill_glows(
    pixels: ndarray(ndim=3),  # type: ignore[valid-type]
    centers: ndarray(ndim=2),  # type: ignore[valid-type]
    radii: ndarray(ndim=1),  # type: ignore[valid-type]
    inks: ndarray(ndim=2),  # type: ignore[valid-type]
):
    """Add the light of discs at `centers`, in pixels, to `pixels`; `radii` and `inks` have one row for all or one a
    disc.
    """
    rows, columns = pixels.shape[0], pixels.shape[1]
    loop_config(serialize=True)
    for n in range(centers.shape[0]):
        x, y = centers[n, 0], centers[n, 1]
        ink, radius = min(n, inks.shape[0] - 1), radii[min(n, radii.shape[0] - 1)]
        reach = radius * HALO + 1.0
        if abs(x) < FARTHEST and abs(y) < FARTHEST and radius > 0:
            for row in range(max(int(y - reach), 0), min(int(y + reach) + 1, rows)):
                for column in range(max(int(x - reach), 0), min(int(x + reach) + 1, columns)):
                    away = ((column + 0.5 - x) ** 2 + (row + 0.5 - y) ** 2) ** 0.5
                    fall = max(1.0 - away / (radius * HALO), 0.0)
                    part = int(256.0 * max(min(radius + 0.5 - away, 1.0), HALO_LIGHT * fall * fall) + 0.5)
                    if part > 0:
                        for channel in range(3):
                            below, above = int(pixels[row, column, channel]), int(inks[ink, channel])
                            pixels[row, column, channel] = cast(mixed(below, above, part, 1), u8)


_fill_strokes, _fill_glows = fixed(fill_strokes), fixed(fill_glows)


def paint_strokes(
    picture: Picture,
    strokes: np.ndarray,
    inks: np.ndarray,
    covers: Any = 1.0,
    *,
    rounded: bool = False,
    glowing: bool = False,
) -> None:
    """Paint `strokes` (M, 6), in pixels: x and y of either end, and half the width there. `inks` is (3,) or (M, 3);
    `covers`, from 0 to 1, is one number or (M,). With `rounded` the ends are round, else cut off; what is `glowing`
    adds its light to what is below.
    """
    if isinstance(picture, VectorPicture):
        picture.strokes(strokes, inks, covers, rounded=rounded, glowing=glowing)
    elif len(strokes):
        _fill_strokes(
            picture.pixels,
            np.ascontiguousarray(strokes * picture.scale, np.float64),
            np.ascontiguousarray(np.atleast_2d(inks)),
            256.0 * np.atleast_1d(np.asarray(covers, np.float32)),
            int(rounded),
            int(glowing),
        )


def paint_glows(picture: Picture, centers: np.ndarray, radii: Any, inks: np.ndarray) -> None:
    """Paint discs at `centers` (N, 2), in pixels, that add their light and that of a halo to what is below; `radii` is
    a number of pixels or (N,), `inks` (3,) or (N, 3).
    """
    if len(centers):
        _fill_glows(
            picture.pixels,
            np.ascontiguousarray(centers * picture.scale, np.float32),
            np.ascontiguousarray(np.atleast_1d(radii) * picture.scale, np.float32),
            np.ascontiguousarray(np.atleast_2d(inks)),
        )


def paint_edges(picture: Picture, strokes: Strokes, width: float) -> None:
    """Paint lines `width` pixels wide, with round ends."""
    half = np.full((len(strokes.ends), 2), 0.5 * width)
    lines = np.column_stack([_pixels(picture, strokes.ends), half])
    paint_strokes(picture, lines, strokes.inks, rounded=True)


def paint_arrows(picture: Picture, strokes: Strokes, width: float, outline: np.ndarray | None = None) -> None:
    """Paint arrows with shafts `width` pixels wide, and with an edge of the colour `outline`, if there is one."""
    ends = _pixels(picture, strokes.ends)
    if outline is not None:
        paint_strokes(picture, arrow_strokes(ends, width, OUTLINE)[0], outline, OUTLINE_COVER)
    parts, whose = arrow_strokes(ends, width)
    paint_strokes(picture, parts, strokes.inks if strokes.inks.ndim == 1 else strokes.inks[whose])


def _pixels(picture: Picture, ends: np.ndarray) -> np.ndarray:
    return in_pixels(ends.reshape(-1, 2, 2), (picture.width, picture.height)).reshape(-1, 4)
