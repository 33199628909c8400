"""Nested tapes: a tape inside another recording, where its gradients are values with derivatives.

    with ti.ad.Tape(cost):
        for _ in range(20):
            with ti.ad.Tape(energy):
                potential()             # x.grad becomes the gradient of the energy
            push()                      # reads it
        measure()
    # x.grad is the gradient of the cost

For a recording in reverse mode, the tape is one record: it writes gradients, as a kernel writes fields, and its readers
propagate adjoints to these gradients. For these its launches run again, as for `ti.ad.grad` inside of another one
(`inner_gradient.py`).

Inside of two recordings, its recorded events are treated as a function, whose derivative is that of `ti.ad.grad` in any
recording (`inner_derivative.py`). So at the end of the block memory is restored to its start, that function runs in the
outer recording, and its results are written to the gradients of fields.

Derivatives of several levels share memory, but not at the same time: each launch that reads results of the tape saves a
copy; when the sweep of the outer recording begins, gradients have their contents from before the first inner tape
(`Journal.shadows_before`). Where the duals of fields hold the tangents of the outer recording, those that are values
are stored elsewhere (`Journal.duals_apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects, leave_value, note_values
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.inner import Inner
from tinote.lang.ad.functional.inner_derivative import contents_of, inside, refuse_capture
from tinote.lang.ad.functional.inner_gradient import GradientPart, InnerGradient
from tinote.lang.ad.functional.inputs import DifferentiatedFunction, shape_of
from tinote.lang.ad.functional.runs import Emission
from tinote.lang.ad.functional.tangent_fields import is_tangent_field
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.touched_gradients import changed_gradients, fields_with_gradients, give_gradients_duals
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import accumulate, as_array, held_now
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced
from tinote.lang.session.owners import claim
from tinote.lang.session.state import independent_recordings, memory_of, recorder, session
from tinote.runtime.memory import MemoryCopies
from tinote.source import Span

Array = np.ndarray[Any, Any]


class TapeInside:
    """The `tape`, opened at `span`, as a part of the recording `outer`."""

    def __init__(self, tape: Journal, outer: Any, loss: Field, span: Span, *, clears: bool) -> None:
        self._tape = tape
        self._outer = outer
        self._loss = loss
        self._span = span
        self._clears = clears
        self._effects = Effects(keeps=True)
        self._launches = 0

    def enter(self) -> None:
        """Before the tape changes anything."""
        self._outer.keep_gradients_apart()

    def start(self) -> None:
        """Begin the tape's recording."""
        self._tape.will_run_again()
        self._launches = session.launches
        self._effects.begin()

    def stop(self) -> None:
        """End the tape's recording, if it has begun."""
        self._effects.end()

    def refuse(self, custom: Custom) -> NoReturn:
        """Raise for a block with a custom gradient in the tape."""
        raise DifferentiationError(
            f"'{custom.name}' cannot run in a tape inside of another recording: it cannot be run again",
            custom.span,
            notes=[Note("this is the tape", self._span), *self._outer.opened_notes()],
        )

    def leave(self, sweep: Callable[[], None]) -> None:
        """End the tape and compute its gradients; `sweep` computes them alone."""
        raise NotImplementedError


def tape_inside(tape: Journal, outer: Journal | Forward, loss: Field, span: Span, *, clears: bool) -> TapeInside:
    """The `tape`, opened at `span`, as a part of the recording `outer`. `clears`: it sets gradients to zero at its
    start.
    """
    is_record = isinstance(outer, Journal) and not outer.is_differentiated
    return (_RecordedTape if is_record else _TapeAsFunction)(tape, outer, loss, span, clears=clears)


class _RecordedTape(TapeInside):
    """The tape as a record of a recording in reverse mode."""

    _outer: Journal

    def enter(self) -> None:
        super().enter()
        fields = [] if self._clears else fields_with_gradients()
        #: the gradients before the tape, where it adds to them
        self._before = {field.grad.buffer: np.array(numbers(field.grad.buffer)) for field in fields}

    def leave(self, sweep: Callable[[], None]) -> None:
        self._launches = session.launches
        with independent_recordings():
            self._take_over()
            with self._effects.listening():
                sweep()
        self._effects.read_by_python(self._tape)
        gradient = _TapeGradient(self._tape, self._outer, self._loss, self._effects, self._before, self._span)
        gradient.add(self._launches, clears=self._clears)

    def _take_over(self) -> None:
        """Let the outer recording claim gradients of another owner that the tape uses."""
        shadows = self._tape.shadows
        others = claim(shadows, clear=self._outer.clear_gradients)
        if others:
            assert self._outer.shadows_before is not None
            self._outer.shadows_before.keep({gradient: memory_of(gradient) for gradient in others})
            for gradient in others if self._clears else ():
                memory_of(gradient).clear()


class _InnerTape(Inner):
    """The derivative of a tape's recorded events, which take these numbers from outside. `before`: the gradients of
    fields from before, where the tape adds to them.
    """

    def __init__(
        self,
        task: DifferentiatedFunction,
        numbers: tuple[Traced, ...],
        span: Span,
        before: Mapping[Field, Any] | None = None,
    ) -> None:
        super().__init__(task, numbers, {})
        self.span = task.span = span
        self._before = before or {}

    @property
    def name(self) -> str:
        return "the tape"

    @property
    def seeds(self) -> list[tuple[Any, tuple[int, ...]]]:
        return [*super().seeds, *[(given, shape_of(field)) for field, given in self._before.items()]]

    def results(self, returned: Any, trace: Trace) -> list[Any]:
        return [*super().results(returned, trace), *self._before]


class _TapeGradient(InnerGradient):
    """The gradients of a recorded `tape`, in those of fields: a part of `outer`. `before`: what they held, where the
    tape adds to them.
    """

    recording: Journal

    def __init__(
        self, tape: Journal, outer: Journal, loss: Field, effects: Effects, before: Mapping[Buffer, Array], span: Span
    ) -> None:
        self._program = Emission(tape)
        super().__init__(outer, _InnerTape(DifferentiatedFunction("Tape", self._program.run, loss, loss), (), span))
        self._tape = tape
        self._effects = effects
        self._taken = dict(tape.trace.taken_in)
        self._touched = changed_gradients(tape.events) | {loss.grad.buffer}
        #: the fields of the gradients that are results
        self._fields = sorted(
            [f for f in fields_with_gradients() if f.grad.buffer in self._touched], key=lambda f: f.name
        )
        #: the sweep starts with what gradients hold
        self._added = [field for field in self._fields if field.grad.buffer in before and field is not loss]
        self._results = [loss, *self._added]
        self._starts = [
            GradientPart(np.ones(shape_of(loss))),
            *[GradientPart(before[field.grad.buffer]) for field in self._added],
        ]

    def add(self, launches: int, *, clears: bool) -> None:
        """Add the record. `launches`: how many random ones there were before the sweep."""
        effects, self._launches, self._clears = self._effects, launches, clears
        every = {field.grad.buffer for field in fields_with_gradients()}
        self.recording.custom(
            Custom(
                self.inner.name,
                self.inner.span,
                self._pull,
                BlockEffects(
                    effects.loaded, effects.written, (effects.filled & effects.written) | (every if clears else set())
                ),
                reads_active=None if clears else lambda _: {field.grad.buffer for field in self._added},
                gradient_tasks=tuple([task for event in self._tape.records for task in event.gradient_tasks]),
                release=self._release,
                sources=frozenset(self._taken),
                kept_bytes=effects.start.nbytes,
            )
        )
        self.recording.has_values(every, self.inner.span)

    def _release(self) -> None:
        self._effects.start = MemoryCopies()
        self._program.close()
        self._fields, self._added, self._results = [], [], []

    def _adjoints(self, sweep: CustomSweep) -> tuple[list[GradientPart], list[GradientPart]]:
        loss = self._results[0]
        adjoints = {f: sweep.adjoints.of(f.grad.buffer) for f in self._fields if not (self._clears and f is loss)}
        self._inputs = [field for field, adjoint in adjoints.items() if adjoint is not None]
        self._given = [GradientPart(None, field=field) for field in self._inputs]
        found = [GradientPart(held_now(adjoint)) for adjoint in adjoints.values() if adjoint is not None]
        for adjoint in adjoints.values() if self._added else ():
            if adjoint is not None:
                memory_of(adjoint).clear()
        return [GradientPart(np.zeros(shape_of(one))) for one in self._results], found

    def _add_products(self, outer: CustomSweep, products: Sequence[GradientPart]) -> None:
        for field, product in zip(self._added, products[1:], strict=True):
            if (adjoint := outer.adjoints.made(field.grad.buffer)) is not None:
                accumulate(adjoint, as_array(product.value))


class _TapeAsFunction(TapeInside):
    """The tape as a function that runs again, in the recording `outer` or in a block of pushforwards."""

    def __init__(self, tape: Journal, outer: Journal | Forward, loss: Field, span: Span, *, clears: bool) -> None:
        refuse_capture("the tape inside of two other derivatives")
        super().__init__(tape, outer, loss, span, clears=clears)
        give_gradients_duals()  # where the outer recording carries tangents, arrays are launched with them

    def leave(self, sweep: Callable[[], None]) -> None:
        tape, outer = self._tape, self._outer
        tape.lost_values()
        changed = changed_gradients(tape.events) - {self._loss.grad.buffer}
        known = [field for field in fields_with_gradients() if not is_tangent_field(field)]
        fields = [field for field in known if field.grad.buffer in changed]
        found = self._gradients(fields) if fields else []
        have_values = outer.shadows_with_values
        note_values(outer, [field.grad.buffer for field in known], self._span)
        for field, gradient in zip(fields, found, strict=True):
            leave_value(outer, field.grad.buffer, gradient)
        for field in known:
            if field is self._loss:
                leave_value(outer, field.grad.buffer, 1.0)
            elif self._clears and field not in fields and field.grad.buffer in have_values:
                leave_value(outer, field.grad.buffer, 0.0)

    def _gradients(self, fields: list[Field]) -> list[Any]:
        """The gradients by these fields of the recorded function, and by its numbers from outside, in the outer
        recording.
        """
        tape, outer = self._tape, self._outer
        self._effects.read_by_python(tape)
        again = Emission(tape)
        numbers = tuple(tape.trace.taken_in.values())
        self._effects.start.put_back()
        tape.take_gradients_back()
        again.initialise(outer)
        before = {} if self._clears else {field: contents_of(field.grad) for field in fields}

        def function(*now: Traced) -> None:
            present = recorder.get()
            assert present is not None
            given = {before.number: one for before, one in zip(numbers, now, strict=True)}
            again.run(present, given)

        task = DifferentiatedFunction("Tape", function, fields, self._loss)
        inner = _InnerTape(task, numbers, self._span, before)
        launches, session.launches = session.launches, self._launches
        try:
            return inside(outer, inner)[1]
        finally:
            session.launches = launches
