"""Arithmetic, comparisons of two values, truth and choice; conversions between types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir import primitives as p
from tinote.ir.types import scalar_named
from tinote.lang.data.matrix import cast_numbers, numpy_type
from tinote.lang.data.traced import extreme, holds_traced, plain, traced_array
from tinote.lang.maths.builtin import expanded, primitive
from tinote.lang.session.state import scalar_type, session

__all__ = [
    "abs",
    "add",
    "all",
    "any",
    "bit_cast",
    "cast",
    "ceil",
    "div",
    "floor",
    "floordiv",
    "logical_and",
    "logical_not",
    "logical_or",
    "max",
    "min",
    "mod",
    "mul",
    "neg",
    "one",
    "raw_div",
    "raw_mod",
    "round",
    "select",
    "sign",
    "sub",
    "sum",
    "zero",
]


@primitive(p.add)
def add(a: Any, b: Any) -> Any:
    """a + b, component by component."""
    return np.add(a, b)


@primitive(p.sub)
def sub(a: Any, b: Any) -> Any:
    """a - b, component by component."""
    return np.subtract(a, b)


@primitive(p.mul)
def mul(a: Any, b: Any) -> Any:
    """a · b, component by component."""
    return np.multiply(a, b)


@primitive(p.div)
def div(a: Any, b: Any) -> Any:
    """a / b as floats; division by zero gives an infinity or NaN."""
    return np.true_divide(a, b)


@primitive(p.floordiv)
def floordiv(a: Any, b: Any) -> Any:
    """a // b, rounded down; an integer divided by zero is an error with its line."""
    return np.floor_divide(a, b)


@primitive(p.mod)
def mod(a: Any, b: Any) -> Any:
    """a % b with the sign of b, as in Python; an integer modulo zero is an error with its line."""
    return np.mod(a, b)


@primitive(p.raw_div)
def raw_div(a: Any, b: Any) -> Any:
    """a / b as in C: the quotient of integers is rounded towards zero."""
    if np.asarray(plain(a)).dtype.kind == "f" or np.asarray(plain(b)).dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.abs(a) // np.abs(b)
    return np.where((np.asarray(a) < 0) == (np.asarray(b) < 0), quotient, -quotient)[()]


@primitive(p.raw_mod)
def raw_mod(a: Any, b: Any) -> Any:
    """The remainder of a / b as in C, with the sign of a."""
    return np.fmod(a, b)


@primitive(p.neg)
def neg(a: Any) -> Any:
    """The negative of a, component by component."""
    return np.negative(a)


@primitive(p.absolute, abs)
def abs(x: Any) -> Any:
    """The absolute value of x; its derivative at 0 is 0."""
    return np.abs(x)


@expanded()
def sign(x: Any) -> Any:
    """The sign of x: -1, 0 or 1; its derivative is 0."""
    return np.sign(plain(x))


def _whole(f: Callable[[Any], Any], x: Any, dtype: Any) -> Any:
    x = plain(x)
    found = x if np.asarray(x).dtype.kind in "iu" else f(x)
    return found if dtype is None else cast_numbers(found, scalar_type(dtype))


@expanded()
def floor(x: Any, dtype: Any = None) -> Any:
    """The greatest integer that is not above x, as a float or a `dtype`; its derivative is 0."""
    return _whole(np.floor, x, dtype)


@expanded()
def ceil(x: Any, dtype: Any = None) -> Any:
    """The least integer that is not below x, as a float or a `dtype`; its derivative is 0."""
    return _whole(np.ceil, x, dtype)


@expanded(round)
def round(x: Any, dtype: Any = None) -> Any:
    """The integer nearest to x, halves to the even one, as a float or a `dtype`; its derivative is 0."""
    return _whole(np.round, x, dtype)


@expanded(min)
def min(*items: Any) -> Any:
    """The smallest of several values, component by component; of one vector, its smallest component. A NaN is left
    out, as by `fmin`; of equal ones the last has the derivative.
    """
    return extreme(np.fmin, items)


@expanded(max)
def max(*items: Any) -> Any:
    """The largest of several values, component by component; of one vector, its largest component. A NaN is left out,
    as by `fmax`; of equal ones the last has the derivative.
    """
    return extreme(np.fmax, items)


@expanded(sum)
def sum(items: Any, start: Any = 0) -> Any:
    """The sum of `start` and the components of a vector or matrix, or the `items` of a sequence known at compile
    time.
    """
    return np.sum(items) + start


@expanded(any)
def any(items: Any) -> Any:
    """Whether any component is not zero, as a truth value."""
    return np.any(items)


@expanded(all)
def all(items: Any) -> Any:
    """Whether no component is zero, as a truth value."""
    return np.all(items)


@primitive(p.logical_not)
def logical_not(a: Any) -> Any:
    """Whether a value is zero, component by component."""
    return np.logical_not(a)


@expanded()
def logical_and(a: Any, b: Any) -> Any:
    """Whether neither a nor b is zero; both are computed."""
    return np.logical_and(a, b)


@expanded()
def logical_or(a: Any, b: Any) -> Any:
    """Whether a or b is not zero; both are computed."""
    return np.logical_or(a, b)


@expanded()
def select(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition is not zero, y elsewhere, component by component; both are computed."""
    if holds_traced([x, y]):
        return np.where(plain(condition), traced_array(x), traced_array(y))[()]
    return np.where(plain(condition), x, y)


@expanded()
def cast(x: Any, dtype: Any) -> Any:
    """x as another type of numbers, `dtype`; floats that become integers lose their fraction, and stop at the ends of
    the range.
    """
    return cast_numbers(x, scalar_type(dtype))


@expanded()
def bit_cast(x: Any, dtype: Any) -> Any:
    """The bits of x as a number of another type of the same size, `dtype`. Raises `FieldError` where sizes differ."""
    t = scalar_type(dtype)
    values = np.asarray(plain(x))
    if not isinstance(x, np.ndarray | np.generic):
        default = session.config.default_fp if values.dtype.kind == "f" else session.config.default_ip
        values = values.astype(numpy_type(scalar_named(default)))
    if values.itemsize != t.size:
        raise FieldError(f"bit_cast needs types of the same width, not {values.dtype} and {t}")
    return values.view(numpy_type(t))[()]


def _like(x: Any, number: int) -> Any:
    x = plain(x)
    return np.full_like(x, number) if np.ndim(x) else type(x)(number)


@expanded()
def zero(x: Any) -> Any:
    """Zeros of the type and shape of x."""
    return _like(x, 0)


@expanded()
def one(x: Any) -> Any:
    """Ones of the type and shape of x."""
    return _like(x, 1)
