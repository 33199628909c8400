"""What fields held at an earlier time, to be put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tinote.lang.session.state import gradient_memories, is_viewed, memory_of, session
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.runtime.seam import unwinding


class State(MemoryCopies):
    """The values of all fields as they are now, with their `gradients` or without, and how many random launches there
    were: when it is put back, kernels draw the same random numbers again. Duals are left out.
    """

    def __init__(self, *, gradients: bool = False) -> None:
        super().__init__(f.memory for f in list(session.fields) if f.buffer.primal is None)
        for memory in gradient_memories() if gradients else ():
            self.add(memory)
        self._launches = session.launches

    def put_back(self, only: Iterable[Memory] | None = None) -> None:
        super().put_back(only)
        session.launches = self._launches


class GradientsBefore(MemoryCopies):
    """A block that leaves the gradients of all fields as they were: it is to add each of them before it changes. Those
    that others may write to unnoticed are there from the start.
    """

    def __enter__(self) -> GradientsBefore:
        if session.has_views:
            for buffer in list(session.views):
                if buffer.primal is not None and is_viewed(buffer):
                    self.add(memory_of(buffer))
        return self

    def __exit__(self, *error: object) -> None:
        unwinding(self.put_back)


@contextmanager
def preserving_gradients() -> Iterator[None]:
    """A block that leaves the gradients of all fields as they were."""
    with _preserving(gradient_memories()):
        yield


def clear_duals() -> None:
    """Set the duals of all fields to zero, and those of gradients."""
    for memory in [f.dual.memory for f in list(session.fields) if f.has_dual]:
        memory.clear()


@contextmanager
def preserving_duals() -> Iterator[None]:
    """A block that leaves the duals of all fields as they were; those of stand-ins are nobody's."""
    with _preserving([f.dual.memory for f in list(session.fields) if f.has_dual and not f.stands_in]):
        yield


@contextmanager
def _preserving(memories: Iterable[Memory]) -> Iterator[None]:
    copies = MemoryCopies(memories)
    try:
        yield
    finally:
        unwinding(copies.put_back)
