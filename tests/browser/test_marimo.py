"""Views in marimo, which shows anywidgets without IPython and without Jupyter's messages."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import START_SECONDS, new_page
from tests.browser.waiting import expect

pytestmark = pytest.mark.marimo

PORT = 8976

NOTEBOOK = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import tinote as ti
    ti.init()
    x = np.random.default_rng(0).random((60, 2))
    def step():
        x[:] = (x + [0.003, 0.005]) % 1.0
    view = ti.viz.Particles(x, step, radius=6, color=0xe02020, size=300, energy=lambda: float(x.mean()))
    mo.ui.anywidget(view)
    return np, ti


@app.cell
def _(np, ti):
    ti.viz.Image(np.arange(400.0).reshape(20, 20), lambda: None, size=200)
    return


@app.cell
def _(ti):
    a = ti.field(ti.f32, 8, needs_grad=True)
    loss = ti.field(ti.f32, (), needs_grad=True)
    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 2
    ti.viz.explore(total)
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def marimo(tmp_path: Path, chromium: Any) -> Iterator[Any]:
    """The notebook in marimo, in a page."""
    (tmp_path / "views.py").write_text(NOTEBOOK)
    options = ["--headless", "--no-token", "--port", str(PORT)]
    server = subprocess.Popen([sys.executable, "-m", "marimo", "run", str(tmp_path / "views.py"), *options])
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=10).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end
                time.sleep(0.2)
        page = new_page(chromium, viewport={"width": 1280, "height": 1900})
        page.goto(f"http://127.0.0.1:{PORT}/")
        yield page
        page.context.close()
    finally:
        server.terminate()
        server.wait(60)


def test_views_are_live(marimo: Any, pictures: Any) -> None:
    # Playwright looks into marimo's shadow roots by itself.
    particles, image = marimo.locator(".tinote-view").first, marimo.locator(".tinote-view").nth(1)
    for view in (particles, image):
        marimo.wait_for_function("(view) => Number(view.dataset.painted) >= 1", arg=view.element_handle())
        expect(view).to_have_attribute("data-step", "0")
    particles.get_by_role("button", name="Play").click()
    marimo.wait_for_function("(view) => Number(view.dataset.step) > 20", arg=particles.element_handle())
    particles.get_by_role("button", name="Pause").click()
    marimo.wait_for_function("(view) => view.dataset.state === 'paused'", arg=particles.element_handle())
    marimo.locator(".tinote-explorer .stage", has_text="LLVM IR").first.click()
    marimo.locator(".tinote-explorer .pane.right .row", has_text="define").first.wait_for()
    pictures.shot(marimo, "marimo.png")
