"""Signed integer overflow: which operations may overflow their type, the message about it, and when it has happened.

Unsigned integers wrap by definition (hashes and random numbers rely on it), and conversions between types are explicit:
neither is reported.
"""

from __future__ import annotations

from collections.abc import Callable

from tinote.ir import primitives as p
from tinote.ir.nodes import Atomic, Op, Prim
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, element_type

#: How an operation is shown, with a hole for each operand.
OVERFLOWING: dict[Primitive, str] = {
    p.add: "{} + {}",
    p.sub: "{} - {}",
    p.mul: "{} * {}",
    p.power: "{} ** {}",
    p.shl: "{} << {}",
    p.floordiv: "{} // {}",
    p.raw_div: "{} / {}",
    p.neg: "-({})",
    p.absolute: "abs({})",
}

#: The result in unbounded integers, where that is cheap.
_EXACT: dict[Primitive, Callable[..., int]] = {
    p.add: int.__add__,
    p.sub: int.__sub__,
    p.mul: int.__mul__,
    p.neg: int.__neg__,
    p.absolute: int.__abs__,
}


def may_overflow(op: Op) -> bool:
    """Whether an operation computes signed integers that may overflow their type."""
    if isinstance(op, Atomic):
        return op.buffer.dtype.kind == "i" and op.prim in (p.add, p.mul)
    return isinstance(op, Prim) and op.prim in OVERFLOWING and element_type(op.out.type).kind == "i"


def overflow_text(prim: Primitive, t: Scalar) -> str:
    """The message about a result of type `t`, with a hole for each operand."""
    return f"integer overflow: {OVERFLOWING[prim]} does not fit into {t.name}"


def fits(prim: Primitive, t: Scalar, values: tuple[int, ...], result: int) -> bool:
    """Whether `result`, that of `prim` on `values` in type `t`, is also the result in unbounded integers."""
    exact = _EXACT.get(prim)
    if exact is not None:
        return exact(*values) == result
    a, b = values
    if prim is p.shl:
        return p.shr.evaluate(t, result, b) == a
    if prim is p.power:
        # With an exponent above 64 the power of anything but -1, 0 and 1 overflows all types.
        return b < 2 or ((abs(a) <= 1 or b < 64) and a**b == result)
    return a != t.lowest or b != -1
