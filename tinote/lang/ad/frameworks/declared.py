"""The declared arguments of a function of arrays: their number and, for a kernel, their kinds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.protocol import is_array, type_of
from tinote.compiler.requests import defaults_of
from tinote.errors import DifferentiationError
from tinote.ir.types import Scalar
from tinote.lang.kernels.kernel import BoundKernel, Kernel

Shape = tuple[int, ...]


class ArrayFacts(NamedTuple):
    """What is known of an array before it is there."""

    shape: Shape
    dtype: np.dtype[Any]


class Mismatch(NamedTuple):
    """An argument that is not what the program takes. `kind`: "count", "shape" or "dtype"."""

    kind: str
    message: str


def name_of(f: Callable[..., Any]) -> str:
    """What a function is called."""
    f = f.kernel if isinstance(f, BoundKernel) else f
    return getattr(f, "__name__", repr(f))


def miscount(f: Callable[..., Any], count: int) -> str | None:
    """How many arguments `f` takes by position, in words; None if `count` may be as many."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except ValueError:  # a function that is not written in Python
        return None
    by_position = [q for q in parameters if q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)]
    fewest = sum(q.default is q.empty for q in by_position)
    most = len(by_position)
    if any(q.kind is q.VAR_POSITIONAL for q in parameters):
        return None if count >= fewest else f"at least {fewest}"
    if fewest <= count <= most:
        return None
    return f"{most}" if fewest == most else f"{fewest} to {most}"


class Declared:
    """What the parameters of `f` are annotated with, if it is a kernel."""

    def __init__(self, what: str, f: Callable[..., Any]) -> None:
        self._what = what
        self._kernel = f.kernel if isinstance(f, BoundKernel) else f if isinstance(f, Kernel) else None
        self._skipped = len(f.args) if isinstance(f, BoundKernel) else 0

    def misfit(self, position: int, given: ArrayFacts, called: str) -> Mismatch | None:
        """What is wrong with the argument at `position`, if anything is; messages name it `called`. Raises
        `DifferentiationError` where the kernel takes neither an array nor a number there.
        """
        if self._kernel is None or position + self._skipped >= len(self._kernel._parameters.names):
            return None
        parameters = self._kernel._parameters
        position += self._skipped
        hint = parameters.annotations[position]
        about = f"{called} of {name_of(self._kernel)}, '{parameters.names[position]}',"
        if is_array(hint):
            found = hint.misfit(*given)
            return None if found is None else Mismatch(found[0], f"{about} {found[1]}")
        number = self._number(position)
        if number is None:
            raise DifferentiationError(
                f"parameter '{parameters.names[position]}' of {name_of(self._kernel)} is neither an array nor a number",
                parameters.span_of(parameters.nodes[position]),
                hint=f"ti.ad.{self._what} takes a function that calls the kernel with what it needs",
            )
        if given.shape:
            return Mismatch("shape", f"{about} is a number, and is called with an array of shape {given.shape}")
        if number.kind != "f":
            return Mismatch("dtype", f"{about} is a number of type {number}, and is called with one of {given.dtype}")
        return None

    def is_number(self, position: int) -> bool:
        """Whether the parameter at `position` is a number, and no array."""
        return self._kernel is not None and self._number(position + self._skipped) is not None

    def _number(self, position: int) -> Scalar | None:
        assert self._kernel is not None
        defaults = defaults_of(self._kernel.config)
        found = type_of(self._kernel._parameters.annotations[position], defaults.fp, defaults.ip)
        return found if isinstance(found, Scalar) else None
