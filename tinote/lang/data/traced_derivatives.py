"""Numbers with a derivative along one direction, and the derivatives of the operations that Python has for numbers.

The rules are those of kernels (`ir/primitives.py`), evaluated by an arithmetic of `Dual`s in place of one
that writes operations. So a number in Python has the derivative that it has in a kernel, at ties and kinks too, slopes
have tangents of their own, and both orders of differentiation share one table. What NumPy has and kernels have no
primitive for has its rule here, in the same form.

Method: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, chapters 2 and 3.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinote.ir import primitives as p
from tinote.ir.primitives import PRIMITIVES, Derivative, NoDerivative, Primitive, extremum, root_of_complement


class ScalarRule(NamedTuple):
    """An operation on numbers. `value`: of floats; `rule`: its derivative rule, None where it is piecewise constant;
    `squares`: of operands, whether the result is a square or a sum of squares of numbers.
    """

    name: str
    value: Callable[..., Any]
    rule: Derivative | None
    squares: Callable[..., bool] | None = None

    def of(self, *operands: Dual, value: float | None = None) -> Dual:
        """The result, with its tangent; its `value`, if that is known. What has no tangent contributes none, whatever
        its slope.
        """
        found = self.value(*[one.value for one in operands]) if value is None else value
        if self.rule is None or not any(one.varies for one in operands):
            return Dual(found)
        given = [one.constant for one in operands]
        parts = [
            self.adjoints(Dual(one.tangent), Dual(found), *given)[k].value
            for k, one in enumerate(operands)
            if one.varies
        ]
        return Dual(found, functools.reduce(operator.add, parts))

    def adjoints(self, adjoint: Dual, result: Dual, *operands: Dual) -> tuple[Dual, ...]:
        """The adjoints of the operands, by that of the result."""
        assert self.rule is not None
        return tuple([_ZERO if one is None else one for one in self.rule(_ARITHMETIC, adjoint, result, operands)])


class Dual:
    """A number with its derivative along one direction: value + tangent · ε, where ε² = 0. `dropped`: the tangent of a
    number that is taken without it.
    """

    __slots__ = ("dropped", "tangent", "value")

    def __init__(self, value: float, tangent: float = 0.0, dropped: float = 0.0) -> None:
        self.value = value
        self.tangent = tangent
        self.dropped = dropped

    @property
    def varies(self) -> bool:
        """Whether it may have a derivative."""
        return type(self.tangent) is not float or self.tangent != 0

    @property
    def constant(self) -> Dual:
        """The number without its tangent."""
        return type(self)(self.value, 0.0, self.tangent) if self.varies else ConstantDual(self.value)

    @property
    def is_zero(self) -> bool:
        """Whether it is certainly zero, and so is its derivative."""
        return type(self.value) is float and self.value == 0 and not self.varies

    def times(self, slope: Dual) -> Dual:
        """The product with a slope: what is zero contributes nothing, whatever the slope."""
        tangent = scaled(slope.value, self.tangent) if self.varies else 0.0
        if slope.varies:
            tangent = tangent + scaled(slope.tangent, self.value)
        return Dual(scaled(slope.value, self.value), tangent)

    def __add__(self, other: Dual) -> Dual:
        return RULES["add"].of(self, other)

    def __repr__(self) -> str:
        return f"{self.value} + {self.tangent}ε"


class ConstantDual(Dual):
    """A number treated as a constant, like a literal in a kernel."""

    __slots__ = ()


class SumOfSquares(Dual):
    """A number that was computed as t·t, or as a sum of such."""

    __slots__ = ()


_ZERO = ConstantDual(0.0)


class _DualArithmetic:
    """What the rules compute with (`primitive_record.Arithmetic`)."""

    def lit(self, value: float, like: Dual) -> Dual:
        return ConstantDual(value)

    def zero(self, like: Dual) -> Dual:
        return _ZERO

    def literal(self, a: Dual) -> float | None:
        for one in (a.dropped, a.value if type(a) is ConstantDual else 0.0):
            if type(one) is not float and (of_step := getattr(one, "as_literal", None)) is not None:
                of_step()
        return a.value if type(a) is ConstantDual and type(a.value) is float else None

    def add(self, a: Dual, b: Dual) -> Dual:
        return RULES["add"].of(a, b)

    def sub(self, a: Dual, b: Dual) -> Dual:
        return RULES["subtract"].of(a, b)

    def mul(self, a: Dual, b: Dual) -> Dual:
        return RULES["multiply"].of(a, b)

    def div(self, a: Dual, b: Dual) -> Dual:
        return RULES["true_divide"].of(a, b)  # a slope may be infinite where Python would raise

    def neg(self, a: Dual) -> Dual:
        return RULES["negative"].of(a)

    def of(self, prim: Primitive, *args: Dual) -> Dual:
        if prim not in _CONDITIONS:
            return _BY_PRIMITIVE[prim].of(*args)
        values = [a.value for a in args]
        of_step: Any = next((found for one in values if (found := getattr(one, "condition", None)) is not None), None)
        found = _CONDITIONS[prim](*values) if of_step is None else of_step(prim.name, _CONDITIONS[prim], values)
        return ConstantDual(found)

    def function(self, name: str, a: Dual) -> Dual:
        """A function by the name that NumPy has for it."""
        return RULES[name].of(a)

    def where(self, condition: Dual, a: Dual, b: Dual) -> Dual:
        select = getattr(condition.value, "select", None)
        if select is None:
            return a if condition.value else b
        return Dual(select(a.value, b.value), select(a.tangent, b.tangent) if a.varies or b.varies else 0.0)

    def strong_mul(self, g: Dual, slope: Dual) -> Dual:
        return g.times(slope)

    def times(self, y: Dual, g: Dual, slope: Dual, *, regular: bool = True) -> Dual:
        return g.times(slope)

    def is_square(self, y: Dual, g: Dual) -> bool:
        return False

    def is_sum_of_squares(self, a: Dual) -> bool:
        return isinstance(a, SumOfSquares)

    def is_positive(self, a: Dual) -> bool:
        return False


_ARITHMETIC = _DualArithmetic()
_Arithmetic = _DualArithmetic


def _by_numpy(function: Callable[..., Any]) -> Callable[..., float]:
    """NumPy's function, of floats: it gives an infinity or NaN where Python would raise. (Numbers of a step that is
    being captured know it themselves.)
    """

    def apply(*operands: float) -> float:
        with np.errstate(all="ignore"):
            found = function(*operands)
        return float(found) if isinstance(found, np.generic) else found

    return apply


def function_named(name: str) -> Callable[..., Any]:
    """What a program calls "numpy.sin", and "quiet.sin" where NumPy gives no warnings."""
    kind, _, numpy_name = name.partition(".")
    function = getattr(np, numpy_name)
    return _by_numpy(function) if kind == "quiet" else function  # type: ignore[no-any-return]


def scaled(slope: Any, amount: Any) -> Any:
    """The product of a slope and a derivative: nothing, whatever the slope, where the derivative is zero."""
    if type(amount) is not float and (of_step := getattr(amount, "scaling", None)) is not None:
        return of_step(slope)  # a traced number
    return slope * amount if amount else amount


def _scaled_rule(e: _Arithmetic, g: Dual, y: Dual, a: tuple[Dual, ...]) -> tuple[Any, ...]:
    slope, amount = a
    by_amount, by_slope = _STRONG_MUL(e, g, y, (amount, slope))
    return by_slope, by_amount


def _rule_of(prim: Primitive) -> Derivative:
    rule = prim.derivative
    assert not isinstance(rule, NoDerivative)
    return rule


_LOGARITHM, _ABSOLUTE, _DIVIDE, _STRONG_MUL = map(_rule_of, (p.log, p.absolute, p.div, p.strong_mul))


def _logarithm_to(base: float) -> Derivative:
    return lambda e, g, y, a: _LOGARITHM(e, e.mul(g, e.lit(1.0 / math.log(base), y)), y, a)


def _over(e: _Arithmetic, g: Dual, divisor: Dual) -> tuple[Dual]:
    return (e.strong_mul(g, e.div(e.lit(1.0, g), divisor)),)


def _square_less(e: _Arithmetic, a: Dual) -> Dual:
    """sqrt(a² - 1) where a is at least 1, else NaN."""
    one = e.lit(1.0, a)
    return e.mul(e.of(p.sqrt, e.sub(a, one)), e.of(p.sqrt, e.add(a, one)))


def _square_and_one(e: _Arithmetic, a: Dual) -> Dual:
    return e.add(e.mul(a, a), e.lit(1.0, a))


def _inverse_tanh(e: _Arithmetic, g: Dual, y: Dual, a: tuple[Dual, ...]) -> tuple[Dual]:
    root = root_of_complement(e, a[0])
    return _over(e, g, e.mul(root, root))


def _hypotenuse(e: _Arithmetic, g: Dual, y: Dual, a: tuple[Dual, ...]) -> tuple[Dual, ...]:
    origin = e.of(p.eq, y, e.lit(0.0, y))
    return tuple([e.where(origin, e.zero(g), e.strong_mul(g, e.div(one, y))) for one in a])


def _copy_sign(e: _Arithmetic, g: Dual, y: Dual, a: tuple[Dual, ...]) -> tuple[Any, ...]:
    signed = e.where(e.of(p.lt, y, e.lit(0.0, y)), e.neg(g), g)
    return (*_ABSOLUTE(e, signed, y, (a[0],)), None)


#: Operators of Python, by the names of the functions of NumPy that they are.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "absolute": abs,
}
#: Operations that kernels have as primitives, by the names that NumPy has for them.
_PRIMITIVES = {prim.numpy: prim for prim in PRIMITIVES.values() if prim.numpy}

#: Those that kernels compose of others, if they have them.
_OTHERS: dict[str, tuple[Callable[..., Any], Derivative | None]] = {
    "positive": (operator.pos, lambda e, g, y, a: (g,)),
    "square": (np.square, lambda e, g, y, a: (e.strong_mul(g, e.add(a[0], a[0])),)),
    "reciprocal": (np.reciprocal, lambda e, g, y, a: _DIVIDE(e, g, y, (e.lit(1.0, y), a[0]))[1:]),
    "cbrt": (np.cbrt, lambda e, g, y, a: _over(e, g, e.mul(e.lit(3.0, y), e.mul(y, y)))),
    "exp2": (np.exp2, lambda e, g, y, a: (e.strong_mul(g, e.mul(e.lit(math.log(2.0), y), y)),)),
    "expm1": (np.expm1, lambda e, g, y, a: (e.strong_mul(g, e.of(p.exp, a[0])),)),
    "log2": (np.log2, _logarithm_to(2.0)),
    "log10": (np.log10, _logarithm_to(10.0)),
    "log1p": (np.log1p, lambda e, g, y, a: _LOGARITHM(e, g, y, (e.add(a[0], e.lit(1.0, y)),))),
    "arctan": (np.arctan, lambda e, g, y, a: _over(e, g, _square_and_one(e, a[0]))),
    "sinh": (np.sinh, lambda e, g, y, a: (e.strong_mul(g, e.function("cosh", a[0])),)),
    "cosh": (np.cosh, lambda e, g, y, a: (e.strong_mul(g, e.function("sinh", a[0])),)),
    "arcsinh": (np.arcsinh, lambda e, g, y, a: _over(e, g, e.of(p.sqrt, _square_and_one(e, a[0])))),
    "arccosh": (np.arccosh, lambda e, g, y, a: _over(e, g, _square_less(e, a[0]))),
    "arctanh": (np.arctanh, _inverse_tanh),
    "radians": (np.radians, lambda e, g, y, a: (e.mul(g, e.lit(math.pi / 180.0, y)),)),
    "degrees": (np.degrees, lambda e, g, y, a: (e.mul(g, e.lit(180.0 / math.pi, y)),)),
    "hypot": (np.hypot, _hypotenuse),
    # A NaN wins.
    "maximum": (np.maximum, lambda e, g, y, a: extremum(e, g, p.gt, *a, loses=a[0])),
    "minimum": (np.minimum, lambda e, g, y, a: extremum(e, g, p.lt, *a, loses=a[0])),
    "copysign": (np.copysign, _copy_sign),
    "sign": (np.sign, None),
    "trunc": (np.trunc, None),
}

#: What rules ask of numbers.
_CONDITIONS: dict[Primitive, Callable[..., bool]] = {
    p.lt: operator.lt,
    p.gt: operator.gt,
    p.eq: operator.eq,
    p.or_: operator.or_,
    p.isnan: lambda a: a != a,
}

#: Which numbers are squares and sums of such: of the operands themselves.
_SQUARES: dict[str, Callable[..., bool]] = {
    "add": lambda a, b: _is_sum_of_squares(a) and _is_sum_of_squares(b),
    "multiply": operator.is_,
    "square": lambda a: True,
    "float_power": lambda a, b: type(b) in (int, float) and b == 2,
}


def _is_sum_of_squares(operand: Any) -> bool:
    return getattr(operand, "is_sum_of_squares", False) or (type(operand) in (int, float) and operand == 0)


def _scalar_rule(name: str, value: Callable[..., Any], rule: Derivative | None) -> ScalarRule:
    return ScalarRule(name, _by_numpy(value) if isinstance(value, np.ufunc) else value, rule, _SQUARES.get(name))


def _primitive_rule(name: str, prim: Primitive) -> ScalarRule:
    rule = None if isinstance(prim.derivative, NoDerivative) else prim.derivative
    return _scalar_rule(name, _OPERATORS.get(name) or getattr(np, name), rule)


#: `scaled`, as an operation.
SCALE = ScalarRule("scale", scaled, _scaled_rule)

#: By the names that NumPy has for them.
RULES: dict[str, ScalarRule] = {
    **{name: _primitive_rule(name, prim) for name, prim in _PRIMITIVES.items()},
    **{name: _scalar_rule(name, *row) for name, row in _OTHERS.items()},
}
_BY_PRIMITIVE = {prim: RULES[name] for name, prim in _PRIMITIVES.items()}
RULES.update(
    power=RULES["float_power"],
    divide=RULES["true_divide"],
    fabs=RULES["absolute"],
    deg2rad=RULES["radians"],
    rad2deg=RULES["degrees"],
    conjugate=RULES["positive"],
)
