"""Vectorisable functions of f32 and f64: inline polynomials for fast maths, since a call to the C library prevents
vectorisation.

Range reductions after Cody and Waite ("Software Manual for the Elementary Functions", 1980); the polynomials are
minimax fits of our own (Remez). Errors, measured over all of the range: at most 2 units in the last place, of tanh in
f64 2.5. NaN and infinities come out as from the C library. For a large angle, sin and cos of f32 use the required
digits of 2/pi (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). In f64 these two, whose
arguments may be large and exact, are functions with variants on vectors: beyond 2^30 they call the C library.
"""

from __future__ import annotations

import math
from functools import partial

from tinote.compiler.codegen.llvm import variants
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES, number
from tinote.compiler.codegen.polynomials import (
    COS,
    COS_F64,
    EXP,
    EXP_F64,
    HALF_PI_HIGH,
    HALF_PI_LOW,
    HALF_PI_LOWEST,
    LN2_HIGH,
    LN2_HIGH_F64,
    LN2_LOW,
    LN2_LOW_F64,
    LOG,
    LOG_F64,
    SIN,
    SIN_F64,
    TANH,
    two_over_pi_below,
)
from tinote.ir.types import Scalar, f16, f32, f64

#: Added to a number, they round it to an integer, which then stands in its low bits: 1.5 × 2**23 and 1.5 × 2**52.
_ROUND_F32, _ROUND_F64 = 12582912.0, 6755399441055744.0
#: Angles up to this are reduced by a product with pi in pieces.
_MAX_NEAR_ANGLE_F64 = 2.0**30
#: Exponents of f32 at which the digits of 2/pi for range reduction change.
_FAR_ANGLES = (49, 69, 89, 109)
#: The sine of smaller numbers is the number.
_MIN_ANGLE_F64 = 2.0**-27


def _f(value: float) -> str:
    return number(f32, f32.round(value))


def _d(value: float) -> str:
    return number(f64, value)


def _polynomial(name: str, coefficients: tuple[float, ...], at: str, t: Scalar = f32) -> str:
    """Horner's rule: the result is called `name`."""
    literals = [number(t, t.round(c)) for c in coefficients]
    lines: list[str] = []
    last = literals[-1]
    for k in reversed(range(len(coefficients) - 1)):
        out = name if k == 0 else f"{name}.{k}"
        lines.append(_muladd(out, last, at, literals[k], t))
        last = out
    return "\n".join(lines)


def _muladd(out: str, a: str, b: str, c: str, t: Scalar = f32) -> str:
    ty = "float" if t is f32 else "double"
    return f"  {out} = call {ty} @llvm.fmuladd.f{t.bits}({ty} {a}, {ty} {b}, {ty} {c})"


def _exp() -> str:
    return f"""\
  %x.over = fcmp ogt float %x, {_f(89.0)}
  %x.capped = select i1 %x.over, float {_f(89.0)}, float %x
  %x.under = fcmp olt float %x.capped, {_f(-104.0)}
  %y = select i1 %x.under, float {_f(-104.0)}, float %x.capped
{_muladd("%t", "%y", _f(1 / math.log(2)), _f(_ROUND_F32))}
  %n = fsub float %t, {_f(_ROUND_F32)}
{_muladd("%r.high", "%n", _f(-LN2_HIGH), "%y")}
{_muladd("%r", "%n", _f(-LN2_LOW), "%r.high")}
{_polynomial("%p", EXP, "%r")}
  %rr = fmul float %r, %r
{_muladd("%q", "%p", "%rr", "%r")}
  %e = fadd float %q, {_f(1.0)}
  %bits = bitcast float %t to i32
  %power = sub i32 %bits, {0x4B400000}
  %half = ashr i32 %power, 1
  %rest = sub i32 %power, %half
  %half.biased = add i32 %half, 127
  %rest.biased = add i32 %rest, 127
  %half.shifted = shl i32 %half.biased, 23
  %rest.shifted = shl i32 %rest.biased, 23
  %scale.1 = bitcast i32 %half.shifted to float
  %scale.2 = bitcast i32 %rest.shifted to float
  %scaled = fmul float %e, %scale.1
  %result = fmul float %scaled, %scale.2
"""


def _log() -> str:
    return f"""\
  %tiny = fcmp olt float %x, {_f(2.0**-126)}
  %larger = fmul float %x, {_f(2.0**23)}
  %y = select i1 %tiny, float %larger, float %x
  %shift = select i1 %tiny, i32 -23, i32 0
  %bits = bitcast float %y to i32
  %above = sub i32 %bits, {0x3F3504F3}
  %exponent = ashr i32 %above, 23
  %k = add i32 %exponent, %shift
  %fraction = and i32 %above, {0x7FFFFF}
  %m.bits = add i32 %fraction, {0x3F3504F3}
  %m = bitcast i32 %m.bits to float
  %f = fsub float %m, {_f(1.0)}
  %kf = sitofp i32 %k to float
{_polynomial("%p", LOG, "%f")}
  %z = fmul float %f, %f
  %fz = fmul float %f, %z
  %s.1 = fmul float %fz, %p
{_muladd("%s.2", "%kf", _f(LN2_LOW), "%s.1")}
{_muladd("%s.3", "%z", _f(-0.5), "%s.2")}
  %s.4 = fadd float %f, %s.3
{_muladd("%s", "%kf", _f(LN2_HIGH), "%s.4")}
  %positive = fcmp ogt float %x, {_f(0.0)}
  %zero = fcmp oeq float %x, {_f(0.0)}
  %other = select i1 %zero, float {_f(-math.inf)}, float {_f(math.nan)}
  %some = select i1 %positive, float %s, float %other
  %endless = fcmp oeq float %x, {_f(math.inf)}
  %result = select i1 %endless, float %x, float %some
"""


def _product(name: str, factor: str, constant: float, fused: bool) -> str:
    """A product of f64 in two parts, `{name}` and `{name}.lost`, which together are exact."""
    product = f"  {name} = fmul double {factor}, {_d(constant)}"
    if fused:
        return f"""\
{product}
  {name}.minus = fneg double {name}
  {name}.lost = call double @llvm.fma.f64(double {factor}, double {_d(constant)}, double {name}.minus)"""
    # Dekker's: in halves of 26 bits, whose products are exact.
    high = constant * 134217729.0 - (constant * 134217729.0 - constant)
    low = constant - high
    return f"""\
{product}
  {name}.scaled = fmul double {factor}, {_d(134217729.0)}
  {name}.rest = fsub double {name}.scaled, {factor}
  {name}.upper = fsub double {name}.scaled, {name}.rest
  {name}.lower = fsub double {factor}, {name}.upper
  {name}.1 = fmul double {name}.upper, {_d(high)}
  {name}.2 = fsub double {name}.1, {name}
  {name}.3 = fmul double {name}.upper, {_d(low)}
  {name}.4 = fadd double {name}.2, {name}.3
  {name}.5 = fmul double {name}.lower, {_d(high)}
  {name}.6 = fadd double {name}.4, {name}.5
  {name}.7 = fmul double {name}.lower, {_d(low)}
  {name}.lost = fadd double {name}.6, {name}.7"""


def _less_turns(name: str, angle: str, fused: bool) -> str:
    """An angle less `%n` times the high part of a quarter turn, with one rounding."""
    if fused:
        return f"  {name} = call double @llvm.fma.f64(double %n, double {_d(-HALF_PI_HIGH)}, double {angle})"
    # The difference is exact, because both are near each other.
    return f"""\
{_product(f"{name}.turns", "%n", -HALF_PI_HIGH, fused)}
  {name}.difference = fadd double {angle}, {name}.turns
  {name} = fadd double {name}.difference, {name}.turns.lost"""


def _chosen_by_size(name: str, choices: list[float]) -> str:
    """One of the numbers that belong to `_FAR_ANGLES`, as `%size` says."""
    last, lines = _d(choices[0]), []
    for k, choice in enumerate(choices[1:], 1):
        out = name if k == len(choices) - 1 else f"{name}.{k}"
        lines.append(f"  {out} = select i1 %from.{_FAR_ANGLES[k]}, double {_d(choice)}, double {last}")
        last = out
    return "\n".join(lines)


def _far_angle() -> str:
    """An angle in [-pi, pi] that differs from an f32 of at least 2^49 by whole turns. Digits of 2/pi whose product with
    it is a multiple of 4 are left out; the products with the others are exact but for the last, which is small.
    """
    pieces = [two_over_pi_below(25 - exponent) for exponent in _FAR_ANGLES]
    lines = [f"  %from.{k} = fcmp oge double %size, {_d(2.0**k)}" for k in _FAR_ANGLES[1:]]
    lines += [_chosen_by_size(f"%piece.{k}", [one[k] for one in pieces]) for k in range(3)]
    for k in range(2):
        lines += [f"  %quarters.{k} = fmul double %a, %piece.{k}", _less_whole(f"%part.{k}", f"%quarters.{k}", 4.0)]
    text = "\n".join(lines)
    return f"""\
  %size = call double @llvm.fabs.f64(double %a)
{text}
  %sum = fadd double %part.0, %part.1
  %sum.second = fsub double %sum, %part.0
  %sum.first = fsub double %sum, %sum.second
  %lost.first = fsub double %part.0, %sum.first
  %lost.second = fsub double %part.1, %sum.second
  %lost = fadd double %lost.first, %lost.second
{_less_whole("%part", "%sum", 4.0)}
{_less_whole("%left", "%part", 1.0)}
  %turned = fsub double %part, %left
  %product = fmul double %a, %piece.2
  %rest = fadd double %product, %lost
  %quarter = fadd double %left, %rest
  %quarter.angle = fmul double %quarter, {_d(HALF_PI_HIGH)}
  %turned.angle = fmul double %turned, {_d(HALF_PI_HIGH)}
  %turned.low = fmul double %turned, {_d(HALF_PI_LOW)}
  %angle = fadd double %quarter.angle, %turned.low
  %result = fadd double %turned.angle, %angle
  ret double %result
"""


def _less_whole(name: str, value: str, period: float) -> str:
    """An f64 without its nearest multiple of a power of two."""
    return f"""\
  {name}.shifted = fadd double {value}, {_d(_ROUND_F64 * period)}
  {name}.whole = fsub double {name}.shifted, {_d(_ROUND_F64 * period)}
  {name} = fsub double {value}, {name}.whole"""


def _near_angle() -> str:
    """An f32 as an f64; one of at least 2^49 without whole turns."""
    return f"""\
entry:
  %size = call float @llvm.fabs.f32(float %a)
  %far = fcmp uge float %size, {_f(2.0 ** _FAR_ANGLES[0])}
  %same = fpext float %a to double
  br i1 %far, label %reduce, label %near
near:
  ret double %same
reduce:
  %reduced = call double @fast.far_angle.f64(double %same)
  %result = select i1 %far, double %reduced, double %same
  ret double %result
"""


def _wave(near_angle: str, quarter: int, fused: bool) -> str:
    """The sine, a number of quarter turns ahead."""
    return f"""\
  %xd = call double {near_angle}(float %x)
{_muladd("%t", "%xd", _d(2 / math.pi), _d(_ROUND_F64), f64)}
  %n = fsub double %t, {_d(_ROUND_F64)}
{_less_turns("%r.high", "%xd", fused)}
{_muladd("%r.low", "%n", _d(-HALF_PI_LOW), "%r.high", f64)}
  %r = fptrunc double %r.low to float
  %bits = bitcast double %t to i64
  %turns = trunc i64 %bits to i32
  %q = add i32 %turns, {quarter}
  %z = fmul float %r, %r
{_polynomial("%ps", SIN, "%z")}
  %rz = fmul float %r, %z
{_muladd("%sine", "%rz", "%ps", "%r")}
{_polynomial("%pc", COS, "%z")}
  %zz = fmul float %z, %z
{_muladd("%c.1", "%z", _f(-0.5), _f(1.0))}
{_muladd("%cosine", "%zz", "%pc", "%c.1")}
  %odd = and i32 %q, 1
  %use.cosine = icmp ne i32 %odd, 0
  %chosen = select i1 %use.cosine, float %cosine, float %sine
  %half = and i32 %q, 2
  %sign = shl i32 %half, 30
  %chosen.bits = bitcast float %chosen to i32
  %signed = xor i32 %chosen.bits, %sign
  %result = bitcast i32 %signed to float
"""


def _tanh() -> str:
    return f"""\
  %size = call float @llvm.fabs.f32(float %x)
  %z = fmul float %x, %x
{_polynomial("%p", TANH, "%z")}
  %xz = fmul float %x, %z
{_muladd("%small", "%xz", "%p", "%x")}
  %twice = fadd float %size, %size
  %e = call float @fast.exp.f32(float %twice)
  %below = fadd float %e, {_f(1.0)}
  %part = fdiv float {_f(2.0)}, %below
  %large = fsub float {_f(1.0)}, %part
  %large.signed = call float @llvm.copysign.f32(float %large, float %x)
  %is.small = fcmp olt float %size, {_f(0.625)}
  %result = select i1 %is.small, float %small, float %large.signed
"""


def _expm1_reduced() -> str:
    """Of `%y`: `%t`, whose low bits are a whole number n, and `%q`, the exponential of `%y` - n ln 2, less 1.

    Shifts are logical and numbers are turned to integers by their bits: AVX2 has no other for 64 bits.
    """
    return f"""\
{_muladd("%t", "%y", _d(1 / math.log(2)), _d(_ROUND_F64), f64)}
  %n = fsub double %t, {_d(_ROUND_F64)}
{_muladd("%r.high", "%n", _d(-LN2_HIGH_F64), "%y", f64)}
{_muladd("%r", "%n", _d(-LN2_LOW_F64), "%r.high", f64)}
{_polynomial("%p", EXP_F64, "%r", f64)}
  %rr = fmul double %r, %r
{_muladd("%q", "%p", "%rr", "%r", f64)}
  %bits = bitcast double %t to i64
"""


def _exp_f64() -> str:
    return f"""\
  %x.over = fcmp ogt double %x, {_d(710.0)}
  %x.capped = select i1 %x.over, double {_d(710.0)}, double %x
  %x.under = fcmp olt double %x.capped, {_d(-746.0)}
  %y = select i1 %x.under, double {_d(-746.0)}, double %x.capped
{_expm1_reduced()}  %e = fadd double %q, {_d(1.0)}
  %power = sub i64 %bits, {0x4338000000000000 - 2048}
  %half = lshr i64 %power, 1
  %rest = sub i64 %power, %half
  %half.biased = sub i64 %half, 1
  %rest.biased = sub i64 %rest, 1
  %half.shifted = shl i64 %half.biased, 52
  %rest.shifted = shl i64 %rest.biased, 52
  %scale.1 = bitcast i64 %half.shifted to double
  %scale.2 = bitcast i64 %rest.shifted to double
  %scaled = fmul double %e, %scale.1
  %result = fmul double %scaled, %scale.2
"""


def _tanh_f64() -> str:
    return f"""\
  %size = call double @llvm.fabs.f64(double %x)
  %far = fcmp ogt double %size, {_d(22.0)}
  %capped = select i1 %far, double {_d(22.0)}, double %size
  %y = fadd double %capped, %capped
{_expm1_reduced()}  %power = sub i64 %bits, {0x4338000000000000 - 1023}
  %shifted = shl i64 %power, 52
  %scale = bitcast i64 %shifted to double
  %scale.less = fsub double %scale, {_d(1.0)}
{_muladd("%e", "%scale", "%q", "%scale.less", f64)}
  %below = fadd double %e, {_d(2.0)}
  %value = fdiv double %e, %below
  %result = call double @llvm.copysign.f64(double %value, double %x)
"""


def _log_f64() -> str:
    root_half = 0x3FE6A09E667F3BCD
    return f"""\
  %tiny = fcmp olt double %x, {_d(2.0**-1022)}
  %larger = fmul double %x, {_d(2.0**54)}
  %y = select i1 %tiny, double %larger, double %x
  %shift = select i1 %tiny, i64 {1023 + 54}, i64 1023
  %bits = bitcast double %y to i64
  %above = sub i64 %bits, {root_half - 0x3FF0000000000000}
  %exponent = lshr i64 %above, 52
  %k = sub i64 %exponent, %shift
  %k.bits = add i64 %k, {0x4338000000000000}
  %k.rounded = bitcast i64 %k.bits to double
  %kf = fsub double %k.rounded, {_d(_ROUND_F64)}
  %fraction = and i64 %above, {(1 << 52) - 1}
  %m.bits = add i64 %fraction, {root_half}
  %m = bitcast i64 %m.bits to double
  %f = fsub double %m, {_d(1.0)}
  %below = fadd double %f, {_d(2.0)}
  %s = fdiv double %f, %below
  %z = fmul double %s, %s
{_polynomial("%p", LOG_F64, "%z", f64)}
  %ff = fmul double %f, %f
  %half = fmul double %ff, {_d(0.5)}
{_muladd("%w.1", "%z", "%p", "%half", f64)}
  %w.2 = fmul double %s, %w.1
{_muladd("%w.3", "%kf", _d(LN2_LOW_F64), "%w.2", f64)}
  %w.4 = fsub double %half, %w.3
  %w.5 = fsub double %w.4, %f
  %w.6 = fneg double %w.5
{_muladd("%w", "%kf", _d(LN2_HIGH_F64), "%w.6", f64)}
  %positive = fcmp ogt double %x, {_d(0.0)}
  %zero = fcmp oeq double %x, {_d(0.0)}
  %other = select i1 %zero, double {_d(-math.inf)}, double {_d(math.nan)}
  %some = select i1 %positive, double %w, double %other
  %endless = fcmp oeq double %x, {_d(math.inf)}
  %result = select i1 %endless, double %x, double %some
"""


def _wave_f64(name: str, quarter: int, fused: bool) -> str:
    """The sine, a number of quarter turns ahead; past the farthest angle the C library's function of that name.

    The angle less n quarter turns is kept in two parts, `%r` and `%s`: its difference with the high part of the turns
    is exact, and what the product with the low part and its sum lose is found exactly (Dekker, Knuth).
    """
    return f"""\
entry:
  %size = call double @llvm.fabs.f64(double %a)
  %far = fcmp uge double %size, {_d(_MAX_NEAR_ANGLE_F64)}
  br i1 %far, label %library, label %near
near:
{_muladd("%t", "%a", _d(2 / math.pi), _d(_ROUND_F64), f64)}
  %n = fsub double %t, {_d(_ROUND_F64)}
{_less_turns("%exact", "%a", fused)}
{_product("%product", "%n", -HALF_PI_LOW, fused)}
  %r = fadd double %exact, %product
  %r.product = fsub double %r, %exact
  %r.exact = fsub double %r, %r.product
  %lost.product = fsub double %product, %r.product
  %lost.exact = fsub double %exact, %r.exact
  %s.sum = fadd double %lost.exact, %lost.product
  %s.both = fadd double %s.sum, %product.lost
{_muladd("%s", "%n", _d(-HALF_PI_LOWEST), "%s.both", f64)}
  %z = fmul double %r, %r
{_polynomial("%ps", SIN_F64, "%z", f64)}
  %rz = fmul double %r, %z
{_muladd("%s.slope", "%z", _d(-0.5), _d(1.0), f64)}
  %s.sine = fmul double %s, %s.slope
{_muladd("%beyond", "%rz", "%ps", "%s.sine", f64)}
  %sine.sum = fadd double %r, %beyond
  %tiny = fcmp olt double %size, {_d(_MIN_ANGLE_F64)}
  %sine = select i1 %tiny, double %a, double %sine.sum
{_polynomial("%pc", COS_F64, "%z", f64)}
  %half = fmul double %z, {_d(0.5)}
  %c = fsub double {_d(1.0)}, %half
  %c.less = fsub double {_d(1.0)}, %c
  %c.rest = fsub double %c.less, %half
  %minus.r = fneg double %r
{_muladd("%c.1", "%minus.r", "%s", "%c.rest", f64)}
  %zz = fmul double %z, %z
{_muladd("%c.2", "%zz", "%pc", "%c.1", f64)}
  %cosine = fadd double %c, %c.2
  %bits = bitcast double %t to i64
  %q = add i64 %bits, {quarter}
  %odd = and i64 %q, 1
  %use.cosine = icmp ne i64 %odd, 0
  %chosen = select i1 %use.cosine, double %cosine, double %sine
  %second = and i64 %q, 2
  %sign = shl i64 %second, 62
  %chosen.bits = bitcast double %chosen to i64
  %signed = xor i64 %chosen.bits, %sign
  %value = bitcast i64 %signed to double
  ret double %value
library:
  %called = call double @llvm.{name}.f64(double %a)
  ret double %called
"""


_BODIES = {
    f32: {"exp": _exp, "log": _log, "tanh": _tanh},
    f64: {"exp": _exp_f64, "log": _log_f64, "tanh": _tanh_f64},
}
#: How many quarter turns a function is ahead of the sine.
_WAVES = {"sin": 0, "cos": 1}
_NEEDS = {(f32, "tanh"): "exp"}


def inline(f: FunctionText, name: str, t: Scalar, a: str) -> str | None:
    """A function of f16, f32 or f64 inline, under fast maths; None if the C library's must be called."""
    if not f.flags:
        return None
    if t is f64 and name in _WAVES:
        body = partial(_wave_f64, name, _WAVES[name], f.fused)
        return f.value(f"call {TYPES[t]} {variants.function(f, f'fast.{name}', t, 'a', body)}({TYPES[t]} {a})")
    within = f32 if t is f16 else t
    if name not in _WAVES and name not in _BODIES.get(within, {}):
        return None
    ty = TYPES[within]
    for wanted in (_NEEDS.get((within, name), name), name):
        symbol = f"@fast.{wanted}.f{within.bits}"
        if symbol not in f.helpers:
            header = f"define internal {ty} {symbol}({ty} %x) alwaysinline nounwind willreturn memory(none) {{\n"
            if wanted in _WAVES:
                far = "fast.far_angle", _far_angle
                near = variants.function(f, "fast.near_angle", f64, "a", _near_angle, of=f32, rarely=far)
                text = _wave(near, _WAVES[wanted], f.fused)
            else:
                text = _BODIES[within][wanted]()
            f.helpers[symbol] = f"{header}{text}  ret {ty} %result\n}}\n"
    symbol = f"@fast.{name}.f{within.bits}"
    if t is within:
        return f.value(f"call {ty} {symbol}({ty} {a})")
    wide = f.value(f"fpext half {a} to float")
    return f.value(f"fptrunc float {f.value(f'call float {symbol}(float {wide})')} to half")
