"""The live view of particles without a browser: what is sent, what the buttons do, what picture stays."""

from __future__ import annotations

import asyncio
import contextvars
import html
import re
import threading
import time

import numpy as np
import pytest

import tinote as ti
from tests.viz import live
from tests.viz.live import picture_of
from tinote.runtime.launch import LaunchStopped
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.particles import HIDDEN, Particles
from tinote.viz.notebook.view import LOOPBACK_SEGMENT

POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.25], [2.0, 0.5], [np.nan, 0.5]])


def scenario(function, *args, **options):
    """Run `async function(view, page)` with a view of moving points made inside of a loop."""
    return live.scenario(lambda: Particles(*args, **options), function)


def test_positions_are_sent_as_fractions_of_the_bounds():
    frame = Particles(POINTS, bounds=((0.0, 1.0), (0.0, 1.0))).capture()
    packed = np.frombuffer(frame.buffers[0], np.uint16).reshape(-1, 2)
    last = HIDDEN - 1
    assert packed.tolist() == [[0, 0], [last, last], [last // 2, last // 4], [HIDDEN, HIDDEN], [HIDDEN, HIDDEN]]
    assert frame.message == {"count": 5, "outside": 2}
    wide = Particles(POINTS, bounds=((-1.0, 3.0), (0.0, 2.0))).capture()
    assert np.frombuffer(wide.buffers[0], np.uint16)[6:8].tolist() == [int(0.75 * last), int(0.25 * last)]


def test_the_picture_shows_each_particle_at_its_place_in_its_colour():
    x = np.array([[0.25, 0.25], [0.75, 0.5]])
    pixels = picture_of(Particles(x, color=np.array([0xFF0000, 0x0000FF]), radius=5, size=(200, 100)))
    assert pixels.shape == (100, 200, 3)
    assert pixels[75, 50].tolist() == [255, 0, 0]
    assert pixels[50, 150].tolist() == [0, 0, 255]
    assert pixels[20, 20].tolist() == [255, 255, 255]


def test_the_plot_is_below_the_picture():
    view = Particles(POINTS, lambda: None, energy=lambda: 1.5, size=100)
    view.advance(3)
    assert picture_of(view).shape == (100 + view.chart_height, 100, 3)
    assert view.history.table()[:, 1].tolist() == [1.5] * 3
    assert view.series == ["energy"]


def test_advance_steps_and_samples():
    x = np.zeros((4, 2))

    def step():
        x[:] += 0.125

    view = Particles(x, step, plots={"place": lambda: x[0, 0]}, steps_per_frame=2)
    view.picture()
    view.advance(3)
    assert view.steps == 6
    assert view.history.table().tolist() == [[0, 0], [2, 0.25], [4, 0.5], [6, 0.75]]


def test_an_error_of_the_step_is_raised_by_advance():
    def broken():
        raise ZeroDivisionError("no mass")

    with pytest.raises(ZeroDivisionError, match="no mass"):
        Particles(POINTS, broken).advance()


def test_repr_is_stable_and_says_what_is_shown():
    assert repr(Particles(POINTS, bounds=((0, 2), (-1, 1)))) == "<Particles: 5 in [0, 2] × [-1, 1]>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": ((1, 0), (0, 1))}, "bounds"),
        ({"bounds": 3}, "bounds"),
        ({"radius": 0}, "radius"),
        ({"steps_per_frame": 0}, "steps_per_frame"),
        ({"size": 2}, "size"),
        ({"step": 3}, "step must be a function without arguments"),
        ({"reset": 3}, "reset must be a function without arguments"),
        ({"color": np.array([1, 2])}, "2 colours"),
        ({"plots": {"a": 3}}, "plots must be a function without arguments or a dictionary of functions"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, message):
    with pytest.raises(ViewError, match=message):
        Particles(POINTS, **options)


def test_play_sends_a_window_of_frames_and_waits_for_acknowledgements():
    steps = []

    async def body(view, page):
        page.say(kind="ready", view="page")
        await page.until(lambda: len(page.frames) == 1)
        page.say(kind="ack", frame=1, waited=1e9)
        view.play()
        await page.until(lambda: len(page.frames) == 4)
        await asyncio.sleep(0.1)
        assert len(page.frames) == 4
        assert view.credits.in_flight == view.credits.window == 3
        page.say(kind="ack", frame=4, waited=1e9)  # However slow this machine is, the way took no time.
        await page.until(lambda: len(page.frames) == 7)
        assert [frame["frame"] for frame in page.frames] == [1, 2, 3, 4, 5, 6, 7]
        assert [frame["step"] for frame in page.frames] == [0, 1, 2, 3, 4, 5, 6]
        assert [frame["ack"] for frame in page.frames] == [True, False, True, False, True, False, True]
        page.say(kind="visible", view="page", visible=False)
        page.say(kind="ack", frame=7)
        await asyncio.sleep(0.1)
        assert len(page.frames) == 7
        view.stop()

    scenario(body, POINTS, lambda: steps.append(threading.current_thread()))
    assert all(thread is not threading.main_thread() for thread in steps)


@pytest.mark.parametrize("runs_unseen", [False, True])
def test_out_of_sight_a_view_goes_on_where_it_is_asked_to(runs_unseen):
    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: len(page.frames) > 3)
        page.say(kind="visible", view="page", visible=False)
        await asyncio.sleep(0.1)
        sent, steps = len(page.frames), view.steps
        if runs_unseen:
            await page.until(lambda: view.steps > steps + 5)
        else:
            await asyncio.sleep(0.1)
            assert view.steps == steps
        assert len(page.frames) == sent
        page.say(kind="visible", view="page", visible=True)
        await page.until(lambda: len(page.frames) > sent)
        message, buffers = [one for one in page.messages if one[0]["kind"] == "frame"][sent]
        assert message["step"] > steps and message["whole"] == runs_unseen
        rows = np.frombuffer(buffers[2], np.float64).reshape(-1, 2)
        assert len(rows) == (message["step"] + 1 if runs_unseen else 1)
        view.stop()

    scenario(body, POINTS, lambda: None, energy=lambda: 1.0, runs_unseen=runs_unseen)


def test_buttons_pause_step_reset_and_stop():
    x = np.full((1, 2), 0.25)
    start = x.copy()

    def step():
        x[:] += 0.001

    def reset():
        x[:] = start

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        page.say(kind="play")
        await page.until(lambda: view.steps >= 2)
        page.say(kind="pause")
        assert view.state == "paused"
        await page.until(lambda: page.frames and page.frames[-1]["whole"] and page.frames[-1]["step"] == view.steps)
        paused_at = view.steps
        page.say(kind="step")
        await page.until(lambda: page.frames[-1]["step"] == paused_at + 1)
        await asyncio.sleep(0.05)
        assert view.steps == paused_at + 1
        page.say(kind="step", steps=3)  # As many as its slider says, before the kernel knows of that.
        await page.until(lambda: page.frames[-1]["step"] == paused_at + 4)
        assert view.steps_per_frame == 1
        page.say(kind="reset")
        await page.until(lambda: page.frames[-1]["step"] == 0)
        assert np.array_equal(x, start)
        assert view.history.table()[:, 0].tolist() == [0]
        page.say(kind="play")
        await page.until(lambda: view.steps >= 1)
        worker = view.playback.worker
        page.say(kind="stop")
        assert view.state == "stopped" and view.playback.worker is None
        await page.until(lambda: not worker._thread.is_alive())
        page.say(kind="ready", view="page again")
        page.say(kind="play")
        steps = view.steps
        await page.until(lambda: view.steps > steps)

    scenario(body, x, step, reset=reset, energy=lambda: x[0, 0])


def test_a_long_batch_ends_at_pause():
    async def body(view, page):
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.steps > 3)
        view.pause()
        await page.until(lambda: page.frames[-1]["whole"] and page.frames[-1]["step"] > 0)
        assert view.steps < 100_000

    scenario(body, POINTS, lambda: time.sleep(0.002), steps_per_frame=100_000)


def test_stop_stops_a_kernel_that_does_not_return(monkeypatch):
    stopped = threading.Event()
    monkeypatch.setattr("tinote.viz.live.playback.stop_all", stopped.set)
    monkeypatch.setattr("tinote.viz.live.playback.STOP_PATIENCE_SECONDS", 0.05)

    def endless():
        assert stopped.wait(300)

    async def body(view, page):
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        view.play()
        await asyncio.sleep(0.05)
        worker = view.playback.worker
        assert worker is not None and not stopped.is_set()
        view.stop()
        await page.until(lambda: stopped.is_set() and not worker._thread.is_alive())

    scenario(body, POINTS, endless)


def test_the_step_runs_in_an_empty_context():
    tape: contextvars.ContextVar[str] = contextvars.ContextVar("tape", default="none")
    seen = set()

    async def body(view, page):
        tape.set("open")
        page.keeps_up = True
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.steps >= 2)
        view.stop()
        view.advance()

    scenario(body, POINTS, lambda: seen.add(tape.get()))
    assert seen == {"none"}


def test_a_stopped_view_says_where_its_kernel_was():
    ti.init()
    x = ti.field(ti.f32, 4)
    began = threading.Event()

    @ti.kernel
    def stuck():
        while x[0] >= 0:
            x[1] += 1.0

    def step():
        began.set()
        stuck()

    async def body(view, page):
        page.say(kind="ready", view="page")
        view.play()
        await page.until(began.is_set)
        view.stop()
        await page.until(lambda: view.error)
        assert isinstance(view.exception, LaunchStopped) and view.state == "stopped"
        assert "interrupted in the kernel 'stuck'" in html.unescape(view.error_card)
        assert re.search(r'<span class="source">\s+while x\[0\] &gt;= 0:</span>', view.error_card)
        x[0] = -1.0
        view.play()
        assert view.error == ""
        await page.until(lambda: view.steps > 0)

    x[0] = -1.0
    stuck()  # Compiled, it is in the kernel when patience ends.
    x[0] = 1.0
    scenario(body, POINTS, step)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_an_error_in_the_step_is_shown_and_stops_the_view(error):
    turns = []

    def broken():
        turns.append(1)
        if len(turns) == 1:
            raise error("the spring broke")

    async def body(view, page):
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.state == "stopped")
        assert f"{error.__name__}: the spring broke" in view.error
        assert "in broken" in view.error
        assert isinstance(view.exception, error)
        assert "the spring broke" in repr(view)
        view.play()
        assert view.error == ""
        await page.until(lambda: view.steps > 0)

    scenario(body, POINTS, broken)


def test_a_page_loaded_again_gets_the_state_and_the_whole_plot():
    async def body(view, page):
        view.advance(5)
        page.say(kind="ready", view="page")
        await page.until(lambda: len(page.frames) == 1)
        message, buffers = page.messages[-1]
        assert message["whole"] and message["step"] == 5
        assert np.frombuffer(buffers[-1], np.float64).reshape(-1, 2)[:, 0].tolist() == [1, 2, 3, 4, 5]

    scenario(body, POINTS, lambda: None, energy=lambda: 1.0)


def test_frames_to_a_page_on_the_same_machine_fill_a_segment():
    async def body(view, page):
        page.say(kind="ready", view="page", local=False)
        await page.until(lambda: page.frames)
        page.say(kind="ready", view="page", local=True)
        await page.until(lambda: len(page.frames) == 2)
        (far, far_parts), (near, near_parts) = [found for found in page.messages if found[0]["kind"] == "frame"]
        assert "padded" not in far and near["padded"]
        assert near_parts[:-1] == far_parts
        assert sum(map(len, near_parts)) == LOOPBACK_SEGMENT

    scenario(body, POINTS, lambda: None, energy=lambda: 1.0)


def test_a_view_that_plays_before_it_is_shown_has_a_picture():
    async def body(view, page):
        view.play()
        assert picture_of(view).shape == (480, 480, 3)
        page.say(kind="ready", view="page")
        await page.until(lambda: view.steps > 0)

    scenario(body, POINTS, lambda: None)


def test_play_without_a_loop_says_what_to_call():
    with pytest.raises(ViewError, match="advance"):
        Particles(POINTS, lambda: None).play()


def test_a_click_gives_the_index_of_what_was_hit_to_python():
    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        seen = []
        view.observe(lambda change: seen.append(change["new"]), "picked")
        for place in ((0.5, 0.5), (0.9, 0.1)):
            before = len(page.frames)
            page.say(kind="pick", place=place)
            await page.until(lambda before=before: len(page.frames) > before)
        return seen, view.picked

    x = np.array([[0.2, 0.2], [0.5, 0.5], [0.8, 0.8]])
    assert live.scenario(lambda: Particles(x, lambda: None), body) == ([1, None], None)
    cells = np.zeros((10, 4))
    assert live.scenario(lambda: ti.viz.Image(cells, lambda: None), body) == ([(5, 2), (9, 0)], (9, 0))
    space = np.array([[0.5, 0.5, 0.5], [0.9, 0.9, 0.9]])
    assert live.scenario(lambda: Particles(space, lambda: None), body) == ([0, None], None)


def test_bounds_are_fitted_to_the_particles():
    x = np.array([[-3.0, 1.0], [5.0, 2.0], [np.nan, 0.0], [1.0, np.inf]])
    view = Particles(x, size=(400, 200), axes=True)
    view.fit()
    assert np.allclose(view.bounds, [(-3.4, 5.4), (-0.7, 3.7)])  # One scale: twice as wide as high.
    assert [tick["text"] for tick in view.axes_shown["x"]["ticks"]][:2] == ["−2", "0"]
    view.advance(0)
    view.picture()
    assert view.frames.last_frame.message["outside"] == 2
    x[:] = [[1.0, 2.0]] * 4
    view.fit()
    assert np.allclose(view.bounds, [(0.45, 1.55), (1.725, 2.275)])
    x[:] = np.nan
    view.fit()
    assert np.allclose(view.bounds, [(0.45, 1.55), (1.725, 2.275)])
    space = Particles(np.array([[0.0, 0, 0], [10, 1, 1]]))
    space.fit()
    assert np.allclose(space.bounds, [(-0.5, 10.5), (-5, 6), (-5, 6)])
