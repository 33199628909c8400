"""Undefined names: those used by code that has not run yet, and hints for what was probably meant."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Mapping
from types import CodeType, ModuleType
from typing import Any

from tinote.compiler.pysource.codes import codes_in, global_operations
from tinote.errors import closest
from tinote.source import Span

_PACKAGE = __name__.partition(".")[0]

#: The usual aliases of packages in notebooks.
_USUAL_ALIASES = {"ti": "tinote", "np": "numpy", "plt": "matplotlib.pyplot"}


def hint_for(name: str, namespace: Mapping[str, Any], others: Iterable[str] = ()) -> str:
    """The hint for `name`, which is defined neither in the module's `namespace` nor among `others`, the other known
    names.
    """
    if name in _USUAL_ALIASES:
        return f"`import {_USUAL_ALIASES[name]} as {name}` is missing"
    attribute = _attribute(name, namespace)
    if attribute:
        return f"did you mean `{attribute}`?"
    if name in sys.modules or name in sys.stdlib_module_names:
        return f"`import {name}` is missing"
    known = {*others, *namespace, *dir(builtins)}
    close = closest(name, sorted(k for k in known if not k.startswith("_")), 0.7 if len(name) > 2 else 0.6)
    if close:
        return f"did you mean `{close}`?"
    return "names come from the kernel, the functions around it, and the module or notebook"


def _attribute(name: str, namespace: Mapping[str, Any]) -> str:
    """The spelling of this package's public name `name` with the module's imports, or "". If there are several, the
    shortest.
    """
    found: list[str] = []
    for alias, module in namespace.items():
        if not isinstance(module, ModuleType) or module.__name__.partition(".")[0] != _PACKAGE or alias.startswith("_"):
            continue
        inner = [(f"{alias}.{one}", getattr(module, one)) for one in getattr(module, "__all__", ())]
        for path, owner in [(alias, module), *[pair for pair in inner if isinstance(pair[1], ModuleType)]]:
            value = getattr(owner, name, None) if name in dir(owner) else None
            # A forgotten index is not meant to be an axis (`ti.i`).
            if isinstance(value, int | float | type | ModuleType) or callable(value) or hasattr(value, "kind"):
                found.append(f"{path}.{name}")
    return min(found, key=len, default="")


def undefined_names(code: CodeType, tree: ast.AST, namespace: Mapping[str, Any]) -> dict[str, Span]:
    """The global names that functions in `code`, compiled from `tree`, read and that neither `namespace` nor Python
    defines, each with its first place. Names that one of these functions declares global are left out.
    """
    found: dict[str, Span] = {}
    made: set[str] = set()
    own = {name for one in codes_in(code) for name in (*one.co_varnames, *one.co_cellvars)}
    for node in ast.walk(tree):
        # Annotations of a function's variables mean something in a kernel, and Python does not compile them.
        inner = ast.walk(node.annotation) if isinstance(node, ast.AnnAssign) else ()
        for name in inner:
            if isinstance(name, ast.Name) and name.id not in own:
                _note(found, name.id, code, (name.lineno, name.end_lineno, name.col_offset, name.end_col_offset))
    for operation in global_operations(code):
        if operation.opname == "STORE_GLOBAL":
            made.add(operation.argval)
        elif operation.opname == "LOAD_GLOBAL" and operation.positions is not None:
            _note(found, operation.argval, code, operation.positions)
    known = {*namespace, *dir(builtins), *made}
    return {name: span for name, span in sorted(found.items(), key=lambda pair: pair[1]) if name not in known}


def _note(found: dict[str, Span], name: str, code: CodeType, place: tuple[int | None, ...]) -> None:
    """Record the place of a name, if it is the first."""
    line, end_line, column, end_column = [number or 0 for number in place]
    span = Span(code.co_filename, line, column, end_line, end_column)
    found[name] = min(found.get(name, span), span)
