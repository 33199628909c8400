"""The explorer's panels in the browser: what they say and light up, by pointer and keyboard, on a page of its own."""

from __future__ import annotations

import re

import pytest

import tinote as ti
from tests.browser.looks import WIDTHS, unreadable
from tests.browser.test_explorer import FLUID_MS, OF_SMALL, lit, pointed, rows
from tests.viz.explored import big_stages, parsed_stages
from tinote.viz.explorer.widget import Explorer, View, explore


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


def test_panels_can_be_read_and_fit(standalone, kernel, pictures):
    page = standalone(explore(kernel, gradient=True))
    pointed(page, ".source", "ti.sin").click()
    page.keyboard.press("/")
    page.keyboard.type("load")
    for name in page.get_by_role("tab").all_inner_texts():
        open_panel(page, name)
        page.mouse.move(0, 0)
        pictures.of_page(page, f"panel_{name.lower().replace(' ', '_')}")
        panel = page.get_by_role("tabpanel").bounding_box()
        assert panel["x"] >= 0 and panel["x"] + panel["width"] <= WIDTHS[-1] and panel["y"] + panel["height"] <= 860
    assert page.problems == []


def current(page, pane: str) -> str:
    """The current line of a pane."""
    (found,) = [text.strip() for text, classes in rows(page, pane) if "is-current" in classes]
    return found


@pytest.fixture
def small(standalone):
    return standalone(Explorer("small", [View("kernel", lambda: parsed_stages("y = x * 0.5"))]))


def test_a_click_on_a_variable_goes_to_its_definition(small):
    store = small.locator(".left .row", has_text="store @x").last
    store.locator("[data-name='%c']").hover()
    assert small.locator("footer .words").inner_text() == "%c: click for its definition, 1 use"
    store.locator("[data-name='%c']").click()
    assert current(small, ".left") == "%c: f32 = add %b, 0.0f32"
    # The very definition pins its line, and another click lets go of it.
    small.locator(".left .is-current [data-name='%c']").click()
    assert not small.locator("footer .words").inner_text().startswith("Pinned")
    # Memory has a definition too.
    store.locator("[data-name='@x']").click()
    assert current(small, ".left").startswith("buffer @x")


def test_the_keyboard_walks_along_the_data_flow(small):
    pointed(small, ".left", "load @x").click()
    small.locator(".left .lines").focus()
    for key, line in {"u": "%b: f32 = mul", "d": "%a: f32 = load", "b": "%b: f32 = mul"}.items():
        small.keyboard.press(key)
        assert current(small, ".left").startswith(line), key
    small.keyboard.press("b")
    assert current(small, ".left").startswith("%a: f32 = load")


def test_the_data_flow_of_what_is_selected(small):
    open_tab = small.get_by_role("tab", name="Data flow")
    open_tab.click()
    assert "Select a line" in small.get_by_role("tabpanel").inner_text()
    pointed(small, ".left", "= mul").click(position={"x": 4, "y": 4})
    graph = small.get_by_role("group", name="Data flow, from left to right")
    nodes = {node.inner_text(): node.bounding_box()["x"] for node in graph.get_by_role("button").all()}
    assert sorted(nodes) == ["%a load @x", "%b mul", "%c add", "for", "store @x"]
    assert nodes["%a load @x"] < nodes["%b mul"] < nodes["%c add"]
    assert graph.locator("[aria-current]").inner_text() == "%b mul"
    assert graph.locator("path.is-near").count() == 2
    # By keyboard: to the right, and there.
    graph.locator("[aria-current]").focus()
    small.keyboard.press("ArrowRight")
    assert small.evaluate("() => document.activeElement.textContent") == "%c add"
    assert any("= add" in text for text in lit(small, ".left"))
    small.keyboard.press("Enter")
    assert current(small, ".left").startswith("%c: f32 = add")
    assert small.evaluate("() => document.activeElement.textContent") == "%c add"
    assert small.problems == []


def test_a_search_can_hide_everything_else(small):
    small.keyboard.press("Tab")
    search = small.get_by_role("searchbox", name="Search in both panes")
    search.fill("mul")
    small.get_by_role("button", name="Only matches").click()
    for pane in (".left", ".right"):
        shown = [text for text, classes in rows(small, pane) if "is-folded" not in classes]
        assert shown == [text for text in shown if "mul" in text] != []
    search.fill("load")
    assert all("load" in text for text, classes in rows(small, ".left") if "is-folded" not in classes)
    search.press("Escape")
    assert len(rows(small, ".left")) > 5
    assert small.get_by_role("button", name="Only matches").count() == 0


def test_a_graph_of_five_thousand_operations_stays_fluid(standalone):
    times = {}
    for count in (5000, 100):
        stages = big_stages(count)
        times[count] = walked(standalone(Explorer("walk", [View("kernel", lambda stages=stages: stages)])))
    print(f"\nwalks along the data flow in ms, by operations: {times}")
    assert min(times[5000]) < max(FLUID_MS, OF_SMALL * min(times[100]))


def walked(page) -> list[float]:
    """Walk along the data flow; the times in ms until each step was painted."""
    page.get_by_role("tab", name="Data flow").click()
    pointed(page, ".right", "= mul").click(position={"x": 4, "y": 4})
    page.locator(".right .lines").focus()
    times = page.evaluate(
        """async () => {
            const times = [];
            for (const key of ['u', 'u', 'd', 'u', 'u', 'b']) {
                const start = performance.now();
                const press = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
                document.activeElement.dispatchEvent(press);
                await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
                times.push(performance.now() - start);
            }
            return times;
        }"""
    )
    assert 1 < page.locator(".graph .node").count() <= 48 * 2
    return times


OBSERVED = """\
import tinote as ti
ti.init()
x = ti.field(dtype=ti.f32, shape=8)

@ti.kernel
def scale(a: ti.f32):
    for i in x:
        x[i] = ti.sqrt(x[i]) * a

scale(0.0)
x.fill(4.0)
x[3] = -1.0
from tinote.viz.explorer.widget import explore
explore(scale)
"""


def test_values_of_an_iteration_and_the_first_nan(notebook):
    opened = notebook(OBSERVED)
    opened.run_all()
    opened.wait("document.querySelector('.tinote-explorer')?.dataset.painted >= 1")
    page = opened.page
    page.get_by_role("tab", name="Values", exact=True).click()
    page.get_by_label("Argument a").fill("2.5")
    page.get_by_label("Iteration, one number a parallel loop").fill("2")
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Observed values")
    table.wait_for()
    assert table.get_by_role("row", name="store @x").locator(".value").inner_text() == "5"
    assert page.locator(".values [role=status]").inner_text() == "no NaN · iterations 0 … 7"
    page.get_by_label("Iteration, one number a parallel loop").fill("3")
    page.get_by_role("button", name="Observe").click()
    page.locator("tr.is-first").wait_for()
    assert "first NaN" in page.locator("tr.is-first").inner_text()
    page.locator("tr.is-first button").click()
    (current_line,) = [text for text, classes in rows(page, ".right") if "is-current" in classes]
    assert "sqrt" in current_line
    assert unreadable(page) == []
    # Another stage has other lines.
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert table.count() == 0
    assert opened.problems == []
    assert opened.python("print(x[2])") == "4.0"


OBSERVED_GRADIENT = """\
import tinote as ti
ti.init()
x = ti.field(dtype=ti.f32, shape=8, needs_grad=True)
total = ti.field(dtype=ti.f32, shape=(), needs_grad=True)

@ti.kernel
def energy():
    for i in x:
        a = x[i] * 3.0
        total[None] += a * a

x.fill(2.0)
total.grad[None] = 1.0
from tinote.viz.explorer.widget import explore
explore(energy, gradient=True)
"""


def test_adjoints_stand_beside_the_values_of_a_gradient(notebook):
    opened = notebook(OBSERVED_GRADIENT)
    opened.run_all()
    opened.wait("document.querySelector('.tinote-explorer')?.dataset.painted >= 1")
    page = opened.page
    page.get_by_role("tab", name="Values", exact=True).click()
    page.get_by_role("button", name="Observe").click()
    table = page.get_by_role("table", name="Observed values")
    table.wait_for()
    assert table.locator("thead th").all_inner_texts() == ["variable", "value", "adjoint", "times", ""]
    row = table.get_by_role("row").filter(has=page.get_by_role("button", name=re.compile(r"^%a(\.\d+)?$")))
    assert row.locator(".value").all_inner_texts() == ["6", "12"]  # the derivative of a ** 2
    assert unreadable(page) == []
    # The kernel alone has none.
    page.get_by_role("radio", name="kernel").click()
    opened.wait("document.querySelector('.tinote-explorer').dataset.shown.startsWith('0/')")
    page.get_by_role("button", name="Observe").click()
    table.wait_for()
    assert table.locator("thead th").all_inner_texts() == ["variable", "value", "times", ""]
    assert opened.problems == []
