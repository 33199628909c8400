"""A check stands after every operation on signed integers that may wrap, and after no other."""

import pytest

from tinote.compiler.passes.checks.check_overflow import check_overflow
from tinote.errors import KernelOverflowError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse
from tinote.ir.text import equal, show
from tinote.ir.verify import Form, verify


def test_before_and_after() -> None:
    fn = parse(
        """
        buffer @n: i32 field ()
        func f(%a: i32, %b: i64):
          %c: i32 = add %a, 3i32
          %d: i64 = sub %b, %b
          %e: i64 = neg %d
          atomic add @n[], %c
        """
    )
    wanted = parse(
        """
        buffer @n: i32 field ()
        func f(%a: i32, %b: i64):
          %c: i32 = add %a, 3i32
          %1: i64 = cast %a
          %2: i64 = add %1, 3i64
          %3: i64 = cast %c
          %4: u1 = eq %2, %3
          check overflow "integer overflow: {} + {} does not fit into i32" %4, %a, 3i32
          %d: i64 = sub %b, %b
          %5: i64 = xor %b, %b
          %6: i64 = xor %b, %d
          %7: i64 = and %5, %6
          %8: u1 = ge %7, 0i64
          check overflow "integer overflow: {} - {} does not fit into i64" %8, %b, %b
          %e: i64 = neg %d
          %9: u1 = ne %d, -9223372036854775808i64
          check overflow "integer overflow: -({}) does not fit into i64" %9, %d
          %10: i32 = atomic add @n[], %c
          %11: i32 = add %10, %c
          %12: i64 = cast %10
          %13: i64 = cast %c
          %14: i64 = add %12, %13
          %15: i64 = cast %11
          %16: u1 = eq %14, %15
          check overflow "integer overflow: {} + {} does not fit into i32" %16, %10, %c
        """
    )
    new = check_overflow(fn)
    verify(new, Form.SCALAR)
    assert equal(new, wanted), show(new)


def test_floats_unsigned_numbers_and_bits_stay() -> None:
    fn = parse(
        """
        buffer @u: u32 field ()
        func f(%a: f32, %b: u32, %c: i32):
          %d: f32 = mul %a, %a
          %e: u32 = mul %b, %b
          %g: i32 = and %c, 7i32
          %h: i32 = shr %c, 2i32
          atomic add @u[], %e
          atomic max @u[], %b
        """
    )
    assert check_overflow(fn) is fn


@pytest.mark.parametrize(("a", "fits"), [(2**31 - 4, True), (2**31 - 3, False)])
def test_the_interpreter_reports_it(a: int, fits: bool) -> None:
    fn = check_overflow(parse("func f(%a: i32):\n  %b: i32 = add %a, 3i32\n  return %b\n"))
    if fits:
        assert interpret(fn, (a,), DictMemory({})) == (a + 3,)
    else:
        with pytest.raises(KernelOverflowError, match=r"integer overflow: 2147483645 \+ 3 does not fit into i32"):
            interpret(fn, (a,), DictMemory({}))
