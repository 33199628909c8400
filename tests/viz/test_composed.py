"""Views in boxes of ipywidgets: text and picture remain where widgets do not run."""

from __future__ import annotations

import base64
import io

import ipywidgets
import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

from tinote.viz import Particles, slider
from tinote.viz.draw.pictures import CAPTION_HEIGHT, CARD_MARGIN
from tinote.viz.notebook.composed import bundle_of, picture_of

RED = (0xE0, 0x20, 0x20)


def red_view(**options):
    return Particles([[0.5, 0.5]], color=0xE02020, radius=20, size=100, **options)


def pixels(bundle) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB"))


def test_a_column_has_the_views_picture_and_each_controls_name_and_value():
    view = red_view()
    given = []
    box = ipywidgets.VBox([view, slider(view, given.append, 0, 4, value=1, label="stiffness"), ipywidgets.Text("a")])
    data, metadata = bundle_of(box)
    assert data["text/plain"] == f"<VBox: {view!r}, stiffness 1, a>"
    assert metadata["image/png"] == {"alt": data["text/plain"]}
    found = pixels(data)[CARD_MARGIN:-CAPTION_HEIGHT, CARD_MARGIN:-CARD_MARGIN]
    # 100 pixels of the view, and two rows of 26 with gaps of 8, as wide as controls are at least.
    assert found.shape == (100 + 2 * (26 + 8), 320, 3)
    assert (found[50, 50] == RED).all()
    knob = np.flatnonzero((found[100 + 8 + 13] == (0x2F, 0x6F, 0xD0)).all(axis=1))
    assert abs(knob.mean() - (120 + (320 - 70 - 120) / 4)) < 1.5


def test_a_row_lays_views_side_by_side_and_boxes_nest():
    left, right = red_view(), red_view()
    row = ipywidgets.HBox([left, ipywidgets.VBox([right])])
    found = picture_of(row)
    assert found is not None and (found.width, found.height) == (208, 100)
    assert (found.pixels[50, 50] == RED).all() and (found.pixels[50, 158] == RED).all()
    assert bundle_of(row)[0]["text/plain"] == f"<HBox: {left!r}, {right!r}>"


def test_boxes_without_a_view_are_displayed_as_ever():
    box = ipywidgets.VBox([ipywidgets.FloatSlider()])
    data, _ = bundle_of(box)
    assert "image/png" not in data and "application/vnd.jupyter.widget-view+json" in data
    assert picture_of(ipywidgets.VBox([])) is None


BOXED = """
import ipywidgets
import numpy as np
from tinote.viz import Particles
from tinote.viz import slider
x = np.full((1, 2), 0.2)
def step():
    x[:] += 0.01
view = Particles(x, step, radius=6, color=0xff0000, size=200, unattended_frames=30)
ipywidgets.VBox([view, slider(view, lambda value: None, 0, 1, label="speed")])
"""


def test_a_program_that_executes_the_notebook_gets_the_advanced_view(monkeypatch):
    monkeypatch.delenv("TINOTE_HEADLESS", raising=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(BOXED)])
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    [shown] = notebook.cells[0].outputs
    assert set(shown.data) == {"text/plain", "image/png"}
    assert shown.data["text/plain"] == "<VBox: <Particles: 1 in [0, 1] × [0, 1]>, speed 0>"
    # After 30 steps of 0.01 the particle is at (0.5, 0.5).
    assert pixels(shown.data)[CARD_MARGIN + 100, CARD_MARGIN + 100].tolist() == [255, 0, 0]
