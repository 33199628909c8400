"""Garbage collection during compilation: Python's collector of reference cycles waits longer.

It looks for garbage after every 700 objects that are made and not freed, and after some rounds through everything that
there is. A compilation makes tens of thousands of objects without a pause, nearly all of which it still needs, besides
the hundreds of thousands of the modules that are loaded: a round through these took a tenth of a first call (measured:
25 of 330 ms), in some programs and not in others, as the count happened to stand.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from tinote.system import register_at_fork

#: Objects after which a collection runs all the same: a very long kernel must not fill memory with garbage. Chosen, not
#: measured.
_MAX_YOUNG_OBJECTS = 100_000

_compiling: list[None] = []  # one entry for each block that is open, in any thread
_usual: tuple[int, int, int] | None = None  # the thresholds before the first of them


@contextmanager
def deferred_collection() -> Iterator[None]:
    """In this block the collector waits longer, unless the program has switched it off or set its thresholds itself. At
    the end it looks at what the block has made, and at nothing older.

    No lock is needed: a thread that enters while another leaves may find the usual thresholds, which is only slower.
    """
    global _usual
    _compiling.append(None)
    found = gc.get_threshold()
    if gc.isenabled() and 0 < found[0] < _MAX_YOUNG_OBJECTS:
        _usual = found
        gc.set_threshold(_MAX_YOUNG_OBJECTS, *found[1:])
    try:
        yield
    finally:
        _compiling.pop()
        if not _compiling and _usual is not None:
            gc.collect(0)
            _restore()


def _restore() -> None:
    global _usual
    usual, _usual = _usual, None
    # Whoever has set other thresholds meanwhile wants those.
    if usual is not None and gc.get_threshold() == (_MAX_YOUNG_OBJECTS, *usual[1:]):
        gc.set_threshold(*usual)


def _after_fork() -> None:
    """A child has none of the threads that were compiling."""
    _compiling.clear()
    _restore()


register_at_fork(after_in_child=_after_fork)
