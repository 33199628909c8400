"""Computations on whole arrays that have derivatives of their own, such as the solution of a linear system.

An operation reads fields and gives others new values, by way of NumPy. What it needs for its derivatives it keeps
itself (the factorisation, the solution), so that nothing of what later launches overwrite is kept for it. On a journal
it is one record; in forward mode it pushes tangents forward; at second order it does both, and its reverse has tangents
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, NumberOf
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import as_stored
from tinote.lang.data.ndarrays import stand_in
from tinote.lang.session.state import note_python_write, recorder
from tinote.runtime.seam import heard
from tinote.source import Span

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class RunOperation(Protocol):
    """Runs a further operation, whose only output is `target`, by default an array of its own. Gives that."""

    def __call__(self, rule: Rule, inputs: Sequence[Field], target: Field | None = None) -> Field: ...


class Rule(Protocol):
    """What an operation computes, and its derivatives. All arrays are vectors of f64, one for each input or output, in
    which numbers count row by row. `values` is called first, and the rule keeps of it what the others need.
    """

    def values(self, inputs: Arrays) -> Arrays:
        """What the outputs get."""
        ...

    def tangents(self, tangents: Arrays) -> Arrays:
        """The tangents of the outputs, of those of the inputs."""
        ...

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """What the adjoints of the inputs grow by, of those of the outputs."""
        ...

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """The tangents of what `adjoints` gives, along those of the inputs, and those of the outputs' adjoints."""
        ...

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """Compute the tangents of the only output, in `target`, by operations, of what the inputs and the output hold
        and of those of the inputs.
        """
        ...


class Computation:
    """An operation that is asked for: `rule` computes `outputs` of `inputs`. `clears`: of the inputs, those whose
    elements are zero afterwards. `name` and `span`: for errors and pictures of tapes.
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
        self._fields = inputs, outputs, clears  # whose memory has to stay
        self.inputs = [field.buffer for field in inputs]
        self.outputs = [field.buffer for field in outputs]
        self.clears = [field.buffer for field in clears]
        self.name = name
        self.span = span

    @property
    def written(self) -> list[Buffer]:
        """All that gets new values."""
        return [*self.outputs, *self.clears]

    def run(self) -> None:
        """Compute, and say what is about to be done to memory."""
        listener = heard()
        if listener is not None:
            listener.taking(f"{self.name}, whose work is not a launch")
        found = recorder.get()
        if found is None:
            self.compute()
        else:
            found.computing(self)

    def values(self) -> Arrays:
        """What the outputs will get."""
        return self.rule.values([_vector(buffer) for buffer in self.inputs])

    def compute(self) -> None:
        """Compute with nobody who differentiates, as Python that writes to fields."""
        values = self.values()
        for buffer in self.written:
            note_python_write(buffer)
        self.store(values)

    def store(self, values: Arrays) -> None:
        """Give the outputs their values."""
        for buffer, value in zip(self.outputs, values, strict=True):
            array = numbers(buffer)
            array[...] = as_stored(value.reshape(array.shape), buffer.dtype)
        for buffer in self.clears:
            numbers(buffer)[...] = 0

    def push(self, tangents: Sequence[Buffer | None], targets: Sequence[Buffer | None]) -> tuple[Arrays, Arrays]:
        """Compute the tangents of the outputs, in `targets`, of those of the inputs. Gives both along one direction."""
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

    def push_further(self, tangents: Callable[[Buffer], Field | None]) -> None:
        """Compute the tangents of the outputs by further operations, which have derivatives as every one has.
        `tangents`: the field with those of another one; None where that is constant.
        """
        inputs, outputs, clears = self._fields
        given = [tangents(field.buffer) or _zeros(field) for field in inputs]
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
        """The record on a journal, which finds all that it needs in itself. `followed`: which inputs have an adjoint,
        of their own or a temporary one; `tangents`: of inputs and outputs, at second order.
        """

        def reads_active(reached: set[Buffer]) -> set[Buffer]:
            if any(buffer.adjoint is not None or buffer in reached for buffer in self.outputs):
                return {buffer for buffer in self.inputs if buffer.adjoint is None and not buffer.no_adjoint}
            return set()

        return Custom(
            self.name,
            self.span,
            lambda sweep: self._reverse(sweep, followed, tangents),
            loaded=set(self.inputs),
            written=set(self.written),
            fully_overwritten=set(self.written) - set(self.inputs),
            lost={},
            reads_active=reads_active,
            needs_fields=False,
            carries_tangents=True,
            again=self._again,
            gradients=frozenset([b.adjoint for b in (*self.inputs, *self.written) if b.adjoint is not None]),
        )

    def _again(self, recorder: Any, of: NumberOf) -> dict[int, Any]:
        recorder.computing(self)
        return {}

    def _reverse(self, sweep: CustomSweep, followed: Sequence[bool], tangents: tuple[Arrays, Arrays] | None) -> None:
        of = sweep.temporaries.of
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
        made = sweep.temporaries.made
        # In a loop that is run again, arrays that a step makes are others than they were when it first ran.
        targets = [made(b) if yes else None for b, yes in zip(self.inputs, followed, strict=True)]
        _accumulate(targets, self.rule.adjoints(given))
        if second:
            pushed = [np.zeros(one.size) for one in map(_vector, self.inputs)] if tangents is None else tangents[0]
            found = self.rule.adjoint_tangents(pushed, given, dots)
            _accumulate([None if bar is None else bar.tangent for bar in targets], found)


def _zeros(like: Field) -> Field:
    """An array of as many numbers as a field has."""
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
