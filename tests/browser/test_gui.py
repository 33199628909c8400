"""`GUI` in JupyterLab: a blocking loop draws in its cell's output, takes events, and stops at Interrupt."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.waiting import expect, poll

LOOP = """
import numpy as np
from tinote.viz.window.gui import GUI
gui = GUI("gravity", res=(320, 240), background_color=0x112F41)
turn = 0
seen = []
while gui.running:
    for event in gui.get_events(GUI.PRESS):
        seen.append((event.key, round(event.pos[0], 1), round(event.pos[1], 1)))
    if "Escape" in [key for key, *_ in seen]:
        break
    turn += 1
    angle = turn / 30
    planet = [0.5 + 0.3 * np.cos(angle), 0.5 + 0.3 * np.sin(angle)]
    gui.circles(np.array([[0.5, 0.5], planet]), radius=20, color=0xED553B)
    gui.text(f"turn {turn}", (0.03, 0.97), color=0xEEEEF0)
    gui.show()
after = "the loop has ended"
"""
CANVAS = ".tinote-gui canvas"
PAINTED = "Number(document.querySelector('.tinote-gui')?.dataset.painted ?? 0)"
PICTURE = ".jp-OutputArea-output img"


def orange(pixels: np.ndarray) -> np.ndarray:
    """Which pixels belong to the circles, 0xED553B, as JPEG keeps it."""
    return (np.abs(pixels[:, :, :3] - [0xED, 0x55, 0x3B]) < 24).all(axis=2)


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_loop_draws_inline_and_stops_at_interrupt(notebook):
    page = notebook(LOOP, "print('the next cell')")
    page.run_all()
    page.wait(f"{PAINTED} > 20")
    canvas = page.canvas(CANVAS)
    assert canvas.shape == (240, 320, 4)
    # Two discs of radius 20 cover 2 π 400 pixels.
    assert np.isclose(orange(canvas).sum(), 2 * np.pi * 400, rtol=0.1)
    assert np.abs(canvas[120, 5, :3] - [0x11, 0x2F, 0x41]).max() < 12
    poll(lambda: (orange(canvas) != orange(page.canvas(CANVAS))).sum(), lambda moved: moved > 100)
    page.interrupt()
    page.page.wait_for_selector(PICTURE)
    page.wait_idle()
    expect(page.page.locator(".tinote-gui")).to_have_count(0)
    poll(lambda: orange(page.pixels(PICTURE)).sum(), lambda area: np.isclose(area, 2 * np.pi * 400, rtol=0.1))
    expect(page.page.locator(".jp-OutputArea-output").last).to_contain_text("KeyboardInterrupt")
    # The session is alive with its data, and the GUI can go on in another cell.
    assert int(page.python("print(turn)")) > 20
    assert page.python("gui.frame > 20 and print(gui.running)") == "True"
    assert page.problems == []


def test_frames_come_at_most_sixty_times_a_second(notebook):
    bounded = LOOP.replace("while gui", "import time\nbegin = time.perf_counter()\nwhile turn < 90 and gui")
    page = notebook(bounded + "elapsed = time.perf_counter() - begin")
    page.run_all()
    page.page.wait_for_selector(PICTURE)
    page.wait_idle()
    assert float(page.python("print(elapsed)")) > 89 / 60


def test_stop_button_ends_the_loop(notebook):
    page = notebook(LOOP)
    page.run_all()
    page.wait(f"{PAINTED} > 5")
    page.page.locator(".tinote-gui").get_by_role("button", name="Stop").click()
    page.page.wait_for_selector(PICTURE)
    page.wait_idle()
    assert page.python("print(after, gui.running)") == "the loop has ended False"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_events_reach_the_loop(notebook):
    page = notebook(LOOP)
    page.run_all()
    page.wait(f"{PAINTED} > 5")
    page.page.locator(CANVAS).click(position={"x": 0.3 * 320, "y": 0.1 * 240})
    page.page.keyboard.press("a")
    page.page.keyboard.press("ArrowUp")
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector(PICTURE)
    page.wait_idle()
    assert page.python("print(seen)") == "[('LMB', 0.3, 0.9), ('a', 0.3, 0.9), ('Up', 0.3, 0.9), ('Escape', 0.3, 0.9)]"


WINDOW = """
import numpy as np
import tinote as ti
window = ti.ui.Window("waves", (480, 320))
canvas, gui = window.get_canvas(), window.get_gui()
places = np.random.default_rng(0).random((50, 2))
speed, fast, turn = 0.5, False, 0
while window.running:
    with gui.sub_window("Parameters", 0.05, 0.05, 0.5, 0.5):
        speed = gui.slider_float("speed", speed, 0.0, 2.0)
        fast = gui.checkbox("fast", fast)
        gui.text(f"turn {turn}")
    turn += 1
    canvas.set_background_color((0.1, 0.2, 0.3))
    canvas.circles(places, radius=0.02, color=(0.9, 0.4, 0.2))
    window.show()
"""


def test_the_controls_of_a_window_are_dragged_and_can_be_read(notebook, pictures):
    page = notebook(WINDOW)
    page.run_all()
    page.wait(f"{PAINTED} > 5")
    # The slider reaches over the width of its window, from 0 to 2; the box is in the row below.
    for start, end in (((0.2, 0.836), (0.45, 0.836)), ((0.08, 0.77), (0.08, 0.77))):
        page.drag(CANVAS, start, end)
        painted = page.page.evaluate(f"() => {PAINTED}")
        page.wait(f"{PAINTED} > {painted} + 5")
    pictures.of_notebook(page, "window", 900, least=2)  # Its name, and what ends it.
    page.page.locator(".tinote-gui").get_by_role("button", name="Stop").click()
    page.page.wait_for_selector(PICTURE)
    page.wait_idle()
    assert page.python("print(1.4 < speed < 1.8, fast)") == "True True"
    assert page.problems == []
