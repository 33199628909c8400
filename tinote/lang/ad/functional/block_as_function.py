"""A tape, or a block in forward mode, inside of a recording that is differentiated itself.

    with ti.ad.Tape(total):
        with ti.ad.Tape(cost):
            with ti.ad.Tape(energy):
                potential()             # x.grad becomes the gradient of the energy
            push()                      # reads it
        measure()                       # reads the gradient of the cost

Two derivatives are taken of the gradients that the inner tape computes. What it has recorded is a function then, whose
derivative is that of `ti.ad.grad`, or of `ti.ad.jvp`, in any recording (`nesting.py`). So at the end of the block
memory is again what it was at the start, that function runs in the recording around it, and what it gives is written to
the gradients or duals of fields: they are values there, with tangents and adjoints of their own.

Derivatives of several levels share memory and never meet. Before the sweep of a recording begins, gradients are again
what they were before the first block inside of it (`Journal.companions_before`). Where the duals of fields hold the
tangents of the recording around, those that are values lie elsewhere (`Journal.duals_apart`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.again import (
    Again,
    companions_are_values,
    keep_gradients_apart,
    leaving_value,
)
from tinote.lang.ad.functional.forward_mode import direction_of
from tinote.lang.ad.functional.higher_order import pushed_fields
from tinote.lang.ad.functional.inputs import DifferentiatedFunction, shape_of
from tinote.lang.ad.functional.nested import Inner, Stretch
from tinote.lang.ad.functional.nesting import inside, refuse_capture
from tinote.lang.ad.functional.pushed_mode import PushedMode, base_of, lifts_of
from tinote.lang.ad.functional.second_order import give_gradients_duals, inner_trace
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.values import held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import note_python_write, recorder, session
from tinote.source import Span, caller


class _InnerBlock(Inner):
    """The derivative of what a block has recorded, which takes these numbers from outside."""

    def __init__(
        self, what: str, task: DifferentiatedFunction, numbers: tuple[Traced, ...], span: Span, directions: Any = None
    ) -> None:
        super().__init__(task, numbers, {}, directions=directions)
        self.span = task.span = span
        self._what = what

    @property
    def name(self) -> str:
        return self._what


class _BlockAsFunction:
    """What a block, opened at `span`, is to the recording `outer`, or to the block of pushforwards."""

    what: str

    def __init__(self, outer: Journal | PushedMode, span: Span) -> None:
        refuse_capture(f"{self.what} inside of two other derivatives")
        self._outer = outer
        self._span = span
        self._stretch = Stretch(keeps=True)
        self._listening: AbstractContextManager[None] | None = None
        self._launches = 0

    def _begin(self, journal: Journal) -> None:
        """The block is recorded from now on."""
        journal.will_run_again()
        self._launches = session.launches
        listening = self._stretch.listening()
        listening.__enter__()
        self._listening = listening

    def stop(self) -> None:
        """It is not any more, if it was."""
        listening, self._listening = self._listening, None
        if listening is not None:
            listening.__exit__(None, None, None)

    def refuse(self, custom: Custom) -> NoReturn:
        """Raise for a stretch with a gradient of its own in the block."""
        raise DifferentiationError(
            f"'{custom.name}' cannot run in {self.what} inside of two other derivatives: it cannot be run again",
            custom.span,
            notes=[Note(f"this is {self.what}", self._span), *self._outer.opened_notes()],
        )

    def _differentiated(
        self, journal: Journal, derivative: Callable[[Callable[..., None], tuple[Traced, ...]], Any]
    ) -> Any:
        """What `derivative` gives of what was recorded as a function, and of the numbers that it takes from outside, in
        the recording around.
        """
        self._stretch.read_by_python(journal)
        again = Again(journal, self._outer.trace)
        numbers = tuple(journal.trace.taken_in.values())
        self._stretch.start.put_back()
        journal.take_gradients_back()
        again.initialise(self._outer)

        def function(*now: Traced) -> None:
            present = recorder.get()
            assert present is not None
            given = {before.number: one for before, one in zip(numbers, now, strict=True)}
            again.run(present, given=given, initialises=False)

        launches, session.launches = session.launches, self._launches
        try:
            return derivative(function, numbers)
        finally:
            session.launches = launches

    def _leave(self, companion: Field, value: Any) -> None:
        """A gradient or dual becomes this value: a number, or what an array holds."""
        with leaving_value(self._outer, companion.buffer) as held:
            if isinstance(value, Field):
                note_python_write(companion.buffer, ..., None, value.buffer)
                hold(held, held_now(value.buffer))
            else:
                note_python_write(companion.buffer, ..., value)
                hold(held, value)


class TapeAsFunction(_BlockAsFunction):
    """A `tape`."""

    what = "the tape"

    def __init__(self, tape: Journal, outer: Journal | PushedMode, loss: Field, span: Span, *, clears: bool) -> None:
        super().__init__(outer, span)
        if not clears:
            raise DifferentiationError(
                "a tape inside of two other derivatives sets gradients to zero at its start",
                span,
                hint="leave clear_gradients=False out",
                notes=outer.opened_notes(),
            )
        self._tape = tape
        self._loss = loss

    def enter(self) -> None:
        """Before the tape changes anything."""
        give_gradients_duals()
        keep_gradients_apart(self._outer)

    def start(self) -> None:
        """The tape records from now on."""
        self._begin(self._tape)

    def leave(self) -> None:
        """It ends: its gradients are computed."""
        tape, outer = self._tape, self._outer
        changed = tape.changed_gradients() - {self._loss.grad.buffer}
        known = [f for f in list(session.fields) if f.buffer.primal is None and f.has_grad]
        fields = [field for field in known if field.grad.buffer in changed]

        def derivative(function: Callable[..., None], numbers: tuple[Traced, ...]) -> list[Any]:
            task = DifferentiatedFunction("Tape", function, fields, self._loss)
            return inside(outer, _InnerBlock(self.what, task, numbers, self._span))[1]

        found = self._differentiated(tape, derivative) if fields else []
        have_values = self._have_values()
        companions_are_values(outer, [field.grad.buffer for field in known], self._span)
        for field, gradient in zip(fields, found, strict=True):
            self._leave(field.grad, gradient)
        for field in known:
            if field is self._loss:
                self._leave(field.grad, 1.0)
            elif field not in fields and field.grad.buffer in have_values:
                self._leave(field.grad, 0.0)

    def _have_values(self) -> set[Buffer]:
        """The gradients that hold what an earlier tape has computed."""
        base = base_of(self._outer)
        found = set(base.active) if isinstance(base, Journal) else set()
        return found.union(*[block.values for block in lifts_of(self._outer)])


class ForwardAsFunction(_BlockAsFunction):
    """A block in forward mode, along the directions `seeds` of `params`."""

    what = "the block"

    def __init__(
        self, outer: Journal | PushedMode, losses: list[Field], params: list[Field], seeds: Sequence[Any]
    ) -> None:
        super().__init__(outer, caller())
        self._losses = losses
        self._params = params
        self._seeds = [
            np.reshape(direction_of(field, seed), shape_of(field)) for field, seed in zip(params, seeds, strict=True)
        ]
        self._journal = Journal(saves=False, trace=inner_trace(outer))
        self._journal.opened = self._span
        self._journal.opened_within = outer.opened_notes()
        self._journal.takes_custom = False

    def enter(self) -> None:
        """The block begins."""
        give_gradients_duals()
        keep_gradients_apart(self._outer)
        try:
            self._begin(self._journal)
            self._journal.start()
        except BaseException:  # an interrupt
            self.end()
            raise

    def end(self) -> None:
        """Nothing of it is recorded any longer."""
        try:
            self._journal.stop()
        finally:
            self.stop()

    def leave(self, *, completed: bool) -> None:
        """The block ends: the duals of the losses are computed, if it has `completed`."""
        journal, outer = self._journal, self._outer
        self.end()
        try:
            if not completed:
                return
            journal.lost_values()
            for event in journal.events:
                if isinstance(event, Custom) and event.again is None:
                    self.refuse(event)
            found = self._differentiated(journal, self._pushed)
        finally:
            journal.forget()
        companions_are_values(outer, [field.dual.buffer for field in self._losses], self._span)
        for field, product in zip(self._losses, found, strict=True):
            self._leave(field.dual, product)

    def _pushed(self, function: Callable[..., None], numbers: tuple[Traced, ...]) -> list[Any]:
        task = DifferentiatedFunction("FwdMode", function, self._params, None)
        inner = _InnerBlock(self.what, task, numbers, self._span, directions=self._seeds)
        return pushed_fields(self._outer, inner, self._losses)
