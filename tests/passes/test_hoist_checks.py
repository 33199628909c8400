"""Checks move before loops, and refuse exactly the launches that they refused inside."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.checks.check_bounds import check_bounds
from tinote.compiler.passes.checks.hoist_checks import hoist_checks
from tinote.errors import KernelIndexError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Check, For
from tinote.ir.parse import parse
from tinote.ir.query import walk
from tinote.ir.verify import Form, verify


def test_the_end_of_a_loop_is_checked_before_it() -> None:
    becomes(
        hoist_checks,
        """
        buffer @x: f32 field (64)
        func f(%n: i32):
          for parallel %i: i32 in 0i32 .. %n:
            %a: u1 = lt %i, 64i32
            check bounds "x" %a, %i, 64i32
            store @x[%i], 1.0f32
        """,
        """
        buffer @x: f32 field (64)
        func f(%n: i32):
          %1: i64 = cast %n
          %2: i64 = add %1, -1i64
          %3: u1 = lt %2, 64i64
          %4: u1 = ge 0i32, %n
          %5: u1 = or %4, %3
          check bounds "x" %5, %2, 64i64
          for parallel %i: i32 in 0i32 .. %n:
            store @x[%i], 1.0f32
        """,
        Form.CHECKED,
    )


PROGRAMS = {
    "a loop": """
          for %i: i32 in %lo .. %hi:
            store @x[%i], 1.0f32
    """,
    "backwards and scaled": """
          for reverse %i: i32 in %lo .. %hi:
            %a: i32 = mod %i, 1000i32
            %j: i64 = cast %i
            %k: i64 = mul %j, -2i64
            %l: i64 = add %k, 9i64
            store @x[%l], 1.0f32
    """,
    "a nest": """
          for parallel %i: i32 in 0i32 .. %hi:
            for %j: i32 in 0i32 .. %lo:
              %k: i32 = sub %i, %j
              store @x[%k], 1.0f32
    """,
    "a triangle": """
          for parallel %i: i32 in 0i32 .. %hi:
            for %j: i32 in 0i32 .. %i:
              %k: i32 = add %j, %lo
              store @x[%k], 1.0f32
    """,
    "an array": """
          for %i: i32 in %lo .. %hi:
            %j: i32 = add %i, 1i32
            store @p[%j], 1.0f32
    """,
    "under a condition": """
          for %i: i32 in %lo .. %hi:
            %t: u1 = gt %i, 3i32
            if %t:
              store @x[%i], 1.0f32
            store @x[%lo], 2.0f32
    """,
    "a component": """
          for %i: i32 in %lo .. %hi:
            store @v[0i32][%i], 1.0f32
    """,
}  # fmt: skip


#: Sums that may wrap: checks of the first three move, since those would have to wrap from below to be in range again.
WRAPPING = {
    "a row": """
          for %j: i32 in 0i32 .. %hi:
            %k: i32 = add %lo, %j
            store @x[%k], 1.0f32
    """,
    "a row of a square": """
          %r: i32 = mul %lo, %lo
          for %j: i32 in 0i32 .. %hi:
            %c: i32 = add %j, 1i32
            %k: i32 = add %r, %c
            store @x[%k], 1.0f32
    """,
    "a row of a nest": """
          for parallel %i: i32 in 0i32 .. %hi:
            %r: i32 = mul %i, %lo
            for %j: i32 in 0i32 .. %hi:
              %k: i32 = add %r, %j
              store @x[%k], 1.0f32
    """,
    "backwards": """
          for %j: i32 in 0i32 .. %hi:
            %k: i32 = sub %lo, %j
            store @x[%k], 1.0f32
    """,
    "far from below": """
          for %j: i32 in 0i32 .. %hi:
            %s: i32 = mul %j, 2147483647i32
            %k: i32 = sub %lo, %s
            store @x[%k], 1.0f32
    """,
}  # fmt: skip
MOST, LEAST = 2**31 - 1, -(2**31)


@pytest.mark.parametrize(("name", "code"), WRAPPING.items(), ids=WRAPPING.keys())
def test_sums_that_wrap_fail_as_before(name: str, code: str) -> None:
    fn = parse(f"buffer @x: f32 field (8)\nfunc f(%lo: i32, %hi: i32):{code}")
    checked = check_bounds(fn)
    hoisted = hoist_checks(checked)
    verify(hoisted, Form.CHECKED)
    inner = [op for op in walk(hoisted.region) if isinstance(op, For)][-1]
    assert any(isinstance(op, Check) for op in walk(inner.body)) == (name in ("backwards", "far from below"))
    outcomes: list[list[object]] = []
    for lo in (0, 1, 3, 7, 8, -1, -3, MOST, MOST - 2, LEAST, LEAST + 1, LEAST + 3, 1 << 16, 3 << 30):
        for hi in (0, 1, 2, 4, 9):
            found: list[object] = []
            for which in (checked, hoisted):
                memory = DictMemory()
                try:
                    interpret(which, ((lo - LEAST) % 2**32 + LEAST, hi), memory)
                    found.append(repr(memory.cells))
                except KernelIndexError as error:
                    found.append(error.span.line)
            assert found[0] == found[1], (lo, hi)
            outcomes.append(found)
    assert len({repr(found) for found in outcomes}) > 2


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_same_launches_fail_at_the_same_line(code: str) -> None:
    fn = parse(
        "buffer @x: f32 field (8)\nbuffer @v: f32[3] field (1)\nbuffer @p: f32 array (?)\n"
        f"func f(%lo: i32, %hi: i32):{code}"
    )
    checked = check_bounds(fn)
    hoisted = hoist_checks(checked)
    verify(hoisted, Form.CHECKED)
    array = next((b for op in walk(fn.region) if (b := getattr(op, "buffer", None)) and b.name == "p"), None)
    refused = 0
    for lo in (-2, -1, 0, 1, 2, 5, 9):
        for hi in (-3, 0, 1, 4, 7, 8, 9):
            outcomes: list[object] = []
            for which in (checked, hoisted):
                memory = DictMemory({array: [0.0] * 6} if array is not None else {})
                try:
                    interpret(which, (lo, hi), memory)
                    outcomes.append(repr(memory.cells))
                except KernelIndexError as error:
                    outcomes.append(error.span.line)
                    refused += 1
            assert outcomes[0] == outcomes[1], (lo, hi)
    assert refused


def loops_with_checks(text: str) -> list[bool]:
    """For each loop of the result, whether a check stands in it."""
    new = hoist_checks(check_bounds(parse(text)))
    found = [op for op in walk(new.region) if isinstance(op, For)]
    return [any(isinstance(inner, Check) for inner in walk(op.body)) for op in found]


HEAD = "buffer @x: f32 field (8)\nbuffer @k: i32 field (8)\nfunc f(%n: i32, %m: i32):\n"


def test_a_check_moves_as_far_as_it_can() -> None:
    assert loops_with_checks(
        HEAD
        + """
  for %i: i32 in 0i32 .. %n:
    for %j: i32 in 0i32 .. %m:
      store @x[%j], 1.0f32
  for %p: i32 in 0i32 .. %n:
    for %q: i32 in 0i32 .. %p:
      store @x[%q], 1.0f32
"""
    ) == [False, False, True, False]


@pytest.mark.parametrize(
    "inside",
    [
        '    print "turn ", %i\n    store @x[%i], 1.0f32\n',
        "    %s: i32 = load @k[%i]\n    store @x[%s], 1.0f32\n    store @k[%i], 1i32\n",
        "    %t: u1 = lt %i, %m\n    if %t:\n      store @x[%i], 1.0f32\n",
        "    while:\n      %w: u1 = lt %n, %m\n      yield %w\n    do:\n      pass\n    store @x[%i], 1.0f32\n",
    ],
    ids=["prints", "an index from memory", "under a condition", "after a while"],
)
def test_what_only_some_turns_check_or_what_can_be_seen_stays(inside: str) -> None:
    assert loops_with_checks(f"{HEAD}  for %i: i32 in 0i32 .. %n:\n{inside}") == [True]


def test_without_checks_nothing_changes() -> None:
    stays(hoist_checks, HEAD + "  for %i: i32 in 0i32 .. 8i32:\n    store @x[%i], 1.0f32\n", Form.CHECKED)
