"""The lines and tokens of the text form of the IR."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from tinote.ir.types import SCALARS
from tinote.source import Span

T = TypeVar("T")

_GRAMMAR = """\
adjoint array as assert atomic axis bounds broadcast buffer by carrying check custom_vjp division do else extent
field flat for func get if in likely load local memory of overflow parallel pass plain pop print private push ramp
reduce return reverse serial set stack store strides tangent task temporary tile vectorize where while yield
"""
#: The words of the grammar, besides the names of types and primitives.
KEYWORDS = frozenset(_GRAMMAR.split())

NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|(?:inf|nan)\b|(?:inf|nan)(?=_))"
_TOKEN = re.compile(
    r"\s*(?:(?P<comment>\#.*)"
    r'|(?P<text>"(?:\\.|[^"\\])*")'
    r"|(?P<variable>%[A-Za-z0-9_.]+)"
    r"|(?P<buffer>@[A-Za-z0-9_.]+)"
    rf"|(?P<number>{NUMBER}_?(?:(?:{'|'.join(t.name for t in SCALARS)})(?:d\d+)?)?(?![A-Za-z0-9_]))"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<mark>\.\.|[][(),:=?]))"
)


class ParseError(ValueError):
    """A text that is not IR; the message shows the line and the column."""

    def __init__(self, message: str, file: str, line: int, column: int, text: str) -> None:
        super().__init__(f"{file}, line {line}: {message}\n  {text}\n  {' ' * column}^")
        self.message = message
        self.line = line
        self.column = column


class Token(NamedTuple):
    kind: str  # a group of _TOKEN, or "end"
    text: str
    column: int


class SourceLine:
    """A line of tokens with a cursor."""

    def __init__(self, file: str, number: int, text: str) -> None:
        self.file = file
        self.number = number
        self.text = text
        self.indent = len(text) - len(text.lstrip(" "))
        self.tokens: list[Token] = []
        self.at = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error("this is not IR", position + len(text[position:]) - len(text[position:].lstrip()))
            kind = match.lastgroup or ""
            position = match.end()
            if kind != "comment":
                self.tokens.append(Token(kind, match.group(kind), match.start(kind)))

    def error(self, message: str, column: int | None = None) -> ParseError:
        return ParseError(message, self.file, self.number, self.peek().column if column is None else column, self.text)

    def span(self) -> Span:
        return Span(self.file, self.number, self.indent, self.number, len(self.text))

    def peek(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("end", "", len(self.text))

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def take(self, text: str) -> bool:
        """Whether the next token is the word or mark `text`; moves on if so."""
        token = self.peek()
        if token.text == text and token.kind in ("word", "mark"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(f"expected '{text}'")

    def kind(self, kind: str, what: str) -> str:
        """The text of the next token, which must be of this kind."""
        if self.peek().kind != kind:
            raise self.error(f"expected {what}")
        return self.next().text

    def done(self) -> None:
        if self.peek().kind != "end":
            raise self.error("expected the end of the line")

    def integer(self) -> int:
        token = self.peek()
        if token.kind != "number" or not token.text.isdigit():
            raise self.error("expected a plain integer")
        return int(self.next().text)

    def separated(self, item: Callable[[], T], end: str | None = None) -> list[T]:
        """Items with commas between them up to the mark `end` (which is consumed), or to the end of the line."""
        items: list[T] = []
        while True:
            if self.take(end) if end else self.peek().kind == "end":
                return items
            if items:
                self.expect(",")
            items.append(item())


class TextReader:
    """The lines of a text that have tokens, and the current one."""

    def __init__(self, text: str, file: str) -> None:
        lines = [SourceLine(file, number, line) for number, line in enumerate(text.splitlines(), 1)]
        self.lines = [line for line in lines if line.tokens]
        self.file = file
        self.at = 0
        self.line = self.lines[0] if self.lines else SourceLine(file, 1, "")

    @property
    def is_at_end(self) -> bool:
        return self.at == len(self.lines)

    def advance(self) -> SourceLine:
        """Make the next line the current one."""
        if self.is_at_end:
            raise self.line.error("expected a line")
        self.line = self.lines[self.at]
        self.at += 1
        return self.line

    def end(self) -> None:
        """There are no further lines."""
        if not self.is_at_end:
            raise self.advance().error("expected the end of the text", 0)

    def colon(self) -> None:
        """The current line ends with a colon."""
        self.line.expect(":")
        self.line.done()

    def deeper(self, head: SourceLine) -> Iterator[SourceLine]:
        """The lines that are indented deeper than `head`, all of them alike, as the current one in turn."""
        indent: int | None = None
        while not self.is_at_end and self.lines[self.at].indent > head.indent:
            line = self.advance()
            indent = line.indent if indent is None else indent
            if line.indent != indent:
                raise line.error("the indentation does not fit the lines above", 0)
            yield line
