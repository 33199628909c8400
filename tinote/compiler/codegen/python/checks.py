"""Checks and prints: reports by the number of a site."""

from __future__ import annotations

import ast

from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.primitives import attribute, call
from tinote.compiler.codegen.sites import bounds_site, fault_site, first_index, print_site, shown_by
from tinote.ir import nodes as ir
from tinote.source import Span


def checked_index(
    e: PythonEmitter, code: ast.expr, name: str, axis: int, extent: int | ast.expr, loc: Span, first: int = 0
) -> ast.expr:
    """An index into `name`, checked if needed."""
    known = extent if isinstance(extent, int) else None
    at = e.site(bounds_site(e.buffers, name, axis, known, loc, first))
    limit = ast.Constant(extent) if isinstance(extent, int) else extent
    return call(attribute("inside"), code, limit, at=at)


def check(e: PythonEmitter, op: ir.Check) -> None:
    terms = e.take(op.args)
    if op.kind is ir.FaultKind.BOUNDS:
        extent = op.args[2]
        known = int(extent.value) if isinstance(extent, ir.Lit) else terms[2].code
        e.do(checked_index(e, terms[1].code, op.text, op.axis, known, op.loc, first_index(op)))
        return
    shown = [t.code for t in terms[1 : 1 + len(shown_by(op))]]
    at = ast.Constant(e.site(fault_site(op)))
    if op.args[0] == ir.false:
        e.do(call(attribute("fail"), at, *shown))
    else:
        e.do(call(attribute("check"), terms[0].code, at, *shown))


def print_(e: PythonEmitter, op: ir.Print) -> None:
    shown = [t.code for t in e.take(op.args)]
    e.do(call(attribute("print"), ast.Constant(e.site(print_site(op))), *shown))
