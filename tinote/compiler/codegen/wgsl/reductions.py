"""Reductions of a parallel task: each workgroup sums up its invocations' totals and then updates the shared element
once.
"""

from __future__ import annotations

from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.memory import add_to
from tinote.compiler.codegen.wgsl.types import literal, type_name
from tinote.ir import primitives as p
from tinote.ir.nodes import Atomic, Lit
from tinote.runtime.layout import WORKGROUP
from tinote.source import Span

#: The parameters of every entry point.
BUILTINS = "@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>"


def reduction(e: TaskEmitter, ids: str, loc: Span) -> list[tuple[str, Span]]:
    """The entry point of a task with totals. The iterations are a function of their own, from which every invocation
    returns, even after a fault, so that all reach the barriers. A tree reduction combines a group's totals, and one
    invocation adds the result to the shared element.
    """
    e.env, e.head, e.lines, e.loc, e.indent = {}, [], [], loc, 1
    sums = [(total, op, f"{k * WORKGROUP}u + lane") for k, (total, op) in enumerate(e.sums.values())]
    for total, op, _ in sums:
        e.do(f"{total} = {_neutral(op)};")
    e.do(f"{e.name}_iterations(me, stride);")
    lanes = f"{e.name}_lanes"
    for total, op, at in sums:
        e.do(f"{lanes}[{at}] = {e.to_words(op.buffer.dtype, total)[0]};")
    e.do("workgroupBarrier();")
    with e.nested(f"for (var half = {WORKGROUP // 2}u; half > 0u; half >>= 1u) {{"):
        with e.nested("if (lane < half) {"):
            for _, op, at in sums:
                t, both = op.buffer.dtype, (op.value, op.value)
                halves = [e.value(e.from_words(t, [f"{lanes}[{k}]"])) for k in (at, f"{at} + half")]
                joined = e.value(e.prim_text(op.prim, t, both, halves))
                e.do(f"{lanes}[{at}] = {e.to_words(t, joined)[0]};")
        e.do("workgroupBarrier();")
    with e.nested("if (lane == 0u) {"):
        for _, op, at in sums:
            e.loc = op.loc
            word = e.value(f"{lanes}[{at}]")
            with e.nested(f"if ({_is_not_neutral(op, word)}) {{"):  # else there may be no such element
                add_to(e, op, e.value(e.from_words(op.buffer.dtype, [word])))
    private = [f"var<private> {total}: {type_name(op.buffer.dtype)};" for total, op, _ in sums]
    begin = [
        *private,
        f"var<workgroup> {lanes}: array<u32, {len(sums) * WORKGROUP}>;",
        f"@compute @workgroup_size({WORKGROUP})",
        f"fn {e.name}({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{",
        f"  {ids}",
    ]
    return [*[(line, loc) for line in begin], *e.head, *e.lines, ("}", loc)]


def _neutral(op: Atomic) -> str:
    """The neutral element of an update, for -0.0 as well."""
    t = op.buffer.dtype
    if op.prim is p.add and t.kind == "f":
        return "bitcast<f32>(0x80000000u)"
    return literal(Lit(p.neutral(op.prim, t), t))


def _is_not_neutral(op: Atomic, word: str) -> str:
    """Whether a word differs from the neutral element."""
    t = op.buffer.dtype
    if t.kind == "f":
        return f"{word} != 0x80000000u" if op.prim is p.add else f"({word} & 0x7fffffffu) <= 0x7f800000u"
    return f"{word} != {int(p.neutral(op.prim, t)) & 0xFFFFFFFF:#x}u"
