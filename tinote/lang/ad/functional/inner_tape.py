"""A tape inside another recording in reverse mode.

    with ti.ad.Tape(cost):
        for _ in range(20):
            with ti.ad.Tape(energy):
                potential()             # x.grad becomes the gradient of the energy
            push()                      # reads it
        measure()
    # x.grad is the gradient of the cost

For the outer recording, the tape is one record: it writes gradients, as a kernel writes fields, and its readers
propagate adjoints to these gradients. Let g be the gradients that the tape computes. For the adjoint w of g, its
launches run again along w as the direction, and their reverse sweep carries tangents, as for `ti.ad.grad` inside of
another one (`nested.py`): the tangent of g along w is the gradient of w · g.

The gradients of the two levels share memory, but not at the same time: the results of the tape are values, and each
launch that reads them saves a copy; when the sweep of the outer recording begins, gradients have their contents from
before the first inner tape (`Journal.shadows_before`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.again import Again, refuse_other_again
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.nested import add_adjoint, agree, duals_apart
from tinote.lang.ad.functional.second_order import SecondOrder, give_gradients_duals
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
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now, hold, store
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace
from tinote.lang.session.owners import claim
from tinote.lang.session.state import memory_of, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import unwinding
from tinote.source import Span

Array = np.ndarray[Any, Any]


class InnerTape:
    """The record of `tape`, opened at `span`, in the recording `outer`."""

    def __init__(self, tape: Journal, outer: Journal, loss: Field, span: Span, *, clears: bool) -> None:
        self._tape = tape
        self._outer = outer
        self._loss = loss
        self._span = span
        self._clears = clears
        self._effects = Effects(keeps=True)
        self._family: object = None
        self._gradients: list[Buffer] = []
        self._launches = 0
        #: the gradients before the tape, where it adds to them, and its results
        self._before: dict[Buffer, Array] = {}
        self._found: dict[Buffer, Array] = {}

    def enter(self) -> None:
        """Before the tape changes anything."""
        self._outer.may_change_gradients()
        give_gradients_duals()  # launches that are run again along a direction have the arrays with all of these
        self._outer.keep_gradients_apart()
        if not self._clears:
            gradients = [f.grad.buffer for f in list(session.fields) if f.buffer.primal is None and f.has_grad]
            self._before = {gradient: np.array(numbers(gradient)) for gradient in gradients}

    def start(self) -> None:
        """Begin the tape's recording."""
        self._family = self._tape.trace.family
        self._tape.will_run_again()
        self._effects.begin()

    @contextmanager
    def sweeping(self) -> Iterator[None]:
        """A block in which the tape is swept, and runs custom gradients."""
        self._launches = session.launches
        self._take_over()
        with self._effects.listening():
            yield

    def _take_over(self) -> None:
        """Let the outer recording claim gradients of another owner that the tape uses."""
        shadows = self._tape.shadows
        others = claim(shadows, clear=self._outer.clear_gradients)
        if others:
            assert self._outer.shadows_before is not None
            self._outer.shadows_before.keep({gradient: memory_of(gradient) for gradient in others})
            for gradient in others if self._clears else ():
                memory_of(gradient).clear()

    def stop(self) -> None:
        """End the tape's recording, if it has begun."""
        self._effects.end()

    def refuse(self, custom: Custom) -> NoReturn:
        """Raise for a block with a custom gradient in the tape."""
        notes = [] if self._outer.opened is None else [Note("it is inside of this", self._outer.opened)]
        raise DifferentiationError(
            f"'{custom.name}' cannot run in a tape inside of another recording: it cannot be run again",
            custom.span,
            notes=[Note("this is the tape", self._span), *notes],
        )

    def leave(self) -> None:
        """Add the record, once its gradients are computed."""
        tape, outer, effects = self._tape, self._outer, self._effects
        effects.read_by_python(tape)
        self._gradients = sorted(tape.changed_gradients() | {self._loss.grad.buffer}, key=lambda b: b.name)
        self._again = Again(tape, outer.trace)
        self._numbers = frozenset(tape.trace.taken_in)
        if custom_calls(tape.events):
            after = {g: np.array(numbers(g)) for g in self._gradients if g is not self._loss.grad.buffer}
            self._found = {g: one - self._before.get(g, 0.0) for g, one in after.items()}
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
    ) -> Iterator[SecondOrder]:
        """A block in which the launches have run again, along directions of fields, and of numbers from outside."""
        self._effects.start.put_back()
        journal = SecondOrder(trace=Trace(outer=self._outer.trace, family=self._family))
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

    def _look(self, symmetry: Symmetry, journal: SecondOrder) -> None:
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

    @contextmanager
    def _swept_apart(self, journal: SecondOrder) -> Iterator[Sweep]:
        """A block with the gradients and tangents that a sweep from the loss leaves."""
        touched = journal.changed_gradients() | {self._loss.grad.buffer}
        memories = [memory_of(one) for gradient in touched for one in (gradient, gradient.tangent) if one is not None]
        kept = MemoryCopies(memories)
        for memory in memories:
            memory.clear()
        numbers(self._loss.grad.buffer)[...] = 1
        launches = session.launches
        try:
            sweep = journal.sweep()
            sweep.run()
            yield sweep
        finally:
            session.launches = launches
            unwinding(kept.put_back)


def run_again(
    again: Again, journal: SecondOrder, directions: Mapping[Buffer, Array], along: Mapping[int, float] | None = None
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


def leave_tangents(journal: SecondOrder, seeds: Mapping[Buffer, Array], outer: CustomSweep) -> None:
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
            add_adjoint(outer, number, found.tangent)
