"""64-bit integers as pairs of words (low, high), since WGSL has none. Hoisted checks of indices, capacities of stacks,
counters and random numbers need them in any kernel.
"""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.codegen.wgsl.features import Unsupported
from tinote.compiler.codegen.wgsl.types import TYPES, is_wide
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, element_type, f64, i64, u1, u64

ALIAS = "alias Wide = vec2<u32>;\n"
HELPERS = """\
fn wide_of(a: i32) -> Wide { return Wide(u32(a), u32(a >> 31u)); }
fn wide_add(a: Wide, b: Wide) -> Wide { let low = a.x + b.x; return Wide(low, a.y + b.y + u32(low < a.x)); }
fn wide_sub(a: Wide, b: Wide) -> Wide { return Wide(a.x - b.x, a.y - b.y - u32(a.x < b.x)); }
fn wide_product(a: u32, b: u32) -> Wide {
  let c = a & 0xffffu; let d = a >> 16u; let e = b & 0xffffu; let f = b >> 16u;
  let middle = d * e + ((c * e) >> 16u); let other = c * f + (middle & 0xffffu);
  return Wide(a * b, d * f + (middle >> 16u) + (other >> 16u));
}
fn wide_mul(a: Wide, b: Wide) -> Wide {
  let low = wide_product(a.x, b.x);
  return Wide(low.x, low.y + a.x * b.y + a.y * b.x);
}
fn wide_below(a: Wide, b: Wide) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn wide_less(a: Wide, b: Wide) -> bool {
  return wide_below(Wide(a.x, a.y ^ 0x80000000u), Wide(b.x, b.y ^ 0x80000000u));
}
fn wide_shl(a: Wide, by: u32) -> Wide {
  if (by == 0u) { return a; }
  if (by >= 64u) { return Wide(); }
  if (by >= 32u) { return Wide(0u, a.x << (by - 32u)); }
  return Wide(a.x << by, (a.y << by) | (a.x >> (32u - by)));
}
fn wide_shr(a: Wide, by: u32) -> Wide {
  if (by == 0u) { return a; }
  if (by >= 64u) { return Wide(); }
  if (by >= 32u) { return Wide(a.y >> (by - 32u), 0u); }
  return Wide((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}
fn wide_sar(a: Wide, by: u32) -> Wide {
  let sign = u32(i32(a.y) >> 31u);
  if (by == 0u) { return a; }
  if (by >= 64u) { return Wide(sign); }
  if (by >= 32u) { return Wide(u32(i32(a.y) >> (by - 32u)), sign); }
  return Wide((a.x >> by) | (a.y << (32u - by)), u32(i32(a.y) >> by));
}
fn wide_neg(a: Wide) -> Wide { return wide_sub(Wide(), a); }
fn wide_abs(a: Wide) -> Wide { return select(a, wide_neg(a), (a.y >> 31u) != 0u); }
fn wide_shift(b: Wide) -> u32 { return select(min(b.x, 64u), 64u, b.y != 0u); }
"""
DIVISION = """\
struct WideDivision { quotient: Wide, rest: Wide }
fn wide_divide(a: Wide, b: Wide) -> WideDivision {
  if (all(b == Wide())) { return WideDivision(Wide(), Wide()); }
  if (a.y == 0u && b.y == 0u) { return WideDivision(Wide(a.x / b.x, 0u), Wide(a.x % b.x, 0u)); }
  var q = a; var r = Wide();
  for (var k = 0u; k < 64u; k++) {
    let over = (r.y >> 31u) != 0u;
    r = Wide((r.x << 1u) | (q.y >> 31u), (r.y << 1u) | (r.x >> 31u));
    q = Wide(q.x << 1u, (q.y << 1u) | (q.x >> 31u));
    if (over || !wide_below(r, b)) { r = wide_sub(r, b); q.x |= 1u; }
  }
  return WideDivision(q, r);
}
fn wide_signed(a: Wide, b: Wide) -> WideDivision {
  let d = wide_divide(wide_abs(a), wide_abs(b));
  let other = ((a.y ^ b.y) >> 31u) != 0u;
  let rest = select(d.rest, wide_neg(d.rest), (a.y >> 31u) != 0u);
  return WideDivision(select(d.quotient, wide_neg(d.quotient), other), rest);
}
fn wide_floored(a: Wide, b: Wide) -> WideDivision {
  let d = wide_signed(a, b);
  if (all(d.rest == Wide()) || ((d.rest.y ^ b.y) >> 31u) == 0u) { return d; }
  return WideDivision(wide_sub(d.quotient, Wide(1u, 0u)), wide_add(d.rest, b));
}
"""
POWER = """\
fn wide_pow_{name}(base: Wide, exponent: Wide) -> Wide {{
  let one = Wide(1u, 0u);
  if ({signed} && (exponent.y >> 31u) != 0u) {{
    if (all(base == one)) {{ return one; }}
    if (all(base == Wide(0xffffffffu))) {{ return select(one, base, (exponent.x & 1u) != 0u); }}
    return Wide();
  }}
  var x = base; var n = exponent; var r = one;
  loop {{
    if (all(n == Wide())) {{ break; }}
    if ((n.x & 1u) != 0u) {{ r = wide_mul(r, x); }}
    x = wide_mul(x, x); n = wide_shr(n, 1u);
  }}
  return r;
}}
"""
RANDOM = """\
fn wide_round(z: Wide, by: u32, factor: Wide) -> Wide { return wide_mul(z ^ wide_shr(z, by), factor); }
fn wide_random(seed: Wide, iteration: Wide, draw: Wide) -> u32 {
  var z = seed;
  for (var k = 0u; k < 2u; k++) {
    let word = wide_add(select(iteration, draw, k == 1u), Wide(1u, 0u));
    z = wide_add(z, wide_mul(word, Wide(0x7F4A7C15u, 0x9E3779B9u)));
    z = wide_round(wide_round(z, 30u, Wide(0x1CE4E5B9u, 0xBF58476Du)), 27u, Wide(0x133111EBu, 0x94D049BBu));
    z = z ^ wide_shr(z, 31u);
  }
  return z.y;
}
"""
FROM_FLOAT = """\
fn wide_from_{ty}_{name}(a: {ty}) -> Wide {{
  if (!(a == a)) {{ return Wide(); }}
  let size = abs(a);
  if (size >= {ty}({limit})) {{
    return select({highest}, {lowest}, a < {ty}(0));
  }}
  {guard}
  let high = floor(size / {ty}(4294967296));
  let found = Wide(u32(size - high * {ty}(4294967296)), u32(high));
  return select(found, wide_neg(found), a < {ty}(0));
}}
"""


def _from_float(t: Scalar, ty: str) -> str:
    if t is i64:
        bounds = ("9223372036854775808.0", "Wide(0xffffffffu, 0x7fffffffu)", "Wide(0u, 0x80000000u)", "")
    else:
        negative = f"if (a <= {ty}(0)) {{ return Wide(); }}"
        bounds = ("18446744073709551616.0", "Wide(0xffffffffu)", "Wide()", negative)
    limit, highest, lowest, guard = bounds
    return FROM_FLOAT.format(ty=ty, name=t.name, limit=limit, highest=highest, lowest=lowest, guard=guard)


#: A helper by its name: the text, whose functions call those of `HELPERS`.
TEXTS: dict[str, Callable[[], str]] = {
    "wide_divide": lambda: DIVISION,
    "wide_random": lambda: RANDOM,
    "wide_pow_i64": lambda: POWER.format(name="i64", signed="true"),
    "wide_pow_u64": lambda: POWER.format(name="u64", signed="false"),
    "wide_from_f32_i64": lambda: _from_float(i64, "f32"),
    "wide_from_f32_u64": lambda: _from_float(u64, "f32"),
    "wide_from_f64_i64": lambda: _from_float(i64, "f64"),
    "wide_from_f64_u64": lambda: _from_float(u64, "f64"),
}

Need = Callable[[str], str]


def less(t: Scalar, a: str, b: str) -> str:
    """Whether a is less than b."""
    return f"wide_{'less' if t is i64 else 'below'}({a}, {b})"


def _cast(need: Need, s: Scalar, t: Scalar, a: str) -> str:
    if is_wide(t):
        if s.kind == "f":
            return f"{need(f'wide_from_{TYPES[s]}_{t.name}')}({a})"
        if is_wide(s):
            return a
        return f"wide_of({a})" if s.kind == "i" else f"Wide(u32({a}), 0u)"
    if t is u1:
        return f"any({a} != Wide())"
    if t.kind == "f":
        ty = TYPES[t]
        if s is i64:
            # The magnitude first: rounding depends on it, and the lowest number is its own magnitude.
            size = _magnitude(ty, f"wide_abs({a})")
            return f"select({size}, -{size}, ({a}.y >> 31u) != 0u)"
        return _magnitude(ty, a)
    return f"{TYPES[t]}({a}.x)"


def _magnitude(ty: str, a: str) -> str:
    if ty == "f64":
        return f"(f64({a}.y) * 4294967296.0lf + f64({a}.x))"
    return f"(f32(({a}).y) * 4294967296.0f + f32(({a}).x))"


def _shift(name: str) -> Callable[..., str]:
    def emit(need: Need, t: Scalar, a: str, b: str) -> str:
        return f"{name if name == 'wide_shl' or t is i64 else 'wide_shr'}({a}, wide_shift({b}))"

    return emit


def _division(kind: str, part: str) -> Callable[..., str]:
    def emit(need: Need, t: Scalar, a: str, b: str) -> str:
        need("wide_divide")
        return f"{kind if t is i64 else 'wide_divide'}({a}, {b}).{part}"

    return emit


_MEANING: dict[Primitive, Callable[..., str]] = {
    p.add: lambda need, t, a, b: f"wide_add({a}, {b})",
    p.sub: lambda need, t, a, b: f"wide_sub({a}, {b})",
    p.mul: lambda need, t, a, b: f"wide_mul({a}, {b})",
    p.neg: lambda need, t, a: f"wide_neg({a})",
    p.absolute: lambda need, t, a: f"wide_abs({a})" if t is i64 else a,
    p.floordiv: _division("wide_floored", "quotient"),
    p.mod: _division("wide_floored", "rest"),
    p.raw_div: _division("wide_signed", "quotient"),
    p.raw_mod: _division("wide_signed", "rest"),
    p.power: lambda need, t, a, b: f"{need(f'wide_pow_{t.name}')}({a}, {b})",
    p.lt: lambda need, t, a, b: less(t, a, b),
    p.gt: lambda need, t, a, b: less(t, b, a),
    p.le: lambda need, t, a, b: f"!{less(t, b, a)}",
    p.ge: lambda need, t, a, b: f"!{less(t, a, b)}",
    p.eq: lambda need, t, a, b: f"all({a} == {b})",
    p.ne: lambda need, t, a, b: f"any({a} != {b})",
    p.logical_not: lambda need, t, a: f"all({a} == Wide())",
    p.minimum: lambda need, t, a, b: f"select({b}, {a}, {less(t, a, b)})",
    p.maximum: lambda need, t, a, b: f"select({b}, {a}, {less(t, b, a)})",
    p.and_: lambda need, t, a, b: f"({a} & {b})",
    p.or_: lambda need, t, a, b: f"({a} | {b})",
    p.xor: lambda need, t, a, b: f"({a} ^ {b})",
    p.invert: lambda need, t, a: f"(~{a})",
    p.shl: _shift("wide_shl"),
    p.shr: _shift("wide_sar"),
    p.floor: lambda need, t, a: a,
    p.ceil: lambda need, t, a: a,
    p.round_: lambda need, t, a: a,
    p.strong_mul: lambda need, t, a, b: f"wide_mul({a}, {b})",
}


def emit(need: Need, prim: Primitive, t: Scalar, atoms: tuple[Atom, ...], operands: list[str]) -> str:
    """`prim` where an operand or the result has 64 bits; `need` provides a helper. Raises `Unsupported`."""
    s = element_type(atoms[0].type)
    if prim is p.cast:
        return _cast(need, s, t, operands[0])
    if prim is p.select:
        condition, a, b = operands
        return f"select({b}, {a}, {condition})"
    if prim is p.bitcast:
        if f64 in (s, t):
            return f"f64_from({operands[0]})" if t is f64 else f"f64_words({operands[0]})"
        return operands[0]
    if prim is p.random_bits:
        seed, iteration, draw = operands
        return f"{need('wide_random')}({seed}, {iteration}, wide_of({draw}))"
    found = _MEANING.get(prim)
    if found is None:
        raise Unsupported(f"'{prim.name}' of {s}")
    return found(need, s, *operands)
