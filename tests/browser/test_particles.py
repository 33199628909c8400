"""The live view of particles in JupyterLab: painted, controlled, reloaded, stopped."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.waiting import expect, poll

SETUP = """
import numpy as np
from tinote.viz.live.particles import Particles
start = np.random.default_rng(0).random((400, 2))
x = start.copy()
v = (np.random.default_rng(1).random((400, 2)) - 0.5) * 0.01
def step():
    np.add(x, v, out=x)
    v[(x < 0) | (x > 1)] *= -1
    np.clip(x, 0, 1, out=x)
def kinetic():
    return 50 * (v**2).sum()
def height():
    return x[:, 1].mean()
def reset():
    x[:] = start
view = Particles(x, step, reset=reset, radius=4, color=0xe02020, plot_label="energy",
                 plots={"kinetic": kinetic, "height": height, "total": lambda: kinetic() + height()})
view
"""
VIEW = "document.querySelector('.tinote-view')"
STAGE = ".tinote-view canvas.tinote-stage"
PAINTED = f"Number({VIEW}?.dataset.painted ?? 0)"


# Move the slider to the given places and press Step, all before the page gets anything from the kernel.
SLIDE_AND_STEP = """(places) => {
    const slider = document.querySelector('.tinote-speed input');
    for (const place of places) {
        slider.value = String(place);
        slider.dispatchEvent(new Event('input'));
    }
    document.querySelector('.tinote-view .tinote-step').click();
}"""


def reddish(pixels: np.ndarray) -> np.ndarray:
    """Which pixels belong to the particles, which are red."""
    return (pixels[:, :, 0] > 150) & (pixels[:, :, 1] < 120) & (pixels[:, :, 2] < 120)


def test_first_frame_is_painted_without_running(notebook):
    page = notebook(SETUP)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    pixels = page.pixels(STAGE)
    covered = reddish(pixels).mean()
    # 400 discs of radius 4 on 480 × 480 pixels cover at most 400 π 16 / 480² = 8.7 %, less where they overlap.
    assert 0.04 < covered < 0.09
    # Paper is the page's own colour: the first column inside of the border holds mostly paper.
    assert (pixels.min(axis=2) > 240).mean() > 0.8
    assert page.python("print(view.steps, view.state)") == "0 paused"
    assert page.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_play_pause_step_reset_stop(notebook):
    page = notebook(SETUP)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    first = page.canvas(STAGE)
    button = page.page.locator(".tinote-view").get_by_role
    button("button", name="Play").click()
    page.wait(f"{PAINTED} > 30")
    assert page.python("print(view.state)") == "playing"
    status = page.page.locator(".tinote-status")
    expect(status).to_contain_text(re.compile(r"[\d,]+ steps/s"))
    flow = page.python("print(view.credits.in_flight, view.credits.window, view.steps)")
    in_flight, window, steps = map(int, flow.split())
    # The window may have changed between the two readings; what bounds both does not.
    assert 0 <= in_flight <= 8 and 2 <= window <= 8
    assert steps >= 30
    button("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    steps = page.settle()
    page.wait(f"{VIEW}.dataset.step === '{steps}'")
    expect(status).not_to_contain_text("steps/s")
    page.page.wait_for_timeout(300)  # Longer than some steps take.
    assert int(page.python("print(view.steps)")) == steps
    moved = page.canvas(STAGE)
    assert reddish(moved).mean() > 0.04
    assert (reddish(first) != reddish(moved)).mean() > 0.02
    button("button", name="Step").click()
    page.wait(f"{VIEW}.dataset.step === '{steps + 1}'")
    button("button", name="Reset").click()
    page.wait(f"{VIEW}.dataset.step === '0'")
    assert np.array_equal(page.canvas(STAGE), first)
    slider = page.page.locator(".tinote-view").get_by_role("slider", name="Speed")
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(page.page.locator(".tinote-speed-text")).to_have_text("3 steps / frame")
    button("button", name="Step").click()
    page.wait(f"{VIEW}.dataset.step === '3'")
    # Step goes by what the slider shows, though the kernel does not know it yet: 5, then 10 steps a frame.
    page.page.evaluate(SLIDE_AND_STEP, [3, 4])
    page.wait(f"{VIEW}.dataset.step === '13'")
    button("button", name="Play").click()
    page.wait(f"Number({VIEW}.dataset.step) > 30")
    button("button", name="Stop").click()
    page.wait(f"{VIEW}.dataset.state === 'stopped'")
    assert page.python("print(view.state, view.playback.worker)") == "stopped None"
    assert page.problems == []


def test_keyboard_reaches_the_controls(notebook):
    page = notebook(SETUP)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").focus()
    page.page.keyboard.press("Enter")
    page.wait(f"{VIEW}.dataset.state === 'playing' && {PAINTED} > 5")
    page.page.keyboard.press(" ")
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    page.page.keyboard.press("Tab")
    expect(page.page.locator(":focus")).to_have_attribute("aria-label", "Step: advance one frame")


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_reload_goes_on(notebook):
    page = notebook(SETUP + "\nview.play()\nview")
    page.run_all()
    page.wait(f"{PAINTED} > 10")
    page.reload()
    page.wait(f"{PAINTED} > 10")
    first = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {first + 10}")
    assert reddish(page.pixels(STAGE)).mean() > 0.04
    assert page.python("print(view.state)") == "playing"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_restarted_kernel_begins_anew(notebook):
    page = notebook(SETUP)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    page.wait(f"{PAINTED} > 5")
    page.restart()
    # The view is gone with its kernel; the cell, run again, shows a new one at its start.
    assert "NameError" in page.python("view")
    page.run_all()
    page.wait_idle()
    page.wait(f"{PAINTED} >= 1 && {VIEW}.dataset.step === '0'")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    page.wait(f"Number({VIEW}.dataset.step) > 5")
    expect(page.page.locator(".tinote-view")).to_have_count(1)
    assert page.python("print(view.state)") == "playing"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_nothing_is_computed_out_of_sight(notebook):
    page = notebook(SETUP + "\nview.play()\nview", *["print('\\n' * 60)"] * 2)
    page.run_all()
    page.wait_idle()
    page.page.locator(STAGE).scroll_into_view_if_needed()
    page.wait(f"{PAINTED} > 5")
    page.page.locator(".jp-CodeCell").last.scroll_into_view_if_needed()
    page.until("not view.credits.visible and view.credits._waiting")
    hidden = int(page.python("print(view.steps)"))
    page.page.wait_for_timeout(300)  # Longer than some steps take.
    assert int(page.python("print(view.steps)")) == hidden
    page.page.locator(STAGE).scroll_into_view_if_needed()
    page.wait(f"Number({VIEW}.dataset.step) > {hidden + 5}")


def test_error_in_step_is_shown_and_stops(notebook):
    page = notebook(
        SETUP + "\ndef broken():\n    raise ValueError('the spring is broken')\nview = Particles(x, broken)\nview"
    )
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    alert = page.page.locator(".tinote-view").get_by_role("alert")
    for part in ("raise ValueError('the spring is broken')", "^^^^", "ValueError"):
        expect(alert).to_contain_text(part)
    assert page.python("print(view.state, type(view.exception).__name__)") == "stopped ValueError"


def test_other_cells_answer_while_a_slow_step_runs(notebook):
    slow = """
import threading
begun, gate = threading.Event(), threading.Event()
def slow():
    begun.set()
    gate.wait()
    step()
view = Particles(x, slow)
view.play()
view"""
    page = notebook(SETUP + slow)
    page.run_all()
    page.until("begun.is_set()")
    # The step ends only once a cell has said so: had the cell waited for the step, both would wait for ever.
    assert page.python("print(view.state, view.steps, gate.set())") == "playing 0 None"
    page.wait(f"Number({VIEW}?.dataset.step ?? 0) >= 2")


def test_follows_the_theme(notebook):
    page = notebook(SETUP)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.set_theme("JupyterLab Dark")
    poll(lambda: np.median(page.pixels(STAGE).max(axis=2)), lambda brightness: brightness < 60)
    page.set_theme("JupyterLab Light")
    poll(lambda: np.median(page.pixels(STAGE).min(axis=2)), lambda brightness: brightness > 240)


def test_each_keeps_its_own_colour_wherever_it_goes(notebook):
    """The page gets the colours once; frames say where the particles are."""
    page = notebook("""
import numpy as np
from tinote.viz.live.particles import Particles
x = np.array([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]])
def step():
    x[:] = np.roll(x, 1, axis=0)
view = Particles(x, step, radius=20, color=[0xff0000, 0x00ff00, 0x0000ff])
view""")
    page.run_all()
    page.wait(f"{PAINTED} >= 1")

    def seen() -> list[str]:
        pixels = page.canvas(STAGE)
        height, width = pixels.shape[:2]
        inks = pixels[height // 2, [width * part // 10 for part in (2, 5, 8)], :3]
        return ["rgb"[int(ink.argmax())] for ink in inks]

    assert seen() == ["r", "g", "b"]
    page.page.locator(".tinote-view").get_by_role("button", name="Step").click()
    page.wait(f"{VIEW}.dataset.step === '1'")
    page.settle()
    assert seen() == ["g", "b", "r"]
    page.reload()
    page.wait(f"{PAINTED} >= 1")
    assert seen() == ["g", "b", "r"]
    assert page.problems == []


MARKS = """
import numpy as np
from tinote.viz.live.particles import Particles
angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
x = 0.5 + 0.3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
turn = np.array([[np.cos(0.05), np.sin(0.05)], [-np.sin(0.05), np.cos(0.05)]])
def step():
    x[:] = 0.5 + (x - 0.5) @ turn
def reset():
    pass
pairs = np.stack([np.arange(39), np.arange(1, 40)], axis=1)
view = Particles(x, step, reset=reset, size=400, radius=np.linspace(3, 6, 40), color=lambda: x[:, 1], cmap="plasma",
                 edges=pairs, edge_color=lambda: x[:-1, 0], edge_width=3, arrows=x - 0.5, trail=12, energy=lambda: 1.0,
                 color_label="height")
view.advance(20)
view
"""


def test_the_page_shows_the_marks_of_the_still_picture(notebook):
    page = notebook(MARKS)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    # From a page that got all of the trail at once to one that has added to it.
    for press in ("Play", None):
        if press:
            page.page.locator(".tinote-view").get_by_role("button", name=press).click()
            page.wait(f"Number({VIEW}.dataset.step) > 40")
            page.page.locator(".tinote-view").get_by_role("button", name="Pause").click()
            page.wait(f"{VIEW}.dataset.state === 'paused'")
            page.settle()
        still = np.array(eval(page.python("print(view.painted().pixels[5:-5, 5:-5].ravel().tolist())"))).reshape(
            390, 390, 3
        )
        shown = page.canvas(STAGE)[5:-5, 5:-5, :3]
        assert (still.min(axis=2) < 230).mean() > 0.05
        assert (np.abs(still - shown).max(axis=2) > 40).mean() < 0.004
    expect(page.page.locator(".tinote-status")).to_contain_text("arrows up to 0.3")
    expect(page.page.locator(".tinote-colorbar")).to_have_attribute("aria-label", re.compile("^height: from 0.2"))
    # The buttons stay in one row, or in three where each could not be hit in fewer, and the view in its middle.
    middles = """(nodes) => nodes.map((node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        return [Math.round((left + right) / 2), Math.round((top + bottom) / 2)];
    })"""
    buttons = page.page.locator(".tinote-controls button:visible")
    view_and_stage = page.page.locator(f".tinote-view, {STAGE}")
    for width, rows in ((1280, 1), (480, 3)):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.wait(f"innerWidth === {width}")
        poll(lambda: buttons.evaluate_all(middles), lambda found, rows=rows: len({down for _, down in found}) == rows)
        poll(lambda: view_and_stage.evaluate_all(middles), lambda found: abs(found[0][0] - found[1][0]) < 3)
    assert page.problems == []
