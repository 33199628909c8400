"""Axes of charts that Python places, and that pictures and pages draw alike, in parts of the width and of the height,
with ticks at round numbers. `static/draw/axes.js` draws the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.viz.draw.canvas import MUTED, PictureCanvas
from tinote.viz.draw.chart import nice_ticks, tick_text

Place = Callable[[float], float]
"""From a value to the part of the axis at which it lies."""

Axis = dict[str, Any]
"""`label`, and `ticks` with `at` and `text`."""


def linear(low: float, high: float, label: str, *, whole: bool = False, apart: int = 6) -> tuple[Place, Axis]:
    """An axis from `low` to `high` with about `apart` ticks, `whole`: at integers only."""
    span = (high - low) or 1.0
    ticks = nice_ticks(low, high, min(apart, math.floor(span) or 1) if whole else apart)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else span

    def place(value: float) -> float:
        return (value - low) / span

    return place, {"label": label, "ticks": [{"at": place(one), "text": tick_text(one, step)} for one in ticks]}


def draw_axes(canvas: PictureCanvas, x: Axis, y: Axis, box: tuple[float, float, float, float]) -> None:
    """Lines at the ticks of `y`, the ticks' texts and both labels, around `box`: left, top, right, bottom."""
    left, top, right, bottom = box
    for tick in y["ticks"]:
        at = bottom - tick["at"] * (bottom - top)
        canvas.line(left, at, right, at)
        canvas.text(left - 6, at - 7, tick["text"], MUTED, right=True, size=11)
    for tick in x["ticks"]:
        wide = canvas.width_of(tick["text"], size=11)
        canvas.text(
            min(left + tick["at"] * (right - left) - wide / 2, right - wide), bottom + 5, tick["text"], MUTED, size=11
        )
    wide = canvas.width_of(x["label"], size=11)
    canvas.text((left + right - wide) / 2, bottom + 19, x["label"], MUTED, size=11)


def seconds_text(value: float) -> str:
    """Three digits with the unit in which they are read best."""
    unit, scale = seconds_unit(value)
    return f"{value * scale:.3g} {unit}"


def seconds_unit(seconds: float) -> tuple[str, float]:
    """The name of a unit for times like this one, and how many of it a second has."""
    return ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
