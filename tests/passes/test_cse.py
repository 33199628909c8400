"""The same thing is computed once."""

from __future__ import annotations

from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.cse import cse


def test_repeated_computations_are_shared_where_they_are_in_scope() -> None:
    becomes(
        cse,
        """
        buffer @x: f32 array (?)
        func f(%a: f32, %b: f32, %c: u1, %n: i32):
          %p: f32 = mul %a, %b
          if %c:
            %q: f32 = mul %b, %a
            %r: f32 = add %q, 1.0f32
            store @x[0i32], %r
          else:
            %s: f32 = add %p, 1.0f32
            store @x[1i32], %s
          %t: f32 = add %p, 1.0f32
          %e: i32 = extent @x, 0
          for %i: i32 in 0i32 .. %n:
            %u: f32 = add %p, 1.0f32
            %g: i32 = extent @x, 0
            store @x[%g], %u
          return %t, %e
        """,
        """
        buffer @x: f32 array (?)
        func f(%a: f32, %b: f32, %c: u1, %n: i32):
          %p: f32 = mul %a, %b
          if %c:
            %r: f32 = add %p, 1.0f32
            store @x[0i32], %r
          else:
            %s: f32 = add %p, 1.0f32
            store @x[1i32], %s
          %t: f32 = add %p, 1.0f32
          %e: i32 = extent @x, 0
          for %i: i32 in 0i32 .. %n:
            store @x[%e], %t
          return %t, %e
        """,
    )


def test_a_passed_check_is_not_repeated() -> None:
    becomes(
        cse,
        """
        func f(%c: u1, %d: u1):
          if %d:
            check assert "in the branch" %c
          check assert "first" %c
          check assert "second" %c
          if %d:
            check assert "third" %c
        """,
        """
        func f(%c: u1, %d: u1):
          if %d:
            check assert "in the branch" %c
          check assert "first" %c
          if %d:
            pass
        """,
    )


def test_what_only_looks_alike_stays() -> None:
    stays(
        cse,
        """
        buffer @x: f32 field (8)
        func f(%a: f32, %b: f32, %i: i32):
          %p: f32 = sub %a, %b
          %q: f32 = sub %b, %a
          %r: f32 = mul %a, 0.0f32
          %s: f32 = mul %a, -0.0f32
          %t: i64 = cast %i
          %u: f64 = cast %i
          %v: f32 = load @x[%i]
          %w: f32 = load @x[%i]
          %y: f32 = min %a, %b
          %z: f32 = min %b, %a
          return %p, %q, %r, %s, %t, %u, %v, %w, %y, %z
        """,
    )
