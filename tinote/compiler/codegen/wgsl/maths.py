"""Mathematical functions of f32 and f64 in WGSL: the built-in ones are inaccurate and differ between drivers.

Where the CPU has a polynomial of f32 it is the same one. Angles below 512 are reduced by pieces of pi/2, larger ones by
the required digits of 2/pi (Payne and Hanek, "Radian reduction for trigonometric functions", 1983), in integers; so f64
is not needed. Powers use the logarithm in two parts; the first has so few digits that its product is exact. Errors,
measured over all of the range: at most 4 units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinote.compiler.codegen import polynomials as c
from tinote.compiler.codegen.wgsl.features import Unsupported
from tinote.ir.types import f32


def _f(value: float) -> str:
    return f"{f32.round(value)!r}f" if value >= 0 else f"(-{f32.round(-value)!r}f)"


def _d(value: float) -> str:
    return f"{value!r}lf" if value >= 0 else f"(-{-value!r}lf)"


def _horner(coefficients: Sequence[float], at: str, double: bool = False) -> str:
    number = _d if double else _f
    text = number(coefficients[-1])
    for value in reversed(coefficients[:-1]):
        text = f"({text} * {at} + {number(value)})" if double else f"fma({text}, {at}, {number(value)})"
    return text


EXP = f"""\
fn exp_f32(x: f32) -> f32 {{
  if (isnan_f32(x)) {{ return x; }}
  if (x > 89.0) {{ return bitcast<f32>(inf_bits); }}
  if (x < -104.0) {{ return 0.0; }}
  let n = round(x * {_f(1 / math.log(2))});
  let r = (x - n * {_f(c.LN2_HIGH)}) - n * {_f(c.LN2_LOW)};
  let e = fma({_horner(c.EXP, "r")}, r * r, r) + 1.0;
  let power = i32(n); let part = power >> 1u;
  return e * bitcast<f32>((part + 127) << 23u) * bitcast<f32>((power - part + 127) << 23u);
}}
"""

LOG = f"""\
fn log_f32(x: f32) -> f32 {{
  if (x == 0.0) {{ return -bitcast<f32>(inf_bits); }}
  if (isnan_f32(x) || x < 0.0) {{ return bitcast<f32>(nan_bits); }}
  if (bitcast<u32>(x) == 0x7f800000u) {{ return x; }}
  let tiny = x < {_f(2.0**-126)};
  let above = bitcast<i32>(select(x, x * 8388608.0, tiny)) - 0x3F3504F3;
  let k = f32((above >> 23u) - select(0, 23, tiny));
  let f = bitcast<f32>((above & 0x7FFFFF) + 0x3F3504F3) - 1.0;
  let z = f * f;
  let s = fma(z, -0.5, fma(k, {_f(c.LN2_LOW)}, f * z * {_horner(c.LOG, "f")}));
  return fma(k, {_f(c.LN2_HIGH)}, f + s);
}}
"""

# An angle less whole quarter turns, and their number. Of a large one, the product of its digits with those of 2/pi
# from the place of 2 on: 96 of them.
_TABLE = ", ".join(f"{word:#x}u" for word in c.TWO_OVER_PI)
TURNS = f"""\
struct Turns {{ rest: f32, quarters: i32 }}
var<private> two_over_pi: array<u32, 8> = array<u32, 8>({_TABLE});
fn turns_f32(x: f32) -> Turns {{
  let size = abs(x);
  if (size < 512.0) {{
    let n = round(x * {_f(2 / math.pi)});
    let r = ((x - n * {_f(c.HALF_PI_PIECES[0])}) - n * {_f(c.HALF_PI_PIECES[1])}) - n * {_f(c.HALF_PI_PIECES[2])};
    return Turns(r - n * {_f(c.HALF_PI_PIECES[3])}, i32(n));
  }}
  let bits = bitcast<u32>(size);
  let digits = (bits & 0x7fffffu) | 0x800000u;
  let place = (bits >> 23u) - 120u;
  let word = min(place >> 5u, 4u); let by = place & 31u;
  var window = array<u32, 3>();
  for (var k = 0u; k < 3u; k++) {{
    let next = select(two_over_pi[word + k + 1u] >> ((32u - by) & 31u), 0u, by == 0u);
    window[k] = (two_over_pi[word + k] << by) | next;
  }}
  let low = wide_product(digits, window[2]);
  let middle = wide_add(wide_product(digits, window[1]), Wide(low.y, 0u));
  let high = digits * window[0] + middle.y + 0x20000000u;
  let quarters = high >> 30u;
  // What is left of a quarter turn, less half of one, in 62 digits.
  let left = wide_sub(Wide(middle.x, high & 0x3fffffffu), Wide(0u, 0x20000000u));
  let part = wide_abs(left);
  let rest = (f32(part.y) * {_f(2.0**-30)} + f32(part.x) * {_f(2.0**-62)}) * {_f(math.pi / 2)};
  let turned = select(rest, -rest, (left.y >> 31u) != 0u);
  if (x < 0.0) {{ return Turns(-turned, -i32(quarters)); }}
  return Turns(turned, i32(quarters));
}}
"""

WAVE = f"""\
fn wave_f32(x: f32, ahead: i32) -> f32 {{
  if ((bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u) {{ return bitcast<f32>(nan_bits); }}
  let t = turns_f32(x); let q = t.quarters + ahead; let r = t.rest; let z = r * r;
  let sine = fma(r * z, {_horner(c.SIN, "z")}, r);
  let cosine = fma(z * z, {_horner(c.COS, "z")}, fma(z, -0.5, 1.0));
  let found = select(sine, cosine, (q & 1) != 0);
  return select(found, -found, (q & 2) != 0);
}}
"""

TAN = f"""\
fn tan_f32(x: f32) -> f32 {{
  if ((bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u) {{ return bitcast<f32>(nan_bits); }}
  let t = turns_f32(x); let r = t.rest; let z = r * r;
  let sine = fma(r * z, {_horner(c.SIN, "z")}, r);
  let cosine = fma(z * z, {_horner(c.COS, "z")}, fma(z, -0.5, 1.0));
  return select(sine / cosine, -cosine / sine, (t.quarters & 1) != 0);
}}
"""

TANH = f"""\
fn tanh_f32(x: f32) -> f32 {{
  if (isnan_f32(x)) {{ return x; }}
  let size = abs(x); let z = x * x;
  if (size < 0.625) {{ return fma(x * z, {_horner(c.TANH, "z")}, x); }}
  let large = 1.0 - 2.0 / (exp_f32(size + size) + 1.0);
  return select(large, -large, x < 0.0);
}}
"""

ASIN = f"""\
fn asin_near_f32(x: f32) -> f32 {{ let z = x * x; return fma(x * z, {_horner(c.ASIN, "z")}, x); }}
fn asin_f32(x: f32) -> f32 {{
  let size = abs(x);
  if (!(size <= 1.0)) {{ return bitcast<f32>(nan_bits); }}
  if (size <= 0.5) {{ return asin_near_f32(x); }}
  let found = {_f(math.pi / 2)} - 2.0 * asin_near_f32(sqrt((1.0 - size) * 0.5));
  return select(found, -found, x < 0.0);
}}
fn acos_f32(x: f32) -> f32 {{
  let size = abs(x);
  if (!(size <= 1.0)) {{ return bitcast<f32>(nan_bits); }}
  if (size <= 0.5) {{ return {_f(math.pi / 2)} - asin_near_f32(x); }}
  let found = 2.0 * asin_near_f32(sqrt((1.0 - size) * 0.5));
  return select(found, {_f(math.pi)} - found, x < 0.0);
}}
"""

_TAN_EIGHTH = math.sqrt(2) - 1
ATAN2 = f"""\
fn atan2_f32(y: f32, x: f32) -> f32 {{
  if (isnan_f32(y) || isnan_f32(x)) {{ return bitcast<f32>(nan_bits); }}
  let ay = abs(y); let ax = abs(x); let steep = ay > ax;
  let large = select(ax, ay, steep); let small = select(ay, ax, steep);
  var t = small / large;
  if (large == 0.0) {{ t = 0.0; }}
  if (bitcast<u32>(large) == 0x7f800000u) {{ t = select(0.0, 1.0, bitcast<u32>(small) == 0x7f800000u); }}
  let second = t > {_f(_TAN_EIGHTH)};
  let u = select(t, (t - 1.0) / (t + 1.0), second); let z = u * u;
  var found = fma(u * z, {_horner(c.ATAN, "z")}, u);
  found = select(found, found + {_f(math.pi / 4)}, second);
  found = select(found, {_f(math.pi / 2)} - found, steep);
  found = select(found, {_f(math.pi)} - found, (bitcast<u32>(x) >> 31u) != 0u);
  return bitcast<f32>((bitcast<u32>(found) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}}
"""

# The logarithm as a sum of two numbers, the first of twelve digits; its product with the twelve first digits of the
# exponent is exact.
POW = f"""\
fn head_f32(a: f32) -> f32 {{ return bitcast<f32>(bitcast<u32>(a) & 0xfffff000u); }}
fn pow_size_f32(x: f32, y: f32) -> f32 {{
  let tiny = x < {_f(2.0**-126)};
  let above = bitcast<i32>(select(x, x * 8388608.0, tiny)) - 0x3F3504F3;
  let k = f32((above >> 23u) - select(0, 23, tiny));
  let m = bitcast<f32>((above & 0x7FFFFF) + 0x3F3504F3);
  // s = (m - 1) / (m + 1) in two parts
  let f = m - 1.0; let d = m + 1.0; let d_low = (1.0 - (d - m));
  let s = head_f32(f / d); let d_head = head_f32(d);
  let s_low = (((f - s * d_head) - s * (d - d_head)) - s * d_low) / d;
  let z = s * s; let whole = s + s_low; let zw = whole * whole;
  let cube = zw * whole * {_horner(c.LOG_RATIO, "zw")};
  let first = k * {_f(c.LN2_SHORT)};
  // Cutting digits off is what no driver rearranges.
  let high = head_f32(first + 2.0 * s);
  let low = ((first - high) + 2.0 * s) + fma(k, {_f(c.LN2_REST)}, 2.0 * s_low + cube);
  let total = high + low; let l = high; let l_low = low;
  let y_head = head_f32(y); let y_low = y - y_head;
  let product = y_head * l; let rest = y_head * l_low + y_low * total;
  if (product + rest > 89.0) {{ return bitcast<f32>(inf_bits); }}
  if (product + rest < -104.0) {{ return 0.0; }}
  let n = round((product + rest) * {_f(1 / math.log(2))});
  let r = ((product - n * {_f(c.LN2_SHORT)}) - n * {_f(c.LN2_REST)}) + rest;
  let e = fma({_horner(c.EXP, "r")}, r * r, r) + 1.0;
  let power = i32(n); let part = power >> 1u;
  return e * bitcast<f32>((part + 127) << 23u) * bitcast<f32>((power - part + 127) << 23u);
}}
fn pow_f32(a: f32, b: f32) -> f32 {{
  if (b == 0.0 || a == 1.0) {{ return 1.0; }}
  if (isnan_f32(a) || isnan_f32(b)) {{ return bitcast<f32>(nan_bits); }}
  let size = abs(a); let big = abs(b);
  let endless = bitcast<f32>(inf_bits);
  if (big == endless) {{ return select(select(0.0, endless, (size > 1.0) == (b > 0.0)), 1.0, size == 1.0); }}
  let is_whole = floor(b) == b;
  let odd = is_whole && big < 16777216.0 && (i32(b) & 1) != 0;
  let negative = (bitcast<u32>(a) >> 31u) != 0u;
  if (a < 0.0 && !is_whole && size != endless) {{ return bitcast<f32>(nan_bits); }}
  var found = 1.0;
  if (size == 0.0 || size == endless) {{ found = select(endless, 0.0, (size == 0.0) == (b > 0.0)); }}
  else if (size != 1.0) {{ found = pow_size_f32(size, b); }}
  return select(found, -found, negative && odd);
}}
"""

FMOD = """\
// `whole`: the quotient without its digits behind the point, if it fits.
struct DivisionF32 { rest: f32, whole: u32 }
fn divide_f32(a: f32, b: f32) -> DivisionF32 {
  let x = bitcast<u32>(a) & 0x7fffffffu; let y = bitcast<u32>(b) & 0x7fffffffu;
  if (y == 0u || x >= 0x7f800000u || y > 0x7f800000u) { return DivisionF32(bitcast<f32>(nan_bits), 0u); }
  if (x < y) { return DivisionF32(a, 0u); }
  let sign = bitcast<u32>(a) & 0x80000000u;
  let ex = max(x >> 23u, 1u); let ey = max(y >> 23u, 1u);
  let mx = select(x & 0x7fffffu, (x & 0x7fffffu) | 0x800000u, x >= 0x800000u);
  let my = select(y & 0x7fffffu, (y & 0x7fffffu) | 0x800000u, y >= 0x800000u);
  var rest = mx % my; var whole = mx / my;
  var places = ex - ey;
  loop {
    if (places == 0u || rest == 0u) { break; }
    let by = min(places, 8u);
    whole = (whole << by) + (rest << by) / my;
    rest = (rest << by) % my;
    places -= by;
  }
  whole = whole << (places & 31u);
  if (rest == 0u) { return DivisionF32(bitcast<f32>(sign), whole); }
  let top = firstLeadingBit(rest);
  let exponent = ey + top;
  // The number is rest times two to the power of ey - 150.
  if (exponent > 23u) {
    let bits = sign | ((exponent - 23u) << 23u) | ((rest << (23u - top)) & 0x7fffffu);
    return DivisionF32(bitcast<f32>(bits), whole);
  }
  return DivisionF32(bitcast<f32>(sign | (rest << (ey - 1u))), whole);
}
fn fmod_f32(a: f32, b: f32) -> f32 { return divide_f32(a, b).rest; }
fn mod_f32(a: f32, b: f32) -> f32 {
  let rest = fmod_f32(a, b);
  if (rest == 0.0) { return bitcast<f32>(bitcast<u32>(b) & 0x80000000u); }
  if (isnan_f32(rest)) { return rest; }
  if (bitcast<u32>(b) << 1u == 0xff000000u) { return select(rest, b, (rest < 0.0) != (b < 0.0)); }
  return select(rest, rest + b, (rest < 0.0) != (b < 0.0));
}
fn floordiv_f32(a: f32, b: f32) -> f32 {
  let q = a / b;
  if (isnan_f32(q) || abs(q) >= 16777216.0) { return floor(q); }
  if (q == 0.0) { return select(q, -1.0, !(a == 0.0) && (bitcast<u32>(q) >> 31u) != 0u); }
  let d = divide_f32(a, b);
  let found = f32(d.whole);
  if (q > 0.0) { return found; }
  return select(-found, -found - 1.0, !(d.rest == 0.0));
}
"""

# The same of f64, in pairs of words, digit by digit.
FMOD_F64 = """\
fn top_of_wide(a: Wide) -> u32 { return select(firstLeadingBit(a.x), firstLeadingBit(a.y) + 32u, a.y != 0u); }
struct DivisionF64 { rest: f64, whole: Wide }
fn divide_f64(a: f64, b: f64) -> DivisionF64 {
  let x = f64_words(a) & Wide(0xffffffffu, 0x7fffffffu); let y = f64_words(b) & Wide(0xffffffffu, 0x7fffffffu);
  let endless = Wide(0u, 0x7ff00000u);
  if (all(y == Wide()) || !wide_below(x, endless) || wide_below(endless, y)) {
    return DivisionF64(f64(bitcast<f32>(nan_bits)), Wide());
  }
  if (wide_below(x, y)) { return DivisionF64(a, Wide()); }
  var whole = Wide();
  let sign = f64_words(a).y & 0x80000000u;
  var rest = Wide(x.x, select(x.y & 0xfffffu, (x.y & 0xfffffu) | 0x100000u, x.y >= 0x100000u));
  var my = Wide(y.x, select(y.y & 0xfffffu, (y.y & 0xfffffu) | 0x100000u, y.y >= 0x100000u));
  let up_x = 52u - top_of_wide(rest); let up_y = 52u - top_of_wide(my);
  rest = wide_shl(rest, up_x); my = wide_shl(my, up_y);
  let ex = i32(max(x.y >> 20u, 1u)) - i32(up_x); let ey = i32(max(y.y >> 20u, 1u)) - i32(up_y);
  if (!wide_below(rest, my)) { rest = wide_sub(rest, my); whole.x = 1u; }
  var places = ex - ey;
  loop {
    if (places == 0 || all(rest == Wide())) { break; }
    rest = Wide(rest.x << 1u, (rest.y << 1u) | (rest.x >> 31u));
    whole = Wide(whole.x << 1u, (whole.y << 1u) | (whole.x >> 31u));
    if (!wide_below(rest, my)) { rest = wide_sub(rest, my); whole.x |= 1u; }
    places -= 1;
  }
  whole = wide_shl(whole, u32(places));
  if (all(rest == Wide())) { return DivisionF64(f64_from(Wide(0u, sign)), whole); }
  let up = 52u - top_of_wide(rest);
  let exponent = ey - i32(up);
  if (exponent > 0) {
    let digits = wide_shl(rest, up);
    return DivisionF64(f64_from(Wide(digits.x, sign | (u32(exponent) << 20u) | (digits.y & 0xfffffu))), whole);
  }
  // Smaller than any with all digits: shifted up or down to the smallest exponent.
  if (ey > 1) { rest = wide_shl(rest, u32(ey - 1)); } else { rest = wide_shr(rest, u32(1 - ey)); }
  return DivisionF64(f64_from(Wide(rest.x, sign | rest.y)), whole);
}
fn fmod_f64(a: f64, b: f64) -> f64 { return divide_f64(a, b).rest; }
fn mod_f64(a: f64, b: f64) -> f64 {
  let rest = fmod_f64(a, b);
  let sign = f64_words(b).y & 0x80000000u;
  if (rest == 0.0lf) { return f64_from(Wide(0u, sign)); }
  if (isnan_f64(rest)) { return rest; }
  let other = ((f64_words(rest).y ^ sign) >> 31u) != 0u;
  if ((f64_words(b).y & 0x7fffffffu) == 0x7ff00000u) { return select(rest, b, other); }
  return select(rest, rest + b, other);
}
fn floordiv_f64(a: f64, b: f64) -> f64 {
  let q = a / b;
  if (isnan_f64(q) || abs(q) >= 9007199254740992.0lf) { return floor(q); }
  if (q == 0.0lf) { return select(q, -1.0lf, !(a == 0.0lf) && (f64_words(q).y >> 31u) != 0u); }
  let d = divide_f64(a, b);
  let found = f64(d.whole.y) * 4294967296.0lf + f64(d.whole.x);
  if (q > 0.0lf) { return found; }
  return select(-found, -found - 1.0lf, !(d.rest == 0.0lf));
}
"""

# Of f64, with the polynomials of the CPU.
_POWERS_F64 = """\
fn two_to_f64(n: i32) -> f64 { return f64_from(Wide(0u, u32(n + 1023) << 20u)); }
"""
EXP_F64 = f"""\
fn exp_f64(x: f64) -> f64 {{
  if (isnan_f64(x)) {{ return x; }}
  if (x > 710.0lf) {{ return f64(bitcast<f32>(inf_bits)); }}
  if (x < -746.0lf) {{ return 0.0lf; }}
  let n = floor(x * {_d(1 / math.log(2))} + 0.5lf);
  let r = (x - n * {_d(c.LN2_HIGH_F64)}) - n * {_d(c.LN2_LOW_F64)};
  let e = ({_horner(c.EXP_F64, "r", True)} * (r * r) + r) + 1.0lf;
  let power = i32(n); let part = power >> 1u;
  return e * two_to_f64(part) * two_to_f64(power - part);
}}
"""
LOG_F64 = f"""\
fn log_f64(x: f64) -> f64 {{
  if (x == 0.0lf) {{ return -f64(bitcast<f32>(inf_bits)); }}
  if (isnan_f64(x) || x < 0.0lf) {{ return f64(bitcast<f32>(nan_bits)); }}
  var words = f64_words(x);
  if (words.y == 0x7ff00000u) {{ return x; }}
  var shift = 1023;
  if (words.y < 0x100000u) {{ words = f64_words(x * 18014398509481984.0lf); shift = 1023 + 54; }}
  let above = wide_sub(words, Wide(0x667F3BCDu, 0x3FE6A09Eu - 0x3FF00000u));
  let k = f64(i32(above.y >> 20u) - shift);
  let m = f64_from(wide_add(Wide(above.x, above.y & 0xfffffu), Wide(0x667F3BCDu, 0x3FE6A09Eu)));
  let f = m - 1.0lf; let s = f / (f + 2.0lf); let z = s * s; let half = f * f * 0.5lf;
  let w = s * (z * {_horner(c.LOG_F64, "z", True)} + half) + k * {_d(c.LN2_LOW_F64)};
  return k * {_d(c.LN2_HIGH_F64)} - (((half - w)) - f);
}}
"""
TANH_F64 = """\
fn tanh_f64(x: f64) -> f64 {
  if (isnan_f64(x)) { return x; }
  let size = abs(x);
  if (size < 1e-5lf) { return x - x * x * x * 0.3333333333333333lf; }
  if (size < 0.3lf) {
    // Its continued fraction.
    let z = x * x;
    return x / (1.0lf + z / (3.0lf + z / (5.0lf + z / (7.0lf + z / (9.0lf + z / (11.0lf + z / 13.0lf))))));
  }
  let large = 1.0lf - 2.0lf / (exp_f64(min(size, 22.0lf) * 2.0lf) + 1.0lf);
  return select(large, -large, x < 0.0lf);
}
"""


def _digits_of_two_over_pi(count: int) -> int:
    """The first binary digits of 2/pi after the point, as an integer: pi by Machin's formula."""
    one = 1 << (count + 64)

    def arctan_of_inverse(n: int) -> int:
        term = total = one // n
        k, sign = 3, -1
        while term:
            term //= n * n
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return (2 * one << count) // pi


#: Words of 2/pi, after two of zeros: enough digits for the largest number; a product uses 192 of them.
_WORDS_F64 = 41
_DIGITS_F64 = _digits_of_two_over_pi(32 * (_WORDS_F64 - 1))
_TABLE_F64 = ", ".join([f"{(_DIGITS_F64 >> 32 * (_WORDS_F64 - k)) & 0xFFFFFFFF:#x}u" for k in range(_WORDS_F64)])
TURNS_F64 = f"""\
struct TurnsF64 {{ rest: f64, quarters: i32 }}
var<private> two_over_pi_f64: array<u32, {_WORDS_F64}> = array<u32, {_WORDS_F64}>({_TABLE_F64});
fn turns_f64(x: f64) -> TurnsF64 {{
  let bits = f64_words(x);
  let low = bits.x; let high = (bits.y & 0xfffffu) | 0x100000u;
  let place = ((bits.y >> 20u) & 0x7ffu) - 1013u;
  let word = min(place >> 5u, {_WORDS_F64 - 7}u); let by = place & 31u;
  var window = array<u32, 6>();
  for (var k = 0u; k < 6u; k++) {{
    let next = select(two_over_pi_f64[word + k + 1u] >> ((32u - by) & 31u), 0u, by == 0u);
    window[5u - k] = (two_over_pi_f64[word + k] << by) | next;
  }}
  var product = array<u32, 6>();
  var carry = Wide();
  for (var k = 0u; k < 6u; k++) {{
    // What comes to this word, and what to the next two: each sum fits.
    let first = wide_add(wide_product(low, window[k]), Wide(carry.x, 0u));
    var second = Wide();
    if (k > 0u) {{ second = wide_product(high, window[k - 1u]); }}
    let sum = wide_add(Wide(first.x, 0u), Wide(second.x, 0u));
    product[k] = sum.x;
    let up = wide_add(Wide(first.y, 0u), wide_add(Wide(second.y, 0u), Wide(carry.y, 0u)));
    carry = wide_add(up, Wide(sum.y, 0u));
  }}
  let top = product[5] + 0x20000000u;
  let quarters = i32(top >> 30u);
  product[5] = (top & 0x3fffffffu) - 0x20000000u;
  let below = (product[5] >> 31u) != 0u;
  if (below) {{
    var one = 1u;
    for (var k = 0u; k < 6u; k++) {{
      product[k] = ~product[k] + one;
      one = select(0u, one, product[k] == 0u);
    }}
  }}
  var part = f64(product[1]) * {_d(2.0**-158)} + f64(product[2]) * {_d(2.0**-126)};
  part = part + f64(product[3]) * {_d(2.0**-94)};
  part = part + f64(product[4]) * {_d(2.0**-62)};
  part = (part + f64(product[5]) * {_d(2.0**-30)}) * {_d(math.pi / 2)};
  let rest = select(part, -part, below);
  if (x < 0.0lf) {{ return TurnsF64(-rest, -quarters); }}
  return TurnsF64(rest, quarters);
}}
"""
WAVE_F64 = f"""\
fn wave_f64(x: f64, ahead: i32) -> f64 {{
  if ((f64_words(x).y & 0x7ff00000u) == 0x7ff00000u) {{ return f64(bitcast<f32>(nan_bits)); }}
  var r = 0.0lf; var q = ahead;
  if (abs(x) < 524288.0lf) {{
    let n = floor(x * {_d(2 / math.pi)} + 0.5lf);
    // Pieces of pi/2 with 33 digits each.
    let r1 = x - n * 1.57079632673412561417lf;
    let w1 = n * 6.07710050630396597660e-11lf;
    let r2 = r1 - w1;
    let w2 = n * 2.02226624879595063154e-21lf - ((r1 - r2) - w1);
    r = r2 - w2; q += i32(n);
  }} else {{
    let t = turns_f64(x);
    r = t.rest; q += t.quarters;
  }}
  let z = r * r;
  let sine = r + r * z * {_horner(c.SIN_F64, "z", True)};
  let cosine = 1.0lf - (0.5lf * z - z * z * {_horner(c.COS_F64, "z", True)});
  let found = select(sine, cosine, (q & 1) != 0);
  return select(found, -found, (q & 2) != 0);
}}
"""
TAN_F64 = "fn tan_f64(x: f64) -> f64 { return wave_f64(x, 0) / wave_f64(x, 1); }\n"
# The angle rounded to f32, and the error of the direction: a sine that is nearly its angle.
ATAN2_F64 = f"""\
fn atan2_f64(y: f64, x: f64) -> f64 {{
  let endless = f64(bitcast<f32>(inf_bits));
  let size = max(abs(x), abs(y));
  if (isnan_f64(x) || isnan_f64(y) || size == 0.0lf || size == endless) {{
    let signs = f64(atan2_f32(f32(y), f32(x)));
    let eighths = round(signs * {_d(4 / math.pi)});
    return select(signs, eighths * {_d(math.pi / 4)}, eighths != 0.0lf);
  }}
  let u = x / size; let v = y / size;
  if (v == 0.0lf && (f64_words(x).y >> 31u) == 0u) {{ return y / x; }}
  let near = f64(atan2_f32(f32(v), f32(u)));
  let s = wave_f64(near, 0); let c = wave_f64(near, 1);
  let off = (v * c - u * s) / (u * c + v * s);
  return near + (off - off * off * off * 0.3333333333333333lf);
}}
"""
ASIN_F64 = """\
fn asin_f64(x: f64) -> f64 {
  if (!(abs(x) <= 1.0lf)) { return f64(bitcast<f32>(nan_bits)); }
  return atan2_f64(x, sqrt((1.0lf - x) * (1.0lf + x)));
}
fn acos_f64(x: f64) -> f64 {
  if (!(abs(x) <= 1.0lf)) { return f64(bitcast<f32>(nan_bits)); }
  return atan2_f64(sqrt((1.0lf - x) * (1.0lf + x)), x);
}
"""
POW_F64 = """\
fn pow_f64(a: f64, b: f64) -> f64 {
  if (b == 0.0lf || a == 1.0lf) { return 1.0lf; }
  if (isnan_f64(a) || isnan_f64(b)) { return f64(bitcast<f32>(nan_bits)); }
  let is_whole = floor(b) == b;
  if (is_whole && abs(b) <= 64.0lf) {
    var n = i32(abs(b)); var x = a; var r = 1.0lf;
    loop { if (n == 0) { break; } if ((n & 1) != 0) { r = r * x; } x = x * x; n = n >> 1u; }
    return select(r, 1.0lf / r, b < 0.0lf);
  }
  let size = abs(a);
  if (a < 0.0lf && !is_whole) { return f64(bitcast<f32>(nan_bits)); }
  let odd = is_whole && floor(b * 0.5lf) * 2.0lf != b;
  if (size == 0.0lf) { return select(f64(bitcast<f32>(inf_bits)), 0.0lf, b > 0.0lf); }
  let found = exp_f64(b * log_f64(size));
  return select(found, -found, a < 0.0lf && odd);
}
"""

#: A helper by its name: its text, and the helpers that it calls.
TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "isnan_f32": ("fn isnan_f32(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }\n", ()),
    "exp_f32": (EXP, ("isnan_f32",)),
    "log_f32": (LOG, ("isnan_f32",)),
    "turns_f32": (TURNS, ("wide",)),
    "wave_f32": (WAVE, ("turns_f32",)),
    "tan_f32": (TAN, ("turns_f32",)),
    "tanh_f32": (TANH, ("exp_f32",)),
    "asin_f32": (ASIN, ()),
    "atan2_f32": (ATAN2, ("isnan_f32",)),
    "pow_f32": (POW, ("isnan_f32",)),
    "mod_f32": (FMOD, ("isnan_f32",)),
    "bits_f64": (
        "fn f64_from(a: Wide) -> f64 { return bitcast<f64>((u64(a.y) << 32u) | u64(a.x)); }\n"
        "fn f64_words(a: f64) -> Wide { let b = bitcast<u64>(a); return Wide(u32(b), u32(b >> 32u)); }\n"
        "fn isnan_f64(a: f64) -> bool {\n"
        "  let b = f64_words(a); let top = b.y & 0x7fffffffu;\n"
        "  return top > 0x7ff00000u || (top == 0x7ff00000u && b.x != 0u);\n}\n",
        ("wide",),
    ),
    "two_to_f64": (_POWERS_F64, ("bits_f64",)),
    "exp_f64": (EXP_F64, ("two_to_f64",)),
    "log_f64": (LOG_F64, ("bits_f64",)),
    "tanh_f64": (TANH_F64, ("exp_f64",)),
    "turns_f64": (TURNS_F64, ("bits_f64",)),
    "wave_f64": (WAVE_F64, ("turns_f64",)),
    "mod_f64": (FMOD_F64, ("bits_f64",)),
    "tan_f64": (TAN_F64, ("wave_f64",)),
    "atan2_f64": (ATAN2_F64, ("atan2_f32", "wave_f64")),
    "asin_f64": (ASIN_F64, ("atan2_f64",)),
    "pow_f64": (POW_F64, ("exp_f64", "log_f64")),
}
#: The helper that contains a function, and its name there; an argument beyond those of the function.
_PLACES = {"sin": ("wave", ", 0"), "cos": ("wave", ", 1"), "acos": ("asin", ""), "floordiv": ("mod", "")}


def place_of(name: str, ty: str) -> tuple[str, str, str]:
    """The helper that has a function of a type, the name of the function there, and further arguments. Raises
    `Unsupported`.
    """
    helper, further = _PLACES.get(name, (name, ""))
    helper = f"{helper}_{ty}"
    if helper not in TEXTS:
        raise Unsupported(f"'{name}' of {ty}")
    called = helper if further else f"{'fmod' if name == 'fmod' else name}_{ty}"
    return helper, called, further
