"""The rule view in JupyterLab and as a page of its own: it comes by itself, keys move through it, all is legible."""

from __future__ import annotations

import linecache
import re

import pytest

import tinote as ti
from tests.browser.harness import ACTIVE_IS_SELECTED, BOTH_FRONT_ENDS
from tests.browser.waiting import expect, poll, still_box
from tinote.viz.access_rules.widget import RuleView

PROGRAM = """\
import tinote as ti
ti.init(arch=ti.cpu, debug=True)
x = ti.field(ti.f32, shape=(8, 12), needs_grad=True, name="x")
loss = ti.field(ti.f32, shape=(), needs_grad=True, name="loss")

@ti.kernel
def energy():
    for i, j in x:
        loss[None] += x[i, j] ** 2

@ti.kernel
def idle():
    pass

@ti.kernel
def change():
    for i, j in x:
        if i > 5 and j < 4:
            x[i, j] = 1.0
    loss[None] = 0.0

def launch():
    energy()
    idle()
    change()
"""
BROKEN = f"""\
%load_ext tinote
{PROGRAM}
with ti.ad.Tape(loss, validation=True):
    launch()
"""
ROOT = ".tinote-rules"
ALL_CONCERNED = re.compile(r"^x\[6,\s0\]")
"""What is said of the map while no element is chosen."""


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_it_comes_by_itself(notebook):
    page = notebook(BROKEN)
    page.run_all()
    page.wait(f"document.querySelector('{ROOT}')?.dataset.shown === '0'")
    expect(page.page.locator(".jp-RenderedText").first).to_contain_text("access rule")
    expect(page.page.locator(f"{ROOT} .row.is-read .code").first).to_have_text("loss[None] += x[i, j] ** 2")
    assert page.problems == []


@pytest.fixture
def two_findings(standalone):
    """The page of two findings, opened from disk."""
    linecache.cache["broken.py"] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "broken.py")
    names = {"__name__": "broken"}
    exec(compile(PROGRAM, "broken.py", "exec"), names)
    with ti.ad.Tape(names["loss"], validation="collect") as tape:
        names["launch"]()
    return standalone(RuleView(tape.violations))


def test_the_keyboard_moves_through_findings_and_elements(two_findings):
    page = two_findings
    findings = page.get_by_role("listbox", name="Violations")
    expect(findings.get_by_role("option")).to_contain_text(["x[6, 0]", "loss[None]"])
    findings.focus()
    page.keyboard.press("End")
    expect(findings.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    poll(lambda: page.evaluate(ACTIVE_IS_SELECTED), True)
    expect(page.locator(".reason")).to_have_text(re.compile(r"^'loss\[None\]' is written again by launch 3, 'change'"))
    expect(page.locator(".fixes ins")).to_have_text("loss[None] += 0.0")
    page.keyboard.press("p")
    expect(page.get_by_role("region", name="Violation of rule 1: x[6, 0]")).to_have_count(1)
    page.get_by_role("img", name="Map of x: 8 of 96 elements").focus()
    page.keyboard.press("ArrowDown")
    said = page.locator(".listed")
    expect(said).to_have_text("x[6, 0]: concerned")
    page.keyboard.press("ArrowUp")
    expect(said).to_have_text("x[5, 0]: not concerned")
    page.keyboard.press("Escape")
    expect(said).to_have_text(ALL_CONCERNED)
    assert page.problems == []


def test_the_map_answers_the_pointer(two_findings):
    page = two_findings
    box = still_box(page.locator(".map"))
    for row, column, answer in ((7, 3, "concerned"), (7, 4, "not concerned"), (0, 11, "not concerned")):
        page.mouse.move(box["x"] + (column + 0.5) * box["width"] / 12, box["y"] + (row + 0.5) * box["height"] / 8)
        expect(page.locator(".listed")).to_have_text(f"x[{row}, {column}]: {answer}")
    page.mouse.move(0, 0)
    expect(page.locator(".listed")).to_have_text(ALL_CONCERNED)
    # What is red is what was changed.
    path = still_box(page.locator(".map .level"))
    assert abs(path["width"] / box["width"] - 4 / 12) < 0.02 and abs(path["height"] / box["height"] - 2 / 8) < 0.02
    assert page.problems == []


def test_tab_visits_what_can_be_used(two_findings):
    page = two_findings
    page.get_by_role("button", name="Previous violation").focus()
    for name in ("Previous violation", "Next violation", "Violations", "Source", "Map of x", "Edit in "):
        expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(f"^{name}"))
        page.keyboard.press("Tab")


def test_both_findings_can_be_read(two_findings, pictures):
    page = two_findings
    pictures.of_page(page, "rule_1")
    page.get_by_role("button", name="Next violation").click()
    pictures.of_page(page, "rule_2")
    assert page.problems == []
