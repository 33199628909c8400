"""The colour bar below a view, which shows the numbers of its colours; `static/draw/colorbar.js` shows the same."""

from __future__ import annotations

import numpy as np

from tinote.viz.draw.chart import INK, MUTED, nice_ticks, tick_text
from tinote.viz.draw.colormap import LEVELS
from tinote.viz.draw.pen import Pen, text_width

COLORBAR_HEIGHT = 38
"""Height in pixels, ticks and the space above included."""

TOP, THICKNESS, MARGIN, GAP = 10, 9, 16, 10
TICK_SPACE = 60
"""Pixels of the bar for each tick, about."""


def draw_colorbar(pen: Pen, colors: np.ndarray, low: float, high: float, width: int, label: str = "") -> None:
    """Draw the bar, `width` pixels wide: `label`, and to its right `colors` (256, 3), of which the last is left out,
    from `low` to `high`, with ticks below.
    """
    left = float(MARGIN)
    if label:
        pen.text((2, TOP + THICKNESS / 2), label, INK, "lm")
        left = 2 + text_width(label) + GAP
    right = max(left + 1, width - MARGIN)
    pen.strip(left, TOP, right - left, THICKNESS, colors[:LEVELS])
    ticks = nice_ticks(low, high, max(1, round((right - left) / TICK_SPACE)))
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    for tick in ticks:
        x = left + (right - left) * ((tick - low) / (high - low) if high > low else 0.5)
        pen.line([(x, TOP + THICKNESS), (x, TOP + THICKNESS + 3)], MUTED, 1)
        pen.text((x, TOP + THICKNESS + 4), tick_text(tick, step), MUTED, "mt")
