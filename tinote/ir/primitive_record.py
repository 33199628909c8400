"""The record of a primitive: its types, meaning and derivative, and the facts that passes, back ends, numbers in Python
and tests use.

A back end adds its code in a table of its own, which `primitives.require_all` refuses while a primitive is missing in
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from tinote.ir.types import Scalar, Type, f32, i32

T = TypeVar("T")

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


#: Of the arithmetic, the adjoint of the result, the result, and the operands: the adjoints of the operands.
Derivative = Callable[[Any, Any, Any, tuple[Any, ...]], Sequence[Any]]


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


class Primitive:
    """A primitive of the IR.

    `arity` None: any number. `rule` None: the result type is given where the operation is built.
    `evaluate(type, *values)`: the result of `type` for scalar operands. `elementwise`: maps over tensors and lanes,
    scalars broadcast. `cost`: rough time on a CPU, in additions. `ulps`: how far machine code may be from the exact
    result, in units of the last place; what has 0 is rounded once, as IEEE says. `domain`: where it is defined; NaN
    elsewhere. `lanes`: whether it has machine code on vectors, always or with fast maths, or else calls the C library
    number by number. `numpy`: the name of NumPy's function that computes it.
    """

    __slots__ = (
        "arity", "commutative", "cost", "derivative", "domain", "elementwise", "evaluate", "lanes", "name", "numpy",
        "rule", "ulps",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        arity: int | None,
        rule: Rule | None,
        evaluate: Evaluate,
        derivative: Derivative | NoDerivative,
        *,
        commutative: bool = False,
        elementwise: bool = True,
        cost: float = 1,
        ulps: float = 0,
        domain: tuple[float, float] = (-math.inf, math.inf),
        lanes: Literal["always", "fast", "never"] = "always",
        numpy: str | None = None,
    ) -> None:
        self.name = name
        self.arity = arity
        self.rule = rule
        self.evaluate: Callable[..., Number] = evaluate
        self.derivative = derivative
        self.commutative = commutative
        self.elementwise = elementwise
        self.cost = cost
        self.ulps = ulps
        self.domain = domain
        self.lanes = lanes
        self.numpy = numpy

    def __repr__(self) -> str:
        return self.name
