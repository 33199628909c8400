"""Vectors and matrices as text: Python prints them as kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np


class FormattedNumbers:
    """A base of what has `values`: a format is that of each of them."""

    __slots__ = ()
    values: Any

    def __str__(self) -> str:
        return _formatted(self.values, "")

    def __format__(self, specification: str) -> str:
        return _formatted(self.values, specification)


def _formatted(numbers: Any, specification: str) -> str:
    if np.ndim(numbers):
        return f"[{', '.join([_formatted(one, specification) for one in numbers])}]"
    return format(numbers, specification)
