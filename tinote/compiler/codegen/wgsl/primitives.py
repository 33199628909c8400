"""Primitives as WGSL expressions: one table, keyed by the primitive, with the meaning of `ir/primitives.py`.

Operations that WGSL leaves undefined or defines differently go through a helper function of the module: its arguments
are never constant expressions, so that a literal zero divisor or a wide literal shift does not make the shader invalid.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tinote.compiler.codegen.wgsl import maths, wide
from tinote.compiler.codegen.wgsl.features import Unsupported
from tinote.compiler.codegen.wgsl.types import TYPES, WIDE, is_wide, type_name
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Var
from tinote.ir.primitives import Primitive, require_all
from tinote.ir.types import Scalar, Tangents, element_type, f16, f64, u1

#: Helpers of integers; {t}: the type.
_INTEGERS = {
    "raw_div": "fn raw_div_{t}(a: {t}, b: {t}) -> {t} {{ if (b == {t}(0)) {{ return {t}(0); }} return a / b; }}\n",
    "raw_mod": (
        "fn raw_mod_{t}(a: {t}, b: {t}) -> {t} {{ if (b == {t}(0)) {{ return {t}(0); }} return a - (a / b) * b; }}\n"
    ),
    "floordiv": """\
fn floordiv_{t}(a: {t}, b: {t}) -> {t} {{
  if (b == {t}(0)) {{ return {t}(0); }}
  let q = a / b; let r = a - q * b;
  return select(q, q - {t}(1), r != {t}(0) && (r ^ b) < {t}(0));
}}
""",
    "mod": """\
fn mod_{t}(a: {t}, b: {t}) -> {t} {{
  if (b == {t}(0)) {{ return {t}(0); }}
  let r = a - (a / b) * b;
  return select(r, r + b, r != {t}(0) && (r ^ b) < {t}(0));
}}
""",
    "shl": "fn shl_{t}(a: {t}, b: u32) -> {t} {{ return select({t}(0), a << (b & 31u), b < 32u); }}\n",
    "shr": "fn shr_i32(a: i32, b: u32) -> i32 {{ return a >> min(b, 31u); }}\n",
    "ushr": "fn ushr_u32(a: u32, b: u32) -> u32 {{ return select(0u, a >> (b & 31u), b < 32u); }}\n",
    "ipow": """\
fn ipow_{t}(base: {t}, exponent: {t}) -> {t} {{
  if (exponent < {t}(0)) {{
    if (base == {t}(1)) {{ return base; }}
    if (base == {t}(0) - {t}(1)) {{ return select({t}(1), base, (exponent & {t}(1)) != {t}(0)); }}
    return {t}(0);
  }}
  var x = base; var n = exponent; var r = {t}(1);
  loop {{
    if (n == {t}(0)) {{ break; }}
    if ((n & {t}(1)) != {t}(0)) {{ r = r * x; }}
    x = x * x; n = n >> 1u;
  }}
  return r;
}}
""",
}
#: How the bits of a float are taken, and how a float is made of them.
_BITS = {
    "f32": {"bits_of": "bitcast<u32>", "made_of": "bitcast<f32>"},
    "f64": {"bits_of": "f64_words", "made_of": "f64_from"},
}
_EXTREMUM = """\
fn {name}_{t}(a: {t}, b: {t}) -> {t} {{
  if (isnan_{t}(a)) {{ return b; }}
  if (isnan_{t}(b)) {{ return a; }}
  if (a == b) {{ return {made_of}({bits_of}(a) {both} {bits_of}(b)); }}
  return select(b, a, a {order} b);
}}
"""
#: Helpers of floats; {t}: the type; `_BITS`.
_FLOATS = {
    **{
        name: _EXTREMUM.replace("{name}", name).replace("{both}", both).replace("{order}", order)
        for name, both, order in (("least", "|", "<"), ("greatest", "&", ">"))
    },
    "to_i32": """\
fn to_i32_{t}(a: {t}) -> i32 {{
  if (isnan_{t}(a)) {{ return 0i; }}
  if (a >= {t}(2147483648.0)) {{ return 2147483647i; }}
  if (a < {t}(-2147483648.0)) {{ return i32(-2147483648); }}
  return i32(a);
}}
""",
    "to_u32": """\
fn to_u32_{t}(a: {t}) -> u32 {{
  if (isnan_{t}(a) || a <= {t}(0.0)) {{ return 0u; }}
  if (a >= {t}(4294967296.0)) {{ return 4294967295u; }}
  return u32(a);
}}
""",
    "over_zero": """\
fn over_zero_{t}(a: {t}) -> {t} {{
  if (isnan_{t}(a) || a == {t}(0.0)) {{ return {t}(bitcast<f32>(nan_bits)); }}
  return select({t}(bitcast<f32>(inf_bits)), -{t}(bitcast<f32>(inf_bits)), a < {t}(0.0));
}}
""",
    "strong_mul": "fn strong_mul_{t}(a: {t}, b: {t}) -> {t} {{ if (a == {t}(0.0)) {{ return a; }} return a * b; }}\n",
    "rsqrt": """\
fn rsqrt_{t}(a: {t}) -> {t} {{
  if (a == {t}(0.0)) {{ return {t}(1.0) / a; }}
  return {t}(1.0) / sqrt(a);
}}
""",
}
#: A number minus itself, and products with zero: drivers fold them to 0 for every number.
_BY_BITS = {
    "less_itself_f32": """\
fn less_itself_f32(a: f32) -> f32 {
  return select(0.0, bitcast<f32>(nan_bits), (bitcast<u32>(a) & 0x7f800000u) == 0x7f800000u);
}
""",
    "less_itself_f64": """\
fn less_itself_f64(a: f64) -> f64 {
  return select(0.0lf, f64(bitcast<f32>(nan_bits)), (f64_words(a).y & 0x7ff00000u) == 0x7ff00000u);
}
""",
    "times_zero_f32": """\
fn times_zero_f32(a: f32) -> f32 {
  let bits = bitcast<u32>(a);
  return bitcast<f32>(select(bits & 0x80000000u, nan_bits, (bits & 0x7f800000u) == 0x7f800000u));
}
""",
    "times_zero_f64": """\
fn times_zero_f64(a: f64) -> f64 {
  let high = f64_words(a).y;
  let zero = f64_from(Wide(0u, high & 0x80000000u));
  return select(zero, f64(bitcast<f32>(nan_bits)), (high & 0x7ff00000u) == 0x7ff00000u);
}
""",
    "zero_over_f32": """\
fn zero_over_f32(a: f32) -> f32 {
  let bits = bitcast<u32>(a); let size = bits & 0x7fffffffu;
  return bitcast<f32>(select(bits & 0x80000000u, nan_bits, size == 0u || size > 0x7f800000u));
}
""",
    "zero_over_f64": """\
fn zero_over_f64(a: f64) -> f64 {
  let zero = f64_from(Wide(0u, f64_words(a).y & 0x80000000u));
  return select(zero, f64(bitcast<f32>(nan_bits)), a == 0.0lf || isnan_f64(a));
}
""",
}
_WRAP = {
    "i8": "fn wrap_i8(a: i32) -> i32 { return (a << 24u) >> 24u; }\n",
    "i16": "fn wrap_i16(a: i32) -> i32 { return (a << 16u) >> 16u; }\n",
    "u8": "fn wrap_u8(a: u32) -> u32 { return a & 0xffu; }\n",
    "u16": "fn wrap_u16(a: u32) -> u32 { return a & 0xffffu; }\n",
    # Rounds to nearest: the drivers' own packing may truncate.
    "f16": """\
fn f16_bits(a: f32) -> u32 {
  let b = bitcast<u32>(a); let sign = (b >> 16u) & 0x8000u; let m = b & 0x7fffffffu;
  if (m > 0x7f800000u) { return sign | 0x7e00u; }
  if (m >= 0x477ff000u) { return sign | 0x7c00u; }
  if (m >= 0x38800000u) { return sign | ((m - 0x38000000u + 0xfffu + ((m >> 13u) & 1u)) >> 13u); }
  if (m <= 0x33000000u) { return sign; }
  let digits = (m & 0x7fffffu) | 0x800000u; let by = 126u - (m >> 23u);
  return sign | ((digits + (1u << (by - 1u)) - 1u + ((digits >> by) & 1u)) >> by);
}
fn wrap_f16(a: f32) -> f32 { return unpack2x16float(f16_bits(a)).x; }
""",
}


class Provided:
    """The helper functions that a module uses, by name, each after those that it calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def provide(self, name: str) -> str:
        """Add the helper `name` and those that it calls; returns its name. Raises `Unsupported` where there is none."""
        if name in self.texts:
            return name
        if name in maths.TEXTS:
            text, others = maths.TEXTS[name]
            for other in others:
                self.provide(other)
        elif name == "wide":
            text = wide.HELPERS
        elif name in wide.TEXTS:
            self.provide("wide")
            text = wide.TEXTS[name]()
        elif name in _BY_BITS:
            self.provide("isnan_f32" if name.endswith("f32") else "bits_f64")
            text = _BY_BITS[name]
        elif name.startswith("wrap_"):
            text = _WRAP[name.removeprefix("wrap_")]
        else:
            kind, _, ty = name.rpartition("_")
            if ty in ("f32", "f64"):
                self.provide("isnan_f32" if ty == "f32" else "bits_f64")
            found = _INTEGERS.get(kind) or _FLOATS.get(kind)
            if found is None:
                raise Unsupported(f"'{kind}' of {ty}")
            text = found.format(t=ty, **_BITS.get(ty, {}))
        self.texts[name] = text
        return name

    def call(self, kind: str, t: Scalar, *operands: str) -> str:
        """A call of the helper of this kind for a type."""
        return f"{self.provide(f'{kind}_{TYPES[t]}')}({', '.join(operands)})"

    def maths(self, name: str, t: Scalar, *operands: str) -> str:
        """A call of a function on floats."""
        helper, called, further = maths.place_of(name, TYPES[t])
        self.provide(helper)
        return f"{called}({', '.join(operands)}{further})"


Emitter = Callable[..., str]


def _infix(sign: str) -> Emitter:
    return lambda h, t, atoms, a, b: f"({a} {sign} {b})"


def _function(name: str) -> Emitter:
    return lambda h, t, atoms, *operands: h.maths(name, t, *operands)


def _whole(name: str) -> Emitter:
    return lambda h, t, atoms, a: f"{name}({a})" if t.kind == "f" else a


def _minus(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    return h.call("less_itself", t, a) if t.kind == "f" and a == b else f"({a} - {b})"


# Some drivers fold any product or quotient with a literal zero to zero.


def _sign_of_zero(t: Scalar, atom: Atom) -> str | None:
    """The sign of a float that is written as zero."""
    if t.kind != "f" or not isinstance(atom, Lit) or atom.value != 0:
        return None
    return "-" if math.copysign(1.0, atom.value) < 0 else ""


def _with_zero(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str | None:
    """A quotient with a literal zero."""
    if (sign := _sign_of_zero(t, atoms[1])) is not None:
        return f"({sign}{h.call('over_zero', t, a)})"
    if (sign := _sign_of_zero(t, atoms[0])) is not None:
        return f"({sign}{h.call('zero_over', t, b)})"
    return None


def _quotient(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    return _with_zero(h, t, atoms, a, b) or f"({a} / {b})"


def _floored(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    return _with_zero(h, t, atoms, a, b) or _remainder("floordiv", "floordiv")(h, t, atoms, a, b)


def _times(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    for atom, other in ((atoms[0], b), (atoms[1], a)):
        if (sign := _sign_of_zero(t, atom)) is not None:
            return f"({sign}{h.call('times_zero', t, other)})"
    return f"({a} * {b})"


def _remainder(integer: str, floating: str) -> Emitter:
    def emit(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
        if t.kind != "f":
            return h.call(integer, t, a, b)
        h.provide("mod_f64" if t is f64 else "mod_f32")
        return f"{floating}_{TYPES[t]}({a}, {b})"

    return emit


def _compare(sign: str) -> Emitter:
    def emit(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
        if atoms[0].type is u1 and sign not in ("==", "!="):
            a, b = f"u32({a})", f"u32({b})"
        return f"({a} {sign} {b})"

    return emit


def _not_equal(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    # On some drivers `!=` is false for NaN.
    return f"(!({a} == {b}))" if element_type(atoms[0].type).kind == "f" else f"({a} != {b})"


def _extremum(floating: str, sign: str) -> Emitter:
    def emit(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
        if t.kind == "f":
            return h.call(floating, t, a, b)
        if t is u1:
            return f"({a} {'&&' if sign == '<' else '||'} {b})"
        return f"select({b}, {a}, {a} {sign} {b})"

    return emit


def _power(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
    exponent = atoms[1].value if len(atoms) > 1 and isinstance(atoms[1], Lit) else None
    if t.kind == "f" and exponent in (1, 2, 3, 4):
        return "(" + " * ".join([a] * int(exponent)) + ")"
    return h.maths("pow", t, a, b) if t.kind == "f" else h.call("ipow", t, a, b)


def _cast(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str) -> str:
    s = element_type(atoms[0].type)
    source, target = TYPES[s], TYPES[t]
    if t is u1:
        return a if s is u1 else f"(!({a} == {source}(0)))"
    if s.kind == "f" and t.kind in "iu":
        h.provide("isnan_f32" if source == "f32" else "bits_f64")
        if t.bits < 32:  # saturates at the limits of its own type
            found = f"{h.provide(f'to_i32_{source}')}({a})"
            return f"{target}(clamp({found}, {t.lowest}i, {t.highest}i))"
        return f"{h.provide(f'to_{target}_{source}')}({a})"
    return a if source == target else f"{target}({a})"


def _bitcast(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str) -> str:
    s = element_type(atoms[0].type)
    if f16 in (s, t) and s is not t:
        if t is f16:
            return f"unpack2x16float(u32({a})).x"
        h.provide("wrap_f16")
        return f"{TYPES[t]}(f16_bits({a}))"
    return f"bitcast<{TYPES[t]}>({a})"


def _shift(name: str) -> Emitter:
    def emit(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str, b: str) -> str:
        kind = name if name == "shl" or t.kind == "i" else "ushr"
        by = f"u32({b})"
        if t.bits < 32:  # what is shifted out of its own type is gone; a count below 0 is a large one
            by = f"select({by}, 32u, {by} >= {t.bits}u)"
        return h.call(kind, t, a, by)

    return emit


def _isnan(h: Provided, t: Scalar, atoms: tuple[Atom, ...], a: str) -> str:
    s = element_type(atoms[0].type)
    h.provide("bits_f64" if s is f64 else "isnan_f32")
    return f"isnan_{TYPES[s]}({a})"


_KEEPS: Emitter = lambda h, t, atoms, a, *others: a  # noqa: E731

EMITTERS: dict[Primitive, Emitter] = {
    p.add: _infix("+"),
    p.sub: _minus,
    p.mul: _times,
    p.div: _quotient,
    p.floordiv: _floored,
    p.mod: _remainder("mod", "mod"),
    p.raw_div: lambda h, t, atoms, a, b: _quotient(h, t, atoms, a, b) if t.kind == "f" else h.call("raw_div", t, a, b),
    p.raw_mod: _remainder("raw_mod", "fmod"),
    p.neg: lambda h, t, atoms, a: f"(-{a})" if t.kind != "u" else f"(0u - {a})",
    p.absolute: lambda h, t, atoms, a: f"abs({a})" if t.kind != "u" else a,
    p.minimum: _extremum("least", "<"),
    p.maximum: _extremum("greatest", ">"),
    p.power: _power,
    p.and_: _infix("&"),
    p.or_: _infix("|"),
    p.xor: lambda h, t, atoms, a, b: f"({a} {'!=' if t is u1 else '^'} {b})",
    p.invert: lambda h, t, atoms, a: f"(!{a})" if t is u1 else f"(~{a})",
    p.shl: _shift("shl"),
    p.shr: _shift("shr"),
    p.lt: _compare("<"),
    p.le: _compare("<="),
    p.gt: _compare(">"),
    p.ge: _compare(">="),
    p.eq: _compare("=="),
    p.ne: _not_equal,
    p.logical_not: lambda h, t, atoms, a: (
        f"(!{a})" if atoms[0].type is u1 else f"({a} == {TYPES[element_type(atoms[0].type)]}(0))"
    ),
    p.isnan: _isnan,
    p.select: lambda h, t, atoms, c, a, b: f"select({b}, {a}, {c})",
    p.sqrt: lambda h, t, atoms, a: f"sqrt({a})",
    p.rsqrt: lambda h, t, atoms, a: h.call("rsqrt", t, a),
    **{prim: _function(prim.name) for prim in (p.exp, p.log, p.sin, p.cos, p.tan, p.asin, p.acos, p.atan2, p.tanh)},
    p.floor: _whole("floor"),
    p.ceil: _whole("ceil"),
    p.round_: _whole("round"),
    p.surrogate: _KEEPS,
    p.in_reverse: _KEEPS,
    p.stop_gradient_once: _KEEPS,
    p.strong_mul: lambda h, t, atoms, a, b: h.call("strong_mul", t, a, b) if t.kind == "f" else f"({a} * {b})",
    p.cast: _cast,
    p.bitcast: _bitcast,
}
#: Primitives without WGSL, with the text of the error.
REFUSED: dict[Primitive, str] = {
    **{prim: f"'{prim.name}' of a vector as a whole" for prim in (p.pack, p.extract, p.insert)},
}
#: Primitives that `expression` and, for 64 bits, `wide.emit` handle directly.
_ELSEWHERE = (p.join_tangents, p.tangent_at, p.random_bits)
require_all("WGSL code", EMITTERS, REFUSED, _ELSEWHERE)
#: Primitives whose results fit their type for any width.
_WITHIN = (
    p.minimum, p.maximum, p.and_, p.or_, p.xor, p.shr, p.mod, p.raw_mod, p.select, p.surrogate, p.in_reverse,
    p.stop_gradient_once, p.floor, p.ceil, p.round_,
)  # fmt: skip


def _along_each(helpers: Provided, prim: Primitive, t: Tangents, atoms: tuple[Atom, ...], operands: list[str]) -> str:
    """The same number by number."""
    if prim is p.join_tangents:
        return f"{type_name(t)}({', '.join(operands)})"
    types = [element_type(a.type) for a in atoms]
    # All numbers of a constant are equal.
    single = tuple(
        [
            a if not isinstance(s, Tangents) else Lit(a.value, s.scalar) if isinstance(a, Lit) else Var(s.scalar)
            for a, s in zip(atoms, types, strict=True)
        ]
    )
    numbers = []
    for d in range(t.count):
        along = [f"{x}[{d}]" if isinstance(s, Tangents) else x for x, s in zip(operands, types, strict=True)]
        numbers.append(expression(helpers, prim, t.scalar, single, along))
    return f"{type_name(t)}({', '.join(numbers)})"


def expression(helpers: Provided, prim: Primitive, t: Scalar, atoms: tuple[Atom, ...], operands: list[str]) -> str:
    """`prim` applied to operands, the values of `atoms`; `t`: the type of the result. Raises `Unsupported`."""
    if prim in REFUSED:
        raise Unsupported(REFUSED[prim])
    if prim is p.tangent_at:
        return f"{operands[0]}[{operands[1]}]"
    if isinstance(t, Tangents):
        return _along_each(helpers, prim, t, atoms, operands)
    types = [t, *[element_type(a.type) for a in atoms]]
    if any(isinstance(s, Tangents) for s in types):
        raise Unsupported(f"'{prim.name}' of derivatives along several directions at once")
    if any(is_wide(s) for s in types):
        helpers.provide("wide")
        if f64 in types:
            helpers.provide("bits_f64")
        found = wide.emit(helpers.provide, prim, t, atoms, operands)
        narrow = not is_wide(t)
    else:
        if t is u1:
            prim = p.ON_TRUTHS.get(prim, prim)
        emitter = EMITTERS.get(prim)
        if emitter is None:
            raise Unsupported(f"'{prim.name}' of {types[-1]}")
        found = emitter(helpers, t, atoms, *operands)
        narrow = True
    if narrow and t.bits < 32 and t is not u1 and prim not in _WITHIN and TYPES[t] != WIDE:
        return f"{helpers.provide(f'wrap_{t.name}')}({found})"
    return found
