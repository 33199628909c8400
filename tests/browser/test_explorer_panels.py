"""The explorer's panels in the browser: what they say and light up, by pointer and keyboard, on a page of its own."""

from __future__ import annotations

import pytest

import tinote as ti
from tests.browser.test_explorer import CLIPPED, CONTRAST, lit, rows
from tinote.viz.explorer import explore


@pytest.fixture
def kernel():
    ti.init()
    x = ti.field(ti.f32, shape=64, needs_grad=True)
    weight = ti.field(ti.f32, shape=64, needs_grad=True)
    where = ti.field(ti.i32, shape=64)
    counts = ti.field(ti.f32, shape=64)
    total = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            s = x[i]
            for k in range(5):
                s = s * ti.sin(s) + weight[k]
            total[None] += s
        for i in x:
            counts[where[i]] += 1.0

    return energy


def open_panel(page, name: str) -> None:
    page.get_by_role("tab", name=name).click()
    page.wait_for_function("() => document.querySelector('.panel').dataset.filled")


def test_tasks_lead_to_their_loops(standalone, kernel):
    page = standalone(explore(kernel))
    assert page.get_by_role("tabpanel").count() == 0
    open_panel(page, "Tasks")
    table = page.get_by_role("table", name="Tasks, in the order in which they run")
    assert table.get_by_role("row").count() == 3
    assert "a thread" in table.get_by_role("row").nth(1).inner_text()
    assert "add counts" in table.get_by_role("row").nth(2).inner_text()
    table.get_by_role("row").nth(2).get_by_role("button").click()
    page.mouse.move(0, 0)
    assert [text.strip() for text in lit(page, ".source")] == ["for i in x:"]
    assert any("for parallel" in text for text in lit(page, ".right"))
    # A second press on the tab closes the panel.
    page.get_by_role("tab", name="Tasks").click()
    assert page.get_by_role("tabpanel").count() == 0
    assert page.problems == []


def test_what_llvm_vectorised_stands_behind_the_lines(standalone, kernel):
    page = standalone(explore(kernel))
    assert page.locator(".source .note").count() == 0
    open_panel(page, "Vectorisation")
    notes = page.locator(".source .note").all_inner_texts()
    assert notes and any("not vectorised" in note for note in notes)
    # The source's own text stays what it is.
    assert "        for i in x:" in [text for text, _ in rows(page, ".source")]
    page.get_by_role("tab", name="Tasks").click()
    assert page.locator(".source .note").count() == 0


def test_the_keyboard_reaches_every_panel(standalone, kernel):
    page = standalone(explore(kernel))
    page.get_by_role("tab", name="Tasks").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.textContent") == "Vectorisation"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-selected')") == "true"
    page.wait_for_function("() => document.querySelector('.panel').dataset.filled === 'loops'")
    page.keyboard.press("Tab")  # the panel, which scrolls
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "to-source"
    assert len(lit(page, ".source")) == 1
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert len(lit(page, ".source")) == 1  # pinned
    page.keyboard.press("Escape")
    assert page.get_by_role("tabpanel").count() == 0


def test_a_gradient_shows_what_it_saves(standalone, kernel):
    page = standalone(explore(kernel, gradient=True))
    open_panel(page, "Saved and recomputed")
    saved = page.get_by_role("table", name="Saved for the reverse part").inner_text()
    assert "4 bytes" in saved and "20 bytes an iteration" in saved
    assert "private copy" in page.get_by_role("table", name="Adjoints").inner_text()
    # A kernel has no such panel; what is open closes.
    page.get_by_role("radio", name="kernel").click()
    page.wait_for_function("() => document.querySelector('.tinote-explorer').dataset.shown.startsWith('0/')")
    assert page.get_by_role("tab", name="Saved and recomputed").count() == 0
    assert page.get_by_role("tabpanel").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
def test_panels_fit_and_have_contrast(standalone, kernel, scheme, width):
    page = standalone(explore(kernel, gradient=True), color_scheme=scheme, viewport={"width": width, "height": 860})
    for name in page.get_by_role("tab").all_inner_texts():
        open_panel(page, name)
        assert page.evaluate(CLIPPED) == []
        ratios = page.evaluate(CONTRAST)
        assert {kind: ratio for kind, ratio in ratios.items() if ratio < 4.5} == {}
        panel = page.get_by_role("tabpanel").bounding_box()
        assert panel["x"] >= 0 and panel["x"] + panel["width"] <= width and panel["y"] + panel["height"] <= 860
