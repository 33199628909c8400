"""`ti.viz.gradients`: charts whose places are those of the numbers, the still picture, the page."""

from __future__ import annotations

import io
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tinote as ti
from tinote.errors import TinoteError
from tinote.lang.ad.checks.horizons import Horizon, HorizonReport
from tinote.lang.ad.sweep_report import AdjointNorms, SweepReport, SweptLaunch
from tinote.source import Span
from tinote.viz.draw.pictures import CARD_MARGIN
from tinote.viz.draw.scale import AIR
from tinote.viz.gradient_view.charts import MOST_BARS, MOST_POINTS, MOST_ROWS, facts
from tinote.viz.gradient_view.picture import BAD
from tinote.viz.gradient_view.widget import GradientView


def report_of(count: int, *, kinds: int = 2, bad: int | None = None, forward: bool = True) -> SweepReport:
    """Launches of some kernels in turn; the norm halves from each to the one before."""
    launches = [
        SweptLaunch(k, f"kernel_{k % kinds}", Span("cell.py", 3), 1e-6 if forward else None, 3e-6, 100)
        for k in range(1, count + 1)
    ]
    values = [2.0 ** -((count - k) % 900) if bad is None or k >= bad else math.nan for k in range(count + 1)]
    norms = {"x": AdjointNorms("x", 1e-16, list(range(count + 1)), values)}
    return SweepReport(launches, norms, None if bad is None else launches[bad - 1], ran_forward=forward)


def chart(shown: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in shown["charts"] if one["id"] == name]
    return found


def test_lines_are_where_their_numbers_are() -> None:
    found = chart(facts(report_of(20), None), "norms")
    (run,) = found["lines"][0]["runs"]
    places, heights = np.array(run).T
    assert len(run) == 21 and places[0] == 0 and places[-1] == 1 and np.allclose(np.diff(places), 0.05)
    assert np.allclose(np.diff(heights), np.diff(heights)[0]) and 0 < heights[0] < heights[-1] < 1
    # Two decades of the axis are as high as the line says.
    ticks = [tick["at"] for tick in found["y"]["ticks"]]
    assert np.diff(ticks) == pytest.approx(np.diff(heights)[0] * 2 / math.log10(2))
    assert [tick["text"] for tick in found["y"]["ticks"]] == ["10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]
    assert found["rows"][3] == ["3 kernel_1", "7.629e-06"] and found["rows"][0][0] == "start"


def test_the_first_launch_without_a_number_is_marked() -> None:
    shown = facts(report_of(20, bad=8), None)
    found = chart(shown, "norms")
    (mark,) = found["marks"]
    assert mark["at"] == 8 / 20 and "launch 8, 'kernel_0', cell.py, line 3" in mark["text"]
    assert found["lines"][0]["runs"][0][0][0] == 8 / 20, "the line begins after it"
    assert "A NaN or an infinity first reaches an adjoint in the gradient of launch 8 of 20" in shown["statements"][0]
    assert ["7 kernel_1", "nan"] in found["rows"]


def test_bars_add_up() -> None:
    found = chart(facts(report_of(30, kinds=3), None), "times")
    above = [bar for bar in found["bars"] if not bar["faint"]]
    below = [bar for bar in found["bars"] if bar["faint"]]
    assert len(above) == len(below) == 30 and {bar["color"] for bar in above} == {0, 1, 2}
    zero = found["lines"][0]["runs"][0][0][1]
    assert all(bar["y"] == pytest.approx([zero, 1]) for bar in above) and all(bar["y"][1] == zero for bar in below)
    assert zero == pytest.approx(0.25), "a quarter of the height is for what takes a third of the time"
    assert found["rows"][0] == ["1 kernel_1", "1 µs", "3 µs"]
    unmeasured = facts(report_of(30, forward=False), None)
    assert not [bar for bar in chart(unmeasured, "times")["bars"] if bar["faint"]]
    assert any("keep=True" in one for one in unmeasured["statements"])


@pytest.mark.parametrize("kinds", [2, 7])
def test_a_hundred_thousand_launches_stay_small(kinds: int) -> None:
    shown = facts(report_of(100_000, kinds=kinds, bad=17), None)
    assert len(json.dumps(shown)) < 400_000
    norms, times = chart(shown, "norms"), chart(shown, "times")
    points = sum(len(run) for run in norms["lines"][0]["runs"])
    assert points <= MOST_POINTS + 2 and len(norms["rows"]) <= MOST_ROWS + 2
    heights = [y for run in norms["lines"][0]["runs"] for _, y in run]
    air = AIR / (1 + 2 * AIR)
    assert (min(heights), max(heights)) == pytest.approx((air, 1 - air)), "extremes stay"
    assert len(times["stops"]) <= MOST_BARS
    # Parts begin anew with the steps, so that all are alike.
    assert len({tuple(bar["y"]) for bar in times["bars"] if bar["x"][1] < 0.99}) <= 2 * kinds
    assert [one["name"] for one in times["legend"]] == (
        ["kernel_1", "kernel_0"] if kinds == 2 else [*[f"kernel_{k}" for k in (1, 2, 3, 4, 5)], "others"]
    )


def test_horizons_and_where_they_end() -> None:
    report = HorizonReport(1e-3, 0.1)
    report.extend([Horizon(1, 1.0, 1.0), Horizon(4, -8.0, -8.2), Horizon(16, 100.0, 3.0), Horizon(64, 1e6, 1e6)])
    assert report.meaningful == 4
    shown = facts(report_of(3), report)
    found = chart(shown, "horizons")
    (mark,) = found["marks"]
    assert (mark["at"], mark["to"]) == (pytest.approx(found["stops"][2]), 1.0) and "from 16 steps on" in mark["text"]
    assert np.allclose(np.diff(found["stops"]), np.diff(found["stops"])[0]), "the axis is logarithmic"
    assert found["rows"][1] == ["4", "-8", "-8.2", "2.4e-02"]
    assert "up to 4 steps, and no longer at 16" in shown["statements"][-1]


@pytest.fixture
def taped() -> tuple[ti.ad.Tape, Any, Any]:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=4, needs_grad=True, name="x")
    loss = ti.field(ti.f64, shape=(), needs_grad=True, name="loss")

    @ti.kernel
    def step():
        for i in x:
            x[i] = 3.9 * x[i] * (1 - x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def program(steps: int) -> None:
        for _ in range(steps):
            step()
        total()

    x.fill(0.3)
    with ti.ad.Tape(loss, keep=True) as tape:
        program(6)
    return tape, program, x


def test_the_view_its_picture_and_its_page(taped: Any, tmp_path: Any) -> None:
    tape, program, x = taped
    x.fill(0.3)
    view = ti.viz.gradients(tape, program=program, wrt=x, horizons=[1, 2, 4, 40])
    assert isinstance(view, GradientView) and repr(view) == "<gradients of 7 launches>"
    assert [one["id"] for one in view.facts["charts"]] == ["norms", "times", "memory", "horizons"]
    assert view.horizons is not None and view.horizons.meaningful == 4
    picture = np.asarray(Image.open(io.BytesIO(view.picture())).convert("RGB")).astype(int)
    assert picture.shape[1] == 2 * view.PICTURE_WIDTH
    colors = [tuple(int(BAD[k : k + 2], 16) for k in (1, 3, 5)), (0x2F, 0x6F, 0xD0), (0xC9, 0x60, 0x12)]
    assert all((abs(picture - color).sum(axis=2) < 12).sum() > 200 for color in colors)
    data, metadata = view._repr_mimebundle_()
    assert data["text/plain"] == view.text() and "Gradients of 7 launches" in view.text()
    assert metadata["image/png"]["width"] == view.PICTURE_WIDTH + 2 * CARD_MARGIN
    page = view.save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert held is not None and json.loads(held[1])["facts"] == json.loads(json.dumps(view.facts))
    assert not re.search(r"(src|href)=.https?:", page)


def test_without_a_program_nothing_else_runs(taped: Any) -> None:
    tape, program, x = taped
    view = ti.viz.gradients(tape)
    assert view.horizons is None and [one["id"] for one in view.facts["charts"]] == ["norms", "times", "memory"]
    with pytest.raises(TinoteError, match="needs `program` and `wrt`"):
        ti.viz.gradients(tape, program=program)
    with pytest.raises(TinoteError, match="needs `program` and `wrt`"):
        ti.viz.gradients(tape, wrt=x)
    with pytest.raises(TinoteError, match="tape must be a Tape, not a function"):
        ti.viz.gradients(program)


def test_an_empty_tape_has_a_view_too(taped: Any) -> None:
    tape, _, _ = taped
    with ti.ad.Tape(tape.loss) as empty:
        pass
    view = ti.viz.gradients(empty)
    assert view.facts["charts"] == [] and view.picture()[:4] == b"\x89PNG" and "0 launches" in view.text()
