"""Numbers with a derivative along one direction, and the derivatives of the operations that Python has for numbers.

There is one table, `RULES`: each operation with its value, a function of floats, and its slopes by the operands in
terms of `Dual` arithmetic. So the slopes have tangents of their own, and both orders of differentiation share it.

Method: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, chapters 2 and 3.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class ScalarRule(NamedTuple):
    """An operation on numbers. `value`: of floats; `slopes`: of the result and the operands, as `Dual`s; None where the
    operation is constant in steps.
    """

    name: str
    value: Callable[..., Any]
    slopes: Callable[..., tuple[Dual, ...]] | None

    def of(self, *operands: Dual, value: float | None = None) -> Dual:
        """The result, with its tangent; its `value`, if that is known. What has no tangent contributes none, whatever
        its slope.
        """
        found = self.value(*[one.value for one in operands]) if value is None else value
        if self.slopes is None or not any(one.varies for one in operands):
            return Dual(found)
        slopes = self.slopes(Dual(found), *[Dual(one.value) if one.varies else Constant(one.value) for one in operands])
        pairs = zip(slopes, operands, strict=True)
        parts = [scaled(slope.value, one.tangent) for slope, one in pairs if one.varies]
        return Dual(found, functools.reduce(operator.add, parts))


class Dual:
    """A number with its derivative along one direction: value + tangent · ε, where ε² = 0."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: float, tangent: float = 0.0) -> None:
        self.value = value
        self.tangent = tangent

    @property
    def varies(self) -> bool:
        """Whether it may have a derivative."""
        return type(self.tangent) is not float or self.tangent != 0

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

    def __add__(self, other: Dual | float) -> Dual:
        return RULES["add"].of(self, _dual(other))

    def __sub__(self, other: Dual | float) -> Dual:
        return RULES["subtract"].of(self, _dual(other))

    def __rsub__(self, other: float) -> Dual:
        return RULES["subtract"].of(_dual(other), self)

    def __mul__(self, other: Dual | float) -> Dual:
        return RULES["multiply"].of(self, _dual(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Dual | float) -> Dual:
        # Slopes may be infinite where Python would raise.
        return RULES["true_divide"].of(self, _dual(other))

    def __rtruediv__(self, other: float) -> Dual:
        return RULES["true_divide"].of(_dual(other), self)

    def __neg__(self) -> Dual:
        return RULES["negative"].of(self)

    def function(self, name: str) -> Dual:
        """A function of one operand, by its name in the table."""
        return RULES[name].of(self)

    def power(self, exponent: Dual | float) -> Dual:
        """To a power."""
        return RULES["float_power"].of(self, _dual(exponent))

    def __repr__(self) -> str:
        return f"{self.value} + {self.tangent}ε"


class Constant(Dual):
    """A number that nobody asks a derivative by."""

    __slots__ = ()


def _dual(value: Dual | float) -> Dual:
    return value if isinstance(value, Dual) else Dual(value)


_ONE, _MINUS_ONE, _ZERO = Dual(1.0), Dual(-1.0), Dual(0.0)


def _by_numpy(function: Callable[..., Any]) -> Callable[..., float]:
    """NumPy's function, of floats: it gives an infinity or NaN where Python would raise. (Numbers of a step that is
    being captured know it themselves.)
    """

    def apply(*operands: float) -> float:
        with np.errstate(all="ignore"):
            found = function(*operands)
        return float(found) if isinstance(found, np.generic) else found

    return apply


def scaled(slope: Any, amount: Any) -> Any:
    """The product of a slope and a derivative: nothing, whatever the slope, where the derivative is zero."""
    if type(amount) is not float and (of_step := getattr(amount, "scaling", None)) is not None:
        return of_step(slope)  # a number of a step that is being captured
    return slope * amount if amount else amount


def _by_power(y: Dual, a: Dual, b: Dual) -> tuple[Dual, Dual]:
    by_base = b * a.power(b - 1.0) if b.varies or b.value else _ZERO
    if isinstance(b, Constant):
        return by_base, _ZERO
    # Where the base is not positive, the power is not a function of real exponents, and its slope there is NaN; that of
    # zero is zero.
    by_exponent = y * a.function("log") if a.value else _ZERO
    return by_base, by_exponent


def _by_remainder(y: Dual, a: Dual, b: Dual) -> tuple[Dual, Dual]:
    return _ONE, Dual(-_by_numpy(np.floor)(_by_numpy(np.divide)(a.value, b.value)))


def _by_fmod(y: Dual, a: Dual, b: Dual) -> tuple[Dual, Dual]:
    return _ONE, Dual(-_by_numpy(np.trunc)(_by_numpy(np.divide)(a.value, b.value)))


def _by_angle(y: Dual, a: Dual, b: Dual) -> tuple[Dual, Dual]:
    square = a * a + b * b
    return b / square, -a / square


def _chosen(y: Dual, a: Dual, b: Dual) -> tuple[Dual, Dual]:
    """Of two operands that are equal, the first has the slope."""
    first = a.value == y.value or (a.value != a.value and y.value != y.value)
    return (_ONE, _ZERO) if first else (_ZERO, _ONE)


def _sign(x: float) -> Dual:
    return Dual(float(np.sign(x)))


_UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Dual, Dual], Dual] | None]] = {
    "negative": (operator.neg, lambda y, x: _MINUS_ONE),
    "positive": (operator.pos, lambda y, x: _ONE),
    "absolute": (abs, lambda y, x: _sign(x.value)),
    "sqrt": (np.sqrt, lambda y, x: 0.5 / x.function("sqrt")),
    "cbrt": (np.cbrt, lambda y, x: 1.0 / (3.0 * x.function("cbrt") * x.function("cbrt"))),
    "square": (np.square, lambda y, x: 2.0 * x),
    "reciprocal": (np.reciprocal, lambda y, x: -1.0 / (x * x)),
    "exp": (np.exp, lambda y, x: x.function("exp")),
    "exp2": (np.exp2, lambda y, x: float(np.log(2.0)) * x.function("exp2")),
    "expm1": (np.expm1, lambda y, x: x.function("exp")),
    "log": (np.log, lambda y, x: 1.0 / x),
    "log2": (np.log2, lambda y, x: float(1.0 / np.log(2.0)) / x),
    "log10": (np.log10, lambda y, x: float(1.0 / np.log(10.0)) / x),
    "log1p": (np.log1p, lambda y, x: 1.0 / (x + 1.0)),
    "sin": (np.sin, lambda y, x: x.function("cos")),
    "cos": (np.cos, lambda y, x: -x.function("sin")),
    "tan": (np.tan, lambda y, x: x.function("tan") * x.function("tan") + 1.0),
    "arcsin": (np.arcsin, lambda y, x: 1.0 / (1.0 - x * x).function("sqrt")),
    "arccos": (np.arccos, lambda y, x: -1.0 / (1.0 - x * x).function("sqrt")),
    "arctan": (np.arctan, lambda y, x: 1.0 / (x * x + 1.0)),
    "sinh": (np.sinh, lambda y, x: x.function("cosh")),
    "cosh": (np.cosh, lambda y, x: x.function("sinh")),
    "tanh": (np.tanh, lambda y, x: 1.0 - x.function("tanh") * x.function("tanh")),
    "arcsinh": (np.arcsinh, lambda y, x: 1.0 / (x * x + 1.0).function("sqrt")),
    "arccosh": (np.arccosh, lambda y, x: 1.0 / (x * x - 1.0).function("sqrt")),
    "arctanh": (np.arctanh, lambda y, x: 1.0 / (1.0 - x * x)),
    "radians": (np.radians, lambda y, x: Dual(float(np.pi / 180.0))),
    "degrees": (np.degrees, lambda y, x: Dual(float(180.0 / np.pi))),
    "sign": (np.sign, None),
    "floor": (np.floor, None),
    "ceil": (np.ceil, None),
    "rint": (np.rint, None),
    "trunc": (np.trunc, None),
}

_BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Dual, Dual, Dual], tuple[Dual, Dual]] | None]] = {
    "add": (operator.add, lambda y, a, b: (_ONE, _ONE)),
    "subtract": (operator.sub, lambda y, a, b: (_ONE, _MINUS_ONE)),
    "multiply": (operator.mul, lambda y, a, b: (b, a)),
    "true_divide": (np.divide, lambda y, a, b: (1.0 / b, -a / (b * b))),
    "float_power": (np.float_power, _by_power),
    "remainder": (np.remainder, _by_remainder),
    "fmod": (np.fmod, _by_fmod),
    "floor_divide": (np.floor_divide, None),
    "arctan2": (np.arctan2, _by_angle),
    "hypot": (np.hypot, lambda y, a, b: (a / _length(a, b), b / _length(a, b))),
    "maximum": (np.maximum, _chosen),
    "minimum": (np.minimum, _chosen),
    "fmax": (np.fmax, _chosen),
    "fmin": (np.fmin, _chosen),
    "copysign": (np.copysign, lambda y, a, b: (_sign(a.value) * _sign(y.value), _ZERO)),
}


def _length(a: Dual, b: Dual) -> Dual:
    return RULES["hypot"].of(a, b)


def _unary(name: str, value: Callable[[Any], Any], slope: Callable[[Dual, Dual], Dual] | None) -> ScalarRule:
    compute = _by_numpy(value) if isinstance(value, np.ufunc) else value
    return ScalarRule(name, compute, None if slope is None else lambda y, x: (slope(y, x),))


def _binary(
    name: str, value: Callable[[Any, Any], Any], slopes: Callable[[Dual, Dual, Dual], tuple[Dual, Dual]] | None
) -> ScalarRule:
    return ScalarRule(name, _by_numpy(value) if isinstance(value, np.ufunc) else value, slopes)


#: `scaled`, as an operation on constants.
SCALE = ScalarRule("scale", scaled, None)

#: By the names that NumPy has for them.
RULES: dict[str, ScalarRule] = {
    **{name: _unary(name, *rule) for name, rule in _UNARY.items()},
    **{name: _binary(name, *rule) for name, rule in _BINARY.items()},
}
RULES.update(
    power=RULES["float_power"],
    divide=RULES["true_divide"],
    fabs=RULES["absolute"],
    deg2rad=RULES["radians"],
    rad2deg=RULES["degrees"],
    conjugate=RULES["positive"],
)
