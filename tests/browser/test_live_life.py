"""Live views in space under the pointer, in boxes, in several copies, and when their kernel or their page goes."""

from __future__ import annotations

import time

import numpy as np

VIEW = "document.querySelector('.tinote-view')"
STAGE = ".tinote-view canvas.tinote-stage"
PAINTED = f"Number({VIEW}?.dataset.painted ?? 0)"

SPACE = """
import numpy as np
import tinote as ti
x = np.array([[0.5, 0.3, 0.5], [0.5, 0.7, 0.5]])
events = []
def drag(pointer):
    events.append(pointer)
    if pointer.element is not None:
        x[pointer.element] = pointer.position
view = ti.viz.Particles(x, lambda: None, radius=8, color=0xe02020, pointer=drag, azimuth=0, elevation=0)
view
"""

STEP = """
import numpy as np
import tinote as ti
x = np.random.default_rng(0).random((200, 2))
v = (np.random.default_rng(1).random((200, 2)) - 0.5) * 0.01
def step():
    np.add(x, v, out=x)
    np.mod(x, 1.0, out=x)
"""

MOVING = f"""{STEP}
view = ti.viz.Particles(x, step, radius=4, color=0xe02020, size=200)
view.play()
view
"""

TELLING = f"""{STEP}
def telling():
    step()
    events.write_text(str(view.steps))
view = ti.viz.Particles(x, telling, radius=4, color=0xe02020, size=200)
view.play()
view
"""

RUNNING = f"{VIEW}?.dataset.state === 'playing' && {PAINTED} > 3"


def test_in_space_the_pointer_drags_particles_and_turns_the_camera_next_to_them(notebook):
    page = notebook(SPACE)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    # From the x axis, y is to the right: the particle at y = 0.7 is right of the middle.
    at = eval(
        page.python(
            "from tinote.viz.live.projection import OrbitCamera, see\n"
            "print(see(x[1:], np.array([[0, 1.0]] * 3), OrbitCamera(0, 0)).positions[0].tolist())"
        )
    )
    page.drag(STAGE, tuple(at), (at[0], at[1] + 0.2))
    page.until("events and not events[-1].pressed")
    moved = eval(page.python("print(x.tolist())"))
    assert moved[0] == [0.5, 0.3, 0.5]
    assert abs(moved[1][0] - 0.5) < 1e-6 and abs(moved[1][1] - 0.7) < 0.02 and moved[1][2] > 0.6
    assert page.python("print(view.azimuth, view.elevation, {one.element for one in events})") == "0.0 0.0 {1}"
    page.drag(STAGE, (0.1, 0.1), (0.3, 0.1))
    page.until("abs(view.azimuth - 324) < 2")
    page.drag(STAGE, (0.3, 0.1), (0.1, 0.1))
    page.until("min(view.azimuth, 360 - view.azimuth) < 1")
    with_shift = int(page.python("print(len(events))"))
    page.page.keyboard.down("Shift")
    page.drag(STAGE, tuple(at), (at[0] + 0.2, at[1]))
    page.page.keyboard.up("Shift")
    page.until("abs(view.azimuth - 324) < 2")
    assert int(page.python("print(len(events))")) == with_shift
    assert page.problems == []


def test_two_copies_of_a_view_both_follow_and_one_may_go(notebook):
    page = notebook(MOVING, "view")
    page.run_all()
    copies = "[...document.querySelectorAll('.tinote-view')]"
    page.wait(f"{copies}.length === 2 && {copies}.every((copy) => Number(copy.dataset.painted ?? 0) > 3)")
    page.page.evaluate(
        """() => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.activeCellIndex = 1;
            window.jupyterapp.commands.execute('notebook:clear-cell-output');
        }"""
    )
    page.wait(f"{copies}.length === 1")
    steps = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {steps + 5}")
    assert page.problems == []


def test_a_restarted_kernel_leaves_the_last_picture_and_runs_the_view_anew(notebook):
    page = notebook(MOVING)
    page.run_all()
    page.wait(RUNNING)
    page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.page.evaluate(
        """async () => {
            const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
            await kernel.info;
            await kernel.requestExecute({ code: 'None' }).done;
        }"""
    )
    # Nothing drives the old view any more; what it has painted stays.
    shown = page.canvas(STAGE)
    assert np.ptp(shown[:, :, 1]) > 100
    page.run_all()
    page.wait_idle()
    page.wait(RUNNING)
    steps = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {steps + 5}")


def test_a_closed_page_stops_the_work_and_a_new_one_takes_it_up(notebook, lab):
    events = lab.folder / "steps_of_a_closed_page.txt"
    page = notebook(
        f"from pathlib import Path\nevents = Path({str(events)!r})", MOVING.rpartition("view.play")[0] + TELLING
    )
    page.run_all()
    page.wait(RUNNING)
    page.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait("!window.jupyterapp.shell.currentWidget.context.model.dirty")
    address, other = page.page.url, page.page.context.new_page()
    page.page.close()
    steps, before = events.read_text(), None
    while not steps or steps != before:  # At most a window of frames is still made.
        before = steps
        time.sleep(1.0)
        steps = events.read_text()
    other.goto(address, wait_until="domcontentloaded")
    page.page = other
    page.wait(f"Number({VIEW}?.dataset.step ?? 0) > {steps} + 5")
    assert page.python("print(view.state)") == "playing"


SLOW = """
import time
import tinote as ti
n = []
def slow():
    n.append(1)
    time.sleep(3.0 if len(n) % 2 else 0.0)
view = ti.viz.Plot(lambda: float(len(n)), slow, size=(300, 120))
view
"""
NOTICE = "document.querySelector('.tinote-notice').textContent"


def test_after_a_second_a_view_says_what_it_waits_for(notebook):
    page = notebook(SLOW, "time.sleep(4)")
    page.run_cell(0)
    page.wait(f"{PAINTED} >= 1")
    page.wait(f"{NOTICE} === ''")
    page.page.get_by_role("button", name="Step: advance one frame").click()
    page.wait(f"/^a step takes [123] s$/.test({NOTICE})")
    page.wait(f"{PAINTED} >= 2 && {NOTICE} === ''")
    page.run_cell(1)
    page.wait("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'")
    page.page.get_by_role("button", name="Step: advance one frame").click()
    page.wait(f"{NOTICE} === 'waiting for the cell'")
    page.wait(f"{PAINTED} >= 3 && {NOTICE} === ''")


# A message to another widget takes as long: nothing tells the page when it has ended, once the connection hangs.
SLOW_BUTTON = """
import time
from ipywidgets import Button
button = Button(description="slow")
button.on_click(lambda _: time.sleep(2))
button
"""


def test_a_connection_that_hangs_is_told_from_a_slow_step(notebook):
    page = notebook(MOVING, SLOW_BUTTON)
    page.run_all()
    page.wait(RUNNING)
    page.page.locator(".widget-button").click()
    page.wait("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'")
    page.page.context.set_offline(True)
    try:
        page.wait(f"/^(no answer for \\d+ s|reconnecting)$/.test({NOTICE})")
    finally:
        page.page.context.set_offline(False)
    page.wait(f"{NOTICE} === ''")
    before = page.page.evaluate(f"() => {PAINTED}")
    page.wait(f"{PAINTED} > {before} + 3")
