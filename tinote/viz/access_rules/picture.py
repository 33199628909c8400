"""The rule view as a picture: the first finding, with its source, launches, elements and fixes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from tinote.viz.draw.canvas import EDGE, FACE, INK, MUTED, PAPER, PictureCanvas

ROW = 19
MARGIN = 16
READ, WRITE, GREEN = "#0b5cad", "#b02a1e", "#146c2e"
COLORS = {"read": READ, "write": WRITE, "both": WRITE, "call": MUTED, "between": MUTED}
GROUNDS = {"read": "#e2edf8", "write": "#f8e6e4", "both": "#f8e6e4", "call": FACE}
LEVEL_COLORS = ("#e2aca7", "#d2817a", "#c1564c", WRITE)
MAP_HEIGHT = 150


def draw_findings(findings: Sequence[dict[str, Any]], width: int) -> bytes:
    """A PNG file, `width` points wide at two pixels per point."""
    # Drawn twice: first to measure the height, then into the picture.
    height = _draw(PictureCanvas(width, 1), findings, width)
    canvas = PictureCanvas(width, height)
    _draw(canvas, findings, width)
    return canvas.png()


def _draw(canvas: PictureCanvas, findings: Sequence[dict[str, Any]], width: int) -> int:
    count = len(findings)
    if not count:
        canvas.text(MARGIN, 11, "Access rules: no violation was found", INK, bold=True, size=14)
        return 40
    title = "one violation" if count == 1 else f"{count} violations, the first of them"
    canvas.text(MARGIN, 11, f"Access rules: {title}", INK, bold=True, size=14)
    canvas.line(0, 40, width, 40)
    found = findings[0]
    times = f" ({found['times']:,} times)" if found["times"] > 1 else ""
    y = 50
    for line in textwrap.wrap(found["reason"] + times, 122):
        canvas.text(MARGIN, y, line, INK, size=13)
        y += 20
    canvas.box(0, 41, 3, y + 8, WRITE)
    y += 9
    canvas.line(0, y, width, y)
    middle = int(width * 0.62)
    left = y
    for source in found["sources"]:
        left = _draw_source(canvas, source, left, middle)
    right = _draw_chain(canvas, found["chain"], y, middle)
    canvas.line(middle, right, width, right)
    right = _draw_map(canvas, found["map"], right, middle, width)
    bottom = max(left, right) + 6
    canvas.line(middle, y, middle, bottom)
    canvas.line(0, bottom, width, bottom)
    return _draw_fixes(canvas, found["fixes"], bottom)


def _heading(canvas: PictureCanvas, x: float, y: float, text: str) -> None:
    canvas.text(x, y + 9, text.upper(), MUTED, bold=True, size=11)


def _draw_source(canvas: PictureCanvas, source: dict[str, Any], y: int, right: int) -> int:
    _heading(canvas, MARGIN, y, "Source")
    canvas.text(right - MARGIN, y + 9, _cut(source["place"], 60, front=True), MUTED, right=True, size=11)
    y += 32
    unit = canvas.width_of("0", code=True)
    room = int((right - 68) / unit)
    for row in source["rows"]:
        if "gap" in row:
            canvas.text(56, y, f"⋯ {row['gap']} more lines", MUTED, size=11)
            y += ROW
            continue
        marks = row.get("marks", ())
        if marks:
            main = next((mark for mark in marks if mark["kind"] != "read"), marks[0])
            canvas.box(0, y - 2, right, y - 2 + ROW, GROUNDS[main["kind"]])
            canvas.box(0, y - 2, 3, y - 2 + ROW, COLORS[main["kind"]])
        canvas.text(46, y + 1, str(row["number"]), MUTED, right=True, code=True, size=11)
        canvas.text(56, y, _cut(row["text"], room), INK, code=True)
        for mark in marks:
            end = min(mark["end"], room)
            canvas.box(56 + unit * mark["begin"], y + ROW - 5, 56 + unit * end, y + ROW - 3, COLORS[mark["kind"]])
        y += ROW
        for mark in marks:
            canvas.box(0, y - 2, right, y - 2 + ROW, GROUNDS[mark["kind"]])
            canvas.box(0, y - 2, 3, y - 2 + ROW, COLORS[mark["kind"]])
            canvas.text(56 + unit * mark["begin"], y, f"↑ {mark['note']}", COLORS[mark["kind"]], bold=True, size=11)
            y += ROW
    return y


def _draw_chain(canvas: PictureCanvas, chain: Sequence[dict[str, str]], y: int, left: int) -> int:
    _heading(canvas, left + MARGIN, y, "Launches")
    y += 34
    at = left + MARGIN + 6
    for n, step in enumerate(chain):
        height = ROW + (ROW if step["does"] else 0) + 4
        if n + 1 < len(chain):
            canvas.box(at - 1, y + 7, at + 1, y + height + 7, EDGE)
        size, color = (4, MUTED) if step["kind"] == "between" else (6, COLORS[step["kind"]])
        canvas.box(at - size, y + 8 - size, at + size, y + 8 + size, color)
        if step["kind"] != "write":
            canvas.box(at - size + 2, y + 10 - size, at + size - 2, y + 6 + size, PAPER)
        canvas.text(at + 16, y, step["when"], MUTED)
        canvas.text(at + 24 + canvas.width_of(step["when"]), y, _cut(step["name"], 30), INK, code=True)
        if step["does"]:
            canvas.text(at + 16, y + ROW, _cut(step["does"], 52), COLORS[step["kind"]], bold=True, size=11)
        y += height
    return y + 4


def _draw_map(canvas: PictureCanvas, found: dict[str, Any], y: int, left: int, width: int) -> int:
    _heading(canvas, left + MARGIN, y, "Elements")
    y += 32
    rows, columns = found["size"]
    if found["rank"]:
        room = width - left - 2 * MARGIN
        side = min(room / columns, MAP_HEIGHT / rows)
        across, down = (room / columns, 20) if rows == 1 else (side, side)
        x = left + MARGIN
        canvas.box(x - 1, y - 1, x + across * columns + 1, y + down * rows + 1, EDGE)
        canvas.box(x, y, x + across * columns, y + down * rows, FACE)
        for row, column, length, _, level in found["runs"]:
            box = (x + across * column, y + down * row, x + across * (column + length), y + down * (row + 1))
            canvas.box(*box, LEVEL_COLORS[level - 1])
        y += round(down * rows) + 8
    canvas.text(left + MARGIN, y, found["count"], INK)
    more = f" and {found['more']:,} more" if found["more"] else ""
    y += ROW
    names = [name.replace(" ", "\N{NO-BREAK SPACE}") for name in found["listed"]]
    for line in textwrap.wrap(", ".join(names) + more, 44):
        canvas.text(left + MARGIN, y, line, MUTED, code=True, size=11)
        y += 17
    return y


def _draw_fixes(canvas: PictureCanvas, fixes: Sequence[dict[str, Any]], y: int) -> int:
    _heading(canvas, MARGIN, y, "Ways to fix it" if len(fixes) > 1 else "How to fix it")
    y += 34
    for fix in fixes:
        canvas.text(MARGIN, y, fix["title"], INK, bold=True)
        canvas.text(MARGIN + 170, y, fix["words"], INK)
        y += ROW
        for kind, color, sign in (("before", WRITE, "−"), ("after", GREEN, "+")):
            for line in fix.get(kind, "").splitlines():
                canvas.text(MARGIN + 170, y, f"{sign} {_cut(line, 100)}", color, code=True)
                y += ROW
        canvas.text(MARGIN + 170, y, fix["memory"], MUTED, size=11)
        y += ROW + 6
    return y + 4


def _cut(text: str, room: int, *, front: bool = False) -> str:
    if len(text) <= room:
        return text
    return "…" + text[1 - room :] if front else text[: room - 1] + "…"
