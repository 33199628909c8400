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
    """a + b, component by component.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.add(ti.Vector([1, 2]), 3)
    Vector([4, 5])
    """
    return np.add(a, b)


@primitive(p.sub)
def sub(a: Any, b: Any) -> Any:
    """a - b, component by component.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.sub(5, 3)
    2
    """
    return np.subtract(a, b)


@primitive(p.mul)
def mul(a: Any, b: Any) -> Any:
    """a · b, component by component.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.mul(ti.Vector([1.0, 2.0]), 3.0)
    Vector([3.0, 6.0])
    """
    return np.multiply(a, b)


@primitive(p.div)
def div(a: Any, b: Any) -> Any:
    """a / b as floats; division by zero gives an infinity or NaN.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Floats.

    Examples
    --------
    >>> ti.div(7, 2)
    3.5
    """
    return np.true_divide(a, b)


@primitive(p.floordiv)
def floordiv(a: Any, b: Any) -> Any:
    """a // b, rounded down; an integer divided by zero is an error with its line.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.floordiv(-7, 2)
    -4
    """
    return np.floor_divide(a, b)


@primitive(p.mod)
def mod(a: Any, b: Any) -> Any:
    """a % b with the sign of b, as in Python; an integer modulo zero is an error with its line.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.mod(-7, 3)
    2
    """
    return np.mod(a, b)


@primitive(p.raw_div)
def raw_div(a: Any, b: Any) -> Any:
    """a / b as in C: the quotient of integers is rounded towards zero.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.raw_div(-7, 2)
    -3
    """
    if np.asarray(plain(a)).dtype.kind == "f" or np.asarray(plain(b)).dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.abs(a) // np.abs(b)
    return np.where((np.asarray(a) < 0) == (np.asarray(b) < 0), quotient, -quotient)[()]


@primitive(p.raw_mod)
def raw_mod(a: Any, b: Any) -> Any:
    """The remainder of a / b as in C, with the sign of a.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.raw_mod(-7, 3)
    -1
    """
    return np.fmod(a, b)


@primitive(p.neg)
def neg(a: Any) -> Any:
    """The negative of a, component by component.

    Parameters
    ----------
    a : number, vector or matrix
        The operand.

    Returns
    -------
    number, vector or matrix
        Of the type and shape of `a`.

    Examples
    --------
    >>> ti.neg(ti.Vector([1, -2]))
    Vector([-1, 2])
    """
    return np.negative(a)


@primitive(p.absolute, abs)
def abs(x: Any) -> Any:
    """The absolute value of x; its derivative at 0 is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.abs(-2.5)
    2.5
    """
    return np.abs(x)


@expanded()
def sign(x: Any) -> Any:
    """The sign of x: -1, 0 or 1; its derivative is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.sign(-3.0)
    -1.0
    """
    return np.sign(plain(x))


def _whole(f: Callable[[Any], Any], x: Any, dtype: Any) -> Any:
    x = plain(x)
    found = x if np.asarray(x).dtype.kind in "iu" else f(x)
    return found if dtype is None else cast_numbers(found, scalar_type(dtype))


@expanded()
def floor(x: Any, dtype: Any = None) -> Any:
    """The greatest integer that is not above x, as a float or a `dtype`; its derivative is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.
    dtype : number type, optional
        The type of the result; that of `x` if left out.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.floor(-2.1)
    -3.0
    """
    return _whole(np.floor, x, dtype)


@expanded()
def ceil(x: Any, dtype: Any = None) -> Any:
    """The least integer that is not below x, as a float or a `dtype`; its derivative is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.
    dtype : number type, optional
        The type of the result; that of `x` if left out.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.ceil(2.1)
    3.0
    >>> ti.ceil(2.1, ti.i32)
    3
    """
    return _whole(np.ceil, x, dtype)


@expanded(round)
def round(x: Any, dtype: Any = None) -> Any:
    """The integer nearest to x, halves to the even one, as a float or a `dtype`; its derivative is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.
    dtype : number type, optional
        The type of the result; that of `x` if left out.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.round(2.5), ti.round(3.5)
    (2.0, 4.0)
    """
    return _whole(np.round, x, dtype)


@expanded(min)
def min(*items: Any) -> Any:
    """The smallest of several values, component by component; of one vector, its smallest component.

    NaN is ignored, as by `fmin`; of equal values the last one has the derivative.

    Parameters
    ----------
    *items : number, vector or matrix
        Two or more values, or one vector.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape; of one vector, a number.

    Examples
    --------
    >>> ti.min(1.0, 3.0, 2.0)
    1.0
    >>> ti.min(ti.Vector([1, 5]), 3)
    Vector([1, 3])
    """
    return extreme(np.fmin, items)


@expanded(max)
def max(*items: Any) -> Any:
    """The largest of several values, component by component; of one vector, its largest component.

    NaN is ignored, as by `fmax`; of equal values the last one has the derivative.

    Parameters
    ----------
    *items : number, vector or matrix
        Two or more values, or one vector.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape; of one vector, a number.

    Examples
    --------
    >>> ti.max(1.0, 3.0, 2.0)
    3.0
    >>> ti.max(ti.Vector([1, 5]), 3)
    Vector([3, 5])
    """
    return extreme(np.fmax, items)


@expanded(sum)
def sum(items: Any, start: Any = 0) -> Any:
    """The sum of `start` and the components of a vector or matrix, or the `items` of a sequence known at compile time.

    Parameters
    ----------
    items : vector, matrix or sequence
        What is added up; the length of a sequence is known at compile time.
    start : number, default 0
        What the sum begins with.

    Returns
    -------
    number
        The sum.

    Examples
    --------
    >>> ti.sum(ti.Vector([1, 2, 3]))
    6
    """
    return np.sum(items) + start


@expanded(any)
def any(items: Any) -> Any:
    """Whether any component is not zero, as a truth value.

    Parameters
    ----------
    items : vector or matrix
        The components.

    Returns
    -------
    truth value
        True if at least one component differs from zero.

    Examples
    --------
    >>> ti.any(ti.Vector([1, 0, 2]))
    True
    """
    return np.any(items)


@expanded(all)
def all(items: Any) -> Any:
    """Whether no component is zero, as a truth value.

    Parameters
    ----------
    items : vector or matrix
        The components.

    Returns
    -------
    truth value
        True if every component differs from zero.

    Examples
    --------
    >>> ti.all(ti.Vector([1, 0, 2]))
    False
    """
    return np.all(items)


@primitive(p.logical_not)
def logical_not(a: Any) -> Any:
    """Whether a value is zero, component by component.

    Parameters
    ----------
    a : number, vector or matrix
        The operand.

    Returns
    -------
    truth value, or vector or matrix of them
        Component by component.

    Examples
    --------
    >>> ti.logical_not(0)
    True
    """
    return np.logical_not(a)


@expanded()
def logical_and(a: Any, b: Any) -> Any:
    """Whether neither a nor b is zero; both are computed.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    truth value, or vector or matrix of them
        Component by component.

    Examples
    --------
    >>> ti.logical_and(1, 0)
    False
    """
    return np.logical_and(a, b)


@expanded()
def logical_or(a: Any, b: Any) -> Any:
    """Whether a or b is not zero; both are computed.

    Parameters
    ----------
    a, b : number, vector or matrix
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    truth value, or vector or matrix of them
        Component by component.

    Examples
    --------
    >>> ti.logical_or(1, 0)
    True
    """
    return np.logical_or(a, b)


@expanded()
def select(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition is not zero, y elsewhere, component by component; both are computed.

    Parameters
    ----------
    condition : number, vector or matrix
        What decides, component by component.
    x, y : number, vector or matrix
        The values to choose from; both are computed.

    Returns
    -------
    number, vector or matrix
        Of the common type and shape of `x` and `y`.

    Examples
    --------
    >>> ti.select(ti.Vector([1, 0]), 10, 20)
    Vector([10, 20])
    """
    if holds_traced([x, y]):
        return np.where(plain(condition), traced_array(x), traced_array(y))[()]
    return np.where(plain(condition), x, y)


@expanded()
def cast(x: Any, dtype: Any) -> Any:
    """x as another type of numbers, `dtype`.

    Floats that become integers lose their fraction, and stop at the ends of the range.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.
    dtype : number type
        The type of the result.

    Returns
    -------
    number, vector or matrix
        Of type `dtype` and the shape of `x`.

    Examples
    --------
    >>> ti.cast(2.7, ti.i32)
    2
    """
    return cast_numbers(x, scalar_type(dtype))


@expanded()
def bit_cast(x: Any, dtype: Any) -> Any:
    """The bits of a number as a number of another type.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers whose bits are taken.
    dtype : number type
        A type of the same size.

    Returns
    -------
    number, vector or matrix
        Of type `dtype`.

    Raises
    ------
    FieldError
        Where sizes differ.

    Examples
    --------
    >>> ti.bit_cast(ti.cast(1.0, ti.f32), ti.i32)
    1065353216
    """
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
    """Zeros of the type and shape of x.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    number, vector or matrix
        Zeros.

    Examples
    --------
    >>> ti.zero(ti.Vector([2.0, 3.0]))
    Vector([0.0, 0.0])
    """
    return _like(x, 0)


@expanded()
def one(x: Any) -> Any:
    """Ones of the type and shape of x.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    number, vector or matrix
        Ones.

    Examples
    --------
    >>> ti.one(ti.Vector([2.0, 3.0]))
    Vector([1.0, 1.0])
    """
    return _like(x, 1)
