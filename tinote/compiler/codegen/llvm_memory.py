"""Memory operations: addresses, what may alias, loads, stores, atomics, local cells and stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinote.compiler.codegen.llvm_prims import combine
from tinote.compiler.codegen.llvm_ranges import range_of
from tinote.compiler.codegen.llvm_text import MEMORY_TYPES, TYPES, Metadata, number
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, Extent, Lit, Load, Local, Memory, Op, Store
from tinote.ir.types import Ref, Scalar, Tensor, element_type, f16, shape_of, u1

if TYPE_CHECKING:
    from tinote.compiler.codegen.llvm_function import Emitter

__all__ = [
    "Aliasing",
    "access",
    "atomic",
    "extent",
    "get",
    "load",
    "load_cell",
    "local",
    "root_of",
    "set_",
    "store",
    "store_cell",
]

#: Local arrays up to this size live on the machine's stack, larger ones in the arena.
_LARGEST_ON_STACK = 16 << 10


def root_of(buffer: Buffer) -> Buffer:
    """The buffer that a flat view is the view of; itself otherwise."""
    while buffer.flat is not None:
        buffer = buffer.flat
    return buffer


class Aliasing:
    """Which accesses may meet, as LLVM's scoped alias metadata.

    Every field, temporary and private copy is a scope that no other one overlaps. All arrays share a scope: they may
    overlap each other and fields.
    """

    __slots__ = ("_domain", "_metadata", "_scopes", "_texts")

    def __init__(self, metadata: Metadata, buffers: tuple[Buffer, ...]) -> None:
        self._metadata = metadata
        self._domain = metadata.distinct("!{{self}}")
        self._scopes: dict[Buffer | Op | None, int] = {}
        for buffer in buffers:
            key = None if buffer.kind is BufferKind.ARRAY else buffer
            if key not in self._scopes:
                self._scopes[key] = self._scope()
        self._texts: dict[Buffer | Op, str] = {}

    def _scope(self) -> int:
        return self._metadata.distinct(f"!{{{{self}}, !{self._domain}}}")

    def of(self, thing: Buffer | Op) -> str:
        """The metadata of an access to a buffer, or to the memory of a stack (named by the operation that makes it)."""
        found = self._texts.get(thing)
        if found is None:
            if isinstance(thing, Op):
                self._scopes[thing] = self._scope()
                mine: Buffer | Op | None = thing
            else:
                mine = None if thing.kind is BufferKind.ARRAY else thing
            overlaps: set[Buffer | Op | None] = {mine}
            if mine is None:
                overlaps |= {key for key in self._scopes if isinstance(key, Buffer) and key.kind is BufferKind.FIELD}
            elif isinstance(mine, Buffer) and mine.kind is BufferKind.FIELD:
                overlaps.add(None)
            others = [f"!{number}" for key, number in self._scopes.items() if key not in overlaps]
            found = f", !alias.scope !{self._metadata.add('!{!' + str(self._scopes[mine]) + '}')}"
            if others:
                found += f", !noalias !{self._metadata.add('!{' + ', '.join(others) + '}')}"
            self._texts[thing] = found
        return found


def _address(e: Emitter, op: Memory) -> tuple[Buffer, str]:
    buffer = root_of(op.buffer)
    base = e.pointer(buffer)
    if buffer is op.buffer:
        if op.index:
            raise CompilerBug("LLVM code", f"an access that is not flat: {op!r}")
        return buffer, base
    (offset,) = op.index
    if type(offset) is Lit and offset.value == 0:
        return buffer, base
    return buffer, e.value(f"getelementptr inbounds i8, ptr {base}, i64 {e.use(offset)}")


def access(e: Emitter, buffer: Buffer, groups: str = "") -> str:
    """The metadata of an access; `groups`: the parallel loops in whose promise of independence it takes part."""
    text = e.module.aliasing.of(buffer)
    return text + groups if buffer.kind in (BufferKind.FIELD, BufferKind.ARRAY) else text


def load(e: Emitter, op: Load) -> None:
    buffer = root_of(op.buffer)
    if buffer.kind is BufferKind.TEMPORARY and buffer not in e.written and all(type(a) is Lit for a in op.index):
        e.env[op.out] = e.constant_temporary(buffer, int(op.index[0].value) if op.index else 0)  # type: ignore[union-attr]
        return
    buffer, address = _address(e, op)
    e.env[op.out] = _load(e, buffer.dtype, address, access(e, buffer, e.group_text))


def _load(e: Emitter, t: Scalar, address: str, metadata: str = "") -> str:
    value = e.value(f"load {MEMORY_TYPES[t]}, ptr {address}, align {t.size}{metadata}")
    return e.value(f"icmp ne i8 {value}, 0") if t is u1 else value


def store(e: Emitter, op: Store) -> None:
    buffer, address = _address(e, op)
    _store(e, buffer.dtype, e.use(op.value), address, access(e, buffer, e.group_text))


def _store(e: Emitter, t: Scalar, value: str, address: str, metadata: str = "") -> None:
    if t is u1:
        value = e.value(f"zext i1 {value} to i8")
    e.do(f"store {MEMORY_TYPES[t]} {value}, ptr {address}, align {t.size}{metadata}")


_WORDS = {p.add: "add", p.and_: "and", p.or_: "or", p.xor: "xor"}


def atomic(e: Emitter, op: Atomic) -> None:
    buffer, address = _address(e, op)
    t = buffer.dtype
    value = e.use(op.value)
    if op.plain or buffer.kind is BufferKind.PRIVATE:
        # The promise of a parallel loop does not hold for accumulation into one place; vectorisation proves
        # where it does.
        metadata = access(e, buffer, e.proved_text)
        old = _load(e, t, address, metadata)
        _store(e, t, combine(e, op.prim, t, old, value), address, metadata)
    else:
        metadata = access(e, buffer)
        old = _indivisible(e, op.prim, t, address, value, metadata)
    if op.outs:
        e.env[op.out] = old


def _indivisible(e: Emitter, prim: p.Primitive, t: Scalar, address: str, value: str, metadata: str) -> str:
    ty, stored = TYPES[t], MEMORY_TYPES[t]
    if t.kind in "iu":
        word = _WORDS.get(prim)
        if word is None and prim is not p.mul:
            word = ("" if t.kind == "i" else "u") + prim.name
        if word is not None:
            return e.value(f"atomicrmw {word} ptr {address}, {ty} {value} monotonic, align {t.size}{metadata}")
    elif prim is p.add and t.kind == "f" and t is not f16:
        return e.value(f"atomicrmw fadd ptr {address}, {ty} {value} monotonic, align {t.size}{metadata}")
    # Compare and exchange until nobody was faster.
    bits = f"i{t.size * 8}"
    first = e.value(f"load atomic {bits}, ptr {address} monotonic, align {t.size}{metadata}")
    before, loop, done = e.block, e.label(), e.label()
    e.do(f"br label %{loop}")
    e.begin(loop)
    at, seen = e.hole(), e.name()
    old = (
        e.value(f"icmp ne i8 {seen}, 0")
        if t is u1
        else seen
        if ty == bits
        else e.value(f"bitcast {bits} {seen} to {ty}")
    )
    new = combine(e, prim, t, old, value)
    raw = (
        e.value(f"zext i1 {new} to i8")
        if t is u1
        else new
        if stored == bits
        else e.value(f"bitcast {ty} {new} to {bits}")
    )
    pair = e.value(
        f"cmpxchg weak ptr {address}, {bits} {seen}, {bits} {raw} monotonic monotonic, align {t.size}{metadata}"
    )
    now = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
    won = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 1")
    e.fill(at, f"{seen} = phi {bits} [ {first}, %{before} ], [ {now}, %{e.block} ]")
    e.do(f"br i1 {won}, label %{done}, label %{loop}")
    e.begin(done)
    return old


def extent(e: Emitter, op: Extent) -> None:
    buffer = root_of(op.buffer)
    known = buffer.shape[op.axis]
    e.env[op.out] = str(known) if known is not None else e.extent(buffer, op.axis)
    e.ranges[op.out] = (known, known) if known is not None else (0, (1 << 31) - 1)


# --- local cells


def local(e: Emitter, op: Local) -> None:
    ref = op.out.type
    assert isinstance(ref, Ref)
    t = element_type(ref.content)
    count = ref.content.count if isinstance(ref.content, Tensor) else 1
    size = count * t.size
    if size > _LARGEST_ON_STACK:
        address = e.stacks.allocate(str(size), op.loc, "a local array")
    else:
        address = e.first(f"alloca [{count} x {MEMORY_TYPES[t]}], align {16 if count > 1 else t.size}")
    e.env[op.out] = address
    if op.args:
        if isinstance(ref.content, Tensor):
            raise CompilerBug("LLVM code", f"a tensor value in machine code: {op!r}")
        _store(e, t, e.use(op.args[0]), address)
    elif count == 1:
        _store(e, t, "false" if t is u1 else number(t, 0), address)
    else:
        e.do(f"call void @llvm.memset.p0.i64(ptr align {t.size} {address}, i8 0, i64 {size}, i1 false)")


def _component(e: Emitter, ref: Atom, indices: tuple[Atom, ...]) -> tuple[Scalar, str]:
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
            # Whether a check stands before it or not, nothing beside the array is touched.
            wide = e.value(f"call i64 @llvm.umin.i64(i64 {wide}, i64 {shape[axis] - 1})")
        if linear:
            linear = e.value(f"add nsw i64 {e.value(f'mul nsw i64 {linear}, {shape[axis]}')}, {wide}")
        else:
            linear = wide
    return t, e.value(f"getelementptr inbounds {MEMORY_TYPES[t]}, ptr {address}, i64 {linear}")


def get(e: Emitter, op: Op) -> None:
    t, address = _component(e, op.args[0], op.args[1:])
    e.env[op.out] = _load(e, t, address)


def set_(e: Emitter, op: Op) -> None:
    t, address = _component(e, op.args[0], op.args[1:-1])
    _store(e, t, e.use(op.args[-1]), address)


def load_cell(e: Emitter, t: Scalar, address: str, metadata: str) -> str:
    return _load(e, t, address, metadata)


def store_cell(e: Emitter, t: Scalar, value: str, address: str, metadata: str) -> None:
    _store(e, t, value, address, metadata)
