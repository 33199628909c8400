"""Inputs of a recording from Python: kernels, as they were compiled, and numbers that Python wrote into arrays and
fields. When the same function runs again its inputs must be the same: a variable that has changed since may alter only
second derivatives, which values and first derivatives do not reveal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.captures import same_answer
from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.signature import TemplateArgument
from tinote.ir.nodes import Buffer
from tinote.lang.data.matrix import numpy_type

Array = np.ndarray[Any, Any]

#: Arrays with more numbers are compared by weighted sums of parts.
_MOST_NUMBERS = 4096


class Taken(NamedTuple):
    """A kernel with its compile-time constants, or a field or array with the contents that Python wrote."""

    name: str
    constants: Sequence[Any] = ()
    numbers: Array = np.empty(0)

    def agrees(self, other: Taken) -> bool:
        """Whether it is the same, up to rounding of numbers that Python has computed from results."""
        if self.name != other.name or not same_answer(self.constants, other.constants):
            return False
        a, b = self.numbers, other.numbers
        if a.shape != b.shape:
            return False
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
        return bool(np.allclose(a, b, rtol=1e-6, atol=1e-6 * scale, equal_nan=True))


def kernel_taken(specialisation: Specialisation) -> Taken:
    """A kernel as an input. (Captures other than constants are inspected at launch.)"""
    values = [capture.value for capture in specialisation.captures]
    values += [one.value for one in specialisation.arguments if isinstance(one, TemplateArgument)]
    return Taken(specialisation.source.name, [one for one in values if _is_constant(one)])


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_constant, value))
    return isinstance(value, bool | int | float | str | bytes | np.ndarray | np.generic)


def arrays_taken(formals: Sequence[Buffer], values: Sequence[Any]) -> list[Taken]:
    """The external arrays of a launch."""
    return [Taken(name, (), sketch(held)) for name, held in arrays_of_others(formals, values)]


def arrays_of_others(formals: Sequence[Buffer], values: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """The names of external arrays, and their contents."""
    for formal, bound in zip(formals, values, strict=False):
        if isinstance(bound, BoundArray) and bound.buffer is None:
            dtype = np.dtype(numpy_type(formal.dtype))
            yield formal.name, np.frombuffer(bound.memory.view(), dtype, bound.nbytes // dtype.itemsize)


def sketch(array: Array) -> Array:
    """A fingerprint of an array; its own numbers, if there are few."""
    flat = np.asarray(array, np.float64).ravel()
    if flat.size <= _MOST_NUMBERS:
        return flat.copy()
    parts = np.array_split(flat, 64)
    return np.array([part @ np.cos(np.arange(part.size)) for part in parts])
