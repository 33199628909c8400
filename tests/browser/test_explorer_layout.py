"""The explorer's layout and its search in a browser: what folds away, wraps and stays in place, what is found where."""

from __future__ import annotations

import re

import pytest

import tinote as ti
from tests.browser.looks import unreadable
from tests.browser.test_explorer import current_line, having, rows, selected_stage
from tests.browser.waiting import expect, poll, still_box
from tests.viz.explored import parsed_stages
from tinote.viz.explorer.widget import Explorer, ExplorerView, explore

COMPARED = {"stage": "simplify 1: fold"}
"""The stage that `parsed_stages` ends with, next to the one before it."""


@pytest.fixture
def kernel():
    ti.init()
    x = ti.field(ti.f32, shape=64)

    @ti.kernel
    def shrink():
        for i in x:
            x[i] = 1.04 * x[i] - ti.exp(x[i]) * 0.37

    shrink()
    return shrink


def small(standalone, state: dict[str, str] | None = None):
    return standalone(Explorer("small", [ExplorerView("kernel", lambda: parsed_stages("y = x * 0.5"))], state=state))


def box_of(page, selector: str) -> dict[str, float]:
    return still_box(page.locator(selector))


def test_it_opens_on_the_source_beside_the_final_stage(standalone, kernel):
    page = standalone(explore(kernel))
    source, right = box_of(page, ".source"), box_of(page, ".pane.right")
    assert source["x"] + source["width"] <= right["x"] + 1 and source["height"] > 400
    expect(page.locator(".pane.left")).to_be_hidden()
    last = page.locator(".stage", has=page.locator(".kind.is-square")).locator(".name")
    names = poll(lambda: last.all_text_contents(), bool)
    final = [name for name in names if not name.startswith("LLVM")][-1]
    expect(selected_stage(page)).to_have_text(final)
    expect(page.get_by_role("button", name="Only differences")).to_be_hidden()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".pane.left")).to_be_visible()
    source, right = box_of(page, ".source"), box_of(page, ".pane.right")
    assert source["y"] + source["height"] <= right["y"] + 1
    page.locator(".right .lines").focus()
    page.keyboard.press("c")
    expect(page.locator(".pane.left")).to_be_hidden()
    poll(lambda: unreadable(page), [])
    assert page.problems == []


def test_panes_fold_away_and_dividers_move_in_both_directions(standalone):
    page = small(standalone, COMPARED)
    stages, source = box_of(page, ".stages"), box_of(page, ".source")
    divider = page.get_by_role("separator", name="Height of the source")
    expect(divider).to_have_attribute("aria-orientation", "horizontal")
    divider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    poll(lambda: box_of(page, ".source")["height"], pytest.approx(source["height"] + 4 * 19, abs=4))
    place = still_box(divider)
    page.mouse.move(place["x"] + 200, place["y"] + 3)
    page.mouse.down()
    page.mouse.move(place["x"] + 200, place["y"] - 20)
    page.mouse.up()
    poll(lambda: box_of(page, ".source")["height"], pytest.approx(source["height"] + 4 * 19 - 23, abs=5))
    divider.dblclick()
    poll(lambda: box_of(page, ".source")["height"], pytest.approx(source["height"], abs=2))
    pane = box_of(page, ".pane.right")["width"]
    fold = page.get_by_role("button", name="The list of stages")
    expect(fold).to_have_attribute("aria-expanded", "true")
    fold.click()
    poll(lambda: box_of(page, ".stages")["width"], lambda width: width < 40)
    poll(lambda: box_of(page, ".pane.right")["width"], lambda width: width > pane + 100)
    page.get_by_role("button", name="The source").click()
    poll(lambda: box_of(page, ".source")["height"], lambda height: height < 40)
    # A link opens it like that.
    page.wait_for_function("() => location.hash.includes('hidden=stages-source')")
    page.reload()
    page.wait_for_selector("main[data-shown]")
    poll(lambda: box_of(page, ".stages")["width"], lambda width: width < 40)
    page.get_by_role("button", name="The list of stages").click()
    poll(lambda: box_of(page, ".stages")["width"], pytest.approx(stages["width"], abs=2))
    assert page.problems == []


def test_a_divider_folds_a_pane_at_its_end_and_brings_it_back(standalone):
    page = small(standalone, COMPARED)
    stages, source = box_of(page, ".stages"), box_of(page, ".source")

    def drag(name: str, right: float, down: float) -> None:
        place = still_box(page.get_by_role("separator", name=name))
        x, y = place["x"] + min(place["width"] / 2, 100), place["y"] + place["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + right, y + down, steps=4)
        page.mouse.up()

    drag("Width of the list of stages", 30 - stages["width"], 0)
    fold = page.get_by_role("button", name="The list of stages")
    expect(fold).to_have_attribute("aria-expanded", "false")
    poll(lambda: box_of(page, ".stages")["width"], lambda width: width < 40)
    drag("Width of the list of stages", 200, 0)
    expect(fold).to_have_attribute("aria-expanded", "true")
    poll(lambda: box_of(page, ".stages")["width"], pytest.approx(229, abs=8))
    drag("Height of the source", 0, 20 - source["height"])
    expect(page.get_by_role("button", name="The source")).to_have_attribute("aria-expanded", "false")
    line = page.get_by_role("separator", name="Height of the source")
    line.focus()
    page.keyboard.press("Enter")
    poll(lambda: box_of(page, ".source")["height"], pytest.approx(source["height"], abs=2))
    page.keyboard.press("Enter")
    poll(lambda: box_of(page, ".source")["height"], lambda height: height < 40)
    page.keyboard.press("ArrowDown")
    poll(lambda: box_of(page, ".source")["height"], pytest.approx(source["height"], abs=2))
    # Alone, the source folds to the side.
    page.get_by_role("button", name="Compare").click()
    drag("Width of the left pane", -700, 0)
    poll(lambda: box_of(page, ".source")["width"], lambda width: width < 40)
    page.wait_for_function("() => location.hash.includes('hidden=source')")
    drag("Width of the left pane", 400, 0)
    poll(lambda: box_of(page, ".source")["width"], lambda width: width > 200)
    assert page.problems == []


def test_it_can_be_read_and_hit_in_every_look(standalone, kernel, pictures):
    page = standalone(explore(kernel))
    pictures.of_page(page, "explorer")
    page.get_by_role("tab", name="Tasks").click()
    expect(page.locator(".panel tbody tr")).to_have_count(1)
    pictures.of_page(page, "explorer_tasks")


def test_the_margin_stays_and_lines_wrap(standalone, kernel):
    page = standalone(explore(kernel, state="stage=LLVM+IR"), viewport={"width": 800, "height": 860})
    lines = page.locator(".right .lines")
    tag = page.locator(".right .row .tag").first
    place = still_box(tag)["x"]
    code = still_box(page.locator(".right .row .code").first)["x"]
    lines.evaluate("(lines) => { lines.scrollLeft = 60 }")
    poll(lambda: still_box(page.locator(".right .row .code").first)["x"], pytest.approx(code - 60, abs=1))
    assert still_box(tag)["x"] == pytest.approx(place, abs=1)
    before = poll(lambda: [text for text, _ in rows(page, ".right")][:5], lambda texts: len(texts) == 5)
    page.get_by_role("button", name="Wrap").click()
    poll(lambda: lines.evaluate("(lines) => lines.scrollWidth <= lines.clientWidth"), True)
    # Every row has as much room as its text takes, and no more; the next one begins below it.
    apart = """(lines) => [...lines.querySelectorAll('.row')]
        .map((row) => [row.querySelector('.code')?.getBoundingClientRect().height ?? 19, row.offsetHeight])"""
    found = poll(lambda: lines.evaluate(apart), lambda heights: any(row > 19 for _, row in heights))
    assert all(text == pytest.approx(row, abs=1) for text, row in found), found
    poll(lambda: [text for text, _ in rows(page, ".right")][:5], before)
    # The second line of a wrapped row belongs to it.
    long = (
        page.locator(".right .row")
        .filter(has=page.locator(".code"))
        .nth(next(n for n, (_, height) in enumerate(found) if height > 19))
    )
    long.click(position={"x": 90, "y": 28})
    expect(long).to_have_class(re.compile("is-current"))
    assert page.problems == []


def test_a_search_goes_through_all_stages(standalone):
    page = small(standalone)
    page.keyboard.press("Tab")
    search = page.get_by_role("searchbox", name="Search in all stages")
    search.fill("add")
    count = page.locator(".found")
    expect(count).to_have_text("1, in 1 stage")
    search.fill("%b")
    expect(count).to_have_text("4, in 2 stages")
    hits = page.locator(".stage .hits")
    expect(hits).to_have_text(["2", "2"])
    search.press("Enter")
    expect(count).to_have_text("3 of 4, in 2 stages")
    search.press("Shift+Enter")
    expect(count).to_have_text("2 of 4, in 2 stages")
    expect(selected_stage(page)).to_have_text("front end")
    current_line(page, ".right", "%c: f32 = add %b")
    search.press("Enter")
    expect(selected_stage(page)).to_have_text("fold")
    search.fill("nothing at all")
    expect(count).to_have_text("none")
    search.press("Escape")
    expect(count).to_have_text("")
    expect(hits).to_have_count(0)
    assert page.problems == []


def test_what_has_changed_within_a_line_is_marked(standalone):
    page = small(standalone, COMPARED)
    poll(
        lambda: having(page, ".right", "is-changed"),
        lambda lines: [line.strip() for line in lines] == ["store @x[%i], %b"],
    )
    expect(page.locator(".right .is-different")).to_have_text(["%b"])
    expect(page.locator(".left .is-different")).to_have_text(["%c"])
    # The parts are those of the words that are coloured, which are names.
    expect(page.locator(".right [data-name='%b'] .is-different")).to_have_count(1)


def test_instructions_and_constants_explain_themselves(standalone, kernel):
    page = standalone(explore(kernel, state="left=none&stage=assembly"))
    page.locator(".right .lines").evaluate("(lines) => { lines.scrollTop = 0 }")
    poll(lambda: rows(page, ".right"), lambda lines: any(re.search(r"0x3f\w{6} +# [01]\.", text) for text, _ in lines))
    expect(page.get_by_role("searchbox", name="Search in all stages")).to_be_visible()
    page.get_by_role("searchbox", name="Search in all stages").fill("mul")
    page.get_by_role("searchbox", name="Search in all stages").press("Enter")
    multiply = page.locator(".right .row.is-current .code")
    multiply.locator(".word-key").hover()
    expect(multiply).to_have_attribute("title", re.compile("^a · b"))
    expect(page.locator(".foot .words")).to_have_text(re.compile(r"mul\w*: a · b"))
    page.get_by_role("searchbox", name="Search in all stages").press("Escape")
    page.locator(".right .lines").evaluate("(lines) => { lines.scrollTop = 0 }")

    def labels() -> list[str]:
        return [text for text, _ in rows(page, ".right") if re.match(r"\.L|\s+\.", text)]

    poll(labels, bool)
    page.get_by_role("button", name="No labels").click()
    poll(labels, [])
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text } }")
    page.get_by_role("group", name="Stage on the right").get_by_role("button", name="Copy").click()
    copied = poll(lambda: page.evaluate("() => window.copied"), bool)
    assert copied.count("\n") > 40 and "ret" in copied and ".L" in copied
    page.locator(".stage", has_text="LLVM IR").click()
    page.get_by_role("searchbox", name="Search in all stages").fill("0x3ff")
    page.get_by_role("searchbox", name="Search in all stages").press("Enter")
    number = page.locator(".right .row.is-current .code")
    number.locator(".word-number", has_text="0x3FF").first.hover()
    expect(number).to_have_attribute("title", re.compile(r"^[\d.]+ as f32$"))
    expect(page.get_by_role("button", name="No labels")).to_be_hidden()
    assert page.problems == []
