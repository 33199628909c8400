"""Pointer messages, in order, as what a step gets; and recordings."""

from __future__ import annotations

import io
import itertools
import re
import threading

import numpy as np
import pytest
from PIL import Image

from tests.viz.live import scenario
from tinote.viz import Particles
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.film import as_gif
from tinote.viz.live.pointer import PointerQueue
from tinote.viz.live.recording import FrameRecorder


def place(across, up, pressed):
    return (10 * across, 10 * up), "grabbed" if pressed else None


def test_moves_are_merged_and_presses_are_not_lost():
    queue = PointerQueue()
    for phase, across in [("press", 0.1), ("move", 0.2), ("move", 0.4), ("release", 0.5), ("press", 0.6)]:
        queue.add(phase, across, 0.0)
    reported = queue.take(place)
    assert [(pointer.position[0], pointer.pressed) for pointer in reported] == [
        (1, True),
        (4, True),
        (5, False),
        (6, True),
    ]
    assert [pointer.movement[0] for pointer in reported] == [0.0, 3.0, 1.0, 0.0]
    assert {pointer.element for pointer in reported} == {"grabbed"}
    [held] = queue.take(place)
    assert held.pressed and held.movement == (0.0, 0.0) and held.position == (6.0, 0.0)
    queue.add("release", 0.6, 0.0)
    assert [pointer.pressed for pointer in queue.take(place)] == [False]
    assert queue.take(place) == []


def test_what_was_not_pressed_on_the_stage_is_not_reported():
    queue = PointerQueue()
    queue.add("move", 0.1, 0.1)
    queue.add("release", 0.1, 0.1)
    queue.add("nonsense", 0.1, 0.1)
    assert queue.take(place) == []


def test_a_particle_is_dragged():
    x = np.array([[0.25, 0.25], [0.75, 0.75], [np.nan, 0.5]])

    def drag(pointer):
        if pointer.element is not None:
            x[pointer.element] = pointer.position

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        for phase, at in [("press", [0.74, 0.75]), ("move", [0.6, 0.5]), ("release", [0.5, 0.5])]:
            page.say(kind="pointer", phase=phase, place=at)
        await page.until(lambda: x[1].tolist() == [0.5, 0.5])
        page.say(kind="pointer", phase="press", place=[0.9, 0.1])
        page.say(kind="pointer", phase="release", place=[0.8, 0.1])
        await page.until(lambda: not view.playback.background)
        assert x[:2].tolist() == [[0.25, 0.25], [0.5, 0.5]]

    scenario(lambda: Particles(x, pointer=drag), body)


def test_what_the_pointer_did_before_a_pause_is_not_stuck():
    gate, reported = threading.Event(), []

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        view.play()
        await page.until(lambda: view.playback.worker is not None and view.credits.in_flight == 0)
        page.say(kind="pointer", phase="press", place=[0.1, 0.1])
        view.pause()
        gate.set()
        await page.until(lambda: not view.playback.background)
        page.say(kind="pointer", phase="release", place=[0.9, 0.1])
        await page.until(lambda: reported and not reported[-1].pressed)

    scenario(lambda: Particles(np.zeros((1, 2)), lambda: gate.wait(300), pointer=reported.append), body)


def test_an_error_in_the_pointers_function_is_shown():
    def broken(pointer):
        raise ValueError("no such particle")

    async def body(view, page):
        page.say(kind="ready", view="page")
        page.say(kind="pointer", phase="press", place=[0.5, 0.5])
        await page.until(lambda: view.state == "stopped")
        assert "no such particle" in view.error

    scenario(lambda: Particles(np.zeros((1, 2)), pointer=broken), body)


def frames_of(data: bytes) -> list[np.ndarray]:
    with Image.open(io.BytesIO(data)) as gif:
        found = []
        for number in range(gif.n_frames):
            gif.seek(number)
            found.append(np.asarray(gif.convert("RGB")).astype(int))
        return found


def test_a_recording_has_each_frame_and_its_pace():
    clock = itertools.count(0, 0.1)
    recording = FrameRecorder(lambda: next(clock))
    for red in (0, 100, 200):
        recording.add(lambda red=red: np.full((8, 9, 3), (red, 0, 0), np.uint8))
    data = recording.gif()
    assert [frame[4, 4, 0] for frame in frames_of(data)] == [0, 100, 200]
    with Image.open(io.BytesIO(data)) as gif:
        assert (gif.info["duration"], gif.info["loop"], gif.size) == (100, 0, (9, 8))
    with pytest.raises(ViewError, match="no frames"):
        as_gif([], 25)


def test_a_view_records_and_takes_snapshots_without_a_page(tmp_path):
    x = np.array([[0.0, 0.5]])

    def step():
        x[:, 0] += 0.25

    view = Particles(x, step, radius=4, color=0xFF0000, size=40)
    view.record(tmp_path / "made" / "run.gif", frames=2, frames_per_second=10)
    shown = frames_of((tmp_path / "made" / "run.gif").read_bytes())
    columns = [int(np.mean(np.flatnonzero(frame[20, 1:-1, 1] < 100))) for frame in shown]
    assert len(shown) == 3 and columns == sorted(columns)
    assert abs(columns[-1] - 20) <= 2
    view.snapshot(tmp_path / "now.png")
    assert np.asarray(Image.open(tmp_path / "now.png"))[20, 20].tolist() == [255, 0, 0]
    with pytest.raises(ViewError, match="at least 1 frame, and for a GIF fewer than 600, not 0"):
        view.record(tmp_path / "none.gif", frames=0)


def test_the_buttons_hand_files_to_the_page_that_asked():
    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        page.say(kind="snapshot", page="here")
        files = lambda: [(m, b) for m, b in page.messages if m["kind"] == "file"]  # noqa: E731
        await page.until(lambda: len(files()) == 1)
        message, [data] = files()[0]
        assert (message["ending"], message["page"]) == ("png", "here")
        assert Image.open(io.BytesIO(data)).size == (60, 60)
        page.say(kind="record", page="here")
        view.play()
        await page.until(lambda: view.steps > 5)
        assert view.recording
        page.say(kind="record", page="here")
        await page.until(lambda: len(files()) == 2)
        assert not view.recording
        message, [data] = files()[1]
        assert message["type"] == "image/gif" and len(frames_of(data)) > 3
        view.stop()

    x = np.random.default_rng(0).random((5, 2))
    scenario(lambda: Particles(x, lambda: np.multiply(x, 0.9, out=x), radius=4, size=60), body)


@pytest.mark.parametrize("can_run", [True, False])
def test_a_page_that_runs_is_handed_over_or_the_view_says_why_not(can_run):
    x = np.random.default_rng(0).random((5, 2))

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        page.say(kind="page", page="here")
        await page.until(lambda: page.messages[-1][0]["kind"] in ("file", "refused"))
        message, buffers = page.messages[-1]
        assert not view.error and (message["kind"] == "file") == can_run
        if not can_run:
            assert message["page"] == "here" and re.match(r"Not saved: .*test_pointer.py, line \d+: ", message["words"])
        else:
            assert (message["ending"], message["type"], message["page"]) == ("html", "text/html", "here")
            assert 20_000 < len(buffers[0]) < 110_000 and b"tinote-data" in buffers[0]

    step = (lambda: None) if can_run else (lambda: np.multiply(x, 0.9, out=x))
    scenario(lambda: Particles(x, step, size=60), body)
