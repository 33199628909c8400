"""Each kind of control changes what runs: in a page, and by ipywidgets in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.browser.looks import Pictures, unreadable
from tests.browser.test_pages import DARK, Opened, opened
from tests.browser.waiting import expect, poll, still_box

__all__ = ["opened"]

LOOKS = ((390, 844), (1280, 900))
SMALLEST_TARGET = 24

# The sides of what is pressed where it is smaller than it may be; a box is ticked by its name, too.
SMALL = """(least) => [...document.querySelectorAll('.tinote-control :is(input, select, button), summary')]
    .map((node) => [node, (node.type === 'checkbox' ? node.closest('label') : node).getBoundingClientRect()])
    .filter(([node, { width, height }]) => width && (width < least || height < least))
    .map(([node, { width, height }]) => `${node.tagName} ${width} × ${height}`)"""


class World:
    """An image that is filled with what the controls say: a field, and a function, for each kind that may have both."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu)
        self.picture = picture = ti.Vector.field(3, ti.f32, shape=(24, 16))
        self.said = said = ti.field(ti.f64, shape=3)
        self.rate = ti.field(ti.f32, shape=())
        self.tone = ti.Vector.field(3, ti.f32, shape=())
        self.band = ti.Vector.field(2, ti.i32, shape=())
        self.walls = ti.field(ti.u8, shape=())
        self.scheme = ti.field(ti.i32, shape=())
        self.stones = ti.field(ti.i32, shape=())
        tone, stones = self.tone, self.stones

        @ti.kernel
        def paint():
            for i, j in picture:
                picture[i, j] = tone[None]

        @ti.kernel
        def say(a: ti.f64, b: ti.f64, c: ti.f64):
            said[0], said[1], said[2] = a, b, c

        @ti.kernel
        def drop():
            stones[None] += 1

        self.tone[None] = (0.2, 0.4, 0.6)
        plots = {"a": lambda: said[0], "b": lambda: said[1], "c": lambda: said[2], "stones": lambda: stones[None]}
        self.view = view = ti.viz.Image(picture, paint, size=360, label="what controls say", plots=plots)
        viz = ti.viz
        levels = {"low": 10.0, "high": 20.0}
        viz.slider(view, self.rate, -1, 1, value=0.25, label="rate")
        viz.slider(view, lambda n: say(n, 0, 0), 1, 9, integer=True, label="count")
        viz.slider(view, lambda n: say(n, 0, 0), 1e-6, 1, log=True, label="tolerance")
        viz.slider(view, self.band, 0, 9, interval=True, label="band")
        viz.slider(view, lambda low, high: say(low, high, 0), 0, 1, interval=True, label="range of forces")
        viz.number(view, lambda n: say(n, 0, 0), low=-5, high=5, label="offset")
        viz.checkbox(view, self.walls, label="walls")
        viz.checkbox(view, lambda on: say(1, 2, 3) if on else say(4, 5, 6), label="wind")
        viz.dropdown(view, self.scheme, {"explicit": 3, "implicit": 5}, value=3, label="scheme")
        viz.dropdown(view, lambda name: say(levels[name], 0, 0), list(levels), label="level")
        viz.color(view, self.tone, label="tone")
        viz.color(view, lambda r, g, b: say(r, g, b), label="ink")
        viz.button(view, lambda: drop(), label="drop a stone")
        made = list(view.bound_controls.values())
        viz.folder("Forces", made[3:6])
        viz.folder("Schemes", made[8:10]).selected_index = None


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = ti.viz.page(World().view, tmp_path_factory.mktemp("controls") / "controls.html", title="Controls")
    assert [one.missing for one in made.views] == [()] and made.nbytes < 110_000
    return made.path


def test_each_kind_changes_what_runs(page: Path, opened: Callable[..., Opened]) -> None:
    found = opened(page).painted()
    controls = found.page.evaluate("() => globalThis.tinote.models[0].view.controls")
    fields = {one["label"]: one["field"] for one in controls if "field" in one}

    def said(label: str) -> list[float]:
        return [round(float(one), 4) for one in found.field(fields[label])[1]]

    def values() -> list[float]:
        return [float(one.replace("−", "-")) for one in found.views.locator(".tinote-value").all_inner_texts()]

    def control(label: str) -> Any:
        return found.page.get_by_label(label, exact=True)

    control("rate").fill("-0.5")
    poll(lambda: said("rate"), [-0.5])
    expect(found.page.locator(".tinote-control output").first).to_have_text("−0.5")
    control("band, from").fill("7")
    poll(lambda: said("band"), [7, 7])  # Both were 0: no handle passes the other.
    control("band, to").fill("2")
    poll(lambda: said("band"), [2, 2])
    control("walls").check()
    poll(lambda: said("walls"), [1])
    control("walls").uncheck()
    poll(lambda: said("walls"), [0])
    found.page.locator("summary", has_text="Schemes").click()
    control("scheme").select_option("implicit")
    poll(lambda: said("scheme"), [5])
    control("tone").fill("#ff8000")
    poll(lambda: said("tone"), [1.0, 0.502, 0.0])
    found.run(1)
    poll(lambda: np.abs(found.pixels(".tinote-stage")[120, 180] - [255, 128, 0.0]).max() <= 2, True)
    for label, act, wanted in [
        ("count", lambda one: one.fill("4"), [4, 0, 0]),
        ("tolerance", lambda one: one.fill("-2"), [0.01, 0, 0]),
        ("range of forces, from", lambda one: one.fill("0.5"), [0.5, 1, 0]),
        ("offset", lambda one: (one.fill("-7"), one.press("Enter")), [-5, 0, 0]),
        ("wind", lambda one: one.check(), [1, 2, 3]),
        ("wind", lambda one: one.uncheck(), [4, 5, 6]),
        ("level", lambda one: one.select_option("high"), [20, 0, 0]),
        ("ink", lambda one: one.fill("#0033ff"), [0, 0.2, 1]),
    ]:
        act(control(label))
        poll(values, [*wanted, 0])
    expect(control("offset")).to_have_value("-5")
    for _ in range(3):
        found.page.get_by_role("button", name="drop a stone").click()
    poll(values, [0, 0.2, 1, 3])
    # Back at the start, the controls stand where they are, and no stone has been dropped.
    found.page.evaluate("() => globalThis.tinote.models[0].send({ kind: 'reset' })")
    poll(values, [0, 0.2, 1, 0])
    assert said("tone") == [1.0, 0.502, 0.0] and found.problems == []


def test_controls_in_both_themes_at_all_widths(page: Path, opened: Callable[..., Opened], pictures: Pictures) -> None:
    found = opened(page).painted()
    found.page.locator("summary", has_text="Schemes").click()
    for width, height in LOOKS:
        found.page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            found.page.emulate_media(color_scheme=theme)
            poll(lambda: found.page.evaluate(DARK), theme == "dark")
            dark = "document.querySelector('.tinote-view').classList.contains('tinote-dark')"
            found.page.wait_for_function(f"() => {dark} === {str(theme == 'dark').lower()}")
            poll(lambda: unreadable(found.page, 20), [])
            poll(lambda: found.page.evaluate(SMALL, SMALLEST_TARGET), [])
            poll(lambda: found.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), True)
            pictures.shot(found.page, f"controls_{width}_{theme}.png", full_page=True)


def test_what_is_outside_comes_in_at_the_press_of_a_button(opened: Callable[..., Opened], tmp_path: Path) -> None:
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=50)
    x.from_numpy(np.random.default_rng(1).normal(scale=5, size=(50, 2)).astype(np.float32))

    @ti.kernel
    def grow():
        for i in x:
            x[i] *= 1.5

    view = ti.viz.Particles(x, grow, bounds=((0, 1), (0, 1)), axes=True, size=300)
    found = opened(view.save(tmp_path / "fit.html")).painted()
    status, fit = found.views.locator(".tinote-status"), found.button("Fit: show everything")
    expect(status).to_contain_text("outside")
    fit.click()
    expect(status).not_to_contain_text("outside")
    expect(fit).to_be_hidden()
    view.fit()
    wanted = [[round(end, 3) for end in pair] for pair in view.bounds]
    ranges = "() => globalThis.tinote.models[0].get('axes_shown').ranges.map((pair) => pair.map((n) => +n.toFixed(3)))"
    poll(lambda: found.page.evaluate(ranges), wanted)
    found.run(2)
    expect(status).to_contain_text("outside")
    fit.click()
    expect(status).not_to_contain_text("outside")
    assert found.problems == []


def test_a_click_in_a_notebook_picks_and_controls_of_ipywidgets_change_what_is_shown(notebook: Any) -> None:
    page = notebook(NOTEBOOK)
    page.run_all()
    page.wait("Number(document.querySelector('.tinote-view')?.dataset.painted ?? 0) >= 1")
    stage = page.page.locator(".tinote-stage")
    box = still_box(stage)
    stage.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    page.until("view.picked == 1")
    expect(page.page.locator(".tinote-status")).to_contain_text("picked 1")
    page.page.get_by_role("button", name="Fit: show everything").click()
    page.until("view.bounds is not None and view.bounds[0][1] > 3")
    page.page.locator(".widget-checkbox input").check()
    page.page.locator(".widget-dropdown select").select_option("second")
    page.page.locator(".widget-button", has_text="press").click()
    page.page.locator(".widget-button", has_text="press").click()
    page.page.locator(".widget-text input[type=text]").last.fill("word")
    page.page.keyboard.press("Enter")
    page.until("seen['walls'] is True and seen['which'] == 'b' and seen['pressed'] == 2 and seen['text'] == 'word'")
    assert page.problems == []


NOTEBOOK = """
import ipywidgets, numpy as np, tinote as ti
x = np.array([[0.2, 0.2], [0.5, 0.5], [4.0, 0.8]])
view = ti.viz.Particles(x, lambda: None, bounds=((0, 1), (0, 1)), size=300, radius=6)
seen = {"pressed": 0}
def press():
    seen["pressed"] += 1
walls = ti.viz.checkbox(view, lambda on: seen.update(walls=on), label="walls")
which = ti.viz.dropdown(view, lambda one: seen.update(which=one), {"first": "a", "second": "b"}, label="which")
text = ti.viz.text(view, lambda one: seen.update(text=one), label="text")
ipywidgets.VBox([view, ti.viz.folder("All", [walls, which, text]), ti.viz.button(view, press)])
"""
