"""The table of derivative rules: one for each primitive, or the reason why there is none.

A rule takes the adjoint `g` of the result `y` and the operands, and gives the adjoint of each operand (None: no
derivative flows there), as in the textbook: y = f(a, b) gives (g · ∂f/∂a, g · ∂f/∂b). Forward mode uses the same table,
since a Jacobian-vector product is the sum of these products applied to tangents. A rule computes by an `Arithmetic`:
`Emit` writes operations of a kernel, and `lang/data/traced_derivatives.py` computes numbers, so that a number in Python
has the derivative that it has in a kernel.

At a kink the rule picks a subgradient, the same everywhere: |x| and a root of a sum of squares give 0 at 0; `min` and
`max` give all to the operand that they choose, of two equal ones the second, and nothing to a NaN beside a number.
Where a function of numbers is not defined, and so NaN, its slopes are NaN.

Zero is a strong zero: an adjoint (a tangent) that is 0 contributes 0, never NaN, through a slope that is infinite or
NaN. So the arm of a branch that was not taken contributes nothing, whatever it divides by. Singular rules (division,
root, logarithm, power) multiply by `strong_mul`, whose own derivative keeps to it; all others do so where their result
may not count (`activity.discardable_variables`). Method: the strong zeros of ForwardDiff.jl and Enzyme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Lit, Op, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import operands_first
from tinote.ir.types import Scalar, Tangents, Tensor, Type, element_type, i32, is_float, tangent_type, with_element

T = TypeVar("T")


class Arithmetic(Protocol[T]):
    """What rules compute with, on whatever stands for a number."""

    def lit(self, value: float, like: T) -> T: ...

    def zero(self, like: T) -> T: ...

    def literal(self, a: T) -> float | None:
        """The value of a literal; None of what is computed."""
        ...

    def add(self, a: T, b: T) -> T: ...

    def sub(self, a: T, b: T) -> T: ...

    def mul(self, a: T, b: T) -> T: ...

    def div(self, a: T, b: T) -> T: ...

    def neg(self, a: T) -> T: ...

    def of(self, prim: Primitive, *args: T) -> T: ...

    def where(self, condition: T, a: T, b: T) -> T: ...

    def strong_mul(self, g: T, slope: T) -> T:
        """`g` times a slope that may be infinite or no number; 0 where `g` is 0."""
        ...

    def times(self, y: T, g: T, slope: T, *, regular: bool = True) -> T:
        """`g` times the slope of `y`. `regular`: it is a number unless `y` is not."""
        ...

    def is_square(self, y: T, g: T) -> bool:
        """Whether a product is that of a number with itself, and 2 may be multiplied by `g`."""
        ...

    def is_sum_of_squares(self, a: T) -> bool:
        """Whether `a` is computed as t·t, or as a sum of such."""
        ...

    def is_positive(self, a: T) -> bool:
        """Whether `a` is known to be positive, and 1/a finite."""
        ...


class Emit:
    """Arithmetic on atoms of one float type, with the zeros and ones left out. Where tangents along several directions
    meet a number, it is repeated.

    `definitions`: how the variables of the primal function are computed. `discardable`: those whose value may not
    count. `stops`: whether there is any `stop_gradient_once`.
    """

    __slots__ = ("_positive", "_squares", "builder", "definitions", "discardable", "stops")

    def __init__(self, builder: Builder, definitions: dict[Var, Op], discardable: set[Var]) -> None:
        self.builder = builder
        self.definitions = definitions
        self.discardable = discardable
        #: what is known of `is_positive` and `is_sum_of_squares`
        self._positive: dict[Atom, bool] = {}
        self._squares: dict[Atom, bool] = {}
        self.stops = any(isinstance(op, Prim) and op.prim is p.stop_gradient_once for op in definitions.values())

    def without_stop_gradient(self, atom: Atom) -> Atom:
        """What an atom is in the next derivative: `stop_gradient_once` stops only one."""
        return self._without_stop_gradient(atom, {}) if self.stops else atom

    def _without_stop_gradient(self, atom: Atom, known: dict[Atom, Atom]) -> Atom:
        op = self.definitions.get(atom) if isinstance(atom, Var) else None
        if not isinstance(op, Prim) or op.prim is p.surrogate:
            return atom
        if op.prim is p.stop_gradient_once:
            return op.args[0]
        if atom not in known:
            args = tuple([self._without_stop_gradient(a, known) for a in op.args])
            known[atom] = atom if args == op.args else self.builder.prim(op.prim, *args, type=op.out.type)
        return known[atom]

    def lit(self, value: float, like: Atom) -> Lit:
        assert isinstance(like.type, Scalar)
        return Lit(value, like.type)

    def literal(self, a: Atom) -> float | None:
        """The value of a literal."""
        return a.value if isinstance(a, Lit) else None

    def _alike(self, a: Atom, b: Atom) -> tuple[Atom, Atom]:
        """Both along as many directions as one of them is."""
        if isinstance(a.type, Tangents):
            return a, self.builder.cast(b, a.type)
        return (self.builder.cast(a, b.type), b) if isinstance(b.type, Tangents) else (a, b)

    def add(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.add, *self._alike(a, b))

    def sub(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.sub, *self._alike(a, b))

    def mul(self, a: Atom, b: Atom) -> Atom:
        if isinstance(a, Lit) and a.value == 1.0:
            return b
        if isinstance(b, Lit) and b.value == 1.0:
            return a
        return self.builder.prim(p.mul, *self._alike(a, b))

    def div(self, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.div, *self._alike(a, b))

    def neg(self, a: Atom) -> Atom:
        return self.builder.prim(p.neg, a)

    def of(self, prim: Primitive, *args: Atom) -> Atom:
        return self.builder.prim(prim, *args)

    def zero(self, like: Atom) -> Atom:
        """A zero of the type of `like`, a scalar or a tensor."""
        return self.zero_of(like.type)

    def zero_of(self, t: Type) -> Atom:
        """A zero of a type, a scalar's or a tensor's."""
        if isinstance(t, Tensor):
            return self.builder.pack([Lit(0.0, t.dtype)] * t.count, t)
        assert isinstance(t, Scalar)
        return Lit(0.0, t)

    def where(self, condition: Atom, a: Atom, b: Atom) -> Atom:
        return self.builder.prim(p.select, condition, a, b)

    def strong_mul(self, g: Atom, slope: Atom) -> Atom:
        """`g` times a slope that may be infinite or no number; 0 where `g` is 0."""
        return self.mul(g, slope) if isinstance(g, Lit) else self.builder.prim(p.strong_mul, *self._alike(g, slope))

    def times(self, y: Atom, g: Atom, slope: Atom, *, regular: bool = True) -> Atom:
        """`g` times the slope of `y`. `regular`: it is a number unless `y` is not."""
        return self.mul(g, slope) if regular and y not in self.discardable else self.strong_mul(g, slope)

    def is_square(self, y: Atom, g: Atom) -> bool:
        """Whether a product is that of a variable with itself; not one with itself held constant."""
        op = self.definitions.get(y) if isinstance(y, Var) else None
        return op is not None and op.args[0] == op.args[1] and isinstance(g.type, Scalar)

    def is_sum_of_squares(self, a: Atom) -> bool:
        """Whether `a` is computed as t·t, or as a sum of such."""
        squares = self._squares
        for op in operands_first(a, self.definitions, squares, (p.add, p.mul)):
            first, second = op.args
            one = first == second if op.prim is p.mul else squares.get(first, False) and squares.get(second, False)
            squares[op.out] = one
        return squares.get(a, False)

    def is_positive(self, a: Atom) -> bool:
        """Whether `a` is computed as a positive number, plus what is not negative or not at all, or as its root: 1/a is
        finite.

        Not `Magnitudes.is_positive`: that wants all digits, where of a denormal number the reciprocal may be finite,
        too, and it knows of what is not marked here, such as maxima.
        """
        if isinstance(a, Lit):
            return a.value > 0 and math.isfinite(a.type.round(1 / a.value))
        for op in operands_first(a, self.definitions, self._positive, (p.add, p.sqrt)):
            positive = [self.is_positive(x) for x in op.args]
            if not all(positive) and any(positive):
                positive = [found or self.is_sum_of_squares(x) for found, x in zip(positive, op.args, strict=True)]
            self._positive[op.out] = all(positive)
        return self._positive.get(a, False)


def joined_tangents(builder: Builder, numbers: Sequence[Atom]) -> Atom:
    """One value of numbers, one for each direction."""
    if len(numbers) == 1:
        return numbers[0]
    t = numbers[0].type
    assert isinstance(t, Scalar)
    return builder.prim(p.join_tangents, *numbers, type=tangent_type(t, len(numbers)))


def tangent_numbers(builder: Builder, joined: Atom, directions: int) -> list[Atom]:
    """The numbers of such a value, one for each direction."""
    if directions == 1:
        return [joined]
    t = joined.type
    assert isinstance(t, Tangents)
    if isinstance(joined, Lit):
        return [Lit(joined.value, t.scalar)] * directions
    return [builder.prim(p.tangent_at, joined, Lit(k, i32), type=t.scalar) for k in range(directions)]


#: Of the arithmetic, the adjoint of the result, the result, and the operands.
Rule = Callable[[Any, Any, Any, tuple[Any, ...]], Sequence[Any]]


class NoDerivative:
    """Why a primitive has no derivative rule. `zero`: its derivative is zero almost everywhere, which is right and no
    error.
    """

    __slots__ = ("reason", "zero")

    def __init__(self, reason: str, *, zero: bool) -> None:
        self.reason = reason
        self.zero = zero

    def __repr__(self) -> str:
        return f"NoDerivative({self.reason!r})"


def _sqrt(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.div(e.lit(0.5, y), y)
    if e.is_sum_of_squares(a[0]):
        return (e.where(e.of(p.eq, y, e.lit(0.0, y)), e.zero(g), e.times(y, g, slope)),)
    return (e.times(y, g, slope, regular=e.is_positive(a[0])),)


def _inverse_sqrt(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.mul(e.lit(-0.5, y), e.div(y, a[0]))
    return (e.times(y, g, slope, regular=e.is_positive(a[0])),)


def _logarithm(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    slope = e.div(e.lit(1.0, y), a[0])
    if e.is_positive(a[0]):
        return (e.times(y, g, slope),)
    return (e.strong_mul(g, e.where(e.of(p.lt, a[0], e.lit(0.0, y)), e.lit(math.nan, y), slope)),)


def _power(e: Arithmetic[T], g: T, y: T, args: tuple[T, ...]) -> Sequence[T | None]:
    a, b = args
    zero, one = e.lit(0.0, y), e.lit(1.0, y)
    slope = e.mul(b, e.of(p.power, a, e.sub(b, one)))
    exponent = e.literal(b)
    if exponent is not None and exponent != 1 and exponent.is_integer() == (exponent - 1).is_integer():
        return e.where(e.of(p.eq, b, zero), e.zero(g), e.strong_mul(g, slope)), None
    undefined = e.of(p.isnan, y)
    base = e.where(e.of(p.eq, b, zero), e.zero(g), e.strong_mul(g, e.where(undefined, y, slope)))
    if exponent is not None:
        return base, None
    positive = e.of(p.gt, a, zero)
    logarithm = e.of(p.log, e.where(positive, a, one))
    by_exponent = e.strong_mul(g, e.mul(y, logarithm))
    return base, e.where(e.of(p.or_, positive, undefined), by_exponent, e.zero(g))


def _absolute(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    zero = e.lit(0.0, y)
    # What is left is a NaN.
    other = e.where(e.of(p.eq, a[0], zero), e.zero(g), e.times(y, g, a[0]))
    return (e.where(e.of(p.gt, a[0], zero), g, e.where(e.of(p.lt, a[0], zero), e.neg(g), other)),)


def _atan2(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    # (b, -a) / (a² + b²) by way of the quotient of the smaller by the larger one: squares overflow or vanish sooner.
    steep = e.of(p.gt, e.of(p.absolute, a[0]), e.of(p.absolute, a[1]))
    larger, smaller = e.where(steep, a[0], a[1]), e.where(steep, a[1], a[0])
    quotient = e.div(smaller, larger)
    inverse = e.div(e.lit(1.0, y), e.mul(larger, e.add(e.lit(1.0, y), e.mul(quotient, quotient))))
    part = e.mul(quotient, inverse)
    return e.strong_mul(g, e.where(steep, part, inverse)), e.neg(e.strong_mul(g, e.where(steep, inverse, part)))


def _multiply(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    if e.is_square(y, g):  # one product, not the sum of two
        return e.times(y, e.mul(g, e.lit(2.0, g)), a[0]), None
    return e.times(y, g, a[1]), e.times(y, g, a[0])


def _divide(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    if e.literal(a[1]):
        return e.div(g, a[1]), None
    inverse = e.div(e.lit(1.0, y), a[1])
    regular = e.is_positive(a[1])
    below = e.times(y, g, e.mul(inverse, y), regular=regular)
    return e.times(y, g, inverse, regular=regular), e.neg(below)


def _rounded_quotient(e: Arithmetic[T], g: T, y: T, a: tuple[T, ...]) -> Sequence[T | None]:
    # y = a - q·b with q constant almost everywhere
    by_a = e.where(e.of(p.isnan, y), e.strong_mul(g, y), g)
    return by_a, e.neg(e.strong_mul(g, e.of(p.round_, e.div(e.sub(a[0], y), a[1]))))


def _cast(e: Emit, g: Atom, y: Var, a: tuple[Atom, ...]) -> Sequence[Atom | None]:
    t = a[0].type
    if not is_float(t):
        return (None,)
    of_adjoint = element_type(g.type)
    dtype = tangent_type(element_type(t), of_adjoint.count) if isinstance(of_adjoint, Tangents) else element_type(t)
    return (e.builder.cast(g, with_element(t, dtype)),)


def root_of_complement(e: Arithmetic[T], a: T) -> T:
    """sqrt(1 - a²)"""
    return e.of(p.sqrt, e.sub(e.lit(1.0, a), e.mul(a, a)))


_STEP = NoDerivative("piecewise constant", zero=True)
_TRUTH = NoDerivative("a truth value has no derivative", zero=True)
_INTEGER = NoDerivative("integer bits have no derivative", zero=True)

RULES: dict[Primitive, Rule | NoDerivative] = {
    p.add: lambda e, g, y, a: (g, g),
    p.sub: lambda e, g, y, a: (g, e.neg(g)),
    p.mul: _multiply,
    p.div: _divide,
    p.raw_div: _divide,
    p.floordiv: _STEP,
    p.mod: _rounded_quotient,
    p.raw_mod: _rounded_quotient,
    p.neg: lambda e, g, y, a: (e.neg(g),),
    p.absolute: _absolute,
    p.minimum: lambda e, g, y, a: extremum(e, g, p.lt, *a, loses=a[1]),
    p.maximum: lambda e, g, y, a: extremum(e, g, p.gt, *a, loses=a[1]),
    p.power: _power,
    p.select: lambda e, g, y, a: (None, *_choose(e, g, a[0])),
    p.sqrt: _sqrt,
    p.rsqrt: _inverse_sqrt,
    p.exp: lambda e, g, y, a: (e.strong_mul(g, y),),
    p.log: _logarithm,
    p.sin: lambda e, g, y, a: (e.times(y, g, e.of(p.cos, a[0])),),
    p.cos: lambda e, g, y, a: (e.neg(e.times(y, g, e.of(p.sin, a[0]))),),
    p.tan: lambda e, g, y, a: (e.times(y, g, e.add(e.lit(1.0, y), e.mul(y, y))),),
    p.asin: lambda e, g, y, a: (e.strong_mul(g, e.div(e.lit(1.0, y), root_of_complement(e, a[0]))),),
    p.acos: lambda e, g, y, a: (e.neg(e.strong_mul(g, e.div(e.lit(1.0, y), root_of_complement(e, a[0])))),),
    p.atan2: _atan2,
    p.tanh: lambda e, g, y, a: (e.times(y, g, e.sub(e.lit(1.0, y), e.mul(y, y))),),
    p.surrogate: lambda e, g, y, a: (None, g),
    p.in_reverse: lambda e, g, y, a: (g, None),
    # What is 0 for an adjoint is 0 for what the adjoint depends on: forward mode over reverse mode.
    p.strong_mul: lambda e, g, y, a: (e.strong_mul(g, a[1]), e.strong_mul(a[0], g)),
    p.stop_gradient_once: NoDerivative("a constant for this derivative", zero=True),
    p.cast: _cast,
    p.floor: _STEP,
    p.ceil: _STEP,
    p.round_: _STEP,
    p.lt: _TRUTH,
    p.le: _TRUTH,
    p.gt: _TRUTH,
    p.ge: _TRUTH,
    p.eq: _TRUTH,
    p.ne: _TRUTH,
    p.logical_not: _TRUTH,
    p.isnan: _TRUTH,
    p.and_: _INTEGER,
    p.or_: _INTEGER,
    p.xor: _INTEGER,
    p.invert: _INTEGER,
    p.shl: _INTEGER,
    p.shr: _INTEGER,
    p.random_bits: NoDerivative("a random draw does not depend on the program's inputs", zero=True),
    p.bitcast: NoDerivative("the bits of a number are not a differentiable function of it", zero=False),
    # A tensor's adjoint is a tensor that is updated component by component: `reverse` does that itself.
    p.pack: lambda e, g, y, a: tuple([e.builder.extract(g, *_position(y, k)) for k in range(len(a))]),
    p.extract: NoDerivative("handled where tensors' adjoints are kept", zero=False),
    p.insert: NoDerivative("handled where tensors' adjoints are kept", zero=False),
    p.join_tangents: NoDerivative("only tangents have directions", zero=False),
    p.tangent_at: NoDerivative("only tangents have directions", zero=False),
}


def extremum(e: Arithmetic[T], g: T, beats: Primitive, a: T, b: T, *, loses: T) -> tuple[T, T]:
    """The rule of a minimum or maximum: the second operand is chosen where the first does not beat it, and where it is
    not the one that `loses` if it is NaN.
    """
    first = e.of(beats, a, b)
    known = e.literal(loses)
    if known is None or known != known:
        first = e.of(p.or_, first, e.of(p.isnan, loses))
    return _choose(e, g, first)


def _choose(e: Arithmetic[T], g: T, condition: T) -> tuple[T, T]:
    zero = e.zero(g)
    return e.where(condition, g, zero), e.where(condition, zero, g)


def _position(tensor: Var, flat: int) -> list[Lit]:
    """The literal indices of the component that stands at `flat` in row-major order."""
    from_last: list[Lit] = []
    assert isinstance(tensor.type, Tensor)
    for extent in reversed(tensor.type.shape):
        flat, position = divmod(flat, extent)
        from_last.append(Lit(position, p.i32))
    return from_last[::-1]
