"""A view of a simulation as one picture: the state with its axes, the colour bar and the plot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinote.viz.draw.axes import draw_axes, draw_grid, room_of
from tinote.viz.draw.chart import ChartLook, draw_chart
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT, draw_colorbar
from tinote.viz.draw.pen import LIGHT, Pen, PixelPen, Theme, VectorPen
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.vector import Part, VectorPicture, write_svg
from tinote.viz.live.simulated import SimulatedView
from tinote.viz.notebook.view import Frame

GRID_OVER = (0x8A, 0x90, 0x98)
"""Lines across a stage, whatever colours it has."""


def whole_picture(view: SimulatedView, frame: Frame | None, scale: int = 1, theme: Theme = LIGHT) -> Picture:
    """What was captured last, in `frame`, and the plot below it, with `scale` pixels for each, each way."""
    stage = view.painted(partial(Picture, scale=scale, theme=theme))
    parts = [stage.pixels] if stage is not None and "x" not in view.axes_shown else []
    width = _width(view)
    for height, draw in _drawn(view, frame, stage):
        pen = PixelPen(width, height, scale=scale, theme=theme)
        draw(pen)
        parts.append(pen.pixels())
    whole = Picture(width, sum(len(part) for part in parts) // scale, scale=scale)
    whole.pixels[:] = np.concatenate(parts)
    return whole


def write_svg_of(view: SimulatedView, frame: Frame | None, path: Path) -> None:
    """The same as an SVG file."""
    stage = view.painted(VectorPicture)
    parts: list[Part] = [(stage.height, stage.elements())] if stage is not None and "x" not in view.axes_shown else []
    for height, draw in _drawn(view, frame, stage):
        pen = VectorPen()
        draw(pen)
        parts.append((height, pen.elements))
    write_svg(path, _width(view), parts)


def _width(view: SimulatedView) -> int:
    room = room_of(view.axes_shown)
    return room.left + view.width + room.right


def _drawn(view: SimulatedView, frame: Frame | None, stage: Picture | None) -> list[tuple[int, Callable[[Pen], None]]]:
    """What is drawn around the stage and below it: how high each part is, and what draws it."""
    parts: list[tuple[int, Callable[[Pen], None]]] = []
    width, axes = _width(view), view.axes_shown
    if "x" in axes and stage is not None:
        room = room_of(axes)
        parts.append((room.top + stage.height + room.bottom, partial(_draw_framed, axes=axes, stage=stage)))
    scale = view.legend()
    if scale is not None and frame is not None:
        low, high = (frame.message[name] for name in ("low", "high"))
        bar = partial(draw_colorbar, map_=scale, low=low, high=high, width=width, label=view.color_label)
        parts.append((COLORBAR_HEIGHT, bar))
    if view.series:
        size = {"width": width, "height": view.chart_height}
        parts.append(
            (view.chart_height, partial(draw_chart, history=view.history, look=ChartLook(**view.chart), **size))
        )
    return parts


def _draw_framed(pen: Pen, axes: dict[str, Any], stage: Picture) -> None:
    room = room_of(axes)
    right, bottom = room.left + stage.width, room.top + stage.height
    pen.stage(room.left, room.top, stage)
    box = (room.left, room.top, right, bottom)
    draw_axes(pen, axes["x"], axes["y"], box, grid="")
    if axes["grid"]:
        draw_grid(pen, axes["x"], axes["y"], box, ink=GRID_OVER, width=0.5)
