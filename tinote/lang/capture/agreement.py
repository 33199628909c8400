"""Compares the effects of a replay with those of its function, bit for bit.

The same launches in the same order leave the same bits, on a GPU as on one thread, except where invocations add up
floats (`GpuCode.adds_in_any_order`): the device adds them in an unspecified order, so sums may round differently, even
in two calls of the function itself. Only there floats need to agree in just half of their digits, compared with the
largest of the same field; everything else is compared bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tinote.lang.data.fields import Field
from tinote.lang.data.layout import array_over
from tinote.lang.data.matrix import Matrix
from tinote.runtime.memory import Memory


class Agreement:
    """Compares the memory of these fields after launches of these codes; without codes, everything bit for bit."""

    def __init__(self, codes: Sequence[Any] = (), fields: Iterable[Field] = ()) -> None:
        self._fields = list(fields)
        self._rounds = any(code.adds_in_any_order for code in codes)

    def of_values(self, a: Any, b: Any) -> bool:
        """Whether two values, such as results, agree."""
        if isinstance(a, float) and isinstance(b, float):
            return a.hex() == b.hex() or (a != a and b != b) or (self._rounds and _are_close(np.array(a), np.array(b)))
        if isinstance(a, Matrix) and isinstance(b, Matrix):
            return self.of_values(a.values.ravel().tolist(), b.values.ravel().tolist())
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return False
            return a.tobytes() == b.tobytes() or (self._rounds and a.dtype.kind == "f" and _are_close(a, b))
        if isinstance(a, tuple | list) and isinstance(b, tuple | list):
            return len(a) == len(b) and all(self.of_values(*pair) for pair in zip(a, b, strict=True))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(self.of_values(one, b[key]) for key, one in a.items())
        return isinstance(a, float) == isinstance(b, float) and bool(a == b)

    def of_memory(self, memory: Memory, a: Any, b: Any) -> bool:
        """Whether the bytes of a block agree in both cases."""
        if a == b:
            return True
        if not self._rounds or len(a) != len(b):
            return False
        left, right = bytearray(a), bytearray(b)
        for field in self._fields:
            if field.memory.whole is memory and field.dtype.kind == "f":
                start = field.memory.begin - memory.begin
                one, other = [array_over(field.buffer, memory, memoryview(held)[start:]) for held in (left, right)]
                if not _are_close(one, other):
                    return False
                one[...] = other
        return left == right


def _are_close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether floats agree in half of their digits."""
    a, b = a.astype(np.float64) if a.dtype == np.float16 else a, b.astype(np.float64) if a.dtype == np.float16 else b
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    largest = max(np.abs(a[finite]).max(initial=0), np.abs(b[finite]).max(initial=0))
    return bool(np.abs(a[finite] - b[finite]).max(initial=0) <= math.sqrt(np.finfo(a.dtype).eps) * largest)
