"""Memory layout of fields: strides in bytes, and memory that several fields share.

A field of its own is dense: row-major unless `order` says otherwise. The components of one element lie together
(`Layout.AOS`), or each component has an array of its own (`Layout.SOA`). Fields that are placed together under one
level of a layout tree are interleaved: they share a block of memory, and each is a `MemoryPart` of it.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import FieldError, shown
from tinote.ir.buffers import Buffer, row_major
from tinote.ir.types import Scalar, Tangents
from tinote.lang.data.matrix import Matrix, numpy_type
from tinote.runtime.memory import Memory
from tinote.runtime.pool import ALIGNMENT, PAGE, STAGGER, WARM_FROM
from tinote.runtime.seam import active_listener, listeners
from tinote.source import Span

MOST_DIMENSIONS = 12
#: The bytes of copies that share a chunk of memory with others, and of chunks.
_SHARES_FROM, _SHARES_TO = 256, 32 << 10
_FIRST_CHUNK, _LARGEST_CHUNK = 64 << 10, 1 << 20
#: What the dimensions are called.
LETTERS = "ijklmnopqrst"


class Layout(Enum):
    """The order of the components of vectors, matrices and structs in memory."""

    AOS = "array of structures"  # the components of one element together
    SOA = "structure of arrays"  # all first components, then all second ones, …

    def __repr__(self) -> str:
        return f"ti.Layout.{self.name}"


class Placement(NamedTuple):
    """What a field needs to exist. Strides are in bytes; `offset`: the first index along each dimension, or ();
    `levels`: the letters of its axes in the order in which the tree's levels divide them, if that is not theirs.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    offset: tuple[int, ...]
    memory: Memory
    levels: str = ""


class MemoryPart(Memory):
    """One field's bytes in a block that it shares with others: its numbers begin at `start`, with other fields'
    between them. `nbytes` counts its own bytes only.
    """

    __slots__ = ("_array", "_block")

    def __init__(
        self, block: Memory, start: int, dtype: Scalar, extents: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self._block = block
        self._owner = block.view()[start:]
        self.address = block.address + start
        self.nbytes = math.prod(extents) * dtype.size
        self._array = _strided(self._owner, dtype, extents, strides)

    @property
    def whole(self) -> Memory:
        return self._block

    @property
    def is_whole(self) -> bool:
        return False

    def copy(self) -> Memory:
        found = Memory(self.nbytes, clear=False)
        self._like(found)[...] = self._array
        if (listener := active_listener()) is not None:
            listener.copying(self._like(found), self._array)
        return found

    def packed(self) -> memoryview:
        return self.copy().view()

    def restore(self, copy: Memory) -> None:
        if (listener := active_listener()) is not None:
            listener.copying(self._array, self._like(copy))
        self._array[...] = self._like(copy)

    def clear(self) -> None:
        if (listener := active_listener()) is not None:
            listener.assigning(self._array, ..., 0, 0)
        self._array[...] = 0

    def _like(self, packed: Memory) -> np.ndarray[Any, Any]:
        count = self._array.size
        return np.frombuffer(packed.view(), dtype=self._array.dtype, count=count).reshape(self._array.shape)


class ResidentPart(MemoryPart):
    """The same of a block that lives on a device: it has no array between two uses, so that the block is not used
    again.
    """

    __slots__ = ("_form", "_start")

    def __init__(
        self, block: Memory, start: int, dtype: Scalar, extents: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self._block = block
        self._start = start
        self._form = dtype, extents, strides
        self.nbytes = math.prod(extents) * dtype.size

    @property
    def address(self) -> int:  # type: ignore[override]
        return self._block.address + self._start

    @property
    def begin(self) -> int:
        return self._block.begin + self._start

    @property
    def _owner(self) -> memoryview:  # type: ignore[override]
        return self._block.view()[self._start :]

    @property
    def _array(self) -> np.ndarray[Any, Any]:  # type: ignore[override]
        return _strided(self._owner, *self._form)


def part_of(block: Memory, start: int, dtype: Scalar, extents: tuple[int, ...], strides: tuple[int, ...]) -> MemoryPart:
    """One field's bytes in a block."""
    return (ResidentPart if block.is_resident else MemoryPart)(block, start, dtype, extents, strides)


def _strided(
    memory: memoryview, dtype: Scalar, extents: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    if not math.prod(extents):
        return np.zeros(extents, numpy_type(dtype))
    return np.ndarray(extents, numpy_type(dtype), buffer=memory, strides=strides)


def array_over(buffer: Buffer, memory: Memory, base: Any = None) -> np.ndarray[Any, Any]:
    """The numbers of a field as an array that shares its memory: index dimensions first, then those of an element,
    then the directions of tangents. `base`: an array over all of the memory, which the new one is to keep alive.
    """
    shape, strides, dtype = array_shape(buffer), (*(buffer.strides or ()), *buffer.element_strides), buffer.dtype
    if buffer.planes:
        *inner, count = shape
        plane, whole = buffer.planes[0].dtype, (count, *inner)
        found = _strided(memory.view() if base is None else base, plane, whole, row_major(whole, plane.size))
        return np.moveaxis(found, 0, -1)
    if isinstance(dtype, Tangents):
        strides, dtype = (*strides, dtype.scalar.size), dtype.scalar
    return _strided(memory.view() if base is None else base, dtype, shape, strides)


def array_shape(buffer: Buffer) -> tuple[int, ...]:
    """The shape that `array_over` gives."""
    shape = tuple([n or 0 for n in buffer.shape])
    if buffer.planes:
        return (*shape, *buffer.planes[0].element, len(buffer.planes))
    directions = (buffer.dtype.count,) if isinstance(buffer.dtype, Tangents) else ()
    return (*shape, *buffer.element, *directions)


def warm_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy, row by row, in memory that goes back to the pool with the last array that shares it."""
    if array.nbytes < WARM_FROM:
        found = array.copy()
    else:
        found = np.ndarray(array.shape, array.dtype, Memory(array.nbytes, clear=False).view())
        found[...] = array
    if listeners and (listener := active_listener()) is not None:
        listener.copying(found, array)
    return found


class Copies:
    """Copies of arrays that go together: small ones lie in chunks that many share."""

    __slots__ = ("_chunk", "_size", "_used")

    def __init__(self) -> None:
        self._chunk: Any = b""
        self._size = _FIRST_CHUNK
        self._used = 0

    def copy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy, row by row."""
        nbytes = array.nbytes
        if not _SHARES_FROM <= nbytes <= _SHARES_TO:
            return warm_copy(array)
        start = self._used
        if start + nbytes > len(self._chunk):
            self._chunk = Memory(self._size, clear=False).view()
            self._size = min(2 * self._size, _LARGEST_CHUNK)
            start = 0
        self._used = start + nbytes + -nbytes % ALIGNMENT
        found = np.ndarray(array.shape, array.dtype, self._chunk, start)
        found[...] = array
        if listeners and (listener := active_listener()) is not None:
            listener.copying(found, array)
        return found


def dense(
    dtype: Scalar, shape: tuple[int, ...], element: tuple[int, ...], order: tuple[int, ...], layout: Layout
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The strides of a field with memory of its own, those of its components, and its size in bytes. `order`: the
    dimensions, the slowest first.
    """
    count, components = math.prod(shape), math.prod(element)
    step = dtype.size if layout is Layout.SOA else dtype.size * components
    packed = row_major([shape[axis] for axis in order], step)
    strides = [0] * len(shape)
    for axis, stride in zip(order, packed, strict=True):
        strides[axis] = stride
    apart = dtype.size * (count if layout is Layout.SOA else 1)
    if layout is Layout.SOA and components > 1 and apart and apart % (PAGE // 4) == 0:
        apart += STAGGER
    return tuple(strides), row_major(element, max(apart, 1)), max(count * dtype.size, apart) * components


def shape_given(shape: Any, made_at: Span) -> tuple[int, ...]:
    """A shape as a tuple. Raises `FieldError` for what is none."""
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    dims = tuple(shape) if isinstance(shape, tuple | list | Matrix) else (shape,)
    for extent in dims:
        if not isinstance(extent, int | np.integer) or isinstance(extent, bool):
            raise FieldError(f"a field's shape is made of integers, not {shown(extent)}", made_at)
        if extent < 0:
            raise FieldError(f"a field cannot have a negative extent: shape {shown(dims)}", made_at)
        if extent > 2**31 - 1:
            raise FieldError(
                f"an extent of {shown(extent)} does not fit the 32-bit indices of kernels: shape {shown(dims)}", made_at
            )
    if len(dims) > MOST_DIMENSIONS:
        raise FieldError(f"a field has at most {MOST_DIMENSIONS} dimensions, not {len(dims)}", made_at)
    return tuple([int(d) for d in dims])


def order_named(order: str | None, rank: int, where: Span) -> tuple[int, ...]:
    """The dimensions that a text such as "ji" names, the slowest first. Raises `FieldError`."""
    if order is None:
        return tuple(range(rank))
    letters = LETTERS[:rank]
    if not isinstance(order, str) or sorted(order) != sorted(letters):
        raise FieldError(
            f"the order {order!r} does not name each of the {rank} dimensions once",
            where,
            hint=f"the dimensions are called {', '.join(letters)}; the slowest comes first" if rank else "leave it out",
        )
    return tuple([letters.index(letter) for letter in order])


def offset_given(offset: Any, shape: tuple[int, ...], where: Span) -> tuple[int, ...]:
    """The first index of each dimension; () when all are zero. Raises `FieldError`."""
    if offset is None:
        return ()
    found = tuple(offset) if isinstance(offset, tuple | list | np.ndarray) else (offset,)
    if len(found) != len(shape):
        raise FieldError(f"the offset {shown(offset)} needs {len(shape)} numbers, one for each dimension", where)
    for first in found:
        if not isinstance(first, int | np.integer) or isinstance(first, bool) or abs(int(first)) > 2**30:
            raise FieldError(f"an offset is made of integers between -2**30 and 2**30, not {shown(first)}", where)
    if any(int(first) + extent > 2**31 - 1 for first, extent in zip(found, shape, strict=True)):
        raise FieldError(
            f"the indices of shape {shape} from {shown(offset)} on do not fit the 32-bit indices of kernels", where
        )
    return tuple([int(first) for first in found]) if any(found) else ()
