"""Built-ins that are written in the language itself, inlined at their calls.

Their operations and errors have the location of the call; names in them are not captures of the kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, parameters_of
from tinote.compiler.frontend.functions.statements import lower_body
from tinote.compiler.frontend.scopes import FunctionFrame, Results
from tinote.compiler.frontend.values import StaticTensor, is_number
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import PYTHON_FUNCTIONS


def _exact(e: Emitter, function: Callable[[float], float], x: Any) -> Any:
    """The result of Python's own function for a compile-time number, or for each component of a vector or matrix;
    `None` for other arguments, and where it has no result.
    """
    constant = x if is_number(x) else e.static_tensor(x)
    if constant is None:
        return None
    try:
        return constant.map(function) if isinstance(constant, StaticTensor) else function(constant)
    except (ValueError, OverflowError):
        return None


@cache
def composed_expansion(builtin: Any) -> Expansion:
    """The expansion of a call of a built-in with a source."""
    source: FunctionSource = builtin.__tinote_composed__()
    parameters = parameters_of(builtin.__wrapped__)
    same = next((function for function, known in PYTHON_FUNCTIONS.items() if known is builtin), None)
    assigned = analysis.assigned_names(analysis.assigning_nodes(source.tree.body), lambda call: ())
    last = source.tree.body[-1]
    #: the returned expression, if there is nothing else besides the docstring
    formula = last.value if len(source.tree.body) == 2 and isinstance(last, ast.Return) else None

    def expand(e: Emitter, args: list[Any], kwargs: dict[str, Any]) -> Any:
        given = parameters.matched(e, builtin.__tinote_name__, args, kwargs)
        exact = None if same is None else _exact(e, same, *given.values())
        if exact is not None:
            return exact
        frame = FunctionFrame(source, e.frame, e.b.loc, Results(e.here()), e.depth, builtin=True)
        frame.assigned = assigned
        saved = e.frame, e.scope
        e.frame, e.scope = frame, frame.scope
        try:
            for name, front in given.items():
                e.bind(name, e.as_value(front) if isinstance(front, tuple | list) and e.is_value(front) else front)
            return lower_body(e, frame) if formula is None else e.evaluate(formula)
        finally:
            e.frame, e.scope = saved

    return expand
