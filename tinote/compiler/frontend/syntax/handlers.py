"""The dispatch tables of the front end: the handler of each class of Python's syntax nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NoReturn

from tinote.compiler.frontend.calls import dispatch as calls
from tinote.compiler.frontend.emitter import Emitter, Handlers
from tinote.compiler.frontend.expressions import attributes, comprehensions, conditions, formatting, literals, operators
from tinote.compiler.frontend.functions import generators, jumps, statements
from tinote.compiler.frontend.python import names
from tinote.compiler.frontend.syntax import assignments, branches, local_functions, loops, subscripts


def _refuse(what: str, hint: str = "") -> Callable[[Emitter, Any], NoReturn]:
    """The handler of syntax that the kernel language does not have."""

    def handler(e: Emitter, node: Any) -> NoReturn:
        e.unsupported(what, hint)

    return handler


_REFUSED_EXPRESSIONS = {
    ast.Starred: _refuse("a starred expression here", "stars stand in calls and lists"),
    ast.Slice: _refuse("a slice here"),
    ast.Await: _refuse("`await`"),
    ast.Yield: _refuse("the value of `yield`", "nothing is sent to a generator"),
    ast.YieldFrom: _refuse("the value of `yield from`", "nothing is sent to a generator"),
}
_REFUSED_STATEMENTS = {
    ast.With: _refuse("`with`", "use it around the call of the kernel"),
    ast.AsyncWith: _refuse("`async with`"),
    ast.AsyncFor: _refuse("`async for`"),
    ast.Try: _refuse("`try`", "kernels have no exceptions; faults stop the launch and are raised where it was called"),
    ast.Raise: _refuse("`raise`", "`assert condition, message` stops a launch"),
    ast.AsyncFunctionDef: _refuse("an async function"),
    ast.ClassDef: _refuse("a class inside a kernel", "define it outside"),
    ast.Import: _refuse("`import`", "import outside of the kernel"),
    ast.ImportFrom: _refuse("`import`", "import outside of the kernel"),
    ast.Global: _refuse("`global`", "kernels can only modify fields and local variables"),
    ast.Delete: _refuse("`del`", "variables end with their block"),
    ast.Match: _refuse("`match`", "use `if` and `elif`"),
}

HANDLERS = Handlers(
    expressions={
        **names.EXPRESSIONS,
        **literals.EXPRESSIONS,
        **operators.EXPRESSIONS,
        **conditions.EXPRESSIONS,
        **subscripts.EXPRESSIONS,
        **attributes.EXPRESSIONS,
        **calls.EXPRESSIONS,
        **local_functions.EXPRESSIONS,
        **comprehensions.EXPRESSIONS,
        **formatting.EXPRESSIONS,
        **assignments.EXPRESSIONS,
        **_REFUSED_EXPRESSIONS,
    },
    statements={
        **statements.STATEMENTS,
        **assignments.STATEMENTS,
        **loops.STATEMENTS,
        **local_functions.STATEMENTS,
        **_REFUSED_STATEMENTS,
    },
    control={**branches.CONTROL, **jumps.CONTROL, **loops.CONTROL, **generators.CONTROL},
)
