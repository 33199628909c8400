"""Generated Python as readable text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import copy


def lines_of(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The code as text, each line with its statement."""
    yield from _lines(tree.body, 0)


def _lines(body: Iterable[ast.stmt], indent: int) -> Iterator[tuple[str, ast.AST]]:
    for statement in body:
        inner = [part for part in ("body", "orelse") if getattr(statement, part, None)]
        if not inner:
            yield "    " * indent + ast.unparse(statement), statement
            continue
        head = copy(statement)
        head.body, head.orelse = [ast.Pass()], []  # type: ignore[attr-defined]
        yield "    " * indent + ast.unparse(head).strip().splitlines()[0], statement
        for part in inner:
            if part == "orelse":
                yield "    " * indent + "else:", statement
            yield from _lines(getattr(statement, part), indent + 1)
