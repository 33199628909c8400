"""Lanes as LLVM vectors: construction, primitives, masked accesses."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.memory import access, from_memory, to_memory
from tinote.compiler.codegen.llvm.primitives import combine, emit_prim
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES, TYPES, literal, number
from tinote.errors import CompilerBug
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.lanes import Broadcast, MaskedLoad, MaskedStore, Ramp, Reduce
from tinote.ir.nodes import Atom, Check, Lit, Prim, Var
from tinote.ir.types import Lanes, Scalar, element_type, u1


def _splat(e: FunctionEmitter, text: str, t: Lanes) -> str:
    """A scalar broadcast to all lanes."""
    ty, one = TYPES[t], TYPES[t.dtype]
    if not text.startswith("%"):
        # A name for a constant.
        return e.value(f"bitcast {ty} splat ({one} {text}) to {ty}")
    first = e.value(f"insertelement {ty} poison, {one} {text}, i64 0")
    return e.value(f"shufflevector {ty} {first}, {ty} poison, <{t.lanes} x i32> zeroinitializer")


def broadcast(e: FunctionEmitter, op: Broadcast) -> None:
    t = op.out.type
    assert isinstance(t, Lanes)
    e.env[op.out] = _splat(e, e.use(op.args[0]), t)


def ramp(e: FunctionEmitter, op: Ramp) -> None:
    t = op.out.type
    assert isinstance(t, Lanes)
    first, step = op.args
    start = _splat(e, e.use(first), t)
    if isinstance(step, Lit):
        values = [number(t.dtype, t.dtype.wrap(int(step.value) * k)) for k in range(t.lanes)]
        e.env[op.out] = e.value(f"add {TYPES[t]} {start}, {_constant(t.dtype, values)}")
        return
    counts = _constant(t.dtype, [str(k) for k in range(t.lanes)])
    further = e.value(f"mul {TYPES[t]} {_splat(e, e.use(step), t)}, {counts}")
    e.env[op.out] = e.value(f"add {TYPES[t]} {start}, {further}")


def _constant(t: Scalar, values: list[str]) -> str:
    return f"<{', '.join([f'{TYPES[t]} {value}' for value in values])}>"


def mask_below(e: FunctionEmitter, rest: str, t: Lanes) -> str:
    """The mask of lanes in a loop's range, when `rest` iterations (an i64) are left."""
    few = e.value(f"call i64 @llvm.umin.i64(i64 {rest}, i64 {t.lanes})")
    count = e.value(f"trunc nuw nsw i64 {few} to i32")
    ty = f"<{t.lanes} x i32>"
    first = e.value(f"insertelement {ty} poison, i32 {count}, i64 0")
    every = e.value(f"shufflevector {ty} {first}, {ty} poison, {ty} zeroinitializer")
    return e.value(f"icmp ugt {ty} {every}, <{', '.join([f'i32 {k}' for k in range(t.lanes)])}>")


def prim(e: FunctionEmitter, op: Prim) -> None:
    """A primitive on lanes: the code for scalars, on vectors.

    It does not use the ranges of operands: these hold only for active lanes.
    """
    t = op.out.type
    assert isinstance(t, Lanes)
    operands: list[str] = []
    for a in op.args:
        if isinstance(a, Lit):
            operands.append(literal(a))
        else:
            operands.append(e.use(a) if isinstance(a.type, Lanes) else _splat(e, e.use(a), Lanes(a.type, t.lanes)))  # type: ignore[arg-type]
    scalars = tuple([_scalar_of(e, a) for a in op.args])
    e.no_wrap = e.summing = False
    e.lanes = t.lanes
    result = emit_prim(e, op.prim, t.dtype, scalars, operands)
    e.lanes = 0
    e.env[op.out] = result if result.startswith("%") else _splat(e, result, t)
    out = _scalar_of(e, op.out)
    assert isinstance(out, Var)
    e.definitions[out] = Prim(op.prim, scalars, (out,))


def _scalar_of(e: FunctionEmitter, atom: Atom) -> Atom:
    """The scalar that represents lanes where a definition is needed."""
    if isinstance(atom, Lit) or not isinstance(atom.type, Lanes):
        return atom
    found = e.one_lane.get(atom)  # type: ignore[arg-type]
    if found is None:
        found = e.one_lane[atom] = Var(atom.type.dtype)  # type: ignore[index]
    return found


def extract(e: FunctionEmitter, op: Prim) -> None:
    lanes, lane = op.args
    if not isinstance(lanes.type, Lanes):
        raise CompilerBug("LLVM code", f"a tensor value in machine code: {op!r}")
    e.env[op.out] = e.value(f"extractelement {TYPES[lanes.type]} {e.use(lanes)}, i64 {e.wide(lane)}")


def reduce(e: FunctionEmitter, op: Reduce) -> None:
    t = op.args[0].type
    assert isinstance(t, Lanes)
    text = e.use(op.args[0])
    if t.dtype is u1 and op.prim in (p.or_, p.and_):
        bits = _bits(e, text, t)
        e.env[op.out] = e.value(f"icmp ne {bits}, 0" if op.prim is p.or_ else f"icmp eq {bits}, -1")
        return
    e.env[op.out] = combined(e, op.prim, t, text)


def combined(e: FunctionEmitter, prim: p.Primitive, t: Lanes, text: str) -> str:
    """The reduction of a vector's lanes to one number."""
    ty, count = TYPES[t.dtype], t.lanes
    while count > 2:
        half = count // 2
        parts: list[str] = []
        for start in (0, half):
            chosen = ", ".join([f"i32 {k}" for k in range(start, start + half)])
            parts.append(
                e.value(f"shufflevector <{count} x {ty}> {text}, <{count} x {ty}> poison, <{half} x i32> <{chosen}>")
            )
        e.lanes = half
        text = combine(e, prim, t.dtype, *parts)
        e.lanes = 0
        count = half
    ends = [e.value(f"extractelement <2 x {ty}> {text}, i64 {k}") for k in range(2)]
    return combine(e, prim, t.dtype, *ends)


def _bits(e: FunctionEmitter, mask: str, t: Lanes) -> str:
    """A mask as an integer, with its type before it."""
    return f"i{t.lanes} {e.value(f'bitcast <{t.lanes} x i1> {mask} to i{t.lanes}')}"


def _place(e: FunctionEmitter, op: MaskedLoad | MaskedStore) -> tuple[str, str, str]:
    """The suffix of an access's intrinsic after `load` or `store`, its address or addresses, and its metadata."""
    buffer = root_of(op.buffer)
    (offset,) = op.index
    t = op.mask.type
    assert isinstance(t, Lanes)
    memory = f"v{t.lanes}{'f' if buffer.dtype.kind == 'f' else 'i'}{buffer.dtype.size * 8}"
    address = f"getelementptr i8, ptr {e.pointer(buffer)}, {TYPES[offset.type]} {e.use(offset)}"  # type: ignore[index]
    several = isinstance(offset.type, Lanes)
    pointers = f"<{t.lanes} x ptr>" if several else "ptr"
    suffix = f"{memory}.v{t.lanes}p0" if several else f"{memory}.p0"
    return suffix, f"{pointers} align {buffer.dtype.size} {e.value(address)}", access(e, buffer)


def masked_load(e: FunctionEmitter, op: MaskedLoad) -> None:
    t = op.out.type
    assert isinstance(t, Lanes)
    suffix, address, metadata = _place(e, op)
    memory = MEMORY_TYPES[t]
    name = "gather" if isinstance(op.index[0].type, Lanes) else "load"
    mask = f"<{t.lanes} x i1> {e.use(op.mask)}"
    value = e.value(
        f"call {memory} @llvm.masked.{name}.{suffix}({address}, {mask}, {memory} zeroinitializer){metadata}"
    )
    e.env[op.out] = from_memory(e, t, value)


def masked_store(e: FunctionEmitter, op: MaskedStore) -> None:
    t = op.value.type
    assert isinstance(t, Lanes)
    suffix, address, metadata = _place(e, op)
    memory, value = MEMORY_TYPES[t], to_memory(e, t, e.use(op.value))
    name = "scatter" if isinstance(op.index[0].type, Lanes) else "store"
    mask = f"<{t.lanes} x i1> {e.use(op.mask)}"
    e.do(f"call void @llvm.masked.{name}.{suffix}({memory} {value}, {address}, {mask}){metadata}")


def first_fault(e: FunctionEmitter, op: Check) -> Check:
    """A check on lanes as one on scalars: whether it holds for all, and the values of the first lane that fails."""
    t = op.args[0].type
    assert isinstance(t, Lanes)
    ty = f"i{t.lanes}"
    bits = _bits(e, e.use(op.args[0]), t).removeprefix(f"{ty} ")
    failing = e.value(f"xor {ty} {bits}, -1")
    lane = e.value(f"call {ty} @llvm.cttz.{ty}({ty} {failing}, i1 false)")
    good = Var(u1)
    e.env[good] = e.value(f"icmp eq {ty} {bits}, -1")
    shown: list[Atom] = []
    for a in op.args[1:]:
        if isinstance(a.type, Lanes):
            one = Var(element_type(a.type))
            e.env[one] = e.value(f"extractelement {TYPES[a.type]} {e.use(a)}, {ty} {lane}")
            shown.append(one)
        else:
            shown.append(a)
    return Check(op.kind, (good, *shown), op.text, op.axis, op.loc)
