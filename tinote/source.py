"""Positions in the user's source, and the text they point into.

A position names a file or a notebook cell by the name under which Python compiled it; the text comes from `linecache`,
which IPython keeps filled for cells.
"""

from __future__ import annotations

import linecache
import os
import sys
from itertools import islice
from types import CodeType, FrameType
from typing import NamedTuple


class Span(NamedTuple):
    """A range of source text. Lines count from 1, columns from 0 (as in `ast`); `inlined_at` is the call site when the
    text is an inlined function's.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    inlined_at: Span | None = None

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def chain(self) -> tuple[Span, ...]:
        """This span and the call sites it was inlined at, innermost first."""
        spans: list[Span] = [self]
        while spans[-1].inlined_at is not None:
            spans.append(spans[-1].inlined_at)
        return tuple(spans)

    def in_users_code(self) -> Span:
        """This span, or where it is in one of this package's device functions, the user's call of that."""
        return next((span for span in self.chain() if not span.is_in_package), self)

    @property
    def is_in_package(self) -> bool:
        """Whether this package's own code is there."""
        return self.file.startswith(_PACKAGE)


_PACKAGE = os.path.dirname(__file__) + os.sep

NOWHERE = Span("<nowhere>", 0)


def line_text(span: Span) -> str:
    """The first source line of `span` without its line break; empty when the source is not available."""
    return linecache.getline(span.file, span.line).rstrip("\n")


def caller(*others: str) -> Span:
    """The expression of the user's code that called into the package, or into one of the `others`."""
    frame = users_frame(*others)
    return span_at(frame.f_code, frame.f_lasti)


def users_frame(*others: str) -> FrameType:
    """The frame of the user's code that called into the package, or into one of the `others`."""
    frame = sys._getframe(2)
    skipped = ("tinote", *others)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in skipped:
        frame = frame.f_back
    return frame


def span_at(code: CodeType, instruction: int) -> Span:
    """The expression that an instruction of a function is part of."""
    line, end_line, column, end_column = next(islice(code.co_positions(), instruction // 2, None))
    if line is None or column is None or end_line is None or end_column is None:
        return Span(code.co_filename, line or code.co_firstlineno)
    return Span(code.co_filename, line, column, end_line, end_column)


def location_name(span: Span) -> str:
    """A location in words: `Cell In[5], line 3` in a notebook, `file.py, line 3` elsewhere."""
    return f"{_cell_name(span.file) or span.file}, line {span.line}"


def _cell_name(file: str) -> str:
    """How IPython calls the cell that it has compiled under this name; "" for any other file."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    described = None if shell is None else shell.compile.format_code_name(file)
    return " ".join(described or ())
