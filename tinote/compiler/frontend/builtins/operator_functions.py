"""Python's operators as functions (`operator.add`), which kernels call and pass to `functools.reduce` and similar
functions.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, simple
from tinote.compiler.frontend.scopes import FunctionFrame, Results
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.pysource.definitions import syntax_tree

#: The result of each function, for `a` and `b`.
_MEANINGS: dict[Callable[..., Any], str] = {
    operator.add: "a + b",
    operator.sub: "a - b",
    operator.mul: "a * b",
    operator.truediv: "a / b",
    operator.floordiv: "a // b",
    operator.mod: "a % b",
    operator.pow: "a ** b",
    operator.matmul: "a @ b",
    operator.and_: "a & b",
    operator.or_: "a | b",
    operator.xor: "a ^ b",
    operator.lshift: "a << b",
    operator.rshift: "a >> b",
    operator.concat: "a + b",
    operator.lt: "a < b",
    operator.le: "a <= b",
    operator.eq: "a == b",
    operator.ne: "a != b",
    operator.ge: "a >= b",
    operator.gt: "a > b",
    operator.is_: "a is b",
    operator.is_not: "a is not b",
    operator.contains: "b in a",
    operator.getitem: "a[b]",
    operator.neg: "-a",
    operator.pos: "+a",
    operator.inv: "~a",
    operator.invert: "~a",
    operator.not_: "not a",
    operator.truth: "not not a",
    operator.abs: "abs(a)",
}


@cache
def _expansion(function: Callable[..., Any]) -> Expansion:
    meaning = _MEANINGS[function]
    formula = syntax_tree(meaning, mode="eval").body
    parameters = sorted({n.id for n in ast.walk(formula) if isinstance(n, ast.Name)} & {"a", "b"})
    arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
    tree = ast.FunctionDef(function.__name__, arguments, [ast.Return(formula)], [], None)
    source = FunctionSource(function.__name__, tree, "", {"abs": abs}, {}, meaning, is_func=True)

    def expand(e: Emitter, *operands: Any) -> Any:
        saved = e.frame, e.scope
        e.frame = FunctionFrame(source, e.frame, e.b.loc, Results(e.here()), e.depth, builtin=True)
        e.scope = e.frame.scope
        try:
            for name, front in zip(parameters, operands, strict=True):
                e.bind(name, front)
            return e.evaluate(formula)
        finally:
            e.frame, e.scope = saved

    return simple(function.__name__, " ".join(parameters), expand)


def operator_function(function: Any) -> Expansion | None:
    """The meaning of a call of one of Python's operators as a function; None for any other object. Raises `TypeError`
    for unhashable objects.
    """
    return _expansion(function) if function in _MEANINGS else None
