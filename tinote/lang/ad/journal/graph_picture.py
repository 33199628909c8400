"""The picture of a tape as SVG: time runs down, a row per launch, a vertical lane per field, a mark where they meet."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

_ROW, _TOP, _LETTER = 28, 64, 7.2
_PAPER, _EDGE, _INK, _MUTED = "#ffffff", "#d8dbe0", "#1f2328", "#59636e"
_LAUNCH, _PYTHON, _FIELD, _LOSS, _WARN = "#e8f1fb", "#f4f0e4", "#1a6fd0", "#0a6d5c", "#c4570b"
_LONGEST_NAME = 28
_MARGIN, _INSIDE = 72.0, 68.0  # for numbers left of the boxes, and for each nested sequence


class Lane(NamedTuple):
    """The lane of a field: whether it has a gradient, and whether it is the loss.

    `temporary`: it has a temporary adjoint.
    """

    name: str
    gradient: bool
    loss: bool
    temporary: bool = False


class GraphMark(NamedTuple):
    """The mark of a launch's effect on a field."""

    reads: bool
    stores: bool
    adds: bool
    overwrites: bool
    copied: bool


class Group(NamedTuple):
    """The position of a row in a repeated sequence, the sequence's number of rows, and its repetitions."""

    position: int
    length: int
    times: int


class GraphRow(NamedTuple):
    """A launch. `marks`: by the number of the lane. `note`: the text at its end. `groups`: the sequences that repeat
    around it, the outermost first.
    """

    number: str
    name: str
    marks: dict[int, GraphMark]
    note: str
    python: bool
    groups: tuple[Group, ...]


def draw(title: str, lanes: Sequence[Lane], rows: Sequence[GraphRow]) -> str:
    """The picture as SVG text."""
    names = [_short(row.name) for row in rows]
    box = max([90.0, *(len(name) * _LETTER + 24 for name in names)])
    margin = 20 + max([_MARGIN, *(len(_times(row.number, row.groups[0])) * _LETTER for row in rows if row.groups)])
    left = margin + _INSIDE * max([0, *(len(row.groups) - 1 for row in rows)])
    first = left + box + 44
    centres: list[float] = []
    x = first
    for lane in lanes:
        half = max(26.0, len(_short(lane.name)) * _LETTER / 2 + 12)
        centres.append(x + half)
        x += 2 * half
    width, height = max(x + 90, _LEGEND_WIDTH), _TOP + _ROW * len(rows) + 52
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" style="max-width:100%;height:auto" '  # smaller on a narrow page
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f'<rect width="100%" height="100%" rx="6" fill="{_PAPER}"/>',
        _text(16, 24, title, _INK, 'font-weight="600"'),
    ]
    bottom = _TOP + _ROW * len(rows)
    for lane, at in zip(lanes, centres, strict=True):
        followed = lane.gradient or lane.temporary
        color = _LOSS if lane.loss else _FIELD if followed else _MUTED
        dash = "" if lane.gradient else ' stroke-dasharray="9 3"' if lane.temporary else ' stroke-dasharray="3 4"'
        style = ' font-style="italic"' if lane.temporary else ""
        parts.append(_text(at, _TOP - 16, _short(lane.name), color, f'text-anchor="middle" font-weight="600"{style}'))
        parts.append(f'<line x1="{at}" y1="{_TOP - 8}" x2="{at}" y2="{bottom}" stroke="{_EDGE}"{dash}/>')
    for k, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = _TOP + _ROW * k + _ROW / 2
        parts += _row(row, name, y, margin, left, box, centres)
        if row.note:
            parts.append(_text(x + 10, y + 4, row.note, _WARN, 'font-size="11"'))
    parts += _legend(bottom + 30)
    return "\n".join([*parts, "</svg>"])


def _row(
    row: GraphRow, name: str, y: float, margin: float, left: float, box: float, centres: Sequence[float]
) -> list[str]:
    fill = _PYTHON if row.python else _LAUNCH
    parts: list[str] = []
    if not row.groups:
        parts.append(_text(left - 12, y + 4, row.number, _MUTED, 'text-anchor="end"'))
    for depth, group in enumerate(row.groups):
        parts += _bracket(group, _times("" if depth else row.number, group), y, margin + _INSIDE * depth)
    parts.append(
        f'<rect x="{left}" y="{y - 10}" width="{box}" height="20" rx="4" fill="{fill}" stroke="{_EDGE}"/>'
        + _text(left + 10, y + 4, name, _INK)
    )
    if row.marks:
        ends = [centres[lane] for lane in row.marks]
        parts.append(f'<line x1="{left + box}" y1="{y}" x2="{max(ends)}" y2="{y}" stroke="{_EDGE}"/>')
    for lane, mark in row.marks.items():
        parts.append(_marked(mark, centres[lane], y))
    return parts


def _times(number: str, group: Group) -> str:
    """The repetitions of a sequence, and its first launch."""
    return f"{number}… × {group.times:,}" if number else f"× {group.times:,}"


def _bracket(group: Group, words: str, y: float, left: float) -> list[str]:
    """The left edge of a sequence that repeats, with `words` at its middle."""
    position, length, _ = group
    x, top, bottom = left - 12, y - _ROW / 2 + 3, y + _ROW / 2 - 3
    parts = [f'<line x1="{x}" y1="{top - (0 if not position else 6)}" x2="{x}" y2="{bottom}" stroke="{_MUTED}"/>']
    if not position:
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x + 6}" y2="{top}" stroke="{_MUTED}"/>')
        middle = y + _ROW * (length - 1) / 2 + 4
        parts.append(_text(x - 8, middle, words, _MUTED, 'text-anchor="end" font-weight="600"'))
    if position == length - 1:
        parts.append(f'<line x1="{x}" y1="{bottom}" x2="{x + 6}" y2="{bottom}" stroke="{_MUTED}"/>')
    return parts


def _marked(mark: GraphMark, x: float, y: float) -> str:
    color = _WARN if mark.overwrites else _FIELD
    parts: list[str] = []
    if mark.copied:
        parts.append(f'<rect x="{x - 9}" y="{y - 9}" width="18" height="18" rx="3" fill="none" stroke="{_WARN}"/>')
    if mark.stores:
        inner = f'<circle cx="{x}" cy="{y}" r="2" fill="{_PAPER}"/>' if mark.reads else ""
        parts.append(f'<circle cx="{x}" cy="{y}" r="5.5" fill="{color}"/>{inner}')
    else:
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{_PAPER}" stroke="{color}" stroke-width="1.6"/>')
    if mark.adds:
        stroke = _PAPER if mark.stores else color
        parts.append(
            f'<path d="M{x - 3} {y}h6M{x} {y - 3}v6" stroke="{stroke}" stroke-width="1.6" stroke-linecap="round"/>'
        )
    return "".join(parts)


_LEGEND = (
    (GraphMark(True, False, False, False, False), "reads"),
    (GraphMark(False, True, False, False, False), "writes"),
    (GraphMark(True, True, False, False, False), "both"),
    (GraphMark(False, False, True, False, False), "adds"),
    (GraphMark(False, True, False, True, False), "overwrites"),
    (GraphMark(False, True, False, True, True), "and the tape copied it"),
)


def _legend_step(text: str) -> float:
    return 14 + len(text) * 6.7 + 24


_LEGEND_WIDTH = 24 + sum(_legend_step(text) for _, text in _LEGEND)


def _legend(y: float) -> list[str]:
    parts: list[str] = []
    x = 24.0
    for mark, text in _LEGEND:
        parts += [_marked(mark, x, y), _text(x + 14, y + 4, text, _MUTED, 'font-size="11"')]
        x += _legend_step(text)
    return parts


def _text(x: float, y: float, text: str, color: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" {more}>{html.escape(text)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
