"""The rule view in JupyterLab and as a page of its own: it comes by itself, keys move through it, all is legible."""

from __future__ import annotations

import linecache

import pytest

import tinote as ti
from tests.browser.harness import new_page
from tests.browser.test_explorer import CONTRAST
from tinote.viz.rules import RuleView

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
PARTS = (
    ".title, .option b, .option span, .reason, h3, .number, .code, .note, .gap, [class^=word-], .when, .who, .does, "
    ".count, .listed, .fix b, .fix p, .edit del, .edit ins"
)

# Texts that do not fit where they stand; source and edits scroll.
CLIPPED = """() => {
    const parts = '.title, .option b, .option span, .reason, h3, .who, .does, .count, .listed, .fix b, .fix p';
    return [...document.querySelectorAll(`.tinote-rules :is(${parts})`)]
        .filter((node) => getComputedStyle(node).display !== 'inline' && node.scrollWidth > node.clientWidth + 1)
        .map((node) => node.textContent);
}"""


@pytest.mark.parametrize(
    ("notebook", "width", "theme"),
    [
        ("lab", 1280, "JupyterLab Light"),
        ("lab", 1280, "JupyterLab Dark"),
        ("lab", 800, "JupyterLab Light"),
        ("lab", 800, "JupyterLab Dark"),
        ("notebook", 800, "JupyterLab Dark"),
    ],
    indirect=["notebook"],
)
def test_it_comes_by_itself_and_is_legible(notebook, theme, width):
    page = notebook(BROKEN, width=width)
    page.set_theme(theme)
    page.run_all()
    page.wait(f"document.querySelector('{ROOT}')?.dataset.shown === '0'")
    page.next_frame()
    assert "access rule" in page.page.locator(".jp-RenderedText").first.inner_text()
    assert page.page.locator(f"{ROOT} .row.is-read .code").first.inner_text() == "        loss[None] += x[i, j] ** 2"
    assert page.page.evaluate(CLIPPED) == []
    ratios = page.page.evaluate(CONTRAST.replace(".tinote-explorer", ROOT).replace("parts = '", f"parts = '{PARTS}, "))
    assert len(ratios) > 10 and {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    for text in page.page.locator(f"{ROOT} .text").all():
        assert text.evaluate("(text) => text.scrollWidth <= text.clientWidth"), "the notes fit"
    frame = page.page.locator(f"{ROOT} .frame").bounding_box()
    assert frame["x"] >= 0 and frame["x"] + frame["width"] <= width
    assert page.problems == []


@pytest.fixture
def standalone(chromium, tmp_path):
    """The page of two findings, opened from disk."""
    linecache.cache["broken.py"] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "broken.py")
    names = {"__name__": "broken"}
    exec(compile(PROGRAM, "broken.py", "exec"), names)
    with ti.ad.Tape(names["loss"], validation="collect") as tape:
        names["launch"]()
    page = new_page(chromium, viewport={"width": 1280, "height": 860})
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith("file:") else page.problems.append(request.url))
    page.goto(RuleView(tape.violations).save(tmp_path / "rules.html").as_uri())
    page.wait_for_selector(f"{ROOT}[data-shown]")
    yield page
    page.context.close()


def test_the_keyboard_moves_through_findings_and_elements(standalone):
    page = standalone
    findings = page.get_by_role("listbox", name="Violations")
    assert [text.split("\n")[0] for text in findings.get_by_role("option").all_inner_texts()] == [
        "x[6, 0]",
        "loss[None]",
    ]
    findings.focus()
    page.keyboard.press("End")
    selected = (
        "() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).ariaSelected"
    )
    assert page.evaluate(selected) == "true"
    assert page.locator(".reason").inner_text().startswith("'loss[None]' is written again by launch 3, 'change'")
    assert page.locator(".fixes ins").inner_text() == "loss[None] += 0.0"
    page.keyboard.press("p")
    assert page.get_by_role("region", name="Violation of rule 1: x[6, 0]").count() == 1
    page.get_by_role("img", name="Map of x: 8 of 96 elements").focus()
    page.keyboard.press("ArrowDown")
    said = page.locator(".listed")
    assert said.inner_text() == "x[6, 0]: concerned"
    page.keyboard.press("ArrowUp")
    assert said.inner_text() == "x[5, 0]: not concerned"
    page.keyboard.press("Escape")
    assert said.inner_text().startswith("x[6,\N{NO-BREAK SPACE}0]")
    assert page.problems == []


def test_the_map_answers_the_pointer(standalone):
    page = standalone
    box = page.locator(".map").bounding_box()
    for row, column, answer in ((7, 3, "concerned"), (7, 4, "not concerned"), (0, 11, "not concerned")):
        page.mouse.move(box["x"] + (column + 0.5) * box["width"] / 12, box["y"] + (row + 0.5) * box["height"] / 8)
        assert page.locator(".listed").inner_text() == f"x[{row}, {column}]: {answer}"
    page.mouse.move(0, 0)
    assert page.locator(".listed").inner_text().startswith("x[6,\N{NO-BREAK SPACE}0]")
    # What is red is what was changed.
    path = page.locator(".map .level").bounding_box()
    assert abs(path["width"] / box["width"] - 4 / 12) < 0.02 and abs(path["height"] / box["height"] - 2 / 8) < 0.02
    assert page.problems == []


def test_tab_visits_what_can_be_used(standalone):
    page = standalone
    page.get_by_role("button", name="Previous violation").focus()
    visited = []
    for _ in range(6):
        visited.append(page.evaluate("() => document.activeElement.ariaLabel ?? ''").split(":")[0].split(",")[0])
        page.keyboard.press("Tab")
    assert visited == ["Previous violation", "Next violation", "Violations", "Source", "Map of x", visited[5]]
    assert visited[5].startswith("Edit in ")
