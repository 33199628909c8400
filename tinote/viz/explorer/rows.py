"""Where the lines of a stage come from, in the rows of the source as the explorer's page numbers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinote.compiler.inspect.stages import KernelSource, StageLine
from tinote.source import Span


class Rows:
    """Numbers the lines of all sources from 0, as the page shows them: which row a span begins in, and its columns in
    characters.
    """

    def __init__(self, sources: Sequence[KernelSource]) -> None:
        self._rows: dict[tuple[str, int], int] = {}
        self._texts: list[str] = []
        for source in sources:
            for number, text in enumerate(source.lines, source.first_line):
                self._rows.setdefault((source.file, number), len(self._texts))
                self._texts.append(text)

    def location(self, span: Span) -> tuple[int, int, int]:
        """Row, first and last column of what the source shows of `span`; row -1 when it shows nothing, column -1 where
        the end is not known.
        """
        row = self._rows.get((span.file, span.line), -1)
        if row < 0:
            return -1, 0, -1
        encoded = self._texts[row].encode()
        # `ast` counts columns in bytes.
        begin = len(encoded[: span.column].decode(errors="ignore"))
        if span.end_line == span.line and span.end_column > span.column:
            return row, begin, len(encoded[: span.end_column].decode(errors="ignore"))
        return row, begin, len(self._texts[row].rstrip()) if span.end_line > span.line else -1

    def rows(self, line: StageLine) -> list[int]:
        """Every row that a line comes from, innermost first: those its span covers, and the calls it was inlined at."""
        found: dict[int, None] = {}
        for depth, span in enumerate(line.span.chain()):
            last = span.line if depth or line.block else max(span.line, span.end_line)
            for number in range(span.line, last + 1):
                row = self._rows.get((span.file, number), -1)
                if row >= 0:
                    found[row] = None
        return list(found)


def lines_in_columns(lines: Sequence[StageLine], rows: Rows) -> dict[str, Any]:
    """The lines in columns: text; row, begin and end of the place; where there are any, further rows, what the primal
    operation binds, and which lines are adjoints.
    """
    places: list[int] = []
    further: dict[int, list[int]] = {}
    primals: dict[int, str] = {}
    for n, line in enumerate(lines):
        found = rows.rows(line)
        location = next((p for p in map(rows.location, line.span.chain()) if p[0] >= 0), (-1, 0, -1))
        places += location
        if len(found) > 1:
            further[n] = found
        if line.primal:
            primals[n] = line.primal
    adjoints = [n for n, line in enumerate(lines) if line.adjoint]
    text = "\n".join(line.text for line in lines)
    return {"text": text, "places": places, "further": further, "primals": primals, "adjoints": adjoints}
