"""Programs between launches in the explorer, in a browser: what lights up, what a click on a kernel opens."""

from __future__ import annotations

import re

import pytest

import tinote as ti
from tests.browser.looks import unreadable
from tests.browser.test_explorer import lit, selected_stage
from tests.browser.waiting import expect, poll
from tinote.viz.explorer.widget import explore


@pytest.fixture
def tape():
    ti.init()
    x = ti.field(ti.f64, shape=4, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def grow(by: ti.f64):
        for i in x:
            x[i] += by * x[i]

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2

    with ti.ad.Tape(loss, keep=True) as recorded:
        for _ in range(2):
            grow(0.5)
        energy()
    return recorded


def test_a_tape_lights_up_its_lines_and_opens_its_kernels(standalone, tape):
    page = standalone(explore(tape))
    expect(selected_stage(page)).to_have_text("reverse sweep")
    launch = page.locator(".right .row", has_text="launch grow.grad").first
    launch.locator(".word-key").hover()
    poll(lambda: [text.strip() for text in lit(page, ".source")], ["grow(0.5)"])
    expect(page.locator(".foot")).to_contain_text("launch: runs a kernel")
    page.locator(".source .row .code", has_text=re.compile(r"^\s+energy\(\)$")).hover()
    poll(lambda: lit(page, ".right"), lambda lines: any("launch energy.grad" in text for text in lines))
    page.get_by_role("searchbox", name="Search").fill("launch grow")
    expect(page.locator(".stage .hits")).to_have_text(["2", "2"])
    page.keyboard.press("Escape")
    launch.locator("[data-name='grow.grad']").click()
    chosen = page.get_by_role("combobox", name="What is shown")
    expect(chosen.locator("option:checked")).to_have_text("grow, gradient")
    expect(page.locator(".source .row", has_text="def grow").first).to_be_visible()
    chosen.select_option(label="program")
    expect(selected_stage(page)).to_have_text("reverse sweep")
    page.locator(".stage", has_text="recorded").click()
    page.locator(".right .row", has_text="launch energy").locator(".word-key").click()
    page.locator(".right .lines").focus()
    page.keyboard.press("o")
    expect(chosen.locator("option:checked")).to_have_text("energy")
    poll(lambda: unreadable(page), [])
    assert page.problems == []
