"""Notebooks that a program executes: views advance a bounded number of frames and leave their picture; loops end."""

from __future__ import annotations

import base64
import io

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from PIL import Image

PARTICLES = """
import numpy as np
from tinote.viz.live.particles import Particles
x = np.full((1, 2), 0.2)
def step():
    x[:] += 0.01
view = Particles(x, step, radius=6, color=0xff0000, size=200, energy=lambda: x[0, 0], unattended_frames=30)
view
"""
LOOP = """
from tinote.viz.window.gui import GUI
gui = GUI("loop", res=(60, 40))
while gui.running:
    gui.circle((0.5, 0.5), radius=8, color=0xff0000 if gui.frame < 59 else 0x00ff00)
    gui.show()
print(gui.frame)
"""
BROKEN = """
from tinote.viz.live.particles import Particles
def broken():
    raise ValueError("the spring broke")
Particles([[0.5, 0.5]], broken)
"""


def execute(monkeypatch: pytest.MonkeyPatch, *cells: str) -> list[list]:
    """The outputs of each cell after a program has run the notebook."""
    monkeypatch.delenv("TINOTE_HEADLESS", raising=False)
    monkeypatch.delenv("TINOTE_GUI_FRAMES", raising=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def pixels(output) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB")).astype(int)


def test_views_and_loops_leave_their_pictures(monkeypatch):
    particles, again, loop, broken = execute(monkeypatch, PARTICLES, "print(view.steps, view.state)", LOOP, BROKEN)
    [shown] = particles
    assert set(shown.data) == {"text/plain", "image/png"}
    assert shown.data["text/plain"] == "<Particles: 1 in [0, 1] × [0, 1]>"
    image = pixels(shown)
    # After 30 steps of 0.01 the particle is at (0.5, 0.5), the middle of 200 × 200 pixels.
    assert image[108, 108].tolist() == [255, 0, 0]  # With a margin of 8.
    assert again[0].text == "30 paused\n"
    picture, text = loop
    assert set(picture.data) == {"text/plain", "image/png"}
    # The picture is that of the last frame, the sixtieth.
    assert pixels(picture)[28, 38].tolist() == [0, 255, 0]
    assert text.text == "60\n"
    assert [output.output_type for output in broken].count("error") == 1
    assert broken[0].evalue == "the spring broke"
