"""Locks between processes: if several need the same missing entry of a store, one makes it and the others wait.

    with process_lock(store.folder, key):
        data = store.get(key)       # another process may have made it meanwhile
        if data is None:
            store.put(key, make())

It is a lock on one of a few files next to the entries, which the system releases when its holder ends, however that
ends. Nothing is wrong without it, there is only more work: so nobody waits longer than `LONGEST_WAIT`, a thread
that holds one waits for no other one, and where files cannot be locked everybody goes on at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tinote.system import PLAIN_FILE

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LONGEST_WAIT = 60.0
"""Seconds, after which whoever waits does the work itself: the holder may be stopped, or on its way for long."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_FILE = ".lock-"
_LETTERS = 2  # of a key that tell files apart: there are 256 of them at most

_mine = threading.local()


@contextmanager
def process_lock(folder: Path, key: str) -> Iterator[None]:
    """Alone among the processes that use this folder with this key, as far as that can be had."""
    file = _open(folder, key)
    if file is None:
        yield
        return
    held: int = getattr(_mine, "held", 0)
    try:
        _take(file, 0.0 if held else LONGEST_WAIT)
        _mine.held = held + 1
        yield
    finally:
        _mine.held = held
        with contextlib.suppress(OSError):
            _unlock(file)
        os.close(file)


def _open(folder: Path, key: str) -> int | None:
    try:
        return os.open(folder / f"{_FILE}{key[:_LETTERS]}", os.O_RDWR | os.O_CREAT | PLAIN_FILE, 0o600)
    except OSError:
        return None


def _take(file: int, most: float) -> None:
    deadline = time.monotonic() + most
    pause = _SHORTEST_PAUSE
    while True:
        try:
            if _lock(file) or time.monotonic() >= deadline:
                return
        except OSError:
            return  # such files cannot be locked here
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


if sys.platform == "win32":

    def _lock(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:

    def _lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have the file, too
