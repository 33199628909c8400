"""Faults and their messages: why a launch stops, and what a `Check` shows, as a format string whose holes `{}` or
`{:.2f}` take one value each.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from string import Formatter
from typing import NamedTuple, cast

from tinote.formats import in_format

_ITERATION = ", in iteration "


class FaultKind(Enum):
    """Why a launch stopped."""

    BOUNDS = 2
    DIVISION = 3
    ASSERT = 4
    MEMORY = 5
    OVERFLOW = 6
    FINITE = 8
    RECURSION = 9


class Hole(NamedTuple):
    """Where a value goes, with a format specification as in an f-string."""

    spec: str = ""


def split_message(text: str) -> list[str | Hole]:
    """The literal texts and holes of a message, in order."""
    found: list[str | Hole] = []
    for literal, field, spec, _ in Formatter().parse(text):
        if literal:
            found.append(literal)
        if field is not None:
            found.append(Hole(spec or ""))
    return found


def join_message(parts: Iterable[str | Hole]) -> str:
    """The message that `split_message` takes apart."""
    return "".join(
        [
            part.replace("{", "{{").replace("}", "}}")
            if isinstance(part, str)
            else f"{{:{part.spec}}}"
            if part.spec
            else "{}"
            for part in parts
        ]
    )


def iteration_text(names: Iterable[str]) -> str:
    """The end of a message that says in which iteration of the surrounding loops something happened, with a hole for
    each loop's index.
    """
    shown = ", ".join([f"{name} = {{:d}}" for name in names])
    return f"{_ITERATION}{shown}" if shown else ""


def iteration_of(message: str) -> tuple[str, dict[str, int]]:
    """A filled-in message without that end, and the indices that the end names."""
    text, _, shown = message.partition(_ITERATION)
    pairs = [part.split(" = ") for part in shown.split(", ")] if shown else []
    return text, {name: int(index) for name, index in pairs}


def nested_parts(shape: tuple[int, ...]) -> list[str | None]:
    """The parts that print a tensor as nested lists; None stands for the next component in row-major order."""
    if not shape:
        return [None]
    parts: list[str | None] = ["["]
    for k in range(shape[0]):
        if k:
            parts.append(", ")
        parts += nested_parts(shape[1:])
    return [*parts, "]"]


def merged(parts: Iterable[str | None]) -> list[str | None]:
    """`parts` with neighbouring texts joined."""
    found: list[str | None] = []
    for part in parts:
        if part is not None and found and found[-1] is not None:
            found[-1] += part
        else:
            found.append(part)
    return found


def formatted(value: object, spec: str) -> str:
    """A value, or each number of a nested list of them, in a format."""
    if isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
        return f"[{', '.join([formatted(v, spec) for v in items])}]"
    return in_format(cast("float", value), spec)
