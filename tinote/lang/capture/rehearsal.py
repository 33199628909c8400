"""Validates a plan by a real call: afterwards the plan is replayed on copies of the memory from before the call, and
must leave there, bit for bit, what the call has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinote.errors import TinoteError
from tinote.lang.capture.captured import reader_of
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.recording import Tables
from tinote.lang.capture.targets import prepared
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.runtime.launch import prints_to
from tinote.runtime.memory import Memory


class Rehearsal:
    """The session's memory that a plan uses, as it was before a call, and the plan on it."""

    def __init__(self, plan: Program, tables: Tables) -> None:
        self._plan = plan
        self._tables = tables
        self._copies: list[Memory | None] = []
        self._prepared: Prepared | None = None

    def take(self) -> None:
        """Copy the memory. Raises `MemoryError`."""
        memories = self._tables.memories
        for memory in memories[len(self._copies) :]:
            self._copies.append(None if memory is None else memory.room())
        for memory, copy in zip(memories, self._copies, strict=True):
            if memory is not None and copy is not None:
                copy.take(memory)
        self._launches = session.launches

    def forget_plan(self) -> None:
        """The plan has other steps."""
        self._prepared = None

    @property
    def prepared(self) -> Prepared:
        """The plan on the copies, with launches on one thread."""
        if self._prepared is None:
            self._prepared = prepared(self._plan, self._tables.natives, self._copies, 1)
        return self._prepared

    def replay(self, inputs: Sequence[Any], arrays: Iterable[tuple[int, int]] = ()) -> ops.End:
        """Replay the plan with these inputs, and `arrays` at these addresses, by their blocks; returns the end that was
        reached. Raises `TinoteError`.
        """
        found = self.prepared
        for block, address in arrays:
            found.point(block, address)
        for register, value in zip(self._plan.inputs, inputs, strict=True):
            cells: Any = found.floats if register.kind == "f" else found.integers
            cells[register.number] = value
        after, session.launches = session.launches, self._launches
        found.set_counter()
        session.launches = after
        with prints_to(lambda text: None):  # the call has printed it
            return found.ends[found.run()]

    def difference(
        self, inputs: Sequence[Any], is_same: Callable[[ops.End], bool], arrays: Iterable[tuple[int, int]] = ()
    ) -> str | None:
        """What a replay does otherwise than the call, in words. `is_same`: whether Python gets the same."""
        try:
            end = self.replay(inputs, arrays)
        except TinoteError as error:
            return f"replayed, it raises {type(error).__name__}: {error.message}"
        for name in self.differing:
            return f"replayed, '{name}' differs"
        if self.prepared.counter != session.launches or not is_same(end):
            return "replayed, a number in Python differs"
        return None

    def result(self, end: ops.End) -> Any:
        """What the replay returns."""
        return reader_of(end.result, self.prepared, {})()

    @property
    def differing(self) -> list[str]:
        """The names of the blocks in which they have left something else."""
        blocks = zip(self._plan.blocks, self._tables.memories, self._copies, strict=True)
        return [
            block.name
            for block, memory, copy in blocks
            if memory is not None and copy is not None and copy.contents() != memory.contents()
        ]
