"""Mathematical functions on floats as LLVM instructions."""

from __future__ import annotations

import math
from collections.abc import Callable

from tinote.compiler.codegen.llvm.fast_maths import inline
from tinote.compiler.codegen.llvm.text import TYPES, FunctionText, number
from tinote.ir.nodes import Atom, Lit
from tinote.ir.types import Scalar, f16, f32

__all__ = [
    "acos", "asin", "atan2", "cos", "exp", "floor_divide", "log", "modulo",
    "over_sqrt", "power", "rsqrt", "sin", "sqrt", "tan", "tanh", "truncating_modulo",
]  # fmt: skip

Atoms = tuple[Atom, ...]
_LONGEST_UNROLLED_POWER = 16


def _call(f: FunctionText, name: str, t: Scalar, *operands: str, flags: str | None = None) -> str:
    """An LLVM intrinsic on operands of its result's type."""
    ty = TYPES[t]
    arguments = ", ".join(f"{ty} {x}" for x in operands)
    return f.value(f"call{f.flags if flags is None else flags} {ty} @llvm.{name}.f{t.bits}({arguments})")


def _intrinsic(name: str) -> Callable[..., str]:
    """Inline where that is possible and allowed, else LLVM's intrinsic, which becomes an instruction or a call."""

    def emit(f: FunctionText, t: Scalar, atoms: Atoms, *operands: str) -> str:
        return inline(f, name, t, operands[0]) or _call(f, name, t, *operands)

    return emit


exp = _intrinsic("exp")
log = _intrinsic("log")
sin = _intrinsic("sin")
cos = _intrinsic("cos")
tan = _intrinsic("tan")
asin = _intrinsic("asin")
acos = _intrinsic("acos")
atan2 = _intrinsic("atan2")
tanh = _intrinsic("tanh")


def sqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    root = _call(f, "sqrt", t, a, flags=f.estimate_flags)
    f.roots[root] = a
    return root


def rsqrt(f: FunctionText, t: Scalar, atoms: Atoms, a: str) -> str:
    return over_sqrt(f, t, number(t, 1.0), a, sqrt(f, t, atoms, a))


def over_sqrt(f: FunctionText, t: Scalar, numerator: str, a: str, root: str) -> str:
    """`numerator` over the square root of `a`, which is `root`.

    Under fast maths LLVM takes an estimate of the reciprocal root and a step of Newton's method for f32, which makes a
    NaN of 0 and of infinity, and of what is denormal. Zero and infinity are corrected after it, what is denormal is
    scaled before it.
    """
    if t is not f32 or not f.flags:
        return f.value(f"fdiv{f.flags} {TYPES[t]} {numerator}, {root}")
    one, zero, infinity = (number(t, x) for x in (1.0, 0.0, math.inf))
    if a in f.positive:
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
    longest = _LONGEST_UNROLLED_POWER if f.flags else 2
    if exponent is not None and abs(exponent) <= longest and exponent == int(exponent):
        result, base, left = "", a, abs(int(exponent))
        while left:
            if left & 1:
                result = f.value(f"fmul{f.flags} {TYPES[t]} {result}, {base}") if result else base
            left >>= 1
            if left:
                base = f.value(f"fmul{f.flags} {TYPES[t]} {base}, {base}")
        one = number(t, 1.0)
        if exponent == 0:
            return one
        return result if exponent > 0 else f.value(f"fdiv{f.flags} {TYPES[t]} {one}, {result}")
    return _call(f, "pow", t, a, b)


def floor_divide(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    """The floor of the quotient, less one where rounding made it reach the next whole number."""
    if t is f16:
        return _in_single(f, floor_divide, atoms, a, b)
    # No fast maths: by way of a reciprocal 6 / 3 may come out just under 2.
    ty = TYPES[t]
    quotient = _call(f, "floor", t, f.value(f"fdiv {ty} {a}, {b}"), flags="")
    negated = f.value(f"fneg {ty} {quotient}")
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
    name = f"modulo.{t.name}"
    if f"@{name}" not in f.helpers:
        lanes = [128 // t.bits, 256 // t.bits, 512 // t.bits]
        variants = [f"_ZGV_LLVM_N{n}vv_{name}({name}.x{n})" for n in lanes]
        attributes = f'noinline nounwind willreturn memory(none) "vector-function-abi-variant"="{",".join(variants)}"'
        f.helpers[f"@{name}"] = _modulo_text(f"internal {TYPES[t]} @{name}", t, 1, attributes)
        for n in lanes:
            header = f"weak_odr hidden <{n} x {TYPES[t]}> @{name}.x{n}"
            f.helpers[f"@{name}.x{n}"] = _modulo_text(header, t, n, "nounwind willreturn memory(none)")
    return f.value(f"call {TYPES[t]} @{name}({TYPES[t]} {a}, {TYPES[t]} {b})")


def _in_single(f: FunctionText, emit: Callable[..., str], atoms: Atoms, a: str, b: str) -> str:
    """A function of f16 by that of f32, which has more than twice as many digits: rounding twice rounds once."""
    wide = [f.value(f"fpext half {x} to float") for x in (a, b)]
    return f.value(f"fptrunc float {emit(f, f32, atoms, *wide)} to half")


def _modulo_text(header: str, t: Scalar, lanes: int, attributes: str) -> str:
    """A function that gives the remainder of one pair of numbers, or of several.

    a - q·b in one rounding is exact if the rounded quotient has all digits before the point; it may be one too large,
    and then the remainder, which has the other sign, is off by `b` as that of a negative number is. Elsewhere, and for
    what is not finite, the C library's `fmod`.
    """
    scalar = TYPES[t]
    ty, flag = (scalar, "i1") if lanes == 1 else (f"<{lanes} x {scalar}>", f"<{lanes} x i1>")
    suffix = f"f{t.bits}" if lanes == 1 else f"v{lanes}f{t.bits}"

    def each(value: float) -> str:
        text = number(t, value)
        return text if lanes == 1 else f"splat ({scalar} {text})"

    some = "%big" if lanes == 1 else "%some"
    reduced = f"  %some = call i1 @llvm.vector.reduce.or.v{lanes}i1({flag} %big)\n" if lanes > 1 else ""
    return f"""\
define {header}({ty} %a, {ty} %b) {attributes} {{
entry:
  %x = fdiv {ty} %a, %b
  %q = call {ty} @llvm.trunc.{suffix}({ty} %x)
  %minus = fneg {ty} %q
  %difference = call {ty} @llvm.fma.{suffix}({ty} %minus, {ty} %b, {ty} %a)
  %size = call {ty} @llvm.fabs.{suffix}({ty} %x)
  %none = fcmp olt {ty} %size, {each(1.0)}
  %near = select {flag} %none, {ty} %a, {ty} %difference
  %big = fcmp uge {ty} %size, {each(2.0 ** (t.mantissa - 1))}
{reduced}  br i1 {some}, label %far, label %done
far:
  %exact = frem {ty} %a, %b
  br label %done
done:
  %rest = phi {ty} [ %near, %entry ], [ %exact, %far ]
  %signed = call {ty} @llvm.copysign.{suffix}({ty} %rest, {ty} %b)
  %other = fcmp une {ty} %signed, %rest
  %moved = fadd {ty} %rest, %b
  %result = select {flag} %other, {ty} %moved, {ty} %signed
  ret {ty} %result
}}
"""


def truncating_modulo(f: FunctionText, t: Scalar, atoms: Atoms, a: str, b: str) -> str:
    return f.value(f"frem {TYPES[t]} {a}, {b}")
