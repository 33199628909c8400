"""Checks of indices that always hold are dropped."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.checks.drop_checks import drop_checks

BEFORE = """\
buffer @x: i32 field (64)
func f(%n: i32):
  for parallel %i: i32 in 0i32 .. {to}:
    %g: u1 = {guard}
    if %g:
      %j: i32 = add %i, 1i32
      %a: u1 = ge %j, 0i32
      %b: u1 = lt %j, 64i32
      %c: u1 = and %a, %b
      {check}store @x[%j], %i
"""
CHECK = 'check bounds "x" %c, %j, 64i32\n      '


@pytest.mark.parametrize(("to", "guard"), [("63i32", "lt %i, %n"), ("64i32", "lt %i, 63i32"), ("%n", "lt %i, 63i32")])
def test_what_is_proved_is_dropped(to: str, guard: str) -> None:
    becomes(
        drop_checks,
        BEFORE.format(to=to, guard=guard, check=CHECK),
        BEFORE.format(to=to, guard=guard, check=""),
    )


@pytest.mark.parametrize(("to", "guard"), [("64i32", "lt %i, %n"), ("%n", "lt %i, 64i32"), ("%n", "gt %i, 3i32")])
def test_what_may_fail_stays(to: str, guard: str) -> None:
    stays(drop_checks, BEFORE.format(to=to, guard=guard, check=CHECK))
