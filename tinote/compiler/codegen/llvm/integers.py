"""Integer division, remainder, power and shifts as LLVM instructions: nothing traps, whatever the operands.

A division by zero gives 0 (a check stands before it where the user wants one); the most negative number divided by
-1 wraps.
"""

from __future__ import annotations

from tinote.compiler.codegen.llvm.ranges import range_of
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.ir.affine import Interval, span_of_type
from tinote.ir.nodes import Atom, Lit
from tinote.ir.primitives import power_of
from tinote.ir.types import Scalar

Atoms = tuple[Atom, ...]
#: Greatest literal exponent of integers for which a power becomes products. Chosen, not measured.
_MAX_UNROLLED_POWER = 64


def _ranges(f: FunctionText, atoms: Atoms, t: Scalar) -> tuple[Interval, Interval]:
    if not atoms:
        return span_of_type(t), span_of_type(t)
    return range_of(f.ranges, atoms[0]), range_of(f.ranges, atoms[1])


def _divide(f: FunctionText, t: Scalar, a: str, b: str, over_a: Interval, over_b: Interval) -> tuple[str, str]:
    """The quotient rounded towards zero, and a divisor that is not zero (1 where `b` is)."""
    ty = TYPES[t]
    safe = b
    if over_b[0] <= 0 <= over_b[1]:
        safe = f.value(f"select i1 {f.value(f'icmp eq {ty} {b}, 0')}, {ty} 1, {ty} {b}")
    if t.kind == "u" or (over_a[0] >= 0 and over_b[0] >= 0):
        quotient = f.value(f"udiv {ty} {a}, {safe}")
    elif over_b[0] > -1 or over_b[1] < -1 or over_a[0] > t.lowest:
        quotient = f.value(f"sdiv {ty} {a}, {safe}")
    else:
        minus = f.value(f"icmp eq {ty} {b}, -1")
        tame = f.value(f"select i1 {minus}, {ty} 1, {ty} {safe}")
        plain = f.value(f"sdiv {ty} {a}, {tame}")
        quotient = f.value(f"select i1 {minus}, {ty} {f.value(f'sub {ty} 0, {a}')}, {ty} {plain}")
    return quotient, safe


def _zero_unless(f: FunctionText, t: Scalar, result: str, b: str, over_b: Interval) -> str:
    if not over_b[0] <= 0 <= over_b[1]:
        return result
    ty = TYPES[t]
    return f.value(f"select i1 {f.value(f'icmp eq {ty} {b}, 0')}, {ty} 0, {ty} {result}")


def truncating_divide(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    over_a, over_b = _ranges(f, atoms, t)
    quotient, _ = _divide(f, t, a, b, over_a, over_b)
    return _zero_unless(f, t, quotient, b, over_b)


def truncating_modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    over_a, over_b = _ranges(f, atoms, t)
    quotient, safe = _divide(f, t, a, b, over_a, over_b)
    rest = f.value(f"sub {TYPES[t]} {a}, {f.value(f'mul {TYPES[t]} {quotient}, {safe}')}")
    return _zero_unless(f, t, rest, b, over_b)


def _floored(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> tuple[str, str, Interval]:
    """Quotient and remainder of the division that rounds towards minus infinity, right unless b is 0, and the range of
    b.
    """
    ty = TYPES[t]
    over_a, over_b = _ranges(f, atoms, t)
    if over_b[0] == over_b[1] > 0 and over_b[0] & (over_b[0] - 1) == 0:
        by = over_b[0].bit_length() - 1
        shift = "ashr" if t.kind == "i" else "lshr"
        return (f.value(f"{shift} {ty} {a}, {by}") if by else a), f.value(f"and {ty} {a}, {over_b[0] - 1}"), over_b
    quotient, safe = _divide(f, t, a, b, over_a, over_b)
    rest = f.value(f"sub {ty} {a}, {f.value(f'mul {ty} {quotient}, {safe}')}")
    if t.kind == "u" or (over_a[0] >= 0 and over_b[0] >= 0):
        return quotient, rest, over_b
    # Towards zero and towards minus infinity differ by one where the remainder is not zero and has not the
    # divisor's sign.
    if over_b[0] > 0:
        differ = f.value(f"icmp slt {ty} {rest}, 0")
    else:
        opposite = f.value(f"icmp slt {ty} {f.value(f'xor {ty} {rest}, {safe}')}, 0")
        differ = f.value(f"and i1 {opposite}, {f.value(f'icmp ne {ty} {rest}, 0')}")
    less = f.value(f"sub {ty} {quotient}, {f.value(f'zext i1 {differ} to {ty}')}")
    more = f.value(f"add {ty} {rest}, {f.value(f'select i1 {differ}, {ty} {safe}, {ty} 0')}")
    return less, more, over_b


def floor_divide(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    quotient, _, over_b = _floored(f, t, atoms, a, b)
    return _zero_unless(f, t, quotient, b, over_b)


def modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    _, rest, over_b = _floored(f, t, atoms, a, b)
    return _zero_unless(f, t, rest, b, over_b)


def power(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """By repeated squaring, modulo two to the number of bits.

    A negative exponent gives 0 except for a base of 1 or -1.
    """
    ty = TYPES[t]
    if len(atoms) > 1 and isinstance(atoms[1], Lit) and 0 <= atoms[1].value <= _MAX_UNROLLED_POWER:
        exponent = int(atoms[1].value)
        return power_of(a, exponent, lambda x, y: f.value(f"mul {ty} {x}, {y}")) if exponent else "1"
    name = f"@integer_power.{t.name}"
    if name not in f.helpers:
        f.helpers[name] = _POWER.format(name=name, ty=ty) if t.kind == "i" else _UNSIGNED_POWER.format(name=name, ty=ty)
    return f.value(f"call {ty} {name}({ty} {a}, {ty} {b})")


_LOOP = """\
loop:
  %x = phi {ty} [ %a, %start ], [ %xx, %loop ]
  %n = phi {ty} [ %b, %start ], [ %half, %loop ]
  %r = phi {ty} [ 1, %start ], [ %rr, %loop ]
  %bit = trunc {ty} %n to i1
  %factor = select i1 %bit, {ty} %x, {ty} 1
  %rr = mul {ty} %r, %factor
  %xx = mul {ty} %x, %x
  %half = lshr {ty} %n, 1
  %more = icmp ne {ty} %half, 0
  br i1 %more, label %loop, label %done
done:
  ret {ty} %rr
}}
"""
_UNSIGNED_POWER = (
    "define internal {ty} {name}({ty} %a, {ty} %b) nounwind willreturn memory(none) {{\nstart:\n  br label %loop\n"
    + _LOOP
)
_POWER = (
    """\
define internal {ty} {name}({ty} %a, {ty} %b) nounwind willreturn memory(none) {{
first:
  %negative = icmp slt {ty} %b, 0
  br i1 %negative, label %inverse, label %start
inverse:
  %one = icmp eq {ty} %a, 1
  %minus = icmp eq {ty} %a, -1
  %odd = trunc {ty} %b to i1
  %sign = select i1 %odd, {ty} -1, {ty} 1
  %of.minus = select i1 %minus, {ty} %sign, {ty} 0
  %inverted = select i1 %one, {ty} 1, {ty} %of.minus
  ret {ty} %inverted
start:
  br label %loop
"""
    + _LOOP
)


def shift_left(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """0 once the shift is as wide as the type, or negative."""
    ty = TYPES[t]
    low, high = range_of(f.ranges, atoms[1]) if atoms else span_of_type(t)
    if low >= 0 and high < t.bits:
        return f.value(f"shl {ty} {a}, {b}")
    fits = f.value(f"icmp ult {ty} {b}, {t.bits}")
    return f.value(f"select i1 {fits}, {ty} {f.value(f'shl {ty} {a}, {b}')}, {ty} 0")


def shift_right(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """0, or -1 for a negative number, once the shift is as wide as the type, or negative."""
    ty = TYPES[t]
    low, high = range_of(f.ranges, atoms[1]) if atoms else span_of_type(t)
    word = "ashr" if t.kind == "i" else "lshr"
    if low >= 0 and high < t.bits:
        return f.value(f"{word} {ty} {a}, {b}")
    if t.kind == "i":
        widest = f.value(f"call {ty} @llvm.umin.{ty}({ty} {b}, {ty} {t.bits - 1})")
        return f.value(f"ashr {ty} {a}, {widest}")
    fits = f.value(f"icmp ult {ty} {b}, {t.bits}")
    return f.value(f"select i1 {fits}, {ty} {f.value(f'lshr {ty} {a}, {b}')}, {ty} 0")
