"""A view of a simulation as one picture: the state, the colour bar and the plot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tinote.viz.draw.chart import draw_chart
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT, draw_colorbar
from tinote.viz.draw.pen import Pen, PixelPen, VectorPen
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.vector import Part, VectorPicture, elements_of, write_svg
from tinote.viz.live.simulated import SimulatedView
from tinote.viz.notebook.view import Frame


def whole_picture(view: SimulatedView, frame: Frame | None) -> Picture:
    """What was captured last, in `frame`, and the plot below it."""
    stage = view.painted()
    parts = [] if stage is None else [stage.pixels]
    for height, draw in _below(view, frame):
        pen = PixelPen(view.width, height)
        draw(pen)
        parts.append(pen.pixels())
    whole = Picture(view.width, sum(len(part) for part in parts))
    whole.pixels[:] = np.concatenate(parts)
    return whole


def write_svg_of(view: SimulatedView, frame: Frame | None, path: Path) -> None:
    """The same as an SVG file."""
    stage = view.painted(VectorPicture)
    parts: list[Part] = []
    if stage is not None:
        parts.append((stage.height, elements_of(stage)))
    for height, draw in _below(view, frame):
        pen = VectorPen()
        draw(pen)
        parts.append((height, pen.elements))
    write_svg(path, view.width, parts)


def _below(view: SimulatedView, frame: Frame | None) -> list[tuple[int, Callable[[Pen], None]]]:
    """What is shown below the stage: how high each part is, and what draws it."""
    parts: list[tuple[int, Callable[[Pen], None]]] = []
    scale = view.legend()
    if scale is not None and frame is not None:
        low, high = (frame.message[name] for name in ("low", "high"))
        bar = partial(draw_colorbar, colors=scale.colors, low=low, high=high, width=view.width, label=view.color_label)
        parts.append((COLORBAR_HEIGHT, bar))
    if view.series:
        size = {"width": view.width, "height": view.chart_height}
        look = {"y_label": view.y_label, "kind": view.chart_kind}
        parts.append((view.chart_height, partial(draw_chart, history=view.history, **look, **size)))
    return parts
