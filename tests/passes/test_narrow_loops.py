"""Conditions on indices become bounds of loops."""

from __future__ import annotations

import pytest

from tests.passes.running import agrees
from tests.passes.support import becomes, stays
from tinote.compiler.passes.loops.narrow_loops import narrow_loops
from tinote.ir.nodes import If
from tinote.ir.query import walk

HEAD = """\
buffer @x: i32 field (8, 8)
buffer @c: u1 field ()
func f(%n: i32):
"""


def program(lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines.strip("\n").splitlines())


def test_conditions_climb_to_their_loops() -> None:
    becomes(
        narrow_loops,
        program("""
for parallel %i: i32 in 0i32 .. 8i32:
  %a: u1 = gt %i, 0i32
  for parallel %j: i32 in 0i32 .. %n:
    %b: u1 = lt %j, 7i32
    %d: u1 = and %a, %b
    if %d:
      store @x[%i, %j], 1i32
"""),
        program("""
for parallel %i: i32 in 1i32 .. 8i32:
  %a: u1 = gt %i, 0i32
  %m: i32 = min %n, 7i32
  for parallel %j: i32 in 0i32 .. %m:
    %b: u1 = lt %j, 7i32
    %d: u1 = and %a, %b
    store @x[%i, %j], 1i32
"""),
    )


@pytest.mark.parametrize("comparison", ["lt %i, 5i32", "le %i, 5i32", "gt %i, 5i32", "ge %i, 5i32", "lt 5i32, %i"])
@pytest.mark.parametrize("kind", ["for parallel", "for", "for reverse"])
def test_each_comparison(kind: str, comparison: str) -> None:
    fn = agrees(
        narrow_loops,
        program(f"""
{kind} %i: i32 in 1i32 .. 8i32:
  %a: u1 = {comparison}
  if %a:
    store @x[%i, 0i32], %i
"""),
        (0,),
    )
    assert not any(isinstance(op, If) for op in walk(fn.region))


@pytest.mark.parametrize("n", [-3, 0, 4, 8, 100])
def test_bounds_from_arguments(n: int) -> None:
    text = program("""
for parallel %i: i32 in 0i32 .. 8i32:
  %p: i32 = mul %i, 2i32
  %a: u1 = lt %i, %n
  %b: u1 = le 2i32, %i
  %d: u1 = and %a, %b
  %e: u1 = ne %i, 5i32
  %f: u1 = and %d, %e
  if %f:
    store @x[%i, 1i32], %p
""")
    fn = agrees(narrow_loops, text, (n,))
    assert sum(isinstance(op, If) for op in walk(fn.region)) == 1


STAYING = {
    "a condition on memory": "%a: u1 = load @c[]\n  if %a:\n    store @x[%i, 0i32], %i",
    "something next to it": "%a: u1 = gt %i, 3i32\n  store @x[%i, 1i32], 2i32\n  if %a:\n    store @x[%i, 0i32], %i",
    "something after it": "%a: u1 = gt %i, 3i32\n  if %a:\n    store @x[%i, 0i32], %i\n  store @x[%i, 1i32], 2i32",
    "another arm": "%a: u1 = gt %i, 3i32\n  if %a:\n    store @x[%i, 0i32], %i\n  else:\n    store @x[%i, 0i32], 1i32",
    "either of two": "%b: u1 = gt %i, 3i32\n  %c: u1 = lt %i, 2i32\n  %a: u1 = or %b, %c\n  if %a:\n"
    + "    store @x[%i, 0i32], %i",
    "the greatest number": "%a: u1 = le %i, 2147483647i32\n  if %a:\n    store @x[%i, 0i32], %i",
    "a number that each iteration has its own": "%b: i32 = mul %i, 3i32\n  %a: u1 = lt %i, %b\n  if %a:\n"
    + "    store @x[%i, 0i32], %i",
}


@pytest.mark.parametrize("reason", STAYING)
def test_what_stays(reason: str) -> None:
    stays(narrow_loops, program(f"for parallel %i: i32 in 0i32 .. 8i32:\n  {STAYING[reason]}"))


def test_a_condition_of_the_outermost_loop_stays_inside() -> None:
    stays(
        narrow_loops,
        program("""
%a: u1 = gt %n, 3i32
for parallel %i: i32 in 0i32 .. 8i32:
  if %a:
    store @x[%i, 0i32], %i
"""),
    )
