"""What the view of a sweep shows, of few points and of many."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tinote.lang.sweeps.points import points_of
from tinote.lang.sweeps.results import Table
from tinote.lang.sweeps.runs import Outcome
from tinote.viz.sweep_view.facts import MOST_CELLS, MOST_DOTS, MOST_ROWS, Choice, as_text, facts, places_of
from tinote.viz.sweep_view.picture import draw_sweep


def _table(count: int) -> Table:
    return Table(points_of(lambda k: k, {"k": np.linspace(-1, 2, count)}, False, 0))


def _add(table: Table, number: int, **more: Any) -> None:
    k = table.points.rows[number]["k"]
    table.add(number, Outcome({"energy": np.array((k - 1) ** 2), "force": np.array(k), **more}, 0.002))


def test_before_during_and_after() -> None:
    table = _table(4)
    shown = facts(table, "run", Choice(table, None), ended=False)
    assert shown["title"] == "run: 0 of 4 points" and shown["plot"] is None and shown["best"] == -1
    assert shown["cells"] == "0000" and [row[-1] for row in shown["rows"]] == ["to come"] * 4
    _add(table, 0)
    _add(table, 2)
    table.add(3, Outcome(None, 0.001, "ValueError: too far\nin a line"))
    unasked = facts(table, "run", Choice(table, None), ended=False)
    assert unasked["best"] == -1 and "est" not in unasked["statements"][0] and len(unasked["plot"]["dots"]) == 2
    assert draw_sweep(unasked, None, 640).startswith(b"\x89PNG")
    shown = facts(table, "run", Choice(table, "energy"), ended=False)
    assert shown["cells"] == "1012" and shown["best"] == 2
    assert shown["statements"][:2] == ["Best so far: energy = 0 at k = 1", "1 failed, the first with k = 2: in a line"]
    assert shown["plot"]["x"]["label"] == "k" and [dot[0] for dot in shown["plot"]["dots"]] == [0, 2]
    assert shown["rows"][2] == [2, "1", "0", "1", "2 ms", "done"]
    assert facts(table, "run", Choice(table, "-energy"), ended=True)["statements"][0] == "Best: energy = 4 at k = -1"
    wrong = facts(table, "run", Choice(table, "energies"), ended=True)
    assert wrong["best"] == -1 and "not a numeric result; there are: energy, force" in as_text(wrong)
    assert draw_sweep(shown, None, 640).startswith(b"\x89PNG")


def test_many_points_are_few_rows() -> None:
    table = _table(20_000)
    for number in range(0, 20_000, 2):
        _add(table, number)
    unasked = facts(table, "run", Choice(table, None), ended=False)
    assert len(unasked["rows"]) <= MOST_ROWS and unasked["rows"][-1][0] == 19_998
    assert len(unasked["plot"]["dots"]) <= MOST_DOTS
    shown = facts(table, "run", Choice(table, "energy"), ended=False)
    assert len(shown["rows"]) <= MOST_ROWS and len(shown["cells"]) <= MOST_CELLS
    assert len(shown["plot"]["dots"]) <= MOST_DOTS + 1 and shown["best"] in [row[0] for row in shown["rows"]]
    assert shown["left_out"] == 20_000 - len(shown["rows"]) and len(json.dumps(shown)) < 150_000


def test_places_are_what_looks_like_them() -> None:
    table = _table(2)
    _add(table, 0, path=np.zeros((10_000, 3)), matrix=np.eye(4))
    found = places_of(table, 0)
    assert (
        found is not None and found.shape == (3334, 3) and places_of(table, 1) is None and places_of(table, -1) is None
    )
    shown = facts(table, "run", Choice(table, None), ended=True)
    assert shown["has_places"] and draw_sweep(shown, found, 640).startswith(b"\x89PNG")


def test_no_number_is_best() -> None:
    table = _table(3)
    for number in range(3):
        table.add(number, Outcome({"energy": np.array(np.nan), "text": np.arange(3.0)}, 0.1))
    shown = facts(table, "run", Choice(table, None), ended=True)
    assert shown["best"] == -1 and shown["plot"] is None and shown["heads"] == ["point", "k", "energy", "time", "state"]
