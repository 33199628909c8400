"""The bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir import primitives as p
from tinote.ir.types import Scalar, scalar_named
from tinote.lang.data.matrix import componentwise
from tinote.lang.maths.builtin import expanded, primitive
from tinote.lang.session.state import session

__all__ = ["bit_and", "bit_not", "bit_or", "bit_sar", "bit_shl", "bit_shr", "bit_xor", "clz", "popcnt"]


def _integer_type(x: Any) -> Scalar:
    """The type of an integer or of an array of them: Python's own take the default type."""
    values = np.asarray(x)
    if values.dtype.kind not in "iu":
        raise FieldError(f"bits are those of integers, not of {x!r}")
    if isinstance(x, np.ndarray | np.generic) and values.dtype != np.int64:
        return scalar_named(f"{values.dtype.kind}{values.dtype.itemsize * 8}")
    return scalar_named(session.config.default_ip)


def _of_bits(f: Callable[[int, int], int], x: Any) -> Any:
    """`f` of the bits of each integer, as a number without sign, and of how many there are."""
    width = _integer_type(x).bits
    return componentwise(lambda v: f(int(v) & ((1 << width) - 1), width), x)


@primitive(p.and_)
def bit_and(a: Any, b: Any) -> Any:
    """a & b, the bits set in both integers.

    Parameters
    ----------
    a, b : integer, or vector or matrix of integers
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.bit_and(6, 3)
    2
    """
    return np.bitwise_and(a, b)


@primitive(p.or_)
def bit_or(a: Any, b: Any) -> Any:
    """a | b, the bits set in either integer.

    Parameters
    ----------
    a, b : integer, or vector or matrix of integers
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.bit_or(6, 3)
    7
    """
    return np.bitwise_or(a, b)


@primitive(p.xor)
def bit_xor(a: Any, b: Any) -> Any:
    """a ^ b, the bits set in exactly one of two integers.

    Parameters
    ----------
    a, b : integer, or vector or matrix of integers
        Operands; a number goes with every component of a vector or matrix.

    Returns
    -------
    number, vector or matrix
        Of the operands' common type and shape.

    Examples
    --------
    >>> ti.bit_xor(6, 3)
    5
    """
    return np.bitwise_xor(a, b)


@primitive(p.invert)
def bit_not(a: Any) -> Any:
    """~a, the bits not set in an integer.

    Parameters
    ----------
    a : integer, or vector or matrix of integers
        The operand.

    Returns
    -------
    integer, or vector or matrix of integers
        Of the type and shape of `a`.

    Examples
    --------
    >>> ti.bit_not(5)
    -6
    """
    return np.invert(a)


@primitive(p.shl)
def bit_shl(a: Any, b: Any) -> Any:
    """a << b: bits move to the left and zeros follow; past the width the result is 0.

    Parameters
    ----------
    a : integer, or vector or matrix of integers
        What is moved.
    b : integer, or vector or matrix of integers
        By how many places.

    Returns
    -------
    integer, or vector or matrix of integers
        Of the type and shape of `a`.

    Examples
    --------
    >>> ti.bit_shl(3, 2)
    12
    """
    return np.left_shift(a, b)


@primitive(p.shr)
def bit_sar(a: Any, b: Any) -> Any:
    """a >> b: bits move to the right, and the sign fills the places that become free.

    Parameters
    ----------
    a : integer, or vector or matrix of integers
        What is moved.
    b : integer, or vector or matrix of integers
        By how many places.

    Returns
    -------
    integer, or vector or matrix of integers
        Of the type and shape of `a`.

    Examples
    --------
    >>> ti.bit_sar(-8, 1)
    -4
    """
    return np.right_shift(a, b)


@expanded()
def bit_shr(a: Any, b: Any) -> Any:
    """The bits of a, moved to the right by b; zeros fill the places that become free.

    Parameters
    ----------
    a : integer, or vector or matrix of integers
        What is moved.
    b : integer, or vector or matrix of integers
        By how many places.

    Returns
    -------
    integer, or vector or matrix of integers
        Of the type and shape of `a`.

    Examples
    --------
    >>> ti.bit_shr(8, 1)
    4
    """
    t = _integer_type(a)
    return _of_bits(lambda v, width: t.wrap(v >> b), a)


@expanded()
def popcnt(x: Any) -> Any:
    """The number of bits that are set in an integer x.

    Parameters
    ----------
    x : integer, or vector or matrix of integers
        The operand.

    Returns
    -------
    integer, or vector or matrix of integers
        From 0 to the width of the type.

    Examples
    --------
    >>> ti.popcnt(7)
    3
    """
    return _of_bits(lambda v, width: v.bit_count(), x)


@expanded()
def clz(x: Any) -> Any:
    """The number of zero bits before the first bit that is set in an integer x.

    Parameters
    ----------
    x : integer, or vector or matrix of integers
        The operand.

    Returns
    -------
    integer, or vector or matrix of integers
        From 0 to the width of the type.

    Examples
    --------
    >>> ti.clz(1)
    31
    """
    return _of_bits(lambda v, width: width - v.bit_length(), x)
