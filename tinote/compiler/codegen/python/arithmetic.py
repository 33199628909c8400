"""Arithmetic in generated Python: components, checked divisions, reported overflow."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tinote.compiler.codegen.python.cells import component
from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.order import Ordering
from tinote.compiler.codegen.python.primitives import applied, attribute, call
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.types import element_type, is_integer
from tinote.runtime.sites import Site, SiteKind


def prim(e: PythonEmitter, op: ir.Prim) -> None:
    prim, result = op.prim, op.out.type
    if prim in (p.surrogate, p.stop_gradient_once, p.in_reverse):
        (term,) = e.take(op.args[:1])
        e.give(op, term.code, [term], shared=term.shared)
        return
    terms = e.take(op.args)
    args = [t.code for t in terms]
    if prim is p.pack:
        e.give(op, ast.Tuple(args, ast.Load()), terms)
    elif prim is p.extract:
        position, safe = component(e, op, op.args[0], op.args[1:], args[1:])
        e.give(op, ast.Subscript(args[0], position, ast.Load()), terms, _checked(not safe))
    elif prim is p.insert:
        position, safe = component(e, op, op.args[0], op.args[1:-1], args[1:-1])
        e.give(op, call(attribute("replaced"), args[0], position, args[-1]), terms, _checked(not safe))
    elif prim in p.DIVISIONS and is_integer(result):
        checked = divisor(e, op, args)
        e.give(op, arithmetic(e, op, args), terms, _checked(checked or e.may_overflow(op)))
    else:
        e.give(op, arithmetic(e, op, args), terms, _checked(e.may_overflow(op)))


def arithmetic(e: PythonEmitter, op: ir.Prim, args: Sequence[ast.expr]) -> ast.expr:
    result = op.out.type
    if e.may_overflow(op):
        meaning = (ast.Constant(op.prim.name), attribute(element_type(result).name))
        return call(attribute("exact"), *meaning, *args, at=e.overflow(op))
    return applied(op.prim, result, [a.type for a in op.args], args)


def divisor(e: PythonEmitter, op: ir.Prim, args: list[ast.expr]) -> bool:
    """Check the divisor, in place, if it may be zero. Returns whether that was needed."""
    if e.surely_divides(op):
        return False
    sign = "//" if op.prim in (p.floordiv, p.raw_div) else "%"
    args[1] = call(attribute("nonzero"), args[1], at=e.site(Site(SiteKind.DIVISION, op.loc, sign)))
    return True


def _checked(may_fail: bool) -> Ordering:
    return Ordering.FAILS if may_fail else Ordering.NONE
