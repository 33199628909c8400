"""Conditions: truth values, and `and`, `or` and `… if … else …` with short-circuit evaluation."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from tinote.compiler.frontend.conversions import truth_of
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions.arithmetic import apply
from tinote.compiler.frontend.expressions.constructors import truths
from tinote.compiler.frontend.expressions.speculation import safe_to_speculate
from tinote.compiler.frontend.expressions.structs import as_struct, leaves_of, matched, rebuilt
from tinote.compiler.frontend.values import StructValue, Value
from tinote.ir import primitives as p
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, If, Lit, Var, false, true
from tinote.ir.types import element_type, u1, with_element

#: Length of a chain of `… if … else … if … else …`, or of `elif`s, from which on its regions are nested
#: logarithmically. Chosen, not measured.
MAX_NESTED_CHAIN = 16


def evaluate_condition(e: Emitter, node: ast.expr) -> bool | Value:
    """The truth value of an expression; the operands of its `and` and `or` are evaluated only for their truth."""
    if not isinstance(node, ast.BoolOp):
        return truth_of(e, e.evaluate(node))
    with e.at(node):
        return truth_of(e, evaluate_truths(e, node))


def evaluate_truths(e: Emitter, node: ast.expr) -> Any:
    """The truth value of an expression; for a vector or matrix, of each component."""
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
    return truths(e, front) if e.is_value(front) and e.shape(front) else truth_of(e, front)


def _componentwise(e: Emitter, left: Any, right: Any, conjunction: bool) -> Any:
    """`left and right` or `left or right` of truth values; at least one is a vector or matrix."""
    return apply(e, p.and_ if conjunction else p.or_, left, right)


def short_circuit(e: Emitter, left: Value, right: Callable[[], Any], conjunction: bool) -> Value:
    """`left and right` or `left or right` as truth values, with short-circuit evaluation; for each component if one is
    a vector or matrix.
    """
    with e.region() as opened:
        decided = e.as_value(right())
    return _joined_truths(e, left, opened, decided, conjunction)


def conjoined(e: Emitter, left: Value, right: Callable[[], tuple[bool | Value, Any]]) -> tuple[Value, Any]:
    """`left and right` as truth values, and the result of evaluating `right` besides its truth: a number, which is zero
    where it was not evaluated, or a compile-time value.
    """
    with e.region() as opened:
        truth, other = right()
        decided = e.as_value(truth)
    if not isinstance(other, Value) or safe_to_speculate(e, opened.body):
        return _joined_truths(e, left, opened, decided, True), other
    never = Value(Lit(False, u1)), _nothing(e, other)
    found, other = _chosen(e, left, opened, OpenRegion(()), list(zip((decided, other), never, strict=True)))
    return found, other


def _nothing(e: Emitter, value: Value) -> Value:
    """Zero, of the type of a value."""
    zero = Value(Lit(0, element_type(value.type)))
    return e.pack([zero] * prod(value.shape), value.shape) if value.shape else zero


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
    """`and` and `or` as in Python: the operand that decides; later ones are not evaluated. For vectors and matrices,
    the truth values of the components.
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
    chosen: ast.expr = node
    while isinstance(chosen, ast.IfExp):
        if len(_alternatives(chosen)) > MAX_NESTED_CHAIN:
            break
        with e.at(chosen.test):
            condition = evaluate_condition(e, chosen.test)
        if not isinstance(condition, bool):
            with e.region() as then:
                yes = _side(e, chosen.body)
            with e.region() as orelse:
                no = _side(e, chosen.orelse)
            return _one_of(e, condition, then, yes, orelse, no)[0]
        chosen = chosen.body if condition else chosen.orelse
    else:
        return e.evaluate(chosen)
    return _first_of(e, _alternatives(chosen))[1]


def _alternatives(node: ast.IfExp) -> list[tuple[ast.expr | None, ast.expr]]:
    """The conditions of a chain of conditional expressions with their values; the last has none."""
    found: list[tuple[ast.expr | None, ast.expr]] = []
    last: ast.expr = node
    while isinstance(last, ast.IfExp):
        found.append((last.test, last.body))
        last = last.orelse
    return [*found, (None, last)]


def _first_of(e: Emitter, alternatives: list[tuple[ast.expr | None, ast.expr]]) -> tuple[bool | Value, Any]:
    """Whether one of the conditions holds, and the value of the first that does; zero where none does. The second half
    is evaluated where the first has none: the regions are as deep as the logarithm of the chain's length.
    """
    if len(alternatives) > MAX_NESTED_CHAIN:
        half = len(alternatives) // 2
        found, yes = _first_of(e, alternatives[:half])
        if isinstance(found, bool):
            return (found, yes) if found else _first_of(e, alternatives[half:])
        return _else(e, found, OpenRegion(()), yes, alternatives[half:])
    (test, body), *others = alternatives
    if test is None:
        return True, _side(e, body)
    with e.at(test):
        condition = evaluate_condition(e, test)
    if condition is True:
        return True, _side(e, body)
    if condition is False:
        return _first_of(e, others) if others else (False, None)
    with e.region() as then:
        yes = _side(e, body)
    return _else(e, condition, then, yes, others)


def _else(
    e: Emitter, found: Value, then: OpenRegion, yes: Any, others: list[tuple[ast.expr | None, ast.expr]]
) -> tuple[bool | Value, Any]:
    """The value of `then` where `found` is true, and elsewhere the first of the others."""
    with e.region() as orelse:
        other, no = _first_of(e, others) if others else (False, None)
    if other is False:
        zeros = map(partial(_nothing, e), leaves_of(yes) if isinstance(yes, StructValue) else [yes])
        no = rebuilt(yes, zeros) if isinstance(yes, StructValue) else next(zeros)
    if isinstance(other, bool):
        return other or found, _one_of(e, found, then, yes, orelse, no)[0]
    value, truth = _one_of(e, found, then, yes, orelse, no, [other])
    return truth, value


def _one_of(
    e: Emitter, condition: Value, then: OpenRegion, yes: Any, orelse: OpenRegion, no: Any, truths: Sequence[Value] = ()
) -> list[Any]:
    """The value of a conditional whose sides the two regions compute, and the truth values computed by the second,
    which are true on the first.
    """
    others = [(Value(true), truth) for truth in truths]
    if isinstance(yes, StructValue) and isinstance(no, StructValue):
        pairs = matched(e, yes, no)
        found = _chosen(e, condition, then, orelse, [*pairs, *others])
        return [rebuilt(yes, iter(found[: len(pairs)])), *found[len(pairs) :]]
    if isinstance(yes, StructValue) or isinstance(no, StructValue):
        e.error(f"the two sides of this conditional differ: {describe(yes)} and {describe(no)}")
    return _chosen(e, condition, then, orelse, [(yes, no), *others])


def _side(e: Emitter, node: ast.expr) -> Value | StructValue:
    """One side of a conditional, with its loads."""
    front = e.evaluate(node)
    struct = as_struct(e, front)
    return e.as_value(front) if struct is None else rebuilt(struct, map(e.as_value, leaves_of(struct)))


def _chosen(
    e: Emitter, condition: Value, then: OpenRegion, orelse: OpenRegion, pairs: list[tuple[Value, Value]]
) -> list[Value]:
    """The first or second value of each pair, computed by the two regions."""
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
        dtype = e.literals.promoted([value.dtype for value in pair])
        outs.append(Var(with_element(pair[0].type, dtype)))
        for side, value in zip(yields, pair, strict=True):
            side.append(e.literals.fitting(value.atom, dtype) if isinstance(value.atom, Lit) else value.atom)
    e.b.emit(If(condition.atom, then.close(*yields[0]), orelse.close(*yields[1]), tuple(outs), e.b.loc))
    return [Value(out) for out in outs]


def _shaped(e: Emitter, opened: OpenRegion, value: Value, shape: tuple[int, ...]) -> Value:
    """A number that a region computes, as a vector or matrix where the other side is one."""
    if value.shape or not shape:
        return value
    with e.b.inside(opened):
        return e.pack([value] * prod(shape), shape)


EXPRESSIONS: Expressions = {ast.BoolOp: boolean, ast.IfExp: conditional}
