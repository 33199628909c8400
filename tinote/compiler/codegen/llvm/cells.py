"""Local cells: scalars and arrays of one task."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.memory import load_cell, store_cell
from tinote.compiler.codegen.llvm.ranges import range_of
from tinote.compiler.codegen.llvm.stacks import Stacks
from tinote.compiler.codegen.llvm.tiles import get_of_tile, local_tile, set_of_tile
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES, number
from tinote.errors import CompilerBug
from tinote.ir.nodes import Atom, Local, Op
from tinote.ir.types import Ref, Scalar, Tensor, Tile, element_type, shape_of, u1

#: Bytes: local arrays up to this size live on the machine's stack while there is room, larger ones in the arena.
#: Chosen, not measured.
_MAX_BYTES_ON_STACK = 16 << 10


def local(e: FunctionEmitter, stacks: Stacks, op: Local) -> None:
    ref = op.out.type
    if isinstance(ref, Tile):
        local_tile(e, stacks, op)
        return
    assert isinstance(ref, Ref)
    t = element_type(ref.content)
    count = ref.content.count if isinstance(ref.content, Tensor) else 1
    size = count * t.size
    if count > 1 and not (size <= _MAX_BYTES_ON_STACK and e.fits_stack(size)):
        address = stacks.allocate(str(size), op.loc, "a local array")
    else:
        address = e.first(f"alloca [{count} x {MEMORY_TYPES[t]}], align {16 if count > 1 else t.alignment}")
    e.env[op.out] = address
    if op.args:
        if isinstance(ref.content, Tensor):
            raise CompilerBug("LLVM code", f"a tensor value in machine code: {op!r}")
        store_cell(e, t, e.use(op.args[0]), address)
    elif count == 1:
        store_cell(e, t, "false" if t is u1 else number(t, 0), address)
    else:
        e.do(f"call void @llvm.memset.p0.i64(ptr align {t.alignment} {address}, i8 0, i64 {size}, i1 false)")


def _component(e: FunctionEmitter, ref: Atom, indices: tuple[Atom, ...]) -> tuple[Scalar, str]:
    assert isinstance(ref.type, Ref)
    content = ref.type.content
    t = element_type(content)
    address = e.use(ref)
    shape = shape_of(content)
    if len(indices) != len(shape):
        raise CompilerBug("LLVM code", f"a tensor value in machine code: {ref!r}")
    if not shape:
        return t, address
    linear = ""
    for axis, index in enumerate(indices):
        wide = e.wide(index)
        low, high = range_of(e.ranges, index)
        if low < 0 or high >= shape[axis]:
            # With or without a check before it, no memory outside the array is accessed.
            wide = e.value(f"call i64 @llvm.umin.i64(i64 {wide}, i64 {shape[axis] - 1})")
        if linear:
            linear = e.value(f"add nsw i64 {e.value(f'mul nsw i64 {linear}, {shape[axis]}')}, {wide}")
        else:
            linear = wide
    return t, e.value(f"getelementptr inbounds {MEMORY_TYPES[t]}, ptr {address}, i64 {linear}")


def get(e: FunctionEmitter, op: Op) -> None:
    if isinstance(op.args[0].type, Tile):
        get_of_tile(e, op)
        return
    t, address = _component(e, op.args[0], op.args[1:])
    e.env[op.out] = load_cell(e, t, address)


def set_(e: FunctionEmitter, op: Op) -> None:
    if isinstance(op.args[0].type, Tile):
        set_of_tile(e, op)
        return
    t, address = _component(e, op.args[0], op.args[1:-1])
    store_cell(e, t, e.use(op.args[-1]), address)
