"""A view that plays shows a state that a GPU had, while the GPU runs the next steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.viz import live
from tinote.errors import KernelIndexError
from tinote.runtime import gpu
from tinote.runtime.readback import Looks, Readback
from tinote.viz.live.particles import Particles

COUNT = 40


@pytest.fixture(autouse=True)
def device() -> Iterator[gpu.Device]:
    ti.init(arch=ti.gpu, software_gpu=True)
    yield gpu.open_device(software=True)
    ti.init()


class World:
    """Points that turn, and how far they have come in all, by a step that a view can replay."""

    def __init__(self) -> None:
        x = self.x = ti.Vector.field(2, ti.f32, shape=COUNT)
        total = self.total = ti.field(ti.f32, shape=())
        limit = self.limit = ti.field(ti.i32, shape=())
        small = ti.field(ti.f32, shape=4)

        @ti.kernel
        def turn():
            for i in x:
                x[i] += 0.1 * ti.Vector([-x[i][1], x[i][0]])
            total[None] += 1.0

        @ti.kernel
        def turn_checked():
            for i in x:
                x[i] *= 0.99
            if limit[None] > 0:
                small[3 + limit[None]] = 1.0

        @ti.kernel
        def measure() -> ti.f32:
            found = 0.0
            for i in x:
                found += x[i].norm()
            return found

        self.turn, self.turn_checked, self.measure = turn, turn_checked, measure
        self.begin()

    def begin(self) -> None:
        """Back to the start."""
        self.x.from_numpy(np.random.default_rng(3).uniform(-0.3, 0.3, (COUNT, 2)).astype(np.float32))
        self.total.fill(0)

    def states(self, count: int, step: Any) -> list[tuple[bytes, float]]:
        """Positions and total at the start and after each of `count` steps."""
        self.begin()
        found = [(self.x.to_numpy().tobytes(), self.total[None])]
        for _ in range(count):
            step()
            found.append((self.x.to_numpy().tobytes(), self.total[None]))
        self.begin()
        return found


def next_frame(view: Any, steps: int = 1) -> Any:
    return view.playback.apart(view.frames.make_next, steps)


def shown(view: Any, world: World, states: list[tuple[bytes, float]], step: int) -> None:
    """What the view shows is the state after that step, whatever the fields hold by now."""
    by_hand = Particles(np.frombuffer(states[step][0], np.float32).reshape(COUNT, 2), bounds=view.look.bounds)
    by_hand.playback.apart(by_hand.frames.present)
    assert view.frames.last_frame.message["step"] == step
    assert view.frames.last_frame.buffers == by_hand.frames.last_frame.buffers
    assert tuple(view.history.latest) == (step, states[step][1])


def test_frames_are_of_one_state_each() -> None:
    world = World()
    states = world.states(40, world.turn)
    view = Particles(world.x, world.turn, bounds=((-1, 1), (-1, 1)), plots={"total": lambda: world.total[None]})
    ahead = []
    for k in range(30):
        next_frame(view)
        ahead.append(view.steps - view.frames.last_frame.message["step"])
        shown(view, world, states, k + 1)
    assert ahead[0] == 0 and ahead[-10:] == [1] * 10
    assert view.captured.state == "replayed"
    view.playback.apart(view.frames.present)
    shown(view, world, states, view.steps)
    assert [row[0] for row in view.history.table().tolist()] == list(range(1, 32))


def test_nobody_waits_for_the_steps_after_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are copied before the steps are submitted, and looked at after."""
    world = World()
    view = Particles(world.x, world.turn)
    for _ in range(15):
        next_frame(view, 3)
    order: list[str] = []
    wait, submit = gpu.Device.wait_for, gpu.Device.submit
    monkeypatch.setattr(gpu.Device, "wait_for", lambda *given: (order.append("wait"), wait(*given))[1])

    def submitting(device: gpu.Device) -> None:
        if device._encoder is not None:
            order.append("submit")
        submit(device)

    monkeypatch.setattr(gpu.Device, "submit", submitting)
    next_frame(view, 3)
    assert order == ["submit", "submit", "submit", "submit", "wait"]  # the copy, three steps


def test_a_plot_that_launches_waits_for_the_state() -> None:
    world = World()
    view = Particles(world.x, world.turn, plots={"norm": world.measure})
    for k in range(15):
        next_frame(view)
        assert view.steps == k + 1 == view.frames.last_frame.message["step"]
    expected = world.measure()
    assert abs(view.history.latest[1] - expected) <= 1e-6 * expected


def test_a_step_that_counts_in_python_waits_for_the_state() -> None:
    world = World()
    counts = {"steps": 0}

    def step() -> None:
        world.turn()
        counts["steps"] += 1

    view = Particles(world.x, step, plots={"steps": lambda: counts["steps"]})
    for k in range(15):
        next_frame(view)
        assert tuple(view.history.latest) == (k + 1, k + 1)


def test_another_field_is_shown_from_now_on() -> None:
    """A frame of which something was not read back is made of the present state."""
    world = World()
    which: list[Any] = [world.total]
    view = Particles(world.x, world.turn, plots={"total": lambda: which[0][None]})
    for _ in range(12):
        next_frame(view)
    assert view.steps > view.frames.last_frame.message["step"]
    other = ti.field(ti.f32, shape=())
    other.fill(7)
    which[0] = other
    next_frame(view)
    assert view.steps == view.frames.last_frame.message["step"]
    assert tuple(view.history.latest) == (view.steps, 7.0)
    assert len({row[0] for row in view.history.table().tolist()}) == len(view.history.table())
    for _ in range(3):
        next_frame(view)
    assert view.steps > view.frames.last_frame.message["step"]


def test_what_a_cell_writes_meanwhile_is_not_in_the_frame() -> None:
    world = World()
    view = Particles(world.x, world.turn)
    for _ in range(12):
        next_frame(view)
    before = Readback.of(view.frames.looked_at)
    there = world.x.to_numpy()
    world.x[0] = [9.0, 9.0]
    with before:
        assert (world.x.to_numpy() == there).all()
    assert before.is_whole
    assert world.x[0][0] == 9.0


def test_an_array_over_a_field_keeps_it_in_step() -> None:
    """Of whoever has a view of memory, nobody knows when it is looked at."""
    world = World()
    with Looks() as looks:
        world.x.to_numpy()
    assert looks.is_whole and len(looks.blocks) == 1
    view = world.x._array
    assert Readback.of(looks.blocks) is None
    with Looks() as again:
        world.x.to_numpy()
    assert not again.is_whole
    del view


def test_an_error_of_a_step_comes_after_the_frame_before_it() -> None:
    world = World()

    async def body(view: Any, page: live.Page) -> None:
        page.keeps_up = True
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.captured.replays > 20)
        world.limit[None] = 1
        await page.until(lambda: view.error)
        assert isinstance(view.exception, KernelIndexError)
        assert view.state == "stopped"

    live.scenario(lambda: Particles(world.x, world.turn_checked), body)


def test_pausing_shows_the_state_that_there_is() -> None:
    world = World()
    states: list[int] = []

    async def body(view: Any, page: live.Page) -> None:
        page.keeps_up = True
        page.say(kind="ready", view="page")
        view.play()
        await page.until(lambda: view.captured.replays > 20)
        view.pause()
        await page.until(lambda: page.frames[-1]["whole"] and page.frames[-1]["step"] == view.steps)
        states.append(view.steps)

    live.scenario(lambda: Particles(world.x, world.turn), body)
    left = world.x.to_numpy().tobytes()
    assert world.states(states[0], world.turn)[-1][0] == left
