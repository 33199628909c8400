"""Single flight: of several threads that need the same result at once, one computes it, and the others wait."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from tinote.system import register_at_fork

_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


register_at_fork(after_in_child=_after_fork)


class SingleFlight:
    """Lets one thread at a time in for each key.

        found = made.get(key)
        if found is None:
            with flight(key):
                found = made.get(key)  # another thread may have made it meanwhile
                if found is None:
                    found = made[key] = make()

    The thread that is inside may come in again: what it makes may need itself. A wait ends with an interrupt as any
    wait for a lock does, and the end of the thread inside, by an error too, lets the next one in. A forked child waits
    for none of the threads that it does not have.
    """

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[tuple[int, Hashable], threading.RLock] = {}  # type: ignore[valid-type]

    @contextmanager
    def __call__(self, key: Hashable) -> Iterator[None]:
        place = (_forks, key)
        with self._locks.setdefault(place, threading.RLock()):
            try:
                yield
            finally:
                # A key may keep much alive. Whoever comes later finds what was made.
                self._locks.pop(place, None)
