"""Running quantities, such as energies over time: the samples, their axes, and the static chart of them.

The browser draws the same chart from the same samples (`static/draw/chart.js`); its axes are those of
`draw/axes.py` on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import suggestion
from tinote.source import Span
from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.axes import axis, draw_axes, side_room
from tinote.viz.draw.pen import LIGHT, Bytes, Pen, text_width
from tinote.viz.draw.scale import Scale, form_of

CHART_HEIGHT = 170
"""Height of the chart under a view, in pixels."""


def as_series(
    quantities: Callable[[], float] | Mapping[str, Callable[[], float]] | None, alone: str
) -> dict[str, Callable[[], float]]:
    """Named quantities from one callable (which then gets the name `alone`), a mapping of callables, or nothing."""
    if quantities is None:
        return {}
    named = {alone: quantities} if callable(quantities) else dict(quantities)
    for name in named:
        if not isinstance(name, str):
            raise ViewError(f"the name of a quantity must be text, not {shown(name)}")
    if len(named) > len(LIGHT.series):
        raise ViewError(f"{len(named)} quantities in one plot; at most {len(LIGHT.series)} can be distinguished")
    return named


def sample(name: str, quantity: Callable[[], float]) -> float:
    """What a quantity is now. Raises `ViewError` where it is no number."""
    value = quantity()
    try:
        return float(value)
    except (TypeError, ValueError):
        code = getattr(quantity, "__code__", None)
        place = Span(code.co_filename, code.co_firstlineno) if code is not None else None
        raise ViewError(f"the quantity {name!r} gives {shown(value)}, not a number", place) from None


class History:
    """Samples of a few quantities over the step number, in bounded memory.

    Past `limit` samples every second one is dropped, and from then on only every second new one is taken, and so on: a
    long run stays complete at a coarser step. The latest sample is always present.
    """

    def __init__(self, names: Sequence[str], limit: int = 2000) -> None:
        self.names = tuple(names)
        self.limit = limit
        self.clear()

    def clear(self) -> None:
        """Forget every sample."""
        self._kept: list[tuple[float, ...]] = []
        self.latest: tuple[float, ...] | None = None
        self._stride = 1
        self._taken = 0

    def append(self, step: int, values: Sequence[float]) -> tuple[float, ...]:
        """Take a sample: the values, in the order of the names, at `step`. Returns it as a row (step, value, …)."""
        row = (float(step), *(float(value) for value in values))
        self.latest = row
        if self._taken % self._stride == 0:
            self._kept.append(row)
            if len(self._kept) > self.limit:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._taken += 1
        return row

    def forget_latest(self) -> None:
        """Remove the latest sample: what it measured has changed since."""
        if self._kept and self._kept[-1] is self.latest:
            self._kept.pop()
        self._taken -= self.latest is not None
        self.latest = self._kept[-1] if self._kept else None

    def table(self) -> np.ndarray:
        """All samples, shape (samples, 1 + quantities), float64: the step number, then the values."""
        rows = self._kept if self.latest is None or self._kept[-1] is self.latest else [*self._kept, self.latest]
        return np.array(rows, np.float64).reshape(-1, 1 + len(self.names))

    def csv(self, dt: float | None = None) -> str:
        """The samples as the text of a CSV file, with a line of names; with the time, where a step takes `dt`."""
        head = ["step", *(["time"] if dt else []), *self.names]
        lines = [",".join(_quoted(name) for name in head)]
        for step, *values in self.table().tolist():
            lines.append(",".join(map(repr, [int(step), *([step * dt] if dt else []), *values])))
        return "\n".join([*lines, ""])


def _quoted(name: str) -> str:
    """A name in a CSV file."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


Points = Sequence[tuple[float, float]]


def _draw_line(pen: Pen, points: Points, color: Bytes) -> None:
    if len(points) > 1:
        pen.line(points, color, 1.6)
    else:
        _draw_dots(pen, points, color)


def _draw_steps(pen: Pen, points: Points, color: Bytes) -> None:
    corners = [corner for (_, y), there in pairwise(points) for corner in ((there[0], y), there)]
    _draw_line(pen, [points[0], *corners], color)


def _draw_dots(pen: Pen, points: Points, color: Bytes) -> None:
    for point in points:
        pen.disc(point, 2, color)


KINDS: dict[str, Callable[[Pen, Points, Bytes], None]] = {
    "line": _draw_line,
    "steps": _draw_steps,
    "dots": _draw_dots,
    "histogram": _draw_steps,
}
"""The kinds of chart: each draws samples of one quantity that follow each other, in pixels; a histogram how often each
value was there (`counted`).
"""

FEWEST_BINS, MOST_BINS = 5, 40


class ChartLook(NamedTuple):
    """How samples are drawn: the kind of chart, the labels and the scales of its axes, the `limits` of the vertical
    one, the time `dt` that a step takes (0: the horizontal axis counts steps), the quantity `x` that the horizontal
    axis shows instead, and those whose axis is at the right side.
    """

    kind: str = "line"
    label: str = ""
    x_label: str = ""
    scale: Any = "linear"
    x_scale: Any = "linear"
    limits: tuple[float, float] | None = None
    dt: float = 0.0
    x: str = ""
    right: tuple[str, ...] = ()
    right_label: str = ""
    right_scale: Any = "linear"

    def checked(self, names: Sequence[str]) -> ChartLook:
        """The same. Raises `ViewError` where it does not fit quantities of these names."""
        chosen = {"x": (self.x,) if self.x else (), "right": self.right}
        for argument, which in chosen.items():
            for name in which:
                if name not in names:
                    raise ViewError(f"{argument}: there is no quantity {name!r}{suggestion(name, names)}")
        if self.kind == "histogram" and (self.x or self.right):
            raise ViewError("the axes of a histogram show values and how often they were there: it has no x or right")
        if self.x and self.x in self.right:
            raise ViewError(f"the quantity {self.x!r} is on two axes")
        if self.limits is not None and form_of(self.scale).kind == "log" and self.limits[0] <= 0:
            raise ViewError(f"limits of a logarithmic axis must be positive, not {self.limits}")
        return self


PLAIN_CHART = ChartLook()


class Binned(NamedTuple):
    """A histogram as a chart of steps: its table, with edges of bins in place of the step, its look, and the scale of
    its values.
    """

    table: np.ndarray
    look: ChartLook
    scale: Scale


def counted(table: np.ndarray, look: ChartLook) -> Binned:
    """How often the quantities had values in bins that are evenly wide along the horizontal axis."""
    values = table[:, 1:]
    scale = form_of(look.x_scale).fitted(values.ravel())
    bins = min(max(math.ceil(math.sqrt(len(table))), FEWEST_BINS), MOST_BINS)
    edges = [float(scale.at(k / bins)) for k in range(bins + 1)]
    rows = np.zeros((bins + 2, table.shape[1]))
    rows[:, 0] = [edges[0], *edges]
    places = np.asarray(scale.place(values))
    for column in range(values.shape[1]):
        known = places[np.isfinite(places[:, column]), column]
        rows[1:-1, 1 + column] = np.bincount(np.clip((known * bins).astype(int), 0, bins - 1), minlength=bins)
    shown: dict[str, Any] = {"label": look.label or "samples", "x_label": look.x_label or "value"}
    if look.limits is None and form_of(look.scale).kind == "linear":
        shown["limits"] = (0.0, 1.06 * float(rows[:, 1:].max()) or 1.0)
    return Binned(rows, look._replace(**shown), scale)


def draw_chart(
    pen: Pen, history: History, width: int, height: int = CHART_HEIGHT, look: ChartLook = PLAIN_CHART
) -> None:
    """Draw the chart: axes with labels, a legend, each quantity as its kind is drawn."""
    table, names, binned = history.table(), history.names, None
    if look.kind == "histogram":
        table, look, binned = counted(table, look)
    drawn = [index for index, name in enumerate(names) if name != look.x]
    across = table[:, 1 + names.index(look.x)] if look.x else table[:, 0] * ((not binned and look.dt) or 1.0)
    columns = {side: [k for k in drawn if (names[k] in look.right) == side] for side in (False, True)}
    left_values = table[:, [1 + k for k in columns[False]]]
    y = form_of(look.scale).fitted(left_values.ravel(), look.limits)
    second = None
    if columns[True]:
        second = form_of(look.right_scale).fitted(table[:, [1 + k for k in columns[True]]].ravel())
    x = binned or _along(across, look)
    # Steps are integers.
    about = 5 if binned or look.x or look.dt or x.kind != "linear" else min(5, int(x.high - x.low))
    x_axis, y_axis = axis(x, look.x_label or look.x or ("time" if look.dt else "step"), about), axis(y, look.label, 4)
    right_axis = None if second is None else axis(second, look.right_label, 4)
    left, top, bottom = side_room(y_axis), 24.0, height - 38.0
    right = width - (side_room(right_axis) if right_axis else 10.0)
    draw_axes(pen, x_axis, y_axis, (left, top, right, bottom), right_axis)
    at = left
    for index in drawn:
        name, color, scale = names[index], pen.theme.series[index], second if names[index] in look.right else y
        assert scale is not None
        said = f"{name} (right)" if name in look.right else name
        pen.line([(at, 12), (at + 14, 12)], color, 3)
        pen.text((at + 19, 12), said, pen.theme.ink, "lm")
        at += 19 + text_width(said) + 16
        places = np.stack([x.place(across), scale.place(table[:, 1 + index])], axis=1)
        places = places * [right - left, top - bottom] + [left, bottom]
        if look.limits is not None:
            places[:, 1] = np.where((places[:, 1] < top - 1) | (places[:, 1] > bottom + 1), np.nan, places[:, 1])
        for run in _finite_runs(places.sum(axis=1)):
            KINDS[look.kind](pen, [(float(a), float(b)) for a, b in places[run.start : run.stop]], color)
        if look.x and len(places) and np.isfinite(places[-1]).all():
            pen.disc((float(places[-1, 0]), float(places[-1, 1])), 3.5, color)  # Where it is now.


def _along(across: np.ndarray, look: ChartLook) -> Scale:
    """The horizontal axis: of steps and times just as far as they go."""
    form = form_of(look.x_scale)
    if look.x or form.kind != "linear":
        return form.fitted(across)
    start, stop = (float(across[0]), float(across[-1])) if len(across) else (0.0, look.dt or 1.0)
    return form.between(start, stop if stop > start else start + (look.dt or 1.0))


def _finite_runs(values: np.ndarray) -> list[range]:
    """Index ranges of consecutive finite values: a line has a gap where a quantity is NaN or infinite."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isfinite(values).astype(np.int8), [0]])))
    return [range(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
