"""Remarks: each step that leaves a loop or a value as it is says so, with its line and the reason; or what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinote as ti
from tests.runtime.processors import machine_with
from tests.viz.explored import line_of
from tinote.compiler.inspect.stages import stages_of
from tinote.runtime import jit

pytestmark = pytest.mark.optimised

N = 4096

#: Of each kernel: the end of a line, the step, whether that was done, and words of what it says.
Expected = list[tuple[str, str, bool, str]]


def straight(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:  # straight
            y[i] = 2 * x[i]

    return run


def searching(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:  # searching
            v = x[i]
            while v * v < 9.0:
                v = v * v + 0.8
            y[i] = v

    return run


def printing(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:  # printing
            while x[i] > 1.0:
                x[i] *= 0.5
                print(i)

    return run


def few(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(3):  # few
            while x[i] > 1.0:
                x[i] *= 0.5

    return run


def meeting(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:  # meeting
            x[i] = x[k[i]] + 1

    return run


def carried(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run() -> ti.f32:
        a = 1.0
        for i in x:  # carried
            a = a * x[i] + 1.0
        return a

    return run


def summed(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:  # summed
            s[None] += x[i]  # sum
            y[k[i]] += x[i]  # spread

    return run


def written_out(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run(n: ti.i32):
        for i in x:  # short
            v = x[i]
            for _ in range(3):
                v = v * v + 1.0
            y[i] = v
        for i in x:  # of any length
            v = x[i]
            for _ in range(n):
                v = v * v + 1.0
            y[i] = v
        for i in x:  # long
            v = x[i]
            for _ in range(100_000):
                v = v * v + 1.0
            y[i] = v

    return run


PRIMALS: dict[Callable[..., Any], Expected] = {
    straight: [
        ("# straight", "mark_vector_loops", True, "independent"),
        ("# straight", "vectorise", False, "left to LLVM"),
    ],
    searching: [("# searching", "vectorise", True, "vectorised ×64 (masked)")],
    printing: [("# printing", "vectorise", False, "it prints")],
    few: [("# few", "vectorise", False, "fewer than 16 iterations")],
    meeting: [
        ("# meeting", "keep_order", False, "another one may read"),
        ("# meeting", "mark_vector_loops", False, "another one may read"),
        ("# meeting", "vectorise", False, "keep their order"),
    ],
    carried: [("# carried", "order_iterations", False, "`a` is carried from one iteration to the next")],
    summed: [
        ("# sum", "privatise", True, "a copy of `s` for each thread"),
        ("# spread", "privatise", False, "no copy of `y` for each thread: it has too few updates"),
        ("# summed", "mark_vector_loops", False, "may update one element of `y`"),
    ],
    written_out: [
        ("# short", "mark_vector_loops", True, "written out"),
        ("# of any length", "mark_vector_loops", False, "known at run time only"),
        ("# long", "mark_vector_loops", False, "too long"),
    ],
}


def stencil(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(1, N - 1):  # stencil
            y[i] = x[i - 1] + x[i + 1]

    return run


def branching(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(1, N - 1):  # branching
            if k[i] > 0:
                y[i] = x[i - 1] + x[i + 1]

    return run


def wide(x: Any, y: Any, k: Any, s: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(100, N - 100):  # wide
            y[i] = x[i - 100] + x[i + 100]

    return run


GRADIENTS: dict[Callable[..., Any], Expected] = {
    stencil: [("# stencil", "scatter_to_gather", True, "sums up")],
    branching: [("# branching", "scatter_to_gather", False, "has a branch")],
    wide: [("# wide", "scatter_to_gather", False, "more than 8 apart")],
}


@pytest.fixture
def fields(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    monkeypatch.setattr(jit, "_host", machine_with(512))
    ti.init(offline_cache=False, num_threads=2)
    x, y = [ti.field(ti.f32, N, needs_grad=True, name=name) for name in "xy"]
    return x, y, ti.field(ti.i32, N), ti.field(ti.f32, (), needs_grad=True, name="s")


def said_of(kernel: Any, gradient: bool) -> list[tuple[int, str, bool, str]]:
    """All remarks; each comes from a step that ran."""
    made = stages_of(kernel.specialise_by_types(), gradient)
    assert {one.step for one in made.remarks} <= {stage.name for stage in made.stages}
    return [(one.loc.line, one.step, one.done, one.text) for one in made.remarks]


def compare(found: list[tuple[int, str, bool, str]], expected: Expected) -> None:
    for end, step, done, words in expected:
        line = line_of(__file__, end)
        assert any(one[:3] == (line, step, done) and words in one[3] for one in found), (end, step, words, found)


@pytest.mark.parametrize("program", PRIMALS, ids=lambda program: program.__name__)
def test_what_was_decided_is_said_of_a_kernel(program: Callable[..., Any], fields: tuple[Any, ...]) -> None:
    compare(said_of(program(*fields), False), PRIMALS[program])


@pytest.mark.parametrize("program", GRADIENTS, ids=lambda program: program.__name__)
def test_what_was_decided_is_said_of_a_gradient(program: Callable[..., Any], fields: tuple[Any, ...]) -> None:
    compare(said_of(program(*fields), True), GRADIENTS[program])


def test_lanes_that_are_switched_off_say_so() -> None:
    ti.init(offline_cache=False, lanes="never")
    x, y = ti.field(ti.f32, N), ti.field(ti.f32, N)
    (reason,) = [text for _, step, _, text in said_of(searching(x, y, None, None), False) if step == "vectorise"]
    assert reason == "lanes='never' is in force"


def test_tables_show_the_reasons_that_steps_gave(fields: tuple[Any, ...]) -> None:
    kernel = carried(*fields)
    (reason,) = [text for _, step, _, text in said_of(kernel, False) if step == "order_iterations"]
    assert [task.because for task in kernel.tasks() if task.because] == [reason]
    assert f"in order: {reason}" in [one.advice for one in kernel.loops()]


def test_debug_mode_says_why_iterations_run_in_order() -> None:
    ti.init(offline_cache=False, debug=True)
    x, y, k = ti.field(ti.f32, N), ti.field(ti.f32, N), ti.field(ti.i32, N)
    kernel = meeting(x, y, k, None)
    compare(said_of(kernel, False), [("# meeting", "watch_conflicts", True, "whether its iterations meet")])
    assert "serial: debug mode watches whether its iterations meet" in repr(kernel.tasks())
    assert any("another one may read" in one.advice for one in kernel.loops())
