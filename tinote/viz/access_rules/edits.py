"""Fixes of broken access rules: the offending statement, and its corrected form.

    x[i] = 2 * x[i]        ->    x_next[i] = 2 * x[i]         (into a separate field)
    y[k] = f(k)            ->    y[k] += f(k)                 (accumulated)

Only assignments are rewritten, and only as text: the right-hand side is the user's own.
"""

from __future__ import annotations

import ast
import linecache
from typing import NamedTuple

from tinote.lang.ad.access_rules.violations import Fix
from tinote.source import Span

SUFFIXES = {Fix.SPLIT: "_new", Fix.DOUBLE_BUFFER: "_next"}
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


class Edit(NamedTuple):
    """A statement and what to write in its place, without indentation. `declared`: the additional field that it needs,
    if any.
    """

    before: str
    after: str
    declared: str = ""


def edited(span: Span, fix: Fix) -> Edit | None:
    """The statement around `span` with `fix` applied; None where it is not an assignment to an element, or its text is
    not known, or the fix does not apply to it.
    """
    text = _text_of(span.file)
    match _statement(text, span):
        case ast.Assign(targets=[target], value=value) as statement:
            operator = ""
        case ast.AugAssign(target=target, op=op, value=value) as statement:
            operator = OPERATORS.get(type(op), "")
        case _:
            return None
    field = _field(target)
    if field is None:
        return None
    before, left, right, name = (ast.get_source_segment(text, node) or "" for node in (statement, target, value, field))
    if fix is Fix.ACCUMULATE and not operator:
        return Edit(before, f"{left} += {right}")
    if fix not in SUFFIXES:
        return None
    new = name + SUFFIXES[fix]
    if operator:
        right = f"{left} {operator} {right if _binds_tightly(value) else f'({right})'}"
    return Edit(before, f"{new}{left[len(name) :]} = {right}", new)


def _text_of(file: str) -> str:
    """The text of a file or cell with the lines of magics blanked out, since they are not Python."""
    lines = linecache.getlines(file)
    return "".join("\n" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def _statement(text: str, span: Span) -> ast.stmt | None:
    """The innermost statement that `span` begins in."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    at = span.line, span.column
    found: ast.stmt | None = None
    for node in ast.walk(tree):  # Breadth first: the last one found is the innermost.
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) <= at:
            if at < (node.end_lineno or 0, node.end_col_offset or 0):
                found = node
    return found


def _field(target: ast.expr) -> ast.expr | None:
    """What stands before the first brackets of a target: `self.x` in `self.x[i].y[0]`."""
    found: ast.expr | None = None
    while isinstance(target, ast.Subscript | ast.Attribute):
        if isinstance(target, ast.Subscript):
            found = target.value
        target = target.value
    return found


def _binds_tightly(value: ast.expr) -> bool:
    """Whether an expression can follow any operator without parentheses."""
    return isinstance(value, ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute)
