"""Functions inside of kernels: `def` and `lambda`. They are inlined at their calls and see the present values of the
variables around them, as in Python.
"""

from __future__ import annotations

import ast

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.builtins.table import BUILTINS
from tinote.compiler.frontend.emitter import Emitter, Expressions, Statements
from tinote.compiler.frontend.functions.callees import expansion_of, static_lookup
from tinote.compiler.frontend.scopes import LocalFunction
from tinote.compiler.frontend.syntax.assignments import assign
from tinote.compiler.function_source import FunctionSource

_REAL = BUILTINS["real_func"]
_DECORATORS = [BUILTINS["func"], _REAL, BUILTINS["pyfunc"]]


def lambda_(e: Emitter, node: ast.Lambda) -> LocalFunction:
    for inner in ast.walk(node.body):
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            e.unsupported("a generator", "return a list", inner)
    result = ast.copy_location(ast.Return(node.body), node.body)
    tree = ast.copy_location(ast.FunctionDef("<lambda>", node.args, [result], [], None), node)
    return _function(e, tree, is_plain=True)


def definition(e: Emitter, node: ast.FunctionDef) -> None:
    decorators = [expansion_of(static_lookup(e, decorator)) for decorator in node.decorator_list]
    for decorator, found in zip(node.decorator_list, decorators, strict=True):
        if found not in _DECORATORS:
            e.unsupported("a decorator of a function inside of it", "define the function outside", decorator)
    function = _function(e, node, is_plain=not decorators, may_recurse=_REAL in decorators)
    assign(e, ast.copy_location(ast.Name(node.name, ast.Store()), node), function)


def nonlocal_(e: Emitter, node: ast.Nonlocal) -> None:
    """`nonlocal` names variables of the kernel around a function."""
    if any(e.scope.find(name) is None for name in node.names):
        e.unsupported("`nonlocal` of what lives outside of it", "kernels can only modify fields and local variables")


def _function(e: Emitter, tree: ast.FunctionDef, is_plain: bool, may_recurse: bool = False) -> LocalFunction:
    """A function defined here; its default arguments are evaluated here."""
    around, written = e.frame.source, tree.args
    positional = [*written.posonlyargs, *written.args]
    names = [q.arg for q in positional[len(positional) - len(written.defaults) :]]
    pairs = [*zip(names, written.defaults, strict=True)]
    pairs += [(q.arg, d) for q, d in zip(written.kwonlyargs, written.kw_defaults, strict=True) if d is not None]
    defaults = {name: e.evaluate(default) for name, default in pairs}
    source = FunctionSource(
        tree.name, tree, around.file, around.globals, around.closure, "", True, defaults, is_plain=is_plain
    )
    source.may_recurse = may_recurse
    e.sources[id(source)] = source
    return LocalFunction(source, e.scope, analysis.local_names(tree))


EXPRESSIONS: Expressions = {ast.Lambda: lambda_}
STATEMENTS: Statements = {ast.FunctionDef: definition, ast.Nonlocal: nonlocal_}
