"""Scales of axes and colour maps: where numbers lie, ticks at round ones, and the same in the page."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinote as ti
from tests.viz.live import picture_of
from tests.viz.test_page_agrees import run
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.axes import Axis, axis, draw_axes, room_of, side_room
from tinote.viz.draw.chart import ChartLook, History, draw_chart
from tinote.viz.draw.colormap import ColorScale, table
from tinote.viz.draw.pen import PixelPen
from tinote.viz.draw.scale import AIR, Scale, ScaleForm, form_of, scale_form

TEXTS = [
    (Scale("log", 1e-12, 66.0), 4, ["10⁻¹²", "10⁻⁸", "10⁻⁴", "10⁰"]),
    (Scale("log", 0.5, 800.0), 4, ["1", "10", "100"]),
    (Scale("log", 1.0, 20.0), 4, ["1", "2", "5", "10", "20"]),
    (Scale("log", 30.0, 40.0), 4, ["30", "35", "40"]),
    (Scale("log", 2e8, 3e10), 4, ["2×10⁸", "5×10⁸", "10⁹", "2×10⁹", "5×10⁹", "10¹⁰", "2×10¹⁰"]),
    (Scale("symlog", -1000.0, 1000.0, 1.0), 6, ["−100", "−1", "0", "1", "100"]),
    (Scale("symlog", 0.0, 1e8, 1.0), 4, ["0", "10⁰", "10³", "10⁶"]),
    (Scale("symlog", -0.3, 0.4, 1.0), 4, ["−0.2", "0.0", "0.2", "0.4"]),
]


@pytest.mark.parametrize(("scale", "about", "texts"), TEXTS)
def test_ticks_of_a_scale(scale: Scale, about: int, texts: list[str]) -> None:
    assert [text for _, text in scale.ticks(about)] == [text.replace("0.0", "0") for text in texts]


def test_a_symmetric_logarithm_is_linear_below_its_bend_and_one_above() -> None:
    scale = Scale("symlog", -1e6, 1e6, 1.0)
    assert scale.place(0.0) == 0.5 and scale.place(-1e6) == 0.0 and scale.place(1e6) == 1.0
    near = np.diff(scale.place(np.array([0.0, 0.01, 0.02])))
    assert near[0] == pytest.approx(near[1], rel=1e-3)
    far = np.diff(scale.place(10.0 ** np.arange(2, 6)))
    assert far == pytest.approx(far[0], rel=1e-3)
    assert ScaleForm("symlog").between(-3.0, 66.0).bend == 0.1


@pytest.mark.parametrize("values", [[], [math.nan], [3.0], [0.0], [-1.0, -2.0], [1e-200, 1e200], [5.0, math.inf, -2.0]])
@pytest.mark.parametrize("kind", ["linear", "log", "symlog"])
def test_a_fitted_scale_has_room_for_its_values_and_three_ticks(kind: str, values: list[float]) -> None:
    scale = ScaleForm(kind).fitted(values)
    assert scale.low < scale.high and math.isfinite(scale.low + scale.high)
    assert len(scale.ticks(4)) >= 3
    shown = [value for value in values if math.isfinite(value) and (kind != "log" or value > 0)]
    assert all(0 < scale.place(value) < 1 for value in shown)
    if len(shown) > 1:
        assert scale.place(min(shown)) == pytest.approx(AIR / (1 + 2 * AIR))


@given(st.floats(-300, 300), st.floats(1e-3, 300), st.integers(3, 9), st.sampled_from(["log", "symlog"]), st.booleans())
def test_ticks_are_within_in_order_and_at_least_three(
    first: float, span: float, about: int, kind: str, mirrored: bool
) -> None:
    low, high = 10.0**first, 10.0 ** min(first + span, 305.0)
    if not high > low * (1 + 1e-6):
        return
    scale = ScaleForm(kind).between(-high if mirrored and kind == "symlog" else low, high)
    ticks = [value for value, _ in scale.ticks(about)]
    assert 3 <= len(ticks) <= 3 * about + 5
    assert all(one < other for one, other in pairwise(ticks))
    assert all(-1e-6 <= scale.place(value) <= 1 + 1e-6 for value in ticks)
    assert len({text for _, text in scale.ticks(about)}) == len(ticks)


def test_the_page_places_numbers_and_ticks_alike() -> None:
    numbers = random.Random(3)
    cases: list[tuple[Any, list[float]]] = []
    for number in range(150):
        kind = ("linear", "log", "symlog", ("symlog", 10 ** numbers.uniform(-6, 3)))[number % 4]
        size = 10 ** numbers.uniform(-9, 9)
        values = [numbers.uniform(-1, 1) * size * 10 ** numbers.uniform(-4, 4) for _ in range(number % 9)]
        cases.append((kind, values))
    script = """data.map(([form, values]) => {
        const scale = Scale.fitted(form, values, null);
        return [scale.low, scale.high, scale.axis("u", 5), values.map((value) => scale.place(value) || 0)];
    })"""
    for (form, values), (low, high, drawn, places) in zip(cases, run(("draw/scale.js",), cases, script), strict=True):
        scale = form_of(form).fitted(values)
        assert (low, high) == pytest.approx((scale.low, scale.high)), (form, values)
        wanted = axis(scale, "u", 5)
        assert [tick["text"] for tick in drawn["ticks"]] == [tick["text"] for tick in wanted["ticks"]], (form, values)
        assert [tick["at"] for tick in drawn["ticks"]] == pytest.approx([tick["at"] for tick in wanted["ticks"]])
        found = np.nan_to_num([scale.place(value) for value in values], neginf=0.0)
        assert places == pytest.approx(found), (form, values)


class Recorder(PixelPen):
    """A pen that keeps the lines and the texts of axes."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.drawn: list[Any] = []

    def line(self, points: Any, color: Any, width: float) -> None:
        self.drawn.append(["line", *[round(part) for point in points for part in point]])

    def text(self, place: Any, text: str, color: Any, anchor: str) -> None:
        self.drawn.append([text, *map(round, place), anchor])

    def upright(self, left: float, middle: float, text: str, color: Any) -> None:
        self.drawn.append([text, round(left), round(middle), "up"])

    def disc(self, center: Any, radius: float, color: Any) -> None:
        self.drawn.append(["disc", *map(round, center)])


IN_THE_PAGE = """(() => {
  globalThis.document = { createElement: () => ({ getContext: () => ({ measureText: () => ({ width: 20 }) }) }) };
  return data.map(([x, y, right, box, grid]) => {
    const drawn = [];
    let [from, shift] = [null, null];
    const [acrossOf, downOf] = [{ left: "l", center: "m", right: "r" }, { top: "t", middle: "m", bottom: "b" }];
    const context = {
      beginPath() {}, stroke() {}, save() {}, rotate() {},
      restore() { shift = null; },
      translate: (...place) => { shift = place; },
      moveTo: (...place) => { from = place; },
      lineTo: (...place) => drawn.push(["line", ...[...from, ...place].map(Math.floor)]),
      fillText(text, across, down) {
        if (shift) drawn.push([text, ...shift.map(Math.round), "up"]);
        else {
          const anchor = acrossOf[this.textAlign] + downOf[this.textBaseline];
          drawn.push([text, Math.round(across), Math.round(down), anchor]);
        }
      },
    };
    paintAxes(context, { x, y, right, grid }, box, {});
    return [drawn, roomOf({ x, y })];
  });
})()"""


def test_axes_are_drawn_alike_by_pictures_and_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinote.viz.draw.axes.text_width", lambda _: 20.0)
    x = axis(Scale("linear", 0.0, 4.0), "t [s]", 5)
    y, right = axis(Scale("log", 1e-3, 1e3), "u [V]", 4), axis(Scale("linear", -1.0, 1.0), "E [J]", 4)
    plain = axis(Scale("linear", 0.0, 2.0), "", 4)
    box = (50.0, 10.0, 350.0, 130.0)
    cases: list[tuple[Axis, Axis, Axis | None, Any, str]] = [
        (x, y, right, box, "y"), (x, plain, None, box, "xy"), (plain, y, None, box, ""),
        (x, y, None, (50.0, 10.0, 150.0, 130.0), "y"),
    ]  # fmt: skip
    for case, (drawn, room) in zip(cases, run(("draw/canvas_axes.js",), cases, IN_THE_PAGE), strict=True):
        pen = Recorder()
        draw_axes(pen, case[0], case[1], case[3], case[2], case[4])
        by_kind = [sorted(map(json.dumps, one)) for one in (pen.drawn, drawn)]
        assert by_kind[0] == by_kind[1]
        assert room == room_of({"x": case[0], "y": case[1]})._asdict()


# ---- colours


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_colours_of_a_logarithm(dtype: Any) -> None:
    found = ColorScale("gray", norm="log").levels(np.array([1.0, 10.0, 100.0, 1000.0, 0.0, -5.0, math.nan], dtype))
    assert (found.low, found.high, found.strange) == (1.0, 1000.0, 1)
    assert found.codes.tolist() == [0, 85, 170, 254, 0, 0, 255]
    assert ColorScale("gray", norm="log").levels(np.array([-1.0, 0.0], dtype)).codes.tolist() == [0, 0]


def test_colours_of_a_symmetric_logarithm() -> None:
    scale = ColorScale("coolwarm", norm=("symlog", 1.0))
    found = scale.levels(np.array([-1000.0, -1.0, 0.0, 1.0, 10.0, 100.0]))
    assert (found.low, found.high) == (-1000.0, 1000.0)
    low, minus, zero, plus, ten, hundred = found.codes.astype(int).tolist()
    assert low == 0 and zero == 127 and zero - minus == plus - zero == 15
    assert hundred - ten == pytest.approx(ten - plus, abs=6)


def test_a_map_backwards_of_colours_and_of_matplotlib() -> None:
    assert (table("viridis_r") == table("viridis")[::-1]).all()
    assert table(["black", 0xFF0000], 3).tolist() == [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]]
    matplotlib = pytest.importorskip("matplotlib")
    assert np.abs(table("twilight") - matplotlib.colormaps["twilight"](np.linspace(0, 1, 256))[:, :3]).max() < 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "logit"}, "norm must be 'linear', 'log' or 'symlog', not 'logit'"),
        ({"norm": ("symlog", 0.0)}, "norm must be"),
        ({"norm": "log", "limits": (0, 1)}, "limits of a logarithmic norm must be positive"),
        ({"extent": ((1, 0), (0, 1))}, "extent must be"),
        ({"x_label": 3}, "x_label must be text"),
        ({"cmap": ["red"]}, "two or more colours"),
        ({"cmap": ["red", "mud"]}, "cmap: unknown color"),
    ],
)
def test_what_is_no_scale_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ViewError, match=message):
        ti.viz.Image(np.eye(4), size=32, **options)
    with pytest.raises(ViewError, match="scale must be"):
        scale_form("scale", 3)


# ---- stages


def test_axes_are_around_a_stage_and_leave_its_pixels() -> None:
    options: dict[str, Any] = {"size": 120, "colorbar": False}
    cases: list[dict[str, Any]] = [{}, {"extent": ((0, 1), (0, 1))}]
    plain, framed = (picture_of(ti.viz.Image(np.eye(4), **options, **more)) for more in cases)
    room = room_of(ti.viz.Image(np.eye(4), **options, extent=((0, 1), (0, 1))).axes_shown)
    assert framed.shape == (room.top + 120 + room.bottom, room.left + 120 + room.right, 3)
    inside = framed[room.top : room.top + 120, room.left : room.left + 120]
    assert (inside[1:-1, 1:-1] == plain[1:-1, 1:-1]).all()
    outside = framed.copy()
    outside[room.top : room.top + 120, room.left : room.left + 120] = 255
    assert (outside[:, : room.left] < 160).any() and (outside[room.top + 120 :] < 160).any()


def test_a_grid_is_drawn_over_the_stage() -> None:
    x = np.zeros((1, 2)) - 5.0
    pictures = [picture_of(ti.viz.Particles(x, axes=True, grid=grid, size=160)) for grid in (False, True)]
    assert (pictures[0] != pictures[1]).any(axis=2).sum() > 300


# ---- charts


def test_charts_over_time_with_two_axes_and_of_one_quantity_over_another() -> None:
    history = History(["q", "p"])
    for step in range(4):
        history.append(step, [math.cos(step), 1e-3 * 10.0**-step])
    pen = Recorder()
    look = ChartLook(label="q", scale="linear", dt=0.5, right=("p",), right_label="p [J]", right_scale="log")
    draw_chart(pen, history, 400, 200, look)
    texts = [one[0] for one in pen.drawn]
    assert {"time", "0.5", "1.5", "p (right)", "10⁻⁴", "p [J]"} <= set(texts)
    pen.drawn.clear()
    draw_chart(pen, history, 400, 200, ChartLook(x="q"))
    assert sum(one[0] == "disc" for one in pen.drawn) == 1 and "q" in [one[0] for one in pen.drawn]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "v"}, "x: there is no quantity 'v'"),
        ({"right": ["value", "w"]}, "right: there is no quantity 'w'"),
        ({"x": "value", "right": "value"}, "is on two axes"),
        ({"limits": (0, 1), "scale": "log"}, "limits of a logarithmic axis must be positive"),
        ({"limits": (1, 0)}, "limits must be two numbers, the lower one first"),
        ({"dt": 0.0}, "dt must be a positive time"),
    ],
)
def test_wrong_axes_of_a_plot_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ViewError, match=message):
        ti.viz.Plot(lambda: 1.0, **options)


def test_a_vertical_axis_takes_more_room_with_a_label() -> None:
    plain, named = (axis(Scale("linear", 0.0, 1.0), label, 4) for label in ("", "u"))
    assert side_room(named) - side_room(plain) == 16
