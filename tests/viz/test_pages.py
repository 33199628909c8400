"""Pages in which live views run: what is in the file, what is refused, and what the report tells."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from ipywidgets import Checkbox, HBox, VBox

import tinote as ti
from tinote.cli.html_export import PageExporter
from tinote.errors import CaptureError
from tinote.viz.draw.arrays import ViewError
from tinote.viz.notebook.front_end import PAGE_TYPE, VIEW_TYPE
from tinote.viz.notebook.page import NOTICE, as_json, compact, document
from tinote.viz.pages.bundle import page_script, payload, unpacked
from tinote.viz.pages.stored import kept, stored

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 & \"'` </style> \ud800 ${x} </noscript>"


class Elements(HTMLParser):
    """The elements of a page, with their attributes and what they hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any], list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}, []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def named(self, name: str) -> list[tuple[dict[str, Any], str]]:
        return [(attributes, "".join(held)) for tag, attributes, held in self.found if tag == name]


def held_by(page: str) -> Any:
    """What a page holds besides text: the description of its data, with binary parts as bytes."""
    (packed,) = [held for attributes, held in Elements(page).named("script") if attributes.get("id") == "tinote-data"]
    return unpacked(packed)


def scripts_of(page: str) -> list[str]:
    """All scripts that the page may execute."""
    held = held_by(page)
    own = [text for attributes, text in Elements(page).named("script") if attributes.get("type") == "module"]
    return [*own, "\n".join(held["texts"][number] for number in held["script"])]


@pytest.fixture
def moving() -> Any:
    """Particles that move: the field, and the step."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=20)
    v = ti.Vector.field(2, ti.f32, shape=20)
    rng = np.random.default_rng(0)
    x.from_numpy(rng.random((20, 2)).astype(np.float32))
    v.from_numpy((0.01 * rng.normal(size=(20, 2))).astype(np.float32))

    @ti.kernel
    def move():
        for i in x:
            x[i] += v[i]

    def step():
        move()

    return x, step


# ---- the file


def test_only_the_pages_own_scripts_are_allowed(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    page = ti.viz.Particles(x, step).save(tmp_path / "page.html").read_text("utf-8")
    (policy,) = [
        attributes["content"]
        for attributes, _ in Elements(page).named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["connect-src"] == "'none'" and rules["worker-src"] == "blob:"
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts_of(page)]
    assert rules["script-src"].split() == [*(f"'sha256-{one}'" for one in digests), "'wasm-unsafe-eval'"]
    assert "unsafe-eval" not in policy.replace("wasm-unsafe-eval", "") and "http" not in policy


def test_a_page_names_no_other_host(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    page = ti.viz.Particles(x, step).save(tmp_path / "page.html").read_text("utf-8")
    assert re.search(r"<(link|img|iframe|object|embed|base|form)\b", page) is None
    assert re.search(r"""(src|href)\s*=|@import|url\(""", page) is None


def test_hostile_texts_stay_texts(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view = ti.viz.Particles(x, step, label=HOSTILE, plots={HOSTILE: lambda: x[0].x}, plot_label=HOSTILE)
    file = tmp_path / "page.html"
    ti.viz.page([view, HOSTILE], file, title=HOSTILE, text=HOSTILE)
    page = file.read_bytes().decode("utf-8")
    found = Elements(page)
    assert len(found.named("script")) == 3 and len(found.named("style")) == 1 and "<!--" not in page
    shown = HOSTILE.replace("\ud800", "\ufffd")
    assert found.named("title")[0][1] == shown and found.named("h1")[0][1] == shown
    assert page.count(html.escape("alert(1)</script>")) >= 4
    traits = held_by(page)["views"][0]["traits"]
    assert traits["label"] == traits["chart"]["label"] == traits["series"][0] == HOSTILE


def test_data_in_a_script_element_cannot_end_it() -> None:
    text = as_json({"a": HOSTILE})
    assert "<" not in text and "\u2028" not in text and json.loads(text) == {"a": HOSTILE}
    assert text.encode("utf-8")


def test_a_script_that_would_end_its_element_is_refused() -> None:
    for script in ("const a = '</SCRIPT>'", "const a = '<!--'"):
        with pytest.raises(AssertionError):
            document("title", styles="", scripts=[script], body="")


def test_comments_and_indentation_are_left_out() -> None:
    script = "// one\n/** two\n * three\n */\nconst a = 1; // four\n\n  const b = `//`;\n/* five */\nconst c = 2;"
    assert compact(script) == "const a = 1; // four\nconst b = `//`;\nconst c = 2;"


@pytest.mark.parametrize("kind", ["particles", "image", "plot", "scene"])
def test_the_scripts_of_widgets_paint_the_page(kind: str) -> None:
    """There is no second renderer: the page has the widgets' own files."""
    script = "\n".join(page_script([kind], space=True))
    widgets = {
        "particles": ti.viz.Particles, "image": ti.viz.Image, "plot": ti.viz.Plot, "scene": ti.viz.Scene,
    }  # fmt: skip
    missing = [
        line
        for line in compact(str(widgets[kind]._esm)).splitlines()
        if line not in script and "export default" not in line
    ]
    assert missing == []


#: A view of each kind, of particles and their step.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "particles": lambda x, step: ti.viz.Particles(x, step),
    "image": lambda x, step: ti.viz.Image(ti.field(ti.f32, (4, 4)), step),
    "plot": lambda x, step: ti.viz.Plot(lambda: x[0].x, step),
    "scene": lambda x, step: ti.viz.Scene(step).particles(np.zeros((1, 3)), 0.1),
}


def _notebook(view: Any, described: Any) -> str:
    output = nbformat.v4.new_output("display_data", described(view))
    cell = nbformat.v4.new_code_cell("view", outputs=[output])
    return PageExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))[0]


LARGEST_PAGE = 110_000
"""Bytes of a page with one view, of any kind, whose data is small."""

#: How a view becomes a page.
SAVED: dict[str, Callable[[Any, Path], str]] = {
    "save": lambda view, file: view.save(file).read_text("utf-8"),
    "page": lambda view, file: ti.viz.page([view, "words"], file).path.read_text("utf-8"),
    "executed notebook": lambda view, _: _notebook(view, lambda view: {PAGE_TYPE: stored([view])}),
    "saved notebook": lambda view, _: _notebook(view, lambda view: {VIEW_TYPE: {"views": [kept(view, 10**9).program]}}),
}


@pytest.mark.parametrize("way", SAVED)
@pytest.mark.parametrize("kind", VIEWS)
def test_every_saved_page_is_small_and_has_the_licence(kind: str, way: str, moving: Any, tmp_path: Path) -> None:
    page = SAVED[way](VIEWS[kind](*moving), tmp_path / "page.html")
    assert len(held_by(page)["views"]) == 1
    assert len(page) < LARGEST_PAGE or way.endswith("notebook")  # That has styles of its own.
    draws_scenes = any("webgl2" in script for script in scripts_of(page))
    assert draws_scenes == (kind == "scene")  # What draws another kind of view is left out.
    (comment,) = re.findall(r"/\*!\n(.*?)\n\*/", Elements(page).named("style")[0][1], re.DOTALL)
    assert comment == NOTICE.strip() and "Apache License, Version 2.0" in comment


def test_payloads_keep_bytes_apart() -> None:
    data = {"a": [b"one", {"b": b""}], "c": memoryview(b"three")}
    page = f'<script type="text/plain" id="tinote-data">{payload(data)}</script>'
    assert held_by(page) == {"a": [b"one", {"b": b""}], "c": b"three"}


# ---- what is saved


def test_pictures_are_saved_by_their_endings(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view = ti.viz.Particles(x, step)
    assert view.save(tmp_path / "a" / "view.html").read_text("utf-8").startswith("<!doctype html>")
    assert view.save(str(tmp_path / "view.png")).read_bytes().startswith(b"\x89PNG")
    assert "<svg" in view.save(tmp_path / "view.svg").read_text("utf-8")
    with pytest.raises(ViewError, match=r"does not end in \.txt"):
        view.save(tmp_path / "view.txt")


def test_a_view_that_plays_is_not_saved(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view = ti.viz.Particles(x, step)
    view.set_trait("state", "playing")
    with pytest.raises(ViewError, match="pause it first"):
        view.save(tmp_path / "view.html")
    view.set_trait("state", "paused")
    view.close()


def test_saving_changes_nothing(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view = ti.viz.Particles(x, step, plots={"x": lambda: x[0].x})
    before = x.to_numpy()
    view.save(tmp_path / "view.html")
    assert (x.to_numpy() == before).all() and view.steps == 0 and view.history.latest is None


def test_a_step_that_cannot_be_captured_is_refused_at_its_line(moving: Any, tmp_path: Path) -> None:
    x, _ = moving

    def step():
        x.from_numpy(x.to_numpy() * 2)

    view = ti.viz.Particles(x, step)
    with pytest.raises(CaptureError, match="cannot be captured") as caught:
        view.save(tmp_path / "view.html")
    assert "x.to_numpy() * 2" in str(caught.value)
    assert not (tmp_path / "view.html").exists()


def test_what_a_view_can_do_without_is_left_out_and_named(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    quantities = {"mean": lambda: float(x.to_numpy().mean()), "first": lambda: x[0].x}
    view = ti.viz.Particles(x, step, plots=quantities, pointer=lambda pointer: x.from_numpy(x.to_numpy() * 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = view.save(tmp_path / "view.html")
    reported = [str(one.message) for one in caught]
    assert len(reported) == 3 and "the quantity 'mean'" in reported[0] and "cannot be captured" in reported[0]
    assert all("the pointer" in one for one in reported[1:])
    described = held_by(file.read_text("utf-8"))["views"][0]
    assert described["traits"]["series"] == ["first"] and len(described["plots"]) == 1
    assert described["pointer"] is None and not described["traits"]["can_point"]


def test_what_python_observes_is_named(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    plane, scene = ti.viz.Particles(x, step), ti.viz.Scene(step).particles(np.zeros((1, 3)), 0.1)
    for view in (plane, scene):
        view.observe(print, "picked")
    scene.runs_unseen = True
    made = ti.viz.page([plane, scene, ti.viz.Particles(x, step)], tmp_path / "page.html")
    observes, unseen = "what observes `picked`", "steps out of sight"
    assert [[one.what for one in view.missing] for view in made.views] == [[observes], [observes, unseen], []]


def test_a_function_that_gives_what_python_makes_is_refused(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view = ti.viz.Particles(x, step, color=lambda: x.to_numpy()[:, 0])
    with pytest.raises(ViewError, match="color is a function that returns ndarray"):
        view.save(tmp_path / "view.html")


# ---- pages of several views


def test_a_page_tells_what_became_of_each_view(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    runs = ti.viz.Particles(x, step)
    cannot = ti.viz.Particles(x, step, color=lambda: np.zeros(20), label="all <grey>")
    level = ti.field(ti.f32, shape=())
    box = VBox([runs, ti.viz.slider(runs, level, 0, 2, value=1.0, label="level")])
    made = ti.viz.page([box, "some *words* and $x^2$", cannot], tmp_path / "page.html", title="Two", text="# One")
    page = made.path.read_text("utf-8")
    assert [view.runs for view in made.views] == [True, False] and made.nbytes == made.path.stat().st_size
    assert "returns ndarray" in made.views[1].missing[0].reason
    needs = r"with [\d.,]+ kB of WebAssembly and [\d.,]+ kB of memory, for step"
    assert re.fullmatch(needs, made.views[0].needs)
    assert re.search(
        rf"page\.html: \d+ kB, to be opened in a browser\n.*: runs, {needs}\n.*: a picture\n"
        r".*without a run: color is a function",
        repr(made),
    )
    assert "<em>words</em>" in page and "<msup>" in page and "<h1" in page
    found = Elements(page)
    ((picture, _),) = found.named("img")
    assert picture["alt"] == "all <grey>" and picture["src"].startswith("data:image/png;base64,")
    assert "returns ndarray" in found.named("figcaption")[0][1]
    ((slider,),) = [view["controls"] for view in held_by(page)["views"]]
    assert (slider["label"], slider["low"], slider["high"], slider["value"]) == ("level", 0, 2, 1.0)
    assert slider["field"] in ("field0", "field1")


def test_a_page_shows_views_and_text_alone(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="not int"):
        ti.viz.page([3], tmp_path / "page.html")


def test_views_in_a_row_are_in_a_row(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    first, second = (ti.viz.Particles(x, step, label=label) for label in ("first", "second"))
    level = ti.field(ti.f32, shape=())
    column = VBox([first, ti.viz.slider(first, level, 0, 2, value=1.0, label="level")])
    page = ti.viz.page([HBox([column, second]), "words"], tmp_path / "page.html").path.read_text("utf-8")
    row = page[page.index('<div class="tinote-row">') : page.index("words</p>")]
    assert row.count('data-tinote-view="') == 2 and [view["traits"]["label"] for view in held_by(page)["views"]] == [
        "first",
        "second",
    ]


def test_controls_that_a_page_cannot_have_are_named(moving: Any, tmp_path: Path) -> None:
    x, step = moving
    view, other = ti.viz.Particles(x, step), ti.viz.Particles(x, step)
    level = ti.field(ti.f32, shape=())
    foreign = ti.viz.slider(other, level, 0, 2, value=1.0, label="level")
    with pytest.warns(UserWarning, match=r"^page\.html is without ") as caught:
        ti.viz.page(VBox([view, Checkbox(description="walls"), foreign]), tmp_path / "page.html")
    assert ["Checkbox 'walls'" in str(caught[0].message), "Slider 'level'" in str(caught[1].message)] == [True] * 2
    with pytest.raises(ViewError, match="Checkbox 'walls' is neither"):
        ti.viz.page([Checkbox(description="walls")], tmp_path / "empty.html")
    assert not (tmp_path / "empty.html").exists()


def test_html_in_texts_is_text(tmp_path: Path) -> None:
    page = ti.viz.page([], tmp_path / "page.html", text="<img src=x onerror=alert(1)> <b>bold</b>").path.read_text()
    assert Elements(page).named("img") == Elements(page).named("b") == []
