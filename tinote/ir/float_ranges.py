"""Interval analysis of floats, through operations that leave a number unchanged or round it once: clamping, selection,
rounding to integers, and conversions.

    %a: f32 = max %x, 0.0f32         0 or more, and no NaN, whatever %x is
    %b: f32 = min %a, 127.0f32       from 0 to 127
    %i: i32 = cast %b                from 0 to 127: in range without a check, and converted without one

Sums and products are left out: fast maths may round them in another way, and what lies next to a bound would not be in
it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.affine import Interval
from tinote.ir.nodes import Atom, Lit, Op, Prim, Var
from tinote.ir.types import Scalar

#: Operations after one another that are looked through. Chosen, not measured.
_MAX_DEPTH = 6


class FloatRange(NamedTuple):
    """Neither end is NaN. `nan`: the number may be one."""

    low: float
    high: float
    nan: bool


ANYTHING = FloatRange(-math.inf, math.inf, True)


def float_range(
    atom: Atom, definitions: Mapping[Var, Op], integers: Callable[[Atom], Interval], depth: int = _MAX_DEPTH
) -> FloatRange:
    """The range of a float. `definitions`: of variables; `integers`: the interval of an integer."""
    if isinstance(atom, Lit):
        value = float(atom.value)
        return ANYTHING if value != value else FloatRange(value, value, False)
    op = definitions.get(atom)
    t = atom.type
    if depth == 0 or not isinstance(op, Prim) or not isinstance(t, Scalar) or t.kind != "f":
        return ANYTHING
    args = op.args[1:] if op.prim is p.select else op.args
    if any(not isinstance(a.type, Scalar) for a in args):
        return ANYTHING
    if op.prim is p.cast:
        (a,) = args
        if a.type.kind != "f":  # type: ignore[union-attr]
            low, high = integers(a)
            return FloatRange(t.round(float(low)), t.round(float(high)), False)
    rule = _RULES.get(op.prim)
    if rule is None:
        return ANYTHING
    found = rule(*[float_range(a, definitions, integers, depth - 1) for a in args])
    if op.prim is p.cast:
        found = found._replace(low=t.round(found.low), high=t.round(found.high))
    return found


def as_integer(found: FloatRange, whole: Interval) -> Interval:
    """The interval of a float of a range that becomes an integer of a type with the values `whole`."""
    low, high = _towards_zero(found.low, whole), _towards_zero(found.high, whole)
    return (min(low, 0), max(high, 0)) if found.nan else (low, high)


def fits(found: FloatRange, whole: Interval) -> bool:
    """Whether each number of a range is, without its fraction, one of the values `whole`."""
    return not found.nan and whole[0] - 1 < found.low and found.high < whole[1] + 1


def _towards_zero(value: float, whole: Interval) -> int:
    if math.isinf(value):
        return whole[1] if value > 0 else whole[0]
    return min(max(int(value), whole[0]), whole[1])


def _maximum(a: FloatRange, b: FloatRange) -> FloatRange:
    # Where one is NaN it is the other.
    low = max(-math.inf if a.nan else a.low, -math.inf if b.nan else b.low)
    if a.nan and b.nan:
        low = min(a.low, b.low)
    return FloatRange(low, max(a.high, b.high), a.nan and b.nan)


def _minimum(a: FloatRange, b: FloatRange) -> FloatRange:
    found = _maximum(_negative(a), _negative(b))
    return _negative(found)


def _negative(a: FloatRange) -> FloatRange:
    return FloatRange(-a.high, -a.low, a.nan)


def _absolute(a: FloatRange) -> FloatRange:
    return FloatRange(max(a.low, -a.high, 0.0), max(-a.low, a.high), a.nan)


def _itself(a: FloatRange) -> FloatRange:
    return a


def _either(a: FloatRange, b: FloatRange) -> FloatRange:
    return FloatRange(min(a.low, b.low), max(a.high, b.high), a.nan or b.nan)


def _integral(rounded: Callable[[float], float]) -> Callable[[FloatRange], FloatRange]:
    def of(value: float) -> float:
        return value if math.isinf(value) else float(rounded(value))

    return lambda a: FloatRange(of(a.low), of(a.high), a.nan)


_RULES: dict[p.Primitive, Callable[..., FloatRange]] = {
    p.maximum: _maximum,
    p.minimum: _minimum,
    p.select: _either,
    p.neg: _negative,
    p.absolute: _absolute,
    p.floor: _integral(math.floor),
    p.ceil: _integral(math.ceil),
    p.round_: _integral(round),
    p.cast: _itself,
}
