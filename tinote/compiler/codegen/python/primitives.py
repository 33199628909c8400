"""Primitives and literals as Python expressions.

Arithmetic is written with Python's own operators and brought into its type, `rt.f32(a * b)`; everything else calls what
the table of primitives defines, `rt.f32.sin(a)`. Both mean the same as the interpreter's, to the last bit: Python
computes in f64 and in unbounded integers, and rounding such a sum, difference or product once is correct for the type.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from tinote.compiler.codegen.python.support import python_name
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, Tensor, Type, f64, u1

#: The parameter through which generated code reaches numbers, memory and the launch.
RUNTIME = "rt"

_ARITHMETIC: dict[Primitive, type[ast.operator]] = {p.add: ast.Add, p.sub: ast.Sub, p.mul: ast.Mult}
_BITS: dict[Primitive, type[ast.operator]] = {p.and_: ast.BitAnd, p.or_: ast.BitOr, p.xor: ast.BitXor}
_COMPARISONS: dict[Primitive, type[ast.cmpop]] = {
    p.lt: ast.Lt,
    p.le: ast.LtE,
    p.gt: ast.Gt,
    p.ge: ast.GtE,
    p.eq: ast.Eq,
    p.ne: ast.NotEq,
}


def read(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def write(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def attribute(*names: str) -> ast.expr:
    """`rt.a.b`."""
    found = read(RUNTIME)
    for name in names:
        found = ast.Attribute(found, name, ast.Load())
    return found


def call(function: ast.expr, *args: ast.expr, at: int | None = None) -> ast.expr:
    """A call; `at`: the number of the site for its faults."""
    return ast.Call(function, list(args), [] if at is None else [ast.keyword("at", ast.Constant(at))])


def method(owner: ast.expr, name: str, *args: ast.expr, at: int | None = None) -> ast.expr:
    return call(ast.Attribute(owner, name, ast.Load()), *args, at=at)


def constant(lit: Lit) -> ast.expr:
    if lit.type is u1:
        return ast.Constant(bool(lit.value))
    value = lit.value
    if isinstance(value, float) and not math.isfinite(value):
        if value != value:
            return attribute("nan")
        return attribute("inf") if value > 0 else ast.UnaryOp(ast.USub(), attribute("inf"))
    return ast.Constant(value)


def applied(prim: Primitive, result: Type, types: Sequence[Type], args: Sequence[ast.expr]) -> ast.expr:
    """An elementwise primitive (or random bits) on operands of these types."""
    if isinstance(result, Tensor):
        meaning = attribute(result.dtype.name)
        if prim is not p.cast:
            meaning = ast.Attribute(meaning, python_name(prim), ast.Load())
        return call(attribute("each"), meaning, *args)
    assert isinstance(result, Scalar)
    if prim in _ARITHMETIC:
        return _fitted(result, ast.BinOp(args[0], _ARITHMETIC[prim](), args[1]))
    if prim is p.neg:
        plain = ast.UnaryOp(ast.USub(), args[0])
        return plain if result.kind == "f" else _fitted(result, plain)
    if prim in _BITS:
        return ast.BinOp(args[0], _BITS[prim](), args[1])
    if prim in _COMPARISONS:
        return ast.Compare(args[0], [_COMPARISONS[prim]()], [args[1]])
    if prim is p.logical_not:
        return ast.UnaryOp(ast.Not(), args[0])
    if prim is p.select and all(isinstance(a, ast.Name | ast.Constant) for a in args):
        return ast.IfExp(args[0], args[1], args[2])
    if prim is p.cast:
        return call(attribute(result.name), *args)
    return method(attribute(result.name), python_name(prim), *args)


def _fitted(t: Scalar, value: ast.expr) -> ast.expr:
    return value if t is f64 else call(attribute(t.name), value)
