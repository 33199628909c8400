"""Local cells, and components of vectors and matrices, which are flat tuples or lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tinote.compiler.codegen.python.checks import checked_index
from tinote.compiler.codegen.python.emitter import PythonEmitter
from tinote.compiler.codegen.python.order import Ordering, PendingTerm
from tinote.compiler.codegen.python.primitives import constant, read, write
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.types import Ref, Tensor, element_type, shape_of


def component(
    e: PythonEmitter, op: ir.Op, tensor: ir.Atom, index: Sequence[ir.Atom], codes: Sequence[ast.expr]
) -> tuple[ast.expr, bool]:
    """The position of a component in the flat tuple, and whether it is certainly in range."""
    t = tensor.type.content if isinstance(tensor.type, Ref) else tensor.type
    name = tensor.name if isinstance(tensor, ir.Var) else ""
    if not name and isinstance(op, ir.Prim) and op.prim is p.insert:
        name = op.out.name
    position: ast.expr | None = None
    literal, safe = 0, True
    size = 1
    for axis in reversed(range(len(index))):
        atom, extent = index[axis], shape_of(t)[axis]
        if isinstance(atom, ir.Lit) and 0 <= atom.value < extent:
            literal += int(atom.value) * size
        else:
            code = codes[axis]
            if e.sides(op, atom, extent) != (True, True):
                safe = False
                code = checked_index(e, code, name or "local array", axis, extent, op.loc)
            part = code if size == 1 else ast.BinOp(code, ast.Mult(), ast.Constant(size))
            position = part if position is None else ast.BinOp(part, ast.Add(), position)
        size *= extent
    if position is None:
        return ast.Constant(literal), safe
    return (ast.BinOp(position, ast.Add(), ast.Constant(literal)) if literal else position), safe


def local(e: PythonEmitter, op: ir.Local) -> None:
    cell = op.out
    assert isinstance(cell.type, Ref)
    content = cell.type.content
    if op.args:
        (term,) = e.take(op.args)
        value = _as_list(term.code) if isinstance(content, Tensor) else term.code
    else:
        zero = constant(ir.Lit(0, element_type(content)))
        value = zero
        if isinstance(content, Tensor):
            value = ast.BinOp(ast.List([zero], ast.Load()), ast.Mult(), ast.Constant(content.count))
    e.settle()
    name = e.env[cell] = e.name(cell.name, e.uses.start[op], cell)
    e.emit(ast.Assign([write(name)], value))


def get(e: PythonEmitter, op: ir.Get) -> None:
    cell, *index = op.args
    assert isinstance(cell, ir.Var)
    terms = e.take(index)
    name = e.env[cell]
    code, ordering, shared = read(name), Ordering.READS, isinstance(op.out.type, Tensor)
    if index:
        position, safe = component(e, op, cell, index, [t.code for t in terms])
        code, ordering = ast.Subscript(code, position, ast.Load()), Ordering.READS if safe else Ordering.FAILS
    e.give(op, code, [*terms, PendingTerm(code, ordering, frozenset([name]))], ordering, shared)


def set_(e: PythonEmitter, op: ir.Set) -> None:
    cell, *index = op.args[:-1]
    assert isinstance(cell, ir.Var)
    value, *indices = [t.code for t in e.take((op.args[-1], *index))]
    name = e.env[cell]
    target = write(name)
    if index:
        target = ast.Subscript(read(name), component(e, op, cell, index, indices)[0], ast.Store())
    elif isinstance(op.args[-1].type, Tensor):
        value = _as_list(value)
    e.settle()
    e.emit(ast.Assign([target], value))


def _as_list(code: ast.expr) -> ast.expr:
    """A tuple of components as a list, which can be assigned one by one."""
    return ast.List(code.elts if isinstance(code, ast.Tuple) else [ast.Starred(code, ast.Load())], ast.Load())
