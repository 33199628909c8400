"""Views capture their steps by themselves: what they show, count and keep is what it would be without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_captured_steps import Library
from tests.viz import live
from tinote.lang.capture import automatic
from tinote.viz import Particles, Plot, slider

STEP = """
rate = 0.125
def step():
    global done
    with ti.ad.Tape(total):
        energy()
    advance(rate)
    done += 1
def counted_step():
    step()
    history.append(1)
def set_rate(value):
    global rate
    rate = value
"""


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)
    made = Library()
    made.define(STEP, "captured_views.py")
    made.begin()
    return made


def values(library: Library) -> list[bytes]:
    return [field.to_numpy().tobytes() for field in library.fields]


def test_frames_samples_and_fields_are_those_of_the_function(library: Library) -> None:
    space = library.space
    left: list[Any] = []
    for way in ("function", "captured"):
        library.begin()
        step = space["step" if way == "captured" else "counted_step"]
        view = Particles(space["x"], step, plots={"energy": lambda: space["total"][None]}, steps_per_frame=4)
        frames = []
        for _ in range(6):
            view.advance()
            frames.append(view.frames.last_frame)
        how = view.captured
        assert how.state == ("replayed" if way == "captured" else "function")
        left.append((frames, view.history.table().tolist(), view.steps, space["done"], values(library)))
    assert left[0] == left[1]


def test_while_a_page_plays(library: Library) -> None:
    space = library.space
    seen: list[tuple[int, str]] = []

    async def body(view: Any, page: live.Page) -> None:
        page.keeps_up = True
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.captured.replays > 20)
        await page.until(lambda: view.step_note.startswith("Steps are replayed"))
        view.pause()
        await page.until(lambda: page.frames[-1]["whole"] and page.frames[-1]["step"] == view.steps)
        assert view.steps == space["done"]
        seen.append((view.steps, view.step_note))

    live.scenario(lambda: Particles(space["x"], space["step"], steps_per_frame=3), body)
    captured = values(library)
    library.begin()
    for _ in range(seen[0][0]):
        space["step"]()
    assert values(library) == captured


def test_a_view_says_why_its_step_runs_as_a_function(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    library.define("def loud():\n    curl()\n    print('step')\n", "loud.py")
    view = Plot(lambda: 0.0, library.space["loud"])
    view.advance(3)
    assert capsys.readouterr().out == "step\n" * 3
    assert view.captured.state == "function"
    assert view.step_note == (
        "Steps run as a function: it calls `print`, which a replay would not do again (line 3: print('step'))"
    )
    assert repr(view.captured) == f"<{view.step_note}>"
    assert Plot(lambda: 0.0).captured is None


def test_a_slider_moves_without_another_capture(library: Library) -> None:
    space = library.space
    view = Particles(space["x"], space["step"], steps_per_frame=4)
    widget = slider(view, space["set_rate"], 0.0, 1.0, value=0.125)
    for k in range(12):
        view.advance()
        widget.value = 0.01 * k
    how = view.captured
    assert how.captures == 1 and how.replays == 48 - 5
    captured = values(library)
    library.begin()
    space["rate"] = 0.125
    for k in range(12):
        for _ in range(4):
            space["step"]()
        space["rate"] = 0.01 * k
    assert values(library) == captured


def test_a_field_behind_a_slider_is_no_matter(library: Library) -> None:
    library.define("def push_all():\n    y[0] = y[0] + loss[None]\n", "push_all.py")
    view = Plot(lambda: 0.0, library.space["push_all"])
    widget = slider(view, library.space["loss"], 0.0, 1.0, value=0.5)
    start = library.space["y"][0]
    for k in range(12):
        widget.value = 0.25 * (k % 3)
        view.advance()
    assert view.captured.captures == 1
    assert library.space["y"][0] == start + 3.0


def test_a_program_of_ti_capture_is_replayed_by_a_view_that_owns_gradients(library: Library) -> None:
    space = library.space
    library.begin()
    for _ in range(6):
        space["step"]()
    wanted = values(library)
    library.begin()
    program = ti.capture(space["step"])
    view = Particles(space["x"], program)
    view.advance()
    launched: list[int] = []
    prepared = program._last.prepared
    launch = prepared._launch
    prepared._launch = lambda address: (launched.append(address), launch(address))[1]
    view.advance(5)
    assert len(launched) == 5
    assert values(library) == wanted
    assert view.captured.reason == "it is a program of ti.capture"


def test_pauses_take_effect_between_two_replays(library: Library) -> None:
    view = Plot(lambda: 0.0, library.space["step"])
    view.advance(12)
    assert view.captured.state == "replayed"
    view.frames.step = _Halting(view, view.frames.step, 3)
    view.steps_per_frame = 100
    view.advance()
    assert view.steps == 12 + 3


class _Halting:
    """Pauses the view after a number of steps."""

    def __init__(self, view: Plot, step: Any, after: int) -> None:
        self._view, self._inner, self._left = view, step, after

    def __call__(self) -> None:
        self._inner()
        self._left -= 1
        if not self._left:
            self._view.frames.halt.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_what_pages_say_is_in_the_page() -> None:
    text = (Path(ti.__file__).parent / "viz" / "static" / "views/simulation.js").read_text(encoding="utf-8")
    assert 'status.title = model.get("step_note")' in text


def test_a_recorded_film_is_that_of_the_function(library: Library, tmp_path: Path) -> None:
    films = []
    for way in ("function", "captured"):
        library.begin()
        view = Particles(library.space["x"], library.space["step" if way == "captured" else "counted_step"], size=32)
        view.record(tmp_path / f"{way}.gif", frames=8)
        films.append((tmp_path / f"{way}.gif").read_bytes())
    assert films[0] == films[1]
    assert np.isfinite(library.space["x"].to_numpy()).all()
