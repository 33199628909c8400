"""The contents of a sweep's view: the state of each point, a plot of one result, a table, the positions of a point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinote.lang.sweeps.results import DONE, FAILED, NOT_RUN, Table
from tinote.viz.draw.axes import linear, seconds_text

MOST_ROWS = 300
"""Of the table: of more, the best and those that came last."""

MOST_DOTS = 1500
MOST_CELLS = 2000
MOST_PLACES = 4000
"""Of a point, evenly chosen of more."""

STATES = {NOT_RUN: "to come", DONE: "done", FAILED: "failed"}


class Choice:
    """Which result is looked at, and which point is best. `best`: the result's name, with a minus before it where the
    largest is best; None: the first one that is a number, of which none is best.
    """

    def __init__(self, table: Table, best: str | None) -> None:
        self._table = table
        self._best = best

    @property
    def largest(self) -> bool:
        return self._best is not None and self._best.startswith("-")

    @property
    def name(self) -> str:
        """The result; "" as long as there is none."""
        numbers = scalars(self._table)
        if self._best is None:
            return numbers[0] if numbers else ""
        name = self._best.removeprefix("-")
        return name if name in numbers else ""

    @property
    def problem(self) -> str:
        """Why there is no best point, where that is the name's fault."""
        if self._best is None or self.name or not (self._table.state == DONE).any():
            return ""
        known = ", ".join(scalars(self._table)) or "none"
        return f"best names {self._best!r}, which is not a numeric result; there are: {known}"

    def values(self) -> np.ndarray[Any, Any]:
        """The result of each point; NaN where there is none."""
        found = np.full(len(self._table.state), np.nan)
        done = self._table.state == DONE
        if self.name:
            held = self._table.results[self.name]
            found[done] = np.abs(held[done]) if held.dtype.kind == "c" else held[done]
        return found

    def point(self) -> int:
        """The best point so far, -1 if none has a number or no `best` was given."""
        if self._best is None:
            return -1
        values = self.values()
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return -1
        signed = -values[known] if self.largest else values[known]
        return int(known[np.argmin(signed)])


def scalars(table: Table) -> list[str]:
    """The results that are a number for each point."""
    return [name for name, held in table.results.items() if held.ndim == 1]


def places_of(table: Table, number: int) -> np.ndarray[Any, Any] | None:
    """Where the particles of a point are, `(n, 2)` or `(n, 3)`: its first result of such a shape. None without one."""
    if not 0 <= number < len(table.state) or table.state[number] != DONE:
        return None
    for held in table.results.values():
        if held.ndim == 3 and held.shape[2] in (2, 3) and held.shape[1] and held.dtype.kind in "biuf":
            found = np.asarray(held[number], np.float64)
            return found[:: math.ceil(len(found) / MOST_PLACES)]
    return None


def facts(table: Table, name: str, choice: Choice, *, ended: bool) -> dict[str, Any]:
    """All that the view shows but places."""
    count = len(table.state)
    done, failed = int((table.state == DONE).sum()), int((table.state == FAILED).sum())
    best = choice.point()
    values = choice.values()
    seconds = table.seconds[np.isfinite(table.seconds)]
    statements = []
    if best >= 0:
        statements.append(f"best so far: {choice.name} = {_number(values[best])} at {_arguments(table, best)}")
    if ended and best >= 0:
        statements = [statements[0].replace("best so far", "best")]
    if failed:
        first = next(iter(table.errors.items()))
        message = first[1][0].strip().splitlines()[-1]
        statements.append(f"{failed:,} failed, the first with {_arguments(table, first[0])}: {message[:160]}")
    if len(seconds):
        statements.append(f"a point takes {seconds_text(float(np.median(seconds)))} (median)")
    if choice.problem:
        statements.append(choice.problem)
    rows = _rows(table, choice, values)
    return {
        "title": f"{name}: {done + failed:,} of {count:,} points",
        "done": done,
        "failed": failed,
        "count": count,
        "ended": ended,
        "statements": [one[:1].upper() + one[1:] for one in statements],
        "best": best,
        "cells": _cells(table),
        "plot": _plot(table, choice, values, best),
        "heads": ["point", *_parameters(table), *scalars(table), "time", "state"],
        "rows": rows,
        "left_out": count - len(rows),
        "has_places": any(places_of(table, int(k)) is not None for k in np.flatnonzero(table.state == DONE)[:1]),
    }


def as_text(shown: dict[str, Any]) -> str:
    """The same where there are no pictures."""
    return "\n".join([shown["title"], *shown["statements"]])


def _parameters(table: Table) -> list[str]:
    return [name for name in table.points.labels if name != "point"]


def _rows(table: Table, choice: Choice, values: np.ndarray[Any, Any]) -> list[list[Any]]:
    """The number of a point and its cells as text."""
    count = len(table.state)
    numbers = np.arange(count)
    if count > MOST_ROWS:
        ran = np.flatnonzero(table.state != NOT_RUN)
        numbers = ran[-MOST_ROWS:]
        if choice.point() >= 0:
            order = np.argsort(np.nan_to_num(-values if choice.largest else values, nan=np.inf), kind="stable")
            best = order[: MOST_ROWS // 2]
            numbers = np.unique(np.concatenate([best[table.state[best] == DONE], ran[-(MOST_ROWS // 2) :]]))
    names, results = _parameters(table), scalars(table)
    rows: list[list[Any]] = []
    for number in numbers.tolist():
        given, state = table.points.rows[number], int(table.state[number])
        cells = [_value(given.get(name)) for name in names]
        cells += [_number(table.results[name][number]) if state == DONE else "" for name in results]
        taken = table.seconds[number]
        cells += [seconds_text(float(taken)) if math.isfinite(taken) else "", STATES[state]]
        rows.append([number, *cells])
    return rows


def _cells(table: Table) -> str:
    """A digit for each point, or for each group of points if there is little room: 0 to come, 1 done, 2 failed."""
    count = len(table.state)
    size = math.ceil(count / MOST_CELLS) or 1
    found = []
    for begin in range(0, count, size):
        part = table.state[begin : begin + size]
        found.append("2" if (part == FAILED).any() else "0" if (part == NOT_RUN).any() else "1")
    return "".join(found)


def _plot(table: Table, choice: Choice, values: np.ndarray[Any, Any], best: int) -> dict[str, Any] | None:
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return None
    along, label = _across(table)
    shown = known
    if len(known) > MOST_DOTS:
        some = known[:: math.ceil(len(known) / MOST_DOTS)]
        shown = some if best < 0 else np.unique(np.append(some, best))
    x, x_axis = linear(*_with_air(along), label, apart=8)
    y, y_axis = linear(*_with_air(values[known]), choice.name, apart=5)
    dots = [[int(k), round(x(along[k]), 5), round(y(values[k]), 5)] for k in shown.tolist()]
    return {"x": x_axis, "y": y_axis, "dots": dots}


def _across(table: Table) -> tuple[np.ndarray[Any, Any], str]:
    """What is plotted against: the first parameter that has several values, all numbers, else the point's number."""
    for name in _parameters(table):
        held: list[Any] = [row.get(name) for row in table.points.rows]
        if name != "seed" and all(type(one) in (int, float) and math.isfinite(one) for one in held):
            found = np.array(held, np.float64)
            if len(found) and found.min() < found.max():
                return found, name
    return np.arange(len(table.state), dtype=np.float64), "point"


def _with_air(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    air = 0.05 * (high - low) or max(abs(low), 1.0) * 0.05
    return low - air, high + air


def _arguments(table: Table, number: int) -> str:
    given = table.points.rows[number]
    return ", ".join(f"{name} = {_value(given.get(name))}" for name in _parameters(table))


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value) if isinstance(value, str) else repr(value)
        return text if len(text) <= 24 else f"{text[:22]}…"
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, complex | np.complexfloating) else _value(np.asarray(value).item())
