"""Local cells: scalars and arrays of a task. WGSL indexes a `var` array at run time; large ones are scratch memory."""

from __future__ import annotations

import math

from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.features import refusal
from tinote.compiler.codegen.wgsl.memory import NumberPlace, read_place, row_major, write_place
from tinote.compiler.codegen.wgsl.shader import MAX_ARRAY_WORDS
from tinote.compiler.codegen.wgsl.types import WIDE, type_name, words_of
from tinote.errors import CompilerBug
from tinote.ir.nodes import Atom, Get, Lit, Local, Set, Var
from tinote.ir.types import Ref, element_type, shape_of

#: Words cleared by one iteration of the loop that clears a large array. Chosen, not measured.
_CLEARED_AT_ONCE = 16


def local(e: TaskEmitter, op: Local) -> None:
    content = op.out.type.content  # type: ignore[union-attr]
    if e.is_large(op):
        large_array(e, op)
        return
    name = e.env[op.out] = e.name_for("a")
    t, shape = type_name(element_type(content)), shape_of(content)
    if t == WIDE:
        e.m.helpers.provide("wide")
    ty = f"array<{t}, {max(math.prod(shape), 1)}>" if shape else t
    e.declare(f"var {name}: {ty};")
    e.do(f"{name} = {e.use(op.args[0]) if op.args else f'{ty}()'};")


def large_array(e: TaskEmitter, op: Local) -> None:
    """An array in scratch memory."""
    content = op.out.type.content  # type: ignore[union-attr]
    count, size = math.prod(shape_of(content)), words_of(element_type(content))
    begin, e.array_words = 1 + e.array_words, e.array_words + count * size
    if op.args:
        raise CompilerBug("WGSL", f"a large array that begins with values: {op!r}")
    if e.array_words > MAX_ARRAY_WORDS:
        hint = f"keep it in a field: all such arrays of a task have at most {MAX_ARRAY_WORDS >> 8} KiB"
        raise refusal(f"an array of {count} numbers among the variables of a kernel", op.loc, hint)
    e.arrays[op.out] = begin, count
    k, words = e.name_for("k"), count * size
    with e.nested(f"for (var {k} = 0u; {k} < {words - words % _CLEARED_AT_ONCE}u; {k} += {_CLEARED_AT_ONCE}u) {{"):
        for step in range(_CLEARED_AT_ONCE):
            e.do(f"scratch[({begin + step}u + {k}) * stride + me] = 0u;")
    for step in range(words - words % _CLEARED_AT_ONCE, words):
        e.do(f"scratch[{begin + step}u * stride + me] = 0u;")


def array_place(e: TaskEmitter, ref: Var, index: tuple[Atom, ...]) -> NumberPlace:
    """The place of a number of an array in scratch memory."""
    (begin, count), content = e.arrays[ref], ref.type.content  # type: ignore[union-attr]
    size = words_of(element_type(content))
    # An index out of range must not reach another invocation's memory.
    at = f"min({row_major(e, index, [f'{n}u' for n in shape_of(content)])}, {count - 1}u)"
    start = e.value(f"{begin}u + {at} * {size}u")
    return NumberPlace([f"scratch[({start} + {w}u) * stride + me]" for w in range(size)], False)


def cell_text(e: TaskEmitter, ref: Atom, index: tuple[Atom, ...]) -> str:
    assert isinstance(ref, Var) and isinstance(ref.type, Ref)
    shape = shape_of(ref.type.content)
    if not index:
        return e.env[ref]
    if all(isinstance(i, Lit) for i in index):
        at = 0
        for i, n in zip(index, shape, strict=True):
            at = at * n + int(i.value)  # type: ignore[union-attr]
        # An index out of range would be an error of the shader; a check before it reports it.
        return f"{e.env[ref]}[{min(max(at, 0), max(math.prod(shape) - 1, 0))}u]"
    return f"{e.env[ref]}[{row_major(e, index, [f'{n}u' for n in shape])}]"


def get(e: TaskEmitter, op: Get) -> None:
    ref = op.args[0]
    if ref in e.arrays:
        t = element_type(ref.type.content)  # type: ignore[union-attr]
        e.env[op.out] = read_place(e, t, array_place(e, ref, op.args[1:]))  # type: ignore[arg-type]
        return
    e.env[op.out] = e.value(cell_text(e, op.args[0], op.args[1:]))


def set_(e: TaskEmitter, op: Set) -> None:
    ref, value = op.args[0], e.use(op.args[-1])
    if ref in e.arrays:
        t = element_type(ref.type.content)  # type: ignore[union-attr]
        write_place(e, t, array_place(e, ref, op.args[1:-1]), value)  # type: ignore[arg-type]
        return
    e.do(f"{cell_text(e, op.args[0], op.args[1:-1])} = {value};")
