"""The explorer as a picture: the list of stages with their times, the source, and the last IR, with what has changed in
both since the previous run.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

from tinote.compiler.inspect.kinds import StageKind
from tinote.compiler.inspect.stages import Stage, Stages
from tinote.viz.draw.canvas import ACCENT, FACE, INK, MUTED, PictureCanvas
from tinote.viz.draw.syntax import coloured
from tinote.viz.explorer.previous import Change

ROW = 19
LIST_WIDTH = 286
MOST_LINES = 36
"""Lines of IR in the picture; what is left out is counted."""

CONTEXT = 2
"""Lines that stay around a change, where the whole stage is too long."""

SIGNS = {"+": "+", "-": "−"}
GROUNDS = {"+": "#e0f2e3", "-": "#f8e6e4"}
EDGES = {"+": "#146c2e", "-": "#b02a1e"}

SHORTEST_BAR = 0.08
"""A bar of less than this part of the longest would be a dot, and say nothing."""

COLORS = {
    "variable": "#0b5cad",
    "memory": "#0a6d5c",
    "text": "#a3262a",
    "key": "#8b2fa8",
    "type": "#6a737d",
    "number": "#8a4b00",
}


def draw_explorer(
    name: str,
    title: str,
    stages: Stages | str,
    width: int,
    changes: Sequence[Change] | None = None,
    fresh: Sequence[int] = (),
) -> bytes:
    """A PNG file, `width` points wide at two pixels per point. `stages` may be the text of an error. `changes`: the
    stage that is shown first next to that of the previous run, if there was one; `fresh`: the rows of the source that
    this did not have.
    """
    if isinstance(stages, str):
        return _draw_problem(name, stages, width)
    final = stages.stages[stages.first_shown]
    listed = [s for s in stages.stages if s.changed]
    source = [line for text in stages.sources[:1] for line in text.lines][:16]
    shown = _in_short([Change(" ", line) for line in final.lines] if changes is None else changes)
    lines = shown[:MOST_LINES]
    left_out = sum(1 if isinstance(row, Change) else row for row in shown[MOST_LINES:])
    rows = len(source) + len(lines) + bool(left_out)
    height = 40 + max(30 + 24 * len(listed) + 30, 28 + ROW * rows + 56)
    canvas = PictureCanvas(width, height)
    canvas.box(0, 40, LIST_WIDTH, height, FACE)
    canvas.text(14, 11, name, INK, bold=True, code=True, size=15)
    canvas.text(
        width - 14, 13, f"{title}: {len(listed)} of {len(stages.stages)} stages changed something", MUTED, right=True
    )
    canvas.line(0, 40, width, 40)
    canvas.line(LIST_WIDTH, 40, LIST_WIDTH, height)
    _draw_list(canvas, listed, final)
    y = _draw_source(canvas, source, stages.sources[0].first_line if stages.sources else 1, width, fresh)
    canvas.text(LIST_WIDTH + 14, y + 8, f"{final.name}: {final.operations} operations", INK, bold=True)
    if changes is not None:
        canvas.text(width - 14, y + 8, tally(changes), MUTED, right=True)
    y += 32
    for row in lines:
        if isinstance(row, Change):
            _draw_line(canvas, y, row, final.kind, width)
        else:
            canvas.text(LIST_WIDTH + 56, y, f"⋯ {row} lines as before", MUTED)
        y += ROW
    if left_out:
        canvas.text(LIST_WIDTH + 56, y + 2, f"… {left_out} more lines", MUTED)
    return canvas.png()


def tally(changes: Sequence[Change]) -> str:
    """What has changed since the previous run, in words."""
    come, gone = (sum(change.mark == mark for change in changes) for mark in "+-")
    if not come and not gone:
        return "as in the previous run"
    parts = [
        f"{count} line{'s' if count > 1 else ''} {what}" for count, what in ((come, "new"), (gone, "gone")) if count
    ]
    return f"since the previous run: {', '.join(parts)}"


def _in_short(changes: Sequence[Change]) -> list[Change | int]:
    """The lines without those far from any change, where all would be too many; and the size of each gap."""
    if len(changes) <= MOST_LINES or all(change.mark == " " for change in changes):
        return list(changes)
    near = set[int]()
    for n, change in enumerate(changes):
        if change.mark != " ":
            near.update(range(n - CONTEXT, n + CONTEXT + 1))
    found: list[Change | int] = []
    for n, change in enumerate(changes):
        if n in near:
            found.append(change)
        elif found and isinstance(found[-1], int):
            found[-1] += 1
        else:
            found.append(1)
    return found


def _draw_list(canvas: PictureCanvas, stages: Sequence[Stage], final: Stage) -> None:
    canvas.text(14, 50, "STAGES", MUTED, bold=True, size=11)
    slowest = max((s.seconds or 0.0 for s in stages), default=0.0) or 1.0
    y = 72
    for stage in stages:
        if stage is final:
            canvas.box(0, y, LIST_WIDTH, y + 24, "#dcebfa")
            canvas.box(0, y, 3, y + 24, ACCENT)
        canvas.box(14, y + 8, 22, y + 16, _color(stage.kind))
        label = f"{stage.group} " if stage.group else ""
        canvas.text(30, y + 4, label, MUTED, size=11)
        canvas.text(30 + canvas.width_of(label, size=11), y + 3, stage.name, INK)
        if stage.seconds:
            part = (stage.seconds / slowest) ** 0.5
            if part >= SHORTEST_BAR:
                canvas.box(LIST_WIDTH - 14 - 48 * part, y + 20, LIST_WIDTH - 14, y + 22, "#8db7e8")
            canvas.text(LIST_WIDTH - 14, y + 4, _duration(stage.seconds), MUTED, right=True, size=11)
        if stage.operations is not None:
            canvas.text(LIST_WIDTH - 68, y + 4, str(stage.operations), INK, right=True, size=11)
        y += 24


def _color(kind: StageKind) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(kind.hue / 360, 0.46, 0.61))


def _duration(seconds: float) -> str:
    if seconds < 1e-4:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


def _draw_source(canvas: PictureCanvas, source: Sequence[str], first: int, width: int, fresh: Sequence[int]) -> int:
    y = 48
    for number, text in enumerate(source, first):
        if number - first in fresh:
            _draw_mark(canvas, y, "+", width)
        canvas.text(LIST_WIDTH + 46, y, str(number), MUTED, right=True, code=True, size=11)
        canvas.text(LIST_WIDTH + 56, y, text.expandtabs(4), INK, code=True)
        y += ROW
    canvas.line(LIST_WIDTH, y + 6, width, y + 6)
    return y + 6


def _draw_mark(canvas: PictureCanvas, y: float, mark: str, width: int) -> None:
    """The background of a row, extended up and down as far as its neighbours leave room."""
    canvas.box(LIST_WIDTH + 1, y - 2, width, y - 2 + ROW, GROUNDS[mark])
    canvas.box(LIST_WIDTH + 1, y - 2, LIST_WIDTH + 4, y - 2 + ROW, EDGES[mark])
    canvas.text(LIST_WIDTH + 10, y, SIGNS[mark], EDGES[mark], bold=True, code=True)


def _draw_line(canvas: PictureCanvas, y: float, change: Change, kind: StageKind, width: int) -> None:
    line = change.line
    if change.mark != " ":
        _draw_mark(canvas, y, change.mark, width)
    unit = canvas.width_of("0", code=True)
    room = int((width - LIST_WIDTH - 70) / unit)
    text = line.text if len(line.text) <= room else line.text[: room - 1] + "…"
    if line.line:
        canvas.text(LIST_WIDTH + 46, y + 1, str(line.line), MUTED, right=True, code=True, size=11)
    if line.adjoint:
        canvas.text(LIST_WIDTH + 20, y, "∂", COLORS["key"], code=True)
    x = LIST_WIDTH + 56.0
    for part, style in coloured(text, kind):
        canvas.text(x, y, part, COLORS.get(style, INK), code=True)
        x += unit * len(part)


def _draw_problem(name: str, problem: str, width: int) -> bytes:
    lines = problem.strip("\n").splitlines()
    canvas = PictureCanvas(width, 60 + ROW * len(lines))
    canvas.text(14, 11, name, INK, bold=True, code=True, size=15)
    canvas.line(0, 40, width, 40)
    canvas.box(0, 40, 3, 60 + ROW * len(lines), "#c0392b")
    for n, line in enumerate(lines):
        canvas.text(16, 50 + ROW * n, line, INK, code=True)
    return canvas.png()
