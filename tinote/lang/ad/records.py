"""What is remembered of one launch under a tape."""

from __future__ import annotations

from typing import Any, NamedTuple

from tinote.compiler.native import BoundArray
from tinote.compiler.summary import TaskSummary
from tinote.ir.nodes import Buffer
from tinote.lang.ad.old_values import SavingLaunch
from tinote.lang.arguments import Arguments
from tinote.lang.kernel import Instance
from tinote.runtime.memory import Memory

__all__ = ["Record"]


class Record(NamedTuple):
    """One launch: what was launched with which values, and the version of each field that its gradient will read.
    `copies`: what it will read of arrays that others manage; `old_values`: those that the launch returns and saves.
    `inputs`, `input_copies`: what the launch itself read, if it is to be run again.
    """

    instance: Instance
    values: tuple[Any, ...]
    versions: dict[Buffer, int]
    arguments: Arguments
    copies: dict[Buffer, Memory]
    old_values: SavingLaunch | None = None
    inputs: dict[Buffer, int] | None = None
    input_copies: dict[Buffer, Memory] = {}

    @property
    def tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of the launch read and wrote."""
        return self.arguments.tasks

    @property
    def touched(self) -> frozenset[Buffer]:
        """All that the launch read or wrote."""
        found = self.arguments.touched
        return found.loaded | found.written

    @property
    def written(self) -> frozenset[Buffer]:
        """All that the launch wrote."""
        return self.arguments.touched.written

    def values_back(self) -> tuple[Any, ...]:
        """The values for the gradient: it reads the copies of arrays that others manage, and may write to them. Behind
        the arrays stand the old values that it reads and memory for copies that it makes.
        """
        needs = self.arguments.needs
        if not (self.copies or self.old_values or needs.copied):
            return self.values
        further = [] if self.old_values is None else [*self.old_values.saved]
        places = dict(self.arguments.arrays)
        further += [_memory_like(places[buffer]) for buffer in needs.copied]
        return self._values(self.copies, needs.restored, further)

    def values_again(self) -> tuple[Any, ...]:
        """The values for the launch itself, run again on copies of such arrays."""
        return self._values(self.input_copies, self.written, [])

    def _values(
        self, copies: dict[Buffer, Memory], changed: frozenset[Buffer], further: list[BoundArray]
    ) -> tuple[Any, ...]:
        arrays = self.arguments.arrays
        found: list[BoundArray] = []
        for buffer, bound in arrays:
            kept = copies.get(buffer)
            if kept is not None:
                fresh = kept.copy() if buffer in changed else kept
                bound = bound._replace(address=fresh.address, owner=fresh)
            found.append(bound)
        return (*found, *further, *self.values[len(arrays) :])


def _memory_like(bound: BoundArray) -> BoundArray:
    """Memory for the numbers of an array, and for their tangents if it has any."""
    values, tangents = (Memory(max(bound.nbytes, 1)) for _ in range(2))
    return BoundArray(values.address, 0, tangents.address, 0, bound.shape, bound.nbytes, True, None, (values, tangents))
