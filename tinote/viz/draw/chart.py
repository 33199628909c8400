"""Running quantities, such as energies over time: the samples, their axes, and the static chart of them.

The browser draws the same chart from the same samples (`static/draw/chart.js`); the rules for ticks and the kinds of
chart are the same on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tinote.source import Span
from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.pen import Pen, text_width

CHART_HEIGHT = 170
"""Height of the chart under a view, in pixels."""

COLORS = (
    (0x2F, 0x6F, 0xD0),
    (0xC9, 0x60, 0x12),
    (0x2B, 0x82, 0x52),
    (0x84, 0x50, 0xC6),
    (0xB3, 0x31, 0x5F),
    (0x5F, 0x66, 0x70),
)
"""Colours of the series on white, in order; `static/draw/chart.js` has them for both themes."""

INK, MUTED, GRID = (0x33, 0x33, 0x33), (0x66, 0x66, 0x66), (0xE2, 0xE4, 0xE8)


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
    if len(named) > len(COLORS):
        raise ViewError(f"{len(named)} quantities in one plot; at most {len(COLORS)} can be distinguished")
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


def nice_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers, a step of 1, 2 or 5 times a power of ten, within [low, high]: about `about` of them, and at least
    three if that many are wanted.
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low] if math.isfinite(low) else []
    raw = span / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw)) if raw else 0.0
    if not power:
        return [low]  # Closer together than numbers can tell.
    fewest = min(about, FEWEST_TICKS)
    at = next(index for index in range(len(_FACTORS)) if power * _FACTORS[index] >= raw * (1 - 1e-9))
    # A step that is just too large for three leaves one or two; the next smaller one, or the one after, has three.
    for index in range(at, -1, -1):
        step = power * _FACTORS[index]
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 >= fewest:
            break
    return [index * step for index in range(first, last + 1)]


FEWEST_TICKS = 3
"""One tick says nothing of the scale, and two do not show whether it is linear."""

_FACTORS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tick_text(value: float, step: float) -> str:
    """A tick's label, with the digits that ticks `step` apart need: very large and very small ones with a power of ten,
    and with true minus signs.
    """
    if abs(value) < step * 1e-6:
        return "0"
    digits = -math.floor(math.log10(step) + 1e-9) if step > 0 else 3
    if abs(value) < 1e6 and step >= 1e-4:
        return signed(f"{value:.{max(0, digits)}f}")
    decimals = digits + math.floor(math.log10(abs(value)) + 1e-9) if step > 0 else 2
    mantissa, _, exponent = f"{value:.{min(max(0, decimals), 15)}e}".partition("e")
    return times_power(mantissa, int(exponent))


def times_power(mantissa: str, exponent: int) -> str:
    """A number with a power of ten, such as 1.5×10⁹, 10⁻⁶ or −10⁹."""
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return signed(mantissa.removesuffix("1") + power if mantissa in ("1", "-1") else f"{mantissa}×{power}")


def signed(text: str) -> str:
    """A number as text, with a true minus sign."""
    return text.replace("-", "−")


def value_range(table: np.ndarray) -> tuple[float, float]:
    """The range that the vertical axis shows: the finite values, with some margin; never empty."""
    values = table[:, 1:]
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        air = 0.1 * abs(high) or 1.0
    else:
        air = 0.06 * (high - low)
    return low - air, high + air


Points = Sequence[tuple[float, float]]


def _draw_line(pen: Pen, points: Points, color: tuple[int, int, int]) -> None:
    if len(points) > 1:
        pen.line(points, color, 1.6)
    else:
        _draw_dots(pen, points, color)


def _draw_steps(pen: Pen, points: Points, color: tuple[int, int, int]) -> None:
    corners = [corner for (_, y), there in pairwise(points) for corner in ((there[0], y), there)]
    _draw_line(pen, [points[0], *corners], color)


def _draw_dots(pen: Pen, points: Points, color: tuple[int, int, int]) -> None:
    for point in points:
        pen.disc(point, 2, color)


KINDS: dict[str, Callable[[Pen, Points, tuple[int, int, int]], None]] = {
    "line": _draw_line,
    "steps": _draw_steps,
    "dots": _draw_dots,
}
"""The kinds of chart: each draws samples of one quantity that follow each other, in pixels."""


def draw_chart(
    pen: Pen,
    history: History,
    width: int,
    height: int = CHART_HEIGHT,
    x_label: str = "step",
    y_label: str = "",
    kind: str = "line",
) -> None:
    """Draw the chart: axes with labels, a legend, each quantity as its kind is drawn."""
    table = history.table()
    low, high = value_range(table)
    start, stop = (float(table[0, 0]), float(table[-1, 0])) if len(table) else (0.0, 1.0)
    if stop <= start:
        stop = start + 1.0
    rows = nice_ticks(low, high, 4)
    row_step = rows[1] - rows[0] if len(rows) > 1 else high - low
    labels = [tick_text(value, row_step) for value in rows]
    left, right = max(map(text_width, labels), default=0.0) + (26 if y_label else 10), width - 10
    top, bottom = 24, height - 34

    def x_of(value: float) -> float:
        return left + (value - start) / (stop - start) * (right - left)

    def y_of(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    for value, label in zip(rows, labels, strict=True):
        pen.line([(left, y_of(value)), (right, y_of(value))], GRID, 1)
        pen.text((left - 5, y_of(value)), label, MUTED, "rm")
    columns = nice_ticks(start, stop, min(5, int(stop - start)))  # Steps are integers.
    column_step = columns[1] - columns[0] if len(columns) > 1 else 1.0
    for value in columns:
        pen.text((x_of(value), bottom + 5), tick_text(value, column_step), MUTED, "mt")
    pen.text(((left + right) / 2, height - 4), x_label, INK, "mb")
    if y_label:
        pen.upright(4, (top + bottom) / 2, y_label, INK)
    across = left
    for index, name in enumerate(history.names):
        color = COLORS[index]
        pen.line([(across, 12), (across + 14, 12)], color, 3)
        pen.text((across + 19, 12), name, INK, "lm")
        across += 19 + text_width(name) + 16
        for run in _finite_runs(table[:, index + 1]):
            KINDS[kind](pen, [(x_of(table[row, 0]), y_of(table[row, index + 1])) for row in run], color)


def _finite_runs(values: np.ndarray) -> list[range]:
    """Index ranges of consecutive finite values: a line has a gap where a quantity is NaN or infinite."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isfinite(values).astype(np.int8), [0]])))
    return [range(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
