"""Lists that show themselves as tables, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

# What `html.escape` does; that module brings the names of two thousand characters along, at each import of tinote.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def escaped(text: str) -> str:
    """Text as HTML shows it."""
    return text.translate(_ESCAPES)


class ShownAsTable:
    """Mixed into a list: shows it as a table. `_heads`: of the columns; the first `_left` of them hold text, the others
    numbers. `_nothing`: what is shown where there are no rows.
    """

    _heads: ClassVar[tuple[str, ...]]
    _left: ClassVar[int]
    _nothing: str

    def _rows(self) -> list[tuple[str, ...]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        rows = self._rows()
        return table_as_text(self._heads, rows, left=self._left) if rows else self._nothing

    def _repr_html_(self) -> str:
        rows = self._rows()
        if not rows:
            return f"<p>{escaped(self._nothing)}</p>"
        return table_as_html(self._heads, rows, left=self._left)


def table_as_text(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table in columns; the first `left` ones hold text, the others numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        aligned: list[str] = []
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            align: Callable[[int], str] = cell.ljust if number < left else cell.rjust
            aligned.append(align(width))
        return "  ".join(aligned).rstrip()

    return "\n".join(line(cells) for cells in (heads, *rows))


def table_as_html(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """The same for a notebook."""

    def line(tag: str, cells: Sequence[str]) -> str:
        styled = (
            f'<{tag} style="text-align:{"left" if number < left else "right"}">{escaped(cell)}</{tag}>'
            for number, cell in enumerate(cells)
        )
        return f"<tr>{''.join(styled)}</tr>"

    body = "".join(line("td", cells) for cells in rows)
    return f"<table><thead>{line('th', heads)}</thead><tbody>{body}</tbody></table>"
