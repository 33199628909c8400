"""Memory operations: elements of fields and arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tinote.compiler.codegen.python.checks import checked_index
from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.order import Ordering, PendingTerm
from tinote.compiler.codegen.python.primitives import attribute, call, method
from tinote.compiler.codegen.python.support import python_name
from tinote.ir import nodes as ir
from tinote.ir.buffers import root_of


def index_of(e: PythonEmitter, op: ir.Load | ir.Store | ir.Atomic, codes: Sequence[ast.expr]) -> ast.expr:
    """The subscript of an access."""
    buffer = op.buffer
    access = e.accesses.of(op)
    found: list[ast.expr] = []
    for axis, code in enumerate(codes):
        if e.accesses.in_range(access, axis) != (True, True):
            extent: int | ast.expr | None = (*buffer.shape, *buffer.element)[axis]
            if extent is None:
                extent = extent_of(e, buffer, axis)
            first = buffer.offset[axis] if axis < len(buffer.offset) else 0
            code = checked_index(e, code, buffer.name, axis, extent, op.loc, first)
        found.append(code)
    if not found:
        return ast.Constant(None)
    return found[0] if len(found) == 1 else ast.Tuple(found, ast.Load())


def extent_of(e: PythonEmitter, buffer: ir.Buffer, axis: int) -> ast.expr:
    shape = ast.Attribute(e.references[buffer], "shape", ast.Load())
    return ast.Subscript(shape, ast.Constant(axis), ast.Load())


def load(e: PythonEmitter, op: ir.Load) -> None:
    terms = e.take(op.index)
    index = index_of(e, op, [t.code for t in terms])
    safe = e.accesses.surely_in_range(e.accesses.of(op))
    code = ast.Subscript(e.references[op.buffer], index, ast.Load())
    e.give(op, code, terms, Ordering.READS if safe else Ordering.FAILS)


def store(e: PythonEmitter, op: ir.Store) -> None:
    value, *index = [t.code for t in e.take((op.value, *op.index))]
    target = ast.Subscript(e.references[op.buffer], index_of(e, op, index), ast.Store())
    e.settle()
    e.emit(ast.Assign([target], value))


def atomic(e: PythonEmitter, op: ir.Atomic) -> None:
    *index, value = [t.code for t in e.take(op.args)]
    array = e.references[op.buffer]
    if e.may_overflow(op):
        operands = (array, ast.Constant(op.prim.name), index_of(e, op, index), value)
        code = call(attribute("exactly"), *operands, at=e.overflow(op))
    else:
        code = method(array, python_name(op.prim), index_of(e, op, index), value)
    if op.outs and e.uses.count[op.out]:
        e.settle()
        e.bind(op, PendingTerm(code))
    else:
        e.do(code)


def extent(e: PythonEmitter, op: ir.Extent) -> None:
    e.give(op, extent_of(e, root_of(op.buffer), op.axis), [])
