"""Controls bound to fields and functions, while a view is paused, plays, or is shown nowhere, and in pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets
import numpy as np
import pytest

import tinote as ti
from tests.viz.live import scenario
from tinote.viz import Image, Plot, slider
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.controls import KINDS
from tinote.viz.notebook.composed import words_of
from tinote.viz.pages.export import running


@pytest.fixture
def session():
    ti.init()
    yield
    ti.reset()


def test_a_slider_sets_a_field_and_the_view_shows_it(session):
    k = ti.field(ti.f32, shape=())
    k[None] = 2.0

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, k, 0.0, 8.0, label="stiffness")
        assert (widget.value, widget.min, widget.max, widget.description) == (2.0, 0.0, 8.0, "stiffness")
        widget.value = 5.0
        await page.until(lambda: len(page.frames) == 2)
        assert k[None] == 5.0
        assert view.history.table().tolist() == [[0, 5]]

    scenario(lambda: Plot(lambda: k[None]), body)


def test_a_gradient_follows_the_slider(session):
    w = ti.field(ti.f32, shape=(4, 1), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    w.fill(1.0)

    @ti.kernel
    def cost(k: ti.f32):
        for i, j in w:
            loss[None] += k * (i + 1) * w[i, j] ** 2

    def differentiate(k):
        with ti.ad.Tape(loss=loss):
            cost(k)

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, differentiate, 0.0, 10.0, value=1.0)
        await page.until(lambda: page.frames[-1]["high"] == 8.0)
        widget.value = 3.0
        await page.until(lambda: page.frames[-1]["high"] == 24.0)
        assert page.frames[-1]["low"] == 6.0

    scenario(lambda: Image(w.grad), body)


def test_changes_that_wait_are_merged_and_happen_between_steps():
    gate, given, stepping = threading.Event(), [], []

    def step():
        stepping.append(True)
        assert gate.wait(300)
        stepping.pop()

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, lambda number: given.append((number, bool(stepping))), 0.0, 1.0, value=0.5)
        await page.until(lambda: given)
        view.play()
        await page.until(lambda: stepping)
        for number in (0.1, 0.2, 0.3):
            widget.value = number
        gate.set()
        await page.until(lambda: len(given) == 2)
        view.stop()
        assert given == [(0.5, False), (0.3, False)]

    scenario(lambda: Plot(lambda: 0.0, step), body)


def test_without_a_page_it_acts_at_once():
    given = []
    widget = slider(Plot(lambda: 0.0), given.append, -1.0, 1.0)
    widget.value = 0.5
    assert given == [-1.0, 0.5]


@pytest.mark.parametrize(
    ("target", "bounds", "options", "message"),
    [
        (print, (1.0, 1.0), {}, "from 1.0 to 1.0"),
        (print, (0.0, np.inf), {}, "high must be a number, not inf"),
        (3.0, (0.0, 1.0), {}, "cannot change 3.0"),
        (print, (0.0, 1.0), {"value": 2.0}, "not between"),
    ],
)
def test_wrong_arguments_are_refused(target, bounds, options, message):
    with pytest.raises(ViewError, match=message):
        slider(Plot(lambda: 0.0), target, *bounds, **options)


@pytest.mark.parametrize(
    ("low", "high", "step", "form"),
    [
        (0, 1000, None, ".5"),
        (0, 1, None, ".5"),
        (0, 1e5, 1, ".7"),
        (0, 10, 1, ".4"),
        (-1e9, 1e9, 1e-9, ".9"),
        (0, 1e-9, None, ".5"),
    ],
)
def test_the_value_is_written_with_the_digits_that_its_places_need(low, high, step, form):
    found = slider(Plot(lambda: 0.0), lambda value: None, low, high, step=step)
    assert found.readout_format == form


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_leads_nowhere_is_refused(step):
    with pytest.raises(ViewError, match="the step of a slider must be"):
        slider(Plot(lambda: 0.0), lambda value: None, 0, 1, step=step)


class Case(NamedTuple):
    """A control: how it is made of a view and a target, how many whole numbers or fractions a field of its kind has,
    the value that is chosen, and what the target then gets, and gets at first.
    """

    make: Callable[[Any, Any], Any]
    numbers: int
    dtype: Any
    chosen: Any
    given: tuple[Any, ...]
    first: tuple[Any, ...]


CASES = {
    "slider": Case(lambda view, to: slider(view, to, 0, 2), 1, ti.f32, 1.5, (1.5,), (0.0,)),
    "whole slider": Case(lambda view, to: slider(view, to, 1, 9, integer=True), 1, ti.i32, 4, (4,), (1,)),
    "log slider": Case(lambda view, to: slider(view, to, 1e-4, 1, log=True), 1, ti.f64, 1e-2, (1e-2,), (1e-4,)),
    "range": Case(lambda view, to: slider(view, to, 0, 8, interval=True), 2, ti.f32, (1.0, 3.0), (1.0, 3.0), (0, 8)),
    "whole range": Case(
        lambda view, to: slider(view, to, 0, 8, interval=True, integer=True), 2, ti.i32, (2, 3), (2, 3), (0, 8)
    ),
    "number": Case(lambda view, to: ti.viz.number(view, to, low=-1), 1, ti.f32, 12.5, (12.5,), (0.0,)),
    "whole number": Case(lambda view, to: ti.viz.number(view, to, integer=True, low=3), 1, ti.i32, 12, (12,), (3,)),
    "checkbox": Case(lambda view, to: ti.viz.checkbox(view, to), 1, ti.i32, True, (True,), (False,)),
    "dropdown": Case(lambda view, to: ti.viz.dropdown(view, to, {"a": 1, "b": 2}), 1, ti.i32, 2, (2,), (1,)),
    "color": Case(lambda view, to: ti.viz.color(view, to), 3, ti.f64, "#ff0033", (1.0, 0.0, 0.2), (0, 0, 0)),
    "text": Case(lambda view, to: ti.viz.text(view, to), 0, None, "a", ("a",), ("",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_function_is_called_with_what_is_chosen(session: None, case: Case) -> None:
    given: list[tuple[Any, ...]] = []
    functions = {1: lambda a: given.append((a,)), 2: lambda a, b: given.append((a, b))}
    functions[3] = lambda a, b, c: given.append((a, b, c))
    control = case.make(Plot(lambda: 0.0), functions[len(case.given)])
    control.value = case.chosen
    assert given == [case.first, case.given]
    assert all(type(one) is type(other) for one, other in zip(given[1], case.given, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.numbers], ids=lambda case: str(case.chosen))
def test_a_field_gets_what_is_chosen_and_says_where_a_control_begins(session: None, case: Case) -> None:
    field = ti.field(case.dtype, ()) if case.numbers == 1 else ti.Vector.field(case.numbers, case.dtype, ())
    field.from_numpy(np.array(case.given if case.numbers > 1 else case.given[0]))
    control = case.make(Plot(lambda: 0.0), field)
    assert control.value == case.chosen and control.description == field.name
    field.fill(0)
    other = case.make(Plot(lambda: 0.0), lambda *_: None).value
    control.value = other
    control.value = case.chosen
    assert field.to_numpy().ravel() == pytest.approx(np.array(case.given, float))


def test_each_press_of_a_button_counts(session: None) -> None:
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def drop_a_stone():
        count[None] += 1

    button = ti.viz.button(Plot(lambda: count[None]), lambda: drop_a_stone(), label="drop")
    for _ in range(3):
        button.click()
    assert count[None] == 3 and button.description == "drop"


def test_controls_are_widgets_as_others_are(session: None) -> None:
    """`observe`, `link` and `interact` work with them."""
    view, seen = Plot(lambda: 0.0), []
    for case in CASES.values():
        control = case.make(view, lambda *_: None)
        seen.clear()
        control.observe(lambda change: seen.append(change["new"]), "value")
        other = case.make(view, lambda *_: None)
        ipywidgets.link((control, "value"), (other, "value"))
        other.value = case.chosen
        assert control.value == case.chosen and seen == [case.chosen]
        shown = ipywidgets.interactive(lambda x: seen.append(x), x=control)
        shown.update()
        assert seen[-1] == case.chosen


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda view: ti.viz.checkbox(view, 3), r"a checkbox cannot change 3"),
        (lambda view: ti.viz.button(view, lambda x: x), "target must be a function without arguments"),
        (lambda view: ti.viz.color(view, lambda x: x), "a color cannot change a function"),
        (lambda view: ti.viz.color(view, ti.field(ti.f32, ())), "a color cannot change a "),
        (lambda view: ti.viz.color(view, lambda r, g, b: 0, value="no colour"), "no colour"),
        (lambda view: ti.viz.text(view, ti.field(ti.f32, ())), "target must be a function of one argument"),
        (lambda view: ti.viz.dropdown(view, print, []), "1 to 50 options, not 0"),
        (lambda view: ti.viz.dropdown(view, print, ["a"], value="b"), "'b' is none of the options"),
        (lambda view: ti.viz.dropdown(view, ti.field(ti.f32, ()), ["a"]), "options of a field must be numbers"),
        (lambda view: ti.viz.dropdown(view, ti.field(ti.f32, ()), [1, 2]), "0.0 is none of the options"),
        (lambda view: ti.viz.number(view, print, low=2, value=1), "1 is not between 2"),
        (lambda view: slider(view, print, 0, 1, log=True), "positive ends"),
        (lambda view: slider(view, print, 0, 1.5, integer=True), "whole ends"),
        (lambda view: slider(view, ti.field(ti.i32, ()), 0, 9, value=1.5), "whole value"),
        (lambda view: slider(view, lambda a, b: 0, 0, 9, interval=True, value=(3, 1)), "is not between"),
        (lambda view: ti.viz.folder("a", [3]), "several Widgets?, not"),
    ],
)
def test_what_a_control_cannot_be(session: None, make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ViewError, match=message):
        make(Plot(lambda: 0.0))


@pytest.fixture
def growth(session: None) -> Any:
    x = ti.field(ti.f32, shape=(8, 8))

    @ti.kernel
    def step():
        for i, j in x:
            x[i, j] += 1.0

    @ti.kernel
    def fill(value: ti.f32):
        for i, j in x:
            x[i, j] = value

    return Image(x, step, size=64), fill


def test_a_page_has_every_kind_or_says_why_not(growth: Any, tmp_path: Path) -> None:
    view, fill = growth
    for name, case in CASES.items():
        functions = {1: lambda a: fill(a), 2: lambda a, b: fill(a + b), 3: lambda a, b, c: fill(a + b + c)}
        function = functions[len(case.given)] if name != "text" else lambda a: None
        control = case.make(view, function)
        ti.viz.folder(f"The {control.kind}", [control])
    ti.viz.button(view, lambda: fill(0.0), label="clear")
    found = running(view)
    controls = found.described["controls"]
    assert {one["kind"] for one in controls} == set(KINDS) - {"text"} and len(controls) == len(CASES)
    assert [(what, why) for what, why in found.missing] == [
        ("the text ''", "a program takes numbers, and this is text")
    ]
    assert all(one["folder"] == f"The {one['kind']}" for one in controls[:-1]) and "folder" not in controls[-1]
    named = {one["kind"]: one for one in controls}
    assert len(named["dropdown"]["programs"]) == len(named["checkbox"]["programs"]) == 2
    assert named["dropdown"]["options"] == ["a", "b"] and named["color"]["value"] == "#000000"
    with pytest.warns(UserWarning, match="is without the text"):
        view.save(tmp_path / "view.html")


def test_a_choice_that_a_page_cannot_have_is_named(growth: Any) -> None:
    """Its programs know numbers of Python, and no other state."""
    view, fill = growth
    chosen: dict[str, Any] = {}
    ti.viz.dropdown(view, lambda name: chosen.update(name=name), ["a", "b"], label="scheme")
    ti.viz.dropdown(view, lambda name: fill({"low": 1.0, "high": 2.0}[name]), ["low", "high"], label="level")
    found = running(view)
    assert [one["label"] for one in found.described["controls"]] == ["level"]
    assert [what for what, _ in found.missing] == ["the dropdown 'scheme'"]


def test_controls_of_one_name_are_all_in_the_page(growth: Any) -> None:
    view, fill = growth
    fields = [ti.field(ti.f32, shape=()) for _ in range(2)]
    for field in fields:
        slider(view, field, 0, 1, label="strength")
    for _ in range(2):  # A cell that runs again has the same function.
        slider(view, fill, 0, 1, label="level")
    for _ in range(2):
        slider(view, lambda value: fill(value), 0, 1)
    labels = [one["label"] for one in running(view).described["controls"]]
    assert labels == ["strength", "strength", "level", "", ""]


def test_what_controls_say_where_no_widgets_run(session: None) -> None:
    said = {name: words_of(case.make(Plot(lambda: 0.0), lambda *_: None)) for name, case in CASES.items()}
    assert said == {
        "slider": "0", "whole slider": "1", "log slider": "0.0001", "range": "0 to 8", "whole range": "0 to 8",
        "number": "0", "whole number": "3", "checkbox": "off", "dropdown": "a", "color": "#000000", "text": "",
    }  # fmt: skip
