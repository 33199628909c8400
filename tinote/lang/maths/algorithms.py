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
    """Sort a one-dimensional field in place, ascending; NaN comes last. `values`, a field of the same length, takes the
    same order: those of equal keys stay as they were. Raises `DifferentiationError` for a field with a gradient or dual
    while derivatives are recorded.
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
    """Inclusive prefix sums of integers: `PrefixSumExecutor(n).run(field)` makes each element the sum of all up to it.
    Sums wrap like the additions of a kernel.
    """

    def __init__(self, length: int) -> None:
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise FieldError(f"the length must be a positive integer, not {length!r}")
        self.length = length

    def run(self, values: Any) -> None:
        """Sum up a one-dimensional field of integers of this length, in place."""
        found = _line(values, "what is summed up")
        if found.dtype.kind not in "iu":
            raise FieldError(f"prefix sums are of integers, not of {found.dtype}", hint="use a field of ti.i32")
        if len(found) != self.length:
            raise FieldError(f"this executor sums up {self.length} elements, not {len(found)}")
        values.from_numpy(np.cumsum(found, dtype=found.dtype))
