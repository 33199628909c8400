"""Where a definition ends: its text and syntax tree, from the lines of the file that it begins in.

Method: a definition ends in front of a line that stands as far left as its first one, provided that what is above that
line parses, so that the line is inside no bracket, string or continued line. Python's tokenizer finds the same end, but
compiles a regular expression first, which takes longer than most kernels take to be parsed.
"""

from __future__ import annotations

import ast
import inspect
import tokenize
from collections.abc import Iterator, Sequence
from itertools import islice

__all__ = ["read_definition"]

#: Lines that may turn out to stand inside a string or a bracket, before the tokenizer is asked instead.
_MOST_TRIES = 16


def read_definition(lines: Sequence[str], first: int, file: str) -> tuple[str, ast.stmt]:
    """The text and the tree of the statement that begins in line `first` (from 1) of a file, decorators included. The
    tree's lines and columns are the file's. Raises `SyntaxError` if nothing that begins there can be parsed.
    """
    for end in islice(_ends(lines, first), _MOST_TRIES):
        text = "".join(lines[first - 1 : end])
        try:
            statements = _parsed(text, first, file)
        except SyntaxError:
            continue
        if statements[-1].lineno == statements[0].lineno:
            return text, statements[0]
    try:
        text = "".join(inspect.getblock(list(lines[first - 1 :])))
    except tokenize.TokenError as error:
        raise SyntaxError(error.args[0]) from None
    return text, _parsed(text, first, file)[0]


def _ends(lines: Sequence[str], first: int) -> Iterator[int]:
    """The numbers of the lines after which the definition may be over, the blank ones and comments behind it left
    out.
    """
    edge = _indentation(lines[first - 1])
    last = first
    for number in range(first + 1, len(lines) + 1):
        line = lines[number - 1]
        content = line.lstrip()
        if not content or content.startswith("#"):
            continue
        if _indentation(line) <= edge:
            yield last
        last = number
    yield last


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _parsed(text: str, first: int, file: str) -> list[ast.stmt]:
    # An indented definition is parsed under a line of its own, so that columns stay true and multi-line strings keep
    # their content; empty lines above make the lines true.
    if text[:1] in (" ", "\t"):
        outer, *others = ast.parse("\n" * (first - 2) + "if True:\n" + text, file).body
        assert isinstance(outer, ast.If)
        return [*outer.body, *others]
    return ast.parse("\n" * (first - 1) + text, file).body
