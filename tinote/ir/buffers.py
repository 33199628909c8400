"""Memory as the IR sees it: what kind, which type, which shape, which layout."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from tinote.ir.types import Scalar, Tangents, Tensor, tangent_type

if TYPE_CHECKING:
    from tinote.ir.primitives import Primitive
    from tinote.ir.sparsity import Sparsity
    from tinote.ir.units import Unit


class BufferKind(Enum):
    """Where a buffer's memory comes from, and so what may alias: two fields never do; an array may alias another array
    or a field, unless it is `noalias`.
    """

    FIELD = "field"
    ARRAY = "array"
    TEMPORARY = "temporary"  # lives for one launch; zero at its start
    SAVED = "saved"  # a copy that one launch makes of a buffer; its memory belongs to the launch
    PRIVATE = "private"  # one copy per thread, of one task


class Buffer:
    """Memory that a kernel loads from and stores to: what a field or an array is to the IR.

    `shape`: index dimensions (None: known at launch only). `element`: shape of one element's components, () for
    scalars. `strides` and `element_strides`: in bytes, one per dimension of each; None for `strides` means row-major,
    computed at launch. `flat` names the buffer that this one is the linear view of, after access lowering: it has a
    single index, a byte offset. `adjoint` and `tangent`: the buffers of its gradient and dual, if any; `primal`: what
    this one is the gradient or dual of. Identity is the buffer's identity while compiling; machine code sees only the
    order of a function's buffers. `noalias`: of an array, that the launch guarantees no other buffer of the function to
    have memory in common with it. `offset`: what its users call the first index of each dimension, () for zeros; the IR
    itself counts from zero. `no_adjoint`, `no_tangent`: declared by the user to have none, so that its values are
    constants in reverse mode, in forward mode; else a recording may give it a temporary one. `planes`: of a gradient
    along a few directions, what holds the numbers along each; in memory they follow each other. `sparsity`: of a sparse
    field, how its cells lie in this memory, which is what the IR indexes. `levels`: the letters of the dimensions in
    the order in which the levels of a layout tree divide them, "" where that is the order of the indices. `unit`: what
    its numbers are measured in, if that was declared.
    """

    __slots__ = (
        "__weakref__",
        "adjoint",
        "dtype",
        "element",
        "element_strides",
        "flat",
        "kind",
        "levels",
        "name",
        "no_adjoint",
        "no_tangent",
        "noalias",
        "offset",
        "planes",
        "primal",
        "shape",
        "sparsity",
        "strides",
        "tangent",
        "unit",
    )

    def __init__(
        self,
        name: str,
        dtype: Scalar,
        shape: tuple[int | None, ...] = (),
        element: tuple[int, ...] = (),
        kind: BufferKind = BufferKind.FIELD,
        strides: tuple[int, ...] | None = None,
        element_strides: tuple[int, ...] | None = None,
        flat: Buffer | None = None,
        offset: tuple[int, ...] = (),
        noalias: bool = False,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.element = element
        self.kind = kind
        self.element_strides = row_major(element, dtype.size) if element_strides is None else element_strides
        if strides is None and flat is None and None not in shape:
            size = dtype.size
            for extent in element:
                size *= extent
            strides = row_major(shape, size)  # type: ignore[arg-type]
        self.strides = strides
        self.flat = flat
        self.offset = offset
        self.noalias = noalias
        self.adjoint: Buffer | None = None
        self.tangent: Buffer | None = None
        self.primal: Buffer | None = None
        self.planes: tuple[Buffer, ...] = ()
        self.no_adjoint = False
        self.no_tangent = False
        self.sparsity: Sparsity | None = None
        self.levels = ""
        self.unit: Unit | None = None

    @property
    def rank(self) -> int:
        """Number of index dimensions."""
        return len(self.shape)

    @property
    def element_type(self) -> Scalar | Tensor:
        """The type of one element."""
        return Tensor(self.dtype, self.element) if self.element else self.dtype

    def loaded_type(self, indices: int) -> Scalar | Tensor:
        """The type that a load with that number of indices gives."""
        return self.element_type if indices == self.rank else self.dtype

    def __repr__(self) -> str:
        return f"@{self.name}: {self.element_type!r} {self.shape}"


def help_with_order(buffer: Buffer) -> str:
    """What helps where an index is out of range, if the levels of a layout tree suggest another order of indices."""
    index, levels = (", ".join(letters) for letters in (sorted(buffer.levels), buffer.levels))
    return levels and (
        f"indices follow the letters, whatever the order of the levels: {buffer.name}[{index}], not [{levels}]; "
        "for the other order, exchange the letters where it is placed"
    )


def root_of(buffer: Buffer) -> Buffer:
    """The buffer that a linear view shows; any other is its own."""
    while buffer.flat is not None:
        buffer = buffer.flat
    return buffer


def family_of(buffer: Buffer) -> Buffer:
    """What a gradient or dual, of whatever order, belongs to; any other buffer is its own."""
    while buffer.primal is not None:
        buffer = buffer.primal
    return buffer


#: Gradients along at most this number of directions have a plane of memory for each: see `split_directions.py`. Chosen,
#: not measured.
MAX_PLANES = 4


def give_planes(gradient: Buffer) -> None:
    """A gradient along a few directions gets its planes; along others it stays as it is."""
    dtype = gradient.dtype
    if not isinstance(dtype, Tangents) or dtype.count > MAX_PLANES:
        return
    planes: list[Buffer] = []
    for direction in range(dtype.count):
        plane = Buffer(
            f"{gradient.name}.{direction}",
            dtype.scalar,
            gradient.shape,
            gradient.element,
            gradient.kind,
            noalias=gradient.noalias,
        )
        plane.primal = gradient.primal
        planes.append(plane)
    gradient.planes = tuple(planes)


def clone_of(buffer: Buffer, *, adjoint: bool, tangent: bool, directions: int = 1) -> Buffer:
    """A buffer like `buffer`, with the shadows that are asked for: its own where it has them, and new ones, which
    lie row by row. Along several `directions` there are only new ones, with as many numbers for each number, and so are
    there for a gradient or dual that holds values: its own dual is that of a derivative which lies there too.
    """
    clone = Buffer(
        buffer.name,
        buffer.dtype,
        buffer.shape,
        buffer.element,
        buffer.kind,
        strides=buffer.strides,
        element_strides=buffer.element_strides,
        offset=buffer.offset,
        noalias=buffer.noalias,
    )
    if directions == 1 and buffer.primal is None:
        clone.adjoint, clone.tangent = buffer.adjoint, buffer.tangent
    if adjoint and clone.adjoint is None:
        clone.adjoint = _shadow(clone, "grad", directions)
        give_planes(clone.adjoint)
    if tangent and clone.tangent is None:
        clone.tangent = _shadow(clone, "dual", directions)
    if adjoint and tangent and clone.adjoint is not None and clone.adjoint.tangent is None:
        clone.adjoint.tangent = _shadow(clone.adjoint, "dual")
    return clone


def _shadow(buffer: Buffer, kind: str, directions: int = 1) -> Buffer:
    """A gradient ("grad") or dual ("dual") for a buffer that does not know of it yet."""
    dtype = tangent_type(buffer.dtype, directions)
    name = f"{buffer.name}.{kind}"
    found = Buffer(name, dtype, buffer.shape, buffer.element, buffer.kind, noalias=buffer.noalias)
    found.primal = buffer
    return found


def row_major(shape: Iterable[int], size: int) -> tuple[int, ...]:
    """Byte strides of a row-major array of `shape` whose elements take `size` bytes."""
    strides: list[int] = []
    for extent in reversed(tuple(shape)):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


class Private:
    """One thread's own copy of `target` during a task: starts at the neutral element of `prim`, and is combined into
    `target` when the task ends. The copy of a target whose shape is known at launch only has one dimension, along which
    the target's elements follow each other row by row, and room for the largest target that has one. A copy with one
    more dimension, the last, has a column for each lane.
    """

    __slots__ = ("copy", "prim", "target")

    def __init__(self, target: Buffer, copy: Buffer, prim: Primitive) -> None:
        self.target = target
        self.copy = copy
        self.prim = prim

    @property
    def is_flat(self) -> bool:
        """Whether the shape of the target is known at launch only."""
        return None in self.target.shape

    @property
    def rank(self) -> int:
        """How many dimensions the copy has without columns."""
        return 1 if self.is_flat else self.target.rank

    @property
    def lanes(self) -> int:
        """How many columns the copy has."""
        return (self.copy.shape[-1] or 1) if self.copy.rank > self.rank else 1

    def __repr__(self) -> str:
        return f"private {self.copy!r} of {self.target!r}"


def bytes_of(buffer: Buffer) -> int | None:
    """The size of a buffer, with what lies between its components; None when its shape is known at launch only."""
    known = [n for n in buffer.shape if n is not None]
    if len(known) < buffer.rank:
        return None
    packed = math.prod([*known, *buffer.element]) * buffer.dtype.size
    return max(packed, buffer.element[0] * buffer.element_strides[0]) if packed and buffer.element else packed
