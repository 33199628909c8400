"""The colour bar below a view, which shows the numbers of its colours; `static/draw/colorbar.js` shows the same."""

from __future__ import annotations

from tinote.viz.draw.colormap import LEVELS, ColorScale
from tinote.viz.draw.pen import Pen, text_width

COLORBAR_HEIGHT = 38
"""Height in pixels, ticks and the space above included."""

TOP, THICKNESS, GAP = 10, 9, 10
TICK_SPACE = 60
"""Pixels of the bar for each tick, about."""


def draw_colorbar(pen: Pen, map_: ColorScale, low: float, high: float, width: int, label: str = "") -> None:
    """Draw the bar, `width` pixels wide: `label`, and to its right the map's colours from `low` to `high`, with
    ticks below.
    """
    left, right = 0.0, float(width)
    if label:
        pen.text((0, TOP + THICKNESS / 2), label, pen.theme.ink, "lm")
        left = min(text_width(label) + GAP, right - 1)
    pen.strip(left, TOP, right - left, THICKNESS, map_.colors[:LEVELS])
    scale = map_.form.between(low, high)
    for value, text in scale.ticks(max(1, round((right - left) / TICK_SPACE))):
        x = left + (right - left) * (scale.place(value) if high > low else 0.5)
        at, half = min(max(x, left + 0.5), right - 0.5), text_width(text) / 2  # Texts end where the bar does.
        pen.line([(at, TOP + THICKNESS), (at, TOP + THICKNESS + 3)], pen.theme.muted, 1)
        pen.text((min(max(x, left + half), right - half), TOP + THICKNESS + 4), text, pen.theme.muted, "mt")
