"""Conditions: what counts as true, and `and`, `or` and `… if … else …`, whose operands run only where they decide."""

from __future__ import annotations

import ast
from collections.abc import Callable
from math import prod
from typing import Any

from tinote.compiler.frontend.arithmetic import apply
from tinote.compiler.frontend.constructors import truths
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.speculation import safe_to_speculate
from tinote.compiler.frontend.structs import as_struct, leaves_of, matched, rebuilt
from tinote.compiler.frontend.values import StructValue, Value
from tinote.ir import primitives as p
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, If, Lit, Var, false, true
from tinote.ir.types import u1, with_element

__all__ = ["EXPRESSIONS", "evaluate_condition", "evaluate_truths", "short_circuit"]


def evaluate_condition(e: Emitter, node: ast.expr) -> bool | Value:
    """Whether an expression counts as true; of the operands of its `and` and `or` that is all that is asked."""
    if not isinstance(node, ast.BoolOp):
        return e.truth(e.evaluate(node))
    with e.at(node):
        return e.truth(evaluate_truths(e, node))


def evaluate_truths(e: Emitter, node: ast.expr) -> Any:
    """The same; of a vector or matrix, of each component."""
    if not isinstance(node, ast.BoolOp):
        return _truths(e, e.evaluate(node))
    conjunction = isinstance(node.op, ast.And)
    with e.at(node):
        found = evaluate_truths(e, node.values[0])
        for operand in node.values[1:]:
            if isinstance(found, bool):
                found = evaluate_truths(e, operand) if found is conjunction else found
            elif e.shape(found):
                found = _componentwise(e, found, evaluate_truths(e, operand), conjunction)
            else:
                found = short_circuit(e, found, lambda o=operand: evaluate_truths(e, o), conjunction)
        return found


def _truths(e: Emitter, front: Any) -> Any:
    return truths(e, front) if e.is_value(front) and e.shape(front) else e.truth(front)


def _componentwise(e: Emitter, left: Any, right: Any, conjunction: bool) -> Any:
    """`left and right` or `left or right` of truth values, of which at least one is a vector or matrix."""
    return apply(e, p.and_ if conjunction else p.or_, left, right)


def short_circuit(e: Emitter, left: Value, right: Callable[[], Any], conjunction: bool) -> Value:
    """`left and right` or `left or right` as truth values, where `right` is only evaluated when it decides; if that is
    a vector or matrix, for each component.
    """
    with e.region() as opened:
        decided = e.as_value(right())
    return _joined_truths(e, left, opened, decided, conjunction)


def _joined_truths(e: Emitter, left: Value, opened: OpenRegion, right: Value, conjunction: bool) -> Value:
    if safe_to_speculate(e, opened.body):
        e.splice(opened)
        return e.prim(p.and_ if conjunction else p.or_, left, right)
    if right.shape:
        settled = Value(Lit(not conjunction, u1))
        branches = (opened, OpenRegion(())) if conjunction else (OpenRegion(()), opened)
        return _chosen(e, left, *branches, [(right, settled) if conjunction else (settled, right)])[0]
    region = opened.close(right.atom)
    settled = OpenRegion(()).close(false if conjunction else true)
    then, orelse = (region, settled) if conjunction else (settled, region)
    (out,) = e.b.if_(left.atom, then, orelse)
    return Value(out)


def boolean(e: Emitter, node: ast.BoolOp) -> Any:
    """`and` and `or` as in Python: the operand that decides. Later ones are not evaluated. Of vectors and matrices,
    whether the components are true.
    """
    conjunction = isinstance(node.op, ast.And)
    left = e.evaluate(node.values[0])
    for operand in node.values[1:]:
        truth = _truths(e, left)
        if not isinstance(truth, bool) and e.shape(truth):
            left = _componentwise(e, truth, evaluate_truths(e, operand), conjunction)
            continue
        if isinstance(truth, bool):
            left = e.evaluate(operand) if truth is conjunction else left
            continue
        with e.region() as opened:
            right = e.as_value(e.evaluate(operand))
            if right.shape:
                right = e.as_value(truths(e, right))
        if right.shape:
            left = _joined_truths(e, truth, opened, right, conjunction)
            continue
        left = e.as_value(left)
        if left.dtype is u1 and right.dtype is u1:
            left = _joined_truths(e, left, opened, right, conjunction)
        elif conjunction:
            left = _chosen(e, truth, opened, OpenRegion(()), [(right, left)])[0]
        else:
            left = _chosen(e, truth, OpenRegion(()), opened, [(left, right)])[0]
    return left


def conditional(e: Emitter, node: ast.IfExp) -> Any:
    with e.at(node.test):
        condition = evaluate_condition(e, node.test)
    if isinstance(condition, bool):
        return e.evaluate(node.body if condition else node.orelse)
    with e.region() as then:
        yes = _side(e, node.body)
    with e.region() as orelse:
        no = _side(e, node.orelse)
    if isinstance(yes, StructValue) or isinstance(no, StructValue):
        if not (isinstance(yes, StructValue) and isinstance(no, StructValue)):
            e.error(f"the two sides of this conditional differ: {describe(yes)} and {describe(no)}")
        return rebuilt(yes, iter(_chosen(e, condition, then, orelse, matched(e, yes, no))))
    return _chosen(e, condition, then, orelse, [(yes, no)])[0]


def _side(e: Emitter, node: ast.expr) -> Value | StructValue:
    """One side of a conditional, with whatever it has to read."""
    front = e.evaluate(node)
    struct = as_struct(e, front)
    return e.as_value(front) if struct is None else rebuilt(struct, map(e.as_value, leaves_of(struct)))


def _chosen(
    e: Emitter, condition: Value, then: OpenRegion, orelse: OpenRegion, pairs: list[tuple[Value, Value]]
) -> list[Value]:
    """The first or second of each pair, which the two regions compute."""
    both_run = safe_to_speculate(e, then.body) and safe_to_speculate(e, orelse.body)
    for yes, no in pairs:
        if yes.shape != no.shape and yes.shape and no.shape:
            e.error(
                f"the two sides of this conditional differ: {describe(yes)} and {describe(no)}",
                "make both of the same shape",
            )
    if both_run:
        e.splice(then)
        e.splice(orelse)
        return [e.prim(p.select, condition, yes, no) for yes, no in pairs]
    pairs = [(_shaped(e, then, yes, no.shape), _shaped(e, orelse, no, yes.shape)) for yes, no in pairs]
    outs: list[Var] = []
    yields: tuple[list[Atom], list[Atom]] = ([], [])
    for pair in pairs:
        dtype = e.promoted([value.dtype for value in pair])
        outs.append(Var(with_element(pair[0].type, dtype)))
        for side, value in zip(yields, pair, strict=True):
            side.append(e.fitting(value.atom, dtype) if isinstance(value.atom, Lit) else value.atom)
    e.b.emit(If(condition.atom, then.close(*yields[0]), orelse.close(*yields[1]), tuple(outs), e.b.loc))
    return [Value(out) for out in outs]


def _shaped(e: Emitter, opened: OpenRegion, value: Value, shape: tuple[int, ...]) -> Value:
    """A number that a region computes, as a vector or matrix where the other side is one."""
    if value.shape or not shape:
        return value
    with e.b.inside(opened):
        return e.pack([value] * prod(shape), shape)


EXPRESSIONS: Expressions = {ast.BoolOp: boolean, ast.IfExp: conditional}
