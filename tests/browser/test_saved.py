"""What a saved notebook shows that is opened without its kernel, the pictures seen last; and what a view says of a
kernel that is busy, out of reach or gone.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter, MarkdownExporter
from PIL import Image

from tests.browser.harness import BOTH_FRONT_ENDS, FRONT_ENDS, Lab, Page, patient, wait_ready
from tests.browser.waiting import expect, poll
from tinote.viz.draw.pictures import CAPTION_HEIGHT
from tinote.viz.notebook.front_end import HINT, VIEW_TYPE

WIDGET = "application/vnd.jupyter.widget-view+json"

MOVING = """\
import numpy as np
import tinote as ti
x = np.random.default_rng(0).random((60, 2))
def step():
    x[:] = (x + [0.003, 0.005]) % 1.0
view = ti.viz.Particles(x, step, radius=6, color=0xe02020, size=300, energy=lambda: float(x.mean()))
"""
SHOWN = MOVING + "view"

EVERY_KIND = [
    f"""\
%load_ext tinote
{MOVING}ti.init(debug=True)
a = ti.field(ti.f32, 8, needs_grad=True)
loss = ti.field(ti.f32, (), needs_grad=True)
@ti.kernel
def total():
    for i in a:
        loss[None] += a[i] ** 2
@ti.kernel
def change():
    for i in a:
        a[i] = 1.0
view""",
    "ti.viz.Image(np.arange(400.0).reshape(20, 20), lambda: None, size=200)",
    "ti.viz.Plot({'value': lambda: 1.0}, lambda: None)",
    "from ipywidgets import VBox\nVBox([ti.viz.Image(np.eye(4), size=120), ti.viz.slider(view, print, 0, 2, value=1)])",
    "ti.viz.slider(view, lambda value: None, 0, 5, value=2, label='alone')",
    "ti.viz.explore(total)",
    "with ti.ad.Tape(loss, validation='collect') as tape:\n    total()\n    change()\nti.viz.violations(tape)",
    """\
gui = ti.GUI("window", res=200)
for _ in range(10):
    gui.circle((0.5, 0.5), color=0xe02020, radius=30)
    gui.show()""",
]

VIEW = "document.querySelector('.tinote-view')"
PAINTED = f"Number({VIEW}?.dataset.painted ?? 0)"
STAGE = ".tinote-view canvas.tinote-stage"
NOTICE = ".tinote-view .tinote-notice"
GONE = "kernel gone: run the cell again"
STILL = ".jp-OutputArea-output img"

NO_MODEL = "widget model not found"
"""What ipywidgets writes to the console of a page when a model is gone."""

SAVE = "async () => { await window.jupyterapp.commands.execute('docmanager:save') }"
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


@pytest.fixture
def reopened(lab: Lab, reader: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`reopened(name)`: a notebook of the lab's folder in a browser in which it was not written, in the front end of
    the test.
    """
    pages: list[Page] = []
    callspec = getattr(request.node, "callspec", None)
    front_end = FRONT_ENDS[callspec.params.get("notebook", "lab") if callspec else "lab"]

    def open_again(name: str) -> Page:
        found = Page(patient(reader.new_page()), name)
        pages.append(found)
        found.page.on("pageerror", found.note_error)
        found.page.on("console", found.note_message)
        found.page.goto(f"{lab.url}/{front_end.format(name=name)}", wait_until="domcontentloaded")
        wait_ready(found.page)
        return found

    yield open_again
    for page in pages:
        page.close()


def stored(lab: Lab, page: Page, cell: int = 0) -> dict[str, Any]:
    """The last output of a cell in the file, once that is saved."""
    page.page.evaluate(SAVE)
    return nbformat.read(lab.folder / page.name, as_version=4).cells[cell].outputs[-1]


def picture(output: dict[str, Any]) -> np.ndarray:
    """The picture in an output: (rows, columns, 3), int."""
    shown = Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"])))
    return np.asarray(shown.convert("RGB")).astype(int)


def red(pixels: np.ndarray) -> np.ndarray:
    return (pixels[:, :, 0] > 180) & (pixels[:, :, 1] < 90) & (pixels[:, :, 2] < 90)


def button(page: Page, name: str) -> Any:
    return page.page.locator(".tinote-view").get_by_role("button", name=name)


def play_and_pause(page: Page) -> None:
    start = int(page.page.evaluate(PAINTED))
    button(page, "Play").click()
    page.wait(f"{PAINTED} > {start + 15}")
    button(page, "Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    page.settle()


def without_model(page: Page) -> list[str]:
    """The page's problems, but for what ipywidgets says of models that are gone."""
    return [problem for problem in page.problems if NO_MODEL not in problem]


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_what_was_seen_last_stays_when_the_kernel_is_gone(notebook, reopened, lab, request):
    page = notebook(SHOWN)
    name, cycles = page.name, request.config.getoption("--save-cycles")
    for cycle in range(cycles):
        page.run_all()
        page.wait_idle()
        page.wait(f"{PAINTED} >= 1 && {VIEW}.dataset.step === '0'")
        play_and_pause(page)
        seen = page.canvas(STAGE)[:, :, :3]
        kept = stored(lab, page)
        assert {VIEW_TYPE, WIDGET, "image/png", "text/plain"} == set(kept["data"])
        # The stage, at the same size and place but for a margin; where it was at first is another place.
        drawn = red(picture(kept))
        assert abs(int(drawn.sum()) - int(red(seen).sum())) < 0.1 * red(seen).sum()
        assert picture(kept).shape[1] < 400
        assert drawn[:-CAPTION_HEIGHT].any() and picture(kept)[-CAPTION_HEIGHT:].min() < 160
        page.page.evaluate(f"() => {KERNEL}.shutdown()")
        page.wait(f"{VIEW}.dataset.kernel === 'gone'")
        if cycle:
            page.close()
        again = reopened(name)
        image = again.page.locator(STILL)
        image.wait_for()
        expect(image).to_have_attribute("alt", f"live view of particles; {HINT}")
        expect(image).to_have_attribute("src", f"data:image/png;base64,{kept['data']['image/png'].strip()}")
        again.wait("document.querySelector('.tinote-output').dataset.live === 'false'")
        # No word of a missing model.
        expect(again.page.locator(".tinote-output")).to_have_text("", use_inner_text=True)
        expect(again.page.locator(".tinote-view")).to_have_count(0)
        assert without_model(again) == []
        page = again
    if "/lab/" in page.page.url:  # What is stored is the same in both.
        converted_with_the_picture(lab.folder / name)
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1 && document.querySelector('.tinote-output').dataset.live === 'true'")


def converted_with_the_picture(notebook: Path) -> None:
    for exporter, mark in ((HTMLExporter(), "data:image/png;base64,"), (MarkdownExporter(), ".png)")):
        text, _ = exporter.from_filename(str(notebook))
        assert mark in text and "model_id" not in text


def test_every_kind_of_view_leaves_its_picture(notebook, reopened, lab, pictures):
    page = notebook(*EVERY_KIND)
    page.run_all()
    page.wait_idle()
    page.wait("[...document.querySelectorAll('.tinote-view')].every((view) => Number(view.dataset.painted) >= 1)")
    page.page.evaluate(SAVE)
    name = page.name
    page.page.evaluate(f"() => {KERNEL}.shutdown()")
    page.wait(f"{VIEW}.dataset.kernel === 'gone'")
    again = reopened(name)
    cells = again.page.locator(".jp-CodeCell")
    for number, source in enumerate(EVERY_KIND):
        image = cells.nth(number).locator(STILL)
        expect(image, source).to_have_count(1)
        poll(lambda image=image: image.evaluate("(image) => image.complete && image.naturalWidth > 50"), True)
        shown = cells.nth(number).locator(".jp-OutputArea-output").last
        expect(shown, source).not_to_have_text(re.compile("Error displaying|Loading"), use_inner_text=True)
    assert without_model(again) == []
    again.page.locator(".jp-Cell-inputWrapper").evaluate_all("(all) => all.forEach((one) => one.remove())")
    pictures.of_notebook(again, "saved", 3600, least=0)


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_picture_is_stored_at_a_pause_and_when_the_page_saves(notebook, lab):
    page = notebook(SHOWN)
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1")
    in_model = """() => window.jupyterapp.shell.currentWidget.content.model.cells.get(0).outputs.get(0)
        .toJSON().data['image/png']"""
    first = page.page.evaluate(in_model)
    play_and_pause(page)
    paused = poll(lambda: page.page.evaluate(in_model), lambda found: found != first)
    painted = int(page.page.evaluate(PAINTED))
    button(page, "Play").click()
    page.wait(f"{PAINTED} > {painted + 15}")
    playing = stored(lab, page)["data"]["image/png"].strip()
    assert playing != paused.strip()
    # The live view has stayed as it was, and goes on.
    expect(page.page.locator(".tinote-view")).to_have_count(1)
    steps = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {steps + 10}")
    # Out of sight, what was seen last is what is stored.
    page.python("view.pause()")
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    assert page.problems == []


COLORED = """\
import numpy as np
import tinote as ti
u = np.full((20, 20), 0.5)
view = ti.viz.Image(u, lambda: None, cmap="coolwarm", limits=(0, 1), size=300, color_label="u")
view"""


@pytest.mark.parametrize("width", [1280, 520])
def test_a_stored_picture_is_complete_and_of_its_own_size(notebook, lab, pictures, width):
    page = notebook(COLORED, width=width)
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.set_theme(theme)
        kept = picture(stored(lab, page))
        Image.fromarray(kept.astype(np.uint8)).save(pictures.folder / f"stored_{width}_{theme[11:].lower()}.png")
        assert 300 <= kept.shape[1] <= 320
        # The ends of the map, which the stage does not have, stand in the bar below it, and no slider does.
        below = kept[308:]
        bar = [np.abs(below - ink).max(axis=2).min(axis=1) < 12 for ink in ([0x3B, 0x4C, 0xC0], [0xB4, 0x04, 0x26])]
        assert (bar[0] & bar[1]).sum() >= 5
        assert len(below) < 110, "the bar, a line of text and the hint"
    assert page.problems == []


CODE_VIEWS = f"""\
{EVERY_KIND[0].removesuffix("view")}
ti.viz.explore(total)"""


def test_what_was_chosen_in_a_view_of_code_is_stored(notebook, reopened, lab, pictures):
    """The explorer and the rule view: the first picture until somebody uses them, then what is seen."""
    page = notebook(CODE_VIEWS, EVERY_KIND[6])
    page.run_all()
    page.wait_idle()
    page.wait("document.querySelector('.tinote-explorer .stage')")
    page.page.locator(".tinote-rules").wait_for()
    first = [stored(lab, page, cell) for cell in (0, 1)]
    assert [one["metadata"]["image/png"]["width"] for one in first] == [976, 976]
    page.page.locator(".tinote-explorer .stage", has_text="LLVM IR").first.click()
    expect(page.page.locator(".tinote-explorer .sentence b")).to_have_text(re.compile("^LLVM"))
    page.wait("!document.querySelector('.tinote-explorer .is-waiting')")
    page.page.locator(".tinote-explorer .pane.right .row").nth(3).click()
    page.page.locator(".tinote-rules").click()
    for theme in ("Light", "Dark"):
        page.set_theme(f"JupyterLab {theme}")
        for cell, before in enumerate(first):
            after = stored(lab, page, cell)
            width, shown = after["metadata"]["image/png"]["width"], picture(after)
            assert after["data"]["image/png"] != before["data"]["image/png"] and shown.shape[1] == 2 * width > 1000
            assert after["metadata"]["image/png"]["alt"] == before["metadata"]["image/png"]["alt"]
            Image.fromarray(shown.astype(np.uint8)).save(pictures.folder / f"code_{theme}_{cell}.png")


def test_nothing_that_is_stored_is_executed(notebook, reopened, lab):
    page = notebook(SHOWN)
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1")
    good = stored(lab, page)
    page.page.evaluate(f"() => {KERNEL}.shutdown()")
    png = good["data"]["image/png"]
    script = "<script>window.executed = 1</script><img src=x onerror='window.executed = 2'>"
    tampered: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({VIEW_TYPE: {"version": script}, "image/png": png}, {"image/png": {"alt": script}}),
        ({VIEW_TYPE: script, "image/png": f'{png}" onerror="window.executed = 3'}, {}),
        ({VIEW_TYPE: {}, "image/png": png, WIDGET: {"model_id": {"toString": script}}}, {"image/png": {"alt": {}}}),
        ({VIEW_TYPE: {}, "image/png": png, WIDGET: script}, {"image/png": {"width": script, "height": [script]}}),
        ({VIEW_TYPE: {}, WIDGET: {"model_id": script}, "text/plain": script}, {}),
        ({VIEW_TYPE: {}, "text/html": script, "application/javascript": "window.executed = 4", "image/png": png}, {}),
        ({VIEW_TYPE: {}, "image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{script}</svg>"}, {}),
        ({VIEW_TYPE: None, "image/png": png}, {}),
    ]
    outputs = [nbformat.v4.new_output("display_data", data, metadata=about) for data, about in tampered]
    document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[one]) for one in outputs])
    document.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    model = {"_esm": "window.executed = 5; export default {}", "_anywidget_id": "tinote.viz.live.particles.Particles"}
    model |= {"_model_module": "anywidget", "_model_name": "AnyModel", "_view_module": "anywidget"}
    state = {"stolen": {"model_module": "anywidget", "model_name": "AnyModel", "model_module_version": "~0.9.*"}}
    state["stolen"]["state"] = model
    (lab.folder / "tampered.ipynb").write_text(json.dumps(document))
    again = reopened("tampered.ipynb")
    parts = again.page.locator(".tinote-output")
    expect(parts).to_have_count(len(tampered))
    # The same in outputs that the front end trusts, as those of a cell that has run.
    for trusted in (False, True):
        if trusted:
            again.page.evaluate(
                """(bundles) => {
                    const { cells } = window.jupyterapp.shell.currentWidget.content.model;
                    bundles.forEach(([data, metadata], at) => {
                        cells.get(at).trusted = true;
                        cells.get(at).outputs.clear();
                        cells.get(at).outputs.add({ output_type: 'display_data', data, metadata });
                    });
                }""",
                tampered,
            )
        again.page.wait_for_timeout(2500)  # As long as the widgets' own renderer looks for a model.
        expect(parts).to_have_count(len(tampered))
        expect(parts.locator("img")).to_have_count(6)
        expect(parts.locator("script, [onerror]")).to_have_count(0)
        poll(lambda: again.page.evaluate("() => window.executed"), None)


def test_a_view_says_what_becomes_of_its_kernel(notebook, pictures):
    page = notebook(SHOWN, "import time\nprint('busy')\ntime.sleep(4)")
    page.run_all()
    # An empty frame, while the cells after it run.
    page.wait(f"document.querySelector('{NOTICE}')?.textContent === 'waiting for the cell'")
    page.wait(f"{PAINTED} >= 1 && document.querySelector('{NOTICE}').textContent === ''")
    button(page, "Play").click()
    page.wait(f"{PAINTED} > 10")

    # The connection is lost, and comes back. JupyterLab opens a dialog where it misses its server meanwhile.
    page.page.add_locator_handler(
        page.page.locator(".jp-Dialog", has_text="Server Connection Error"),
        lambda dialog: dialog.get_by_role("button", name="Close").click(),
    )
    page.page.context.set_offline(True)
    try:
        page.page.evaluate(f"() => {{ {KERNEL}.reconnect().catch(() => null) }}")
        page.wait(f"document.querySelector('{NOTICE}').textContent === 'reconnecting'")
        expect(page.page.locator(".tinote-view .tinote-controls button:enabled")).to_have_count(0)
    finally:
        page.page.context.set_offline(False)
    page.wait(f"document.querySelector('{NOTICE}').textContent === '' && {VIEW}.dataset.state === 'playing'")
    steps = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {steps + 10}")

    # The kernel restarts: at once, and for good.
    shown = page.canvas(STAGE)
    page.page.evaluate(f"() => {{ {KERNEL}.restart() }}")
    is_gone(page)
    assert red(page.canvas(STAGE)).sum() > 0.8 * red(shown).sum()
    page.page.locator(STAGE).click()
    pictures.of_notebook(page, "gone", 1200, least=4)
    wait_ready(page.page)
    is_gone(page)
    page.run_cell(0)
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1 && document.querySelector('{NOTICE}').textContent === ''")
    assert [problem for problem in page.problems if "ERR_INTERNET_DISCONNECTED" not in problem] == []


def is_gone(page: Page) -> None:
    """Wait until the view says that its kernel is gone, and offers nothing that would need it."""
    expect(page.page.locator(NOTICE)).to_have_text(GONE)
    expect(page.page.locator(".tinote-view .tinote-controls :is(button, input):enabled")).to_have_count(0)
    expect(page.page.locator(".tinote-view")).not_to_have_attribute("data-state", "playing")


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_kernel_that_is_killed_is_gone_at_once(notebook, lab):
    """As by a system that is out of memory, in the middle of a cell. The server starts another kernel by itself."""
    page = notebook(SHOWN, "import time\nprint('under way')\nwhile True:\n    time.sleep(0.01)")
    page.run_cell(0)
    page.wait_idle()
    button(page, "Play").click()
    page.wait(f"{PAINTED} > 10")
    process = int(page.python("import os; print(os.getpid())"))
    page.run_cell(1)
    page.page.locator(".jp-OutputArea-output", has_text="under way").wait_for()
    # Noted where the front end notices it: the server looks for its kernels every three seconds.
    page.page.evaluate(
        f"""() => {{ {KERNEL}.statusChanged.connect((_, status) => {{
            if (status !== 'busy' && status !== 'idle')
                window.atOnce ??= document.querySelector('{NOTICE}').textContent;
        }}) }}"""
    )
    os.kill(process, signal.SIGKILL)
    is_gone(page)
    poll(lambda: page.page.evaluate("() => window.atOnce"), GONE)
    seen = red(page.canvas(STAGE))
    assert seen.sum() > 20 * np.pi * 36
    page.page.locator(".jp-Dialog button").first.click()  # The front end tells of it as well.
    wait_ready(page.page)
    is_gone(page)
    kept = red(picture(stored(lab, page)))
    assert abs(int(kept.sum()) - int(seen.sum())) < 0.1 * seen.sum()
    assert page.python("import os; print(os.getpid())") != str(process)
    page.run_cell(0)
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1 && document.querySelector('{NOTICE}').textContent === ''")
    button(page, "Play").click()
    page.wait(f"{PAINTED} > 10")
    assert page.problems == []


def test_new_data_is_not_shown_under_an_earlier_step(notebook):
    page = notebook(SHOWN, "x[:] = 0.5", "print(x.min(), x.max())")
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1 && {VIEW}.dataset.step === '0'")
    many = int(red(page.canvas(STAGE)).sum())
    assert many > 20 * np.pi * 36  # Sixty discs, of which some overlap; at one place it would be one.
    page.reload()
    page.wait(f"{PAINTED} >= 1")
    assert int(red(page.canvas(STAGE)).sum()) == many
    page.python("view.refresh()")
    page.wait(f"{PAINTED} >= 2")
    assert int(red(page.canvas(STAGE)).sum()) < 1.3 * np.pi * 36


def test_an_error_in_a_view_is_a_card(notebook, pictures):
    page = notebook(
        "import tinote as ti\nti.init()\nx = ti.field(ti.f32, 8)\n"
        "@ti.kernel\ndef shift(k: ti.i32):\n    x[k] = 1.0\n"
        "def step():\n    shift(<9>)\nview = ti.viz.Plot(lambda: x[0], step)\nview".replace("<9>", "9"),
        "import sys\nprint('next to it', file=sys.stderr)\n"
        "def broken():\n    raise ValueError('<b>the spring</b> is broken')\nti.viz.Plot(lambda: 1.0, broken)",
    )
    page.run_all()
    page.wait_idle()
    for number, parts in enumerate(
        [("x[k] = 1.0", "^^^^", "out of bounds", "KernelIndexError"), ("raise ValueError", "<b>the spring</b>")]
    ):
        view = page.page.locator(".tinote-view").nth(number)
        view.get_by_role("button", name="Play").click()
        card = view.get_by_role("alert").locator(".tinote-error-view")
        for part in parts:
            expect(card).to_contain_text(part)
    expect(page.page.locator(".tinote-view pre.tinote-error")).to_have_count(0)
    # What the cell wrote before it stays in sight.
    expect(page.page.get_by_text("next to it", exact=True).last).to_be_visible()
    pictures.of_notebook(page, "error_in_a_view", 1500)
    assert page.problems == []
