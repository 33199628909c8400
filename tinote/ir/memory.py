"""The memory of the interpreter: its interface to that of a program, the simplest implementation, and that of a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from tinote.errors import KernelIndexError
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of, row_major
from tinote.ir.nodes import Buffer, BufferKind, Op, Private
from tinote.ir.types import Scalar, Tangents

Number = Any  # int or float, as the type asks
Index = tuple[int, ...]

_OWN_KINDS = (BufferKind.TEMPORARY, BufferKind.PRIVATE, BufferKind.SAVED)  # memory that a run brings along


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


class RunMemory:
    """The memory that one run accesses: that of the program, and temporaries, private copies and saved values, which a
    run brings along.
    """

    def __init__(self, program: Storage) -> None:
        self._program = program
        self._own = DictMemory()

    def load(self, buffer: Buffer, index: Index) -> Number:
        return (self._own if buffer.kind in _OWN_KINDS else self._program).load(buffer, index)

    def store(self, buffer: Buffer, index: Index, value: Number) -> None:
        (self._own if buffer.kind in _OWN_KINDS else self._program).store(buffer, index, value)

    def shape(self, buffer: Buffer) -> Index:
        """Index dimensions of a buffer."""
        known = tuple([n for n in buffer.shape if n is not None])
        return known if len(known) == buffer.rank else self._program.shape(buffer)

    def accessed(self, buffer: Buffer, index: Index, op: Op) -> tuple[Buffer, list[Index]]:
        """The buffer that an access really touches, and the full index of every component."""
        if buffer.flat is not None:
            root = root_of(buffer)
            return root, [self.unflatten(root, index[0], op)]
        full = (*self.shape(buffer), *buffer.element)
        flat_position(buffer.name, full[: len(index)], index, op)
        if len(index) == len(full):
            return buffer, [index]
        return buffer, [(*index, *c) for c in itertools.product(*map(range, buffer.element))]

    def unflatten(self, buffer: Buffer, offset: int, op: Op) -> Index:
        """The index of the number that lies `offset` bytes into a buffer."""
        shape = self.shape(buffer)
        strides = buffer.strides
        if strides is None:
            strides = row_major(shape, buffer.dtype.size * math.prod(buffer.element))
        full = (*shape, *buffer.element)
        steps = (*strides, *buffer.element_strides)
        index = [0] * len(full)
        rest = offset
        for axis in sorted(range(len(full)), key=lambda axis: -steps[axis]):
            if full[axis] != 1:
                index[axis], rest = divmod(rest, steps[axis])
        if rest or any(not 0 <= i < n for i, n in zip(index, full, strict=True)):
            text = f"byte offset {offset} is outside of '{buffer.name}' with shape {full}"
            raise KernelIndexError(text, op.loc)
        return tuple(index)

    # private copies

    def begin(self, private: Private) -> None:
        """A task makes a private copy."""
        start = p.cast_tangents(private.copy.dtype, p.neutral(private.prim, private.copy.dtype))
        self._own.cells[private.copy] = dict.fromkeys([place for _, place in self._places_of(private)], start)

    def merge(self, private: Private) -> None:
        """Combine a private copy into its target."""
        target = private.target
        values = self._own.cells.pop(private.copy)
        for index, place in self._places_of(private):
            value = values[place]
            self.store(target, index, combined(private.prim, target.dtype, self.load(target, index), value))

    def _elements(self, buffer: Buffer) -> Iterable[Index]:
        return itertools.product(*map(range, (*self.shape(buffer), *buffer.element)))

    def _places_of(self, private: Private) -> Iterator[tuple[Index, Index]]:
        """The numbers of a target, and where each is in its copy: in one place for each lane."""
        target, columns = private.target, private.copy.shape[private.rank :]
        components = math.prod(target.element)
        for number, index in enumerate(self._elements(target)):
            place = (number // components,) if private.is_flat else index[: target.rank]
            for lane in itertools.product(*[range(n or 0) for n in columns]):
                yield index, (*place, *lane, *index[target.rank :])


def combined(prim: p.Primitive, t: Scalar, old: Number, value: Number) -> Number:
    """What an atomic operation leaves in memory."""
    if isinstance(t, Tangents):
        return tuple([prim.evaluate(t.scalar, a, b) for a, b in zip(old, value, strict=True)])
    return prim.evaluate(t, old, value)


def flat_position(name: str, shape: Index, index: Index, op: Op) -> int:
    """The position of an element in row-major order. Raises `KernelIndexError` where an index is out of range."""
    position = 0
    for axis, (i, extent) in enumerate(zip(index, shape, strict=True)):
        if not 0 <= i < extent:
            text = f"index {i} is out of range for axis {axis} of '{name}', which has length {extent}"
            raise KernelIndexError(text, op.loc)
        position = position * extent + i
    return position


def _extents(nested: Any, rank: int) -> Index:
    """The lengths of the outer `rank` levels of nested sequences."""
    if not rank:
        return ()
    length = len(nested)
    return (length, *(_extents(nested[0], rank - 1) if length else (0,) * (rank - 1)))
