"""Saved notebooks that play: what is opened without its kernel runs, in a frame that can do no harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

import tinote as ti
from tests.browser.harness import BOTH_FRONT_ENDS, Lab
from tests.browser.test_pages import Opened
from tests.browser.test_saved import KERNEL, NO_MODEL, SAVE, picture, red, reopened
from tests.browser.test_saved import stored as stored_output
from tests.browser.waiting import expect, poll, still_box
from tinote.cli.html_export import PageExporter
from tinote.lang.capture.portable import Portable, read_portable
from tinote.viz.notebook.front_end import HINT, VIEW_TYPE
from tinote.viz.pages.bundle import payload, unpacked
from tinote.viz.pages.stored import kept

__all__ = ["reopened"]

FIELDS = """\
import tinote as ti
ti.init()
x = ti.Vector.field(2, ti.f32, shape=60)
pull = ti.field(ti.f32, ())
@ti.kernel
def start():
    for i in x:
        x[i] = ti.Vector([ti.cos(0.1 * i), ti.sin(0.1 * i)]) * (0.2 + 0.01 * i)
@ti.kernel
def turn():
    for i in x:
        x[i] += 0.02 * ti.Vector([-x[i].y, x[i].x]) - pull[None] * x[i]
@ti.kernel
def size() -> ti.f32:
    found = 0.0
    for i in x:
        found += x[i].norm_sqr()
    return found
start()
view = ti.viz.Particles(x, turn, reset=start, bounds=((-1, 1), (-1, 1)), size=300, energy=size, label="wheel")
"""
SHOWN = FIELDS + "from ipywidgets import VBox\nVBox([view, ti.viz.slider(view, pull, 0, 0.1, value=0)])"
SCENE = FIELDS.rpartition("view =")[0] + (
    "scene = ti.viz.Scene(turn, size=240)\nheight = ti.Vector.field(3, ti.f32, shape=4)\n"
    "scene.particles(height, 0.2, color=0xe02020)\nscene"
)

PROGRAM = "[...document.querySelectorAll('.tinote-view')].every((view) => view.tinoteProgram)"
OUTPUT = ".tinote-output"
FRAME = f"{OUTPUT} iframe"
PICTURE = f"{OUTPUT} img"
LIGHT_INK = "rgb(227, 230, 234)"
"""In the dark, also where the system is not."""


def step_of(player: Any) -> int:
    return int(player.locator(".tinote-view").get_attribute("data-step") or -1)


def saved(page: Any, lab: Lab, views: int) -> list[dict[str, Any]]:
    """What the outputs of the file hold of views, once their kernel has made it and the page has saved."""
    page.run_all()
    page.wait_idle()
    page.wait(f"document.querySelectorAll('.tinote-view').length === {views} && {PROGRAM}")
    page.wait("Number(document.querySelector('.tinote-view').dataset.painted) >= 1")
    page.page.evaluate(SAVE)
    cells = nbformat.read(lab.folder / page.name, as_version=4).cells
    return [cell.outputs[-1]["data"][VIEW_TYPE] for cell in cells if cell.outputs]


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_saved_view_plays_without_its_kernel(notebook: Any, reopened: Any, lab: Lab, pictures: Any) -> None:
    page = notebook(SHOWN, SCENE)
    views = saved(page, lab, 2)
    assert [len(one["views"]) for one in views] == [1, 1]
    page.page.evaluate(f"() => {KERNEL}.shutdown()")
    page.wait("document.querySelector('.tinote-view').dataset.kernel === 'gone'")
    again = reopened(page.name)
    frames = again.page.locator(FRAME)
    player = again.page.frame_locator(FRAME).first
    poll(lambda: step_of(player), lambda step: step > 20)
    expect(again.page.locator(PICTURE).first).to_be_hidden()
    # It is as wide as the output, and as high as what it shows.
    heights = poll(lambda: frames.first.evaluate("(one) => [one.clientHeight, one.parentElement.clientHeight]"), any)
    assert 380 < heights[0] <= heights[1] + 1 < heights[0] + 40
    # Nothing of the page can be reached from there.
    expect(frames.first).to_have_attribute("sandbox", "allow-scripts")
    inside = frames.first.element_handle().content_frame()
    poll(lambda: inside.evaluate("() => self.origin"), "null")
    blocked = "async () => { try { await fetch('/api/contents'); return 'open' } catch { return 'shut' } }"
    poll(lambda: inside.evaluate(blocked), "shut")
    # Buttons, sliders and the theme do what they do in a live view.
    player.get_by_role("button", name="Pause").click()
    expect(player.locator(".tinote-view")).to_have_attribute("data-state", "paused")
    present = poll(lambda: step_of(player), lambda step: step > 20)
    player.get_by_label("Timeline", exact=True).press("ArrowLeft")
    poll(lambda: step_of(player), lambda step: 0 < step < present)
    player.get_by_role("button", name="Reset").click()
    poll(lambda: step_of(player), 0)
    expect(player.get_by_role("slider", name=re.compile("pull|value"))).to_have_count(1)
    again.page.evaluate("() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    expect(player.locator(".tinote-view")).to_have_class(re.compile("tinote-dark"))
    expect(player.locator("body")).to_have_css("color", LIGHT_INK)
    for width in (1280, 800):
        again.page.set_viewport_size({"width": width, "height": 900})
        again.page.screenshot(path=str(pictures.folder / f"plays_{width}.png"))
    reported = [one for one in again.problems if NO_MODEL not in one]
    assert all("api/contents" in one or "Failed to load resource" in one for one in reported), reported
    # A scene brings what draws it, once it comes into sight.
    again.page.locator(OUTPUT).nth(1).scroll_into_view_if_needed()
    scene = again.page.locator(OUTPUT).nth(1).locator("iframe").content_frame
    poll(lambda: step_of(scene), lambda step: step > 5)
    expect(scene.locator("body")).to_have_css("color", LIGHT_INK)  # It begins in the dark.
    # The cell makes it live.
    again.run_all()
    again.wait_idle()
    again.wait("Number(document.querySelector('.tinote-view')?.dataset.painted) >= 1")
    expect(again.page.locator(FRAME)).to_have_count(0)


@pytest.mark.parametrize("saving", ["first", "second"])
def test_two_tabs_on_a_notebook_keep_the_program(notebook: Any, reopened: Any, lab: Lab, saving: str) -> None:
    """The cell has run in the second one last, and either of them saves."""
    page = notebook(SHOWN)
    assert len(saved(page, lab, 1)[0]["views"]) == 1
    other = reopened(page.name)
    other.run_all()
    other.wait_idle()
    other.wait(f"document.querySelectorAll('.tinote-view').length === 1 && {PROGRAM}")
    other.wait("Number(document.querySelector('.tinote-view').dataset.painted) >= 1")
    saves = page if saving == "first" else other
    saves.page.evaluate(SAVE)
    output = stored_output(lab, saves)
    assert len(output["data"][VIEW_TYPE].get("views", [])) == 1 and np.ptp(picture(output)) > 100
    # The view goes on where its cell has run.
    other.page.locator(".tinote-view").get_by_role("button", name="Step").click()
    other.wait("document.querySelector('.tinote-view').dataset.step === '1'")


AHEAD = "[...document.querySelectorAll('.tinote-view')].every((view) => view.tinoteAhead)"
DISCS = """\
import tinote as ti
ti.init()
x = ti.Vector.field(2, ti.f32, shape=3)
@ti.kernel
def start():
    for i in x:
        x[i] = ti.Vector([0.1, 0.25 + 0.25 * i])
@ti.kernel
def move():
    for i in x:
        x[i].x += 0.01
start()
view = ti.viz.Particles(x, move, reset=start, radius=8, color=0xe02020, size=300)
"""


@pytest.mark.parametrize("shown", ["view", "VBox([view, ti.viz.slider(view, id, 0, 1, value=0)])"])
def test_a_view_that_nobody_has_played_leaves_the_picture_of_an_unattended_run(
    notebook: Any, lab: Lab, pictures: Any, shown: str
) -> None:
    """Sixty steps on, until somebody has played longer."""
    page = notebook(f"{DISCS}from ipywidgets import VBox\n{shown}")
    page.run_all()
    page.wait_idle()
    page.wait(f"document.querySelector('.tinote-view') && {AHEAD}")
    assert page.python("print(view.steps, round(x[0].x, 2))") == "0 0.1"

    def kept() -> float:
        found = picture(stored_output(lab, page))
        discs = red(found)
        assert discs.sum() > 2.5 * np.pi * 64
        return float(np.nonzero(discs)[1].mean() / 300)

    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.set_theme(theme)
        assert abs(kept() - 0.7) < 0.03
        saved_picture = picture(stored_output(lab, page)).astype(np.uint8)
        ground = np.median(saved_picture, axis=(0, 1))
        assert (ground.max() < 40) if theme.endswith("Dark") else (ground.min() > 250)
        name = f"ahead_{'box' if 'VBox' in shown else 'view'}_{theme[11:].lower()}.png"
        Image.fromarray(saved_picture).save(pictures.folder / name)
    page.page.locator(".tinote-view").get_by_role("button", name="Step").click()
    page.wait("document.querySelector('.tinote-view').dataset.step === '1'")
    page.settle()
    assert abs(kept() - 0.7) < 0.03
    page.python("view.advance(75)")
    page.python("view.refresh()")
    page.wait("document.querySelector('.tinote-view').dataset.step === '76'")
    page.settle()
    assert abs(kept() - 0.86) < 0.03
    assert page.problems == []


class Stored:
    """A view's program, and what it becomes where somebody tampers with it."""

    def __init__(self) -> None:
        ti.init(arch=ti.cpu)
        self.x = x = ti.Vector.field(2, ti.f32, shape=8)

        @ti.kernel
        def move():
            left = ti.cast(1e9 * x[0].y, ti.i64) * 1000000000
            number = 1
            while left > 0:
                number = (number * 1103515245 + 12345) & 1023
                left -= 1
            for i in x:
                x[i] += ti.Vector([0.01, 1e-12 * (number - 1)])

        self.view = ti.viz.Particles(x, move, bounds=((0, 1), (-1, 1)), size=200, energy=lambda: x[0].x)
        self.text = kept(self.view, 300_000).program
        assert self.text

    def changed(self, change: Any) -> str:
        """The same where `change` has changed the description, or the program."""
        found = unpacked(self.text)
        change(found)
        return payload(found)


def with_program(change: Any) -> Any:
    """A change of a view's program."""

    def apply(found: dict[str, Any]) -> None:
        program = read_portable(found["described"]["program"])
        memory = bytearray(program.memory)
        change(program.description, memory)
        found["described"]["program"] = Portable(program.description, program.module, bytes(memory)).encode()

    return apply


def endless(description: dict[str, Any], memory: bytearray) -> None:
    """Where the first particle is says how often a loop of the step goes round: for thirty years."""
    (field,) = description["fields"]
    at = field["address"] - description["memory"]["base"] + field["strides"][1]
    memory.extend(bytes(max(0, at + 4 - len(memory))))
    memory[at : at + 4] = np.float32(1.0).tobytes()


def huge(description: dict[str, Any], memory: bytearray) -> None:
    description["memory"]["end"] = 2**31 - 2**16


SCRIPT = "<img src=x onerror='parent.executed = 1'><script>parent.executed = 2</script>"


def write(lab: Lab, name: str, outputs: list[Any]) -> None:
    """A notebook that nobody trusts, with these views in its outputs."""
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    cells = []
    for views in outputs:
        data = {VIEW_TYPE: {"version": 1, "views": views}, "image/png": png, "text/plain": "view"}
        size = {"image/png": {"width": 300, "height": 300, "alt": "view"}}
        output = nbformat.v4.new_output("display_data", data, metadata=size)
        cells.append(nbformat.v4.new_code_cell("1", outputs=[output]))
    document = nbformat.v4.new_notebook(cells=cells)
    document.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(document, lab.folder / name)


@pytest.fixture(scope="module")
def stored() -> Stored:
    return Stored()


def test_in_a_notebook_that_is_not_trusted_somebody_has_to_ask(stored: Stored, reopened: Any, lab: Lab) -> None:
    write(lab, "untrusted.ipynb", [[stored.text]])
    again = reopened("untrusted.ipynb")
    button = again.page.get_by_role("button", name="▶ Play")
    expect(button).to_have_count(1)
    expect(again.page.locator(PICTURE)).to_have_attribute("alt", f"view; {HINT}")
    expect(again.page.locator(FRAME)).to_have_count(0)
    button.click()
    poll(lambda: step_of(again.page.frame_locator(FRAME).first), lambda step: step > 20)
    expect(again.page.locator(PICTURE)).to_be_hidden()
    assert [one for one in again.problems if NO_MODEL not in one] == []


def test_what_is_tampered_with_harms_nothing(stored: Stored, reopened: Any, lab: Lab) -> None:
    def scripted(found: dict[str, Any]) -> None:
        found["name"] = SCRIPT
        traits = found["described"]["traits"]
        traits |= {
            "label": SCRIPT,
            "chart": {**traits["chart"], "label": SCRIPT, "x_label": SCRIPT},
            "error_card": SCRIPT,
            "series": [SCRIPT],
        }

    def wide(found: dict[str, Any]) -> None:
        found["described"]["traits"]["width"] = 10**9

    runs = [stored.changed(scripted), stored.changed(with_program(endless)), stored.changed(with_program(huge))]
    pictures = [
        [stored.changed(wide)],
        ["damaged"],
        [stored.changed(lambda found: found.update(kind="constructor"))],
        [stored.text] * 17,
        [1],
        SCRIPT,
        {},
    ]
    write(lab, "tampered_programs.ipynb", [*[[one] for one in runs], *pictures])
    again = reopened("tampered_programs.ipynb")
    parts = again.page.locator(OUTPUT)
    expect(parts).to_have_count(len(runs) + len(pictures))
    buttons = again.page.get_by_role("button", name="▶ Play")
    expect(buttons).to_have_count(len(runs) + 3)  # The others are seen at once to be no views.
    for at in range(len(runs) + 3):
        button = parts.nth(at).get_by_role("button", name="▶ Play")
        button.scroll_into_view_if_needed()
        still_box(button)
        button.click()
        # What it shows moves those below it: a click there meanwhile, or right after scrolling, would miss.
        expect(parts.nth(at)).to_have_attribute("data-player", re.compile("running|failed"))
    # Texts are texts.
    first = parts.nth(0).locator("iframe").content_frame
    expect(first.locator(".tinote-legend")).to_contain_text("<script>")
    poll(lambda: step_of(first), lambda step: step > 5)
    # A step without an end is ended, and the notebook answers meanwhile.
    parts.nth(1).scroll_into_view_if_needed()
    second = parts.nth(1).locator("iframe").content_frame
    expect(second.get_by_role("alert")).to_contain_text("took too long")
    parts.nth(2).scroll_into_view_if_needed()
    third = parts.nth(2).locator("iframe").content_frame
    expect(third.get_by_role("alert")).to_contain_text("too much memory")
    for at in range(len(runs), len(runs) + len(pictures)):
        expect(parts.nth(at).locator("img")).to_be_visible()
        expect(parts.nth(at).locator("iframe")).to_have_count(0)
    poll(lambda: again.page.evaluate("() => window.executed ?? null"), None)
    slowest = again.page.evaluate(
        """async () => {
            let [slowest, last] = [0, performance.now()];
            for (let turn = 0; turn < 60; turn += 1) {
                await new Promise((go) => setTimeout(go, 5));
                slowest = Math.max(slowest, performance.now() - last);
                last = performance.now();
            }
            return slowest;
        }"""
    )
    assert slowest < 3000


def test_a_page_of_the_notebook_runs(stored: Stored, chromium: Any, lab: Lab, tmp_path: Path) -> None:
    """`nbconvert --to tinote_page`: of outputs that hold how; what is damaged is a picture."""
    write(lab, "exported.ipynb", [[stored.text], ["damaged"], [stored.changed(with_program(huge))]])
    exporter = PageExporter()
    text, _ = exporter.from_filename(str(lab.folder / "exported.ipynb"))
    file = tmp_path / "exported.html"
    file.write_text(text, "utf-8")
    assert [one.runs for one in exporter.shown] == [True, True] and "data:image/png" in text
    page = Opened(chromium, file)
    page.page.wait_for_function("() => Number(document.querySelector('.tinote-view')?.dataset.painted) >= 1")
    page.run(50)
    _, numbers = page.field("field0")
    assert np.allclose(numbers.reshape(8, 2), [[0.5, 0.0]] * 8, atol=1e-5)
    assert [problem for problem in page.problems if "memory" not in problem] == []
    page.page.context.close()
