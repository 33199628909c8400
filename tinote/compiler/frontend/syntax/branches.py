"""`if`: one branch where the condition is known at compile time, two regions otherwise."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.emitter import Control, Emitter
from tinote.compiler.frontend.expressions.conditions import MAX_NESTED_CHAIN, evaluate_condition
from tinote.compiler.frontend.functions.callees import is_static_call
from tinote.compiler.frontend.functions.jumps import jumps_of
from tinote.compiler.frontend.functions.statements import lower_statements
from tinote.compiler.frontend.scopes import Completion
from tinote.compiler.frontend.values import Value
from tinote.ir.nodes import false, true
from tinote.ir.types import u1


def if_(e: Emitter, node: ast.If, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower an `if` and, where a branch ends in a jump, the following statements in the other branch. `None`: the
    caller continues with `rest`.
    """
    chain = analysis.elifs(node)
    while True:
        with e.at(node.test):
            condition = evaluate_condition(e, node.test)
        if not isinstance(condition, bool):
            break
        chosen = node.body if condition else node.orelse
        if not condition and len(chain) > MAX_NESTED_CHAIN:
            node, *_ = chain = chain[1:]  # continues with the `elif`, as below, without nesting
            continue
        if is_static_call(e, node.test):
            return lower_statements(e, [*chosen, *rest], tail)
        with e.block("`if`"):
            completion = lower_statements(e, chosen, tail and not rest)
        return completion or None
    if len(chain) > MAX_NESTED_CHAIN:
        return _long_chain(e, chain, condition, tail and not rest)
    then_ends, else_ends = analysis.ends_in_jump(node.body), analysis.ends_in_jump(node.orelse)
    into_else = bool(rest) and then_ends and not jumps_of(e, node.orelse)
    into_then = bool(rest) and else_ends and not then_ends and not jumps_of(e, node.body)
    inner_tail = tail and (not rest or into_else or into_then or (then_ends and else_ends))

    def branch(body: list[ast.stmt], continues: bool, what: str) -> tuple[Any, Completion]:
        with e.region() as opened:
            with e.block(what):
                completion = lower_statements(e, body, inner_tail and not continues)
            if continues:
                completion = lower_statements(e, rest, tail)
        return opened.close(), completion

    then, first = branch(node.body, into_then, "`if`")
    orelse, second = branch(node.orelse, into_else, "`else`")
    e.b.if_(condition.atom, then, orelse)
    if then_ends and else_ends:
        return max(
            min(first, second), Completion.CONTINUES
        )  # The following statements are never reached, and the branches relied on that.
    if into_then or into_else:
        return min(first, second)
    return min(first, second) or None


def _long_chain(e: Emitter, chain: list[ast.If], condition: Value, tail: bool) -> Completion | None:
    """Lower a long chain of `elif`s; `condition`: the first one's. Where no condition of the first half holds,
    a flag says so, and the second half follows after it: the regions are as deep as the logarithm of their number.
    """
    bodies = analysis.branches(chain[0])
    completions: list[Completion] = []

    def body(statements: list[ast.stmt], what: str) -> None:
        with e.block(what):
            completions.append(lower_statements(e, statements, tail))

    def lower(arms: list[ast.If], condition: Value | None, otherwise: Callable[[], None]) -> None:
        """Lower some of the branches; `otherwise` is for where none of their conditions holds."""
        if len(arms) > MAX_NESTED_CHAIN:
            half = len(arms) // 2
            failed = e.cell(u1, false)
            lower(arms[:half], condition, lambda: e.b.set(failed, true))
            with e.region() as opened:
                lower(arms[half:], None, otherwise)
            e.b.if_(e.b.get(failed), opened.close())
            return
        if not arms:
            otherwise()
            return
        arm, *others = arms
        known: bool | Value
        with e.at(arm.test):
            known = evaluate_condition(e, arm.test) if condition is None else condition
        if isinstance(known, bool):
            body(arm.body, "`if`") if known else lower(others, None, otherwise)
            return
        with e.region() as then:
            body(arm.body, "`if`")
        with e.region() as orelse:
            lower(others, None, otherwise)
        e.b.if_(known.atom, then.close(), orelse.close())

    lower(chain, condition, lambda: body(bodies[-1], "`else`"))
    completion = min(completions)
    if all(map(analysis.ends_in_jump, bodies)):
        return max(completion, Completion.CONTINUES)
    return completion or None


CONTROL: Control = {ast.If: if_}
