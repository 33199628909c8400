"""Hooks for accesses of a program to memory, and their listeners.

Recorders (`lang/session/state.py`) decide what a launch or a write means while derivatives are recorded. What then
happens to memory happens here, whoever asked for it: launches of kernels and of their gradients, clears, copies, what a
journal saves and brings back, what Python writes and reads. A listener of all of that can do it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any


class Listener:
    """Base class of memory hooks: it is called before its own thread accesses memory. Every method of this one is a
    no-op. Arrays are NumPy's, over the memory in question; a block of memory may stand for one.
    """

    #: what traced numbers that it makes belong to (`lang/data/traced.py`)
    trace: Any = None
    #: whether what it is notified of now happens also where something before has failed
    unwinds = False

    def __init__(self) -> None:
        self._thread = get_ident()

    @property
    def is_active(self) -> bool:
        """Whether it is this thread that does something."""
        return get_ident() == self._thread

    def launch(self, code: Any, values: Any) -> Any:
        """Machine code is to be launched with these values: launch it, and give its results."""
        return silently(code.launch, values)

    def prepared(self, kernel: Any, key: Any, instance: Any) -> None:
        """A kernel is about to be launched as this instance, which it knows by `key`."""

    def making(self, memory: Any, cleared: bool) -> None:
        """A block of memory has come into being: zeros, or, if it is not `cleared`, anything."""

    def clearing(self, memory: Any) -> None:
        """A block of memory is about to be set to zero."""

    def copying(self, target: Any, source: Any) -> None:
        """An array, or a block, is about to get what another one holds, or has just come into being as its copy."""

    def assigning(self, array: Any, position: Any, numbers: Any, value: Any) -> None:
        """`array[position]` is about to get `numbers`, which a program gave as `value`."""

    def copied(self, array: Any, what: str) -> Any:
        """Python gets an array, `what`, whose creation was recorded. Gives what it gets."""
        return array

    def reading(self, array: Any, position: Any, value: Any) -> Any:
        """Python reads `value`, which is `array[position]`. Gives what it gets."""
        return value

    def seed(self, value: int) -> Any:
        """A launch that draws random numbers has this seed. Gives what it gets."""
        return value

    def choosing(self, numbers: Any, what: str) -> Any:
        """`what` depends on these numbers. Gives them as plain ones."""
        self.taking(what)
        return numbers

    def sharing(self, memory: Any, name: str) -> None:
        """Python is about to get an array that shares the memory of the field `name`."""
        self.taking(f"an array that shares the memory of '{name}'")

    def taking(self, what: str) -> None:
        """Numbers in memory are changed in a way that cannot be replayed: `what`."""


#: The listener of each thread that has one, by the thread's identifier. Whether there are any is asked first, which is
#: all that it costs a program without captures.
listeners: dict[int, Listener] = {}


def active_listener() -> Listener | None:
    """The listener of this thread, if any."""
    return listeners.get(get_ident()) if listeners else None


def listened(listener: Listener | None, act: Callable[..., Any], *arguments: Any) -> Any:
    """Do something under a listener, which takes the place of this thread's; None: under none."""
    thread = get_ident()
    outer = listeners.pop(thread, None)
    if listener is not None:
        listeners[thread] = listener
    try:
        return act(*arguments)
    finally:
        if outer is not None:
            listeners[thread] = outer
        else:
            listeners.pop(thread, None)


def silently(act: Callable[..., Any], *arguments: Any) -> Any:
    """Do something without notifying listeners."""
    return listened(None, act, *arguments)


def unwinding(act: Callable[[], object]) -> None:
    """Do something that is always done, such as restoring memory."""
    listener = active_listener()
    if listener is None:
        act()
        return
    listener.unwinds = True
    try:
        act()
    finally:
        listener.unwinds = False


@contextmanager
def unwatched() -> Iterator[None]:
    """A block in which observers of a captured step ignore its calls: what a kernel's code depends on, the kernel
    knows.
    """
    watch = sys.getprofile()
    if not hasattr(watch, "__tinote_watch__"):
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(watch)
