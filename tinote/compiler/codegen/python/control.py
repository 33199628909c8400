"""Loops and branches as Python statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.order import Ordering
from tinote.compiler.codegen.python.primitives import attribute, call, write
from tinote.ir import nodes as ir


def inner(e: PythonEmitter, region: ir.Region, names: Sequence[str]) -> list[ast.stmt]:
    """The statements of a region, with its yields assigned to these variables."""
    saved = e.enter()
    e.ops(region)
    terms = e.take(region.yields)
    e.settle()
    e.assign(names, terms)
    return e.leave(saved)


def carried(e: PythonEmitter, op: ir.For | ir.While, params: Sequence[ir.Var]) -> list[str]:
    """Names for the values that a loop carries, which hold its results at the end."""
    end = e.uses.end[op]
    found: list[str] = []
    for k, (out, param) in enumerate(zip(op.outs, params, strict=True)):
        same = [out, *([op.body.params[k]] if isinstance(op, ir.While) else [])]
        name = e.name(out.name or param.name, e.uses.start[op], *same, last=end)
        for v in (out, param, *same):
            e.env[v] = name
        found.append(name)
    return found


def for_(e: PythonEmitter, op: ir.For) -> None:
    lo, hi, *initial = e.take(op.args)
    e.settle(Ordering.NONE)
    if initial and (lo.ordering or hi.ordering):
        lo, hi = e.keep(lo), e.keep(hi)
    names = carried(e, op, op.carried)
    if not (lo.names | hi.names).isdisjoint(names):
        lo, hi = e.keep(lo), e.keep(hi)
    e.assign(names, initial)
    index = e.env[op.index] = e.name(op.index.name, e.uses.start[op], op.index, last=e.uses.end[op])
    iterations = call(attribute("iterations_back" if op.reverse else "iterations"), lo.code, hi.code)
    body = inner(e, op.body, names)
    e.emit(ast.For(write(index), iterations, body or [ast.Pass()], []))


def while_(e: PythonEmitter, op: ir.While) -> None:
    initial = e.take(op.args)
    e.settle(Ordering.NONE)
    names = carried(e, op, op.condition.params)
    e.assign(names, initial)
    saved = e.enter()
    e.ops(op.condition)
    (condition,) = e.take(op.condition.yields)
    e.settle()
    before = e.leave(saved)
    body = inner(e, op.body, names)
    test = call(attribute("goes_on"))
    if before:
        stop: ast.stmt = ast.If(ast.UnaryOp(ast.Not(), condition.code), [ast.Break()], [])
        body = [*before, stop, *body]
    else:
        test = ast.BoolOp(ast.And(), [test, condition.code])
    e.emit(ast.While(test, body or [ast.Pass()], []))


def if_(e: PythonEmitter, op: ir.If) -> None:
    (condition,) = e.take(op.args)
    e.settle(Ordering.NONE)
    names = [e.name(out.name, e.uses.end[op], out) for out in op.outs]
    e.env.update(zip(op.outs, names, strict=True))
    then, orelse = inner(e, op.then, names), inner(e, op.orelse, names)
    if then or not orelse:
        e.emit(ast.If(condition.code, then or [ast.Pass()], orelse))
    else:
        e.emit(ast.If(ast.UnaryOp(ast.Not(), condition.code), orelse, []))
