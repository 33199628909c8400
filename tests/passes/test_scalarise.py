"""Vectors and matrices become their components."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.lowering.scalarise import scalarise
from tinote.errors import KernelTypeError
from tinote.ir.parse import parse
from tinote.ir.verify import Form


def scalarised(before: str, after: str) -> None:
    becomes(scalarise, before, after, Form.PROMOTED, Form.SCALAR)


def test_memory_moves_by_components() -> None:
    scalarised(
        """
        buffer @x: f32[2] field (8)
        func f(%i: i32, %s: f32):
          %p: f32[2] = load @x[%i]
          %q: f32[2] = mul %p, %s
          store @x[%i], %q
          %o: f32[2] = atomic add @x[%i], %p
          %e: f32 = extract %o, 1i32
          store @x[%i][0i32], %e
        """,
        """
        buffer @x: f32[2] field (8)
        func f(%i: i32, %s: f32):
          %p0: f32 = load @x[%i][0i32]
          %p1: f32 = load @x[%i][1i32]
          %q0: f32 = mul %p0, %s
          %q1: f32 = mul %p1, %s
          store @x[%i][0i32], %q0
          store @x[%i][1i32], %q1
          %o0: f32 = atomic add @x[%i][0i32], %p0
          %o1: f32 = atomic add @x[%i][1i32], %p1
          store @x[%i][0i32], %o1
        """,
    )


def test_control_flow_carries_components() -> None:
    scalarised(
        """
        buffer @x: f32[2] field (8)
        func f(%n: i32, %a: f32, %c: u1):
          %z: f32[2] = pack 0.0f32, %a
          %s: f32[2] = for %i: i32 in 0i32 .. %n carrying %t: f32[2] = %z:
            %p: f32[2] = load @x[%i]
            %q: f32[2] = add %t, %p
            %r: f32[2] = if %c:
              yield %q
            else:
              yield %p
            yield %r
          %m: f32[2] = insert %s, 1i32, %a
          return %m
        """,
        """
        buffer @x: f32[2] field (8)
        func f(%n: i32, %a: f32, %c: u1):
          %s0: f32, %s1: f32 = for %i: i32 in 0i32 .. %n carrying %t0: f32 = 0.0f32, %t1: f32 = %a:
            %p0: f32 = load @x[%i][0i32]
            %p1: f32 = load @x[%i][1i32]
            %q0: f32 = add %t0, %p0
            %q1: f32 = add %t1, %p1
            %r0: f32, %r1: f32 = if %c:
              yield %q0, %q1
            else:
              yield %p0, %p1
            yield %r0, %r1
          return %s0, %a
        """,
    )


def test_what_is_indexed_at_run_time_stays_with_all_that_flows_into_it() -> None:
    scalarised(
        """
        buffer @x: f32[2] field (8)
        func f(%n: i32, %k: i32, %c: u1):
          %z: f32[2] = load @x[0i32]
          %s: f32[2] = for %i: i32 in 0i32 .. %n carrying %t: f32[2] = %z:
            %u: f32[2] = insert %t, %k, 1.0f32
            %v: f32[2] = select %c, %u, %t
            yield %v
          %d: f32[2] = add %s, %s
          %e: f32 = extract %s, 1i32
          store @x[1i32], %d
          store @x[2i32], %s
          return %e
        """,
        """
        buffer @x: f32[2] field (8)
        func f(%n: i32, %k: i32, %c: u1):
          %z0: f32 = load @x[0i32][0i32]
          %z1: f32 = load @x[0i32][1i32]
          %z: f32[2] = pack %z0, %z1
          %s: f32[2] = for %i: i32 in 0i32 .. %n carrying %t: f32[2] = %z:
            %u: f32[2] = insert %t, %k, 1.0f32
            %v: f32[2] = select %c, %u, %t
            yield %v
          %a0: f32 = extract %s, 0i32
          %a1: f32 = extract %s, 1i32
          %b0: f32 = extract %s, 0i32
          %b1: f32 = extract %s, 1i32
          %d0: f32 = add %a0, %b0
          %d1: f32 = add %a1, %b1
          %e: f32 = extract %s, 1i32
          store @x[1i32][0i32], %d0
          store @x[1i32][1i32], %d1
          %s0: f32 = extract %s, 0i32
          %s1: f32 = extract %s, 1i32
          store @x[2i32][0i32], %s0
          store @x[2i32][1i32], %s1
          return %e
        """,
    )


def test_matrices_while_and_elementwise_select() -> None:
    scalarised(
        """
        func f(%a: f32, %b: f32):
          %m: f32[2, 2] = pack %a, %b, %b, %a
          %g: u1[2, 2] = gt %m, 0.0f32
          %h: f32[2, 2] = select %g, %m, 1.0f32
          %w: f32[2, 2] = while carrying %q: f32[2, 2] = %h:
            %e: f32 = extract %q, 1i32, 0i32
            %t: u1 = lt %e, %a
            yield %t
          do %r: f32[2, 2]:
            %s: f32[2, 2] = add %r, %r
            yield %s
          %z: f32 = extract %w, 0i32, 1i32
          return %z
        """,
        """
        func f(%a: f32, %b: f32):
          %g0: u1 = gt %a, 0.0f32
          %g1: u1 = gt %b, 0.0f32
          %g2: u1 = gt %b, 0.0f32
          %g3: u1 = gt %a, 0.0f32
          %h0: f32 = select %g0, %a, 1.0f32
          %h1: f32 = select %g1, %b, 1.0f32
          %h2: f32 = select %g2, %b, 1.0f32
          %h3: f32 = select %g3, %a, 1.0f32
          %w0: f32, %w1: f32, %w2: f32, %w3: f32 = while carrying %q0: f32 = %h0, %q1: f32 = %h1, %q2: f32 = %h2, %q3: f32 = %h3:
            %t: u1 = lt %q2, %a
            yield %t
          do %r0: f32, %r1: f32, %r2: f32, %r3: f32:
            %s0: f32 = add %r0, %r0
            %s1: f32 = add %r1, %r1
            %s2: f32 = add %r2, %r2
            %s3: f32 = add %r3, %r3
            yield %s0, %s1, %s2, %s3
          return %w1
        """,  # noqa: E501
    )


def test_printed_and_reported_tensors_become_texts() -> None:
    scalarised(
        """
        func f(%a: f32, %b: f32, %c: u1):
          %v: f32[2] = pack %a, %b
          %m: f32[1, 2] = pack %a, %b
          print "v = ", %v, "; ", %a, %m
          check assert "v was {} at {}" %c, %v, %a
        """,
        """
        func f(%a: f32, %b: f32, %c: u1):
          print "v = [", %a, ", ", %b, "]; ", %a, "[[", %a, ", ", %b, "]]"
          check assert "v was [{}, {}] at {}" %c, %a, %b, %a
        """,
    )


def test_a_literal_index_outside_of_the_tensor_is_located() -> None:
    fn = parse("func f(%a: f32):\n  %v: f32[2] = pack %a, %a\n  %b: f32 = extract %v, 2i32\n  return %b\n")
    with pytest.raises(KernelTypeError, match="index 2 is outside") as caught:
        scalarise(fn)
    assert caught.value.span.line == 3


def test_scalars_stay() -> None:
    stays(scalarise, "func f(%a: f32):\n  %b: f32 = add %a, %a\n  return %b\n", Form.PROMOTED)
