"""The charts of a tape's gradients as a picture."""

from __future__ import annotations

import textwrap
from typing import Any

from tinote.viz.draw.axes import draw_ticks
from tinote.viz.draw.canvas import EDGE, FACE, INK, MUTED, PictureCanvas
from tinote.viz.draw.pen import LIGHT

HEIGHTS = {"norms": 220, "times": 150, "memory": 100, "horizons": 200}
LEFT, RIGHT, MARGIN = 74, 18, 16
ROW = 19
BAD = "#b02a1e"
BAD_GROUND = "#f8e6e4"
BAR_WIDTH = 150


def draw_gradients(shown: dict[str, Any], width: int) -> bytes:
    """A PNG file, `width` points wide at two pixels per point."""
    # Drawn twice: first to measure the height, then into the picture.
    height = _draw(PictureCanvas(width, 1), shown, width)
    canvas = PictureCanvas(width, height)
    _draw(canvas, shown, width)
    return canvas.png()


def _draw(canvas: PictureCanvas, shown: dict[str, Any], width: int) -> int:
    canvas.text(MARGIN, 11, shown["title"], INK, bold=True, size=14)
    canvas.line(0, 40, width, 40)
    y = 50
    for statement in shown["statements"]:
        for line in textwrap.wrap(statement, 128):
            canvas.text(MARGIN, y, line, INK, size=13)
            y += 20
    for chart in shown["charts"]:
        y = _draw_chart(canvas, chart, y + 6, width)
    return _draw_kernels(canvas, shown["kernels"], y + 6, width)


def _draw_chart(canvas: PictureCanvas, chart: dict[str, Any], y: int, width: int) -> int:
    canvas.text(MARGIN, y, chart["title"], INK, bold=True)
    across = MARGIN + 14 + canvas.width_of(chart["title"]) * 1.12
    canvas.text(across, y, chart["about"], MUTED)
    across = LEFT
    y += ROW + 3
    for entry in chart["legend"]:
        canvas.box(across, y + 5, across + 14, y + 8, color_of(entry["color"]))
        canvas.text(across + 19, y, entry["name"], INK, code=True, size=11)
        across += 19 + canvas.width_of(entry["name"], code=True, size=11) + 18
    top = y + (ROW if chart["legend"] else 0) + 4
    height = HEIGHTS[chart["id"]]
    left, right, bottom = LEFT, width - RIGHT, top + height

    def x_of(part: float) -> float:
        return left + part * (right - left)

    def y_of(part: float) -> float:
        return bottom - part * (bottom - top)

    for mark in chart["marks"]:
        canvas.box(x_of(mark["at"]) - 1, top, max(x_of(mark["to"]), x_of(mark["at"]) + 1), bottom, BAD_GROUND)
    draw_ticks(canvas.pen(), chart["x"], chart["y"], (left, top, right, bottom))
    canvas.text(MARGIN, top, chart["y"]["label"], MUTED, size=11)
    for bar in chart["bars"]:
        (x0, x1), (y0, y1) = bar["x"], bar["y"]
        gap = 0.5 if x_of(x1) - x_of(x0) > 3 else 0
        color = color_of(bar["color"], faint=bar["faint"])
        canvas.box(x_of(x0) + gap, y_of(y1), max(x_of(x1) - gap, x_of(x0) + 0.5), max(y_of(y0), y_of(y1) + 0.5), color)
    for line in chart["lines"]:
        color = MUTED if line["color"] is None else color_of(line["color"])
        for run in line["runs"]:
            points = [(x_of(px), y_of(py)) for px, py in run]
            canvas.path(points, color, dashed=line["dashed"], dots=line.get("dots", False))
    for mark in chart["marks"]:
        at = x_of(mark["at"])
        canvas.box(at - 1, top, at + 1, bottom, BAD)
        wide = canvas.width_of(mark["text"], size=11)
        canvas.text(at + 6 if at + 6 + wide < right else max(at - 6 - wide, left), top + 3, mark["text"], BAD, size=11)
    return bottom + 38


def _draw_kernels(canvas: PictureCanvas, kernels: dict[str, Any], y: int, width: int) -> int:
    if not kernels["rows"]:
        return y + 6
    canvas.line(0, y, width, y)
    columns = (MARGIN + 18, 400, 480, 570, width - MARGIN - 4)
    y += 10
    for number, (head, x) in enumerate(zip(kernels["heads"], columns, strict=True)):
        canvas.text(x, y, head, MUTED, right=number > 0, bold=True, size=11)
    y += ROW + 2
    for row in kernels["rows"]:
        canvas.box(MARGIN, y + 3, MARGIN + 10, y + 13, color_of(row["color"]))
        name = row["name"] if len(row["name"]) < 30 else row["name"][:28] + "…"
        canvas.text(columns[0], y, name, INK, code=True)
        for key, x in zip(kernels["heads"][1:], columns[1:], strict=True):
            canvas.text(x, y, row[key], INK, right=True)
        begin = columns[3] + 20
        canvas.box(begin, y + 2, begin + BAR_WIDTH, y + 14, FACE)
        for part, top, faint in ((row["bars"][1], y + 2, False), (row["bars"][0], y + 9, True)):
            canvas.box(
                begin,
                top,
                begin + max(part * BAR_WIDTH, 1),
                top + (6 if not faint else 5),
                color_of(row["color"], faint=faint),
            )
        y += ROW + 2
    canvas.box(0, y + 4, width, y + 5, EDGE)
    return y + 8


def color_of(number: int, *, faint: bool = False) -> str:
    """A series' colour on white; `faint`: half way to the paper."""
    parts = [(part + 255) // 2 if faint else part for part in LIGHT.series[number]]
    return "#" + "".join(f"{part:02x}" for part in parts)
