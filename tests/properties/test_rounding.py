"""What rounding may make of a program, and what it may not: the measure by which fast maths is judged."""

from __future__ import annotations

import math

import pytest

from tests.properties.compare import Outcome
from tests.properties.rounding import disagreement, spread
from tests.properties.writer import Program
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of

#: x - round(x) + 1 for a large x is 1 as it is written, 0 if the 1 is added to x first
CANCELLED = """
  %1: f64 = load @g[0i32]
  %2: f64 = sub %1, 1e19f64
  store @g[0i32], %2
  %3: f64 = load @g[0i32]
  %4: f64 = load @g[0i32]
  %5: f64 = round %4
  %6: f64 = sub %3, %5
  %7: f64 = add %6, 1.0f64
  %8: i32 = cast %7
"""


def judged(text: str, g: list[float], *found: list[float]) -> list[str | None]:
    """The verdict on each of several ends of a program that works on a buffer `g`."""
    fn = parse(f"buffer @g: f64 field ({len(g)})\nfunc f():\n{text.strip(chr(10))}\n")
    (buffer,) = buffers_of(fn)
    program = Program(0, 1, fn, (), {buffer: g}, frozenset(), False)
    possible = spread(program, True)
    return [disagreement(program, possible, Outcome((), {buffer: end}, [])) for end in found]


@pytest.mark.parametrize(
    ("jump", "there"),
    [
        ("  %9: f64 = cast %8\n  %10: f64 = div 0.0f64, %9", math.nan),
        ("  %9: u1 = eq %8, 0i32\n  %10: f64 = select %9, 5.0f64, 0.0f64", 5.0),
        ("  %9: u1 = not %8\n  %10: f64 = cast %9", 1.0),
        ("  %9: f64 = cast %8\n  %11: f64 = abs %9\n  %10: f64 = rsqrt %11", math.inf),
    ],
    ids=["division", "comparison", "truth", "pole"],
)
def test_what_hangs_by_one_value_may_be_there_and_the_rest_may_not(jump: str, there: float) -> None:
    text = f"{CANCELLED}{jump}\n  store @g[0i32], %10\n  %20: f64 = load @g[1i32]\n"
    text += "  %21: f64 = mul %20, 3.0f64\n  store @g[1i32], %21"
    at_the_edge, wrong = judged(text, [0.5, 2.0], [there, 6.0], [there, 6.1])
    assert not at_the_edge
    assert wrong is not None and "left 6.1 in g instead of 6.0" in wrong


def test_what_does_not_scatter_to_the_edge_is_decided() -> None:
    text = """
  %1: f64 = load @g[0i32]
  %2: f64 = div 6.0f64, %1
  %3: u1 = lt %1, 2.5f64
  %4: f64 = select %3, %2, 0.0f64
  store @g[0i32], %4"""
    right, other_branch, quotient = judged(text, [2.0], [3.0000000000000004], [0.0], [3.0001])
    assert right == ""
    assert other_branch and quotient
