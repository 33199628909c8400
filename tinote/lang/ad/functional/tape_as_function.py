"""A tape inside a recording that is differentiated itself.

    with ti.ad.Tape(total):
        with ti.ad.Tape(cost):
            with ti.ad.Tape(energy):
                potential()             # x.grad becomes the gradient of the energy
            push()                      # reads it
        measure()                       # reads the gradient of the cost

Two derivatives are taken of the gradients that the inner tape computes. Its recorded events are treated as a function,
whose derivative is that of `ti.ad.grad` in any recording (`nesting.py`). So at the end of the block memory is restored
to its start, that function runs in the outer recording, and its results are written to the gradients of fields: they
are values there, with tangents and adjoints of their own.

Derivatives of several levels share memory, but not at the same time. Before the sweep of a recording begins, gradients
are restored to their contents from before its first inner block (`Journal.shadows_before`). Where the duals of
fields hold the tangents of the outer recording, those that are values are stored elsewhere (`Journal.duals_apart`).
"""

from __future__ import annotations

from typing import Any, NoReturn

from tinote.errors import DifferentiationError, Note
from tinote.lang.ad.functional.again import (
    Again,
    keep_gradients_apart,
    leave_value,
    shadows_are_values,
)
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.inputs import DifferentiatedFunction
from tinote.lang.ad.functional.nested import Inner
from tinote.lang.ad.functional.nesting import inside, refuse_capture
from tinote.lang.ad.functional.pushed_mode import PushedMode, is_tangent_field, shadows_with_values
from tinote.lang.ad.functional.second_order import give_gradients_duals
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import recorder, session
from tinote.source import Span


class _InnerTape(Inner):
    """The derivative of a tape's recorded events, which take these numbers from outside."""

    def __init__(self, task: DifferentiatedFunction, numbers: tuple[Traced, ...], span: Span) -> None:
        super().__init__(task, numbers, {})
        self.span = task.span = span

    @property
    def name(self) -> str:
        return "the tape"


class TapeAsFunction:
    """The representation of a `tape`, opened at `span`, in the recording `outer` or in a block of pushforwards."""

    def __init__(self, tape: Journal, outer: Journal | PushedMode, loss: Field, span: Span, *, clears: bool) -> None:
        refuse_capture("the tape inside of two other derivatives")
        if not clears:
            raise DifferentiationError(
                "a tape inside of two other derivatives sets gradients to zero at its start",
                span,
                hint="leave clear_gradients=False out",
                notes=outer.opened_notes(),
            )
        self._tape = tape
        self._outer = outer
        self._loss = loss
        self._span = span
        self._effects = Effects(keeps=True)
        self._launches = 0

    def enter(self) -> None:
        """Before the tape changes anything."""
        give_gradients_duals()
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
            f"'{custom.name}' cannot run in the tape inside of two other derivatives: it cannot be run again",
            custom.span,
            notes=[Note("this is the tape", self._span), *self._outer.opened_notes()],
        )

    def leave(self) -> None:
        """End the tape and compute its gradients."""
        tape, outer = self._tape, self._outer
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
