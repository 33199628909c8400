"""Arithmetic: Python's own when all operands are compile-time constants, primitives otherwise."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from tinote.compiler.captures import MAX_UNROLLED
from tinote.compiler.frontend.conversions import truth_of
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions.formatting import percent_text
from tinote.compiler.frontend.values import StaticTensor, Value, is_number
from tinote.errors import TinoteError
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit
from tinote.ir.primitives import Primitive, power_of
from tinote.ir.types import Tensor, f64, is_float, u1


def _maths(prim: Primitive) -> Callable[..., Any]:
    return lambda *values: prim.evaluate(f64, *[float(v) for v in values])


def _whole(f: Callable[[float], Any]) -> Callable[[Any], Any]:
    """Rounding that keeps integers and what is not finite."""
    return lambda v: v if isinstance(v, int) or not math.isfinite(v) else math.copysign(float(f(v)), v)


def _raw_divide(a: Any, b: Any) -> Any:
    quotient = a / b
    return (
        quotient
        if isinstance(quotient, float) and (isinstance(a, float) or isinstance(b, float))
        else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    )


#: Primitives that fold constants in Python's own numbers; the others compute in double precision.
FOLDS: dict[Primitive, Callable[..., Any]] = {
    p.add: operator.add,
    p.sub: operator.sub,
    p.mul: operator.mul,
    p.div: operator.truediv,
    p.floordiv: operator.floordiv,
    p.mod: operator.mod,
    p.raw_div: _raw_divide,
    p.raw_mod: lambda a, b: a - _raw_divide(a, b) * b if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b),
    p.power: operator.pow,
    p.neg: operator.neg,
    p.absolute: abs,
    p.minimum: lambda a, b: b if a != a else min(a, b),
    p.maximum: lambda a, b: b if a != a else max(a, b),
    p.and_: operator.and_,
    p.or_: operator.or_,
    p.xor: operator.xor,
    p.invert: operator.invert,
    p.shl: operator.lshift,
    p.shr: operator.rshift,
    p.lt: operator.lt,
    p.le: operator.le,
    p.gt: operator.gt,
    p.ge: operator.ge,
    p.eq: operator.eq,
    p.ne: operator.ne,
    p.logical_not: operator.not_,
    p.isnan: lambda v: v != v,
    p.select: lambda c, a, b: a if c else b,
    p.surrogate: lambda x, z: float(x),
    p.in_reverse: lambda x, y: float(x),
    p.stop_gradient_once: float,
    p.floor: _whole(math.floor),
    p.ceil: _whole(math.ceil),
    p.round_: _whole(round),
}

BINARY: dict[type[ast.operator], tuple[Primitive, str]] = {
    ast.Add: (p.add, "+"),
    ast.Sub: (p.sub, "-"),
    ast.Mult: (p.mul, "*"),
    ast.Div: (p.div, "/"),
    ast.FloorDiv: (p.floordiv, "//"),
    ast.Mod: (p.mod, "%"),
    ast.Pow: (p.power, "**"),
    ast.BitAnd: (p.and_, "&"),
    ast.BitOr: (p.or_, "|"),
    ast.BitXor: (p.xor, "^"),
    ast.LShift: (p.shl, "<<"),
    ast.RShift: (p.shr, ">>"),
}
UNARY: dict[type[ast.unaryop], Primitive] = {ast.USub: p.neg, ast.Invert: p.invert}
COMPARISONS: dict[type[ast.cmpop], Primitive] = {
    ast.Lt: p.lt,
    ast.LtE: p.le,
    ast.Gt: p.gt,
    ast.GtE: p.ge,
    ast.Eq: p.eq,
    ast.NotEq: p.ne,
}
#: Augmented assignments that are atomic where others may reach the target; `-=` adds the negative.
AUGMENTED = {operator: prim for operator, (prim, _) in BINARY.items() if prim in p.ATOMICS}


def _constant(e: Emitter, front: Any) -> Any:
    """A constant number or tensor, or `None`."""
    return front if is_number(front) else e.static_tensor(front)


def apply(e: Emitter, prim: Primitive, *operands: Any) -> Any:
    """`prim` on operands of either kind: folded when all are constants."""
    constants = [_constant(e, o) for o in operands]
    if any(c is None for c in constants):
        return e.prim(prim, *operands)
    return _folded(e, _by_zero(prim, _limited(e, prim, FOLDS.get(prim) or _maths(prim))), constants)


def _by_zero(prim: Primitive, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, with an infinity or NaN, as in machine code, where Python refuses to divide floats by zero."""
    if prim not in (p.div, p.floordiv, p.mod, p.power):
        return f

    def divided(a: Any, b: Any) -> Any:
        try:
            return f(a, b)
        except ZeroDivisionError:
            if prim is not p.div and not (isinstance(a, float) or isinstance(b, float)):
                raise
            return p.evaluate(prim, f64, float(a), float(b))

    return divided


#: Greatest size of a compile-time integer, in bits. Chosen, not measured.
_MAX_BITS = 4096


def _growth(prim: Primitive, a: Any, b: Any) -> int:
    """Estimated bits of the result of an operation on two integers; 0 for operations that do not grow."""
    if not (isinstance(a, int) and isinstance(b, int)):
        return 0
    if prim is p.shl:
        return a.bit_length() + max(b, 0) if a else 0
    if prim is p.mul:
        return a.bit_length() + b.bit_length()
    if prim is p.power:
        return (abs(a).bit_length() - (abs(a) in (0, 1))) * max(b, 0)
    return 0


def _limited(e: Emitter, prim: Primitive, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, refused before it starts when its result would be an enormous integer."""
    if prim not in (p.shl, p.mul, p.power):
        return f

    def limited(a: Any, b: Any) -> Any:
        if _growth(prim, a, b) > _MAX_BITS:
            e.error(
                "this constant is an enormous integer, which no number type can hold",
                "write a float, for example `1e30`" if prim is not p.shl else "",
            )
        return f(a, b)

    return limited


def _folded(e: Emitter, f: Callable[..., Any], constants: list[Any]) -> Any:
    tensors = [c for c in constants if isinstance(c, StaticTensor)]
    try:
        if not tensors:
            return f(*constants)
        if len({t.shape for t in tensors}) > 1:
            e.error(f"the shapes of {' and '.join(map(describe, tensors))} do not fit")
        return StaticTensor(
            [
                f(*row)
                for row in zip(
                    *[
                        c.components if isinstance(c, StaticTensor) else (c,) * len(tensors[0].components)
                        for c in constants
                    ],
                    strict=True,
                )
            ],
            tensors[0].shape,
        )
    except TinoteError:
        raise
    except ZeroDivisionError:
        e.error("division by zero")
    except (TypeError, ValueError, OverflowError) as error:
        e.error(f"these constants cannot be combined: {error}")


def binary(e: Emitter, op: ast.operator, left: Any, right: Any) -> Any:
    """`left op right`."""
    if isinstance(op, ast.MatMult):
        return matmul(e, left, right)
    prim, symbol = BINARY[type(op)]
    if prim is p.mod and isinstance(left, str):
        return percent_text(e, left, right)
    if not (e.is_value(left) and e.is_value(right)) or (
        isinstance(left, tuple | list | str) and isinstance(right, tuple | list | str | int)
    ):
        return _python_binary(e, prim, symbol, left, right)
    if prim is p.power:
        return power(e, left, right)
    return apply(e, prim, left, right)


def _python_binary(e: Emitter, prim: Primitive, symbol: str, left: Any, right: Any) -> Any:
    """Python's own operator at compile time, which joins and repeats strings and lists."""
    for side in (left, right):
        if not isinstance(side, tuple | list | str | int):
            e.as_value(side)  # raises the error
    items, times = (left, right) if isinstance(right, int) else (right, left)
    if prim is p.mul and isinstance(items, tuple | list | str) and isinstance(times, int):
        if len(items) * times > MAX_UNROLLED:
            e.error(f"a {type(items).__name__} of {len(items) * times:,} items is too long to be known at compile time")
    try:
        return FOLDS[prim](left, right)
    except TypeError:
        _no_meaning(e, symbol, left, right)


def _no_meaning(e: Emitter, symbol: str, left: Any, right: Any) -> NoReturn:
    e.error(
        f"`{symbol}` has no meaning between {describe(left)} and {describe(right)}",
        "put values into a text with an f-string"
        if isinstance(left, str) or isinstance(right, str)
        else "lists become vectors with `ti.Vector([…])`",
    )


def power(e: Emitter, base: Any, exponent: Any) -> Any:
    """`base ** exponent`; small constant exponents become multiplications, a half a square root."""
    if _constant(e, base) is not None and _constant(e, exponent) is not None:
        return apply(e, p.power, base, exponent)
    base = e.force(base)
    if not is_number(exponent):
        return e.prim(p.power, base, exponent)
    value = e.as_value(base)
    if exponent == 0.5 and is_float(value.type):
        return e.prim(p.sqrt, value)
    if not unrolled(exponent):
        if isinstance(exponent, int) and exponent < 0 and not is_float(value.type):
            _negative_exponent(e)
        return e.prim(p.power, value, exponent)
    if exponent < 0:
        if not is_float(value.type):
            _negative_exponent(e)
        return e.prim(p.div, 1.0, _repeated(e, value, -exponent))
    return _repeated(e, value, exponent)


def _negative_exponent(e: Emitter) -> NoReturn:
    e.error("an integer to a negative power is not an integer", "convert the base with `float(…)` first")


def _repeated(e: Emitter, value: Value, exponent: int) -> Value:
    """An integer power of `value`, by repeated squaring."""
    if value.dtype is u1:
        value = e.cast(value, e.ip)
    if exponent == 0:
        one = Value(e.b.cast(Lit(1, e.ip), value.dtype))
        return e.pack([one] * value.type.count, value.shape) if isinstance(value.type, Tensor) else one
    return power_of(value, exponent, partial(e.prim, p.mul))


def reduce(e: Emitter, prim: Primitive, items: list[Any]) -> Any:
    """A left fold of items."""
    result = items[0]
    for item in items[1:]:
        result = apply(e, prim, result, item)
    return result


def total(e: Emitter, items: list[Any]) -> Any:
    """The sum of items."""
    return reduce(e, p.add, items) if items else 0


def matmul(e: Emitter, left: Any, right: Any) -> Any:
    """The matrix product; a vector on the right is a column, on the left a row: two vectors give their inner product.
    Where a row does not fit, a vector on the left is a column, and the right side a single row.
    """
    a, b = e.shape(left), e.shape(right)
    if not a or not b:
        e.error(
            f"`@` is the matrix product: {describe(left if not a else right)} is neither vector nor matrix", "use `*`"
        )
    height, columns = (b[0], 1) if len(b) == 1 else b
    is_row = len(a) == 1 and (a[0] == height or height != 1 or len(b) == 1)
    rows, inner = (1, a[0]) if is_row else (a[0], 1) if len(a) == 1 else a
    if inner != height:
        e.error(
            f"the matrix product of {describe(left)} and {describe(right)} is not defined",
            f"the left side has {inner} column{'s' if inner != 1 else ''}, the right side {height}"
            f" row{'s' if height != 1 else ''}",
        )
    x, y = e.components(left), e.components(right)
    found = [
        total(e, [apply(e, p.mul, x[i * inner + k], y[k * columns + j]) for k in range(inner)])
        for i in range(rows)
        for j in range(columns)
    ]
    if is_row:
        return found[0] if len(b) == 1 else tensor(e, found, (columns,))
    return tensor(e, found, (rows,) if len(b) == 1 else (rows, columns))


def tensor(e: Emitter, components: list[Any], shape: tuple[int, ...]) -> Any:
    """A tensor from components: constant when all of them are."""
    if all(is_number(c) for c in components):
        return StaticTensor(components, shape)
    return e.pack(components, shape)


def connected(e: Emitter, prim: Primitive, items: list[Any]) -> Any:
    """Whether all items are true (`and_`), or any (`or_`)."""
    truths = [truth_of(e, i) for i in items]
    decided = prim is p.or_
    if any(t is decided for t in truths):
        return decided
    left = [t for t in truths if isinstance(t, Value)]
    return reduce(e, prim, left) if left else not decided


def unrolled(exponent: float) -> bool:
    """Whether a power with a constant exponent is expanded into multiplications."""
    return isinstance(exponent, int) and not isinstance(exponent, bool) and abs(exponent) <= 16
