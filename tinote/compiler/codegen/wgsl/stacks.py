"""Stacks of saved values: a local array, a piece of scratch memory or, without a bound, a list of pieces."""

from __future__ import annotations

from tinote.compiler.codegen.wgsl.checks import fail_unless
from tinote.compiler.codegen.wgsl.emitter import OpenStack, TaskEmitter
from tinote.compiler.codegen.wgsl.memory import NumberPlace, index_word, read_place, write_place
from tinote.compiler.codegen.wgsl.types import WIDE, type_name, words_of
from tinote.errors import CompilerBug
from tinote.ir.nodes import Lit, NewStack, Pop, Push
from tinote.ir.types import Scalar, element_type
from tinote.runtime.sites import Site, SiteKind

#: Values per chunk of a stack without a bound. Chosen, not measured.
_CHUNK_VALUES = 32
#: Words of all local stacks of one task, at most. Chosen, not measured.
_MAX_LOCAL_WORDS = 4096


def new_stack(e: TaskEmitter, op: NewStack) -> None:
    content = op.out.type.content  # type: ignore[union-attr]
    if not isinstance(content, Scalar):
        raise CompilerBug("WGSL", f"a stack of tensors: {op!r}")
    t, name = content, e.name_for("s")
    top, size = f"{name}_top", words_of(content)
    e.declare(f"var {top}: u32; var {name}_at: u32;")
    e.do(f"{top} = {0 if op.args else _CHUNK_VALUES}u; {name}_at = 0u;")
    capacity = op.args[0] if op.args else None
    most = max(int(capacity.value), 1) if isinstance(capacity, Lit) else None
    if most is not None and most <= e.m.features.indexed and e.local_words + most * size <= _MAX_LOCAL_WORDS:
        e.local_words += most * size
        e.declare(f"var {name}: array<{type_name(t)}, {most}>;")
        e.stacks[op.out] = OpenStack(t, top, lambda: [f"{name}[{top}]"], False)
        return
    skip = 0 if capacity is not None else 2
    if capacity is not None:
        asked = index_word(e, capacity)
        many = f"{e.use(capacity)}.y != 0u || " if type_name(element_type(capacity.type)) == WIDE else ""
        room = e.value(f"arrayLength(&scratch) / stride / {size}u")
        need = e.value(f"max({asked}, 1u)")
        fail_unless(e, f"!({many}{need} > {room})", Site(SiteKind.MEMORY, op.loc), [])
        e.do(f"{name}_at = sp; sp += {size}u * {need};")
        fail_unless(e, "sp <= arrayLength(&scratch) / stride", Site(SiteKind.MEMORY, op.loc), [])

    def slot() -> list[str]:
        places = [f"{name}_at + {top} * {size}u + {skip + w}u" for w in range(size)]
        return [f"scratch[({place}) * stride + me]" for place in places]

    e.stacks[op.out] = OpenStack(t, top, slot, True, "" if capacity is not None else f"{name}_at")


def push(e: TaskEmitter, op: Push) -> None:
    stack, value = e.stacks[op.args[0]], e.use(op.args[1])  # type: ignore[index]
    if at := stack.chain:
        with e.nested(f"if ({stack.top} == {_CHUNK_VALUES}u) {{"):
            e.do(f"var next = 0u; if ({at} != 0u) {{ next = scratch[({at} + 1u) * stride + me]; }}")
            with e.nested("if (next == 0u) {"):
                e.do(f"next = sp; sp += {2 + _CHUNK_VALUES * words_of(stack.t)}u;")
                fail_unless(e, "sp <= arrayLength(&scratch) / stride", Site(SiteKind.MEMORY, op.loc), [])
                e.do(f"scratch[next * stride + me] = {at}; scratch[(next + 1u) * stride + me] = 0u;")
                e.do(f"if ({at} != 0u) {{ scratch[({at} + 1u) * stride + me] = next; }}")
            e.do(f"{at} = next; {stack.top} = 0u;")
    if stack.raw:
        write_place(e, stack.t, NumberPlace(stack.slot(), False), value)
    else:
        e.do(f"{stack.slot()[0]} = {value};")
    e.do(f"{stack.top} += 1u;")


def pop(e: TaskEmitter, op: Pop) -> None:
    stack = e.stacks[op.args[0]]  # type: ignore[index]
    if at := stack.chain:
        e.do(f"if ({stack.top} == 0u) {{ {at} = scratch[{at} * stride + me]; {stack.top} = {_CHUNK_VALUES}u; }}")
    e.do(f"{stack.top} -= 1u;")
    places = stack.slot()
    e.env[op.out] = read_place(e, stack.t, NumberPlace(places, False)) if stack.raw else e.value(places[0])
