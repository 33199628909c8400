"""The box around what is seen in space, and the axes at its edges, as a camera sees them. Pages draw the same
(`static/draw/box.js`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.viz.draw.axes import axis
from tinote.viz.draw.pen import text_width
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.scale import Scale
from tinote.viz.space.camera import CameraFrame, Eye, framed

Ranges = Sequence[tuple[float, float]]
Text = tuple[float, float, str]
"""Column and row of the middle of a text, and the text."""

ABOUT = 4
"""Ticks of an axis, about."""

TICK, TICK_TEXT, LABEL = 5.0, 14.0, 32.0
"""Pixels from an edge of the box to where a tick ends, to its text, and to the label of an axis."""

NEARBY = 0.05
"""From a point of an edge the way outwards leads to one that is so far away, in radii of the sphere around the box."""

TEXT_SIZE = 11.0
LEAST_WAY = 1e-6
NONE = np.zeros((0, 4))
AIR = 0.05
"""What a box around points is larger at each side, in its longest side."""

EDGES = [(a, a | digit) for a in range(8) for digit in (1, 2, 4) if not a & digit]
"""Corners that differ in one coordinate: their numbers differ in one binary digit."""


class BoxInks(NamedTuple):
    """The colours of lines and of texts."""

    line: tuple[int, int, int]
    text: tuple[int, int, int]


BOX_INK = 0x8A9098
"""Edges of a box that are things of a scene, on light grounds and dark ones."""

ON_LIGHT = BoxInks((0xA6, 0xAB, 0xB3), (0x5C, 0x61, 0x68))
ON_DARK = BoxInks((0x5D, 0x66, 0x72), (0xAA, 0xB2, 0xBD))


class DrawnBox(NamedTuple):
    """Edges and ticks, and the grid, (N, 4): column and row of either end; and texts."""

    lines: np.ndarray
    grid: np.ndarray
    texts: list[Text]


def described_box(
    bounds: Ranges, labels: Sequence[str] = (), *, grid: bool = False, edges: bool = True
) -> dict[str, Any]:
    """A box with these labels at its axes; the box alone where there are none. Without `edges` something else draws
    them.
    """
    ends = [tuple(map(float, pair)) for pair in bounds]
    shown = [axis(Scale("linear", *pair), label, ABOUT) for pair, label in zip(ends, labels, strict=False)]
    return {"bounds": [list(pair) for pair in ends], "axes": shown, "grid": grid, "edges": edges}


def box_around(points: Sequence[np.ndarray], labels: Sequence[str]) -> dict[str, Any]:
    """The axes of a box around the finite points of arrays (N, 3), with some room; its edges are things of a scene."""
    known = [part[np.isfinite(part).all(axis=1)] for part in points]
    found = np.concatenate([np.zeros((0, 3)), *known])
    low, high = (found.min(axis=0), found.max(axis=0)) if len(found) else (np.zeros(3), np.ones(3))
    room = AIR * max(float((high - low).max()), 1e-6)
    return described_box(np.column_stack([low - room, high + room]).tolist(), labels, edges=False)


def box_edges(box: dict[str, Any], upright: int, *, grid: bool) -> np.ndarray:
    """The ends of the edges in space, and of lines on the floor at the ticks if there is a `grid`, in pairs, (N, 3)."""
    bounds = np.array(box["bounds"])
    ends = [_corner(bounds, number) for pair in EDGES for number in pair]
    for number, one in enumerate(box["axes"]):
        if grid and number != upright:
            along = 3 - number - upright
            for tick in one["ticks"]:
                place = bounds[:, 0].copy()
                place[number] += tick["at"] * (bounds[number, 1] - bounds[number, 0])
                ends += [np.where(np.arange(3) == along, bounds[:, end], place) for end in (0, 1)]
    return np.array(ends, np.float32)


def drawn_box(box: dict[str, Any], eye: Eye, size: tuple[int, int]) -> DrawnBox:
    """A described box in a picture of that size. What reaches behind the camera is left out."""
    frame = framed(eye, *size)
    bounds = np.array(box["bounds"])
    radius = 0.5 * float(np.linalg.norm(bounds[:, 1] - bounds[:, 0]))
    upright = int(np.argmax(np.abs(eye.up)))
    far = np.where(frame.view[2, :3] > 0, bounds[:, 0], bounds[:, 1])
    pairs = EDGES if box["edges"] else []
    lines = [NONE, *(_strokes(frame, [_corner(bounds, a)], [_corner(bounds, b)]) for a, b in pairs)]
    grid: list[np.ndarray] = []
    texts: list[Text] = []
    for number, one in enumerate(box["axes"]):
        edge, outwards = _edge(frame, number, upright, bounds)
        low, high = bounds[number]
        parts = np.array([tick["at"] for tick in one["ticks"]] + [1.0 if number == upright else 0.5])
        places = np.tile(edge, (len(parts), 1))
        places[:, number] = low + parts * (high - low)
        seen = _seen(frame, places)
        way = _seen(frame, places + NEARBY * radius * outwards) - seen
        length = np.hypot(*way.T)[:, None]
        way = np.divide(way, length, out=np.tile([0.0, 1.0], (len(way), 1)), where=length > LEAST_WAY)
        lines.append(np.column_stack([seen, seen + TICK * way])[:-1])
        widths = [text_width(tick["text"]) for tick in one["ticks"]]
        for place, along, tick, width in zip(seen, way, one["ticks"], widths, strict=False):
            texts.append((*(place + (TICK_TEXT + abs(along[0]) * width / 2) * along).tolist(), tick["text"]))
        beyond = np.array([0.0, -TICK_TEXT])
        if number != upright:
            beyond = (LABEL + abs(way[-1, 0]) * (max(widths, default=0.0) + text_width(one["label"])) / 2) * way[-1]
        texts.append((*(seen[-1] + beyond).tolist(), one["label"]))
        if box["grid"]:
            grid += [_strokes(frame, *_across(number, place[number], bounds, far)) for place in places[:-1]]
    every = [part[np.isfinite(part).all(axis=1)] for part in (np.concatenate(lines), np.concatenate([NONE, *grid]))]
    return DrawnBox(every[0], every[1], [text for text in texts if math.isfinite(text[0])])


def paint_box(view: Picture, shown: DrawnBox) -> None:
    """Draw a box over a picture."""
    inks = ON_LIGHT if view.pixels[0, 0].mean() > 0x80 else ON_DARK
    for lines, width in ((shown.grid, 0.4), (shown.lines, 0.75)):
        if len(lines):
            view.lines(lines[:, :2], lines[:, 2:], width, np.array(inks.line, np.uint8))
    for across, down, text in shown.texts:
        view.text(text, across, down, TEXT_SIZE, inks.text, "mm")


def _seen(frame: CameraFrame, points: np.ndarray) -> np.ndarray:
    """Column and row of points (N, 3); NaN where one is not in front of the camera."""
    view = points @ frame.view[:, :3].T + frame.view[:, 3]
    w = -view[:, 2] if frame.perspective else np.ones(len(view))
    with np.errstate(divide="ignore", invalid="ignore"):
        across = frame.across * view[:, 0] / w + frame.center[0]
        down = frame.center[1] - frame.upwards * view[:, 1] / w
    return np.where((-view[:, 2] > frame.near)[:, None], np.column_stack([across, down]), np.nan)


def _strokes(frame: CameraFrame, begin: list[np.ndarray], end: list[np.ndarray]) -> np.ndarray:
    return np.column_stack([_seen(frame, np.array(begin)), _seen(frame, np.array(end))])


def _corner(bounds: np.ndarray, number: int) -> np.ndarray:
    """Of the eight: each binary digit of its number is an end."""
    return np.array([bounds[axis, (number >> (2 - axis)) & 1] for axis in range(3)])


def _edge(frame: CameraFrame, number: int, upright: int, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edge along which an axis is drawn, as a point on it, and the direction away from the box: the upright axis
    at the left, the others at the lower side of what is seen of the box.
    """
    if number == upright:
        right = frame.view[0, :3]
        return np.where(right > 0, bounds[:, 0], bounds[:, 1]), -right
    other = 3 - number - upright
    middle = bounds.mean(axis=1)
    along = np.diff(_seen(frame, np.where(np.arange(3) == number, bounds.T, middle)), axis=0)[0]
    across = along[::-1] * ((1.0, -1.0) if along[0] < 0 else (-1.0, 1.0))
    found, farthest = bounds[:, 0], -math.inf
    for end, height in itertools.product((0, 1), (0, 1)):
        place = middle.copy()
        place[other], place[upright] = bounds[other, end], bounds[upright, height]
        away = float(_seen(frame, place[None])[0] @ across)
        if away > farthest + LEAST_WAY:
            found, farthest = place, away
    return found, np.where(np.arange(3) == other, np.sign(found - bounds.mean(axis=1)), 0.0)


def _across(number: int, at: float, bounds: np.ndarray, far: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Where lines over the two far faces begin and end on which a tick lies."""
    place = np.where(np.arange(3) == number, at, far)
    along = [np.arange(3) == axis for axis in range(3) if axis != number]
    begin, end = ([np.where(chosen, bounds[:, at], place) for chosen in along] for at in (0, 1))
    return begin, end
