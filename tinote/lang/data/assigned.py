"""The name of a field: that of the variable to which it was first assigned."""

from __future__ import annotations

import ast

from tinote.compiler.pysource.definitions import syntax_tree
from tinote.source import Span, line_text


def assigned_name(made_at: Span) -> str:
    """The variable or attribute that the call at `made_at` is assigned to, as far as its line tells; "" otherwise."""
    line = line_text(made_at)
    if not line or not made_at.end_column:
        return ""
    target, equals, _ = line.encode()[: made_at.column].decode(errors="ignore").partition("=")
    try:
        # A statement that goes on over further lines cannot be parsed; then what stands before the call has to do.
        statements = syntax_tree(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        name = target.partition(":")[0].strip().removeprefix("self.")
        return name if equals and name.isidentifier() else ""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for statement in statements:
        if isinstance(statement, ast.Assign):
            pairs += [(t, statement.value) for t in statement.targets]
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            pairs.append((statement.target, statement.value))
    column = made_at.column - (len(line) - len(line.lstrip()))
    for wanted, value in pairs:
        if (
            isinstance(wanted, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(wanted.elts) == len(value.elts)
        ):
            pairs += zip(wanted.elts, value.elts, strict=True)
        elif value.col_offset == column:
            return (
                wanted.id if isinstance(wanted, ast.Name) else wanted.attr if isinstance(wanted, ast.Attribute) else ""
            )
    return ""
