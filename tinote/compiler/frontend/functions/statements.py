"""Bodies of functions, lists of statements, and the simple statements: expressions, `assert`, `pass`."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.emitter import Emitter, Silenced, Statements
from tinote.compiler.frontend.expressions.conditions import evaluate_condition
from tinote.compiler.frontend.expressions.formatting import assertion_text
from tinote.compiler.frontend.functions.jumps import flags_after, jumps_of, unless
from tinote.compiler.frontend.scopes import Completion, FunctionFrame, LoweredLoop
from tinote.compiler.frontend.values import POISON
from tinote.errors import Note, TinoteError
from tinote.ir.nodes import Check, FaultKind, true


def lower_statements(e: Emitter, body: list[ast.stmt], tail: bool) -> Completion:
    """Lower statements; how control certainly ends. `tail`: nothing of the loop's iteration (or the function) follows
    them.
    """
    for position, statement in enumerate(body):
        rest = body[position + 1 :]
        completion = _guarded(e, statement, rest, tail)
        if completion is not None:
            return completion
        if rest and isinstance(statement, _MAY_JUMP):
            flags = flags_after(e, jumps_of(e, [statement]))
            if flags:
                unless(e, flags, lambda r=rest: lower_statements(e, r, tail))
                return Completion.FALLS_THROUGH
    return Completion.FALLS_THROUGH


#: Statements that can contain a jump: a `yield` has the jumps of the loop over the generator.
_MAY_JUMP = (ast.If, ast.For, ast.While, ast.Expr)


def lower_iteration(e: Emitter, loop: LoweredLoop, body: list[ast.stmt]) -> Completion:
    """Lower the body of a loop once. Its `continue` flag, if it needs one, is declared at the point reached now."""
    loop.start = e.here()
    loop.continued = None
    e.frame.loops.append(loop)
    try:
        return lower_statements(e, body, True)
    finally:
        e.frame.loops.pop()


def _guarded(e: Emitter, statement: ast.stmt, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower one statement, with `rest` after it; `None`: its caller goes on with that. An error is recorded, and the
    names that the statement should have assigned cause no further errors.
    """
    saved, e.b.loc = e.b.loc, e.span(statement)
    outer, e.statement = e.statement, (e.here(), e.depth)
    try:
        return _lower_statement(e, statement, rest, tail)
    except TinoteError as error:
        e.report(e.placed_here(error))
    except Silenced:
        pass
    finally:
        e.b.loc, e.statement = saved, outer
    for name in analysis.assigned_names(analysis.assigning_nodes([statement]), lambda call: ()):
        if e.scope.find(name) is None:
            e.bind(name, POISON)
    return None


def _lower_statement(e: Emitter, node: ast.stmt, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower a statement with `rest` after it; `None`: control goes on with that."""
    control = e.handlers.control.get(type(node.value if isinstance(node, ast.Expr) else node))
    if control is not None:
        return control(e, node, rest, tail)
    handler = e.handlers.statements.get(type(node))
    if handler is None:
        e.unsupported(f"this statement ({type(node).__name__})")
    handler(e, node)
    return None


def expression(e: Emitter, node: ast.Expr) -> None:
    value = node.value
    if isinstance(value, ast.Constant):
        return  # a docstring or an ellipsis
    e.wanted = not isinstance(value, ast.Call)
    try:
        e.reference(value) if isinstance(value, ast.Call) else e.evaluate(value)
    finally:
        e.wanted = True


def assertion(e: Emitter, node: ast.Assert) -> None:
    with e.at(node.test):
        condition = e.as_value(evaluate_condition(e, node.test))
    if condition.atom == true:
        return
    message = f"assertion failed: {ast.unparse(node.test)}" if node.msg is None else e.evaluate(node.msg)
    text, shown = assertion_text(e, message)
    e.b.emit(Check(FaultKind.ASSERT, (condition.atom, *shown), text, 0, e.span(node.test)))


def pass_(e: Emitter, node: ast.Pass) -> None:
    pass


def lower_body(e: Emitter, frame: FunctionFrame) -> Any:
    """Lower the body of the function of `frame`, which is current and has its parameters bound; its result."""
    results = frame.results
    before = e.failures
    completion = lower_statements(e, frame.source.tree.body, True)
    if e.failures > before and frame.parent is not None:
        return POISON
    if results.cells is None:
        return results.direct
    if completion is Completion.FALLS_THROUGH and not analysis.ends_in_jump(frame.source.tree.body):
        e.error(
            f"`{frame.source.name}` does not return a value on every path",
            "add a `return` at its end",
            frame.source.tree if frame.parent is None else None,
            notes=[Note("it returns a value here", results.span or e.b.loc)],
        )
    return e.force(results.cells)


STATEMENTS: Statements = {
    ast.Expr: expression,
    ast.Assert: assertion,
    ast.Pass: pass_,
}
