"""What a field is called: the variable that it was first assigned to."""

from __future__ import annotations

import ast

from tinote.source import Span, line_text

__all__ = ["assigned_name"]


def assigned_name(made_at: Span) -> str:
    """The variable or attribute that the call at `made_at` is assigned to, as far as its line tells; "" otherwise."""
    line = line_text(made_at)
    if not line or not made_at.end_column:
        return ""
    target, equals, _ = line.encode()[: made_at.column].decode(errors="ignore").partition("=")
    try:
        # A statement that goes on over further lines cannot be parsed; then what stands before the call has to do.
        statement = ast.parse(line.strip()).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        name = target.partition(":")[0].strip().removeprefix("self.")
        return name if equals and name.isidentifier() else ""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return ""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    pairs: list[tuple[ast.expr, ast.expr]] = [(t, statement.value) for t in targets]
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
