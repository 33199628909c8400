"""Built-ins on the parts of floating-point numbers.

`surrogate` gives the derivative of a value that is composed of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion, define
from tinote.compiler.frontend.values import StaticTensor, Value, is_number
from tinote.ir import primitives as p
from tinote.ir.nodes import Lit
from tinote.ir.types import f16, f32, f64, i32, i64, machine_epsilon, with_element

TABLE: dict[str, Expansion] = {}
_define = define(TABLE)

#: Bits of the mantissa that are stored, and the exponent field of 1.0.
_LAYOUT = {f32: (23, 127, i32), f64: (52, 1023, i64)}


def _of_constants(f: Callable[[float], Any], expand: Callable[[Emitter, Any], Any]) -> Callable[..., Any]:
    """`expand`, or `f` on every component of a compile-time value."""

    def either(e: Emitter, x: Any) -> Any:
        constant = x if is_number(x) else e.static_tensor(x)
        if constant is None:
            return expand(e, x)
        try:
            return constant.map(f) if isinstance(constant, StaticTensor) else f(constant)
        except (ValueError, OverflowError) as error:
            e.error(f"this constant is outside of the function's domain: {error}")

    return either


def _floating(e: Emitter, x: Any) -> Value:
    """A value as floats: integers become the default type."""
    value = strong_value(e, x)
    return value if value.dtype.kind == "f" else e.cast(value, e.fp)


# the parts of a float


def _parts(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Mantissa in [0.5, 1) and exponent: x = m · 2^n. Zeros, infinities and NaN are their own mantissa, with n = 0."""
    if x.dtype is f16:
        m, n = _parts(e, e.cast(x, f32))
        return e.cast(m, f16), n
    stored, one, integer = _LAYOUT[x.dtype]
    fields = 2 * one + 1
    tiny = e.prim(p.lt, e.prim(p.absolute, x), 2.0 ** (1 - one))
    y = e.prim(p.select, tiny, e.prim(p.mul, x, 2.0 ** (stored + 1)), x)
    bits = e.prim(p.bitcast, e.prim(p.surrogate, y, 0.0), type=with_element(x.type, integer))
    field = e.prim(p.and_, e.prim(p.shr, bits, stored), fields)
    kept = Value(Lit(integer.wrap(~(fields << stored)), integer))
    half = Value(Lit((one - 1) << stored, integer))
    mantissa = e.prim(p.bitcast, e.prim(p.or_, e.prim(p.and_, bits, kept), half), type=x.type)
    # The exponents of the two factors stay in range for every finite number; only their derivative is used.
    power = e.prim(p.bitcast, e.prim(p.shl, e.prim(p.sub, fields, field), stored), type=x.type)
    scaled = e.prim(p.mul, e.prim(p.mul, y, 0.25), power)
    exponent = e.prim(p.sub, field, e.prim(p.select, tiny, one + stored, one - 1))
    special = e.prim(p.or_, e.prim(p.eq, x, 0.0), e.prim(p.eq, field, fields))
    m = e.prim(p.select, special, x, e.prim(p.surrogate, mantissa, scaled))
    n = e.prim(p.select, special, 0, exponent)
    return m, e.cast(n, i32)


def _frexp(e: Emitter, x: Any) -> Any:
    if is_number(x):
        return math.frexp(x)
    constant = e.static_tensor(x)
    if constant is None:
        return _parts(e, _floating(e, x))
    return constant.map(lambda v: math.frexp(v)[0]), constant.map(lambda v: math.frexp(v)[1])


_define("frexp", "x", _frexp)


# powers and logarithms


def _log10(e: Emitter, x: Any) -> Any:
    return e.prim(p.mul, e.prim(p.log, x), 1.0 / math.log(10.0))


_define("log10", "x", _of_constants(lambda v: math.log10(v) if v else -math.inf, _log10))


def _machine_epsilon(e: Emitter, x: Any) -> float:
    return machine_epsilon(_floating(e, x).dtype)


_define("machine_epsilon", "x", _machine_epsilon)
