"""Python's collector of reference cycles and compilation: it waits, and is as it was afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import tinote as ti
from tinote.compiler.deferred_collection import deferred_collection
from tinote.errors import TinoteError

#: With these, it looks at everything all the time.
EAGER = (50, 1, 1)


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """The generations that the eager collector has looked at so far."""
    found: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            found.append(info["generation"])

    usual = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(*EAGER)
    yield found
    gc.enable()
    gc.set_threshold(*usual)
    gc.callbacks.remove(note)


def test_it_waits_while_kernels_and_gradients_are_compiled(looks: list[int]) -> None:
    x = ti.field(ti.f64, 8, needs_grad=True)

    @ti.kernel
    def square(times: ti.f64) -> ti.f64:
        s = 0.0
        for i in x:
            s += x[i] ** 2 * times
        return s

    square(1.0)
    square.grad(1.0)
    assert len(looks) < 100  # 3,000 and more without
    assert gc.get_threshold() == EAGER


def test_it_is_as_it_was_after_an_error() -> None:
    usual = gc.get_threshold()

    @ti.kernel
    def wrong() -> ti.i32:
        return missing  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TinoteError):
        wrong()
    assert gc.get_threshold() == usual


def test_blocks_nest_and_threads_leave_in_any_order(looks: list[int]) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with deferred_collection():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with deferred_collection():
        with deferred_collection():
            thread.start()
            inside.wait(60)
        waiting = gc.get_threshold()
    assert gc.get_threshold() == waiting != EAGER  # the other thread is still inside
    leave.set()
    thread.join()
    assert gc.get_threshold() == EAGER


def test_what_the_program_has_chosen_stays(looks: list[int]) -> None:
    gc.disable()
    with deferred_collection():
        assert gc.get_threshold() == EAGER
    assert not gc.isenabled()
    gc.enable()
    with deferred_collection():
        gc.set_threshold(77, 7, 7)
    assert gc.get_threshold() == (77, 7, 7)
