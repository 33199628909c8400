"""What folding computes, and what it must leave alone."""

from __future__ import annotations

import math

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.fold import fold
from tinote.ir.build import Builder
from tinote.ir.nodes import Function, Lit, Region
from tinote.ir.parse import parse
from tinote.ir.text import equal, show


def fast(fn: Function) -> Function:
    return fold(fn, fast_math=True)


def expression(code: str) -> str:
    """A function whose last line is returned."""
    lines = "\n".join(f"  {line}" for line in code.strip().splitlines())
    return f"func f(%x: f32, %y: f32, %i: i32, %j: i32, %k: i64, %u: u8, %c: u1, %d: u1):\n{lines}\n"


EXACT = [
    ("%a: i32 = add 2i32, 3i32\nreturn %a", "return 5i32"),
    ("%a: i32 = add 2147483647i32, 1i32\nreturn %a", "return -2147483648i32"),
    ("%a: f32 = add 16777216.0f32, 1.0f32\nreturn %a", "return 16777216.0f32"),
    ("%a: i32 = floordiv -7i32, 2i32\nreturn %a", "return -4i32"),
    ("%a: u1 = lt 1i32, 2i32\nreturn %a", "return true"),
    ("%a: i32 = cast 1e10f32\nreturn %a", "return 2147483647i32"),
    ("%a: i32 = add %i, 0i32\nreturn %a", "return %i"),
    ("%a: i32 = add 0i32, %i\nreturn %a", "return %i"),
    ("%a: f32 = add %x, -0.0f32\nreturn %a", "return %x"),
    ("%a: f32 = sub %x, 0.0f32\nreturn %a", "return %x"),
    ("%a: f32 = sub -0.0f32, %x\nreturn %a", "%a: f32 = neg %x\nreturn %a"),
    ("%a: f32 = mul 1.0f32, %x\nreturn %a", "return %x"),
    ("%a: f32 = mul %x, -1.0f32\nreturn %a", "%a: f32 = neg %x\nreturn %a"),
    ("%a: i32 = mul %i, 0i32\nreturn %a", "return 0i32"),
    ("%a: f32 = div %x, 1.0f32\nreturn %a", "return %x"),
    ("%a: i32 = sub %i, %i\nreturn %a", "return 0i32"),
    ("%a: i32 = add %i, 1i32\n%b: i32 = add %a, 2i32\nreturn %b", "%a: i32 = add %i, 1i32\n%b: i32 = add %i, 3i32\nreturn %b"),  # noqa: E501
    ("%a: i32 = sub %i, 1i32\n%b: i32 = add %a, 1i32\nreturn %b", "%a: i32 = sub %i, 1i32\nreturn %i"),
    ("%a: i32 = sub %i, %j\n%b: i32 = add %a, %j\nreturn %b", "%a: i32 = sub %i, %j\nreturn %i"),
    ("%a: i32 = add %i, %j\n%b: i32 = sub %a, %i\nreturn %b", "%a: i32 = add %i, %j\nreturn %j"),
    ("%a: i32 = mul %i, 3i32\n%b: i32 = mul %a, 4i32\nreturn %b", "%a: i32 = mul %i, 3i32\n%b: i32 = mul %i, 12i32\nreturn %b"),  # noqa: E501
    ("%a: f32 = neg %x\n%b: f32 = neg %a\nreturn %b", "%a: f32 = neg %x\nreturn %x"),
    ("%a: f32 = neg %x\n%b: f32 = add %y, %a\nreturn %b", "%a: f32 = neg %x\n%b: f32 = sub %y, %x\nreturn %b"),
    ("%a: f32 = neg %x\n%b: f32 = mul %a, 2.0f32\nreturn %b", "%a: f32 = neg %x\n%b: f32 = mul %x, -2.0f32\nreturn %b"),
    ("%a: f32 = pow %x, 2.0f32\nreturn %a", "%a: f32 = mul %x, %x\nreturn %a"),
    ("%a: i32 = pow %i, 3i32\nreturn %a", "%s: i32 = mul %i, %i\n%a: i32 = mul %s, %i\nreturn %a"),
    ("%a: i32 = min %i, 7i32\n%b: i32 = min %a, 5i32\nreturn %b", "%a: i32 = min %i, 7i32\n%b: i32 = min %i, 5i32\nreturn %b"),  # noqa: E501
    ("%a: i32 = and %i, -1i32\nreturn %a", "return %i"),
    ("%a: u8 = and %u, 255u8\nreturn %a", "return %u"),
    ("%a: i32 = xor %i, %i\nreturn %a", "return 0i32"),
    ("%a: u1 = eq %i, %i\nreturn %a", "return true"),
    ("%a: u1 = lt 3i32, %i\nreturn %a", "%a: u1 = gt %i, 3i32\nreturn %a"),
    ("%a: u1 = not %c\n%b: u1 = not %a\nreturn %b", "%a: u1 = not %c\nreturn %c"),
    ("%a: u1 = lt %i, %j\n%b: u1 = not %a\nreturn %b", "%a: u1 = lt %i, %j\n%b: u1 = ge %i, %j\nreturn %b"),
    ("%a: u1 = eq %x, %y\n%b: u1 = not %a\nreturn %b", "%a: u1 = eq %x, %y\n%b: u1 = ne %x, %y\nreturn %b"),
    ("%a: f32 = select %c, %x, %x\nreturn %a", "return %x"),
    ("%a: f32 = strong_mul %x, 1.0f32\nreturn %a", "return %x"),
    ("%a: f32 = strong_mul 0.0f32, %x\nreturn %a", "return 0.0f32"),
    ("%a: f32 = strong_mul %x, 3.0f32\nreturn %a", "%a: f32 = mul %x, 3.0f32\nreturn %a"),
    ("%a: f32 = strong_mul 3.0f32, %x\nreturn %a", "%a: f32 = mul %x, 3.0f32\nreturn %a"),
    ("%a: f32 = strong_mul %x, inf_f32\nreturn %a", "%a: f32 = strong_mul %x, inf_f32\nreturn %a"),
    ("%a: f32 = select true, %x, %y\nreturn %a", "return %x"),
    ("%a: u1 = select %c, %d, false\nreturn %a", "%a: u1 = and %c, %d\nreturn %a"),
    ("%a: u1 = not %c\n%b: f32 = select %a, %x, %y\nreturn %b", "%a: u1 = not %c\n%b: f32 = select %c, %y, %x\nreturn %b"),  # noqa: E501
    ("%a: i64 = cast %i\n%b: i32 = cast %a\nreturn %b", "%a: i64 = cast %i\nreturn %i"),
    ("%a: i32 = cast %c\n%b: u1 = cast %a\nreturn %b", "%a: i32 = cast %c\nreturn %c"),
    ("%a: i32 = cast %k\n%b: u8 = cast %a\nreturn %b", "%a: i32 = cast %k\n%b: u8 = cast %k\nreturn %b"),
    ("%a: f64 = cast %i\n%b: i64 = cast %a\nreturn %b", "%a: f64 = cast %i\n%b: i64 = cast %i\nreturn %b"),
    ("%a: f32[2] = pack %x, %y\n%b: f32 = extract %a, 1i32\nreturn %b", "%a: f32[2] = pack %x, %y\nreturn %y"),
    (
        "%a: f32[2] = pack %x, %y\n%b: f32[2] = insert %a, 0i32, %y\n%e: f32 = extract %b, 0i32\nreturn %e",
        "%a: f32[2] = pack %x, %y\n%b: f32[2] = pack %y, %y\nreturn %y",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), EXACT, ids=[before for before, _ in EXACT])
def test_what_holds_exactly_is_used(before: str, after: str) -> None:
    becomes(fold, expression(before), expression(after))


FAST = [
    ("%a: f32 = add %x, 0.0f32\nreturn %a", "return %x"),
    ("%a: f32 = sub 0.0f32, %x\nreturn %a", "%a: f32 = neg %x\nreturn %a"),
    ("%a: f32 = mul %x, 3.0f32\n%b: f32 = mul %a, 2.0f32\nreturn %b", "%a: f32 = mul %x, 3.0f32\n%b: f32 = mul %x, 6.0f32\nreturn %b"),  # noqa: E501
    ("%a: f32 = add %x, 1.0f32\n%b: f32 = add %a, 2.0f32\nreturn %b", "%a: f32 = add %x, 1.0f32\n%b: f32 = add %x, 3.0f32\nreturn %b"),  # noqa: E501
    ("%a: f32 = sub %x, %y\n%b: f32 = neg %a\nreturn %b", "%a: f32 = sub %x, %y\n%b: f32 = sub %y, %x\nreturn %b"),
    ("%a: f32 = pow %x, 3.0f32\nreturn %a", "%s: f32 = mul %x, %x\n%a: f32 = mul %s, %x\nreturn %a"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FAST, ids=[before for before, _ in FAST])
def test_what_rounds_differently_needs_fast_math(before: str, after: str) -> None:
    stays(fold, expression(before))
    becomes(fast, expression(before), expression(after))


NEVER = [
    "%a: f32 = mul %x, 0.0f32\nreturn %a",
    "%a: f32 = sub %x, %x\nreturn %a",
    "%a: f32 = div %x, %x\nreturn %a",
    "%a: u1 = eq %x, %x\nreturn %a",
    "%a: u1 = lt %x, %y\n%b: u1 = not %a\nreturn %b",
    "%a: i32 = floordiv 1i32, 0i32\nreturn %a",
    "%a: i32 = floordiv 0i32, %i\nreturn %a",
    "%a: f32 = cast %i\n%b: i32 = cast %a\nreturn %b",
    "%a: f64 = cast %i\n%b: u8 = cast %a\nreturn %b",
    "%a: i32 = cast %x\n%b: f32 = cast %a\nreturn %b",
    "%a: f32 = pow %x, 0.5f32\nreturn %a",
]


@pytest.mark.parametrize("code", NEVER)
def test_what_is_wrong_for_some_value_is_never_done(code: str) -> None:
    stays(fold, expression(code))
    stays(fast, expression(code))


def test_two_large_factors_do_not_overflow_into_one() -> None:
    stays(fast, expression("%a: f32 = mul %x, 1e30f32\n%b: f32 = mul %a, 1e30f32\nreturn %b"))


def test_the_sign_of_zero_is_kept_apart() -> None:
    b = Builder()
    f32 = parse("func f(%x: f32):").region.params[0].type
    with b.region() as top:
        yields = [Lit(0.0, f32), Lit(-0.0, f32)]  # type: ignore[arg-type]
    fn = fold(Function("f", Region((), tuple(top.body), tuple(yields))))
    assert [math.copysign(1.0, y.value) for y in fn.region.yields if isinstance(y, Lit)] == [1.0, -1.0]


def test_a_branch_that_is_decided_is_inlined() -> None:
    becomes(
        fold,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %t: u1 = lt 1i32, 2i32
          %a: i32 = if %t:
            store @x[%n], 1.0f32
            %b: i32 = add %n, 1i32
            yield %b
          else:
            yield 0i32
          return %a
        """,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          store @x[%n], 1.0f32
          %b: i32 = add %n, 1i32
          return %b
        """,
    )


def test_inside_a_branch_its_condition_is_known() -> None:
    becomes(
        fold,
        """
        buffer @x: f32 field (8)
        func f(%c: u1):
          %n: u1 = not %c
          if %c:
            if %c:
              store @x[0i32], 1.0f32
            if %n:
              store @x[1i32], 1.0f32
          else:
            if %c:
              store @x[2i32], 1.0f32
            if %n:
              store @x[3i32], 1.0f32
        """,
        """
        buffer @x: f32 field (8)
        func f(%c: u1):
          %n: u1 = not %c
          if %c:
            store @x[0i32], 1.0f32
          else:
            store @x[3i32], 1.0f32
        """,
    )


def test_a_branch_that_only_chooses_becomes_select() -> None:
    becomes(
        fold,
        """
        func f(%c: u1, %x: f32, %y: f32):
          %a: f32, %b: u1, %d: f32 = if %c:
            yield %x, true, %y
          else:
            yield %y, false, %y
          return %a, %b, %d
        """,
        """
        func f(%c: u1, %x: f32, %y: f32):
          %a: f32 = select %c, %x, %y
          return %a, %c, %y
        """,
    )


def test_loops_that_turn_once_or_never() -> None:
    becomes(
        fold,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %s: f32 = for %i: i32 in 3i32 .. 4i32 carrying %q: f32 = 1.0f32:
            %a: f32 = load @x[%i]
            %b: f32 = add %q, %a
            yield %b
          %t: f32 = for %j: i32 in 3i32 .. 3i32 carrying %r: f32 = %s:
            %c: f32 = load @x[%j]
            %d: f32 = add %r, %c
            yield %d
          %u: f32 = for %k: i32 in %n .. %n carrying %v: f32 = %t:
            %e: f32 = mul %v, %v
            yield %e
          return %u
        """,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %a: f32 = load @x[3i32]
          %b: f32 = add %a, 1.0f32
          return %b
        """,
    )


def test_what_a_loop_carries_unchanged_is_not_carried() -> None:
    becomes(
        fold,
        """
        buffer @x: f32 field (8)
        func f(%n: i32, %y: f32):
          %p: f32, %q: f32, %r: f32 = for %i: i32 in 0i32 .. %n carrying %a: f32 = %y, %b: f32 = 0.0f32, %c: f32 = 2.0f32:
            %d: f32 = mul %a, %c
            %e: f32 = add %b, %d
            yield %a, %e, 2.0f32
          %z: f32, %w: i32 = while carrying %g: f32 = %y, %k: i32 = 0i32:
            %l: u1 = lt %k, %n
            yield %l
          do %h: f32, %m: i32:
            store @x[%m], %h
            %o: i32 = add %m, 1i32
            yield %h, %o
          return %p, %q, %r, %z
        """,  # noqa: E501
        """
        buffer @x: f32 field (8)
        func f(%n: i32, %y: f32):
          %q: f32 = for %i: i32 in 0i32 .. %n carrying %b: f32 = 0.0f32:
            %d: f32 = mul %y, 2.0f32
            %e: f32 = add %b, %d
            yield %e
          %w: i32 = while carrying %k: i32 = 0i32:
            %l: u1 = lt %k, %n
            yield %l
          do %m: i32:
            store @x[%m], %y
            %o: i32 = add %m, 1i32
            yield %o
          return %y, %q, 2.0f32, %y
        """,
    )


def test_checks_that_hold_and_known_extents_go() -> None:
    becomes(
        fold,
        """
        buffer @x: f32 array (?, 3)
        func f():
          %t: u1 = le 1i32, 1i32
          check assert "never" %t
          %n: i32 = extent @x
          %m: i32 = extent @x, 1
          return %n, %m
        """.replace("extent @x\n", "extent @x, 0\n"),
        """
        buffer @x: f32 array (?, 3)
        func f():
          %n: i32 = extent @x, 0
          return %n, 3i32
        """,
    )


def test_locations_and_origins_survive() -> None:
    fn = parse("func f(%i: i32):\n  %a: i32 = add %i, 1i32\n  %b: i32 = add %a, 2i32\n  return %b\n")
    new = fold(fn)
    assert [op.loc for op in new.region.body] == [op.loc for op in fn.region.body]
    assert equal(new, fold(new)) and show(new)
