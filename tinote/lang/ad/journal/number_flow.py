"""Launches with traced numbers as inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tinote.compiler.requests import PRIMAL, Derivative, Request
from tinote.lang.data.traced import Trace, Traced, constants
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.kernels.kernel import Instance

PUSHFORWARD = Request(Derivative.FORWARD, arguments=True)


def look_for_plain(trace: Trace, values: Sequence[Any], arguments: Arguments) -> None:
    """Look for plain numbers among a launch's inputs, arrays included, that may be computed from traced ones."""
    if trace.root.taken_out is None:
        return
    count = len(arguments.specialisation.arrays)
    arrays: list[Any] = [np.empty(0) for buffer in arguments.external_arrays if buffer.dtype.kind == "f"]
    if not trace.has_taken_out:  # but text was written, so the numbers themselves are compared
        arrays = [one.owner for one in values[:count] if one.buffer is None]
    scalars = values[count:]
    trace.note_plain([*arrays, *scalars], f"kernel '{arguments.specialisation.source.name}'")


def flow_of(trace: Trace, instance: Instance, values: tuple[Any, ...], *, tangents: bool) -> NumberFlow | None:
    """The code for a launch with traced numbers as inputs or outputs; None for one without."""
    takes = bool(values) and Traced in map(type, values) and any(map(_is_active, values))
    return NumberFlow(trace, instance, tangents=tangents) if takes or tangents or instance.returns_floats else None


def _is_active(value: Any) -> bool:
    return type(value) is Traced and value.number != 0


class _Launched(Protocol):
    """The code that runs in place of a kernel."""

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]: ...


class NumberFlow:
    """A launch with traced numbers, in place of its `BoundCode`. `tangents`: the kernel's pushforward runs, not the
    kernel. `runs`: the code in place of the kernel's, if any.

    `inputs`: of the float arguments, the position of each that is active, with the number and its tangent; `floats`:
    the total number; `outputs`: the returned numbers.
    """

    __slots__ = ("_instance", "_trace", "floats", "inputs", "outputs", "runs", "tangents")

    def __init__(self, trace: Trace, instance: Instance, *, tangents: bool) -> None:
        self._trace = trace
        self._instance = instance
        self.tangents = tangents
        self.runs: _Launched | None = None
        self.inputs: list[tuple[int, int, float]] = []
        self.outputs: list[int] = []
        self.floats = 0

    def launch(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run; the floats that the kernel returns come as traced numbers."""
        trace, specialisation = self._trace, self._instance.specialisation
        code = specialisation.code(PUSHFORWARD if self.tangents else PRIMAL)
        scalars = values[len(specialisation.arrays) :]
        floats = [value for t, value in zip(code.parameters, scalars, strict=False) if t.kind == "f"]
        self.floats = len(floats)
        self.inputs = [
            (k, value.number, value.tangent)
            for k, value in enumerate(floats)
            if type(value) is Traced and trace.is_active(value)
        ]
        directions = [0.0] * self.floats if self.tangents else []
        for k, _, tangent in self.inputs:
            if self.tangents:
                directions[k] = tangent
        results = (self.runs or code).launch((*constants(values), *directions))
        kinds = [t.kind for t in code.results]
        if not self.tangents:
            return self._traced(kinds, results, ())
        count = len(kinds) - self._instance.returns_floats
        return self._traced(kinds[:count], results[:count], results[count:])

    def _traced(self, kinds: Sequence[str], values: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        left = iter(tangents)
        found = [
            self._trace.new(value, next(left, 0.0)) if kind == "f" else value
            for kind, value in zip(kinds, values, strict=True)
        ]
        self.outputs = [one.number for one in found if type(one) is Traced]
        return tuple(found)
