"""Private names: inside a class, Python reads `__x` as `_Class__x`, and so does the front end."""

from __future__ import annotations

import ast


def spell_out(tree: ast.FunctionDef | ast.AsyncFunctionDef, qualified_name: str) -> None:
    """Put what Python reads in the place of private names, in a function of that qualified name."""
    owner = _class_around(qualified_name)
    if not owner:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if _is_private(name):
                node.id = f"_{owner}{name}"
            case ast.Attribute(attr=name) if _is_private(name):
                node.attr = f"_{owner}{name}"
            case ast.arg(arg=name) if _is_private(name):
                node.arg = f"_{owner}{name}"
            case ast.keyword(arg=str(name)) if _is_private(name):
                node.arg = f"_{owner}{name}"
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                node.names = [f"_{owner}{name}" if _is_private(name) else name for name in names]


def _class_around(qualified_name: str) -> str:
    """The innermost class that a function is written in, without leading underscores; empty if there is none."""
    parts = qualified_name.split(".")
    for part, inner in zip(reversed(parts[:-1]), reversed(parts[1:]), strict=True):
        if part != "<locals>" and inner != "<locals>":
            return part.lstrip("_")
    return ""


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")
