"""Checks the symmetry of second derivatives that a reverse sweep around an inner gradient assumes.

Reverse mode gives the derivative of w · g, for a gradient g and weights w, as the tangent of the gradient along w
(`inner_gradient.py`). Custom gradients may differ from the derivatives of their functions, and then the matrix of
second derivatives need not be symmetric. So a random direction u of all dependencies of g is tested: the tangent of g
along u, times w, must equal the sweep's result times u. For random u the difference measures the error of that result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.errors import DifferentiationError, Note
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Buffer
from tinote.ir.query import walk
from tinote.lang.ad.journal.events import Custom, Event
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.memory.undo import numbers
from tinote.runtime.seam import active_listener
from tinote.source import Span

Array = np.ndarray[Any, Any]

#: Tolerance of the comparison, relative to the norm of the sweep's result: custom gradients may come from solvers.
_TOLERANCE = 1e-3


class CustomCall(NamedTuple):
    """A call of a function with a custom gradient."""

    name: str
    span: Span


#: Those in kernels.
_in_kernels: WeakKeyDictionary[Specialisation, tuple[CustomCall, ...]] = WeakKeyDictionary()


def custom_calls(events: Iterable[Event]) -> list[CustomCall]:
    """The user's custom calls, in Python and in kernels."""
    found: list[CustomCall] = []
    for event in events:
        if isinstance(event, Custom) and event.is_function:
            found.append(CustomCall(event.name, event.span))
        elif isinstance(event, RecordedLaunch):
            found += _calls_of(event.instance.specialisation)
    return found


def _calls_of(specialisation: Specialisation) -> tuple[CustomCall, ...]:
    known = _in_kernels.get(specialisation)
    if known is None:
        operations = [op for op in walk(specialisation.lowered.function.region) if isinstance(op, CustomVJP)]
        known = _in_kernels[specialisation] = tuple(
            [CustomCall(op.outs[0].name, op.loc) for op in operations if _is_users(op)]
        )
    return known


def _is_users(operation: CustomVJP) -> bool:
    """Whether a gradient is not one of ours, which are derivatives."""
    return any(not op.loc.is_in_package for op in walk(operation.adjoint))


def have_gradients(buffers: Iterable[Buffer]) -> list[Buffer]:
    """Those of fields that have a dual, and a gradient with a dual."""
    found = [b for b in buffers if b.tangent is not None and b.adjoint is not None and b.adjoint.tangent is not None]
    return sorted(found, key=lambda buffer: buffer.name)


def tangents_of_gradients(buffers: Iterable[Buffer]) -> list[Any]:
    """The contents of the duals of the gradients of these fields."""
    gradients = [buffer.adjoint for buffer in buffers]
    return [np.array(numbers(one.tangent)) for one in gradients if one is not None and one.tangent is not None]


def is_to_be_tried(customs: Sequence[CustomCall], weights: Iterable[Array]) -> bool:
    """Whether there are such calls, and any adjoint is propagated to them."""
    if customs and (listener := active_listener()) is not None:
        listener.taking("the trial whether second derivatives are symmetric")
    return bool(customs) and any(one.any() for one in weights)


class Symmetry:
    """The trial of one direction u, for a gradient with the `weights` w. `customs`: the calls of functions with a
    custom gradient that make it necessary; `found`: the results of the sweep along w, for each part of u.
    """

    def __init__(self, customs: Sequence[CustomCall], weights: Sequence[Array]) -> None:
        self.customs = customs
        self.found: list[Any] = []
        self._weights = [np.asarray(one, np.float64) for one in weights]
        self._random = np.random.default_rng(5)
        self._along: list[Array] = []
        self._epsilon = float(np.finfo(np.float64).eps)

    def direction(self, like: Any) -> Array:
        """The next part of u, of the shape of an array."""
        array = np.asarray(like)
        if array.dtype.kind == "f":
            self._epsilon = max(self._epsilon, float(np.finfo(array.dtype).eps))
        found = self._random.standard_normal(array.shape)
        self._along.append(found)
        return found

    def require(self, moved: Sequence[Any], inner: Note, outer: Sequence[Note]) -> None:
        """Raise `DifferentiationError` unless `moved`, the tangents of the gradient along u, are those of a symmetric
        matrix. `inner` and `outer`: where the two derivatives are.
        """
        found, tangents = [[np.asarray(one, np.float64) for one in parts] for parts in (self.found, moved)]
        ones = [u * one for u, one in zip(self._along, found, strict=True)]
        others = [w * one for w, one in zip(self._weights, tangents, strict=True)]
        if not disagree(ones, others, found, self._epsilon):
            return
        names = ", ".join(dict.fromkeys([f"'{one.name}'" for one in self.customs]))
        raise DifferentiationError(
            f"the custom gradient of {names} is another one than that of what is computed: second derivatives are not "
            "symmetric then, as reverse mode around reverse mode takes them to be",
            self.customs[0].span,
            hint="differentiate the gradient in forward mode, by ti.ad.hvp, ti.ad.jvp or ti.ad.FwdMode; or let fields "
            "that it takes for constants have no gradient",
            notes=[inner, *outer],
        )


def disagree(ones: Sequence[Array], others: Sequence[Array], found: Sequence[Array], epsilon: float) -> bool:
    """Whether two products differ, the sums of these parts. `found`: the derivative that is tried, a factor of one of
    them; `epsilon`: that of the numbers.
    """
    apart = sum([float(one.sum()) for one in ones]) - sum([float(one.sum()) for one in others])
    rounding = np.sqrt(epsilon) * (_length(ones) + _length(others))
    return bool(np.isfinite(apart)) and abs(apart) > _TOLERANCE * _length(found) + rounding


def _length(parts: Sequence[Array]) -> float:
    return float(np.sqrt(sum([float(np.sum(one * one)) for one in parts])))
