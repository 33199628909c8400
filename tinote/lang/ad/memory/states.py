"""What fields held at an earlier time, to be put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tinote.lang.session.state import gradient_memories, session
from tinote.runtime.memory import Memory


class MemoryCopies:
    """Blocks of memory with what each held when it was added."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._copies: dict[Memory, Memory] = {}
        for memory in memories:
            self.add(memory)

    def add(self, memory: Memory) -> None:
        """Remember what a block holds now, unless it was added before."""
        if memory not in self._copies:
            self._copies[memory] = memory.copy()

    def put_back(self, only: Iterable[Memory] | None = None) -> None:
        """Give the blocks, or some of them, what they held."""
        for memory in self._copies if only is None else only:
            memory.restore(self._copies[memory])


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


@contextmanager
def preserving_gradients() -> Iterator[None]:
    """A block that leaves the gradients of all fields as they were."""
    with _preserving(gradient_memories()):
        yield


@contextmanager
def preserving_duals() -> Iterator[None]:
    """A block that leaves the duals of all fields as they were."""
    with _preserving([f.dual.memory for f in list(session.fields) if f.has_dual]):
        yield


@contextmanager
def _preserving(memories: Iterable[Memory]) -> Iterator[None]:
    copies = MemoryCopies(memories)
    try:
        yield
    finally:
        copies.put_back()
