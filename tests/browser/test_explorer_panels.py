"""The explorer's panels in the browser: what they say and light up, by pointer and keyboard, on a page of its own."""

from __future__ import annotations

import re

import pytest

import tinote as ti
from tests.browser.looks import WIDTHS, unreadable
from tests.browser.test_explorer import FLUID_MS, OF_SMALL, current_line, having, lit, pointed, rows
from tests.browser.waiting import expect, poll, still_box
from tests.viz.explored import big_stages, parsed_stages
from tinote.viz.explorer.widget import Explorer, ExplorerView, explore


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
    expect(page.get_by_role("tabpanel")).to_have_count(0)
    open_panel(page, "Tasks")
    table_rows = page.get_by_role("table", name="Tasks, in the order in which they run").get_by_role("row")
    expect(table_rows).to_have_count(3)
    expect(table_rows.nth(1)).to_contain_text("per thread")
    expect(table_rows.nth(2)).to_contain_text("add counts")
    table_rows.nth(2).get_by_role("button").click()
    page.mouse.move(0, 0)
    poll(lambda: [text.strip() for text in lit(page, ".source")], ["for i in x:"])
    poll(lambda: lit(page, ".right"), lambda lines: any("parallel" in text for text in lines))
    # A second press on the tab closes the panel.
    page.get_by_role("tab", name="Tasks").click()
    expect(page.get_by_role("tabpanel")).to_have_count(0)
    assert page.problems == []


def test_what_llvm_vectorised_stands_behind_the_lines(standalone, kernel):
    page = standalone(explore(kernel))
    notes = page.locator(".source .note")
    expect(notes).to_have_count(0)
    open_panel(page, "Vectorisation")
    expect(notes.filter(has_text="not vectorised")).not_to_have_count(0)
    # The source's own text stays what it is.
    poll(lambda: [text for text, _ in rows(page, ".source")], lambda lines: "        for i in x:" in lines)
    page.get_by_role("tab", name="Tasks").click()
    expect(notes).to_have_count(0)


TOO_HIGH = "() => document.fullscreenElement.scrollHeight - document.fullscreenElement.clientHeight"


def test_the_full_screen_with_an_open_panel_is_no_higher_than_the_screen(standalone, kernel, pictures):
    page = standalone(explore(kernel), viewport={"width": 1280, "height": 720})
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_function("() => document.fullscreenElement")
    for name in ("Tasks", "Vectorisation", "Values"):
        open_panel(page, name)
        poll(lambda: page.evaluate(TOO_HIGH), 0)
        expect(page.locator(".tinote-explorer .foot")).to_be_in_viewport()
        poll(lambda: len(rows(page, ".right")), lambda count: count >= 3)
    pictures.shot(page, "full_screen.png")


def test_the_keyboard_reaches_every_panel(standalone, kernel):
    page = standalone(explore(kernel))
    page.get_by_role("tab", name="Tasks").focus()
    page.keyboard.press("ArrowRight")
    focused = page.locator(":focus")
    expect(focused).to_have_text("Vectorisation")
    page.keyboard.press("Enter")
    expect(focused).to_have_attribute("aria-selected", "true")
    page.wait_for_function("() => document.querySelector('.panel').dataset.filled === 'loops'")
    page.keyboard.press("Tab")  # the panel, which scrolls
    page.keyboard.press("Tab")
    expect(focused).to_have_class("to-source")
    poll(lambda: len(lit(page, ".source")), 1)
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    expect(focused).to_have_attribute("role", "tab")
    poll(lambda: len(lit(page, ".source")), 1)  # pinned
    page.keyboard.press("Escape")
    expect(page.get_by_role("tabpanel")).to_have_count(0)


def test_a_page_has_the_roofline_that_was_measured(standalone, kernel, pictures):
    ti.init()
    a, b = (ti.field(ti.f32, shape=1 << 16, name=name) for name in "ab")

    @ti.kernel
    def smooth(weight: ti.f32):
        for i in range(1, 65535):
            b[i] = weight * (a[i - 1] + a[i + 1])
        for i in a:
            b[i] = ti.exp(ti.sin(b[i])) + ti.sin(2.0 * b[i])
        for i in a:
            a[i] = b[i]

    smooth(0.5)
    page = standalone(explore(smooth))
    open_panel(page, "Roofline")
    expect(page.get_by_role("tabpanel")).to_contain_text("not measured yet")
    smooth.roofline(0.25)
    page = standalone(explore(smooth))
    open_panel(page, "Roofline")
    loops = page.get_by_role("table", name="Loops").get_by_role("row")
    expect(loops).to_have_count(4)
    expect(page.locator(".roofs .loop")).to_have_count(2)  # a copy computes nothing
    expect(page.locator(".source .note")).to_have_count(3)
    expect(page.get_by_label("Argument weight")).to_have_value("0.25")
    loops.nth(2).get_by_role("button").click()
    page.mouse.move(0, 0)
    poll(lambda: [text.strip() for text in lit(page, ".source")], ["for i in a:"])
    pictures.of_page(page, "panel_roofline")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("alert")).to_contain_text("in a running notebook")
    expect(loops).to_have_count(4)
    assert page.problems == []


MEASURED = """\
import tinote as ti
ti.init()
x = ti.field(ti.f32, 1 << 16)

@ti.kernel
def grow(by: ti.f32):
    for i in x:
        x[i] = by * x[i] + 1.0

grow(0.5)
explorer = ti.viz.explore(grow)
explorer
"""


def test_a_button_measures_it_in_copies(notebook):
    page = notebook(f"%load_ext tinote\n{MEASURED}")
    page.run_all()
    page.wait("document.querySelector('.tinote-explorer')?.dataset.painted")
    page.page.get_by_role("tab", name="Roofline").click()
    page.page.get_by_role("button", name="Measure", exact=True).click()
    expect(page.page.locator(".tinote-explorer .roofs .loop")).to_have_count(1)
    shown = "explorer._explored.everything()['panels']['0/roofline']['chart']['loops']"
    assert page.python(f"print(x[0], len({shown}))") == "1.0 1"
    assert page.problems == []


def test_a_gradient_shows_what_it_saves(standalone, kernel):
    page = standalone(explore(kernel, gradient=True))
    open_panel(page, "Saved and recomputed")
    saved = page.get_by_role("table", name="Saved for the reverse part")
    expect(saved).to_contain_text("4 bytes")
    expect(saved).to_contain_text("20 bytes an iteration")
    expect(page.get_by_role("table", name="Adjoints")).to_contain_text("private copy")
    # A kernel has no such panel; what is open closes.
    page.get_by_role("radio", name="kernel").click()
    page.wait_for_function("() => document.querySelector('.tinote-explorer').dataset.shown.startsWith('0/')")
    expect(page.get_by_role("tab", name="Saved and recomputed")).to_have_count(0)
    expect(page.get_by_role("tabpanel")).to_have_count(0)


def test_panels_can_be_read_and_fit(standalone, kernel, pictures):
    page = standalone(explore(kernel, gradient=True))
    pointed(page, ".source", "ti.sin").click()
    page.keyboard.press("/")
    page.keyboard.type("load")
    for name in poll(lambda: page.get_by_role("tab").all_inner_texts(), bool):
        open_panel(page, name)
        page.mouse.move(0, 0)
        pictures.of_page(page, f"panel_{name.lower().replace(' ', '_')}")
        poll(
            lambda: page.get_by_role("tabpanel").bounding_box(),
            lambda panel: (
                panel["x"] >= 0 and panel["x"] + panel["width"] <= WIDTHS[-1] and panel["y"] + panel["height"] <= 860
            ),
        )
    assert page.problems == []


@pytest.fixture
def small(standalone):
    views = [ExplorerView("kernel", lambda: parsed_stages("y = x * 0.5"))]
    return standalone(Explorer("small", views, state={"stage": "simplify 1: fold"}))


def test_a_click_on_a_variable_goes_to_its_definition(small):
    store = small.locator(".left .row", has_text="store @x").last
    store.locator("[data-name='%c']").hover()
    words = small.locator(".foot .words")
    expect(words).to_have_text("%c: click for its definition, 1 use")
    store.locator("[data-name='%c']").click()
    current_line(small, ".left", "%c: f32 = add %b, 0.0f32")
    # The very definition pins its line, and another click lets go of it.
    small.locator(".left .is-current [data-name='%c']").click()
    expect(words).not_to_have_text(re.compile("^Pinned"))
    # Memory has a definition too.
    store.locator("[data-name='@x']").click()
    current_line(small, ".left", "buffer @x")


def test_the_keyboard_walks_along_the_data_flow(small):
    pointed(small, ".left", "load @x").click()
    small.locator(".left .lines").focus()
    for key, line in {"u": "%b: f32 = mul", "d": "%a: f32 = load", "b": "%b: f32 = mul"}.items():
        small.keyboard.press(key)
        current_line(small, ".left", line)
    small.keyboard.press("b")
    current_line(small, ".left", "%a: f32 = load")


def test_the_data_flow_of_what_is_selected(small):
    open_tab = small.get_by_role("tab", name="Data flow")
    open_tab.click()
    expect(small.get_by_role("tabpanel")).to_contain_text("Select a line")
    pointed(small, ".left", "= mul").click(position={"x": 4, "y": 4})
    graph = small.get_by_role("group", name="Data flow, from left to right")

    def nodes() -> dict[str, float]:
        return {node.inner_text(): node.bounding_box()["x"] for node in graph.get_by_role("button").all()}

    expect(graph.get_by_role("button")).to_have_count(5)
    found = poll(nodes, lambda found: sorted(found) == ["%a load @x", "%b mul", "%c add", "for", "store @x"])
    assert found["%a load @x"] < found["%b mul"] < found["%c add"]
    expect(graph.locator("[aria-current]")).to_have_text("%b mul", use_inner_text=True)
    expect(graph.locator("path.is-near")).to_have_count(2)
    # It fits, and is zoomed by its reader.
    wide = still_box(small.locator(".graph"))["width"]

    def width() -> float:
        return small.locator(".graph").evaluate("(graph) => graph.getBoundingClientRect().width")

    small.set_viewport_size({"width": 620, "height": 860})
    poll(lambda: width() - small.locator(".panel").evaluate("(panel) => panel.clientWidth"), lambda beyond: beyond <= 0)
    small.set_viewport_size({"width": 1280, "height": 860})
    poll(width, pytest.approx(wide, abs=1))
    small.get_by_role("button", name="Zoom out").click()
    poll(width, lambda found: found < 0.9 * wide)
    small.keyboard.press("0")
    poll(width, pytest.approx(wide, abs=1))
    # By keyboard: to the right, and there.
    graph.locator("[aria-current]").focus()
    small.keyboard.press("ArrowRight")
    expect(small.locator(":focus")).to_have_text("%c add")
    poll(lambda: lit(small, ".left"), lambda lines: any("= add" in text for text in lines))
    small.keyboard.press("Enter")
    current_line(small, ".left", "%c: f32 = add")
    expect(small.locator(":focus")).to_have_text("%c add")
    assert small.problems == []


def test_words_lead_to_the_glossary(standalone, kernel):
    page = standalone(explore(kernel))
    page.locator(".stage .name", has_text="privatise").click()
    word = page.locator(".sentence .term").first
    expect(word).to_have_attribute("title", re.compile(r"\.$"))
    meaning = poll(lambda: word.get_attribute("title"), bool)
    word.click()
    entry = page.locator(".glossary [aria-current]")
    expect(entry.locator("dd")).to_have_text(meaning)
    panel = still_box(page.get_by_role("tabpanel", name="Glossary"))
    poll(lambda: entry.bounding_box()["y"], lambda top: panel["y"] <= top < panel["y"] + panel["height"])
    task = page.locator(".right .code", has=page.locator(".word-key", has_text="task")).first
    task.locator(".word-key").first.hover()
    expect(task).to_have_attribute("title", re.compile("^a part of the kernel"))
    poll(lambda: unreadable(page), [])
    assert page.problems == []


def test_a_search_can_hide_everything_else(small):
    small.keyboard.press("Tab")
    search = small.get_by_role("searchbox", name="Search in all stages")
    search.fill("mul")
    small.get_by_role("button", name="Only matches").click()

    def only(pane: str, word: str) -> None:
        poll(
            lambda: [text for text, classes in rows(small, pane) if "is-folded" not in classes],
            lambda lines: lines != [] and all(word in text for text in lines),
        )

    only(".left", "mul")
    only(".right", "mul")
    search.fill("load")
    only(".left", "load")
    search.press("Escape")
    poll(lambda: len(rows(small, ".left")), lambda count: count > 5)
    expect(small.get_by_role("button", name="Only matches")).to_have_count(0)


def test_a_graph_of_five_thousand_operations_stays_fluid(standalone):
    times = {}
    for count in (5000, 100):
        stages = big_stages(count)
        times[count] = walked(standalone(Explorer("walk", [ExplorerView("kernel", lambda stages=stages: stages)])))
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
    poll(lambda: page.locator(".graph .node").count(), lambda count: 1 < count <= 48 * 2)
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
    page.get_by_label("Iteration, one number per parallel loop").fill("2")
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Observed values")
    expect(table.get_by_role("row", name="store @x").locator(".value")).to_have_text("5")
    expect(page.locator(".values [role=status]")).to_have_text("no NaN · iterations 0 … 7")
    page.get_by_label("Iteration, one number per parallel loop").fill("3")
    page.get_by_role("button", name="Observe").click()
    expect(page.locator("tr.is-first")).to_contain_text("first NaN")
    page.locator("tr.is-first button").click()
    poll(lambda: having(page, ".right", "is-current"), lambda lines: len(lines) == 1 and "sqrt" in lines[0])
    poll(lambda: unreadable(page), [])
    # Another stage has other lines.
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(table).to_have_count(0)
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


def test_adjoints_are_next_to_the_values_of_a_gradient(notebook):
    opened = notebook(OBSERVED_GRADIENT)
    opened.run_all()
    opened.wait("document.querySelector('.tinote-explorer')?.dataset.painted >= 1")
    page = opened.page
    page.get_by_role("tab", name="Values", exact=True).click()
    page.get_by_role("button", name="Observe").click()
    table = page.get_by_role("table", name="Observed values")
    expect(table.locator("thead th")).to_have_text(["variable", "value", "adjoint", "times"])
    row = table.get_by_role("row").filter(has=page.get_by_role("button", name=re.compile(r"^%a(\.\d+)?$")))
    expect(row.locator(".value")).to_have_text(["6", "12"])  # the derivative of a ** 2
    poll(lambda: unreadable(page), [])
    # The kernel alone has none.
    page.get_by_role("radio", name="kernel").click()
    opened.wait("document.querySelector('.tinote-explorer').dataset.shown.startsWith('0/')")
    page.get_by_role("button", name="Observe").click()
    expect(table.locator("thead th")).to_have_text(["variable", "value", "times"])
    assert opened.problems == []
