"""The IR explorer in JupyterLab and as a page of its own: what lights up, what the keyboard does, how fast it is."""

from __future__ import annotations

import linecache
import re
from urllib.parse import parse_qsl

import pytest

from tests.browser.harness import ACTIVE_IS_SELECTED, BOTH_FRONT_ENDS, TIMED_KEY, new_page
from tests.browser.waiting import expect, poll, still_box
from tests.viz.explored import parsed_stages
from tinote.viz.explorer.widget import Explorer, ExplorerView

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
from tinote.viz.explorer.widget import Explorer, ExplorerView
big, small = big_stages(5000), big_stages(100)
display(Explorer("big", [ExplorerView("kernel", lambda: big)]))
display(Explorer("small", [ExplorerView("kernel", lambda: small)]))
"""
FLUID_MS = 100
"""A change is painted within this time, on a machine that is not busy with something else: what is asked for is a time
of the browser's layout and painting, which nothing counts. What can be counted, the rows on the page, is next to it."""

OF_SMALL = 8
"""On a slower one, within this many times what the same takes for a kernel of 100 operations."""
ROOT = "document.querySelector('.tinote-explorer')"
PAINTED = f"Number({ROOT}?.dataset.painted ?? 0)"

# Lines as a reader sees them: [[text, classes], ...] of the rows on the page, from the top. A pane that is scrolled in
# one frame is notified in the next one, and draws then what has come in sight.
ROWS = """async (selector) => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
    return [...document.querySelectorAll(selector + ' .row')]
        .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
        .map((row) => [row.querySelector('.code')?.textContent ?? '', row.className]);
}"""


def rows(page, pane: str) -> list[tuple[str, set[str]]]:
    """The lines on the page in a pane (".left", ".right" or ".source") with their classes."""
    return [(text, set(classes.split())) for text, classes in page.evaluate(ROWS, pane)]


def having(page, pane: str, *marks: str) -> list[str]:
    """The lines of a pane that have one of these classes."""
    return [text for text, classes in rows(page, pane) if classes & set(marks)]


def lit(page, pane: str) -> list[str]:
    """The lines of a pane that are lit."""
    return having(page, pane, "is-lit", "is-strong")


def current_line(page, pane: str, start: str) -> None:
    """Wait until the current line of a pane begins like this."""
    poll(
        lambda: [text.strip() for text in having(page, pane, "is-current")],
        lambda lines: len(lines) == 1 and lines[0].startswith(start),
    )


def selected_stage(page):
    """The name of the stage that is selected in the list."""
    return page.locator(".stage[aria-selected=true] .name")


def pointed(page, pane: str, text: str):
    """The code of the first line of a pane that contains `text`."""
    return page.locator(f"{pane} .row .code", has_text=text).first


@pytest.fixture
def gravity(notebook):
    page = notebook(GRAVITY)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    return page


@pytest.fixture
def alone(standalone):
    """The same explorer in a page of its own, for what needs neither a kernel nor a notebook around it."""
    linecache.cache["gravity.py"] = (len(GRAVITY), None, GRAVITY.splitlines(keepends=True), "gravity.py")
    names = {"__name__": "gravity"}
    exec(compile(GRAVITY, "gravity.py", "exec"), names)
    return standalone(names["explorer"])


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_click_on_the_source_lights_up_what_came_from_it(gravity):
    page = gravity.page
    for pane in (".left", ".right"):
        poll(lambda pane=pane: lit(page, pane), [])
    pointed(page, ".source", "r = x[i] - x[j]").click()
    page.mouse.move(0, 0)
    # The components of `r` in the kernel, computed again in its gradient; and what adds to the adjoint of `x`.
    poll(lambda: lit(page, ".source"), ["        r = x[i] - x[j]"])
    left = poll(lambda: lit(page, ".left"), two_subtractions)
    right = poll(lambda: lit(page, ".right"), two_subtractions)
    assert any("load @x" in text for text in left)
    assert all("sqrt" not in text for text in left + right)
    page.keyboard.press("Escape")
    for pane in (".left", ".right", ".source"):
        poll(lambda pane=pane: lit(page, pane), [])
    assert gravity.problems == []


def two_subtractions(lines: list[str]) -> bool:
    return sum(" = sub " in text for text in lines) == 2


def test_a_line_of_ir_lights_up_its_source_and_its_adjoints(alone):
    page = alone
    pointed(page, ".left", "sqrt").hover()
    poll(lambda: lit(page, ".source"), ["        U[None] += -1 / r.norm(1e-3)"])
    # The very expression is marked.
    marked = """() => {
        const code = document.querySelector('.source .is-strong .code');
        const probe = Object.assign(document.createElement('span'), { textContent: '0'.repeat(100) });
        code.append(probe);
        const width = probe.getBoundingClientRect().width / 100;
        probe.remove();
        const highlight = document.querySelector('.source .highlight').getBoundingClientRect();
        const start = code.getBoundingClientRect().left;
        return code.textContent.slice(
            Math.round((highlight.left - start) / width), Math.round((highlight.right - start) / width));
    }"""
    page.locator(".source .highlight").wait_for()
    poll(lambda: page.evaluate(marked), "r.norm(1e-3)")
    poll(lambda: having(page, ".right", "is-strong"), lambda lines: any("sqrt" in text for text in lines))
    expect(page.locator(".right .row.is-strong .adjoint")).not_to_have_count(0)


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_search_stays_in_the_explorer_and_its_page_is_written(gravity, chromium, tmp_path):
    page = gravity.page
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("/")
    page.keyboard.type("sqrt")
    hits_are(page, "sqrt")
    expect(page.locator(".jp-Cell")).to_have_count(1)
    saved = tmp_path / "explorer.html"
    assert gravity.python(f"print(explorer.save({str(saved)!r}))") == str(saved)
    alone = new_page(chromium, offline=True)
    alone.goto(saved.as_uri())
    pointed(alone, ".source", "r = x[i] - x[j]").click()
    poll(lambda: lit(alone, ".right"), two_subtractions)
    alone.context.close()
    assert gravity.problems == []


def hits_are(page, word: str) -> list[str]:
    """Wait until those lines on the right are hits that contain the word; these lines."""

    def right(lines: list[tuple[str, set[str]]]) -> bool:
        hits = ["is-hit" in classes for _, classes in lines]
        return any(hits) and hits == [word in text for text, _ in lines]

    return [text for text, classes in poll(lambda: rows(page, ".right"), right) if "is-hit" in classes]


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_the_keyboard_moves_through_stages_and_lines(gravity):
    page = gravity.page
    stages = page.get_by_role("listbox", name="Stages")
    stages.focus()
    expect(selected_stage(page)).to_have_text("reverse")
    page.keyboard.press("ArrowUp")
    expect(selected_stage(page)).not_to_have_text("reverse")
    poll(lambda: page.evaluate(ACTIVE_IS_SELECTED), True)
    page.keyboard.press("Home")
    expect(selected_stage(page)).to_have_text("syntax tree")
    page.keyboard.press("End")
    expect(selected_stage(page)).to_have_text("assembly")
    # LLVM runs now that somebody asks.
    expect(page.locator(".right .info")).to_contain_text("instructions")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # Holds this stage on the left.
    page.keyboard.press("ArrowDown")
    expect(page.locator(".left select")).to_have_value("1")
    # On to the lines: down, then Enter pins the line's source.
    page.locator(".right .lines").focus()

    def next_line() -> str:
        page.keyboard.press("ArrowDown")
        return "".join(lit(page, ".source"))

    poll(next_line, lambda source: "r.norm" in source)
    page.keyboard.press("Enter")
    page.locator(".right .lines").blur()
    poll(lambda: lit(page, ".source"), ["        U[None] += -1 / r.norm(1e-3)"])
    expect(page.locator(".foot .words")).to_have_text(re.compile("^Pinned line 11:"))
    # Keys stay in the explorer: the notebook has neither new cells nor another mode.
    expect(page.locator(".jp-Cell")).to_have_count(1)
    assert gravity.problems == []


def test_tab_visits_every_control_once(gravity):
    page = gravity.page
    page.get_by_role("radio", name="gradient").focus()
    focused = "() => document.activeElement.ariaLabel || document.activeElement.textContent"
    for name in (
        "gradient",
        "Search in all stages",
        "Compare",
        "Only differences",
        "Previous difference",
        "Next difference",
        "Copy link",
        "Full screen",
        "The list of stages",
        "Find a stage by its name or what it does",
        "Stages",
        "LLVM's own passes …",
        "[0-9]+ steps without change",
        "The source",
        "Source",
        "Stage on the left",
        "Copy",
        "Stage on the left",
        "Stage on the right",
        "Wrap",
        "Copy",
        "Stage on the right",
        "Width of the list of stages",
        "Height of the source",
        "Width of the left pane",
    ):
        poll(lambda: page.evaluate(focused), re.compile(name).fullmatch)
        page.keyboard.press("Tab")


def test_kernel_and_gradient_take_turns(alone):
    page = alone
    page.get_by_role("radio", name="kernel").click()
    page.wait_for_function(f"() => {ROOT}.dataset.shown.startsWith('0/')")
    expect(page.get_by_role("listbox")).not_to_contain_text("reverse", use_inner_text=True)
    expect(page.locator(".adjoint")).to_have_count(0)
    page.get_by_role("radio", name="gradient").click()
    page.wait_for_function(f"() => {ROOT}.dataset.shown.startsWith('1/')")
    expect(page.get_by_role("listbox")).to_contain_text("reverse", use_inner_text=True)
    expect(page.locator(".right .adjoint")).not_to_have_count(0)


def test_unchanged_steps_are_folded_away(alone):
    page = alone
    options = page.locator("[role=option].stage")
    before = poll(lambda: options.count(), bool)
    toggle = page.locator("button.unchanged")
    expect(toggle).to_have_text(re.compile("^[1-9]"))
    unchanged = "[role=listbox] [role=option].is-unchanged"
    expect(page.locator(unchanged)).to_have_count(0)
    folded = int(poll(lambda: toggle.inner_text(), bool).split()[0])
    toggle.click()
    expect(page.locator(unchanged)).to_have_count(folded)
    expect(options).to_have_count(before + folded)
    toggle.click()
    expect(options).to_have_count(before)


def test_it_opens_while_the_kernel_is_busy(notebook, lab):
    """What is shown first comes with the widget: nothing has to be asked for."""
    flag = lab.folder / "explorer_is_open"
    flag.unlink(missing_ok=True)
    page = notebook(GRAVITY, "import os, time\nwhile not os.path.exists('explorer_is_open'):\n    time.sleep(0.02)")
    page.run_all()
    page.wait(f"{PAINTED} >= 1")

    def lines(pane: str) -> set[str]:
        return {text for text, _ in rows(page.page, pane)}

    for pane in (".left", ".right"):
        shown = poll(lambda pane=pane: lines(pane), lambda texts: any("for parallel" in text for text in texts))
    # What it does not have, it asks for, and gets it afterwards.
    page.page.get_by_role("listbox", name="Stages").press("End")
    expect(page.page.locator(".pane.right.is-waiting")).to_have_count(1)
    flag.touch()
    page.wait(f"!{ROOT}.querySelector('.is-waiting') && {PAINTED} >= 2")
    poll(lambda: lines(".right"), lambda texts: len(texts) > 1 and texts & shown <= {""})
    assert page.problems == []


def test_five_thousand_operations_stay_fluid(notebook):
    """Forth over stages that have not been aligned yet, and back over those that have been: the best of either, since
    other work on the machine only ever makes a change slower.
    """
    page = notebook(SIZES)
    page.run_all()
    page.wait("[...document.querySelectorAll('.tinote-explorer')].filter((e) => e.dataset.painted >= 1).length === 2")
    page.wait_idle()
    for explorer in page.page.locator(".tinote-explorer").all():
        explorer.get_by_role("button", name="Compare").click()
    times = {"big": [], "small": []}
    for key in ["Home"] + ["ArrowDown"] * 3 + ["ArrowUp"] * 3:
        page.page.wait_for_timeout(300)  # The neighbours' lines arrive while nothing else happens.
        for index, size in enumerate(times):
            times[size].append(page.page.evaluate(TIMED_KEY, [index, key]))
    print(f"\nstage changes in ms, 5,000 and 100 operations: {[[round(t) for t in row] for row in times.values()]}")
    for changes in (slice(1, 4), slice(4, 7)):
        assert min(times["big"][changes]) < max(FLUID_MS, OF_SMALL * min(times["small"][changes]))
    # However long the stages, only what is in sight is on the page.
    right = page.page.locator(".tinote-explorer").first.locator(".right")
    poll(lambda: right.locator(".row").count(), lambda count: 0 < count < 120)
    poll(lambda: int(right.locator(".lines").get_attribute("aria-rowcount")), lambda count: count > 5000)
    # Far away lines come when they are scrolled to, in both panes of two stages.
    page.page.evaluate(TIMED_KEY, [0, "ArrowDown"])
    page.page.evaluate("() => { document.querySelector('.right .lines').scrollTop = 19 * 4000 }")
    page.wait("document.querySelector('.right .lines [aria-rowindex=\"4001\"]') !== null")
    page.wait("Math.abs(document.querySelector('.left .lines').scrollTop - 19 * 4000) < 2")


def test_the_page_of_its_own_works_without_a_kernel(standalone):
    hostile = 'x = "</script><script>document.title=`hacked`</script><!-- &lt;b&gt;"'
    explorer = Explorer("</title><b>name", [ExplorerView("kernel", lambda: parsed_stages(hostile))])
    page = standalone(explorer)
    expect(page).to_have_title("</title><b>name: IR explorer")
    expect(page.locator(".source .code").first).to_have_text(hostile)
    page.locator(".source .code").first.click()
    poll(lambda: lit(page, ".right"), bool)
    page.get_by_role("listbox").focus()
    page.keyboard.press("Home")
    expect(selected_stage(page)).to_have_text("front end")
    assert page.problems == []


def test_search_finds_and_walks(standalone):
    stages = parsed_stages("y = x * 0.5")
    page = standalone(Explorer("small", [ExplorerView("kernel", lambda: stages)]))
    page.keyboard.press("/")
    page.get_by_role("listbox").focus()
    page.keyboard.press("/")
    page.keyboard.type("mul")
    hits = hits_are(page, "mul")
    page.keyboard.press("Enter")
    poll(lambda: having(page, ".right", "is-current"), hits[:1])
    page.keyboard.press("Escape")
    poll(lambda: having(page, ".right", "is-hit"), [])


def test_llvms_own_passes_unfold_between_its_two_texts(gravity):
    page = gravity.page
    names = page.locator(".stage .name").all_text_contents
    before = poll(lambda: names(), bool)
    page.locator(".stage", has_text="assembly").click()
    page.get_by_role("option", name="LLVM's own passes …").click()
    after = poll(lambda: names(), lambda found: len(found) > len(before))
    at = after.index("LLVM IR")
    between = after[at + 1 : after.index("LLVM, optimised")]
    # A loop that runs in lanes already is left alone by LLVM's vectoriser, as with registers of 256 bits.
    chosen, made, reported = ("LoopVectorize", "vector.", "Runs several iterations")
    if chosen not in between:
        chosen, made, reported = ("InstCombine", "", "Replaces small patterns")
    assert {"SROA", chosen} <= set(between) and len(after) == len(before) + len(between)
    # What was selected is still selected, under another number.
    expect(selected_stage(page)).to_have_text("assembly")
    expect(page.get_by_role("option", name="LLVM's own passes …")).to_have_count(0)
    page.locator(".stage", has_text=chosen).first.click()
    poll(lambda: having(page, ".right", "is-new"), lambda lines: any(made in text for text in lines))
    expect(page.locator(".sentence")).to_have_text(re.compile(rf"^{chosen}[^A-Z]*{reported}"))
    # Found by name, and by what it does.
    page.get_by_role("searchbox", name="Find a stage").fill("dead code")
    poll(lambda: names(), lambda found: "eliminate_dead" in found and chosen not in found)
    page.keyboard.press("Escape")
    poll(lambda: names(), after)
    assert gravity.problems == []


def test_a_click_counts_though_the_list_is_drawn_anew_meanwhile(alone):
    """Counts and times of stages arrive while somebody presses one of them."""
    page = alone
    stage = page.locator(".stage:not([aria-selected=true])").first
    box = still_box(stage)
    name = poll(stage.locator(".name").text_content, bool)
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.evaluate("() => document.querySelector('.stage-filter').dispatchEvent(new Event('input'))")
    page.mouse.up()
    expect(selected_stage(page)).to_have_text(name)
    # What came meanwhile is shown then.
    page.mouse.down()
    page.get_by_role("searchbox", name="Find a stage").evaluate(
        "(filter) => { filter.value = 'no such stage'; filter.dispatchEvent(new Event('input')); }"
    )
    expect(page.locator(".stage").first).to_be_visible()
    page.mouse.up()
    expect(page.locator(".stage")).to_have_count(0)


def test_the_dividers_move_and_the_body_fits_a_laptop(gravity):
    page = gravity.page

    def size(selector: str) -> tuple[float, float]:
        box = page.locator(selector).bounding_box()
        return box["width"], box["height"]

    page.set_viewport_size({"width": 1280, "height": 720})
    _, body = poll(lambda: size(".tinote-explorer .body"), lambda found: found[1] <= 720 - 200)
    stages, _ = poll(lambda: size(".stages"), lambda found: abs(found[1] - body) < 2)
    divider = page.get_by_role("separator", name="Width of the list of stages")
    divider.focus()
    page.keyboard.press("ArrowRight")
    poll(lambda: size(".stages")[0], pytest.approx(stages + 16, abs=2))
    box = still_box(page.get_by_role("separator", name="Width of the left pane"))
    left = still_box(page.locator(".pane.left"))["width"]
    page.mouse.move(box["x"] + 4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 64, box["y"] + 50)
    page.mouse.up()
    poll(lambda: size(".pane.left")[0], pytest.approx(left + 60, abs=3))
    divider.dblclick()
    poll(lambda: size(".stages")[0], pytest.approx(stages, abs=2))
    assert gravity.problems == []


def test_a_gradient_offers_a_seed(gravity):
    page = gravity.page
    page.get_by_role("tab", name="Values").click()
    expect(page.get_by_role("textbox", name="Seed")).to_have_value("1")
    page.get_by_role("textbox", name="Iteration").fill("1 2")
    page.get_by_role("button", name="Observe").click()
    table = page.get_by_role("table", name="Observed values")
    values = table.locator("tr", has_text="adjoint").locator("td.value")
    expect(values.filter(has_text=re.compile(r"^-?[0-9.]*[1-9][0-9.]*$"))).not_to_have_count(0)
    assert gravity.problems == []


def shown(page) -> dict[str, str]:
    """What a page says that it shows, in the fragment of its address."""
    return dict(parse_qsl(page.evaluate("() => location.hash.slice(1)")))


def test_a_link_opens_a_page_as_it_was_shown(standalone, chromium):
    page = standalone(Explorer("small", [ExplorerView("kernel", lambda: parsed_stages("y = x * 0.5"))]))
    poll(lambda: shown(page), {})
    page.get_by_role("listbox", name="Stages").focus()
    page.keyboard.press("ArrowUp")
    page.get_by_role("tab", name="Data flow").click()
    page.locator(".right .row", has_text="= mul").locator(".mark").click()
    wanted = {
        "view": "kernel",
        "stage": "front end",
        "left": "none",
        "in": "right",
        "line": "5",
        "tab": "flow",
        "top": "",
    }
    poll(lambda: shown(page) | {"top": ""}, wanted)
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text } }")
    page.get_by_role("button", name="Copy link").click()
    link = poll(lambda: page.evaluate("() => window.copied"), bool)
    other = new_page(chromium)
    other.goto(link)
    other.wait_for_selector(".node.is-centre")
    current_line(other, ".right", "%b: f32 = mul")
    expect(selected_stage(other)).to_have_text("front end")
    # Another fragment in the same page.
    other.evaluate("() => { location.hash = 'stage=simplify+1:+fold&in=source&line=1' }")
    other.wait_for_function(f"() => {ROOT}.dataset.shown.endsWith('/2')")
    poll(lambda: lit(other, ".source"), ["y = x * 0.5"])
    expect(other.get_by_role("tabpanel")).to_have_count(0)
    other.context.close()
    assert page.problems == []


def test_a_cell_that_runs_again_keeps_what_is_shown(gravity):
    page = gravity.page
    page.get_by_role("radio", name="kernel").click()
    gravity.wait(f"{ROOT}.dataset.shown.startsWith('0/')")
    page.locator(".right select").select_option(label="front end")
    expect(selected_stage(page)).to_have_text("front end")
    pointed(page, ".source", "r = x[i] - x[j]").click()
    before = poll(lambda: lit(page, ".right"), bool)
    gravity.wait(f"{ROOT}.dataset.noted?.includes('line=10')")
    page.evaluate(f"() => {{ {ROOT}.dataset.old = 'yes' }}")
    gravity.run_all()
    gravity.wait(f"{PAINTED} >= 1 && !{ROOT}.dataset.old")
    expect(selected_stage(page)).to_have_text("front end")
    poll(lambda: lit(page, ".right"), before)
    expect(page.get_by_role("radio", name="kernel")).to_have_attribute("aria-checked", "true")
    assert gravity.problems == []
