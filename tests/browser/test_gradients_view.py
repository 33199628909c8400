"""The gradients of a tape in JupyterLab and as a page: read by pointer and by keys, as a table, at each width."""

from __future__ import annotations

import linecache

import pytest

import tinote as ti
from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.waiting import expect, poll, still_box

PROGRAM = """\
import tinote as ti
ti.init(arch=ti.cpu, default_fp=ti.f64)
x = ti.field(ti.f64, shape=4, needs_grad=True, name="x")
loss = ti.field(ti.f64, shape=(), needs_grad=True, name="loss")

@ti.kernel
def halve():
    for i in x:
        x[i] = 0.5 * x[i]

@ti.kernel
def total():
    for i in x:
        loss[None] += x[i]

def program(steps):
    for _ in range(steps):
        halve()
    total()

x.fill(1)
with ti.ad.Tape(loss, keep=True) as tape:
    program(9)
"""
ROOT = ".tinote-gradients"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_it_is_shown_in_a_notebook(notebook):
    page = notebook(f"%load_ext tinote\n{PROGRAM}\nti.viz.gradients(tape)")
    page.run_all()
    page.wait(f"document.querySelector('{ROOT}')?.dataset.shown > 300")
    expect(page.page.locator(f"{ROOT} .chart")).to_have_count(3)
    expect(page.page.locator(f"{ROOT} .kernels tbody tr")).to_have_count(2)
    assert page.problems == []


@pytest.fixture
def opened(standalone):
    """The page of the same program, with horizons."""
    linecache.cache["halved.py"] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "halved.py")
    names = {"__name__": "halved"}
    exec(compile(PROGRAM, "halved.py", "exec"), names)
    names["x"].fill(1)
    return standalone(ti.viz.gradients(names["tape"], program=names["program"], wrt=names["x"], horizons=[1, 2, 4]))


def test_the_pointer_the_keys_and_the_table_tell_the_same(opened):
    page = opened
    norms = page.locator("[data-chart=norms]")
    stage = norms.locator(".stage")
    box = still_box(stage)
    page.mouse.move(box["x"] + box["width"] - 16, box["y"] + 60)
    readout = norms.locator(".readout")
    expect(readout.locator("*")).to_have_text(["launch 9 halve", "x 2"])
    page.mouse.move(0, 0)
    expect(readout).to_be_hidden()
    stage.focus()
    page.keyboard.press("Home")
    expect(readout.locator("*")).to_have_text(["launch start", "x 0.003906"])
    page.keyboard.press("ArrowRight")
    expect(readout.locator("*")).to_have_text(["launch 1 halve", "x 0.007812"])
    page.keyboard.press("Escape")
    expect(readout).to_be_hidden()
    norms.get_by_text("As a table").click()
    rows = norms.locator("table tr")
    expect(rows.first.locator("th, td")).to_have_text(["launch", "x"])
    expect(rows.nth(2).locator("th, td")).to_have_text(["1 halve", "0.007812"])
    expect(page.locator("[data-chart=horizons] .mark")).to_have_count(0)
    assert page.problems == []


def test_it_fits_and_can_be_read(opened, pictures):
    page = opened
    page.locator("[data-chart=horizons] .stage").focus()
    page.keyboard.press("End")
    pictures.of_page(page, "gradients")
    for width in (1280, 480):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => document.querySelector('{ROOT}').dataset.shown <= {width - 28}")
        poll(lambda: page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), True)
    assert page.problems == []
