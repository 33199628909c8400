"""Axes of charts and of stages: placed once, in parts of the width and of the height, with ticks at round numbers, and
drawn alike by pictures and pages. `static/draw/axes.js` draws the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinote.viz.draw.pen import Color, Pen, text_width
from tinote.viz.draw.scale import Scale, ScaleForm

Place = Callable[[float], float]
"""From a value to the part of the axis at which it lies."""

Axis = dict[str, Any]
"""`label`, and `ticks` with `at` and `text`."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""

TICK_ROOM = 80
"""Pixels of a stage for each tick, about."""

NARROWEST_TICK = 46
"""Ticks along the bottom that have fewer pixels are thinned."""


def axis(scale: Scale, label: str, about: int) -> Axis:
    """The axis of a scale with about so many ticks."""
    return {
        "label": label,
        "ticks": [{"at": float(scale.place(value)), "text": text} for value, text in scale.ticks(about)],
    }


def linear(low: float, high: float, label: str, *, whole: bool = False, apart: int = 6) -> tuple[Place, Axis]:
    """An axis from `low` to `high` with about `apart` ticks, `whole`: at integers only."""
    scale = Scale("linear", low, high)
    return scale.place, axis(scale, label, min(apart, math.floor(high - low) or 1) if whole else apart)


def logarithmic(values: Sequence[float], label: str) -> tuple[Place, Axis]:
    """A logarithmic axis on which these values have room."""
    scale = ScaleForm("log").fitted(values)
    return scale.place, axis(scale, label, 6)


class Room(NamedTuple):
    """Pixels around a stage that its axes take."""

    left: int
    top: int
    right: int
    bottom: int


def room_of(axes: dict[str, Any]) -> Room:
    """What the axes of a stage take, if it has any."""
    if "x" not in axes:
        return Room(0, 0, 0, 0)
    x, y = axes["x"], axes["y"]
    widest = max((text_width(tick["text"]) for tick in y["ticks"]), default=0.0)
    last = x["ticks"][-1] if x["ticks"] else None
    beyond = text_width(last["text"]) / 2 * (last["at"] > 0.9) if last else 0.0
    return Room(math.ceil(widest) + (28 if y["label"] else 12), 8, max(math.ceil(beyond), 8), 38 if x["label"] else 22)


def draw_axes(pen: Pen, x: Axis, y: Axis, box: Box, right: Axis | None = None, grid: str = "y") -> None:
    """All of the axes around `box`, at its right side those of another one; lines across it for the axes that `grid`
    names.
    """
    left, top, end, bottom = box
    draw_ticks(pen, x, y, box, grid)
    for tick in right["ticks"] if right else ():
        pen.text((end + 6, bottom - tick["at"] * (bottom - top)), tick["text"], pen.theme.muted, "lm")
    if y["label"]:
        pen.upright(left - side_room(y), (top + bottom) / 2, y["label"], pen.theme.ink)
    if right and right["label"]:
        pen.upright(end + side_room(right) - 16, (top + bottom) / 2, right["label"], pen.theme.ink)


def draw_ticks(pen: Pen, x: Axis, y: Axis, box: Box, grid: str = "y") -> None:
    """Ticks, their texts, and the label below; the other one is above, or upright at the side."""
    left, top, end, bottom = box
    draw_grid(pen, x, y, box, grid)
    for tick in y["ticks"]:
        pen.text((left - 6, bottom - tick["at"] * (bottom - top)), tick["text"], pen.theme.muted, "rm")
    for tick in _with_room(x, end - left):
        pen.text((left + tick["at"] * (end - left), bottom + 6), tick["text"], pen.theme.muted, "mt")
    pen.text(((left + end) / 2, bottom + 34), x["label"], pen.theme.ink, "mb")


def draw_grid(
    pen: Pen, x: Axis, y: Axis, box: Box, grid: str = "xy", ink: Color | None = None, width: float = 1.0
) -> None:
    """Lines across `box` at the ticks of the axes that `grid` names, and short ones outside of it at the others."""
    left, top, end, bottom = box
    ink = ink or pen.theme.grid
    for tick in y["ticks"]:
        at = bottom - tick["at"] * (bottom - top)
        pen.line([(left, at), (end, at)] if "y" in grid else [(left - 4, at), (left, at)], ink, width)
    for tick in _with_room(x, end - left):
        at = left + tick["at"] * (end - left)
        pen.line([(at, top), (at, bottom)] if "x" in grid else [(at, bottom), (at, bottom + 4)], ink, width)


def _with_room(x: Axis, width: float) -> list[Any]:
    """The ticks along the bottom whose texts have room."""
    return x["ticks"][:: max(1, math.ceil(len(x["ticks"]) * NARROWEST_TICK / width))]


def side_room(up: Axis) -> float:
    """Pixels that a vertical axis takes at its side."""
    widest = max((text_width(tick["text"]) for tick in up["ticks"]), default=0.0)
    return widest + (26 if up["label"] else 10)


def seconds_text(value: float) -> str:
    """Three digits with the unit in which they are read best."""
    unit, scale = seconds_unit(value)
    return f"{value * scale:.3g} {unit}"


def seconds_unit(seconds: float) -> tuple[str, float]:
    """The name of a unit for times like this one, and how many of it a second has."""
    return ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
