"""Python numbers that are differentiated: arguments of a function, what its kernels return, and arithmetic on them.

    def f(a):
        return 0.5 * energy(a) ** 2       # `energy` is a kernel; its result and the square are `Variable`s

A `Variable` behaves as a number in arithmetic and comparisons. Whatever would take its value and lose the dependence
(`float(a)`, `math.sin(a)`, storing it in a field) raises a `DifferentiationError`: `a.value` says that a constant is
meant. Values carry a tangent (`Dual`), which is zero but in forward mode and second order; the derivatives of the
arithmetic are computed with them, so that both orders share one table.

Method: reverse accumulation over a list of operations; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008,
chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinote.errors import DifferentiationError
from tinote.source import caller

__all__ = ["Dual", "Variable", "Variables"]


class Dual:
    """A number with its derivative along one direction: value + tangent · ε, where ε² = 0."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: float, tangent: float = 0.0) -> None:
        self.value = value
        self.tangent = tangent

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.value * other.tangent + self.tangent * other.value)

    def __truediv__(self, other: Dual) -> Dual:
        quotient = self.value / other.value
        return Dual(quotient, (self.tangent - quotient * other.tangent) / other.value)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def power(self, exponent: float) -> Dual:
        """To a constant power."""
        slope = exponent * self.value ** (exponent - 1) if exponent else 0.0
        return Dual(self.value**exponent, slope * self.tangent)

    def exp(self) -> Dual:
        value = math.exp(self.value)
        return Dual(value, value * self.tangent)

    def log(self) -> Dual:
        return Dual(math.log(self.value), self.tangent / self.value)


_ONE = Dual(1.0)
_MINUS_ONE = Dual(-1.0)


class Variable:
    """A number that is differentiated. `born`: how many launches there were before it; `parents`: the variables that
    it was computed from, each with the derivative.
    """

    __slots__ = ("_dual", "_list", "born", "index", "parents")
    __array_ufunc__ = None  # an array leaves arithmetic with it to us

    def __init__(
        self, variables: Variables, dual: Dual, born: int, parents: tuple[tuple[Variable, Dual], ...] = ()
    ) -> None:
        self._list = variables
        self._dual = dual
        self.born = born
        self.parents = parents
        self.index = variables.add(self)

    @property
    def value(self) -> float:
        """The number, as a constant."""
        return self._dual.value

    @property
    def tangent(self) -> float:
        """Its derivative along the direction of forward mode."""
        return self._dual.tangent

    def along(self, tangent: float) -> None:
        """Give an argument its derivative along the direction, before anything is computed with it."""
        self._dual = Dual(self.value, tangent)

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a + b, _ONE, _ONE))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a - b, _ONE, _MINUS_ONE))

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (b - a, _MINUS_ONE, _ONE))

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: (a * b, b, a))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, _quotient)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _swapped(_quotient(b, a)))

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, Variable):
            return self._with(other, _power)
        if isinstance(other, bool | int | float):
            value = self._dual
            slope = Dual(float(other)) * value.power(other - 1) if other else Dual(0.0)
            return self._computed(value.power(other), (self, slope))
        return NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: _swapped(_power(b, a)))

    def __neg__(self) -> Variable:
        return self._computed(-self._dual, (self, _MINUS_ONE))

    def __pos__(self) -> Variable:
        return self

    def __abs__(self) -> Variable:
        return -self if self.value < 0 else self

    def _with(self, other: Any, rule: Callable[[Dual, Dual], tuple[Dual, Dual, Dual]]) -> Any:
        """Apply an operation: `rule` gives the result and its derivatives by both operands."""
        if isinstance(other, Variable):
            value, mine, its = rule(self._dual, other._dual)
            return self._computed(value, (self, mine), (other, its))
        if not _is_number(other):
            return NotImplemented
        value, mine, _ = rule(self._dual, Dual(float(other)))
        return self._computed(value, (self, mine))

    def _computed(self, value: Dual, *parents: tuple[Variable, Dual]) -> Variable:
        return Variable(self._list, value, self._list.launches, parents)

    # ---- what depends on it in steps

    def __eq__(self, other: object) -> bool:
        return self.value == _plain(other)

    def __lt__(self, other: Any) -> bool:
        return self.value < _plain(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= _plain(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > _plain(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= _plain(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __int__(self) -> int:
        return int(self.value)

    # ---- where the dependence would be lost

    def __float__(self) -> float:
        if self._list.open:
            raise DifferentiationError(
                "a number that is differentiated is used where it would become a constant",
                caller(),
                hint="compute with it in a kernel or by arithmetic; write `a.value` where a constant is meant",
            )
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __repr__(self) -> str:
        return repr(self.value)


class Variables:
    """The variables of one run, in the order in which they came to be, and in the reverse sweep their adjoints.
    `launches` is kept up to date by whoever records.
    """

    def __init__(self) -> None:
        self.open = True
        self.launches = 0
        self._all: list[Variable] = []
        self._adjoints: list[Dual] = []
        self._next = 0

    def add(self, variable: Variable) -> int:
        self._all.append(variable)
        return len(self._all) - 1

    def new(self, value: float, tangent: float = 0.0, *, after: int = 0) -> Variable:
        """A variable that Python did not compute: an argument, or the result of launch number `after`."""
        return Variable(self, Dual(value, tangent), after)

    def begin(self) -> None:
        """Start a reverse sweep: all adjoints are zero."""
        self._adjoints = [Dual(0.0)] * len(self._all)
        self._next = len(self._all)

    def accumulate(self, variable: Variable, adjoint: Dual) -> None:
        self._adjoints[variable.index] += adjoint

    def adjoint(self, variable: Variable) -> Dual:
        return self._adjoints[variable.index]

    def unwind(self, launch: int) -> None:
        """Go back over the arithmetic after launch number `launch`."""
        while self._next and self._all[self._next - 1].born >= launch:
            self._next -= 1
            variable = self._all[self._next]
            adjoint = self._adjoints[self._next]
            for parent, slope in variable.parents:
                self.accumulate(parent, adjoint * slope)


def _quotient(a: Dual, b: Dual) -> tuple[Dual, Dual, Dual]:
    value = a / b
    return value, _ONE / b, -value / b


def _power(a: Dual, b: Dual) -> tuple[Dual, Dual, Dual]:
    if a.value <= 0:
        raise DifferentiationError("a power with an exponent that is differentiated needs a positive base", caller())
    logarithm = a.log()
    value = (b * logarithm).exp()
    return value, b * value / a, value * logarithm


def _swapped(found: tuple[Dual, Dual, Dual]) -> tuple[Dual, Dual, Dual]:
    return found[0], found[2], found[1]


def _plain(other: Any) -> Any:
    return other.value if isinstance(other, Variable) else other


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | int | float):
        return True
    return getattr(value, "shape", None) == () and getattr(value, "dtype", None) is not None  # NumPy's
