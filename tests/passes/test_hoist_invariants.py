"""What every iteration computes alike is computed once; what may fault stays where it is."""

from __future__ import annotations

from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.hoist_invariants import hoist_invariants


def test_invariants_leave_nested_loops() -> None:
    becomes(
        hoist_invariants,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32, %a: f32):
          for parallel %i: i32 in 0i32 .. 64i32:
            %p: f32 = exp %a
            for %j: i32 in 0i32 .. 64i32:
              %b: f32 = load @x[%i]
              %c: f32 = mul %b, %p
              for %k: i32 in 0i32 .. %n:
                %d: f32 = sin %c
                %e: f32 = cos %a
                %g: f32 = add %d, %e
                store @y[%k], %g
        """,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32, %a: f32):
          for parallel %i: i32 in 0i32 .. 64i32:
            %p: f32 = exp %a
            %b: f32 = load @x[%i]
            %c: f32 = mul %b, %p
            %d: f32 = sin %c
            %e: f32 = cos %a
            %g: f32 = add %d, %e
            for %j: i32 in 0i32 .. 64i32:
              for %k: i32 in 0i32 .. %n:
                store @y[%k], %g
        """,
    )


def test_inner_parallel_loops_and_whiles() -> None:
    becomes(
        hoist_invariants,
        """
        buffer @u: f32 field ()
        buffer @y: f32 field (64, 64)
        func f(%n: i32):
          for parallel %i: i32 in 0i32 .. %n:
            for parallel %j: i32 in 0i32 .. %n:
              %a: f32 = load @u[]
              %k: i32 = mul %i, 2i32
              store @y[%k, %j], %a
            while:
              %b: f32 = load @y[%i, %i]
              %c: f32 = load @u[]
              %t: u1 = lt %b, %c
              yield %t
            do:
              %d: f32 = load @y[%n, %n]
              %e: i32 = add %i, 1i32
              print "turn ", %d, %e
        """,
        """
        buffer @u: f32 field ()
        buffer @y: f32 field (64, 64)
        func f(%n: i32):
          for parallel %i: i32 in 0i32 .. %n:
            %a: f32 = load @u[]
            %k: i32 = mul %i, 2i32
            for parallel %j: i32 in 0i32 .. %n:
              store @y[%k, %j], %a
            %b: f32 = load @y[%i, %i]
            %c: f32 = load @u[]
            %t: u1 = lt %b, %c
            %e: i32 = add %i, 1i32
            while:
              yield %t
            do:
              %d: f32 = load @y[%n, %n]
              print "turn ", %d, %e
        """,
    )


def test_what_may_fault_or_change_stays() -> None:
    stays(
        hoist_invariants,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32, %m: i32, %t: u1):
          for %j: i32 in 0i32 .. %n:
            %a: f32 = load @x[%m]
            %b: i32 = floordiv %n, %m
            %c: i32 = mod %n, %m
            %d: f32 = load @y[0i32]
            %v: f32 = load @x[64i32]
            print %a, %b, %c, %d, %v
            store @y[%j], 1.0f32
          for %k: i32 in 0i32 .. 8i32:
            check assert "so far" %t
            %e: f32 = load @x[%m]
            print %e
          for %l: i32 in 0i32 .. 8i32:
            if %t:
              %g: f32 = load @x[%m]
              print %g
        """,
    )


def test_division_by_a_literal_moves() -> None:
    becomes(
        hoist_invariants,
        """
        buffer @x: i32 field (64)
        func f(%n: i32):
          for %j: i32 in 0i32 .. %n:
            %a: i32 = floordiv %n, 3i32
            %b: i32 = floordiv %n, 0i32
            store @x[%j], %a
            print %b
        """,
        """
        buffer @x: i32 field (64)
        func f(%n: i32):
          %a: i32 = floordiv %n, 3i32
          for %j: i32 in 0i32 .. %n:
            %b: i32 = floordiv %n, 0i32
            store @x[%j], %a
            print %b
        """,
    )


def test_nothing_leaves_an_outermost_parallel_loop() -> None:
    stays(
        hoist_invariants,
        """
        buffer @x: f32 field (64)
        func f(%a: f32):
          for parallel %i: i32 in 0i32 .. 64i32:
            %b: f32 = exp %a
            %c: f32 = load @x[0i32]
            print %b, %c
        """,
    )


def test_memory_that_may_be_shared_is_not_read_early() -> None:
    stays(
        hoist_invariants,
        """
        buffer @p: f32 array (?)
        buffer @u: f32 array ()
        func f(%n: i32):
          for %i: i32 in 0i32 .. %n:
            %a: f32 = load @u[]
            store @p[%i], %a
        """,
    )


def test_a_load_that_is_in_range_leaves_a_loop_that_may_not_turn() -> None:
    becomes(
        hoist_invariants,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32):
          for parallel %i: i32 in 0i32 .. 64i32:
            %h: i32 = add %i, 1i32
            for %j: i32 in 0i32 .. %n:
              %a: f32 = load @x[%i]
              %b: f32 = load @x[%h]
              %c: f32 = add %a, %b
              store @y[%i], %c
            for %k: i32 in %i .. 63i32:
              %d: f32 = load @x[%h]
              store @y[%k], %d
        """,
        """
        buffer @x: f32 field (64)
        buffer @y: f32 field (64)
        func f(%n: i32):
          for parallel %i: i32 in 0i32 .. 64i32:
            %h: i32 = add %i, 1i32
            %a: f32 = load @x[%i]
            for %j: i32 in 0i32 .. %n:
              %b: f32 = load @x[%h]
              %c: f32 = add %a, %b
              store @y[%i], %c
            for %k: i32 in %i .. 63i32:
              %d: f32 = load @x[%h]
              store @y[%k], %d
        """,
    )
