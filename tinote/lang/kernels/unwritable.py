"""Array arguments that a kernel cannot simply write to: read-only ones, and those that are passed as a copy.

The elements of a NumPy array may lie apart (a slice with a step, Fortran's order, a transposed matrix). Kernels get a
contiguous copy of such a one, and what they write to it is copied back when the launch has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import BoundArray
from tinote.errors import DifferentiationError
from tinote.lang.data.ndarrays import CopiedArray, argument_error
from tinote.lang.kernels.stand_ins import overlaps_itself, viewed_field
from tinote.lang.session.state import recorder


def written_copies(specialisation: Specialisation, arrays: Sequence[BoundArray]) -> bool:
    """Whether a launch on these arrays writes to a copy of one. Raises `KernelArgumentError` where it would write to
    what must not be written to, or to elements that have several places: the copy has each of them once. Raises
    `DifferentiationError` where a recorder follows memory, which would not know the copy.
    """
    found = False
    written = specialisation.accesses().written
    for buffer, bound in zip(specialisation.arrays, arrays, strict=True):
        if bound.writable:
            continue
        parameter = next(q for q in specialisation.source.parameters if q.arg == buffer.name.partition(".")[0])
        refuse = argument_error(specialisation.source, parameter)
        copied = type(bound) is CopiedArray
        if copied and recorder.get() is not None:
            raise DifferentiationError(
                f"argument '{buffer.name}' is an array whose elements do not lie one after the other: the launch would "
                "work on a copy of it, which is not followed",
                specialisation.source.span,
                "pass `np.ascontiguousarray(a)`",
            )
        if buffer not in written:
            continue
        if not copied or not bound.original.flags.writeable:
            hint = "pass a copy: `a.copy()`"
            raise refuse("is written by the kernel, and is called with an array that is read-only", hint)
        first, last = np.lib.array_utils.byte_bounds(bound.original)
        shared = any(other is not bound and _meets(other, first, last) for other in arrays)
        if shared or overlaps_itself(bound.original) or viewed_field(first, last) is not None:
            raise refuse(
                "is written by the kernel, and its elements, which do not lie one after the other, are also those of a "
                "field, of another argument or of each other",
                "pass `np.ascontiguousarray(a)`, which is an array of its own",
            )
        found = True
    return found


def _meets(other: BoundArray, first: int, last: int) -> bool:
    """Whether an argument has memory in common with the bytes from `first` up to `last`."""
    if type(other) is CopiedArray:
        begin, end = np.lib.array_utils.byte_bounds(other.original)
    else:
        begin, end = other.address, other.address + other.nbytes
    return max(first, begin) < min(last, end)


def launch_on_copies(launch: Any, values: tuple[Any, ...]) -> Any:
    """`launch(values)`; what it wrote to copies of arrays is in the arrays afterwards, also if it stopped half way."""
    try:
        return launch(values)
    finally:
        for value in values:
            if type(value) is CopiedArray and value.original.flags.writeable:
                value.bring_back()
