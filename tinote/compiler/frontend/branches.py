"""`if`: one branch where the condition is known at compile time, two regions otherwise."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.callees import is_static_call
from tinote.compiler.frontend.conditions import evaluate_condition
from tinote.compiler.frontend.emitter import Control, Emitter
from tinote.compiler.frontend.scopes import Completion
from tinote.compiler.frontend.statements import lower_statements

__all__ = ["CONTROL"]


def if_(e: Emitter, node: ast.If, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower an `if` and, where a branch ends in a jump, what follows in the other branch. `None`: the caller goes
    on with `rest`.
    """
    with e.at(node.test):
        condition = evaluate_condition(e, node.test)
    if isinstance(condition, bool):
        chosen = node.body if condition else node.orelse
        if is_static_call(e, node.test):
            return lower_statements(e, [*chosen, *rest], tail)
        with e.block("`if`", node):
            completion = lower_statements(e, chosen, tail and not rest)
        return completion or None
    then_ends, else_ends = analysis.ends_in_jump(node.body), analysis.ends_in_jump(node.orelse)
    into_else = bool(rest) and then_ends and not analysis.Jumps(node.orelse)
    into_then = bool(rest) and else_ends and not then_ends and not analysis.Jumps(node.body)
    inner_tail = tail and (not rest or into_else or into_then or (then_ends and else_ends))

    def branch(body: list[ast.stmt], continues: bool, what: str) -> tuple[Any, Completion]:
        with e.region() as opened:
            with e.block(what, node):
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
        )  # what follows is never reached, and the branches relied on that
    if into_then or into_else:
        return min(first, second)
    return min(first, second) or None


CONTROL: Control = {ast.If: if_}
