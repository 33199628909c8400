"""An interrupt may come between any two lines: whatever it ends, nothing goes on recording."""

import contextlib
import gc
import linecache
import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.session.state import own_watcher, recorder
from tinote.lang.session.state import session as state

FILES = (
    "ad/tape.py", "ad/custom.py", "journal/journal.py", "session/state.py", "functional/fwd_mode.py",
    "functional/forward_mode.py", "functional/forward_block.py", "functional/runs.py", "functional/tape_inside.py",
    "functional/forward.py", "functional/layer.py", "functional/own_duals.py", "functional/tangent_fields.py",
    "functional/inner.py", "functional/inner_gradient.py", "functional/inner_derivative.py", "functional/effects.py",
    "journal/events.py",
)  # fmt: skip
# Lines that are done by the time Python looks for interrupts, so that none can come in their place.
DONE = ("recorder.set(", "watchers.remove(", "_open.set(")
ENDS = ("__exit__", "stop", "_end", "leave")


@cache
def is_traced(file: str) -> bool:
    return file.endswith(FILES)


@cache
def may_be_interrupted(file: str, number: int) -> bool:
    """Python looks for interrupts at calls (and at the ends of loops) alone."""
    text = linecache.getline(file, number)
    return "(" in text and not any(one in text for one in DONE)


def trace(run: Callable[[], None], before_line: Callable[[FrameType], None]) -> None:
    """`run`, and `before_line` before each line in `FILES` in whose place an interrupt can come.

    The first line of what ends a block is left out, as Python looks there before the function can do anything.
    """

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and may_be_interrupted(frame.f_code.co_filename, frame.f_lineno):
            before_line(frame)
        return line

    def first_line(frame: FrameType, event: str, _: Any) -> Any:
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        if not is_traced(frame.f_code.co_filename):
            return None
        return first_line if frame.f_code.co_name in ENDS else line

    sys.settrace(call)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)


def place_of(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def lines_of(run: Callable[[], None]) -> list[str]:
    """The lines that `run` executes, one after the other."""
    lines: list[str] = []
    trace(run, lambda frame: lines.append(place_of(frame)))
    return lines


def ends(lines: list[str]) -> list[int]:
    """Where each line comes first and last: in the outermost recording and in the innermost."""
    first = {line: number for number, line in reversed(list(enumerate(lines)))}
    last = {line: number for number, line in enumerate(lines)}
    return sorted({*first.values(), *last.values()})


def interrupted_at(run: Callable[[], None], number: int) -> str:
    """Interrupt `run` before the line of this number. Gives where, if it came so far."""
    left, place = number, ""

    def before_line(frame: FrameType) -> None:
        nonlocal left, place
        left -= 1
        if left < 0:
            sys.settrace(None)
            place = place_of(frame)
            raise KeyboardInterrupt

    trace(run, before_line)
    return place


def programs() -> dict[str, Callable[[], None]]:
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x = ti.field(ti.f64, 3, **both)
    y, z = [ti.field(ti.f64, (), **both) for _ in range(2)]

    @ti.kernel
    def add():
        for i in x:
            y[None] += x[i] ** 2

    @ti.kernel
    def square():
        z[None] += y[None] ** 2

    @ti.ad.grad_replaced
    def replaced() -> None:
        add()

    @ti.ad.grad_for(replaced)
    def gradient() -> None:
        add.grad()

    def tape() -> None:
        with ti.ad.Tape(y):
            add()

    def tape_in_tape() -> None:
        with ti.ad.Tape(z):
            with ti.ad.Tape(y):
                add()
            square()

    def custom_in_tape() -> None:
        with ti.ad.Tape(y):
            replaced()

    captured = ti.capture(lambda: add())

    def around_a_step() -> None:
        with ti.ad.Tape(y):
            captured()

    def forward() -> None:
        with ti.ad.FwdMode(loss=y, param=x, seed=np.ones(3)):
            add()

    def forward_in_forward() -> None:
        with ti.ad.FwdMode(loss=z, param=x, seed=np.ones(3)):
            with ti.ad.FwdMode(loss=y, param=x, seed=np.ones(3)):
                add()
            square()

    def forward_in_tape() -> None:
        with ti.ad.Tape(z):
            with ti.ad.FwdMode(loss=y, param=x, seed=np.ones(3)):
                add()
            square()

    last = ti.field(ti.f64, (), **both)

    @ti.kernel
    def sine():
        last[None] += ti.sin(z[None])

    def three_tapes() -> None:
        with ti.ad.Tape(last):
            tape_in_tape()
            sine()

    def forward_in_two_tapes() -> None:
        with ti.ad.Tape(last):
            forward_in_tape()
            sine()

    def functional() -> None:
        ti.ad.grad(add, wrt=x, loss=y)()

    def hessian() -> None:
        ti.ad.hvp(add, wrt=x, loss=y)(np.ones(3))

    found = [
        tape, tape_in_tape, custom_in_tape, around_a_step, forward, forward_in_forward, forward_in_tape, three_tapes,
        forward_in_two_tapes, functional, hessian
    ]  # fmt: skip
    return {one.__name__: one for one in found}


NAMES = (
    "tape", "tape_in_tape", "custom_in_tape", "around_a_step", "forward", "forward_in_forward",
    "forward_in_tape", "three_tapes", "forward_in_two_tapes", "functional", "hessian",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers, by Python itself
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("only_new_objects")
def test_nothing_records_after_an_interrupt(name: str) -> None:
    recorder.set(None)
    every = programs()
    run = every[name]
    for _ in range(2):
        run()
    lines = lines_of(run)
    assert len(lines) > 20
    for number in ends(lines):
        place = interrupted_at(run, number)
        assert recorder.get() is None, place
        gc.collect()  # what an interrupt has left may be collected at any time
        assert recorder.get() is None, place
    assert len(lines_of(run)) < 1.1 * len(lines), "what interrupts have left makes the program longer"
    # What an interrupt has kept from ending is not notified of what others do from the next recording on.
    every["tape"]()
    assert state.watchers == [] and own_watcher.get() is None


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="`with` is compiled to other instructions there")
def test_an_interrupt_before_a_tape_can_close_is_made_up_for_by_the_next() -> None:
    """Python looks for interrupts where `__exit__` begins, before it can do anything."""
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        y[None] += x[None] ** 2

    def run() -> None:
        with ti.ad.Tape(y):
            square()

    def interrupt(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code is ti.ad.Tape.__exit__.__code__:
            raise KeyboardInterrupt

    x[None] = 3.0
    for _ in range(3):
        sys.settrace(interrupt)
        with pytest.raises(KeyboardInterrupt):
            run()
        sys.settrace(None)
    assert isinstance(recorder.get(), ti.ad.Tape)
    run()
    assert x.grad[None] == 6.0
    assert recorder.get() is None


def test_tapes_that_are_open_elsewhere_are_not_taken_for_left_ones() -> None:
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    y = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        y[None] += x[None] ** 2

    def in_a_generator() -> Any:
        with ti.ad.Tape(y):
            yield

    def entered_by_a_stack() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        stack.enter_context(ti.ad.Tape(y))
        return stack

    suspended = in_a_generator()
    next(suspended)
    with pytest.raises(DifferentiationError, match="same loss"):
        ti.ad.Tape(y).__enter__()
    suspended.close()
    with entered_by_a_stack():
        with pytest.raises(DifferentiationError, match="same loss"):
            ti.ad.Tape(y).__enter__()
        square()
    with ti.ad.Tape(y), pytest.raises(DifferentiationError, match="same loss"):
        ti.ad.Tape(y).__enter__()
    assert recorder.get() is None
