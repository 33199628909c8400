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
from functools import cache, partial

from tinote.compiler.codegen import polynomials as poly
from tinote.compiler.codegen.llvm import variants
from tinote.compiler.codegen.llvm.expressions import Operand, begin
from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.ir.types import Scalar, f16, f32, f64, i32, i64, u64

#: Added to a number, they round it to an integer, which then stands in its low bits: 1.5 × 2**23 and 1.5 × 2**52.
_ROUND_F32, _ROUND_F64 = 12582912.0, 6755399441055744.0
#: Angles up to this are reduced by a product with pi in pieces.
_MAX_NEAR_ANGLE_F64 = 2.0**30
#: Exponents of f32 at which the digits of 2/pi for range reduction change.
_FAR_ANGLES = (49, 69, 89, 109)
#: The sine of smaller numbers is the number.
_MIN_ANGLE_F64 = 2.0**-27


def _clamped(x: Operand, low: float, high: float) -> Operand:
    """A number between bounds; a NaN stays one."""
    capped = x.like(high).chosen(x.compared("ogt", high), x)
    return x.like(low).chosen(capped.compared("olt", low), capped)


def _exp(x: Operand) -> Operand:
    y = _clamped(x, -104.0, 89.0)
    t = y.times(1 / math.log(2), _ROUND_F32)
    n = t - _ROUND_F32
    r = n.times(-poly.LN2_LOW, n.times(-poly.LN2_HIGH, y))
    e = r.polynomial(poly.EXP).times(r * r, r) + 1.0
    power = t.converted("bitcast", i32) - 0x4B400000
    half = power >> 1
    rest = power - half
    scales = [((part + 127) << 23).converted("bitcast", f32) for part in (half, rest)]
    return e * scales[0] * scales[1]


def _of_positive(x: Operand, found: Operand) -> Operand:
    """A logarithm of x, `found` for finite positive numbers."""
    other = x.like(-math.inf).chosen(x.compared("oeq", 0.0), math.nan)
    some = found.chosen(x.compared("ogt", 0.0), other)
    return x.chosen(x.compared("oeq", math.inf), some)


def _log(x: Operand) -> Operand:
    tiny = x.compared("olt", 2.0**-126)
    y = (x * 2.0**23).chosen(tiny, x)
    above = y.converted("bitcast", i32) - 0x3F3504F3
    k = (above >> 23) + above.like(-23).chosen(tiny, 0)
    f = ((above & 0x7FFFFF) + 0x3F3504F3).converted("bitcast", f32) - 1.0
    kf = k.converted("sitofp", f32)
    z = f * f
    s = f + z.times(-0.5, kf.times(poly.LN2_LOW, f * z * f.polynomial(poly.LOG)))
    return _of_positive(x, kf.times(poly.LN2_HIGH, s))


def _product(factor: Operand, constant: float, fused: bool) -> tuple[Operand, Operand]:
    """A product of f64 in two parts, which together are exact."""
    product = factor * constant
    if fused:
        return product, factor.intrinsic("fma", constant, -product)
    # Dekker's: in halves of 26 bits, whose products are exact.
    high = constant * 134217729.0 - (constant * 134217729.0 - constant)
    low = constant - high
    scaled = factor * 134217729.0
    upper = scaled - (scaled - factor)
    lower = factor - upper
    return product, upper * high - product + upper * low + lower * high + lower * low


def _less_turns(angle: Operand, n: Operand, fused: bool) -> Operand:
    """An angle less n times the high part of a quarter turn, with one rounding."""
    if fused:
        return n.intrinsic("fma", -poly.HALF_PI_HIGH, angle)
    turns, lost = _product(n, -poly.HALF_PI_HIGH, fused)
    # The difference is exact, because both are near each other.
    return angle + turns + lost


@cache
def _far_angle() -> str:
    """An angle in [-pi, pi] that differs from an f32 of at least 2^49 by whole turns. Digits of 2/pi whose product with
    it is a multiple of 4 are left out; the products with the others are exact but for the last, which is small.
    """
    body, a = begin(f64, "a")
    size = a.intrinsic("fabs")
    reached = [size.compared("oge", 2.0**k) for k in _FAR_ANGLES[1:]]
    pieces: list[Operand] = []
    for choices in zip(*[poly.two_over_pi_below(25 - exponent) for exponent in _FAR_ANGLES], strict=True):
        piece = a.like(choices[0])
        for far, choice in zip(reached, choices[1:], strict=True):
            piece = a.like(choice).chosen(far, piece)
        pieces.append(piece)
    parts = [_less_whole(a * piece, 4.0) for piece in pieces[:2]]
    total = parts[0] + parts[1]
    second = total - parts[0]
    first = total - second
    lost = (parts[0] - first) + (parts[1] - second)
    part = _less_whole(total, 4.0)
    left = _less_whole(part, 1.0)
    turned = part - left
    quarter = left + (a * pieces[2] + lost)
    angle = quarter * poly.HALF_PI_HIGH + turned * poly.HALF_PI_LOW
    body.end(turned * poly.HALF_PI_HIGH + angle)
    return body.text


def _less_whole(value: Operand, period: float) -> Operand:
    """An f64 without its nearest multiple of a power of two."""
    shifted = value + _ROUND_F64 * period
    return value - (shifted - _ROUND_F64 * period)


@cache
def _near_angle() -> str:
    """An f32 as an f64; one of at least 2^49 without whole turns."""
    body, a = begin(f32, "a")
    body.label("entry")
    far = a.intrinsic("fabs").compared("uge", 2.0 ** _FAR_ANGLES[0])
    same = a.converted("fpext", f64)
    body.branch(far, "reduce", "near")
    body.label("near")
    body.end(same)
    body.label("reduce")
    body.end(same.called("fast.far_angle.f64").chosen(far, same))
    return body.text


def _signed_wave(sine: Operand, cosine: Operand, turns: Operand) -> Operand:
    """The sine that many quarter turns ahead."""
    chosen = cosine.chosen((turns & 1).compared("ne", 0), sine)
    sign = (turns & 2) << (turns.t.bits - 2)
    return (chosen.converted("bitcast", turns.t) ^ sign).converted("bitcast", chosen.t)


def _wave(x: Operand, near_angle: str, quarter: int, fused: bool) -> Operand:
    """The sine, a number of quarter turns ahead."""
    angle = x.called(near_angle, gives=f64)
    t = angle.times(2 / math.pi, _ROUND_F64)
    n = t - _ROUND_F64
    r = n.times(-poly.HALF_PI_LOW, _less_turns(angle, n, fused)).converted("fptrunc", f32)
    turns = t.converted("bitcast", i64).converted("trunc", i32) + quarter
    z = r * r
    ps = z.polynomial(poly.SIN)
    sine = (r * z).times(ps, r)
    pc = z.polynomial(poly.COS)
    cosine = (z * z).times(pc, z.times(-0.5, 1.0))
    return _signed_wave(sine, cosine, turns)


def _tanh(x: Operand) -> Operand:
    size = x.intrinsic("fabs")
    z = x * x
    p = z.polynomial(poly.TANH)
    small = (x * z).times(p, x)
    e = (size + size).called("fast.exp.f32")
    large = (1.0 - 2.0 / (e + 1.0)).intrinsic("copysign", x)
    return small.chosen(size.compared("olt", 0.625), large)


def _expm1_reduced(y: Operand) -> tuple[Operand, Operand]:
    """The exponential of y - n ln 2, less 1, for the nearest whole number n; and bits, of which the low ones are n.

    Shifts are logical and numbers are turned to integers by their bits: AVX2 has no other for 64 bits.
    """
    t = y.times(1 / math.log(2), _ROUND_F64)
    n = t - _ROUND_F64
    r = n.times(-poly.LN2_LOW_F64, n.times(-poly.LN2_HIGH_F64, y))
    p = r.polynomial(poly.EXP_F64)
    return p.times(r * r, r), t.converted("bitcast", u64)


def _exp_f64(x: Operand) -> Operand:
    q, bits = _expm1_reduced(_clamped(x, -746.0, 710.0))
    e = q + 1.0
    power = bits - (0x4338000000000000 - 2048)
    half = power >> 1
    rest = power - half
    scales = [((part - 1) << 52).converted("bitcast", f64) for part in (half, rest)]
    return e * scales[0] * scales[1]


def _tanh_f64(x: Operand) -> Operand:
    size = x.intrinsic("fabs")
    capped = x.like(22.0).chosen(size.compared("ogt", 22.0), size)
    q, bits = _expm1_reduced(capped + capped)
    scale = ((bits - (0x4338000000000000 - 1023)) << 52).converted("bitcast", f64)
    e = scale.times(q, scale - 1.0)
    return (e / (e + 2.0)).intrinsic("copysign", x)


def _log_f64(x: Operand) -> Operand:
    root_half = 0x3FE6A09E667F3BCD
    tiny = x.compared("olt", 2.0**-1022)
    y = (x * 2.0**54).chosen(tiny, x)
    above = y.converted("bitcast", u64) - (root_half - 0x3FF0000000000000)
    k = (above >> 52) - above.like(1023 + 54).chosen(tiny, 1023)
    kf = (k + 0x4338000000000000).converted("bitcast", f64) - _ROUND_F64
    f = ((above & (1 << 52) - 1) + root_half).converted("bitcast", f64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    p = z.polynomial(poly.LOG_F64)
    half = f * f * 0.5
    w = half - kf.times(poly.LN2_LOW_F64, s * z.times(p, half)) - f
    return _of_positive(x, kf.times(poly.LN2_HIGH_F64, -w))


@cache
def _wave_f64(name: str, quarter: int, fused: bool) -> str:
    """The sine, a number of quarter turns ahead; past the farthest angle the C library's function of that name.

    The angle less n quarter turns is kept in two parts, `r` and `s`: its difference with the high part of the turns is
    exact, and what the product with the low part and its sum lose is found exactly (Dekker, Knuth).
    """
    body, a = begin(f64, "a")
    body.label("entry")
    size = a.intrinsic("fabs")
    body.branch(size.compared("uge", _MAX_NEAR_ANGLE_F64), "library", "near")
    body.label("near")
    t = a.times(2 / math.pi, _ROUND_F64)
    n = t - _ROUND_F64
    exact = _less_turns(a, n, fused)
    product, lost = _product(n, -poly.HALF_PI_LOW, fused)
    r = exact + product
    of_product = r - exact
    of_exact = r - of_product
    s = n.times(-poly.HALF_PI_LOWEST, (exact - of_exact) + (product - of_product) + lost)
    z = r * r
    ps = z.polynomial(poly.SIN_F64)
    beyond = (r * z).times(ps, s * z.times(-0.5, 1.0))
    sine = a.chosen(size.compared("olt", _MIN_ANGLE_F64), r + beyond)
    pc = z.polynomial(poly.COS_F64)
    half = z * 0.5
    c = 1.0 - half
    rest = (-r).times(s, 1.0 - c - half)
    cosine = c + (z * z).times(pc, rest)
    body.end(_signed_wave(sine, cosine, t.converted("bitcast", i64) + quarter))
    body.label("library")
    body.end(a.intrinsic(name))
    return body.text


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
        wave = partial(_wave_f64, name, _WAVES[name], f.fused)
        return f.value(f"call {TYPES[t]} {variants.function(f, f'fast.{name}', t, 'a', wave)}({TYPES[t]} {a})")
    within = f32 if t is f16 else t
    if name not in _WAVES and name not in _BODIES.get(within, {}):
        return None
    ty = TYPES[within]
    for wanted in (_NEEDS.get((within, name), name), name):
        symbol = f"@fast.{wanted}.f{within.bits}"
        if symbol not in f.helpers:
            header = f"define internal {ty} {symbol}({ty} %x) alwaysinline nounwind willreturn memory(none) {{\n"
            body, x = begin(within, "x")
            if wanted in _WAVES:
                far = "fast.far_angle", _far_angle
                near = variants.function(f, "fast.near_angle", f64, "a", _near_angle, of=f32, rarely=far)
                body.end(_wave(x, near.removeprefix("@"), _WAVES[wanted], f.fused))
            else:
                body.end(_BODIES[within][wanted](x))
            f.helpers[symbol] = f"{header}{body.text}}}\n"
    symbol = f"@fast.{name}.f{within.bits}"
    if t is within:
        return f.value(f"call {ty} {symbol}({ty} {a})")
    wide = f.value(f"fpext half {a} to float")
    return f.value(f"fptrunc float {f.value(f'call float {symbol}(float {wide})')} to half")
