"""The table of primitives: a record of each, with its type rule, meaning and derivative (`primitive_record.py`).

Everything that computes is here once; tests walk `PRIMITIVES`. The meaning of the corner cases is fixed here, by
`evaluate`:

- Integers wrap; over-wide shifts give 0 or the sign; a float becomes an integer by truncation, saturating, NaN to 0.
- `//` and `%` round towards minus infinity, as in Python. For floats both are exact: the remainder is `fmod`, plus b
  where its sign is not that of b; the quotient is the largest integer not above a/b, as far as the type has it.
- `min` and `max` leave a NaN out, as `fmin` and `fmax`, and order the zeros by sign: the minimumNumber and
  maximumNumber of IEEE 754-2019. So a reduction has the same result in any order, and NaN is its neutral element.

A derivative takes the adjoint `g` of the result `y` and the operands, and gives the adjoint of each operand (None: no
derivative flows there), as in the textbook: y = f(a, b) gives (g · ∂f/∂a, g · ∂f/∂b). Forward mode uses the same rule,
since a Jacobian-vector product is the sum of these products applied to tangents. A rule computes by an `Arithmetic`:
that of `autodiff/emit.py` writes operations of a kernel, that of `lang/data/traced_derivatives.py` computes numbers, so
that a number in Python has the derivative that it has in a kernel.

At a kink the rule picks a subgradient, the same everywhere: |x| and a root of a sum of squares give 0 at 0; `min` and
`max` give all to the operand that they choose, of two equal ones the second, and nothing to a NaN next to a number.
Where a function of numbers is not defined, and so NaN, its slopes are NaN.

Zero is a strong zero: an adjoint (a tangent) that is 0 contributes 0, never NaN, through a slope that is infinite or
NaN. So the arm of a branch that was not taken contributes nothing, whatever it divides by. Singular rules (division,
root, logarithm, power) multiply by `strong_mul`, whose own derivative keeps to it; all others do so where their result
may not count (`activity.discardable_variables`). Method: the strong zeros of ForwardDiff.jl and Enzyme.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeVar

from tinote.errors import CompilerBug
from tinote.ir.primitive_record import Arithmetic, Defaults, Derivative, NoDerivative, Number, Primitive
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

T = TypeVar("T")


def power_of(base: T, exponent: int, times: Callable[[T, T], T]) -> T:
    """A positive power, by repeated squaring."""
    result: T | None = None
    while True:
        if exponent & 1:
            result = base if result is None else times(result, base)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = times(base, base)


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
    if prim is logical_not or (prim is select and position == 0):
        return u1
    if prim is random_bits:
        return (u64, i64, i32)[position]
    if prim.rule is _truth:
        dtype = _promoted(types, defaults)
        if prim is isnan and dtype.kind != "f":
            return defaults.fp
        return dtype if dtype.bits else (defaults.fp if dtype.kind == "f" else defaults.ip)
    return element_type(result)


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


def _of_tensors(name: str, arity: int | None, derivative: Derivative | NoDerivative) -> Primitive:
    """A primitive on tensors or tangents, which takes them apart or puts them together."""

    def meaning(t: Scalar, *values: Number) -> Number:
        raise TypeError("a tensor primitive has no meaning on scalars")

    return Primitive(name, arity, None, meaning, derivative, elementwise=False, cost=0)


def _root_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.div(e.lit(0.5, y), y)
    if e.is_sum_of_squares(a[0]):
        return (e.where(e.of(eq, y, e.lit(0.0, y)), e.zero(g), e.times(y, g, slope)),)
    return (e.times(y, g, slope, regular=e.is_positive(a[0])),)


def _inverse_root_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.mul(e.lit(-0.5, y), e.div(y, a[0]))
    return (e.times(y, g, slope, regular=e.is_positive(a[0])),)


def _logarithm_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.div(e.lit(1.0, y), a[0])
    if e.is_positive(a[0]):
        return (e.times(y, g, slope),)
    return (e.strong_mul(g, e.where(e.of(lt, a[0], e.lit(0.0, y)), e.lit(math.nan, y), slope)),)


def _power_rule(e: Arithmetic[T], g: T, y: T, args: tuple[T, ...]) -> Sequence[T | None]:
    a, b = args
    zero, one = e.lit(0.0, y), e.lit(1.0, y)
    slope = e.mul(b, e.of(power, a, e.sub(b, one)))
    exponent = e.literal(b)
    if exponent is not None and exponent != 1 and exponent.is_integer() == (exponent - 1).is_integer():
        return e.where(e.of(eq, b, zero), e.zero(g), e.strong_mul(g, slope)), None
    undefined = e.of(isnan, y)
    by_base = e.strong_mul(g, e.where(undefined, y, slope))
    if exponent is not None:
        return e.where(e.of(eq, b, zero), e.zero(g), by_base), None
    # The slope 0 of x⁰ varies with the exponent: it is a constant only where there is no b / a. (1 / a may overflow.)
    positive = e.of(gt, a, zero)
    varies = e.of(or_, positive, e.of(lt, a, zero))
    flat = e.where(varies, e.strong_mul(g, e.div(e.mul(b, y), a)), e.zero(g))
    base = e.where(e.of(eq, b, zero), flat, by_base)
    logarithm = e.of(log, e.where(positive, a, one))
    by_exponent = e.strong_mul(g, e.mul(y, logarithm))
    return base, e.where(e.of(or_, positive, undefined), by_exponent, e.zero(g))


def _absolute_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    zero = e.lit(0.0, y)
    # What is left is a NaN.
    other = e.where(e.of(eq, a[0], zero), e.zero(g), e.times(y, g, a[0]))
    return (e.where(e.of(gt, a[0], zero), g, e.where(e.of(lt, a[0], zero), e.neg(g), other)),)


def _atan2_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    # (b, -a) / (a² + b²) by way of the quotient of the smaller by the larger one: squares overflow or vanish sooner.
    steep = e.of(gt, e.of(absolute, a[0]), e.of(absolute, a[1]))
    larger, smaller = e.where(steep, a[0], a[1]), e.where(steep, a[1], a[0])
    quotient = e.div(smaller, larger)
    inverse = e.div(e.lit(1.0, y), e.mul(larger, e.add(e.lit(1.0, y), e.mul(quotient, quotient))))
    part = e.mul(quotient, inverse)
    return e.strong_mul(g, e.where(steep, part, inverse)), e.neg(e.strong_mul(g, e.where(steep, inverse, part)))


def _product_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    if e.is_square(y, g):  # one product, not the sum of two
        return e.times(y, e.mul(g, e.lit(2.0, g)), a[0]), None
    return e.times(y, g, a[1]), e.times(y, g, a[0])


def _quotient_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    if e.literal(a[1]):
        return e.div(g, a[1]), None
    inverse = e.div(e.lit(1.0, y), a[1])
    regular = e.is_positive(a[1])
    below = e.times(y, g, e.mul(inverse, y), regular=regular)
    return e.times(y, g, inverse, regular=regular), e.neg(below)


def _remainder_rule(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    # y = a - q·b with q constant almost everywhere
    by_a = e.where(e.of(isnan, y), e.strong_mul(g, y), g)
    return by_a, e.neg(e.strong_mul(g, e.of(round_, e.div(e.sub(a[0], y), a[1]))))


def root_of_complement(e: Arithmetic[T], a: T) -> T:
    """sqrt(1 - a²)"""
    return e.of(sqrt, e.sub(e.lit(1.0, a), e.mul(a, a)))


def extremum(e: Arithmetic[T], g: T, beats: Primitive, a: T, b: T, *, loses: T) -> tuple[T, T]:
    """The rule of a minimum or maximum: the second operand is chosen where the first does not beat it, and where it is
    not the one that `loses` if it is NaN.
    """
    first = e.of(beats, a, b)
    known = e.literal(loses)
    if known is None or known != known:
        first = e.of(or_, first, e.of(isnan, loses))
    return _choose(e, g, first)


def _choose(e: Arithmetic[T], g: T, condition: T) -> tuple[T, T]:
    zero = e.zero(g)
    return e.where(condition, g, zero), e.where(condition, zero, g)


_STEP = NoDerivative("piecewise constant", zero=True)
_TRUTH = NoDerivative("a truth value has no derivative", zero=True)
_INTEGER = NoDerivative("integer bits have no derivative", zero=True)
# A tensor's adjoint is a tensor that is updated component by component: `reverse` does that itself.
_IN_TENSORS = NoDerivative("handled where tensors' adjoints are kept", zero=False)
_DIRECTIONS = NoDerivative("only tangents have directions", zero=False)
_POSITIVE = (0.0, math.inf)

# arithmetic
add = Primitive(
    "add", 2, _numbers, _arithmetic(lambda a, b: a + b), lambda e, g, y, a: (g, g), commutative=True, numpy="add"
)
sub = Primitive("sub", 2, _numbers, _arithmetic(lambda a, b: a - b), lambda e, g, y, a: (g, e.neg(g)), numpy="subtract")
mul = Primitive("mul", 2, _numbers, _arithmetic(lambda a, b: a * b), _product_rule, commutative=True, numpy="multiply")
div = Primitive("div", 2, _floats, _divide, _quotient_rule, cost=4, numpy="true_divide")
floordiv = Primitive("floordiv", 2, _numbers, _floor_divide, _STEP, cost=8, numpy="floor_divide")
mod = Primitive("mod", 2, _numbers, _modulo, _remainder_rule, cost=8, numpy="remainder")
raw_div = Primitive("raw_div", 2, _numbers, _truncating_divide, _quotient_rule, cost=6)
raw_mod = Primitive("raw_mod", 2, _numbers, _truncating_modulo, _remainder_rule, cost=6, numpy="fmod")
neg = Primitive("neg", 1, _numbers, _arithmetic(lambda a: -a), lambda e, g, y, a: (e.neg(g),), numpy="negative")
absolute = Primitive("abs", 1, _numbers, _arithmetic(abs), _absolute_rule, numpy="absolute")
minimum = Primitive("min", 2, _numbers, _minimum, lambda e, g, y, a: extremum(e, g, lt, *a, loses=a[1]), numpy="fmin")
maximum = Primitive("max", 2, _numbers, _maximum, lambda e, g, y, a: extremum(e, g, gt, *a, loses=a[1]), numpy="fmax")
power = Primitive("pow", 2, _numbers, _power, _power_rule, cost=30, ulps=2, lanes="never", numpy="float_power")
# bits
and_ = Primitive("and", 2, _bits, lambda t, a, b: a & b, _INTEGER, commutative=True)
or_ = Primitive("or", 2, _bits, lambda t, a, b: a | b, _INTEGER, commutative=True)
xor = Primitive("xor", 2, _bits, lambda t, a, b: a ^ b, _INTEGER, commutative=True)
invert = Primitive("invert", 1, _bits, lambda t, a: _fit(t, ~a), _INTEGER)
shl = Primitive("shl", 2, _shift, _shift_left, _INTEGER)
shr = Primitive("shr", 2, _shift, _shift_right, _INTEGER)
# truth
lt = Primitive("lt", 2, _truth, lambda t, a, b: int(a < b), _TRUTH)
le = Primitive("le", 2, _truth, lambda t, a, b: int(a <= b), _TRUTH)
gt = Primitive("gt", 2, _truth, lambda t, a, b: int(a > b), _TRUTH)
ge = Primitive("ge", 2, _truth, lambda t, a, b: int(a >= b), _TRUTH)
eq = Primitive("eq", 2, _truth, lambda t, a, b: int(a == b), _TRUTH, commutative=True)
ne = Primitive("ne", 2, _truth, lambda t, a, b: int(a != b), _TRUTH, commutative=True)
logical_not = Primitive("not", 1, _truth, lambda t, a: int(not a), _TRUTH)
isnan = Primitive("isnan", 1, _truth, lambda t, a: int(a != a), _TRUTH)
select = Primitive(
    "select", 3, _chosen, lambda t, c, a, b: a if c else b, lambda e, g, y, a: (None, *_choose(e, g, a[0]))
)
# maths
sqrt = Primitive("sqrt", 1, _floats, _math(math.sqrt), _root_rule, cost=5, domain=_POSITIVE, numpy="sqrt")
rsqrt = Primitive("rsqrt", 1, _floats, _rsqrt, _inverse_root_rule, cost=5, ulps=2, domain=_POSITIVE)
exp = Primitive(
    "exp", 1, _floats, _math(math.exp), lambda e, g, y, a: (e.strong_mul(g, y),),
    cost=15, ulps=2, lanes="fast", numpy="exp",
)  # fmt: skip
log = Primitive("log", 1, _floats, _log, _logarithm_rule, cost=15, ulps=2, domain=_POSITIVE, lanes="fast", numpy="log")
sin: Primitive = Primitive(
    "sin", 1, _floats, _math(math.sin), lambda e, g, y, a: (e.times(y, g, e.of(cos, a[0])),),
    cost=15, ulps=2, lanes="fast", numpy="sin",
)  # fmt: skip
cos = Primitive(
    "cos", 1, _floats, _math(math.cos), lambda e, g, y, a: (e.neg(e.times(y, g, e.of(sin, a[0]))),),
    cost=15, ulps=2, lanes="fast", numpy="cos",
)  # fmt: skip
tan = Primitive(
    "tan", 1, _floats, _math(math.tan), lambda e, g, y, a: (e.times(y, g, e.add(e.lit(1.0, y), e.mul(y, y))),),
    cost=25, ulps=4, lanes="never", numpy="tan",
)  # fmt: skip
asin = Primitive(
    "asin", 1, _floats, _math(math.asin),
    lambda e, g, y, a: (e.strong_mul(g, e.div(e.lit(1.0, y), root_of_complement(e, a[0]))),),
    cost=20, ulps=4, domain=(-1, 1), lanes="never", numpy="arcsin",
)  # fmt: skip
acos = Primitive(
    "acos", 1, _floats, _math(math.acos),
    lambda e, g, y, a: (e.neg(e.strong_mul(g, e.div(e.lit(1.0, y), root_of_complement(e, a[0])))),),
    cost=20, ulps=4, domain=(-1, 1), lanes="never", numpy="arccos",
)  # fmt: skip
atan2 = Primitive(
    "atan2", 2, _floats, lambda t, a, b: t.round(math.atan2(a, b)), _atan2_rule,
    cost=30, ulps=4, lanes="never", numpy="arctan2",
)  # fmt: skip
tanh = Primitive(
    "tanh", 1, _floats, _math(math.tanh), lambda e, g, y, a: (e.times(y, g, e.sub(e.lit(1.0, y), e.mul(y, y))),),
    cost=20, ulps=4, lanes="fast", numpy="tanh",
)  # fmt: skip
floor = Primitive("floor", 1, _numbers, _integral(math.floor), _STEP, numpy="floor")
ceil = Primitive("ceil", 1, _numbers, _integral(math.ceil), _STEP, numpy="ceil")
round_ = Primitive("round", 1, _numbers, _integral(round), _STEP, numpy="rint")
# surrogate(x, z): the value of x with the derivative of z, which is computed only where a derivative is asked for
surrogate = Primitive("surrogate", 2, _first, lambda t, x, z: x, lambda e, g, y, a: (None, g), cost=0)
# in_reverse(x, y): the value x; for a reverse sweep y, which is as good a value and has a better derivative
in_reverse = Primitive("in_reverse", 2, _first, lambda t, x, y: x, lambda e, g, y, a: (g, None), cost=0)
# strong_mul(a, b): a · b, and a where that is 0, whatever b is: a factor that does not count may be infinite or NaN.
# What is 0 for an adjoint is 0 for what the adjoint depends on: forward mode over reverse mode.
strong_mul = Primitive(
    "strong_mul", 2, _floats, _strong_mul, lambda e, g, y, a: (e.strong_mul(g, a[1]), e.strong_mul(a[0], g)), cost=2
)
# stop_gradient_once(x): x, which is a constant for the derivative that is taken, and not for the derivative of that one
stop_gradient_once = Primitive(
    "stop_gradient_once",
    1,
    _first,
    lambda t, x: x,
    NoDerivative("a constant for this derivative", zero=True),
    cost=0,
)
# conversions: the result type is given where the operation is built
cast = Primitive("cast", 1, None, cast_number, lambda e, g, y, a: (e.of_operand(g, a[0]),))
bitcast = Primitive(
    "bitcast",
    1,
    None,
    _reinterpret,
    NoDerivative("the bits of a number are not a differentiable function of it", zero=False),
)
# tensors: pack(components in row-major order), extract(tensor, *indices), insert(tensor, *indices, value)
pack = _of_tensors("pack", None, lambda e, g, y, a: e.components(g))
extract = _of_tensors("extract", None, _IN_TENSORS)
insert = _of_tensors("insert", None, _IN_TENSORS)
# tangents along several directions: join_tangents(numbers), tangent_at(tangents, literal direction)
join_tangents = _of_tensors("join_tangents", None, _DIRECTIONS)
tangent_at = _of_tensors("tangent_at", 2, _DIRECTIONS)
# random_bits(launch seed: u64, iteration: i64, draw: i32) -> u32
random_bits = Primitive(
    "random_bits",
    3,
    lambda types, defaults: u32,
    lambda t, seed, iteration, draw: mix(seed, iteration, draw),
    NoDerivative("a random draw does not depend on the program's inputs", zero=True),
    elementwise=False,
    cost=8,
)

#: All of them, by name.
PRIMITIVES = {prim.name: prim for prim in tuple(globals().values()) if isinstance(prim, Primitive)}
#: What an `Atomic` may combine with.
ATOMICS = (add, mul, minimum, maximum, and_, or_, xor)
#: What arithmetic on truth values is, modulo two.
ON_TRUTHS = {add: xor, sub: xor, mul: and_, minimum: and_, maximum: or_}
#: What has no value for a divisor of zero, if it is an integer.
DIVISIONS = (floordiv, mod, raw_div, raw_mod)
#: The same comparison with its sides exchanged, and the opposite one.
MIRRORED = {lt: gt, gt: lt, le: ge, ge: le, eq: eq, ne: ne}
NEGATED = {lt: ge, ge: lt, gt: le, le: gt, eq: ne, ne: eq}


def require_all(back_end: str, *tables: Container[Primitive]) -> None:
    """Raises `CompilerBug` where a primitive is in none of a back end's tables: those of its code, and of what it
    refuses.
    """
    missing = [name for name, prim in PRIMITIVES.items() if not any(prim in table for table in tables)]
    if missing:
        raise CompilerBug(back_end, f"neither code for these primitives nor a reason why not: {', '.join(missing)}")


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
