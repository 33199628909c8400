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
    """a & b, the bits set in both integers."""
    return np.bitwise_and(a, b)


@primitive(p.or_)
def bit_or(a: Any, b: Any) -> Any:
    """a | b, the bits set in either integer."""
    return np.bitwise_or(a, b)


@primitive(p.xor)
def bit_xor(a: Any, b: Any) -> Any:
    """a ^ b, the bits set in exactly one of two integers."""
    return np.bitwise_xor(a, b)


@primitive(p.invert)
def bit_not(a: Any) -> Any:
    """~a, the bits not set in an integer."""
    return np.invert(a)


@primitive(p.shl)
def bit_shl(a: Any, b: Any) -> Any:
    """a << b: bits move to the left and zeros follow; past the width the result is 0."""
    return np.left_shift(a, b)


@primitive(p.shr)
def bit_sar(a: Any, b: Any) -> Any:
    """a >> b: bits move to the right, and the sign fills the places that become free."""
    return np.right_shift(a, b)


@expanded()
def bit_shr(a: Any, b: Any) -> Any:
    """The bits of a, moved to the right by b; zeros fill the places that become free."""
    t = _integer_type(a)
    return _of_bits(lambda v, width: t.wrap(v >> b), a)


@expanded()
def popcnt(x: Any) -> Any:
    """The number of bits that are set in an integer x."""
    return _of_bits(lambda v, width: v.bit_count(), x)


@expanded()
def clz(x: Any) -> Any:
    """The number of zero bits before the first bit that is set in an integer x."""
    return _of_bits(lambda v, width: width - v.bit_length(), x)
