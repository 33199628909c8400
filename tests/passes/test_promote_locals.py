"""Local variables become values."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.lowering.promote_locals import promote_locals
from tinote.errors import CompilerBug
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse
from tinote.ir.verify import Form, verify


def promoted(before: str, after: str) -> None:
    becomes(promote_locals, before, after, Form.TYPED, Form.PROMOTED)


def test_straight_line() -> None:
    promoted(
        """
        func f(%x: f32):
          %s: ref f32 = local 1.0f32
          %z: ref i32 = local
          %a: f32 = get %s
          %b: f32 = add %a, %x
          set %s, %b
          %c: f32 = get %s
          %d: i32 = get %z
          return %c, %d
        """,
        """
        func f(%x: f32):
          %b: f32 = add 1.0f32, %x
          return %b, 0i32
        """,
    )


def test_a_loop_carries_only_what_it_assigns() -> None:
    promoted(
        """
        func f(%n: i32, %x: f32):
          %s: ref f32 = local 0.0f32
          %k: ref f32 = local %x
          %own: ref f32 = local 0.0f32
          for %i: i32 in 0i32 .. %n:
            %t: ref f32 = local 2.0f32
            %a: f32 = get %s
            %b: f32 = get %k
            %c: f32 = get %t
            %d: f32 = mul %b, %c
            set %t, %d
            %e: f32 = get %t
            %g: f32 = add %a, %e
            set %s, %g
          %r: f32 = get %s
          %o: f32 = get %own
          return %r, %o
        """,
        """
        func f(%n: i32, %x: f32):
          %s: f32 = for %i: i32 in 0i32 .. %n carrying %a: f32 = 0.0f32:
            %d: f32 = mul %x, 2.0f32
            %g: f32 = add %a, %d
            yield %g
          return %s, 0.0f32
        """,
    )


def test_a_branch_yields_what_its_sides_leave_different() -> None:
    promoted(
        """
        func f(%c: u1, %x: f32):
          %s: ref f32 = local 0.0f32
          %t: ref f32 = local 1.0f32
          %u: ref f32 = local 2.0f32
          if %c:
            set %s, %x
            set %t, 5.0f32
            set %u, %x
            set %u, 2.0f32
          else:
            set %t, 5.0f32
          %a: f32 = get %s
          %b: f32 = get %t
          %d: f32 = get %u
          return %a, %b, %d
        """,
        """
        func f(%c: u1, %x: f32):
          %a: f32 = if %c:
            yield %x
          else:
            yield 0.0f32
          return %a, 5.0f32, 2.0f32
        """,
    )


def test_nested_loops_and_a_while() -> None:
    promoted(
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %s: ref i32 = local 0i32
          %k: ref i32 = local %n
          while:
            %a: i32 = get %k
            %b: u1 = gt %a, 0i32
            yield %b
          do:
            for %i: i32 in 0i32 .. %n:
              %c: i32 = get %s
              %t: u1 = lt %c, 100i32
              if %t:
                %d: i32 = add %c, %i
                set %s, %d
            %e: i32 = get %k
            %g: i32 = sub %e, 1i32
            set %k, %g
          %r: i32 = get %s
          return %r
        """,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %s: i32, %k: i32 = while carrying %s1: i32 = 0i32, %k1: i32 = %n:
            %b: u1 = gt %k1, 0i32
            yield %b
          do %s2: i32, %k2: i32:
            %s3: i32 = for %i: i32 in 0i32 .. %n carrying %c: i32 = %s2:
              %t: u1 = lt %c, 100i32
              %s4: i32 = if %t:
                %d: i32 = add %c, %i
                yield %d
              else:
                yield %c
              yield %s4
            %g: i32 = sub %k2, 1i32
            yield %s3, %g
          return %s
        """,
    )


def test_components_become_insert_and_extract() -> None:
    promoted(
        """
        func f(%i: i32, %x: f32):
          %v: ref f32[2] = local
          set %v[%i], %x
          %a: f32 = get %v[0i32]
          %w: f32[2] = get %v
          return %a
        """,
        """
        func f(%i: i32, %x: f32):
          %z: f32[2] = pack 0.0f32, 0.0f32
          %w: f32[2] = insert %z, %i, %x
          %a: f32 = extract %w, 0i32
          return %a
        """,
    )


def test_values_that_are_carried_already_stay() -> None:
    promoted(
        """
        func f(%n: i32):
          %s: ref i32 = local 0i32
          %r: i32 = for %i: i32 in 0i32 .. %n carrying %q: i32 = 1i32:
            set %s, %q
            %p: i32 = add %q, %i
            yield %p
          %t: i32 = get %s
          return %r, %t
        """,
        """
        func f(%n: i32):
          %r: i32, %t: i32 = for %i: i32 in 0i32 .. %n carrying %q: i32 = 1i32, %s: i32 = 0i32:
            %p: i32 = add %q, %i
            yield %p, %q
          return %r, %t
        """,
    )


def test_a_condition_that_assigns_reaches_the_body() -> None:
    """The condition draws a number: its counter must go on in the body."""
    fn = parse(
        """
        func f(%n: i32):
          %k: ref i32 = local 0i32
          %s: ref i32 = local 0i32
          while:
            %a: i32 = get %k
            %b: i32 = add %a, 1i32
            set %k, %b
            %c: u1 = lt %b, %n
            yield %c
          do:
            %d: i32 = get %k
            %e: i32 = get %s
            %g: i32 = mul %e, 10i32
            %h: i32 = add %g, %d
            set %s, %h
          %p: i32 = get %k
          %q: i32 = get %s
          return %p, %q
        """
    )
    new = promote_locals(fn)
    verify(new, Form.PROMOTED)
    for n in range(6):
        assert interpret(new, (n,), DictMemory()) == interpret(fn, (n,), DictMemory())
    assert interpret(new, (4,), DictMemory()) == (4, 123)


def test_a_cell_shared_by_parallel_iterations_is_a_fault_of_the_compiler() -> None:
    fn = parse(
        """
        func f(%n: i32):
          %s: ref i32 = local 0i32
          for parallel %i: i32 in 0i32 .. %n:
            set %s, %i
        """
    )
    with pytest.raises(CompilerBug, match="promote_locals"):
        promote_locals(fn)


def test_without_cells_nothing_changes() -> None:
    stays(promote_locals, "func f(%n: i32):\n  %a: i32 = add %n, 1i32\n  return %a\n", Form.TYPED)
