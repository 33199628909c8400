"""Static name resolution: the object that a name or an attribute in a function refers to. Lookup follows Python's
rules, but runs no user code; values that such code would compute are unknown.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from tinote.compiler.pysource.codes import is_filled
from tinote.compiler.pysource.origins import is_ours, is_standard

#: what is not there, or not known
MISSING: Any = object()


class CaptureKind(Enum):
    """How something outside of a function was found."""

    NAME = "name"  # owner: a namespace
    CELL = "cell"  # owner: a closure cell
    BUILTIN = "builtin"  # owner: a namespace that does not have the name, so that it is Python's own
    ATTRIBUTE = "attribute"  # owner: any object
    CONTENT = "content"  # owner: a list, dict, set or constant vector or matrix; the value is a copy of its content
    EVALUATION = "evaluation"  # owner: an `Evaluation`, made again at each launch


class Found(NamedTuple):
    """Where something outside of a function was found, and what: `MISSING` in a cell that has no value yet."""

    kind: CaptureKind
    owner: Any
    key: Any
    value: Any


def find_name(name: str, cells: Mapping[str, types.CellType], namespace: dict[str, Any]) -> Found | None:
    """What a name that is not a function's own stands for: a variable of the functions around it, a global, or one of
    Python's built-ins; None if nothing.
    """
    if name in cells:
        cell = cells[name]
        return Found(CaptureKind.CELL, cell, None, cell.cell_contents if is_filled(cell) else MISSING)
    if name in namespace:
        return Found(CaptureKind.NAME, namespace, name, namespace[name])
    if hasattr(builtins, name):
        return Found(CaptureKind.BUILTIN, namespace, name, getattr(builtins, name))
    return None


def find_again(kind: CaptureKind, owner: Any, key: Any) -> Any:
    """What stands now where something was found. Raises what the reading raises when it is gone."""
    match kind:
        case CaptureKind.NAME:
            return owner[key]
        case CaptureKind.BUILTIN:
            return owner[key] if key in owner else getattr(builtins, key)
        case CaptureKind.CELL:
            return owner.cell_contents
        case CaptureKind.ATTRIBUTE:
            return getattr(owner, key)
    raise LookupError(f"{kind.value} is found by its content")


def attribute_of(owner: Any, name: str) -> Any:
    """An attribute; `MISSING` where there is none, or where code of its class or of a descriptor says what it is."""
    held = inspect.getattr_static(owner, name, MISSING)
    if isinstance(held, property):
        return MISSING
    kind = type(owner)
    if not (is_standard(owner.__name__) if issubclass(kind, types.ModuleType) else is_ours(kind.__module__)):
        if held is MISSING or _is_computed(kind, "__getattribute__") or _is_computed(type(held), "__get__"):
            return MISSING
    return getattr(owner, name, MISSING)


def _is_computed(kind: type, method: str) -> bool:
    """Whether Python code of a class says what is found."""
    return isinstance(inspect.getattr_static(kind, method, None), types.FunctionType)


def names_bound_by(node: ast.AST) -> list[str]:
    """The names that a node itself, without those in it, assigns or deletes: every way that Python has."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [one.asname or one.name.partition(".")[0] for one in aliases]
    return []


def stored_names(tree: ast.AST) -> set[str]:
    """The names that code assigns or deletes, what is defined in it included, but not its own name."""
    return {name for node in ast.walk(tree) if node is not tree for name in names_bound_by(node)}


def parameter_names(tree: ast.AST) -> set[str]:
    """The names of all parameters in code, of what is defined in it included."""
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
