"""What a notebook shows, in both themes and at both widths: pictures are taken, and all that they show can be read."""

from __future__ import annotations

import pytest

from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.test_explorer import GRAVITY
from tests.browser.test_explorer_panels import OBSERVED, OBSERVED_GRADIENT
from tests.browser.test_gui import LOOP
from tests.browser.test_live_views import GRADIENT, ORBITS, WAVES
from tests.browser.test_particles import SETUP as PARTICLES
from tests.browser.test_rules import BROKEN, ROOT
from tests.browser.waiting import poll

HIGH = 6000
"""Pixels that are enough for all outputs of a notebook here, one below the other."""

LIVE = [
    PARTICLES.removesuffix("view\n") + "view.advance(60)\nview",
    ORBITS,
    WAVES.removesuffix("view\n") + "splash(20, 70)\nsplash(60, 40)\nview.advance(60)\nview",
    GRADIENT.replace("ti.init()\n", ""),  # It would take away the fields of the view above.
    "w = [9.0]\ndef down():\n    w[0] += 0.1 * (3.0 - w[0])\n"
    "ti.viz.Plot({'loss': lambda: (w[0] - 3.0) ** 2, 'w': lambda: w[0]}, down, label='loss')",
    "def broken():\n    raise ValueError('the spring is broken')\nti.viz.Particles(start, broken)",
]
EXPLORED = [GRAVITY, OBSERVED, OBSERVED_GRADIENT]
FAILED = [
    "%load_ext tinote\nimport tinote as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, shape=8)",
    "%%kernel -q\ndef shift(n: ti.i32):\n    for i in x:\n        x[i] = x[i + n]",
    "shift(3)",
    "%%kernel\ndef unknown():\n    for i in x:\n"
    "        x[i] = y[i] + ti.math.smoothstep(x[i], ti.math.pi, ti.math.e)\n\nunknown()",
    BROKEN.removeprefix("%load_ext tinote\n"),
]
SHOWN = [
    "%load_ext tinote\nimport numpy as np\nimport tinote as ti\nti.init(default_fp=ti.f64)\n"
    "x = ti.field(ti.f64, shape=4, needs_grad=True)\nloss = ti.field(ti.f64, shape=(), needs_grad=True)",
    "%%kernel -q\ndef step():\n    for i in x:\n        x[i] = 0.9 * x[i] + 0.1 * ti.sin(x[i])\n\n"
    "def measure():\n    for i in x:\n        loss[None] += x[i] ** 2",
    "with ti.ad.Tape(loss, grad_check=[x]) as tape:\n"
    "    for _ in range(5):\n        step()\n    measure()\ntape.graph()",
    "tape.grad_report",
    "step",
    "waves = ti.field(ti.f32, shape=(64, 48), needs_grad=True)\n"
    "waves.from_numpy(np.sin(np.arange(64, dtype='f4')[:, None] / 9) * np.cos(np.arange(48, dtype='f4') / 7))\nwaves",
    "particles = ti.types.struct(pos=ti.math.vec2, mass=ti.f32).field(shape=200)\n"
    "particles.pos.from_numpy(np.random.default_rng(0).random((200, 2)))\nparticles",
    "ti.viz.plot(waves);",
    "for _ in ti.viz.progress(range(30), loss=lambda: 1.0):\n    pass",
    LOOP.replace("gui.running", "gui.running and turn < 20"),
]


def test_live_views(notebook, pictures):
    opened = notebook(*LIVE, height=HIGH)
    opened.run_all()
    opened.wait("[...document.querySelectorAll('.tinote-view')].filter((one) => one.dataset.painted >= 1).length === 6")
    views = opened.page.locator(".tinote-view")
    views.nth(0).get_by_role("button", name="Record a GIF").click()
    views.nth(0).get_by_role("button", name="End the recording").wait_for()
    views.nth(5).get_by_role("button", name="Play").click()
    views.nth(5).get_by_role("alert").wait_for()
    pictures.of_notebook(opened, "live", HIGH)
    assert opened.problems == []


def test_explorers(notebook, pictures):
    opened = notebook(*EXPLORED)
    opened.set_theme("JupyterLab Dark")  # The first look is light: the views were drawn in another one.
    opened.run_all()
    opened.wait(
        "[...document.querySelectorAll('.tinote-explorer')].filter((one) => one.dataset.painted >= 1).length === 3"
    )
    gravity, values, saved = (opened.page.locator(".tinote-explorer").nth(index) for index in range(3))
    gravity.get_by_role("tab", name="Data flow").click()
    gravity.locator(".right .row .code", has_text="= sqrt").first.click(position={"x": 4, "y": 4})
    values.get_by_role("tab", name="Values", exact=True).click()
    values.get_by_label("Argument a").fill("2.5")
    values.get_by_label("Iteration, one number per parallel loop").fill("3")
    values.get_by_role("button", name="Observe").click()
    values.locator("tr.is-first").wait_for()
    saved.get_by_role("tab", name="Saved and recomputed").click()
    saved.get_by_role("searchbox", name="Search in all stages").fill("load")
    opened.wait("[...document.querySelectorAll('.panel')].every((panel) => panel.dataset.filled)")

    def selected() -> None:
        """What is selected is in sight, however little room there is."""
        hidden = """(nodes) => nodes.filter((node) => {
            const one = node.getBoundingClientRect();
            const around = node.closest('.list, .panel').getBoundingClientRect();
            return one.top < around.top || one.bottom > around.bottom
                || one.left < around.left || one.right > around.right;
        }).map((node) => node.textContent)"""
        for explorer in (gravity, values, saved):
            chosen = explorer.locator(":is(.list [aria-selected=true], .node.is-centre)")
            poll(lambda chosen=chosen: chosen.evaluate_all(hidden), [])

    pictures.of_notebook(opened, "explorers", HIGH, selected)
    assert opened.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_errors_and_rules(notebook, pictures, request):
    opened = notebook(*FAILED)
    for index in range(len(FAILED)):
        opened.run_cell(index)
        opened.wait_idle()
    opened.wait(f"document.querySelector('{ROOT}')?.dataset.shown === '0'")
    opened.page.locator(".tinote-error-view summary").first.click()

    def notes_fit() -> None:
        fit = "(texts) => texts.every((text) => text.scrollWidth <= text.clientWidth)"
        poll(lambda: opened.page.locator(f"{ROOT} .text").evaluate_all(fit), True)

    pictures.of_notebook(opened, f"errors_{request.node.callspec.params['notebook']}", HIGH, notes_fit)
    assert opened.problems == []


def test_what_cells_end_with(notebook, pictures):
    opened = notebook(*SHOWN)
    opened.run_all()
    opened.wait_idle()
    opened.page.wait_for_selector(".jp-Cell:last-child .jp-OutputArea-output img")
    pictures.of_notebook(opened, "shown", HIGH)
    assert opened.problems == []
