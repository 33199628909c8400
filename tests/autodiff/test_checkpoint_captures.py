"""Checkpointed steps that are captured: unasked where it pays, with the derivatives of the function."""

import copy
import cProfile
import gc
import importlib
import pickle
import profile
import pstats
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, overwrites, scalar
from tests.lang import test_captured_steps_under_tapes as steps_under_tapes
from tests.lang.test_captured_steps_under_tapes import CASES, Fields, loss_of, same
from tinote.errors import DifferentiationError, KernelMemoryError
from tinote.lang.session.state import session

checkpointing: Any = sys.modules["tinote.lang.ad.checkpoint"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture whatever can be."""
    monkeypatch.setattr(checkpointing, "CAPTURE_COST", 0.0)
    monkeypatch.setattr(checkpointing, "CAPTURE_CALLS", 0)


def rollout(f: Fields, step: Callable[[int], Any], steps: int, **options: Any) -> Any:
    """What a tape over a checkpointed loop leaves."""
    measure = loss_of(f)
    steps_under_tapes.clock = 0.0
    f.begin()
    session.launches = 0
    with ti.ad.Tape(f.loss):
        measure()
        report = ti.ad.checkpoint(step, steps, **options)
        measure()
    return report, f.gradients(), f.values()


def as_functions(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> Any:
    """The same without captures."""
    with monkeypatch.context() as patch:
        patch.setattr(checkpointing, "may_capture", lambda *given: False)
        return run()


#: what cannot be captured in a loop, with a part of why not
REFUSED = {
    "a slice by an element": "depends on a number that the step reads",
    "memory without a gradient that goes on": "",
    "elements without a gradient": "",
    "through memory without a gradient": "",
    "a custom gradient": "",
    "a global that is assigned": "would not go back",
    "a plain number": "a plain number of it",
}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("snapshots", [None, 3])
@pytest.mark.parametrize(
    "name", [name for name in CASES if name not in ("a global that is assigned", "slices by a counter")]
)
def test_gradients_are_those_of_the_function(name: str, snapshots: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = Fields()
    step = CASES[name].make(fields)
    if name == "slices of time":

        def loop(t: int) -> Any:
            step(t)

    else:

        def loop(t: int) -> Any:
            step()

    def run() -> Any:
        return rollout(fields, loop, 11, snapshots=snapshots)

    plain, gradients, values = as_functions(monkeypatch, run)
    report, found, left = run()
    assert same(found, gradients) and same(left, values)
    assert report.recomputed == plain.recomputed and not plain.captured.replays
    if name in REFUSED:
        assert report.captured.state != "replayed" and REFUSED[name] in report.captured.reason, report.captured
    else:
        assert report.captured.state == "replayed" and report.captured.replays > 11, report.captured


@pytest.mark.usefixtures("always")
def test_a_step_that_depends_on_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = Fields()
    y, z = fields.y, fields.z

    @ti.kernel
    def sway(t: ti.i32, by: ti.f64):
        for i in y:
            y[i] += by * ti.sin(y[i] * (t + i)) + 0.01 * ti.random()

    @ti.kernel
    def mix():
        for i in y:
            z[i] = 0.5 * z[i] + ti.f32(y[i] * y[i])

    def step(t: int) -> None:
        sway(t, 0.5 / (t + 1))
        if t % 3 == 0:
            mix()
            if y[0] > 0.7:
                y[0] = 0.25 * y[1] + t

    wanted = as_functions(monkeypatch, lambda: rollout(fields, step, 23, snapshots=4))
    found = rollout(fields, step, 23, snapshots=4)
    assert same(found[1], wanted[1]) and same(found[2], wanted[2])
    assert found[0].captured.state == "replayed" and wanted[0].captured.state == "learning"


def test_where_it_pays() -> None:
    """Nothing is captured for a few steps; for many, or where a few run again and again, it is."""
    fields = Fields()
    step = CASES["gravity"].make(fields)

    def loop(t: int) -> None:
        step()

    for _ in range(2):
        assert rollout(fields, loop, 5)[0].captured.state == "learning"
    checkpointing.steps_of_loop(loop).spent = 1e3  # as after many calls
    assert rollout(fields, loop, 5)[0].captured.state == "replayed"
    assert rollout(fields, lambda t: step(), 4)[0].captured.state == "learning"


def test_a_captured_step_is_replayed_from_the_first_one() -> None:
    fields = Fields()
    step = CASES["springs"].make(fields)

    @ti.capture
    def program(t):
        step(2.0, 0.1)

    wanted = rollout(fields, lambda t: step(2.0, 0.1), 6)
    found = rollout(fields, program, 6)
    assert same(found[1], wanted[1])
    assert found[0].captured.replays == 12


@pytest.mark.usefixtures("always")
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(default_fp=ti.f64, num_threads=1)
    x, loss = array(512), scalar()

    @ti.kernel
    def curl():
        for i in x:
            x[i] = x[i] * (1 + 0.1 * ti.sin(x[i]))

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] * x[i]

    def step(t: int) -> None:
        curl()
        curl()

    def run(memory: int) -> Any:
        x.fill(0.5)
        with ti.ad.Tape(loss):
            report = ti.ad.checkpoint(step, 60, memory=memory)
            measure()
        return report, x.grad.to_numpy()

    state = 512 * 8
    _, wanted = as_functions(monkeypatch, lambda: run(200 * state))
    for states in (12, 40, 200):
        report, found = run(states * state)
        np.testing.assert_array_equal(found, wanted)
        assert report.peak_bytes <= states * state
        # A trial copies all fields several times: within the memory that is allowed.
        assert report.captured.state == ("learning" if states == 12 else "replayed")
    with pytest.raises(KernelMemoryError):
        run(state)


@pytest.mark.usefixtures("always")
def test_what_changes_before_the_reverse_sweep_is_refused() -> None:
    fields = Fields()
    y, measure, strength = fields.y, loss_of(fields), {"k": 0.5}

    @ti.kernel
    def sway(k: ti.f64):
        for i in y:
            y[i] += k * ti.sin(y[i])

    def step(t: int) -> None:
        sway(strength["k"])

    fields.begin()
    with pytest.raises(DifferentiationError, match=r"step\(\d+\) did something else"), ti.ad.Tape(fields.loss):
        report = ti.ad.checkpoint(step, 9)
        assert report.captured.state == "replayed"
        measure()
        strength["k"] = 0.75
    # What has changed is captured anew.
    fields.begin()
    with ti.ad.Tape(fields.loss):
        report = ti.ad.checkpoint(step, 9)
        measure()
    assert report.captured.state == "replayed" and report.captured.replays > 9
    assert "captured 2 times" in repr(report.captured)

    def state(k: float, steps: int) -> str:
        strength["k"] = k
        fields.begin()
        with ti.ad.Tape(fields.loss):
            report = ti.ad.checkpoint(step, steps)
            measure()
        return str(report.captured.state)

    # As the function for a while, where it changes often; at once, where much was replayed before the change.
    assert [state(0.5 + 0.01 * k, 9) for k in range(16)] == ["learning"] * 16
    assert [state(0.75, 600), state(0.5, 600), state(0.25, 600)] == ["replayed"] * 3


@pytest.mark.usefixtures("always")
def test_objects_whose_methods_are_steps() -> None:
    fields = Fields()

    class World:
        def __init__(self, k: float) -> None:
            self.k = k

        def step(self, t: int) -> None:
            sway(self.k)

    y = fields.y

    @ti.kernel
    def sway(k: ti.f64):
        for i in y:
            y[i] += k * ti.sin(y[i])

    first, second = World(0.25), World(0.5)
    found = [rollout(fields, world.step, 9) for world in (first, second, first)]
    assert all(report.captured.state == "replayed" for report, _, _ in found)
    assert same(found[0][1], found[2][1]) and not same(found[0][1], found[1][1])
    assert copy.deepcopy(first).k == 0.25
    assert pickle.loads(pickle.dumps(checkpointing.steps_of_loop(first.step))).how.state == "learning"


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("text", "why"),
    [("table[t]", "is needed itself"), ("math.sin(t)", "is needed itself"), ("seen.append(t) or 0.5", "changes")],
)
def test_what_cannot_be_captured_says_why(text: str, why: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = Fields()
    y = fields.y

    @ti.kernel
    def sway(k: ti.f64):
        for i in y:
            y[i] += k * ti.sin(y[i])

    (tmp_path / "a_loop_of_steps.py").write_text(
        f"import math\ntable = [0.1 * t for t in range(12)]\nseen = []\n\ndef step(t):\n    sway({text})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_loop_of_steps", raising=False)
    a_loop_of_steps: Any = importlib.import_module("a_loop_of_steps")
    a_loop_of_steps.sway = sway
    wanted = as_functions(monkeypatch, lambda: rollout(fields, a_loop_of_steps.step, 9))
    found = rollout(fields, a_loop_of_steps.step, 9)
    assert same(found[1], wanted[1])
    assert found[0].captured.state == "function" and why in found[0].captured.sentence
    assert a_loop_of_steps.seen == [] or a_loop_of_steps.seen.count(3) == 4


@pytest.mark.usefixtures("always")
@overwrites
def test_what_looks_on_sees_each_launch() -> None:
    """Tapes that check, and forward mode."""
    fields = Fields(debug=True)
    step = CASES["gravity"].make(fields)

    def loop(t: int) -> None:
        step()

    measure = loss_of(fields)
    for field in fields.all:
        field.ensure_dual()
    seed = np.linspace(-1, 1, 12).reshape(6, 2)

    def f() -> None:
        ti.ad.checkpoint(loop, 7)
        measure()

    def all_of() -> list[Any]:
        found = []
        fields.begin()
        with ti.ad.Tape(fields.loss, validation="collect"):
            f()
        found.append(fields.x.grad.to_numpy())
        fields.begin()
        with ti.ad.FwdMode(fields.loss, fields.x, seed=seed):
            f()
        found.append(fields.loss.dual.to_numpy())
        fields.begin()
        found.append(ti.ad.grad(f, wrt=fields.x, loss=fields.loss)())
        return found

    with pytest.MonkeyPatch.context() as patch:
        wanted = as_functions(patch, all_of)
    for _ in range(2):
        for a, b in zip(all_of(), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_many_states_cost_no_more_each() -> None:
    """What is kept is counted as it comes and goes: a long loop takes as long a step as a short one."""
    fields = Fields()
    step = CASES["gravity"].make(fields)
    chain = checkpointing._Chain(lambda t: step(), 4000, 1 << 30, None, False, None)
    counted = 0

    class Counted(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            nonlocal counted
            counted += len(self)
            return super().__iter__()

    chain.kept = Counted(chain.kept)
    chain.note(fields.x.buffer)
    for position in range(1, 500):
        chain._keep(position)
        chain.fit(64)
    assert counted == 0 and chain._held(0) == 501 * chain.report.state_bytes


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("make", [cProfile.Profile, profile.Profile])
def test_profiles_are_those_of_what_runs_without_a_profiler(make: Callable[[], Any]) -> None:
    fields = Fields()
    step = CASES["gravity"].make(fields)

    def one_step(t: int) -> None:
        step()

    def whole() -> Any:
        found = rollout(fields, one_step, 40, snapshots=6)
        what_follows()
        return found

    def what_follows() -> int:
        return sum(range(10))

    report, gradients, values = rollout(fields, one_step, 40, snapshots=6)
    vars(one_step).clear()  # what is known of it
    profiler = make()
    gc.disable()  # before a call is noticed, callbacks of a collection (JAX has one) break what `profile` asserts
    try:
        profiled, found, left = profiler.runcall(whole)
    finally:
        gc.enable()
    assert same(found, gradients) and same(left, values)
    assert profiled.captured == report.captured and profiled.captured.replays > 40
    assert sys.getprofile() is None
    stats = pstats.Stats(profiler).stats.items()  # type: ignore[attr-defined]
    calls = {name: entry for (file, _, name), entry in stats if file in (__file__, checkpointing.__file__)}
    # Calls after the capture are counted, and callers of it have its time.
    assert [calls[name][0] for name in ("what_follows", "rollout", "whole", "_capture")] == [1, 1, 1, 1]
    assert 3 < calls["one_step"][0] < 40
    assert calls["whole"][3] >= calls["rollout"][3] >= calls["sweep"][3] >= calls["_capture"][3] > 0
