"""What changed since a cell ran last, in JupyterLab and in the page of its own."""

from __future__ import annotations

import linecache
import re

import pytest

import tinote as ti
from tests.browser.harness import TIMED_KEY
from tests.browser.test_explorer import PAINTED, ROOT, having, lit, pointed
from tests.browser.waiting import expect, poll
from tests.viz.explored import big_stages
from tinote.viz.explorer.widget import Explorer, ExplorerView, explore

FIRST = """\
def energy():
    for i in x:
        total[None] += 0.5 * x[i] ** 2
"""
SECOND = """\
def energy():
    for i in x:
        if i > 0:
            total[None] += 0.5 * x[i] ** 2
"""
SETUP = """\
%load_ext tinote
import tinote as ti
ti.init()
x = ti.field(ti.f32, shape=64, needs_grad=True)
total = ti.field(ti.f32, shape=(), needs_grad=True)
"""
COMPARED = f"{ROOT}.dataset.shown.includes('previous')"


def marked(page, pane: str) -> list[str]:
    """The lines of a pane that are new, gone, changed or moved."""
    return [text.strip() for text in having(page, pane, "is-new", "is-gone", "is-changed", "is-moved")]


def test_a_cell_that_runs_again_shows_what_changed(notebook):
    cells = (SETUP, "%%kernel --quiet\n" + FIRST, "energy()", "%%kernel --quiet --explore\n" + SECOND)
    opened = notebook(*cells)
    opened.run_all()
    opened.wait(f"{PAINTED} >= 1")
    page = opened.page
    page.locator(".stage", has_text="front end").click()
    button = page.get_by_role("button", name="Previous run")
    button.click()
    opened.wait(COMPARED)
    expect(button).to_have_attribute("aria-pressed", "true")
    poll(lambda: marked(page, ".source"), ["if i > 0:"])
    poll(lambda: marked(page, ".right"), lambda lines: "if" in " ".join(lines))
    poll(lambda: marked(page, ".left"), [])
    # A line of the earlier version belongs to the same line of the source, and to its like on the right.
    pointed(page, ".left", "atomic add").hover()
    poll(lambda: [text.strip() for text in lit(page, ".source")], ["total[None] += 0.5 * x[i] ** 2"])
    poll(lambda: lit(page, ".right"), lambda lines: any("atomic add" in text for text in lines))
    # The comparison follows from stage to stage, to the syntax tree and to LLVM IR.
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("Home")
    opened.wait(f"{ROOT}.dataset.shown === '0/previous/0'")
    poll(lambda: marked(page, ".right"), ["If  i > 0", "test: Compare  i > 0"])
    poll(lambda: marked(page, ".left"), [])
    page.locator(".right select").select_option(label="LLVM IR")
    opened.wait(f"{COMPARED} && !{ROOT}.dataset.shown.endsWith('/0')")
    poll(lambda: marked(page, ".right"), bool)
    # And back, by keyboard.
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("r")
    opened.wait(f"!{COMPARED}")
    poll(lambda: marked(page, ".source"), [])
    assert opened.problems == []


def cell(text: str, name: str, names: dict) -> None:
    text = "@ti.kernel\n" + text
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)


@pytest.fixture
def changed():
    """A kernel that was another one before."""
    ti.init()
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    names = {"ti": ti, "x": x, "total": ti.field(ti.f32, shape=(), needs_grad=True)}
    cell(FIRST, "cell 1", names)
    names["energy"]()
    cell(SECOND, "cell 2", names)
    return names["energy"]


def test_the_page_of_its_own_compares_too(standalone, changed, pictures):
    page = standalone(explore(changed, gradient=True))
    page.keyboard.press("Tab")
    page.keyboard.press("r")
    page.wait_for_function(f"() => {COMPARED}")
    poll(lambda: marked(page, ".source"), ["if i > 0:"])
    pictures.of_page(page, "previous")
    # The kernel's own stages are compared as its gradient's are.
    page.get_by_role("radio", name="kernel").click()
    page.wait_for_function(f"() => {ROOT}.dataset.shown.startsWith('0/')")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator(".left select").select_option("previous")
    page.wait_for_function(f"() => {ROOT}.dataset.shown.startsWith('0/previous')")
    poll(lambda: marked(page, ".right"), bool)
    assert page.problems == []


@ti.kernel
def scaled(a: ti.types.ndarray(), n: ti.template()):
    for i in range(n):
        a[i] = a[i] * 2


def test_two_specialisations_stand_side_by_side(standalone, pictures):
    ti.init()
    for dtype in (ti.f32, ti.f64):
        scaled(ti.ndarray(dtype, shape=8), 8)
    narrow, wide = scaled.specialisations()
    page = standalone(explore(wide, compare_with=narrow))
    page.wait_for_function(f"() => {COMPARED}")
    poll(lambda: page.locator(".left .row").all_inner_texts(), lambda rows: any("f32" in row for row in rows))
    poll(lambda: page.locator(".right .row").all_inner_texts(), lambda rows: any("f64" in row for row in rows))
    expect(page.get_by_role("button", name="Compare with the other specialisation")).to_have_attribute(
        "aria-pressed", "true"
    )
    # One source: a line of the one lights up its like in the other, at each stage.
    pointed(page, ".left", "mul").hover()
    poll(lambda: lit(page, ".right"), lambda lines: any("mul" in text for text in lines))
    page.locator(".stage", has_text="assembly").click()
    poll(lambda: page.evaluate(f"() => {ROOT}.dataset.shown"), re.compile("0/previous/").match)
    pictures.of_page(page, "compared")
    assert page.problems == []


def test_without_an_earlier_version_there_is_nothing_to_press(standalone):
    page = standalone(Explorer("big", [ExplorerView("kernel", lambda: big_stages(40))]))
    expect(page.get_by_role("button", name="Previous run")).to_have_count(0)
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("r")
    poll(lambda: page.evaluate(f"() => {ROOT}.dataset.shown"), re.compile("0/-1/").match)


def test_five_thousand_operations_stay_fluid_next_to_earlier_ones(standalone):
    page = standalone(
        Explorer("big", [ExplorerView("kernel", lambda: big_stages(5000), None, lambda: big_stages(4990))])
    )
    page.get_by_role("button", name="Previous run").click()
    page.wait_for_function(f"() => {COMPARED}")
    times = [page.evaluate(TIMED_KEY, [0, key]) for key in ["ArrowDown", "ArrowUp", "ArrowUp", "ArrowDown"]]
    print(f"\nstage changes next to the previous run, 5,000 operations: {[round(t) for t in times]} ms")
    poll(lambda: page.evaluate(f"() => {COMPARED}"), True)
    # However long the stages, only what is in sight is on the page.
    for pane in (".left", ".right"):
        poll(lambda pane=pane: page.locator(f"{pane} .row").count(), lambda count: 0 < count < 120)
