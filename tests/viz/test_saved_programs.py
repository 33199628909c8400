"""What a notebook keeps of a view besides its picture: how it runs without a kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from ipywidgets import VBox

import tinote as ti
from tests.viz.live import Page, scenario
from tinote.cli.lab import EXTENSIONS
from tinote.lang.capture import trial
from tinote.lang.session.state import session
from tinote.viz.notebook import front_end
from tinote.viz.notebook.composed import bundle_of
from tinote.viz.pages import export, stored
from tinote.viz.pages.bundle import payload, unpacked
from tinote.viz.pages.export import Pages

x = t = made = None
count = 0
log: list[int] = []


@pytest.fixture(autouse=True)
def fields() -> Iterator[None]:
    global x, t, count
    ti.init(arch=ti.cpu)
    x, t = ti.Vector.field(2, ti.f32, shape=8), ti.field(ti.f32, ())
    count = 0
    log.clear()
    yield
    ti.viz.set_stored_size(300_000)


@ti.kernel
def advance(dt: ti.f32):
    for i in x:
        x[i] += dt
    t[None] += dt


@ti.kernel
def for_ever():
    while t[None] == 0.0:
        x[0].x += 1.0


@ti.kernel
def talkative():
    print("a kernel's print", t[None])


class Simulation:
    def __init__(self) -> None:
        self.time = 0.0
        self.history: list[float] = []
        self.numbers = iter(range(100))

    def step(self) -> None:
        advance(0.01)
        self.time += 0.01

    def appends(self) -> None:
        advance(0.01)
        self.history.append(self.time)

    def by_another_way(self) -> None:
        for one in [self.appends]:
            one()

    def draws(self) -> None:
        advance(0.01 * next(self.numbers))


def counts() -> None:
    global count
    count += 1
    advance(0.01)


def appends() -> None:
    log.append(1)
    advance(0.01)


def prints() -> None:
    print("a step's print")
    advance(0.01)


def prints_in_a_kernel() -> None:
    talkative()


def draws() -> None:
    advance(0.01 * float(np.random.rand()))


def makes_fields() -> None:
    global made
    made = ti.field(ti.f32, 3)
    advance(0.01)


def writes_a_file() -> None:
    open("/tmp/never-made", "w").close()
    advance(0.01)


def takes_long() -> None:
    begin = time.perf_counter()
    while time.perf_counter() < begin + 0.1:
        advance(0.0)


def never_ends() -> None:
    for_ever()


def fails() -> None:
    advance(0.01)
    raise ValueError("no")


simulation = Simulation()
STEPS = {
    "a method": (simulation.step, True),
    "a counter": (counts, True),
    "a lambda": (lambda: advance(0.01), True),
    "a list": (appends, False),
    "a list of an object": (simulation.appends, False),
    "a method found at run time": (simulation.by_another_way, False),
    "an iterator": (simulation.draws, False),
    "a print": (prints, False),
    "a kernel that prints": (prints_in_a_kernel, False),
    "a random number": (draws, False),
    "fields": (makes_fields, False),
    "a file": (writes_a_file, False),
    "an exception": (fails, False),
    "a slow step": (takes_long, False),
    "a step that never ends": (never_ends, False),
}


@pytest.mark.parametrize("name", STEPS)
def test_nothing_is_left_behind_by_a_step_that_nobody_has_asked_to_run(name: str, capfd, monkeypatch) -> None:
    monkeypatch.setattr(trial, "_LONGEST_FIRST_CALL", 60.0 if name != "a step that never ends" else 0.5)
    step, runs = STEPS[name]
    view = ti.viz.Particles(x, step, energy=lambda: t[None])
    simulation.time, simulation.numbers = 0.25, iter(range(100))
    state = np.random.get_state()[1].tolist()
    view.keep_program()
    assert bool(view.program) == runs
    assert (count, log, simulation.time, simulation.history, view.steps) == (0, [], 0.25, [], 0)
    assert next(simulation.numbers) == 0 and np.random.get_state()[1].tolist() == state
    assert not x.to_numpy().any() and t[None] == 0.0
    assert capfd.readouterr().out == ""
    if runs:
        found = unpacked(view.program)
        assert found["kind"] == "particles" and found["described"]["plots"] == ["plot0"]


def view_of(n: int = 8) -> ti.viz.Particles:
    return ti.viz.Particles(np.full((n, 2), 0.5) if n != 8 else x, lambda: advance(0.01))


def test_the_size_has_a_limit_that_the_user_can_set() -> None:
    view = view_of()
    view.keep_program()
    size = len(view.program)
    assert 1000 < size < 30_000
    for limit, kept in ((size, True), (size - 1, False), (0, False)):
        ti.viz.set_stored_size(limit)
        view.set_trait("program", "")
        view.keep_program()
        assert bool(view.program) == kept


def test_not_while_a_view_plays() -> None:
    view, other = view_of(), view_of()
    other.set_trait("state", "playing")
    view.keep_program()
    assert not view.program
    other.set_trait("state", "paused")
    view.keep_program()
    assert view.program


@pytest.mark.parametrize("how", ["pause", "stop", "close", "single_step", "an error"])
def test_a_view_that_is_made_while_another_plays_is_kept_when_that_ends(how: str) -> None:
    fails = [False]

    def step() -> None:
        if fails[0]:
            raise ValueError("far away")
        advance(0.01)

    async def body(other: ti.viz.Particles, page: Page) -> None:
        page.keeps_up = True
        page.say(kind="ready", view="a", visible=True)
        other.play()
        await page.until(lambda: other.steps > 3)
        view, third = view_of(), view_of()
        view.keep_program()
        assert not view.program and not third.program
        if how == "an error":
            fails[0] = True
        else:
            getattr(other, how)()
        await page.until(lambda: view.program)
        assert other.state != "playing" and not third.program

    scenario(lambda: ti.viz.Particles(x, step), body)


def test_a_view_says_why_it_is_kept_as_a_picture() -> None:
    for step, reason in (
        (prints, "`print`"),
        (draws, "gives something else at each call"),
        (lambda: advance(0.01), ""),
    ):
        view = ti.viz.Particles(x, step)
        view.keep_program()
        assert reason in view.program_note and bool(view.program_note) == bool(reason) != bool(view.program)
    ti.viz.set_stored_size(1000)
    view.keep_program()
    assert "set_stored_size(1000)" in view.program_note and not view.program


def test_a_program_that_executes_the_notebook_keeps_it_from_the_first_step(monkeypatch) -> None:
    monkeypatch.setattr(front_end, "audience", lambda: front_end.Audience.PROGRAM)
    monkeypatch.setattr("tinote.viz.notebook.view.audience", lambda: front_end.Audience.PROGRAM)
    monkeypatch.setattr("tinote.viz.notebook.composed.audience", lambda: front_end.Audience.PROGRAM)
    view = view_of()
    slider = ti.viz.slider(view, t, 0, 1, value=0.5)
    for shown in (view, VBox([view, slider])):
        data, _ = shown._repr_mimebundle_() if shown is view else bundle_of(shown)
        (text,) = data[front_end.VIEW_TYPE]["views"]
        assert "image/png" in data and json.dumps(data)
    assert len(unpacked(text)["described"]["controls"]) == 1 and view.steps > 0
    plain, _ = ti.viz.Particles(x, appends)._repr_mimebundle_()
    assert front_end.VIEW_TYPE not in plain and "image/png" in plain


def test_where_a_person_looks_it_is_made_after_the_cell(monkeypatch) -> None:
    registered = []
    hooks = SimpleNamespace(
        register=lambda event, job: registered.append((event, job)),
        unregister=lambda event, job: registered.remove((event, job)),
    )
    monkeypatch.setattr(front_end, "audience", lambda: front_end.Audience.PERSON)
    monkeypatch.setattr(front_end, "cell_hooks", lambda: hooks)
    monkeypatch.setattr(front_end, "cell_runs", lambda: True)
    view = view_of()
    data, _ = view._repr_mimebundle_()
    assert data[front_end.VIEW_TYPE] == {"version": 1} and not view.program
    [(event, job)] = registered
    page = Page(view)
    job(SimpleNamespace())
    assert event == "post_run_cell" and view.program and registered == [] and page is not None


@pytest.mark.parametrize(
    "views", [[], "text", [1], ["damaged"], ["x" * 17] * 17, [payload([1])], [payload({"kind": "a"})]]
)
def test_what_is_damaged_is_reported(views: object) -> None:
    with pytest.raises(ValueError):
        stored.place_kept(Pages(), views)


def test_what_unpacks_to_more_than_it_may_is_refused() -> None:
    text = payload({"kind": "particles", "described": {"kind": "particles", "zeros": bytes(1 << 20)}})
    assert len(text) < 4000
    with pytest.raises(ValueError, match="too large"):
        unpacked(text, 1 << 19)


def test_the_memory_of_a_program_has_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(stored, "LARGEST_MEMORY", 1000)
    found = stored.kept(view_of(), 300_000)
    assert not found.program and "MiB of memory" in found.reason
    assert export.running(view_of()).kind == "particles"


def test_the_bounds_of_the_player_are_those_of_what_is_stored() -> None:
    parts = json.loads((EXTENSIONS / "tinote" / "static" / "player.json").read_text("utf-8"))
    first = "\n".join(parts["first"])
    assert f"MOST_MEMORY = {stored.LARGEST_MEMORY >> 20} * 2 ** 20" in first


def moves_by_chance() -> None:
    global count
    count += 1
    wander(0.01 * count)


@ti.kernel
def wander(dt: ti.f32):
    for i in x:
        x[i] += dt * ti.random(ti.f32)


@ti.kernel
def mean() -> ti.f32:
    found = 0.0
    for i in x:
        found += x[i].x
    return found / 8.0


def test_after_a_look_ahead_a_scene_sends_all_that_its_page_lacks() -> None:
    def make() -> ti.viz.Scene:
        scene = ti.viz.Scene(moves_by_chance, renderer="page", size=(60, 40), unattended_frames=3)
        return scene.particles(ti.Vector.field(3, ti.f32, shape=4), radius=0.2, color="#d94f5c")

    async def body(view: ti.viz.Scene, page: Page) -> None:
        page.keeps_up = True
        view.keep_program()
        page.say(kind="look", view="page", order=1, draws=True, dark=False, scale=1.0)
        page.say(kind="ready", view="page")
        await page.until(lambda: any(message["kind"] == "ahead" for message, _ in page.messages))
        page.messages.clear()
        page.say(kind="step")
        await page.until(lambda: any("scene" in message for message, _ in page.messages))
        scene, arrays = next((message["scene"], data) for message, data in page.messages if "scene" in message)
        named = {item[name] for item in scene["items"] for name in ("positions", "colors") if name in item}
        assert named <= set(scene["parts"]) and len(arrays) >= len(scene["parts"]) > 1

    scenario(make, body)


@pytest.mark.parametrize("trail", [0, 4])
def test_the_picture_kept_is_that_of_frames_that_nobody_has_made(trail: int) -> None:
    """They leave nothing: memory, numbers in Python, random numbers, the plot and what pages get are at the start."""
    given = {"size": 120, "energy": mean, "bounds": ((0, 9), (0, 9)), "trail": trail, "unattended_frames": 12}

    def make() -> ti.viz.Particles:
        return ti.viz.Particles(x, moves_by_chance, steps_per_frame=3, **given)

    async def body(view: ti.viz.Particles, page: Page) -> list[bytes]:
        page.keeps_up = True
        launches, before = session.launches, x.to_numpy()
        first = view.picture()
        view.keep_program()
        page.say(kind="ready", view="page")
        await page.until(lambda: any(message["kind"] == "ahead" for message, _ in page.messages))
        assert (view.steps, count, session.launches) == (0, 0, launches) and np.array_equal(x.to_numpy(), before)
        assert len(view.history.table()) == 1 and view.picture() == first
        message, [png, dark] = next(one for one in page.messages if one[0]["kind"] == "ahead")
        assert message["step"] == 36 and png != first and dark not in (png, first)
        # Looking ahead changes nothing in what is played afterwards.
        view.advance(12)
        assert view.picture() == png
        page.messages.clear()
        page.say(kind="ready", view="other")
        await page.until(lambda: any(message["kind"] == "ahead" for message, _ in page.messages))
        return [png]

    scenario(make, body)


@pytest.mark.parametrize("step", [appends, draws, writes_a_file, None])
def test_nothing_is_looked_at_ahead_that_might_leave_something(step: Callable[[], object] | None) -> None:
    async def body(view: ti.viz.Particles, page: Page) -> None:
        page.keeps_up = True
        view.keep_program()
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames and not view.playback.background)
        assert not any(message["kind"] == "ahead" for message, _ in page.messages) and log == []

    scenario(lambda: ti.viz.Particles(x, step, size=120), body)


STORED = {"particles": 14_100, "space": 12_276, "image": 7_944, "plot": 5_920}
"""Characters that a notebook holds of these views, as it was before views had axes, scales and controls."""


@pytest.mark.parametrize("kind", STORED)
def test_a_stored_view_has_not_grown_by_a_tenth(kind: str) -> None:
    n, rng = 300, np.random.default_rng(0)
    plane, speed = (ti.Vector.field(2, ti.f32, shape=n) for _ in range(2))
    space = ti.Vector.field(3, ti.f32, shape=n)
    u, w = (ti.field(ti.f32, shape=(96, 96)) for _ in range(2))
    plane.from_numpy(rng.random((n, 2), np.float32))
    space.from_numpy(rng.random((n, 3), np.float32))
    speed.from_numpy(0.01 * rng.random((n, 2), np.float32))

    @ti.kernel
    def move():
        for i in plane:
            plane[i] += speed[i]
            for k in ti.static(range(2)):
                if plane[i][k] < 0 or plane[i][k] > 1:
                    speed[i][k] = -speed[i][k]

    @ti.kernel
    def drift():
        for i in space:
            space[i] += ti.Vector([0.001, 0.002, -0.001])

    @ti.kernel
    def wave():
        for i, j in u:
            if 0 < i < 95 and 0 < j < 95:
                w[i, j] += 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        for i, j in u:
            u[i, j] += 0.1 * w[i, j]

    @ti.kernel
    def fall():
        t[None] *= 0.9

    view = {
        "particles": lambda: ti.viz.Particles(plane, move, size=320),
        "space": lambda: ti.viz.Particles(space, drift, size=320),
        "image": lambda: ti.viz.Image(u, wave, size=320),
        "plot": lambda: ti.viz.Plot(lambda: t[None], fall),
    }[kind]()
    kept = stored.kept(view, 300_000)
    assert kept.reason == "" and 0.5 * STORED[kind] < len(kept.program) < 1.1 * STORED[kind]
