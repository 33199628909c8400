"""A tape inside of another recording: its gradients are values there, with derivatives of their own.

    with ti.ad.Tape(cost):
        for _ in range(20):
            with ti.ad.Tape(energy):
                potential()             # x.grad becomes the gradient of the energy
            push()                      # reads it
        measure()
    # x.grad is the gradient of the cost

For a recording in reverse mode, the tape is one record: it writes gradients, as a kernel writes fields, and its readers
propagate adjoints to these gradients. Let g be the gradients that the tape computes. For the adjoint w of g, its
launches run again along w as the direction, and their reverse sweep carries tangents, as for `ti.ad.grad` inside of
another one (`inner_gradient.py`): the tangent of g along w is the gradient of w · g.

Inside of two recordings, its recorded events are treated as a function, whose derivative is that of `ti.ad.grad` in any
recording (`inner_derivative.py`). So at the end of the block memory is restored to its start, that function runs in the
outer recording, and its results are written to the gradients of fields.

Derivatives of several levels share memory, but not at the same time: each launch that reads results of the tape saves a
copy; when the sweep of the outer recording begins, gradients have their contents from before the first inner tape
(`Journal.shadows_before`). Where the duals of fields hold the tangents of the outer recording, those that are values
are stored elsewhere (`Journal.duals_apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.again import (
    Again,
    agree,
    keep_gradients_apart,
    leave_value,
    refuse_other_again,
    shadows_are_values,
)
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.inner import Inner, duals_apart, swept_apart
from tinote.lang.ad.functional.inner_derivative import inside, refuse_capture
from tinote.lang.ad.functional.inputs import DifferentiatedFunction
from tinote.lang.ad.functional.pushed_mode import PushedMode, is_tangent_field, shadows_with_values
from tinote.lang.ad.functional.symmetry import (
    Symmetry,
    custom_calls,
    have_gradients,
    is_to_be_tried,
    tangents_of_gradients,
)
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, Write
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.touched_gradients import give_gradients_duals
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now, hold, store
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.data.traced_derivatives import Dual
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
        give_gradients_duals()  # launches that are run again along a direction have the arrays with all of these
        keep_gradients_apart(self._outer)

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


def tape_inside(tape: Journal, outer: Journal | PushedMode, loss: Field, span: Span, *, clears: bool) -> TapeInside:
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
        fields = [] if self._clears else [f for f in list(session.fields) if f.buffer.primal is None and f.has_grad]
        #: the gradients before the tape, where it adds to them
        self._before = {field.grad.buffer: np.array(numbers(field.grad.buffer)) for field in fields}

    def leave(self, sweep: Callable[[], None]) -> None:
        self._launches = session.launches
        with independent_recordings():
            self._take_over()
            with self._effects.listening():
                sweep()
        self._add()

    def _take_over(self) -> None:
        """Let the outer recording claim gradients of another owner that the tape uses."""
        shadows = self._tape.shadows
        others = claim(shadows, clear=self._outer.clear_gradients)
        if others:
            assert self._outer.shadows_before is not None
            self._outer.shadows_before.keep({gradient: memory_of(gradient) for gradient in others})
            for gradient in others if self._clears else ():
                memory_of(gradient).clear()

    def _add(self) -> None:
        """Add the record, once its gradients are computed."""
        tape, outer, effects = self._tape, self._outer, self._effects
        effects.read_by_python(tape)
        self._gradients = sorted(tape.changed_gradients() | {self._loss.grad.buffer}, key=lambda b: b.name)
        self._again = Again(tape, outer.trace)
        self._numbers = frozenset(tape.trace.taken_in)
        results = [g for g in self._gradients if g is not self._loss.grad.buffer] if custom_calls(tape.events) else []
        self._found = {gradient: numbers(gradient) - self._before.get(gradient, 0.0) for gradient in results}
        every = {f.grad.buffer for f in list(session.fields) if f.buffer.primal is None and f.has_grad}
        custom = Custom(
            "the tape",
            self._span,
            self._pull,
            loaded=effects.loaded,
            written=effects.written,
            fully_overwritten=(effects.filled & effects.written) | (every if self._clears else set()),
            gradient_tasks=tuple([task for event in tape.records for task in event.gradient_tasks]),
            release=self._release,
            sources=self._numbers,
            kept_bytes=effects.start.nbytes,
        )
        outer.custom(custom)
        for buffer in every:
            outer.has_values(buffer, self._span)

    def _release(self) -> None:
        self._effects.start = MemoryCopies()
        self._tape.runs_again = False
        self._again.close()

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record."""
        effects = self._effects
        directions: dict[Buffer, Array] = {}
        for gradient in self._gradients:
            adjoint = sweep.temporaries.of(gradient)
            if adjoint is not None and gradient.primal is not None:
                directions[gradient.primal] = held_now(adjoint)
        if self._clears:
            directions.pop(self._loss.buffer, None)
        give_gradients_duals()
        for buffer in effects.written:
            sweep.overwriting(buffer)
        symmetry: Symmetry | None = None
        with self._runs_again(directions) as journal:
            customs = custom_calls(journal.events)
            if is_to_be_tried(customs, directions.values()):
                symmetry = Symmetry(customs, list(directions.values()))
                self._look(symmetry, journal)
            seeds = {gradient: np.zeros(()) for gradient in self._gradients}
            leave_tangents(journal, {**seeds, self._loss.grad.buffer: np.ones(())}, sweep)
        if symmetry is not None:
            self._require(symmetry, directions)

    @contextmanager
    def _runs_again(
        self, directions: Mapping[Buffer, Array], along: Mapping[int, float] | None = None
    ) -> Iterator[Journal]:
        """A block in which the launches have run again, along directions of fields, and of numbers from outside."""
        self._effects.start.put_back()
        journal = Journal(trace=self._outer.trace.inner(), tangents=True)
        journal.opened, journal.opened_within = self._span, self._outer.opened_notes()
        journal.depth = self._tape.depth
        launches = session.launches
        try:
            with duals_apart(None):
                run_again(self._again, journal, directions, along)
                session.launches = self._launches  # custom gradients draw the same
                yield journal
        finally:
            session.launches = launches
            journal.forget()

    # ---- where functions have gradients of their own

    def _look(self, symmetry: Symmetry, journal: Journal) -> None:
        """The results of a sweep through the run along the weights, for fields and for numbers from outside."""
        with self._swept_apart(journal) as sweep:
            symmetry.found = tangents_of_gradients(have_gradients(self._effects.loaded))
            for number in sorted(self._numbers):
                adjoint = sweep.adjoints.get(number)
                symmetry.found.append(0.0 if adjoint is None else adjoint.tangent)

    def _require(self, symmetry: Symmetry, weights: Mapping[Buffer, Array]) -> None:
        """Run along another direction, and compare."""
        fields = have_gradients(self._effects.loaded)
        directions = {buffer: symmetry.direction(numbers(buffer)) for buffer in fields}
        along = {number: symmetry.direction(0.0).item() for number in sorted(self._numbers)}
        with self._runs_again(directions, along) as journal, self._swept_apart(journal):
            for buffer, found in self._found.items():
                if not agree(numbers(buffer), found):
                    refuse_other_again(*symmetry.customs[0])
            gradients = [buffer.adjoint for buffer in weights]
            moved = [np.array(numbers(one.tangent)) for one in gradients if one is not None and one.tangent is not None]
        symmetry.require(moved, Note("this is the inner derivative", self._span), self._outer.opened_notes())

    def _swept_apart(self, journal: Journal) -> AbstractContextManager[Sweep]:
        """A sweep from the loss."""
        gradient = self._loss.grad.buffer
        return swept_apart(journal, journal.changed_gradients() | {gradient}, lambda _: hold(gradient, 1.0))


def run_again(
    again: Again, journal: Journal, directions: Mapping[Buffer, Array], along: Mapping[int, float] | None = None
) -> None:
    """Run the recorded events again, along these directions of the fields' initial contents, and `along` those of
    numbers from outside.
    """
    for buffer, direction in directions.items():
        assert buffer.tangent is not None
        hold(buffer.tangent, direction)
    with journal.recording():
        again.run(journal, directions, along or {})
    journal.lost_values()
    journal.take_gradients_back()


def leave_tangents(journal: Journal, seeds: Mapping[Buffer, Array], outer: CustomSweep) -> None:
    """Run a reverse sweep that starts with adjoints `seeds`, of gradients, and has those of later operations as
    tangents: the resulting tangents become the adjoints of the outer sweep.
    """
    touched = journal.changed_gradients() | set(seeds)
    for gradient in touched:
        assert gradient.tangent is not None
        hold(gradient.tangent, held_now(gradient))
        hold(gradient, seeds.get(gradient, 0.0))
    sweep = journal.sweep()
    sweep.run()
    for gradient in touched:
        assert gradient.tangent is not None
        hold(gradient, held_now(gradient.tangent))
    for event in reversed(journal.events):
        if isinstance(event, Write) and event.initialises and event.target.adjoint is not None:
            store(event.target.adjoint, event.position, 0.0)
    for number in journal.trace.taken_in:
        found = sweep.adjoints.pop(number, None)
        if found is not None:
            outer.add(number, Dual(found.tangent))


class _InnerTape(Inner):
    """The derivative of a tape's recorded events, which take these numbers from outside."""

    def __init__(self, task: DifferentiatedFunction, numbers: tuple[Traced, ...], span: Span) -> None:
        super().__init__(task, numbers, {})
        self.span = task.span = span

    @property
    def name(self) -> str:
        return "the tape"


class _TapeAsFunction(TapeInside):
    """The tape as a function that runs again, in the recording `outer` or in a block of pushforwards."""

    def __init__(self, tape: Journal, outer: Journal | PushedMode, loss: Field, span: Span, *, clears: bool) -> None:
        refuse_capture("the tape inside of two other derivatives")
        if not clears:
            raise DifferentiationError(
                "a tape inside of two other derivatives sets gradients to zero at its start",
                span,
                hint="leave clear_gradients=False out",
                notes=outer.opened_notes(),
            )
        super().__init__(tape, outer, loss, span, clears=clears)

    def leave(self, sweep: Callable[[], None]) -> None:
        tape, outer = self._tape, self._outer
        tape.lost_values()
        changed = tape.changed_gradients() - {self._loss.grad.buffer}
        known = [f for f in list(session.fields) if f.buffer.primal is None and f.has_grad and not is_tangent_field(f)]
        fields = [field for field in known if field.grad.buffer in changed]
        found = self._gradients(fields) if fields else []
        have_values = shadows_with_values(outer)
        shadows_are_values(outer, [field.grad.buffer for field in known], self._span)
        for field, gradient in zip(fields, found, strict=True):
            leave_value(outer, field.grad.buffer, gradient)
        for field in known:
            if field is self._loss:
                leave_value(outer, field.grad.buffer, 1.0)
            elif field not in fields and field.grad.buffer in have_values:
                leave_value(outer, field.grad.buffer, 0.0)

    def _gradients(self, fields: list[Field]) -> list[Any]:
        """The gradients by these fields of the recorded function, and by its numbers from outside, in the outer
        recording.
        """
        tape, outer = self._tape, self._outer
        self._effects.read_by_python(tape)
        again = Again(tape, outer.trace)
        numbers = tuple(tape.trace.taken_in.values())
        self._effects.start.put_back()
        tape.take_gradients_back()
        again.initialise(outer)

        def function(*now: Traced) -> None:
            present = recorder.get()
            assert present is not None
            given = {before.number: one for before, one in zip(numbers, now, strict=True)}
            again.run(present, given=given, initialises=False)

        task = DifferentiatedFunction("Tape", function, fields, self._loss)
        launches, session.launches = session.launches, self._launches
        try:
            return inside(outer, _InnerTape(task, numbers, self._span))[1]
        finally:
            session.launches = launches
