"""Memory operations: places, loads, stores and atomics."""

from __future__ import annotations

import math
from typing import NamedTuple

from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.types import WIDE, type_name, unit_of, words_of
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, Extent, Lit, Load, MemoryOp, Store, Var
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, Tangents, element_type, u1, u32

#: The same on words of either sign.
_WORDS = {p.add: "Add", p.and_: "And", p.or_: "Or", p.xor: "Xor"}
_ORDERED = {p.minimum: "Min", p.maximum: "Max"}


class NumberPlace(NamedTuple):
    """The place of a number: its words, or the word that contains its byte and the shift in bits. `floats`: the
    words are numbers of f32.
    """

    words: list[str]
    atomic: bool
    by: str = ""
    floats: bool = False


def index_word(e: TaskEmitter, index: Atom) -> str:
    """An index in range as a word."""
    t, term = element_type(index.type), e.use(index)
    return f"{term}.x" if type_name(t) == WIDE else term if t is u32 else f"u32({term})"


def row_major(e: TaskEmitter, indices: tuple[Atom, ...], extents: list[str]) -> str:
    """The number of a component: indices are in range, so that nothing wraps."""
    text = ""
    for index, extent in zip(indices, extents, strict=True):
        term = index_word(e, index)
        text = f"({text} * {extent} + {term})" if text else term
    return text or "0u"


def extent_of(e: TaskEmitter, b: Buffer, axis: int) -> str:
    n = b.shape[axis]
    return e.param(e.m.extents[b, axis]) if n is None else f"{n}u"


def place_of(e: TaskEmitter, op: MemoryOp) -> NumberPlace:
    """The place of a component."""
    b = op.buffer
    size = words_of(b.dtype)
    if b.kind is BufferKind.TEMPORARY:
        extents = [f"{n}u" for n in (*b.shape, *b.element)]
        start = e.value(f"{e.m.temporaries[b]}u + {row_major(e, op.index, extents)} * {size}u")
        return NumberPlace([f"block[{start} + {k}u]" for k in range(size)], True)
    array = "shared_arena" if e.shared else "arena"
    unit = unit_of(b.dtype)  # bases are in the same unit
    start = e.value(f"{e.param(e.m.bases[b])} + {offset_of(e, op, unit)}")
    if e.floats:
        return NumberPlace([f"float_arena[{start}]"], True, floats=True)
    if unit == 4:
        return NumberPlace([f"{array}[{start} + {k}u]" if k else f"{array}[{start}]" for k in range(size)], e.shared)
    scale = 4 // unit
    by = e.value(f"({start} & {scale - 1}u) * {8 * unit}u")
    return NumberPlace([f"{array}[{start} >> {scale.bit_length() - 1}u]"], e.shared, by)


def offset_of(e: TaskEmitter, op: MemoryOp, unit: int) -> str:
    """The offset of a component from the start of its buffer, in units of `unit` bytes."""
    b = op.buffer
    strides = b.strides
    components = op.index[b.rank :]
    terms: list[str] = []
    if strides is None:
        size = math.prod(b.element) * b.dtype.size
        extents = [extent_of(e, b, axis) for axis in range(b.rank)]
        terms.append(f"{row_major(e, op.index[: b.rank], extents)} * {size // unit}u")
    else:
        terms += [term_of(e, i, n // unit) for i, n in zip(op.index, strides, strict=False)]
    terms += [term_of(e, i, n // unit) for i, n in zip(components, b.element_strides, strict=True)]
    return " + ".join([term for term in terms if term]) or "0u"


def term_of(e: TaskEmitter, index: Atom, stride: int) -> str:
    if isinstance(index, Lit):
        return f"{(int(index.value) * stride) & 0xFFFFFFFF}u" if index.value else ""
    return f"{index_word(e, index)} * {stride}u" if stride != 1 else index_word(e, index)


def read_place(e: TaskEmitter, t: Scalar, place: NumberPlace) -> str:
    if place.floats:
        return e.value(f"atomicLoad(&{place.words[0]})")
    words = [f"atomicLoad(&{w})" if place.atomic else w for w in place.words]
    if place.by:
        word = f"({words[0]} >> {place.by})"
        words = [f"({word} & 0xffu)" if t is u1 else word]
    return e.value(e.from_words(t, words))


def write_place(e: TaskEmitter, t: Scalar, place: NumberPlace, value: str) -> None:
    if place.floats:
        e.do(f"atomicStore(&{place.words[0]}, {value});")
        return
    words = e.to_words(t, value)
    if place.by:  # other invocations may write its neighbours in the same word
        mask = f"{(1 << 8 * t.size) - 1:#x}u"
        bits = e.value(f"({words[0]} & {mask}) << {place.by}")
        e.do(f"atomicAnd(&{place.words[0]}, ~({mask} << {place.by}));")
        e.do(f"atomicOr(&{place.words[0]}, {bits});")
        return
    for where, word in zip(place.words, words, strict=True):
        e.do(f"atomicStore(&{where}, {word});" if place.atomic else f"{where} = {word};")


def load(e: TaskEmitter, op: Load) -> None:
    e.env[op.out] = read_place(e, op.buffer.dtype, place_of(e, op))


def store(e: TaskEmitter, op: Store) -> None:
    value = e.use(op.value)
    write_place(e, op.buffer.dtype, place_of(e, op), value)


def atomic(e: TaskEmitter, op: Atomic) -> None:
    value = e.use(op.value)
    if (op.buffer, op.index) not in e.summed or e.alone:
        add_to(e, op, value)
        return
    t = op.buffer.dtype
    if (op.buffer, op.index) not in e.sums:
        e.sums[op.buffer, op.index] = e.name_for(f"{e.name}_total"), op
    total, _ = e.sums[op.buffer, op.index]
    e.do(f"{total} = {e.prim_text(op.prim, t, (op.value, op.value), [total, value])};")


def add_to(e: TaskEmitter, op: Atomic, value: str) -> None:
    """Update a number in memory."""
    t, place = op.buffer.dtype, place_of(e, op)
    prim = op.prim
    both = (op.value, op.value)
    if op.plain or t.bits == 64:
        old = read_place(e, t, place)
        write_place(e, t, place, e.value(e.prim_text(prim, t, both, [old, value])))
    elif isinstance(t, Tangents):
        one = Var(t.scalar)
        each = [
            exchange(e, t.scalar, prim, (one, one), NumberPlace([where], place.atomic), f"{value}[{d}]")
            for d, where in enumerate(place.words)
        ]
        old = f"{type_name(t)}({', '.join(each)})"
    elif place.floats:
        old = e.value(f"atomicAdd(&{place.words[0]}, {value})")
    elif t.kind in "iu" and t.bits == 32 and (word := _WORDS.get(prim)) is not None:
        found = e.value(f"atomic{word}(&{place.words[0]}, {e.to_words(t, value)[0]})")
        old = e.from_words(t, [found])
    elif t.kind in "iu" and t.bits == 32 and prim in _ORDERED and type_name(t) == "u32":
        old = e.value(f"atomic{_ORDERED[prim]}(&{place.words[0]}, {value})")
    else:
        old = exchange(e, t, prim, both, place, value)
    if op.outs:
        e.env[op.out] = e.value(old)


def exchange(e: TaskEmitter, t: Scalar, prim: Primitive, both: tuple[Atom, ...], place: NumberPlace, value: str) -> str:
    """A compare-and-swap loop; returns the old value."""
    cell, (where,) = e.name_for("c"), place.words
    e.do(f"var {cell} = atomicLoad(&{where});")
    with e.nested("loop {"):
        word = f"({cell} >> {place.by})" if place.by else cell
        seen = e.value(e.from_words(t, [f"({word} & 0xffu)" if t is u1 and place.by else word]))
        (new,) = e.to_words(t, e.value(e.prim_text(prim, t, both, [seen, value])))
        if place.by:
            mask = f"{(1 << 8 * t.size) - 1:#x}u"
            new = f"({cell} & ~({mask} << {place.by})) | (({new} & {mask}) << {place.by})"
        found = e.name_for("r")
        e.do(f"let {found} = atomicCompareExchangeWeak(&{where}, {cell}, {new});")
        e.do(f"if ({found}.exchanged) {{ break; }}")
        e.do(f"{cell} = {found}.old_value;")
    word = f"({cell} >> {place.by})" if place.by else cell
    return e.from_words(t, [f"({word} & 0xffu)" if t is u1 and place.by else word])


def extent(e: TaskEmitter, op: Extent) -> None:
    e.env[op.out] = e.value(f"i32({extent_of(e, op.buffer, op.axis)})")
