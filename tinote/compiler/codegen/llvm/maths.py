"""Mathematical functions on floats as LLVM instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from tinote.compiler.codegen.llvm import variants
from tinote.compiler.codegen.llvm.fast_maths import inline
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES, number
from tinote.ir.nodes import Atom, Lit
from tinote.ir.primitives import power_of
from tinote.ir.types import Scalar, f16, f32

Atoms = tuple[Atom, ...]
#: Greatest literal exponent of floats for which a power becomes products under fast maths. Chosen, not measured.
_MAX_UNROLLED_POWER = 16


def _call(f: FunctionText, name: str, t: Scalar, *operands: str, flags: str | None = None) -> str:
    """An LLVM intrinsic on operands of its result's type."""
    ty = TYPES[t]
    arguments = ", ".join(f"{ty} {x}" for x in operands)
    return f.value(f"call{f.flags if flags is None else flags} {ty} @llvm.{name}.f{t.bits}({arguments})")


def intrinsic(name: str) -> Callable[..., str]:
    """Inline where that is possible and allowed, else LLVM's intrinsic, which becomes an instruction or a call."""

    def emit(f: FunctionText, t: Scalar, atoms: Atoms, *operands: str) -> str:
        return inline(f, name, t, operands[0]) or _call(f, name, t, *operands)

    return emit


def sqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    root = _call(f, "sqrt", t, a, flags=f.estimate_flags)
    f.roots[root] = a, bool(f.flags) and f.magnitudes.is_positive(atoms[0])
    return root


def rsqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    return over_sqrt(f, t, number(t, 1.0), sqrt(f, t, atoms, a))


def over_sqrt(f: FunctionText, t: Scalar, numerator: str, root: str) -> str:
    """`numerator` over a square root.

    Under fast maths LLVM takes an estimate of the reciprocal root and a step of Newton's method for f32, which gives
    NaN for 0, infinity and denormal numbers. Zero and infinity are corrected afterwards, denormal numbers are scaled
    before.
    """
    if t is not f32 or not f.flags:
        return f.value(f"fdiv{f.flags} {TYPES[t]} {numerator}, {root}")
    one, zero, infinity = (number(t, x) for x in (1.0, 0.0, math.inf))
    a, positive = f.roots[root]
    if positive:
        near = f.value(f"fdiv{f.estimate_flags} float {one}, {root}")
        wrong, right = f.value(f"fcmp oeq float {a}, {infinity}"), zero
    else:
        tiny = f.value(f"fcmp olt float {a}, {number(t, t.smallest_normal)}")
        larger = f.value(f"fmul float {a}, {number(t, 2.0**24)}")
        normal = f.value(f"select i1 {tiny}, float {larger}, float {a}")
        near = _call(f, "sqrt", t, normal, flags=f.estimate_flags)
        near = f.value(f"fdiv{f.estimate_flags} float {one}, {near}")
        larger = f.value(f"fmul float {near}, {number(t, 2.0**12)}")
        near = f.value(f"select i1 {tiny}, float {larger}, float {near}")
        # |a| + |a| = a only for the zeros and +infinity, which exchanging the bits of infinity turns into
        # their results.
        size = f.value(f"call float @llvm.fabs.f32(float {a})")
        wrong = f.value(f"fcmp oeq float {f.value(f'fadd float {size}, {size}')}, {a}")
        bits = f.value(f"xor i32 {f.value(f'bitcast float {a} to i32')}, {0x7F800000}")
        right = f.value(f"bitcast i32 {bits} to float")
    right = f.value(f"select i1 {wrong}, float {right}, float {near}")
    return right if numerator == one else f.value(f"fmul{f.flags} float {numerator}, {right}")


def power(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """Small whole literal exponents become products: a square in strict maths, more under fast maths."""
    exponent = atoms[1].value if len(atoms) > 1 and isinstance(atoms[1], Lit) else None
    longest = _MAX_UNROLLED_POWER if f.flags else 2
    if exponent is not None and abs(exponent) <= longest and exponent == int(exponent):
        one = number(t, 1.0)
        if exponent == 0:
            return one
        result = power_of(a, abs(int(exponent)), lambda x, y: f.value(f"fmul{f.flags} {TYPES[t]} {x}, {y}"))
        return result if exponent > 0 else f.value(f"fdiv{f.flags} {TYPES[t]} {one}, {result}")
    # LLVM would convert the exponents of several lanes to integers, and abort where registers hold two.
    return _call(f, "pow", t, a, b, flags=f.flags.replace(" afn", "")) if f.lanes else _call(f, "pow", t, a, b)


def floor_divide(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """The floor of the quotient, less one where rounding made it reach the next integer."""
    if t is f16:
        return _in_single(f, floor_divide, atoms, a, b)
    # No fast maths: with a reciprocal, 6 / 3 may come out just under 2.
    ty = TYPES[t]
    quotient = _call(f, "floor", t, f.value(f"fdiv {ty} {a}, {b}"), flags="")
    negated = f.value(f"fneg {ty} {quotient}")
    if t is f32 and not f.fused:
        # In f64 the product is exact, and what is left of it is an f32.
        wide = [f.value(f"fpext float {x} to double") for x in (negated, b, a)]
        rest = f.value(f"fadd double {f.value(f'fmul double {wide[0]}, {wide[1]}')}, {wide[2]}")
        rest = f.value(f"fptrunc double {rest} to float")
    else:
        rest = _call(f, "fma", t, negated, b, a, flags="")
    rest = f.value(f"select i1 {f.value(f'fcmp oeq {ty} {quotient}, {number(t, 0.0)}')}, {ty} {a}, {ty} {rest}")
    # The remainder has the sign of the divisor, unless the quotient is too large.
    signed = _call(f, "copysign", t, rest, b, flags="")
    too_large = f.value(f"fcmp one {ty} {signed}, {rest}")
    size = _call(f, "fabs", t, quotient, flags="")
    has_fractions = f.value(f"fcmp olt {ty} {size}, {number(t, 2.0**t.mantissa)}")
    less = f.value(f"fsub {ty} {quotient}, {number(t, 1.0)}")
    return f.value(f"select i1 {f.value(f'and i1 {too_large}, {has_fractions}')}, {ty} {less}, {ty} {quotient}")


def modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """The exact remainder with the sign of `b`. A function of its own, which has variants on vectors: it branches."""
    if t is f16:
        return _in_single(f, modulo, atoms, a, b)
    symbol = variants.function(f, "modulo", t, "ab", partial(_modulo_text, t, f.fused))
    return f.value(f"call {TYPES[t]} {symbol}({TYPES[t]} {a}, {TYPES[t]} {b})")


def _in_single(f: FunctionText, emit: Callable[..., str], atoms: Atoms, a: str, b: str) -> str:
    """A function of f16 by that of f32, which has more than twice as many digits: rounding twice rounds once."""
    wide = [f.value(f"fpext half {x} to float") for x in (a, b)]
    return f.value(f"fptrunc float {emit(f, f32, atoms, *wide)} to half")


def _modulo_text(t: Scalar, fused: bool) -> str:
    """The remainder of a pair of numbers.

    a - q·b in one rounding is exact if the rounded quotient has all digits before the point; it may be one too large,
    and then the remainder, which has the other sign, is off by `b` as that of a negative number is. Elsewhere, and for
    what is not finite, the C library's `fmod`.
    """
    ty, suffix = TYPES[t], f"f{t.bits}"
    difference = f"  %difference = call {ty} @llvm.fma.{suffix}({ty} %minus, {ty} %b, {ty} %a)"
    if t is f32 and not fused:
        # In f64 the product is exact, and what is left of it is an f32.
        difference = """\
  %minus.wide = fpext float %minus to double
  %b.wide = fpext float %b to double
  %a.wide = fpext float %a to double
  %product = fmul double %minus.wide, %b.wide
  %left = fadd double %product, %a.wide
  %difference = fptrunc double %left to float"""
    return f"""\
entry:
  %x = fdiv {ty} %a, %b
  %q = call {ty} @llvm.trunc.{suffix}({ty} %x)
  %minus = fneg {ty} %q
{difference}
  %size = call {ty} @llvm.fabs.{suffix}({ty} %x)
  %none = fcmp olt {ty} %size, {number(t, 1.0)}
  %near = select i1 %none, {ty} %a, {ty} %difference
  %big = fcmp uge {ty} %size, {number(t, 2.0 ** (t.mantissa - 1))}
  br i1 %big, label %far, label %done
far:
  %exact = frem {ty} %a, %b
  br label %done
done:
  %rest = phi {ty} [ %near, %entry ], [ %exact, %far ]
  %signed = call {ty} @llvm.copysign.{suffix}({ty} %rest, {ty} %b)
  %other = fcmp une {ty} %signed, %rest
  %moved = fadd {ty} %rest, %b
  %result = select i1 %other, {ty} %moved, {ty} %signed
  ret {ty} %result
"""


def truncating_modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    return f.value(f"frem {TYPES[t]} {a}, {b}")
