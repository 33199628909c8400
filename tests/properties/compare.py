"""Running generated programs and comparing what they leave behind."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.properties.generate import Program
from tinote.ir.interpret import interpret
from tinote.ir.nodes import Buffer, Function

__all__ = ["Direction", "Outcome", "difference", "run", "slope"]

STEPS = 500_000

#: a number for each number that the inputs hold
Direction = dict[tuple[Buffer, tuple[int, ...]], float]


class Outcome(NamedTuple):
    """What a run gave: returned values, contents of the buffers, printed texts."""

    returned: tuple[Any, ...]
    contents: dict[Buffer, Any]
    printed: list[str]


def run(program: Program, fn: Function, order: Callable[[range], Iterable[int]] | None = None) -> Outcome:
    """Interpret `fn` (the program at some stage of the compiler) from the program's starting point."""
    memory = program.memory()
    printed: list[str] = []
    returned = interpret(fn, program.arguments, memory, on_print=printed.append, step_limit=STEPS, order=order)
    return Outcome(returned, {b: memory.nested(b) for b in program.contents}, printed)


def difference(program: Program, wanted: Outcome, found: Outcome) -> str:
    """What differs between two outcomes, in words; empty when nothing does.

    Numbers must agree to the last bit (any NaN equals any other), except for the buffers whose sums of floats depend on
    the order: their terms are at most 8, so that 0.05 is far more than rounding and far less than a missing term.
    """
    if not _same(wanted.returned, found.returned):
        return f"returned {found.returned} instead of {wanted.returned}"
    for buffer, contents in wanted.contents.items():
        same = _close if buffer in program.approximate else _same
        if not same(contents, found.contents[buffer]):
            return f"left {found.contents[buffer]} in {buffer.name} instead of {contents}"
    return "" if wanted.printed == found.printed else f"printed {found.printed} instead of {wanted.printed}"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    return (a != a and b != b) or math.isclose(a, b, rel_tol=1e-4, abs_tol=0.05)


def slope(program: Program, direction: Direction, step: float = 1e-6) -> float | None:
    """The derivative of the loss along a direction of the inputs, by central differences.

    None where the two one-sided differences disagree: there the function has a kink or a jump, and no derivative.
    """
    assert program.loss is not None

    def value(shift: float) -> float:
        memory = program.memory()
        for (buffer, index), along in direction.items():
            memory.store(buffer, index, memory.load(buffer, index) + shift * along)
        interpret(program.function, program.arguments, memory, step_limit=STEPS)
        return memory.nested(program.loss)

    below, here, above = value(-step), value(0), value(step)
    left, right = (here - below) / step, (above - here) / step
    return (left + right) / 2 if math.isclose(left, right, rel_tol=1e-2, abs_tol=1e-2) else None
