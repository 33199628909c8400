"""Built-in functions of numbers that the front end expands: rounding, extrema, choice, bits, random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.builtins.draws import random_bits
from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, define
from tinote.compiler.frontend.expressions.arithmetic import apply, power, reduce
from tinote.compiler.frontend.expressions.constructors import scalar_type, truths
from tinote.compiler.frontend.values import Value, is_number
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit
from tinote.ir.primitives import Primitive
from tinote.ir.types import f16, f32, f64, i8, i16, i32, i64, is_float, u1, u8, u16, u32, u64

TABLE: dict[str, Expansion] = {}
_define = define(TABLE)

# maths


_define("pow", "x a", power)


def _rounding(prim: Primitive) -> Callable[..., Any]:
    def expand(e: Emitter, x: Any, dtype: Any) -> Any:
        found = apply(e, prim, x)
        return found if dtype is None else e.cast(found, scalar_type(e, dtype))

    return expand


for _name, _prim in (("floor", p.floor), ("ceil", p.ceil), ("round", p.round_)):
    _define(_name, "x dtype=", _rounding(_prim))


def _extreme(prim: Primitive, name: str) -> Callable[..., Any]:
    def expand(e: Emitter, *items: Any) -> Any:
        if not items:
            e.error(f"`{name}` needs at least one argument")
        if len(items) == 1:
            if is_number(items[0]) or (isinstance(items[0], Value) and not items[0].shape):
                e.error(f"`{name}` of a single number", f"give it two, or a vector: `v.{name}()`")
            items = tuple(e.components(items[0]))
        return reduce(e, prim, list(items))

    return expand


_define("min", "*items", _extreme(p.minimum, "min"))
_define("max", "*items", _extreme(p.maximum, "max"))


def _sign(e: Emitter, x: Any) -> Any:
    if is_number(x):
        return (x > 0) - (x < 0) if isinstance(x, int) else float((x > 0) - (x < 0))
    value = e.as_value(x)
    dtype = e.ip if value.dtype is u1 else value.dtype
    one, minus, zero = (e.cast(n, dtype) for n in (1, -1 if dtype.kind != "u" else 0, 0))
    return e.prim(p.select, e.prim(p.gt, value, 0), one, e.prim(p.select, e.prim(p.lt, value, 0), minus, zero))


_define("sign", "x", _sign)

_define("select", "condition x y", lambda e, c, x, y: apply(e, p.select, truths(e, c), x, y))
_define("logical_and", "a b", lambda e, a, b: apply(e, p.and_, truths(e, a), truths(e, b)))
_define("logical_or", "a b", lambda e, a, b: apply(e, p.or_, truths(e, a), truths(e, b)))


def _isinf(e: Emitter, x: Any) -> Any:
    value = e.as_value(x)
    return e.prim(p.eq, e.prim(p.absolute, value), math.inf) if is_float(value.type) else e.prim(p.ne, value, value)


_define("isinf", "x", _isinf)


def popcount(e: Emitter, x: Any) -> Value:
    """The number of set bits: neighbouring counts are added in ever wider groups."""
    value = e.as_value(x)
    if value.dtype.kind not in "iu":
        e.error(f"bits are counted in integers, not in {describe(x)}")
    wide = u64 if value.dtype.bits == 64 else u32
    narrow = {8: 0xFF, 16: 0xFFFF}.get(value.dtype.bits)
    v = e.cast(value, wide)
    if narrow:
        v = e.prim(p.and_, v, narrow)
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        full = Value(Lit(int.from_bytes(bytes([mask]) * wide.size), wide))
        v = e.prim(p.add, e.prim(p.and_, v, full), e.prim(p.and_, e.prim(p.shr, v, shift), full))
    product = e.prim(p.mul, v, Value(Lit(int.from_bytes(b"\x01" * wide.size), wide)))
    return e.cast(e.prim(p.shr, product, wide.bits - 8), i32)


_define("popcnt", "x", popcount)


def _logical_shift(e: Emitter, a: Any, b: Any) -> Any:
    """A shift to the right that fills with zeros."""
    value = strong_value(e, a)
    unsigned = {i8: u8, i16: u16, i32: u32, i64: u64}.get(value.dtype)
    if unsigned is None:
        return e.prim(p.shr, value, b)
    return e.cast(e.prim(p.shr, e.cast(value, unsigned), b), value.dtype)


_define("bit_shr", "a b", _logical_shift)


def _leading_zeros(e: Emitter, x: Any) -> Any:
    """The number of leading zeros: every bit is copied to all places below it."""
    value = strong_value(e, x)
    unsigned = {8: u8, 16: u16, 32: u32, 64: u64}.get(value.dtype.bits) if value.dtype.kind in "iu" else None
    if unsigned is None:
        e.error(f"leading zeros are counted in integers, not in {describe(x)}")
    v = e.cast(value, unsigned)
    shift = 1
    while shift < unsigned.bits:
        v = e.prim(p.or_, v, e.prim(p.shr, v, shift))
        shift *= 2
    return e.prim(p.sub, unsigned.bits, popcount(e, v))


_define("clz", "x", _leading_zeros)


# random numbers


def _uniform(e: Emitter, dtype: Any) -> Any:
    """A float in [0, 1), or an integer with every bit random."""
    t = e.fp if dtype is None else scalar_type(e, dtype)
    bits = random_bits(e)
    if t is u1:
        return e.cast(e.prim(p.and_, bits, 1), u1)
    if t is f32 or t is f16:
        kept = 24 if t is f32 else 11
        whole = e.cast(e.prim(p.shr, bits, 32 - kept), i32)
        return e.prim(p.mul, e.cast(whole, t), 2.0**-kept)
    if t is f64:
        high = e.cast(e.cast(e.prim(p.shr, bits, 5), i64), f64)
        low = e.cast(e.cast(e.prim(p.shr, random_bits(e), 6), i64), f64)
        return e.prim(p.mul, e.prim(p.add, e.prim(p.mul, high, 2.0**26), low), 2.0**-53)
    if t.bits == 64:
        wide = e.prim(p.or_, e.prim(p.shl, e.cast(bits, u64), 32), e.cast(random_bits(e), u64))
        return e.cast(wide, t)
    return e.cast(bits, t)


def _normal(e: Emitter, dtype: Any) -> Any:
    """A standard normal number (Box and Muller, 1958)."""
    t = e.fp if dtype is None else scalar_type(e, dtype)
    if t.kind != "f":
        e.error(f"`randn` gives floats, not {t}")
    radius = e.prim(p.sqrt, e.prim(p.mul, -2.0, e.prim(p.log, e.prim(p.sub, 1.0, _uniform(e, t)))))
    return e.prim(p.mul, radius, e.prim(p.cos, e.prim(p.mul, 2 * math.pi, _uniform(e, t))))


_define("random", "dtype=", _uniform)
_define("randn", "dt=", _normal)
