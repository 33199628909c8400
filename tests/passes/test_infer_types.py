"""Types of literals, and conversions as operations."""

from __future__ import annotations

import pytest

from tests.passes.support import becomes, stays
from tinote.compiler.passes.lowering.infer_types import infer_types
from tinote.errors import KernelTypeError
from tinote.ir.nodes import Function
from tinote.ir.parse import parse
from tinote.ir.primitives import Defaults
from tinote.ir.types import f32, f64, i32, i64
from tinote.ir.verify import Form


def infer(fn: Function) -> Function:
    return infer_types(fn, Defaults(f32, i32))


def wide(fn: Function) -> Function:
    return infer_types(fn, Defaults(f64, i64))


def test_literals_take_the_type_of_their_use() -> None:
    becomes(
        infer,
        """
        buffer @x: f64 field (8)
        func f(%a: f32, %d: f64, %k: u8, %n: i32):
          %p: f32 = mul %a, 2
          %q: f64 = add %p, %d
          %r: u1 = lt %n, 2.5
          %s: i32 = add %k, 300
          %t: f32 = div %n, 2
          store @x[%n], 1
          return %q, %r, %s, %t
        """,
        """
        buffer @x: f64 field (8)
        func f(%a: f32, %d: f64, %k: u8, %n: i32):
          %p: f32 = mul %a, 2.0f32
          %p64: f64 = cast %p
          %q: f64 = add %p64, %d
          %nf: f32 = cast %n
          %r: u1 = lt %nf, 2.5f32
          %ki: i32 = cast %k
          %s: i32 = add %ki, 300i32
          %nd: f32 = cast %n
          %t: f32 = div %nd, 2.0f32
          store @x[%n], 1.0f64
          return %q, %r, %s, %t
        """,
        Form.FIRST,
        Form.TYPED,
    )


WEAK = """
func f(%c: u1):
  %a: weak_int = select %c, 1, 2
  %b: weak_float = mul %a, 0.5
  return %a, %b
"""


def test_what_stays_weak_takes_the_default() -> None:
    becomes(
        infer,
        WEAK,
        """
        func f(%c: u1):
          %a: i32 = select %c, 1i32, 2i32
          %d: f32 = cast %a
          %b: f32 = mul %d, 0.5f32
          return %a, %b
        """,
        Form.FIRST,
        Form.TYPED,
    )


def test_the_defaults_are_the_users() -> None:
    new = wide(parse(WEAK))
    assert [y.type for y in new.region.yields] == [i64, f64]


def test_cells_loops_and_branches() -> None:
    becomes(
        infer,
        """
        buffer @x: f32 field (8)
        func f(%n: i32, %u: u8, %w: u32):
          %s: ref weak_float = local 0.0
          for %i: i32 in 0 .. %u:
            %v: weak_float = get %s
            %y: f32 = load @x[%u]
            %z: f32 = add %v, %y
            set %s, %z
            store @x[%w], %n
          %r: weak_int = if %n:
            yield 1
          else:
            yield 2
          atomic add @x[0], %r
          %t: i64 = while carrying %c: i64 = 10:
            yield %c
          do %d: i64:
            %e: i64 = sub %d, 1
            yield %e
          return %t
        """,
        """
        buffer @x: f32 field (8)
        func f(%n: i32, %u: u8, %w: u32):
          %s: ref f32 = local 0.0f32
          %hi: i32 = cast %u
          for %i: i32 in 0i32 .. %hi:
            %v: f32 = get %s
            %at: i32 = cast %u
            %y: f32 = load @x[%at]
            %z: f32 = add %v, %y
            set %s, %z
            %there: i64 = cast %w
            %nf: f32 = cast %n
            store @x[%there], %nf
          %nb: u1 = cast %n
          %r: i32 = if %nb:
            yield 1i32
          else:
            yield 2i32
          %rf: f32 = cast %r
          atomic add @x[0i32], %rf
          %t: i64 = while carrying %c: i64 = 10i64:
            %cb: u1 = cast %c
            yield %cb
          do %d: i64:
            %e: i64 = sub %d, 1i64
            yield %e
          return %t
        """,
        Form.FIRST,
        Form.TYPED,
    )


def test_tensors_broadcast_scalars_of_their_type() -> None:
    becomes(
        infer,
        """
        buffer @x: f64[2] field (8)
        func f(%n: i32, %a: f32):
          %v: f32[2] = pack 1, %n
          %w: f32[2] = mul %v, 2
          %z: f32 = extract %w, 1
          %q: f32[2] = insert %w, 0, %n
          store @x[%n], %q
          store @x[%n][0], %a
          print "w = ", %w, " ", 3
        """,
        """
        buffer @x: f64[2] field (8)
        func f(%n: i32, %a: f32):
          %nf: f32 = cast %n
          %v: f32[2] = pack 1.0f32, %nf
          %w: f32[2] = mul %v, 2.0f32
          %z: f32 = extract %w, 1i32
          %ng: f32 = cast %n
          %q: f32[2] = insert %w, 0i32, %ng
          %q64: f64[2] = cast %q
          store @x[%n], %q64
          %a64: f64 = cast %a
          store @x[%n][0i32], %a64
          print "w = ", %w, " ", 3i32
        """,
        Form.FIRST,
        Form.TYPED,
    )


def test_a_typed_function_is_the_same_object() -> None:
    stays(
        infer,
        """
        buffer @x: f32 field (8)
        func f(%n: i32):
          %s: f32 = for %i: i32 in 0i32 .. %n carrying %t: f32 = 0.0f32:
            %y: f32 = load @x[%i]
            %z: f32 = add %t, %y
            yield %z
          return %s
        """,
        Form.TYPED,
    )


def test_numbers_that_do_not_fit_are_reported_together() -> None:
    fn = parse(
        "func f(%n: i32, %k: u8):\n  %a: i32 = add %n, 5000000000\n  %b: i32 = and %n, 4294967295\n  return %b\n"
    )
    with pytest.raises(KernelTypeError) as caught:
        infer(fn)
    assert caught.value.message == "5000000000 does not fit into i32"
    assert caught.value.span.line == 2
    assert "ti.i64(5000000000)" in caught.value.hint
    assert [other.message for other in caught.value.others] == ["4294967295 does not fit into i32"]


def test_a_conversion_that_the_user_wrote_wraps() -> None:
    becomes(
        infer,
        "func f():\n  %a: u8 = cast 300\n  %b: i64 = cast 5000000000\n  %c: u32 = cast -1\n  return %a, %b, %c\n",
        "func f():\n  return 44u8, 5000000000i64, 4294967295u32\n",
        Form.FIRST,
        Form.TYPED,
    )


def test_a_negative_literal_in_an_unsigned_type_is_its_complement() -> None:
    becomes(
        infer,
        "func f(%w: u32):\n  %a: u32 = add %w, -1\n  return %a\n",
        "func f(%w: u32):\n  %a: u32 = add %w, 4294967295u32\n  return %a\n",
        Form.FIRST,
        Form.TYPED,
    )


def test_a_float_is_no_index() -> None:
    fn = parse("buffer @x: f32 field (8)\nfunc f(%y: f32):\n  %a: f32 = load @x[%y]\n  return %a\n")
    with pytest.raises(KernelTypeError, match="an index must be an integer, not f32"):
        infer(fn)
