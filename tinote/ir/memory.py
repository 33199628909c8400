"""The interpreter's interface to memory, and its simplest implementation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Protocol

from tinote.ir import primitives as p
from tinote.ir.nodes import Buffer

Number = Any  # int or float, as the type asks
Index = tuple[int, ...]


class Storage(Protocol):
    """Where fields and arrays live. An index is one number per dimension, then one per component dimension."""

    def load(self, buffer: Buffer, index: Index) -> Number:
        """The number at `index`, which is in range."""
        ...

    def store(self, buffer: Buffer, index: Index, value: Number) -> None:
        """Put `value`, which is of the buffer's type, at `index`, which is in range."""
        ...

    def shape(self, buffer: Buffer) -> Index:
        """The index dimensions of a buffer with extents that are only known at launch (asked for no other)."""
        ...


class DictMemory:
    """Buffers as dictionaries from indices to numbers; what was never written is zero.

    `contents`: starting values as nested sequences (a bare number for rank 0). `shapes`: for buffers whose shape is
    only known at launch; taken from the contents if absent.
    """

    def __init__(
        self, contents: Mapping[Buffer, Any] | None = None, shapes: Mapping[Buffer, Index] | None = None
    ) -> None:
        self.cells: dict[Buffer, dict[Index, Number]] = {}
        self.shapes: dict[Buffer, Index] = dict(shapes or {})
        for buffer, nested in (contents or {}).items():
            self.fill(buffer, nested)

    def fill(self, buffer: Buffer, nested: Any) -> None:
        """Set all of `buffer` from nested sequences."""
        cells = self.cells[buffer] = {}
        if None in buffer.shape and buffer not in self.shapes:
            self.shapes[buffer] = _extents(nested, buffer.rank)
        for index in itertools.product(*map(range, self.full_shape(buffer))):
            part = nested
            for i in index:
                part = part[i]
            cells[index] = p.cast_tangents(buffer.dtype, part)

    def load(self, buffer: Buffer, index: Index) -> Number:
        cells = self.cells.get(buffer)
        found = None if cells is None else cells.get(index)
        return p.cast_tangents(buffer.dtype, p.neutral(p.add, buffer.dtype)) if found is None else found

    def store(self, buffer: Buffer, index: Index, value: Number) -> None:
        self.cells.setdefault(buffer, {})[index] = value

    def shape(self, buffer: Buffer) -> Index:
        return self.shapes[buffer]

    def full_shape(self, buffer: Buffer) -> Index:
        """Index and component dimensions of a buffer."""
        known = tuple([n for n in buffer.shape if n is not None])
        return (*(known if len(known) == buffer.rank else self.shape(buffer)), *buffer.element)

    def nested(self, buffer: Buffer) -> Any:
        """All of a buffer as nested lists (a bare number for a scalar of rank 0)."""
        shape = self.full_shape(buffer)

        def part(index: Index) -> Any:
            if len(index) == len(shape):
                return self.load(buffer, index)
            return [part((*index, i)) for i in range(shape[len(index)])]

        return part(())

    def copy(self) -> DictMemory:
        """An independent copy."""
        new = DictMemory(shapes=self.shapes)
        new.cells = {buffer: dict(cells) for buffer, cells in self.cells.items()}
        return new


def _extents(nested: Any, rank: int) -> Index:
    """The lengths of the outer `rank` levels of nested sequences."""
    if not rank:
        return ()
    length = len(nested)
    return (length, *(_extents(nested[0], rank - 1) if length else (0,) * (rank - 1)))
