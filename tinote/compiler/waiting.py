"""Progress of long compilations: the kernel, the current step, and the time so far.

Nothing is shown in the first second, and nothing is left when it is over. A call may compile in several parts, one
right after the other: they are one wait. A terminal gets one line on its standard error, which is then erased; a
notebook puts a display of its own in its place (`show_with`). Where there is neither, and on threads
other than the main one, nothing is shown.
"""

from __future__ import annotations

import contextvars
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TextIO

#: Compilations that are over sooner are not shown. Chosen, not measured.
DELAY_SECONDS = 1.0

#: Between two updates of what is shown. Chosen, not measured.
INTERVAL_SECONDS = 0.2

#: A compilation that begins no later than this after another goes on with its wait. Chosen, not measured.
PAUSE_SECONDS = 0.1

#: Of a terminal that does not say how many it has.
COLUMNS = 80

Enter = Callable[[str], None]
"""Called with the name of each step when it begins."""


class Display(Protocol):
    """Where the state of one compilation is shown."""

    def show(self, text: str) -> None:
        """Show this state in place of the one before."""

    def close(self) -> None:
        """Remove it without a trace."""


class Terminal:
    """A line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text[: self._columns() - 1]}")
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or COLUMNS
        except (OSError, ValueError, AttributeError):
            return COLUMNS  # What a program has put in the place of the terminal need not have one.

    def close(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()


def _terminal() -> Display | None:
    stream = sys.stderr
    try:
        return Terminal(stream) if stream.isatty() else None
    except (AttributeError, ValueError):
        return None  # There is none, it is closed, or a program has put something simpler in its place.


_make: Callable[[], Display | None] = _terminal


def show_with(make: Callable[[], Display | None] | None) -> None:
    """From now on `make` gives the display of each compilation, or None where there is none; without it, terminals."""
    global _make
    _make = make or _terminal


def _ignore(_step: str) -> None:
    pass


@contextmanager
def compilation(title: str) -> Iterator[Enter]:
    """Compile in this block, and call what it gives with the name of each step."""
    on_main = threading.current_thread() is threading.main_thread()
    display = _make() if on_main else None
    if display is None:
        yield _ignore
        return
    wait = _Wait(title, display)
    try:
        yield wait.enter
    finally:
        wait.end()


class _Past(NamedTuple):
    """When a wait began, and when the last compilation of it ended."""

    started: float
    ended: float


_latest = _Past(-math.inf, -math.inf)


class _Wait:
    """Shows, from a thread of its own, what the thread that compiles has entered last."""

    def __init__(self, title: str, display: Display) -> None:
        self._title = title
        self._display = display
        self._step = ""
        now = time.perf_counter()
        self._started = _latest.started if now - _latest.ended < PAUSE_SECONDS else now
        self._over = threading.Event()
        # The context says which cell's output is meant.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._watch,), name="tinote compiles", daemon=True)
        self._thread.start()

    def enter(self, step: str) -> None:
        self._step = step

    def end(self) -> None:
        global _latest
        self._over.set()
        self._thread.join()
        _latest = _Past(self._started, time.perf_counter())

    def _watch(self) -> None:
        if self._over.wait(max(0.0, DELAY_SECONDS - (time.perf_counter() - self._started))):
            return
        try:
            while True:
                seconds = time.perf_counter() - self._started
                self._display.show(f"compiling {self._title}: {self._step}, {seconds:.0f} s")
                if self._over.wait(INTERVAL_SECONDS):
                    return
        finally:
            self._display.close()
