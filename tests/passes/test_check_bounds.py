"""A check stands before what is not proved, and nowhere else."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.checks.check_bounds import check_bounds
from tinote.errors import KernelIndexError, KernelZeroDivisionError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse
from tinote.ir.verify import Form, verify


def checked(before: str, after: str) -> None:
    becomes(check_bounds, before, after, Form.SCALAR, Form.CHECKED)


def test_only_the_side_that_is_not_proved_is_tested() -> None:
    checked(
        """
        buffer @x: f32 field (64)
        func f(%n: i32, %m: i64):
          for %i: i32 in 0i32 .. 64i32:
            %j: i32 = add %i, 1i32
            %k: i32 = sub %i, 1i32
            %a: f32 = load @x[%j]
            store @x[%k], %a
            store @x[%i], %a
          for %l: i32 in 0i32 .. %n:
            store @x[%l], 1.0f32
          atomic add @x[%m], 1.0f32
        """,
        """
        buffer @x: f32 field (64)
        func f(%n: i32, %m: i64):
          for %i: i32 in 0i32 .. 64i32:
            %j: i32 = add %i, 1i32
            %k: i32 = sub %i, 1i32
            %1: u1 = lt %j, 64i32
            check bounds "x" %1, %j, 64i32
            %a: f32 = load @x[%j]
            %2: u1 = ge %k, 0i32
            check bounds "x" %2, %k, 64i32
            store @x[%k], %a
            store @x[%i], %a
          for %l: i32 in 0i32 .. %n:
            %3: u1 = lt %l, 64i32
            check bounds "x" %3, %l, 64i32
            store @x[%l], 1.0f32
          %4: u1 = ge %m, 0i64
          %5: u1 = lt %m, 64i64
          %6: u1 = and %4, %5
          check bounds "x" %6, %m, 64i64
          atomic add @x[%m], 1.0f32
        """,
    )


def test_what_was_tested_is_not_tested_again_in_scope() -> None:
    checked(
        """
        buffer @x: f32[2] field (64)
        buffer @y: f32 field (64)
        buffer @p: f32 array (?)
        func f(%n: i32, %c: u1):
          if %c:
            store @y[%n], 0.0f32
          %a: f32 = load @x[%n][0i32]
          %b: f32 = load @x[%n][1i32]
          if %c:
            store @y[%n], %a
          store @p[%n], %a
          store @p[%n], %b
        """,
        """
        buffer @x: f32[2] field (64)
        buffer @y: f32 field (64)
        buffer @p: f32 array (?)
        func f(%n: i32, %c: u1):
          if %c:
            %1: u1 = ge %n, 0i32
            %2: u1 = lt %n, 64i32
            %3: u1 = and %1, %2
            check bounds "y" %3, %n, 64i32
            store @y[%n], 0.0f32
          %4: u1 = ge %n, 0i32
          %5: u1 = lt %n, 64i32
          %6: u1 = and %4, %5
          check bounds "x" %6, %n, 64i32
          %a: f32 = load @x[%n][0i32]
          %b: f32 = load @x[%n][1i32]
          if %c:
            store @y[%n], %a
          %e: i32 = extent @p, 0
          %7: u1 = ge %n, 0i32
          %8: u1 = lt %n, %e
          %9: u1 = and %7, %8
          check bounds "p" %9, %n, %e
          store @p[%n], %a
          store @p[%n], %b
        """,
    )


def test_run_time_components_and_second_axes() -> None:
    checked(
        """
        buffer @m: f32[3] field (8, 8)
        func f(%n: i32, %a: f32):
          for parallel %i: i32 in 0i32 .. 8i32:
            %v: f32[2] = pack %a, %a
            %b: f32 = extract %v, %n
            store @m[%i, %n][%n], %b
            %w: f32[2] = insert %v, %n, %b
            %c: f32 = extract %w, %i
            store @m[%i, %i][0i32], %c
        """,
        """
        buffer @m: f32[3] field (8, 8)
        func f(%n: i32, %a: f32):
          for parallel %i: i32 in 0i32 .. 8i32:
            %v: f32[2] = pack %a, %a
            %1: u1 = ge %n, 0i32
            %2: u1 = lt %n, 2i32
            %3: u1 = and %1, %2
            check bounds "v" %3, %n, 2i32
            %b: f32 = extract %v, %n
            %4: u1 = ge %n, 0i32
            %5: u1 = lt %n, 8i32
            %6: u1 = and %4, %5
            check bounds "m" axis 1 %6, %n, 8i32
            %7: u1 = ge %n, 0i32
            %8: u1 = lt %n, 3i32
            %9: u1 = and %7, %8
            check bounds "m" axis 2 %9, %n, 3i32
            store @m[%i, %n][%n], %b
            %w: f32[2] = insert %v, %n, %b
            %10: u1 = lt %i, 2i32
            check bounds "w" %10, %i, 2i32
            %c: f32 = extract %w, %i
            store @m[%i, %i][0i32], %c
        """,
    )


def test_divisions() -> None:
    checked(
        """
        buffer @x: i32 field (8)
        func f(%n: i32, %m: i32, %a: f32, %b: f32):
          %p: i32 = floordiv %n, %m
          %q: i32 = mod %n, %m
          %r: i32 = raw_mod %n, 3i32
          %s: i32 = raw_div %n, 0i32
          %t: f32 = floordiv %a, %b
          for %i: i32 in 0i32 .. 8i32:
            %d: i32 = add %i, 1i32
            %u: i32 = mod %n, %d
            %v: i32 = mod %n, %i
            %w: u1 = ne %n, 0i32
            if %w:
              %y: i32 = floordiv %i, %n
              store @x[%i], %y
            print %u, %v
          print %p, %q, %r, %s, %t
        """,
        """
        buffer @x: i32 field (8)
        func f(%n: i32, %m: i32, %a: f32, %b: f32):
          %1: u1 = ne %m, 0i32
          check division "//" %1, %n
          %p: i32 = floordiv %n, %m
          %q: i32 = mod %n, %m
          %r: i32 = raw_mod %n, 3i32
          check division "//" false, %n
          %s: i32 = raw_div %n, 0i32
          %t: f32 = floordiv %a, %b
          for %i: i32 in 0i32 .. 8i32:
            %d: i32 = add %i, 1i32
            %u: i32 = mod %n, %d
            %2: u1 = ne %i, 0i32
            check division "%" %2, %n
            %v: i32 = mod %n, %i
            %w: u1 = ne %n, 0i32
            if %w:
              %y: i32 = floordiv %i, %n
              store @x[%i], %y
            print %u, %v
          print %p, %q, %r, %s, %t
        """,
    )


def test_what_is_proved_needs_no_check() -> None:
    stays(
        check_bounds,
        """
        buffer @x: f32 field (64)
        buffer @p: f32 array (?)
        func f(%n: i32):
          %m: i32 = extent @p, 0
          for parallel %i: i32 in 0i32 .. %m:
            %a: f32 = load @p[%i]
            %k: i32 = mod %n, 64i32
            store @x[%k], %a
        """,
    )


@pytest.mark.parametrize(
    ("n", "error"), [(3, None), (8, "index 8 is out of range for axis 0 of 'x', which has length 8"), (-1, "index -1")]
)
def test_the_check_stops_before_the_access(n: int, error: str | None) -> None:
    fn = parse("buffer @x: f32 field (8)\nfunc f(%n: i32):\n  store @x[0i32], 1.0f32\n  store @x[%n], 2.0f32\n")
    new = check_bounds(fn)
    verify(new, Form.CHECKED)
    memory = DictMemory()
    if error is None:
        interpret(new, (n,), memory)
        return
    with pytest.raises(KernelIndexError) as caught:
        interpret(new, (n,), memory)
    assert error in caught.value.message and caught.value.span.line == 4


def test_a_division_by_zero_is_located() -> None:
    new = check_bounds(parse("func f(%n: i32):\n  %a: i32 = floordiv 7i32, %n\n  return %a\n"))
    assert interpret(new, (-2,), DictMemory()) == (-4,)
    with pytest.raises(KernelZeroDivisionError) as caught:
        interpret(new, (0,), DictMemory())
    assert caught.value.span.line == 2
