"""The table of primitives: for each its arity, type rule, meaning on plain numbers, and the facts that passes ask for.

Everything that computes is here once; derivative rules (`autodiff/derivative_rules.py`) and machine code
(`compiler/codegen`) are keyed by these objects, and tests walk `PRIMITIVES` to find holes in either. The meaning of the
corner cases is fixed here, by `evaluate`:

- Integers wrap; over-wide shifts give 0 or the sign; a float becomes an integer by truncation, saturating, NaN to 0.
- `//` and `%` round towards minus infinity, as in Python. For floats both are exact: the remainder is `fmod`, plus b
  where its sign is not that of b; the quotient is the largest integer not above a/b, as far as the type has it.
- `min` and `max` leave a NaN out, as `fmin` and `fmax`, and order the zeros by sign: the minimumNumber and
  maximumNumber of IEEE 754-2019. So a reduction has the same result in any order, and NaN is its neutral element.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tinote.ir.types import (
    Lanes,
    Scalar,
    Tangents,
    Tensor,
    Type,
    element_type,
    f16,
    f32,
    i32,
    i64,
    promote,
    shape_of,
    u1,
    u32,
    u64,
)

Number = Any  # int or float, as the type asks; a tuple of them for tangents


class Defaults(NamedTuple):
    """The types that weak literals take (`ti.init(default_fp=…, default_ip=…)`)."""

    fp: Scalar = f32
    ip: Scalar = i32


Rule = Callable[[tuple[Type, ...], Defaults], Type]
#: the result type, then one, two or three operands
Evaluate = (
    Callable[[Scalar, Number], Number]
    | Callable[[Scalar, Number, Number], Number]
    | Callable[[Scalar, Number, Number, Number], Number]
)


class Primitive:
    """`arity` None: any number. `rule` None: the result type is given where the operation is built. `elementwise`: maps
    over tensors and lanes, scalars broadcast.
    `cost`: rough time on a CPU, in additions. `evaluate(type, *values)`: the result of `type` for scalar operands."""

    __slots__ = ("arity", "commutative", "cost", "elementwise", "evaluate", "name", "rule")

    def __init__(
        self,
        name: str,
        arity: int | None,
        rule: Rule | None,
        evaluate: Callable[..., Number],
        commutative: bool,
        elementwise: bool,
        cost: float,
    ) -> None:
        self.name = name
        self.arity = arity
        self.rule = rule
        self.evaluate = evaluate
        self.commutative = commutative
        self.elementwise = elementwise
        self.cost = cost

    def __repr__(self) -> str:
        return self.name


PRIMITIVES: dict[str, Primitive] = {}


def broadcast_shape(types: tuple[Type, ...]) -> tuple[int, ...]:
    """The shape of an elementwise result. Raises `TypeError` when two tensors' shapes differ."""
    shape: tuple[int, ...] = ()
    for t in types:
        other = shape_of(t)
        if other and shape and other != shape:
            raise TypeError(f"shapes {shape} and {other} do not fit")
        shape = shape or other
    return shape


def _shaped(dtype: Scalar, types: tuple[Type, ...]) -> Type:
    shape = broadcast_shape(types)
    if any(isinstance(t, Lanes) for t in types):
        return Lanes(dtype, *shape)
    return Tensor(dtype, shape) if shape else dtype


def _promoted(types: tuple[Type, ...], defaults: Defaults) -> Scalar:
    dtype = element_type(types[0])
    for t in types[1:]:
        dtype = promote(dtype, element_type(t), defaults.fp, defaults.ip)
    return dtype


def _numbers(types: tuple[Type, ...], defaults: Defaults) -> Type:
    dtype = _promoted(types, defaults)
    return _shaped(defaults.ip if dtype is u1 else dtype, types)


def _floats(types: tuple[Type, ...], defaults: Defaults) -> Type:
    dtype = _promoted(types, defaults)
    return _shaped(dtype if dtype.kind == "f" else defaults.fp, types)


def _bits(types: tuple[Type, ...], defaults: Defaults) -> Type:
    for t in types:
        if element_type(t).kind == "f":
            raise TypeError(f"bit operations need integers, not {element_type(t)}")
    return _shaped(_promoted(types, defaults), types)


def _shift(types: tuple[Type, ...], defaults: Defaults) -> Type:
    _bits(types, defaults)
    dtype = element_type(types[0])
    return _shaped(defaults.ip if dtype is u1 or not dtype.bits else dtype, types)


def _truth(types: tuple[Type, ...], defaults: Defaults) -> Type:
    return _shaped(u1, types)


def _first(types: tuple[Type, ...], defaults: Defaults) -> Type:
    if element_type(types[0]).kind != "f":
        raise TypeError(f"only floats have derivatives, not {element_type(types[0])}")
    return _shaped(element_type(types[0]), types)


def _chosen(types: tuple[Type, ...], defaults: Defaults) -> Type:
    return _shaped(_promoted(types[1:], defaults), types)


def operand_type(prim: Primitive, types: tuple[Type, ...], position: int, result: Type, defaults: Defaults) -> Scalar:
    """The scalar type that the operand at `position` must have once conversions are explicit."""
    if prim.rule is _truth and prim is not logical_not:
        dtype = _promoted(types, defaults)
        return dtype if dtype.bits else (defaults.fp if dtype.kind == "f" else defaults.ip)
    if prim is logical_not or (prim is select and position == 0):
        return u1
    if prim is random_bits:
        return (u64, i64, i32)[position]
    if prim is isnan:
        return (
            defaults.fp
            if element_type(types[0]).kind != "f"
            else element_type(types[0])
            if element_type(types[0]).bits
            else defaults.fp
        )
    return element_type(result)


def _define(
    name: str,
    arity: int | None,
    rule: Rule | None,
    evaluate: Evaluate,
    *,
    commutative: bool = False,
    elementwise: bool = True,
    cost: float = 1,
) -> Primitive:
    prim = PRIMITIVES[name] = Primitive(name, arity, rule, evaluate, commutative, elementwise, cost)
    return prim


def _fit(t: Scalar, value: Number) -> Number:
    """A result brought into its type: rounded or wrapped."""
    if t.kind == "f":
        return t.round(value)
    return int(value) & 1 if t is u1 else t.wrap(int(value))


def _arithmetic(f: Callable[[Number], Number] | Callable[[Number, Number], Number]) -> Callable[..., Number]:
    exact: Callable[..., Number] = f

    def evaluate(t: Scalar, *values: Number) -> Number:
        try:
            return _fit(t, exact(*values))
        except OverflowError:
            return math.inf if all(v > 0 for v in values) else math.nan

    return evaluate


def _divide(t: Scalar, a: Number, b: Number) -> Number:
    if b != 0:
        return t.round(a / b)
    if a == 0 or a != a or b != b:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _strong_mul(t: Scalar, a: Number, b: Number) -> Number:
    return t.round(a * b) if a != 0 else a


def _floor_divide(t: Scalar, a: Number, b: Number) -> Number:
    if t.kind != "f":
        return t.wrap(a // b)
    if t is f16:
        return t.round(_floor_divide(f32, a, b))
    q: float = _divide(t, a, b)
    if math.isinf(q) or q != q:
        return q
    whole = float(math.floor(q)) if q else q
    if abs(whole) >= 2.0**t.mantissa:
        return whole  # every number of this size is whole
    # The rounded quotient may have reached the next integer, which the exact one has not.
    rest = _sign_of_rest(a, whole, b) if whole else a
    return whole - 1.0 if rest and (rest < 0) != (b < 0) else whole


def _sign_of_rest(a: Number, whole: float, b: Number) -> int:
    """A number with the sign of a - whole b, which is exact."""
    (a_over, a_under), (b_over, b_under) = a.as_integer_ratio(), b.as_integer_ratio()
    return a_over * b_under - int(whole) * b_over * a_under


def _modulo(t: Scalar, a: Number, b: Number) -> Number:
    if t.kind != "f":
        return t.wrap(a % b)
    rest = _truncating_modulo(t, a, b)
    if rest == 0:
        return math.copysign(0.0, b)
    return t.round(rest + b) if (rest < 0) != (b < 0) else rest


def _minimum(t: Scalar, a: Number, b: Number) -> Number:
    if a != a or b != b:
        return b if a != a else a
    if a == b == 0 and t.kind == "f":
        return a if math.copysign(1.0, a) < 0 else b
    return a if a < b else b


def _maximum(t: Scalar, a: Number, b: Number) -> Number:
    return -_minimum(t, -a, -b) if t.kind == "f" else max(a, b)


def _truncating_divide(t: Scalar, a: Number, b: Number) -> Number:
    if t.kind == "f":
        return _divide(t, a, b)
    q = abs(a) // abs(b)
    return t.wrap(q if (a < 0) == (b < 0) else -q)


def _truncating_modulo(t: Scalar, a: Number, b: Number) -> Number:
    if t.kind == "f":
        return math.nan if b == 0 or math.isinf(a) else t.round(math.fmod(a, b))
    return t.wrap(a - int(_truncating_divide(i64, a, b)) * b)


def _power(t: Scalar, a: Number, b: Number) -> Number:
    if t.kind != "f":
        if b < 0:
            return t.wrap(0 if abs(a) != 1 else a if b % 2 else 1)
        return t.wrap(pow(int(a), int(b), 1 << t.bits))
    try:
        return t.round(math.pow(a, b))
    except ValueError:
        if a != 0:
            return math.nan
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _shift_left(t: Scalar, a: int, b: int) -> int:
    return t.wrap(a << b) if 0 <= b < t.bits else 0


def _shift_right(t: Scalar, a: int, b: int) -> int:
    return a >> b if 0 <= b < t.bits else (-1 if a < 0 else 0)


def _math(f: Callable[[float], float]) -> Callable[..., Number]:
    def evaluate(t: Scalar, a: Number) -> Number:
        try:
            return t.round(f(a))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return evaluate


def _log(t: Scalar, a: float) -> float:
    return -math.inf if a == 0 else math.nan if a < 0 or a != a else t.round(math.log(a))


def _rsqrt(t: Scalar, a: float) -> float:
    return math.copysign(math.inf, a) if a == 0 else math.nan if a < 0 or a != a else t.round(1 / math.sqrt(a))


def _integral(f: Callable[[float], Number]) -> Callable[..., Number]:
    def evaluate(t: Scalar, a: Number) -> Number:
        if t.kind != "f" or not math.isfinite(a):
            return a
        return math.copysign(float(f(a)), a)

    return evaluate


def _to_odd(value: int) -> float:
    """An integer as a double that rounds to the same narrower float as the integer itself: its last bit tells of all
    cut off.
    """
    excess = abs(value).bit_length() - 53
    if excess <= 0:
        return float(value)
    kept = abs(value) >> excess
    if kept << excess != abs(value):
        kept |= 1
    return math.copysign(float(kept << excess), value)


def cast_number(t: Scalar, value: Number) -> Number:
    """`value` converted to `t`: floats round, integers wrap, a float becomes an integer by truncation, saturating, NaN
    to 0.
    """
    if t.kind == "f":
        return t.round(float(value) if isinstance(value, float) or t.bits == 64 else _to_odd(value))
    if t is u1:
        return int(value != 0)
    if isinstance(value, float):
        if value != value:
            return 0
        if math.isinf(value):
            return t.highest if value > 0 else t.lowest
        return min(max(int(value), t.lowest), t.highest)
    return t.wrap(value)


def cast_tangents(t: Scalar, value: Number) -> Number:
    """`value` converted to `t`, which may be tangents: a tuple; one number is repeated."""
    if not isinstance(t, Tangents):
        return cast_number(t, value)
    numbers: Iterable[Number] = [value] * t.count if isinstance(value, int | float) else value
    return tuple([cast_number(t.scalar, v) for v in numbers])


def _reinterpret(t: Scalar, value: Number) -> Number:
    codes = {16: "e", 32: "f", 64: "d"}
    integer = {8: "B", 16: "H", 32: "I", 64: "Q"}[t.bits]
    raw = (
        struct.pack("<" + codes[t.bits], value)
        if isinstance(value, float)
        else struct.pack("<" + integer, value & ((1 << t.bits) - 1))
    )
    return struct.unpack("<" + codes[t.bits], raw)[0] if t.kind == "f" else t.wrap(struct.unpack("<" + integer, raw)[0])


def mix(seed: int, iteration: int, draw: int) -> int:
    """The counter-based generator of `ti.random`: 32 well-mixed bits for a (launch seed, iteration, draw) triple.

    Three rounds of a 64-bit finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014),
    one a counter.
    """
    z = seed & 0xFFFFFFFFFFFFFFFF
    for word in (iteration, draw):
        z = (z + 0x9E3779B97F4A7C15 * ((word & 0xFFFFFFFFFFFFFFFF) + 1)) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        z ^= z >> 31
    return z >> 32


def _no_scalar_meaning(t: Scalar, *values: Number) -> Number:
    raise TypeError("a tensor primitive has no meaning on scalars")


# arithmetic
add = _define("add", 2, _numbers, _arithmetic(lambda a, b: a + b), commutative=True)
sub = _define("sub", 2, _numbers, _arithmetic(lambda a, b: a - b))
mul = _define("mul", 2, _numbers, _arithmetic(lambda a, b: a * b), commutative=True)
div = _define("div", 2, _floats, _divide, cost=4)
floordiv = _define("floordiv", 2, _numbers, _floor_divide, cost=8)
mod = _define("mod", 2, _numbers, _modulo, cost=8)
raw_div = _define("raw_div", 2, _numbers, _truncating_divide, cost=6)
raw_mod = _define("raw_mod", 2, _numbers, _truncating_modulo, cost=6)
neg = _define("neg", 1, _numbers, _arithmetic(lambda a: -a))
absolute = _define("abs", 1, _numbers, _arithmetic(abs))
minimum = _define("min", 2, _numbers, _minimum)
maximum = _define("max", 2, _numbers, _maximum)
power = _define("pow", 2, _numbers, _power, cost=30)
# bits
and_ = _define("and", 2, _bits, lambda t, a, b: a & b, commutative=True)
or_ = _define("or", 2, _bits, lambda t, a, b: a | b, commutative=True)
xor = _define("xor", 2, _bits, lambda t, a, b: a ^ b, commutative=True)
invert = _define("invert", 1, _bits, lambda t, a: _fit(t, ~a))
shl = _define("shl", 2, _shift, _shift_left)
shr = _define("shr", 2, _shift, _shift_right)
# truth
lt = _define("lt", 2, _truth, lambda t, a, b: int(a < b))
le = _define("le", 2, _truth, lambda t, a, b: int(a <= b))
gt = _define("gt", 2, _truth, lambda t, a, b: int(a > b))
ge = _define("ge", 2, _truth, lambda t, a, b: int(a >= b))
eq = _define("eq", 2, _truth, lambda t, a, b: int(a == b), commutative=True)
ne = _define("ne", 2, _truth, lambda t, a, b: int(a != b), commutative=True)
logical_not = _define("not", 1, _truth, lambda t, a: int(not a))
isnan = _define("isnan", 1, _truth, lambda t, a: int(a != a))
select = _define("select", 3, _chosen, lambda t, c, a, b: a if c else b)
# maths
sqrt = _define("sqrt", 1, _floats, _math(math.sqrt), cost=5)
rsqrt = _define("rsqrt", 1, _floats, _rsqrt, cost=5)
exp = _define("exp", 1, _floats, _math(math.exp), cost=15)
log = _define("log", 1, _floats, _log, cost=15)
sin = _define("sin", 1, _floats, _math(math.sin), cost=15)
cos = _define("cos", 1, _floats, _math(math.cos), cost=15)
tan = _define("tan", 1, _floats, _math(math.tan), cost=25)
asin = _define("asin", 1, _floats, _math(math.asin), cost=20)
acos = _define("acos", 1, _floats, _math(math.acos), cost=20)
atan2 = _define("atan2", 2, _floats, lambda t, a, b: t.round(math.atan2(a, b)), cost=30)
tanh = _define("tanh", 1, _floats, _math(math.tanh), cost=20)
floor = _define("floor", 1, _numbers, _integral(math.floor))
ceil = _define("ceil", 1, _numbers, _integral(math.ceil))
round_ = _define("round", 1, _numbers, _integral(round))
# surrogate(x, z): the value of x with the derivative of z, which is computed only where a derivative is asked for
surrogate = _define("surrogate", 2, _first, lambda t, x, z: x, cost=0)
# in_reverse(x, y): the value x; for a reverse sweep y, which is as good a value and has a better derivative
in_reverse = _define("in_reverse", 2, _first, lambda t, x, y: x, cost=0)
# strong_mul(a, b): a · b, and a where that is 0, whatever b is: a factor that does not count may be infinite or NaN
strong_mul = _define("strong_mul", 2, _floats, _strong_mul, cost=2)
# stop_gradient_once(x): x, which is a constant for the derivative that is taken, and not for the derivative of that one
stop_gradient_once = _define("stop_gradient_once", 1, _first, lambda t, x: x, cost=0)
# conversions: the result type is given where the operation is built
cast = _define("cast", 1, None, cast_number)
bitcast = _define("bitcast", 1, None, _reinterpret)
# tensors: pack(components in row-major order), extract(tensor, *indices), insert(tensor, *indices, value)
pack = _define("pack", None, None, _no_scalar_meaning, elementwise=False, cost=0)
extract = _define("extract", None, None, _no_scalar_meaning, elementwise=False, cost=0)
insert = _define("insert", None, None, _no_scalar_meaning, elementwise=False, cost=0)
# tangents along several directions: join_tangents(numbers), tangent_at(tangents, literal direction)
join_tangents = _define("join_tangents", None, None, _no_scalar_meaning, elementwise=False, cost=0)
tangent_at = _define("tangent_at", 2, None, _no_scalar_meaning, elementwise=False, cost=0)
# random_bits(launch seed: u64, iteration: i64, draw: i32) -> u32
random_bits = _define(
    "random_bits",
    3,
    lambda types, defaults: u32,
    lambda t, seed, iteration, draw: mix(seed, iteration, draw),
    elementwise=False,
    cost=8,
)

#: What an `Atomic` may combine with.
ATOMICS = (add, mul, minimum, maximum, and_, or_, xor)
#: What has no value for a divisor of zero, if it is an integer.
DIVISIONS = (floordiv, mod, raw_div, raw_mod)


def neutral(prim: Primitive, t: Scalar) -> Number:
    """The value that leaves any other unchanged under `prim`."""
    if prim is mul:
        return 1.0 if t.kind == "f" else 1
    if prim is minimum:
        return math.nan if t.kind == "f" else t.highest
    if prim is maximum:
        return math.nan if t.kind == "f" else t.lowest
    if prim is and_:
        return t.wrap(-1) if t is not u1 else 1
    return 0.0 if t.kind == "f" else 0


def evaluate(prim: Primitive, t: Scalar, *values: Number) -> Number:
    """The result of `t` for scalar operands. An integer division by zero gives 0, as in machine code: where divisions
    are checked, a check before it reports it.
    """
    if prim in DIVISIONS and t.kind != "f" and values[1] == 0:
        return 0
    return prim.evaluate(t, *values)
