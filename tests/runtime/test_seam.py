"""Listeners of memory: each thread has its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.runtime.seam import Listener, active_listener, listened, listeners, silently


@pytest.fixture
def others() -> Iterator[None]:
    """Another thread begins and ends to listen all the time, and launches of its own are silent."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.is_set():
            listened(Listener(), silently, time.sleep, 0)
            silently(time.sleep, 0)

    thread = threading.Thread(target=go_on)
    thread.start()
    yield
    is_over.set()
    thread.join()
    assert not listeners


def test_each_thread_has_its_own_listener() -> None:
    own, found = Listener(), []

    def look() -> None:
        thread = threading.Thread(target=lambda: found.append(active_listener()))
        thread.start()
        thread.join()
        found.append(active_listener())
        found.append(silently(active_listener))

    listened(own, look)
    assert found == [None, own, None] and active_listener() is None and not listeners


def test_what_raises_leaves_the_outer_listener() -> None:
    own = Listener()

    def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            silently(lambda: 1 // 0)
        assert active_listener() is own

    listened(own, fail)
    assert not listeners


def test_a_step_is_captured_whole_while_another_thread_listens(others: Any) -> None:
    x = ti.field(ti.f64, 16)

    @ti.kernel
    def add(a: ti.f64):
        for i in x:
            x[i] += a * (i + 1)

    def step() -> None:
        for k in range(50):
            add(1.0 + k)

    step()
    wanted = x.to_numpy()
    for _ in range(5):
        x.fill(0)
        ti.capture(step)()
        np.testing.assert_array_equal(x.to_numpy(), wanted)
