"""A view of a simulation as one picture: the state, the colour bar and the plot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinote.viz.draw.chart import draw_chart
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT, draw_colorbar
from tinote.viz.draw.pen import Pen, PixelPen, VectorPen
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.vector import Part, VectorPicture, elements_of, write_svg


def whole_picture(view: Any) -> Picture:
    """What was captured last, and the plot below it."""
    stage = view.painted()
    parts = [] if stage is None else [stage.pixels]
    for height, draw in _below(view):
        pen = PixelPen(view.width, height)
        draw(pen)
        parts.append(pen.pixels())
    whole = Picture(view.width, sum(len(part) for part in parts))
    whole.pixels[:] = np.concatenate(parts)
    return whole


def write_svg_of(view: Any, path: Path) -> None:
    """The same as an SVG file."""
    stage = view.painted(VectorPicture)
    parts: list[Part] = []
    if stage is not None:
        parts.append((stage.height, elements_of(stage)))
    for height, draw in _below(view):
        pen = VectorPen()
        draw(pen)
        parts.append((height, pen.elements))
    write_svg(path, view.width, parts)


def _below(view: Any) -> list[tuple[int, Callable[[Pen], None]]]:
    """What is shown below the stage: how high each part is, and what draws it."""
    parts: list[tuple[int, Callable[[Pen], None]]] = []
    scale = view.legend()
    if scale is not None and view.frames.last_frame is not None:
        low, high = (view.frames.last_frame.message[name] for name in ("low", "high"))
        bar = partial(draw_colorbar, colors=scale.colors, low=low, high=high, width=view.width, label=view.color_label)
        parts.append((COLORBAR_HEIGHT, bar))
    if view.series:
        size = {"width": view.width, "height": view.chart_height}
        parts.append((view.chart_height, partial(draw_chart, history=view.history, y_label=view.plot_label, **size)))
    return parts
