"""Memory operations: addresses, loads, stores and atomics."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.primitives import combine, tangent_at
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES, TYPES
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atomic, Buffer, BufferKind, Extent, Lit, Load, MemoryOp, Store
from tinote.ir.types import Lanes, Scalar, Tangents, element_type, f16, u1


def _address(e: FunctionEmitter, op: MemoryOp) -> tuple[Buffer, str]:
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


def access(e: FunctionEmitter, buffer: Buffer, groups: str = "") -> str:
    """The metadata of an access; `groups`: the parallel loops whose independence covers it."""
    text = e.module.aliasing.of(buffer)
    return text + groups if buffer.kind in (BufferKind.FIELD, BufferKind.ARRAY) else text


def load(e: FunctionEmitter, op: Load) -> None:
    buffer = root_of(op.buffer)
    if buffer.kind is BufferKind.TEMPORARY and buffer not in e.written and all(type(a) is Lit for a in op.index):
        e.env[op.out] = e.constant_temporary(buffer, int(op.index[0].value) if op.index else 0)  # type: ignore[union-attr]
        return
    buffer, address = _address(e, op)
    e.env[op.out] = load_cell(e, buffer.dtype, address, access(e, buffer, e.group_text))


def load_cell(e: FunctionEmitter, t: Scalar | Lanes, address: str, metadata: str = "") -> str:
    """Load a scalar, or consecutive lanes."""
    value = e.value(f"load {MEMORY_TYPES[t]}, ptr {address}, align {element_type(t).alignment}{metadata}")
    return from_memory(e, t, value)


def from_memory(e: FunctionEmitter, t: Scalar | Lanes, value: str) -> str:
    """A loaded number as a value: a truth value is a byte in memory."""
    return e.value(f"icmp ne {MEMORY_TYPES[t]} {value}, zeroinitializer") if element_type(t) is u1 else value


def to_memory(e: FunctionEmitter, t: Scalar | Lanes, value: str) -> str:
    """A value in its form in memory."""
    return e.value(f"zext {TYPES[t]} {value} to {MEMORY_TYPES[t]}") if element_type(t) is u1 else value


def store(e: FunctionEmitter, op: Store) -> None:
    buffer, address = _address(e, op)
    store_cell(e, buffer.dtype, e.use(op.value), address, access(e, buffer, e.group_text))


def store_cell(e: FunctionEmitter, t: Scalar | Lanes, value: str, address: str, metadata: str = "") -> None:
    """Store a scalar, or consecutive lanes."""
    e.do(
        f"store {MEMORY_TYPES[t]} {to_memory(e, t, value)}, ptr {address}, align {element_type(t).alignment}{metadata}"
    )


_EXTREMA = (p.minimum, p.maximum)
_WORDS = {p.add: "add", p.and_: "and", p.or_: "or", p.xor: "xor"}


def atomic(e: FunctionEmitter, op: Atomic) -> None:
    buffer, address = _address(e, op)
    t = buffer.dtype
    value = e.use(op.value)
    if op.plain or buffer.kind is BufferKind.PRIVATE:
        # Independence does not cover accumulation into one element; vectorisation proves where it does.
        metadata = access(e, buffer, e.proved_text)
        old = load_cell(e, t, address, metadata)
        store_cell(e, t, combine(e, op.prim, t, old, value), address, metadata)
    elif op.prim in _EXTREMA and not op.outs and isinstance(t, Scalar) and t.kind in "iu":
        _update_extremum(e, op.prim, t, address, value, access(e, buffer))
        return
    else:
        metadata = access(e, buffer)
        old = _atomic_update(e, op.prim, t, address, value, metadata)
    if op.outs:
        e.env[op.out] = old


def _update_extremum(e: FunctionEmitter, prim: p.Primitive, t: Scalar, address: str, value: str, metadata: str) -> None:
    """An update that most often changes nothing, and then writes nothing: cores keep their copies of the element."""
    held = e.value(f"load atomic {TYPES[t]}, ptr {address} monotonic, align {t.size}{metadata}")
    sign = "s" if t.kind == "i" else "u"
    order = f"{sign}{'gt' if prim is p.maximum else 'lt'}"
    change, done = e.label(), e.label()
    e.do(f"br i1 {e.value(f'icmp {order} {TYPES[t]} {value}, {held}')}, label %{change}, label %{done}")
    e.begin(change)
    _atomic_update(e, prim, t, address, value, metadata)
    e.do(f"br label %{done}")
    e.begin(done)


def _atomic_update(e: FunctionEmitter, prim: p.Primitive, t: Scalar, address: str, value: str, metadata: str) -> str:
    if isinstance(t, Tangents):
        return _update_tangents(e, prim, t, address, value, metadata)
    ty, stored = TYPES[t], MEMORY_TYPES[t]
    if t.kind in "iu":
        word = _WORDS.get(prim)
        if word is None and prim is not p.mul:
            word = ("" if t.kind == "i" else "u") + prim.name
        if word is not None:
            return e.value(f"atomicrmw {word} ptr {address}, {ty} {value} monotonic, align {t.size}{metadata}")
    elif prim is p.add and t.kind == "f" and t is not f16:
        return e.value(f"atomicrmw fadd ptr {address}, {ty} {value} monotonic, align {t.size}{metadata}")
    # A compare-and-swap loop.
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


def _update_tangents(
    e: FunctionEmitter, prim: p.Primitive, t: Tangents, address: str, value: str, metadata: str
) -> str:
    """One direction after the other: each tangent is a number of its own."""
    old = "poison"
    for k in range(t.count):
        at = e.value(f"getelementptr inbounds i8, ptr {address}, i64 {k * t.scalar.size}")
        before = _atomic_update(e, prim, t.scalar, at, tangent_at(e, t, value, k), metadata)
        old = e.value(f"insertelement {TYPES[t]} {old}, {TYPES[t.scalar]} {before}, i64 {k}")
    return old


def extent(e: FunctionEmitter, op: Extent) -> None:
    buffer = root_of(op.buffer)
    known = buffer.shape[op.axis]
    e.env[op.out] = str(known) if known is not None else e.extent(buffer, op.axis)
    e.ranges[op.out] = (known, known) if known is not None else (0, (1 << 31) - 1)
