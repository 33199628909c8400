"""`ti.algorithms`: sorting and prefix sums of whole fields.

Both run as one pass of NumPy over the field's memory, which is what kernels see.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError, FieldError
from tinote.lang.session.state import recorder
from tinote.source import caller

__all__ = ["PrefixSumExecutor", "parallel_sort"]
__dir__ = partial(sorted, __all__)


def _line(values: Any, what: str) -> np.ndarray[Any, Any]:
    """A copy of a one-dimensional field of numbers. Raises `FieldError` for anything else."""
    if not hasattr(values, "from_numpy"):
        raise FieldError(f"{what} must be a field or ndarray, not {values!r}")
    content = values.to_numpy()
    if content.ndim != 1:
        raise FieldError(f"{what} must be one-dimensional numbers, not of shape {content.shape}")
    return content


def _refuse_derivatives(*fields: Any) -> None:
    """An open tape or forward mode would take what NumPy has moved for constants."""
    if recorder.get() is None:
        return
    for field in fields:
        if getattr(field, "has_grad", False) or getattr(field, "has_dual", False):
            raise DifferentiationError(
                "sorting is not differentiated, and what is sorted here has a gradient or dual",
                caller(),
                hint="sort a copy without one, with positions as values, and read through these in a kernel",
            )


def parallel_sort(keys: Any, values: Any = None) -> None:
    """Sort a one-dimensional field in place, ascending; NaN comes last.

    Parameters
    ----------
    keys : Field
        What is sorted.
    values : Field, optional
        A field of the same length that takes the same order: those of equal keys stay as they were.

    Raises
    ------
    FieldError
        For fields of other shapes.
    DifferentiationError
        For a field with a gradient or dual, while derivatives are recorded.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=3)
    >>> x.from_numpy([3.0, 1.0, 2.0])
    >>> ti.algorithms.parallel_sort(x)
    >>> x.to_numpy()
    array([1., 2., 3.], dtype=float32)
    """
    _refuse_derivatives(keys, values)
    found = _line(keys, "the keys")
    if values is None:
        keys.from_numpy(np.sort(found))
        return
    carried = values.to_numpy()
    if carried.shape[:1] != found.shape:
        raise FieldError(f"there are {len(found)} keys, and values of shape {carried.shape}")
    order = np.argsort(found, kind="stable")
    keys.from_numpy(found[order])
    values.from_numpy(carried[order])


class PrefixSumExecutor:
    """Inclusive prefix sums of integers, in place: each element becomes the sum of all up to it.

    Sums wrap like the additions of a kernel.

    Parameters
    ----------
    length : int
        The number of elements.

    Examples
    --------
    >>> x = ti.field(ti.i32, shape=4)
    >>> x.fill(2)
    >>> ti.algorithms.PrefixSumExecutor(4).run(x)
    >>> x.to_numpy()
    array([2, 4, 6, 8], dtype=int32)
    """

    def __init__(self, length: int) -> None:
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise FieldError(f"the length must be a positive integer, not {length!r}")
        self.length = length

    def run(self, values: Any) -> None:
        """Sum up the elements of a field, in place.

        Parameters
        ----------
        values : Field
            A one-dimensional field of integers of this length.

        Raises
        ------
        FieldError
            For a field of another kind or length.

        Examples
        --------
        >>> x = ti.field(ti.i32, shape=3)
        >>> x.from_numpy([1, 2, 3])
        >>> ti.algorithms.PrefixSumExecutor(3).run(x)
        >>> x.to_numpy()
        array([1, 3, 6], dtype=int32)
        """
        found = _line(values, "what is summed up")
        if found.dtype.kind not in "iu":
            raise FieldError(f"prefix sums are of integers, not of {found.dtype}", hint="use a field of ti.i32")
        if len(found) != self.length:
            raise FieldError(f"this executor sums up {self.length} elements, not {len(found)}")
        values.from_numpy(np.cumsum(found, dtype=found.dtype))
