"""Layout of the launch block: scalar arguments, base pointers, extents, temporaries and return values.

Offsets are in bytes from the start of the block; the kernel's own part begins at `FIRST_BYTE`. Every scalar has an
8-byte slot of its own, little endian.
"""

from __future__ import annotations

from tinote.errors import CompilerBug
from tinote.ir.nodes import Buffer, BufferKind, Function, Var
from tinote.ir.query import buffers_of

#: The byte of a block at which a kernel's own part begins: the runtime's is before it.
FIRST_BYTE = 128


class BlockLayout:
    """`slots` is the number of 8-byte slots from `FIRST_BYTE` on; `scratch_bytes` the bytes that one thread needs for
    private copies.

    `buffers` are the fields and arrays whose addresses a launch provides, in the order of `pointers`. `extents` are
    keyed by buffer and axis and hold an i32 each; `temporaries` lie in the block itself; `results` has one offset a
    returned value.
    """

    def __init__(self) -> None:
        self.parameters: dict[Var, int] = {}
        self.pointers: dict[Buffer, int] = {}
        self.extents: dict[tuple[Buffer, int], int] = {}
        self.temporaries: dict[Buffer, int] = {}
        self.results: tuple[int, ...] = ()
        self.slots = 0
        self.scratch_bytes = 0

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(self.pointers)


def buffer_bytes(buffer: Buffer) -> int:
    """The size of a temporary or private copy, whose shape is known: from its first byte to past its last."""
    size = buffer.dtype.size
    if buffer.strides is None or None in buffer.shape:
        raise CompilerBug("layout", f"{buffer!r} has no size that is known when compiling")
    if any(extent == 0 for extent in buffer.shape):
        return 0
    for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
        assert extent is not None
        size += (extent - 1) * stride
    for extent, stride in zip(buffer.element, buffer.element_strides, strict=True):
        size += (extent - 1) * stride
    return size


def make_layout(fn: Function) -> BlockLayout:
    """The layout for a function's parameters, buffers and results."""
    layout = BlockLayout()
    at = FIRST_BYTE

    def take(size: int = 8) -> int:
        nonlocal at
        taken = at
        at += (size + 7) & ~7
        return taken

    for parameter in fn.region.params:
        layout.parameters[parameter] = take()
    found = buffers_of(fn)
    for buffer in found:
        if buffer.kind in (BufferKind.FIELD, BufferKind.ARRAY, BufferKind.SAVED):
            layout.pointers[buffer] = take()
    for buffer in found:
        if buffer.kind in (BufferKind.FIELD, BufferKind.ARRAY):
            for axis, extent in enumerate(buffer.shape):
                if extent is None:
                    layout.extents[buffer, axis] = take()
    for buffer in found:
        if buffer.kind is BufferKind.TEMPORARY:
            layout.temporaries[buffer] = take(buffer_bytes(buffer))
    layout.results = tuple(take() for _ in fn.region.yields)
    layout.slots = (at - FIRST_BYTE) // 8
    return layout
