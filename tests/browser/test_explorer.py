"""The IR explorer in JupyterLab and as a page of its own: what lights up, what the keyboard does, how fast it is."""

from __future__ import annotations

import pytest

from tests.browser.harness import BOTH_FRONT_ENDS, TIMED_KEY, new_page
from tests.viz.explored import parsed_stages
from tinote.viz.explorer.widget import Explorer, View

GRAVITY = """\
import tinote as ti
ti.init()
N = 64
x = ti.Vector.field(2, dtype=ti.f32, shape=N, needs_grad=True)
U = ti.field(dtype=ti.f32, shape=(), needs_grad=True)

@ti.kernel
def compute_energy():
    for i, j in ti.ndrange(N, N):
        r = x[i] - x[j]
        U[None] += -1 / r.norm(1e-3)

from tinote.viz.explorer.widget import explore
explorer = explore(compute_energy, gradient=True)
explorer
"""
SIZES = """
from tests.viz.explored import big_stages
from tinote.viz.explorer.widget import Explorer, View
big, small = big_stages(5000), big_stages(100)
display(Explorer("big", [View("kernel", lambda: big)]), Explorer("small", [View("kernel", lambda: small)]))
"""
FLUID_MS = 100
"""A change is painted within this time, on a machine that is not busy with something else."""

OF_SMALL = 8
"""On a slower one, within this many times what the same takes for a kernel of 100 operations."""
ROOT = "document.querySelector('.tinote-explorer')"
PAINTED = f"Number({ROOT}?.dataset.painted ?? 0)"

# Lines as a reader sees them: [[text, classes], ...] of the rows on the page, from the top. A pane that is scrolled in
# one frame is told so in the next one, and draws then what has come in sight.
ROWS = """async (selector) => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
    return [...document.querySelectorAll(selector + ' .row')]
        .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
        .map((row) => [row.querySelector('.code')?.textContent ?? '', row.className]);
}"""


def rows(page, pane: str) -> list[tuple[str, set[str]]]:
    """The lines on the page in a pane (".left", ".right" or ".source") with their classes."""
    return [(text, set(classes.split())) for text, classes in page.evaluate(ROWS, pane)]


def lit(page, pane: str) -> list[str]:
    """The lines of a pane that are lit."""
    return [text for text, classes in rows(page, pane) if classes & {"is-lit", "is-strong"}]


def pointed(page, pane: str, text: str):
    """The code of the first line of a pane that contains `text`."""
    return page.locator(f"{pane} .row .code", has_text=text).first


@pytest.fixture
def gravity(notebook):
    page = notebook(GRAVITY)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    return page


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_click_on_the_source_lights_up_what_came_from_it(gravity):
    page = gravity.page
    assert lit(page, ".left") == lit(page, ".right") == []
    pointed(page, ".source", "r = x[i] - x[j]").click()
    page.mouse.move(0, 0)
    # The components of `r` in the kernel, computed again in its gradient; and what adds to the adjoint of `x`.
    assert sum(" = sub " in text for text in lit(page, ".left")) == 2
    assert sum(" = sub " in text for text in lit(page, ".right")) == 2
    assert any("load @x" in text for text in lit(page, ".left"))
    assert all("sqrt" not in text for text in lit(page, ".left") + lit(page, ".right"))
    assert lit(page, ".source") == ["        r = x[i] - x[j]"]
    page.keyboard.press("Escape")
    assert lit(page, ".left") == lit(page, ".right") == lit(page, ".source") == []
    assert gravity.problems == []


def test_a_line_of_ir_lights_up_its_source_and_its_adjoints(gravity):
    page = gravity.page
    pointed(page, ".left", "sqrt").hover()
    assert lit(page, ".source") == ["        U[None] += -1 / r.norm(1e-3)"]
    # The very expression is marked.
    stretch = page.locator(".source .stretch").bounding_box()
    code = page.locator(".source .is-strong .code").bounding_box()
    character = page.evaluate("""() => {
        const code = document.querySelector('.source .code');
        const probe = Object.assign(document.createElement('span'), { textContent: '0'.repeat(100) });
        code.append(probe);
        const width = probe.getBoundingClientRect().width / 100;
        probe.remove();
        return width;
    }""")
    marked = [
        round((stretch["x"] - code["x"]) / character),
        round((stretch["x"] + stretch["width"] - code["x"]) / character),
    ]
    assert "        U[None] += -1 / r.norm(1e-3)"[marked[0] : marked[1]] == "r.norm(1e-3)"
    strong = [text for text, classes in rows(page, ".right") if "is-strong" in classes]
    assert any("sqrt" in text for text in strong)
    adjoints = page.locator(".right .row.is-strong .adjoint").count()
    assert adjoints >= 1


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_search_stays_in_the_explorer_and_its_page_is_written(gravity, chromium, tmp_path):
    page = gravity.page
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("/")
    page.keyboard.type("sqrt")
    hits = [text for text, classes in rows(page, ".right") if "is-hit" in classes]
    assert hits == [text for text, _ in rows(page, ".right") if "sqrt" in text] != []
    assert page.locator(".jp-Cell").count() == 1
    saved = tmp_path / "explorer.html"
    assert gravity.python(f"print(explorer.save({str(saved)!r}))") == str(saved)
    alone = new_page(chromium, offline=True)
    alone.goto(saved.as_uri())
    pointed(alone, ".source", "r = x[i] - x[j]").click()
    assert sum(" = sub " in text for text in lit(alone, ".right")) == 2
    alone.context.close()
    assert gravity.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_the_keyboard_moves_through_stages_and_lines(gravity):
    page = gravity.page
    stages = page.get_by_role("listbox", name="Stages")
    stages.focus()
    selected = "() => document.querySelector('[role=option][aria-selected=true] .name').textContent"
    assert page.evaluate(selected) == "reverse"
    page.keyboard.press("ArrowUp")
    first = page.evaluate(selected)
    assert first != "reverse"
    assert (
        page.evaluate(
            "() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).ariaSelected"
        )
        == "true"
    )
    page.keyboard.press("Home")
    assert page.evaluate(selected) == "syntax tree"
    page.keyboard.press("End")
    assert page.evaluate(selected) == "assembly"
    # LLVM runs now that somebody asks.
    gravity.wait("document.querySelector('.right .info').textContent.includes('instructions')", 20)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # Holds this stage on the left.
    page.keyboard.press("ArrowDown")
    assert page.locator(".left select").input_value() == "1"
    # On to the lines: down, then Enter pins the line's source.
    page.locator(".right .lines").focus()
    for _ in range(40):
        page.keyboard.press("ArrowDown")
        if "r.norm" in "".join(lit(page, ".source")):
            break
    page.keyboard.press("Enter")
    page.locator(".right .lines").blur()
    assert lit(page, ".source") == ["        U[None] += -1 / r.norm(1e-3)"]
    assert page.locator("footer .words").inner_text().startswith("Pinned line 11:")
    # Keys stay in the explorer: the notebook has neither new cells nor another mode.
    assert page.locator(".jp-Cell").count() == 1
    assert gravity.problems == []


def test_tab_visits_every_control_once(gravity):
    page = gravity.page
    page.get_by_role("radio", name="gradient").focus()
    visited = []
    for _ in range(17):
        visited.append(page.evaluate("() => document.activeElement.ariaLabel || document.activeElement.textContent"))
        page.keyboard.press("Tab")
    wanted = [
        "gradient",
        "Search in both panes",
        "Only differences",
        "Previous difference",
        "Next difference",
        "Full screen",
        "Find a stage by its name or what it does",
        "Stages",
    ]
    assert visited[: len(wanted)] == wanted
    assert visited[len(wanted)] == "LLVM's own passes …"
    assert "without change" in visited[len(wanted) + 1]
    assert visited[len(wanted) + 2 :] == [
        "Source",
        "Stage on the left",
        "Stage on the left",
        "Stage on the right",
        "Stage on the right",
        "Width of the list of stages",
        "Width of the left pane",
    ]


def test_kernel_and_gradient_take_turns(gravity):
    page = gravity.page
    page.get_by_role("radio", name="kernel").click()
    gravity.wait(f"{ROOT}.dataset.shown.startsWith('0/')")
    assert "reverse" not in page.get_by_role("listbox").inner_text()
    assert page.locator(".adjoint").count() == 0
    page.get_by_role("radio", name="gradient").click()
    gravity.wait(f"{ROOT}.dataset.shown.startsWith('1/')")
    assert "reverse" in page.get_by_role("listbox").inner_text()
    assert page.locator(".right .adjoint").count() > 0


def test_unchanged_steps_are_folded_away(gravity):
    page = gravity.page
    before = page.get_by_role("option").count()
    toggle = page.locator("button.unchanged")
    folded = int(toggle.inner_text().split()[0])
    assert folded > 0
    toggle.click()
    assert (
        page.locator("[role=listbox] [role=option]").count()
        == page.locator("[role=listbox] [role=option]:not(.is-unchanged)").count() + folded
    )
    toggle.click()
    assert page.get_by_role("option").count() == before


def test_it_opens_while_the_kernel_is_busy(notebook, lab):
    """What is shown first comes with the widget: nothing has to be asked for."""
    flag = lab.folder / "explorer_is_open"
    flag.unlink(missing_ok=True)
    page = notebook(GRAVITY, "import os, time\nwhile not os.path.exists('explorer_is_open'):\n    time.sleep(0.02)")
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    shown = [text for text, _ in rows(page.page, ".right")]
    assert any("for parallel" in text for text in shown)
    assert any("for parallel" in text for text, _ in rows(page.page, ".left"))
    # What it does not have, it asks for, and gets it afterwards.
    right = page.page.locator(".pane.right")
    page.page.get_by_role("listbox", name="Stages").press("End")
    assert "is-waiting" in right.get_attribute("class")
    flag.touch()
    page.wait(f"!{ROOT}.querySelector('.is-waiting') && {PAINTED} >= 2")
    assert {text for text, _ in rows(page.page, ".right")} & set(shown) <= {""}
    assert page.problems == []


def test_five_thousand_operations_stay_fluid(notebook):
    """Forth over stages that have not been aligned yet, and back over those that have been: the best of either, since
    other work on the machine only ever makes a change slower.
    """
    page = notebook(SIZES)
    page.run_all()
    page.wait("[...document.querySelectorAll('.tinote-explorer')].filter((e) => e.dataset.painted >= 1).length === 2")
    page.wait_idle()
    times = {"big": [], "small": []}
    for key in ["Home"] + ["ArrowDown"] * 3 + ["ArrowUp"] * 3:
        page.page.wait_for_timeout(300)  # The neighbours' lines arrive while nothing else happens.
        for index, size in enumerate(times):
            times[size].append(page.page.evaluate(TIMED_KEY, [index, key]))
    print(f"\nstage changes in ms, 5,000 and 100 operations: {[[round(t) for t in row] for row in times.values()]}")
    for turns in (slice(1, 4), slice(4, 7)):
        assert min(times["big"][turns]) < max(FLUID_MS, OF_SMALL * min(times["small"][turns]))
    # However long the stages, only what is in sight is on the page.
    right = page.page.locator(".tinote-explorer").first.locator(".right")
    assert right.locator(".row").count() < 120
    assert int(right.locator(".lines").get_attribute("aria-rowcount")) > 5000
    # Far away lines come when they are scrolled to, in both panes of two stages.
    page.page.evaluate(TIMED_KEY, [0, "ArrowDown"])
    page.page.evaluate("() => { document.querySelector('.right .lines').scrollTop = 19 * 4000 }")
    page.wait("document.querySelector('.right .lines [aria-rowindex=\"4001\"]') !== null")
    page.wait("Math.abs(document.querySelector('.left .lines').scrollTop - 19 * 4000) < 2")


def test_the_page_of_its_own_works_without_a_kernel(standalone):
    hostile = 'x = "</script><script>document.title=`hacked`</script><!-- &lt;b&gt;"'
    explorer = Explorer("</title><b>name", [View("kernel", lambda: parsed_stages(hostile))])
    page = standalone(explorer)
    assert page.title() == "</title><b>name: IR explorer"
    assert page.locator(".source .code").first.inner_text() == hostile
    page.locator(".source .code").first.click()
    assert len(lit(page, ".right")) >= 1
    page.get_by_role("listbox").focus()
    page.keyboard.press("Home")
    page.wait_for_function(
        "() => document.querySelector('[role=option][aria-selected=true] .name').textContent === 'front end'"
    )
    assert page.problems == []


def test_search_finds_and_walks(standalone):
    stages = parsed_stages("y = x * 0.5")
    page = standalone(Explorer("small", [View("kernel", lambda: stages)]))
    page.keyboard.press("/")
    page.get_by_role("listbox").focus()
    page.keyboard.press("/")
    page.keyboard.type("mul")
    hits = [text for text, classes in rows(page, ".right") if "is-hit" in classes]
    assert hits == [text for text, _ in rows(page, ".right") if "mul" in text] != []
    page.keyboard.press("Enter")
    current = [text for text, classes in rows(page, ".right") if "is-current" in classes]
    assert current == hits[:1]
    page.keyboard.press("Escape")
    assert not [text for text, classes in rows(page, ".right") if "is-hit" in classes]


def test_llvms_own_passes_unfold_between_its_two_texts(gravity):
    page = gravity.page
    names = "[...document.querySelectorAll('.tinote-explorer .stage .name')].map((one) => one.textContent)"
    before = page.evaluate(names)
    page.locator(".stage", has_text="assembly").click()
    page.get_by_role("button", name="LLVM's own passes …").click()
    gravity.wait(f"{names}.length > {len(before)}")
    after = page.evaluate(names)
    at = after.index("LLVM IR")
    between = after[at + 1 : after.index("LLVM, optimised")]
    assert {"SROA", "LoopVectorize"} <= set(between) and len(after) == len(before) + len(between)
    # What was selected is still selected, under another number.
    assert page.locator(".stage[aria-selected=true] .name").inner_text() == "assembly"
    assert page.get_by_role("button", name="LLVM's own passes …").count() == 0
    painted = page.evaluate(PAINTED)
    page.locator(".stage", has_text="LoopVectorize").first.click()
    gravity.wait(f"{PAINTED} > {painted} && document.querySelector('.right .row.is-new')")
    assert any(" x float>" in text for text, classes in rows(page, ".right") if "is-new" in classes)
    assert page.locator(".sentence").inner_text().startswith("LoopVectorize Runs several iterations")
    # Found by name, and by what it does.
    page.get_by_role("searchbox", name="Find a stage").fill("dead code")
    assert "eliminate_dead" in page.evaluate(names) and "LoopVectorize" not in page.evaluate(names)
    page.keyboard.press("Escape")
    assert page.evaluate(names) == after
    assert gravity.problems == []


def test_the_dividers_move_and_the_body_fits_a_laptop(gravity):
    page = gravity.page
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.locator(".tinote-explorer .body").bounding_box()["height"] <= 720 - 200
    stages, body = page.locator("nav.stages").bounding_box(), page.locator(".body").bounding_box()
    assert abs(stages["height"] - body["height"]) < 2
    divider = page.get_by_role("separator", name="Width of the list of stages")
    divider.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("nav.stages").bounding_box()["width"] == pytest.approx(stages["width"] + 16, abs=2)
    box = page.get_by_role("separator", name="Width of the left pane").bounding_box()
    left = page.locator(".pane.left").bounding_box()["width"]
    page.mouse.move(box["x"] + 4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 64, box["y"] + 50)
    page.mouse.up()
    assert page.locator(".pane.left").bounding_box()["width"] == pytest.approx(left + 60, abs=3)
    divider.dblclick()
    assert page.locator("nav.stages").bounding_box()["width"] == pytest.approx(stages["width"], abs=2)
    assert gravity.problems == []


def test_a_gradient_offers_a_seed(gravity):
    page = gravity.page
    page.get_by_role("tab", name="Values").click()
    assert page.get_by_role("textbox", name="Seed").input_value() == "1"
    page.get_by_role("textbox", name="Iteration").fill("1 2")
    page.get_by_role("button", name="Observe").click()
    table = page.get_by_role("table", name="Observed values")
    table.wait_for()
    found = table.locator("tr", has_text="adjoint").locator("td.value").all_inner_texts()
    assert any(float(value) not in (0.0,) for value in found if value.lstrip("-").replace(".", "").isdigit())
    assert gravity.problems == []
