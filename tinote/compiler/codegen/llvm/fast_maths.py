"""Functions of f32 that vectorise: inline polynomials for fast maths, where a call to the C library would stop
vectorisation.

Range reductions after Cody and Waite ("Software Manual for the Elementary Functions", 1980); the polynomials are
minimax fits of our own. Errors, measured over all of the range: at most 2 units in the last place. NaN and infinities
come out as from the C library. An argument of sin or cos beyond 1e15 gives NaN: its neighbours in f32 are millions of
turns apart.
"""

from __future__ import annotations

import math

from tinote.compiler.codegen.llvm.text import FunctionText, number
from tinote.ir.types import Scalar, f16, f32, f64

_EXP = (0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.0083687175065279, 0.0013814596459269524)
_LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219550788402557,
    -0.12405591458082199, 0.11888174712657928, -0.11675640940666199, 0.06746601313352585,
)  # fmt: skip
_SIN = (-0.1666666716337204, 0.008333329111337662, -0.0001983933470910415, 2.7183041311218403e-06)
_COS = (0.0416666679084301, -0.0013888883404433727, 2.4799519451335073e-05, -2.7210168696001347e-07)
_TANH = (
    -0.3333333134651184, 0.13333210349082947, -0.05394720286130905,
    0.021702967584133148, -0.008182673715054989, 0.0021475369576364756,
)  # fmt: skip

# ln 2 and pi/2 in two pieces: the first has few digits, or an exact product by way of `fma`.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# Added to a number, they round it to an integer, which then stands in its low bits.
_ROUND_F32, _ROUND_F64 = 12582912.0, 6755399441055744.0
_FARTHEST_ANGLE = 1e15


def _f(value: float) -> str:
    return number(f32, f32.round(value))


def _polynomial(name: str, coefficients: tuple[float, ...], at: str) -> str:
    """Horner's rule: the value is called `name`."""
    lines: list[str] = []
    last = _f(coefficients[-1])
    for k in reversed(range(len(coefficients) - 1)):
        out = name if k == 0 else f"{name}.{k}"
        lines.append(f"  {out} = call float @llvm.fmuladd.f32(float {last}, float {at}, float {_f(coefficients[k])})")
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
{_muladd("%r.high", "%n", _f(-_LN2_HIGH), "%y")}
{_muladd("%r", "%n", _f(-_LN2_LOW), "%r.high")}
{_polynomial("%p", _EXP, "%r")}
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
{_polynomial("%p", _LOG, "%f")}
  %z = fmul float %f, %f
  %fz = fmul float %f, %z
  %s.1 = fmul float %fz, %p
{_muladd("%s.2", "%kf", _f(_LN2_LOW), "%s.1")}
{_muladd("%s.3", "%z", _f(-0.5), "%s.2")}
  %s.4 = fadd float %f, %s.3
{_muladd("%s", "%kf", _f(_LN2_HIGH), "%s.4")}
  %positive = fcmp ogt float %x, {_f(0.0)}
  %zero = fcmp oeq float %x, {_f(0.0)}
  %other = select i1 %zero, float {_f(-math.inf)}, float {_f(math.nan)}
  %some = select i1 %positive, float %s, float %other
  %endless = fcmp oeq float %x, {_f(math.inf)}
  %result = select i1 %endless, float %x, float %some
"""


def _wave(quarter: int) -> str:
    """The sine, a number of quarter turns ahead."""
    d = lambda value: number(f64, value)  # noqa: E731
    return f"""\
  %xd = fpext float %x to double
{_muladd("%t", "%xd", d(2 / math.pi), d(_ROUND_F64), f64)}
  %n = fsub double %t, {d(_ROUND_F64)}
  %r.high = call double @llvm.fma.f64(double %n, double {d(-_HALF_PI_HIGH)}, double %xd)
  %r.low = call double @llvm.fma.f64(double %n, double {d(-_HALF_PI_LOW)}, double %r.high)
  %r = fptrunc double %r.low to float
  %bits = bitcast double %t to i64
  %turns = trunc i64 %bits to i32
  %q = add i32 %turns, {quarter}
  %z = fmul float %r, %r
{_polynomial("%ps", _SIN, "%z")}
  %rz = fmul float %r, %z
{_muladd("%sine", "%rz", "%ps", "%r")}
{_polynomial("%pc", _COS, "%z")}
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
  %value = bitcast i32 %signed to float
  %size = call float @llvm.fabs.f32(float %x)
  %near = fcmp olt float %size, {_f(_FARTHEST_ANGLE)}
  %result = select i1 %near, float %value, float {_f(math.nan)}
"""


def _tanh() -> str:
    return f"""\
  %size = call float @llvm.fabs.f32(float %x)
  %z = fmul float %x, %x
{_polynomial("%p", _TANH, "%z")}
  %xz = fmul float %x, %z
{_muladd("%small", "%xz", "%p", "%x")}
  %twice = fadd float %size, %size
  %e = call float @fast.exp(float %twice)
  %below = fadd float %e, {_f(1.0)}
  %part = fdiv float {_f(2.0)}, %below
  %large = fsub float {_f(1.0)}, %part
  %large.signed = call float @llvm.copysign.f32(float %large, float %x)
  %is.small = fcmp olt float %size, {_f(0.625)}
  %result = select i1 %is.small, float %small, float %large.signed
"""


_BODIES = {"exp": _exp, "log": _log, "sin": lambda: _wave(0), "cos": lambda: _wave(1), "tanh": _tanh}
_NEEDS = {"tanh": "exp"}


def inline(f: FunctionText, name: str, t: Scalar, a: str) -> str | None:
    """A function of f32 or f16 inline, under fast maths; None when the C library's is to be called."""
    if not f.flags or name not in _BODIES or (t is not f32 and t is not f16):
        return None
    for wanted in (_NEEDS.get(name, name), name):
        symbol = f"@fast.{wanted}"
        if symbol not in f.helpers:
            header = f"define internal float {symbol}(float %x) alwaysinline nounwind willreturn memory(none) {{\n"
            f.helpers[symbol] = f"{header}{_BODIES[wanted]()}  ret float %result\n}}\n"
    if t is f32:
        return f.value(f"call float @fast.{name}(float {a})")
    wide = f.value(f"fpext half {a} to float")
    return f.value(f"fptrunc float {f.value(f'call float @fast.{name}(float {wide})')} to half")
