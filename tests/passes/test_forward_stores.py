"""What memory is known to hold."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from tests.passes.support import becomes, stays
from tinote.compiler.passes.simplification.forward_stores import forward_stores
from tinote.ir.parse import parse
from tinote.ir.verify import Form


def test_loads_of_known_elements_are_replaced() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %a: f32):
          store @x[%i], %a
          %b: f32 = load @x[%i]
          %c: f32 = load @y[%i]
          store @x[%i], %c
          %d: f32 = load @y[%i]
          %e: f32 = mul %b, %d
          return %e
        """,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %a: f32):
          %c: f32 = load @y[%i]
          store @x[%i], %c
          %e: f32 = mul %a, %c
          return %e
        """,
    )


def test_indices_that_differ_for_sure_do_not_disturb() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32[2] field (8)
        func f(%i: i32, %a: f32, %b: f32):
          %j: i32 = add %i, 1i32
          %k: i32 = sub %j, 3i32
          store @x[%i][0i32], %a
          store @x[%j][0i32], %b
          store @x[%k][0i32], %b
          store @x[%i][1i32], %b
          %c: f32 = load @x[%i][0i32]
          return %c
        """,
        """
        buffer @x: f32[2] field (8)
        func f(%i: i32, %a: f32, %b: f32):
          %j: i32 = add %i, 1i32
          %k: i32 = sub %j, 3i32
          store @x[%i][0i32], %a
          store @x[%j][0i32], %b
          store @x[%k][0i32], %b
          store @x[%i][1i32], %b
          return %a
        """,
    )


def test_what_may_be_the_same_element_is_read_again() -> None:
    stays(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @p: f32 array (?)
        buffer @q: f32 array (?)
        func f(%i: i32, %j: i32, %a: f32, %b: f32):
          store @x[%i], %a
          store @x[%j], %b
          %c: f32 = load @x[%i]
          %d: f32 = load @p[%i]
          store @q[%j], %b
          %e: f32 = load @p[%i]
          store @x[%j], %a
          %g: f32 = load @q[%j]
          store @p[%i], %a
          %h: f32 = load @x[%j]
          atomic add @x[%j], %a
          %k: f32 = load @x[%j]
          return %c, %d, %e, %g, %h, %k
        """,
    )


def test_branches_agree_or_forget() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %a: f32, %b: f32, %t: u1):
          store @x[%i], %a
          %p: f32 = load @y[%i]
          if %t:
            %c: f32 = load @x[%i]
            store @x[%i], %b
            store @y[0i32], %c
          else:
            store @x[%i], %b
          %d: f32 = load @x[%i]
          %e: f32 = load @y[%i]
          return %d, %e, %p
        """,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %a: f32, %b: f32, %t: u1):
          store @x[%i], %a
          %p: f32 = load @y[%i]
          if %t:
            store @x[%i], %b
            store @y[0i32], %a
          else:
            store @x[%i], %b
          %e: f32 = load @y[%i]
          return %b, %e, %p
        """,
    )


def test_a_loop_forgets_what_it_writes() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%n: i32, %a: f32):
          store @x[0i32], %a
          store @y[0i32], %a
          for parallel %i: i32 in 0i32 .. %n:
            %b: f32 = load @x[0i32]
            %c: f32 = load @y[0i32]
            store @y[%i], %b
            %d: f32 = load @y[%i]
            %e: f32 = add %c, %d
            store @y[%i], %e
          %g: f32 = load @x[0i32]
          %h: f32 = load @y[0i32]
          return %g, %h
        """,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%n: i32, %a: f32):
          store @x[0i32], %a
          store @y[0i32], %a
          for parallel %i: i32 in 0i32 .. %n:
            %c: f32 = load @y[0i32]
            %e: f32 = add %c, %a
            store @y[%i], %e
          %h: f32 = load @y[0i32]
          return %a, %h
        """,
    )


def test_the_condition_of_a_while_is_read_every_turn() -> None:
    stays(
        forward_stores,
        """
        buffer @x: f32 field (8)
        func f():
          store @x[0i32], 1.0f32
          while:
            %a: f32 = load @x[0i32]
            %t: u1 = lt %a, 9.0f32
            yield %t
          do:
            %b: f32 = load @x[0i32]
            %c: f32 = mul %b, 2.0f32
            store @x[0i32], %c
        """,
    )


def test_overwritten_stores_go_unless_somebody_may_look() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %j: i32, %a: f32, %b: f32, %t: u1):
          store @x[%i], %a
          store @x[%i], %b
          store @y[%i], %a
          %c: f32 = load @y[%j]
          store @y[%i], %b
          store @x[%j], %a
          check assert "now" %t
          store @x[%j], %b
          return %c
        """,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %j: i32, %a: f32, %b: f32, %t: u1):
          store @x[%i], %b
          store @y[%i], %a
          %c: f32 = load @y[%j]
          store @y[%i], %b
          store @x[%j], %a
          check assert "now" %t
          store @x[%j], %b
          return %c
        """,
    )


def test_a_branch_in_between_may_look() -> None:
    stays(
        forward_stores,
        """
        buffer @x: f32 field (8)
        buffer @y: f32 field (8)
        func f(%i: i32, %j: i32, %a: f32, %b: f32, %t: u1):
          store @x[%i], %a
          if %t:
            %c: f32 = load @x[%j]
            store @y[%i], %c
          store @x[%i], %b
        """,
    )


def test_storing_what_is_there_already_does_nothing() -> None:
    becomes(
        forward_stores,
        """
        buffer @x: f32 field (8)
        func f(%i: i32):
          %a: f32 = load @x[%i]
          store @x[%i], %a
          store @x[0i32], 0.0f32
          store @x[0i32], -0.0f32
        """,
        """
        buffer @x: f32 field (8)
        func f(%i: i32):
          %a: f32 = load @x[%i]
          store @x[0i32], -0.0f32
        """,
    )


def test_components_and_whole_elements_overlap() -> None:
    stays(
        forward_stores,
        """
        buffer @x: f32[2] field (8)
        func f(%i: i32, %a: f32):
          %v: f32[2] = load @x[%i]
          store @x[%i][0i32], %a
          %w: f32[2] = load @x[%i]
          %s: f32[2] = add %v, %w
          store @x[%i], %s
        """,
        Form.PROMOTED,
    )


def test_long_straight_code_takes_linear_time() -> None:
    """Thousands of elements are read, then as many are written: what is not remembered cannot be compared."""

    def lines(count: int) -> int:
        """How many lines of Python are executed."""
        reads = "".join(f"  %a{k}: f32 = load @x[{k}i32]\n" for k in range(count))
        writes = "".join(f"  store @x[{count + k}i32], %a{k}\n" for k in range(count))
        fn = parse(f"buffer @x: f32 field ({2 * count})\nfunc f():\n{reads}{writes}")
        executed = 0

        def trace(_frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal executed
            executed += event == "line"
            return trace

        sys.settrace(trace)
        try:
            same = forward_stores(fn) is fn
        finally:
            sys.settrace(None)
        assert same
        return executed

    assert lines(2000) < 4.5 * lines(500)
