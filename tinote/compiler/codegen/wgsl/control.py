"""Control flow: carried values and results of branches are `var`s; everything else is a `let`."""

from __future__ import annotations

from tinote.compiler.codegen.wgsl.checks import fail_unless
from tinote.compiler.codegen.wgsl.emitter import TaskEmitter
from tinote.compiler.codegen.wgsl.shader import LOOP_ENDED
from tinote.compiler.codegen.wgsl.types import literal, type_name
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, For, If, Lit, Var, While
from tinote.ir.types import element_type, u1
from tinote.runtime.sites import Site, SiteKind


def variables_for(e: TaskEmitter, variables: tuple[Var, ...], initial: tuple[Atom, ...] = ()) -> list[str]:
    """A `var` for each of these variables, with its initial value."""
    names = [e.name_for("c") for _ in variables]
    for k, (v, name) in enumerate(zip(variables, names, strict=True)):
        start = f" = {e.use(initial[k])}" if initial else ""
        e.do(f"var {name}: {type_name(element_type(v.type))}{start};")
    return names


def assign(e: TaskEmitter, cells: list[str], values: list[str]) -> None:
    for cell, value in zip(cells, values, strict=True):
        e.do(f"{cell} = {value};")


def bind(e: TaskEmitter, variables: tuple[Var, ...], cells: list[str]) -> None:
    for v, cell in zip(variables, cells, strict=True):
        e.env[v] = e.value(cell)


def for_(e: TaskEmitter, op: For) -> None:
    lo, hi = e.use(op.lo), e.use(op.hi)
    cells, i, t = variables_for(e, op.outs, op.initial), e.name_for("n"), element_type(op.index.type)
    low, high = (lo, i) if op.reverse else (i, hi)
    one = literal(Lit(1, t))
    less = e.prim_text(p.lt, u1, (op.index, op.index), [low, high])
    move = f"{i} = {e.prim_text(p.sub if op.reverse else p.add, t, (op.index, op.index), [i, one])};"
    e.do(f"var {i}: {type_name(t)} = {hi if op.reverse else lo};")
    with e.loop("loop {"):
        e.do(f"if (!{less}) {{ break; }}")
        if op.reverse:
            e.do(move)
        bind(e, op.body.params[: 1 + len(cells)], [i, *cells])
        assign(e, cells, e.region(op.body))
        if not op.reverse:
            e.do(move)
    fail_unless(e, f"!({less})", Site(SiteKind.ASSERT, op.loc, LOOP_ENDED), [])
    bind(e, op.outs, cells)


def while_(e: TaskEmitter, op: While) -> None:
    cells = variables_for(e, op.outs, op.initial)
    over = e.name_for("c")
    e.do(f"var {over} = 0u;")
    with e.loop("loop {"):
        bind(e, op.condition.params, cells)
        (condition,) = e.region(op.condition)
        e.do(f"{over} = u32({condition});")
        e.do(f"if (!{condition}) {{ break; }}")
        bind(e, op.body.params, cells)
        assign(e, cells, e.region(op.body))
    fail_unless(e, f"{over} == 0u", Site(SiteKind.ASSERT, op.loc, LOOP_ENDED), [])
    bind(e, op.outs, cells)


def if_(e: TaskEmitter, op: If) -> None:
    cells = variables_for(e, op.outs)
    with e.nested(f"if ({e.use(op.condition)}) {{"):
        assign(e, cells, e.region(op.then))
    if op.orelse.body or op.orelse.yields:
        with e.nested("else {"):
            assign(e, cells, e.region(op.orelse))
    bind(e, op.outs, cells)
