"""Computations on whole arrays that have derivatives of their own, such as the solution of a linear system.

An operation reads fields and writes others, using NumPy. It keeps the data for its derivatives itself (the
factorisation, the solution), so that the journal saves no overwritten values for it. In a journal it is one record; in
forward mode it pushes tangents forward; at second order it does both, and its reverse has tangents of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, NumberOf
from tinote.lang.ad.journal.temporary_adjoints import tangent_of
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import as_stored
from tinote.lang.data.ndarrays import stand_in
from tinote.lang.session.state import note_python_write, recorder
from tinote.runtime.seam import active_listener
from tinote.source import Span

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class RunOperation(Protocol):
    """Runs a further operation, whose only output is `target`, by default an array of its own. Returns it."""

    def __call__(self, rule: Rule, inputs: Sequence[Field], target: Field | None = None) -> Field: ...


class Rule(Protocol):
    """The computation of an operation and its derivatives. All arrays are vectors of f64, one for each input or output,
    in row-major order. `values` is called first; the rule keeps the data that the other methods need.
    """

    def values(self, inputs: Arrays) -> Arrays:
        """The values of the outputs."""
        ...

    def tangents(self, tangents: Arrays) -> Arrays:
        """The tangents of the outputs, from those of the inputs."""
        ...

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """The increments of the inputs' adjoints, from the adjoints of the outputs."""
        ...

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """The tangents of the results of `adjoints`, along those of the inputs and of the outputs' adjoints."""
        ...

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """Compute the tangents of the only output, in `target`, by operations, from the values of the inputs and the
        output and the inputs' tangents.
        """
        ...


class Computation:
    """One application of an operation: `rule` computes `outputs` from `inputs`. `clears`: the inputs that are zeroed
    afterwards. `name` and `span`: for errors and pictures of tapes.
    """

    def __init__(
        self,
        rule: Rule,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        name: str,
        span: Span,
        clears: Sequence[Field] = (),
    ) -> None:
        self.rule = rule
        self._fields = inputs, outputs, clears  # whose memory has to stay alive
        self.inputs = [field.buffer for field in inputs]
        self.outputs = [field.buffer for field in outputs]
        self.clears = [field.buffer for field in clears]
        self.name = name
        self.span = span

    @property
    def written(self) -> list[Buffer]:
        """All fields that get new values."""
        return [*self.outputs, *self.clears]

    def run(self) -> None:
        """Compute, and announce the accesses to memory."""
        listener = active_listener()
        if listener is not None:
            listener.taking(f"{self.name}, whose work is not a launch")
        found = recorder.get()
        if found is None:
            self.compute()
        else:
            found.computing(self)

    def values(self) -> Arrays:
        """The new values of the outputs."""
        return self.rule.values([_vector(buffer) for buffer in self.inputs])

    def compute(self) -> None:
        """Compute without differentiation, like Python code that writes to fields."""
        values = self.values()
        for buffer in self.written:
            note_python_write(buffer)
        self.store(values)

    def store(self, values: Arrays) -> None:
        """Store the values of the outputs."""
        for buffer, value in zip(self.outputs, values, strict=True):
            array = numbers(buffer)
            array[...] = as_stored(value.reshape(array.shape), buffer.dtype)
        for buffer in self.clears:
            numbers(buffer)[...] = 0

    def push(self, tangents: Sequence[Buffer | None], targets: Sequence[Buffer | None]) -> tuple[Arrays, Arrays]:
        """Compute the tangents of the outputs, in `targets`, from those of the inputs.

        Returns both along one direction.
        """
        shapes = [numbers(buffer).shape for buffer in self.inputs]
        given = [
            np.zeros(shape) if tangent is None else numbers(tangent).astype(np.float64)
            for shape, tangent in zip(shapes, tangents, strict=True)
        ]
        several = max([array.ndim - len(shape) for array, shape in zip(given, shapes, strict=True)], default=0)
        if not several:
            flat = [one.ravel() for one in given]
            found = self.rule.tangents(flat)
            for target, one in zip(targets, found, strict=True):
                if target is not None:
                    array = numbers(target)
                    array[...] = one.reshape(array.shape)
            return flat, found
        count = max([one.shape[-1] for one, shape in zip(given, shapes, strict=True) if one.ndim > len(shape)])
        for k in range(count):
            flat = [
                (one[..., k] if one.ndim > len(shape) else one).ravel()
                for one, shape in zip(given, shapes, strict=True)
            ]
            for target, one in zip(targets, self.rule.tangents(flat), strict=True):
                if target is not None:
                    array = numbers(target)
                    array[..., k] = one.reshape(array.shape[:-1])
        return [], []

    def push_from(self, given: Sequence[Buffer | None], temporaries: Mapping[Buffer, Buffer]) -> tuple[Arrays, Arrays]:
        """The same from those `given`, in the duals of the outputs, their own or temporary ones; cleared inputs get
        zeros.
        """
        found = self.push(given, [tangent_of(buffer, temporaries) for buffer in self.outputs])
        for buffer in self.clears:
            dual = tangent_of(buffer, temporaries)
            if dual is not None:
                numbers(dual)[...] = 0
        return found

    def push_further(self, tangents: Callable[[Buffer], Field | None]) -> None:
        """Compute the tangents of the outputs by further operations, which are differentiable in turn.
        `tangents`: the field with those of another one; None where that is constant.
        """
        inputs, outputs, clears = self._fields
        known = [(field, tangents(field.buffer)) for field in inputs]
        given = [_zeros(field) if tangent is None else tangent for field, tangent in known]
        for output in outputs:
            target = tangents(output.buffer)
            if target is None:
                continue
            like = output

            def run(rule: Rule, inputs: Sequence[Field], target: Field | None = None, like: Field = like) -> Field:
                found = _zeros(like) if target is None else target
                self.further(rule, inputs, found).run()
                return found

            self.rule.pushed(run, inputs, output, given, target)
        for field in clears:
            cleared = tangents(field.buffer)
            if cleared is not None:
                note_python_write(cleared.buffer, ..., 0.0)
                cleared.memory.clear()

    def further(self, rule: Rule, inputs: Sequence[Field], output: Field) -> Computation:
        """An operation that is a part of the derivative of this one."""
        return Computation(rule, inputs, [output], self.name, self.span)

    def record(self, followed: Sequence[bool], tangents: tuple[Arrays, Arrays] | None) -> Custom:
        """The record for a journal, which holds all data that it needs. `followed`: the inputs with an adjoint, their
        own or a temporary one; `tangents`: of inputs and outputs, at second order.
        """

        def reads_active(reached: set[Buffer]) -> set[Buffer]:
            if any(buffer.adjoint is not None or buffer in reached for buffer in self.outputs):
                return {buffer for buffer in self.inputs if buffer.adjoint is None and not buffer.no_adjoint}
            return set()

        return Custom(
            self.name,
            self.span,
            lambda sweep: self._reverse(sweep, followed, tangents),
            BlockEffects(self.inputs, self.written, set(self.written) - set(self.inputs)),
            lost={},
            reads_active=reads_active,
            needs_fields=False,
            again=self._again,
            gradients=frozenset([b.adjoint for b in (*self.inputs, *self.written) if b.adjoint is not None]),
        )

    def _again(self, recorder: Any, of: NumberOf) -> dict[int, Any]:
        recorder.computing(self)
        return {}

    def _reverse(self, sweep: CustomSweep, followed: Sequence[bool], tangents: tuple[Arrays, Arrays] | None) -> None:
        of = sweep.adjoints.of
        bars = [of(buffer) for buffer in self.outputs]
        second = sweep.gradients is not None and sweep.gradients.has_tangents
        given = [_of_bar(bar, buffer) for bar, buffer in zip(bars, self.outputs, strict=True)]
        dots = [
            _of_bar(None if bar is None else bar.tangent, buffer)
            for bar, buffer in zip(bars, self.outputs, strict=True)
        ]
        cleared = [of(buffer) for buffer in self.clears]
        for bar in [*bars, *cleared]:
            for one in (bar, None if bar is None else bar.tangent):
                if one is not None:
                    numbers(one)[...] = 0
        if not any(one.any() for one in (*given, *dots)):
            return
        made = sweep.adjoints.made
        # In a loop that is run again, a step creates new arrays.
        targets = [made(b) if yes else None for b, yes in zip(self.inputs, followed, strict=True)]
        _accumulate(targets, self.rule.adjoints(given))
        if second:
            pushed = [np.zeros(one.size) for one in map(_vector, self.inputs)] if tangents is None else tangents[0]
            found = self.rule.adjoint_tangents(pushed, given, dots)
            _accumulate([None if bar is None else bar.tangent for bar in targets], found)


def _zeros(like: Field) -> Field:
    """A zero array with the size of a field."""
    made = stand_in(np.zeros(numbers(like.buffer).shape), needs_dual=True)
    made.grad.ensure_dual()
    return made


def _accumulate(targets: Sequence[Buffer | None], found: Arrays) -> None:
    for target, one in zip(targets, found, strict=True):
        if target is not None:
            array = numbers(target)
            array += one.reshape(array.shape).astype(array.dtype)


def _vector(buffer: Buffer) -> Array:
    return numbers(buffer).astype(np.float64).ravel()


def _of_bar(bar: Buffer | None, buffer: Buffer) -> Array:
    return np.zeros(numbers(buffer).size) if bar is None else _vector(bar)
