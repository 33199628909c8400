"""Elementary functions: powers and logarithms, trigonometric and hyperbolic functions, the parts of a float.

Each works on numbers, and on vectors and matrices component by component; integers become floats of the session's
default type first. Derivatives are exact, in kernels and on numbers in Python by one table
(`ir/primitives.py`): at a kink |x| and the root of a sum of squares have 0, and `min` and `max` that of the
second of two equal numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinote.ir import primitives as p
from tinote.lang.data.traced import holds_traced, plain
from tinote.lang.maths.arithmetic import abs, max, min, select
from tinote.lang.maths.builtin import composed, expanded, primitive

__all__ = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "frexp",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

_PER_LN_2 = 1.0 / math.log(2.0)
_ROOT_OF_HALF = math.sqrt(0.5)


@primitive(p.sqrt, math.sqrt)
def sqrt(x: Any) -> Any:
    """The square root of x; NaN below 0.

    Its derivative at 0 is infinite, but that of the root of a square, or of a sum of squares, is 0.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.sqrt(2.0)
    1.41421356...
    """
    return np.sqrt(x)


@primitive(p.rsqrt)
def rsqrt(x: Any) -> Any:
    """The reciprocal of the square root of x, 1 / sqrt(x).

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.rsqrt(4.0)
    0.5
    """
    return np.divide(1.0, np.sqrt(x))


@expanded(pow)
def pow(x: Any, a: Any) -> Any:
    """x to the power a; an integer to a negative power is 0, 1 or -1.

    Parameters
    ----------
    x : number, vector or matrix
        The base.
    a : number, vector or matrix
        The exponent.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.pow(2.0, 0.5)
    1.41421356...
    >>> ti.pow(3, 4)
    81
    """
    return np.power(x, a)


@primitive(p.exp, math.exp)
def exp(x: Any) -> Any:
    """e to the power x, the exponential function.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.exp(ti.Vector([0.0, 1.0]))
    Vector([1.0, 2.71828182...])
    """
    return np.exp(x)


@composed(math.exp2)
def exp2(x: Any) -> Any:
    """2 to the power x, for floats and integers.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.exp2(10)
    1024.0
    """
    return pow(2.0, x)


@primitive(p.log)
def log(x: Any) -> Any:
    """The natural logarithm of x; NaN below 0, -infinity at 0.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.log(1.0)
    0.0
    """
    return np.log(x)


@composed(math.log2)
def log2(x: Any) -> Any:
    """The logarithm of x to base 2, exact for powers of two.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.log2(1024)
    10.0
    """
    m, n = frexp(x)
    low = m < _ROOT_OF_HALF  # there the two parts would cancel near x = 1
    mantissa = m * select(low, 2.0, 1.0)
    exponent = n - select(low, 1, 0)
    return log(mantissa) * _PER_LN_2 + exponent


@expanded(math.log10)
def log10(x: Any) -> Any:
    """The logarithm of x to base 10.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.log10(1000.0)
    3.0
    """
    return np.log10(x)


@primitive(p.sin, math.sin)
def sin(x: Any) -> Any:
    """The sine of x, an angle in radians.

    Parameters
    ----------
    x : number, vector or matrix
        An angle in radians.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.sin(0.5)
    0.47942553...
    """
    return np.sin(x)


@primitive(p.cos, math.cos)
def cos(x: Any) -> Any:
    """The cosine of x, an angle in radians.

    Parameters
    ----------
    x : number, vector or matrix
        An angle in radians.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.cos(0.0)
    1.0
    """
    return np.cos(x)


@primitive(p.tan, math.tan)
def tan(x: Any) -> Any:
    """The tangent of x, an angle in radians.

    Parameters
    ----------
    x : number, vector or matrix
        An angle in radians.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.tan(0.5)
    0.54630248...
    """
    return np.tan(x)


@primitive(p.asin, math.asin)
def asin(x: Any) -> Any:
    """The inverse sine of x, in [-π/2, π/2]; NaN outside of [-1, 1].

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Angles in radians, in [-π/2, π/2].

    Examples
    --------
    >>> ti.asin(1.0)
    1.57079632...
    """
    return np.arcsin(x)


@primitive(p.acos, math.acos)
def acos(x: Any) -> Any:
    """The inverse cosine of x, in [0, π]; NaN outside of [-1, 1].

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Angles in radians, in [0, π].

    Examples
    --------
    >>> ti.acos(-1.0)
    3.14159265...
    """
    return np.arccos(x)


@composed(math.atan)
def atan(x: Any) -> Any:
    """The inverse tangent of x, in (-π/2, π/2).

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Angles in radians, in (-π/2, π/2).

    Examples
    --------
    >>> ti.atan(1.0)
    0.78539816...
    """
    return atan2(x, 1.0)


@primitive(p.atan2, math.atan2)
def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), in [-π, π]; at the origin its derivatives are NaN.

    Parameters
    ----------
    y, x : number, vector or matrix
        The coordinates of the point; y comes first, as in C.

    Returns
    -------
    number, vector or matrix
        Angles in radians, in [-π, π].

    Examples
    --------
    >>> ti.atan2(1.0, -1.0)
    2.35619449...
    """
    return np.arctan2(y, x)


@composed(math.sinh)
def sinh(x: Any) -> Any:
    """The hyperbolic sine of x, (exp x - exp -x) / 2.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.sinh(0.0)
    0.0
    """
    t = tanh(max(min(x, 1.0), -1.0) * 0.5)  # keeps all digits near 0
    near = 2.0 * t / (1.0 - t * t)
    root = exp(abs(x) * 0.5)  # its square overflows no sooner than the result
    falling = 0.5 / root / root
    far = 0.5 * root * root - falling
    signed = select(x < 0.0, -far, far)
    return select(abs(x) < 1.0, near, signed)


@composed(math.cosh)
def cosh(x: Any) -> Any:
    """The hyperbolic cosine of x, (exp x + exp -x) / 2.

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.cosh(0.0)
    1.0
    """
    root = exp(abs(x) * 0.5)  # its square overflows no sooner than the result
    falling = 0.5 / root / root
    return 0.5 * root * root + falling


@primitive(p.tanh, math.tanh)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of x, in [-1, 1].

    Parameters
    ----------
    x : number, vector or matrix
        Integers become floats of the session's default type.

    Returns
    -------
    number, vector or matrix
        Of the shape of `x`, component by component.

    Examples
    --------
    >>> ti.tanh(0.0)
    0.0
    """
    return np.tanh(x)


@expanded(math.frexp)
def frexp(x: Any) -> Any:
    """Mantissa and exponent of x: (m, n) with x = m · 2ⁿ and m in [0.5, 1).

    Parameters
    ----------
    x : float, vector or matrix
        Finite numbers.

    Returns
    -------
    (m, n)
        The mantissas, floats, and the exponents, integers.

    Examples
    --------
    >>> ti.frexp(12.0)
    (0.75, 4)
    """
    mantissa, exponent = np.frexp(plain(x))
    return (np.multiply(x, np.exp2(-exponent)) if holds_traced(x) else mantissa), exponent


@primitive(p.isnan, math.isnan)
def isnan(x: Any) -> Any:
    """Whether x is NaN, with fast maths, too.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    truth value, or vector or matrix of them
        Component by component.

    Examples
    --------
    >>> ti.isnan(ti.math.nan)
    True
    """
    return np.isnan(plain(x))


@expanded(math.isinf)
def isinf(x: Any) -> Any:
    """Whether x is an infinity, with fast maths, too.

    Parameters
    ----------
    x : number, vector or matrix
        Numbers of any type.

    Returns
    -------
    truth value, or vector or matrix of them
        Component by component.

    Examples
    --------
    >>> ti.isinf(ti.math.inf)
    True
    """
    return np.isinf(plain(x))
