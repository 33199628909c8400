"""A sweep in a notebook and as a page: live while it runs, its points chosen by mouse and keys, kept as a picture."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.waiting import expect, poll, still_box
from tinote.lang.sweeps.points import points_of
from tinote.lang.sweeps.results import Table
from tinote.lang.sweeps.runs import Outcome
from tinote.viz.sweep_view.widget import SweepView

SETUP = """\
%load_ext tinote
import time
from pathlib import Path
import numpy as np
import tinote as ti
ti.init()
go = Path("go-{name}")

def simulate(k):
    while k >= 6 and not go.exists():
        time.sleep(0.05)
    if k == 9:
        raise ValueError("too stiff")
    turn = np.linspace(0, 6, 50)
    return {{"energy": (k - 4.0) ** 2, "places": np.stack([np.cos(turn) * (k + 1), np.sin(turn)], 1)}}
"""
SWEEP = """\
import warnings
warnings.simplefilter("ignore")
table = ti.sweep(simulate, {"k": range(12)}, workers=1, best="energy")
"""
ROOT = ".tinote-sweep"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_it_is_live_while_a_sweep_runs(notebook, request):
    name = "notebook" if "notebook" in request.node.name else "lab"
    page = notebook(SETUP.format(name=name), SWEEP, "go.touch()")
    page.run_cell(0)
    page.wait_idle()
    page.run_cell(1)
    # The cell runs on: six points are done, the others wait for a file.
    page.wait(f"document.querySelector('{ROOT}')?.dataset.done >= 5", 120)
    root = page.page.locator(ROOT)
    expect(root).to_have_attribute("data-ended", "false")
    expect(root.locator(".statements li").first).to_contain_text("Best so far: energy = 0 at k = 4")
    poll(lambda: root.get_attribute("data-particles"), "4")
    root.locator("tbody tr[data-point='2'] button").click()
    poll(lambda: root.get_attribute("data-particles"), "2")
    folder = page.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    assert folder
    _touch(page, f"go-{name}")
    page.wait(f"document.querySelector('{ROOT}')?.dataset.ended === 'true'", 120)
    expect(root.locator(".title")).to_have_text("simulate: 12 of 12 points")
    expect(root.locator("tr.is-2 td").last).to_have_text("failed")
    poll(lambda: root.get_attribute("data-particles"), "2")  # the choice outlives the output that is replaced
    page.wait_idle()
    kept = page.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.content.model.cells.get(1).outputs.toJSON()
            .flatMap((output) => Object.keys(output.data ?? {}))"""
    )
    assert "image/png" in kept
    assert page.problems == []


def _touch(page, name: str) -> None:
    """Make a file next to the notebook, by the server: the kernel is busy."""
    page.page.evaluate(
        """async (name) => {
            const contents = window.jupyterapp.serviceManager.contents;
            await contents.save(name, { type: 'file', format: 'text', content: '' });
        }""",
        name,
    )


@pytest.fixture
def opened(standalone):
    """The page of a sweep that has ended."""

    def simulate(k: float, n: int) -> float:
        return k * n

    table = Table(points_of(simulate, {"k": np.linspace(0, 2, 9), "n": [1, 2, 3]}, False, 0))
    turn = np.linspace(0, 2 * np.pi, 200)
    for number, row in enumerate(table.points.rows):
        places = np.stack([np.cos(turn) * (1 + row["k"]), np.sin(turn) * row["n"]], 1)
        found = {"energy": np.array((row["k"] - 1.1) ** 2 + row["n"]), "places": places}
        error = "" if number != 20 else "ValueError: it has exploded"
        table.add(number, Outcome(found, 0.005, error))
    view = SweepView(table, "simulate", "energy")
    view.show_table(ended=True)
    assert view.picture().startswith(b"\x89PNG") and "27 of 27" in view.text()
    return standalone(view)


def test_points_are_chosen_by_mouse_and_keys(opened):
    page = opened
    root = page.locator(ROOT)
    expect(root).to_have_attribute("data-particles", "12")  # k = 1, n = 1
    root.locator(".stage").focus()
    page.keyboard.press("ArrowRight")
    expect(root).to_have_attribute("data-particles", "13")
    page.keyboard.press("Home")
    expect(root).to_have_attribute("data-chosen", "0")
    page.keyboard.press("Escape")
    expect(root).to_have_attribute("data-chosen", "12")
    dot = root.locator(".dot[data-point='3']")
    box = still_box(dot)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(root).to_have_attribute("data-particles", "3")
    expect(root.locator("tr[data-point='3'] button")).to_have_attribute("aria-pressed", "true")
    root.locator("tr[data-point='20'] button").click()
    expect(root.locator(".particles .caption")).to_contain_text("nothing to show")
    assert page.problems == []


def test_it_fits_and_can_be_read(opened, pictures):
    page = opened
    pictures.of_page(page, "sweep")
    for width in (1280, 480):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"() => document.querySelector('{ROOT}').dataset.shown <= {width - 24}")
        poll(lambda: page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), True)
    assert page.problems == []
