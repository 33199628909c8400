"""Operators: arithmetic, comparisons, membership and identity."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.conversions import ask_python, truth_of
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions.arithmetic import COMPARISONS, UNARY, apply, binary
from tinote.compiler.frontend.expressions.conditions import conjoined, evaluate_truths
from tinote.compiler.frontend.expressions.domains import static_items
from tinote.compiler.frontend.values import Value, is_number
from tinote.errors import TinoteError
from tinote.ir import primitives as p


def binary_operation(e: Emitter, node: ast.BinOp) -> Any:
    """A binary operation, without recursion along its right operand (`a ** b ** c`): the left operands are evaluated in
    order, and then the operations are applied from the inside out.
    """
    outer = e.b.loc
    waiting = [(node, e.evaluate(node.left))]
    try:
        while isinstance(node.right, ast.BinOp):
            node = node.right
            e.b.loc = e.span(node)
            waiting.append((node, e.evaluate(node.left)))
        found = e.evaluate(node.right)
        while len(waiting) > 1:
            inner, left = waiting.pop()
            e.b.loc = e.span(inner)
            found = e.force(binary(e, inner.op, left, found))
    except TinoteError as error:
        raise e.placed_here(error) from None
    finally:
        e.b.loc = outer
    node, left = waiting[0]
    return binary(e, node.op, left, found)


def unary(e: Emitter, node: ast.UnaryOp) -> Any:
    if isinstance(node.op, ast.Not):
        truth = evaluate_truths(e, node.operand)
        return not truth if isinstance(truth, bool) else apply(e, p.logical_not, truth)
    operand = e.evaluate(node.operand)
    if isinstance(node.op, ast.UAdd):
        return operand if is_number(operand) else e.as_value(operand)
    prim = UNARY[type(node.op)]
    if prim is p.invert and isinstance(operand, bool):
        return not operand
    return apply(e, prim, operand)


def comparison(e: Emitter, node: ast.Compare) -> Any:
    """A comparison, or a chain of comparisons; each is evaluated where those before it hold."""
    left = e.evaluate(node.left)
    if len(node.ops) == 1:
        return _compared(e, left, node.ops[0], e.evaluate(node.comparators[0]))
    holds: bool | Value = True
    for op, comparator in zip(node.ops, node.comparators, strict=True):

        def decide(left: Any = left, op: ast.cmpop = op, comparator: ast.expr = comparator) -> tuple[Any, Any]:
            right = e.evaluate(comparator)
            found = _compared(e, left, op, right)
            if e.shape(found) if e.is_value(found) else ():
                e.error("a chain of comparisons needs numbers", "compare the vectors one pair at a time")
            return truth_of(e, found), right

        holds, left = decide() if holds is True else conjoined(e, holds, decide)
        if holds is False:
            return False
    return holds


def _compared(e: Emitter, left: Any, op: ast.cmpop, right: Any) -> Any:
    if isinstance(op, ast.Is | ast.IsNot):
        # A run-time value is not `None`.
        if left is not None and right is not None and not (e.is_static(left) and e.is_static(right)):
            e.unsupported("`is` between values that exist at run time", "compare with `==`")
        return (left is right) if isinstance(op, ast.Is) else (left is not right)
    if isinstance(op, ast.In | ast.NotIn):
        return _member(e, left, op, right)
    prim = COMPARISONS[type(op)]
    sequences = isinstance(left, tuple | list) and isinstance(right, tuple | list)
    if e.is_value(left) and e.is_value(right) and not sequences:
        return apply(e, prim, left, right)
    if e.is_static(left) and e.is_static(right):
        if prim is p.eq or prim is p.ne:
            return truth_of(e, ask_python(e, operator.eq, left, right)) is (prim is p.eq)
        try:
            return ask_python(e, _ORDER[prim], left, right)
        except TypeError:
            e.error(f"{describe(left)} and {describe(right)} cannot be compared")
    for side in (left, right):
        e.as_value(side)
    e.error(f"{describe(left)} and {describe(right)} cannot be compared", "make vectors of them with `ti.Vector([…])`")


def _member(e: Emitter, left: Any, op: ast.cmpop, right: Any) -> Any:
    negated = isinstance(op, ast.NotIn)
    if e.is_static(left) and e.is_static(right):
        try:
            return ask_python(e, operator.contains, right, left) is not negated
        except TypeError:
            e.error(f"`in` has no meaning with {describe(right)}")
    found: Any = False
    # As in NumPy, a matrix is searched by its numbers.
    numbers = not isinstance(right, tuple | list) and e.is_value(right) and e.shape(right)
    for item in e.components(right) if numbers else static_items(e, right):
        same = apply(e, p.eq, left, item)
        found = same if found is False else apply(e, p.or_, found, same)
    return apply(e, p.logical_not, found) if negated else found


_ORDER: dict[Any, Callable[[Any, Any], Any]] = {
    p.lt: operator.lt,
    p.le: operator.le,
    p.gt: operator.gt,
    p.ge: operator.ge,
}

EXPRESSIONS: Expressions = {
    ast.BinOp: binary_operation,
    ast.UnaryOp: unary,
    ast.Compare: comparison,
}
