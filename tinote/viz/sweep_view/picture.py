"""The view of a sweep as a picture."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from tinote.viz.draw.axes import draw_ticks
from tinote.viz.draw.canvas import INK, MUTED, PictureCanvas

MARGIN, ROW = 16, 19
PLOT_HEIGHT, LEFT = 220, 74
MOST_SHOWN = 8
DOT, BEST, FAILED, TO_COME = "#2f6fd0", "#c96012", "#b02a1e", "#d8dbe0"


def draw_sweep(shown: dict[str, Any], places: np.ndarray[Any, Any] | None, width: int) -> bytes:
    """A PNG file, `width` points wide at two pixels per point. `places`: of the best point's particles."""
    height = _draw(PictureCanvas(width, 1), shown, places, width)
    canvas = PictureCanvas(width, height)
    _draw(canvas, shown, places, width)
    return canvas.png()


def _draw(canvas: PictureCanvas, shown: dict[str, Any], places: np.ndarray[Any, Any] | None, width: int) -> int:
    canvas.text(MARGIN, 11, shown["title"], INK, bold=True, size=14)
    canvas.line(0, 40, width, 40)
    y = 50
    for statement in shown["statements"]:
        for line in textwrap.wrap(statement, 128):
            canvas.text(MARGIN, y, line, INK, size=13)
            y += 20
    cells, room = shown["cells"], width - 2 * MARGIN
    for number, state in enumerate(cells):
        color = {"0": TO_COME, "1": DOT, "2": FAILED}[state]
        begin, end = (MARGIN + room * part / len(cells) for part in (number, number + 1))
        canvas.box(begin, y + 4, max(end - (1 if len(cells) < 200 else 0), begin + 0.5), y + 12, color)
    y += 22
    side = PLOT_HEIGHT + 20 if places is not None else 0
    if shown["plot"] is not None:
        _draw_plot(canvas, shown, y, width - MARGIN - (side + 24 if side else 0))
    if places is not None:
        _draw_places(canvas, places, width - MARGIN - side, y, side)
    if shown["plot"] is not None or places is not None:
        y += PLOT_HEIGHT + 44
    return _draw_rows(canvas, shown, y, width)


def _draw_plot(canvas: PictureCanvas, shown: dict[str, Any], y: int, right: float) -> None:
    plot = shown["plot"]
    top, bottom = y + 20, y + PLOT_HEIGHT
    canvas.text(MARGIN, y, plot["y"]["label"], MUTED, size=11)
    draw_ticks(canvas.pen(), plot["x"], plot["y"], (LEFT, top, right, bottom))
    best = []
    for number, across, up in plot["dots"]:
        at = (LEFT + across * (right - LEFT), bottom - up * (bottom - top))
        if number == shown["best"]:
            best.append(at)
        else:
            canvas.path([at], DOT)
    for x, up in best:
        canvas.box(x - 4, up - 4, x + 4, up + 4, BEST)


def _draw_places(canvas: PictureCanvas, places: np.ndarray[Any, Any], left: float, y: int, side: int) -> None:
    canvas.text(left, y, "particles of the best point", MUTED, size=11)
    flat = places[:, :2][np.isfinite(places[:, :2]).all(1)]
    if not len(flat):
        return
    low, high = flat.min(0), flat.max(0)
    span = float((high - low).max()) or 1.0
    room = side - 24
    middle = (low + high) / 2
    for px, py in (flat - middle) / span:
        canvas.path([(left + side / 2 + px * room, y + 20 + room / 2 - py * room)], DOT)


def _draw_rows(canvas: PictureCanvas, shown: dict[str, Any], y: int, width: int) -> int:
    rows = [row for row in shown["rows"] if row[-1] != "to come"]
    best = [row for row in rows if row[0] == shown["best"]]
    rows = [*best, *[row for row in rows if row[0] != shown["best"]]][:MOST_SHOWN]
    if not rows:
        return y + 6
    heads = shown["heads"]
    apart = (width - 2 * MARGIN) / len(heads)
    most = max(4, int(apart / 7.5))
    canvas.line(0, y, width, y)
    y += 8
    for number, head in enumerate(heads):
        canvas.text(MARGIN + (number + 1) * apart - 8, y, head[:most], MUTED, right=True, bold=True, size=11)
    y += ROW
    for row in rows:
        color = BEST if row[0] == shown["best"] else FAILED if row[-1] == "failed" else INK
        for number, cell in enumerate(row):
            canvas.text(MARGIN + (number + 1) * apart - 8, y, str(cell)[:most], color, right=True, size=12)
        y += ROW
    return y + 8
