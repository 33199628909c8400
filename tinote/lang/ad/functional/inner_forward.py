"""A forward-mode block inside of a recording in reverse mode.

    with ti.ad.Tape(cost):
        with ti.ad.FwdMode(loss=y, param=x, seed=s):
            compute_y()                 # y.dual becomes J s
        measure()                       # reads it

For the recording around it, the block is one record that writes duals, as a tape inside of it is one that writes
gradients (`inner_tape.py`). Where the adjoint w of J s comes back, the launches run again along s, and their reverse
sweep, which begins with w, carries tangents: the tangent of J' w along s is the gradient of w · J s.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.again import Again
from tinote.lang.ad.functional.forward_mode import direction_of
from tinote.lang.ad.functional.inner_tape import leave_tangents, run_again
from tinote.lang.ad.functional.nested import Stretch, duals_apart
from tinote.lang.ad.functional.second_order import SecondOrder, give_gradients_duals, inner_trace
from tinote.lang.ad.functional.seeds import store_seed
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace
from tinote.lang.session.owners import clear_own_duals
from tinote.lang.session.state import session
from tinote.runtime.memory import MemoryCopies
from tinote.source import caller

Array = np.ndarray[Any, Any]


class InnerForward:
    """The block, along the directions `seeds` of `params`, inside of the recording `outer`."""

    def __init__(self, outer: Journal, losses: list[Field], params: list[Field], seeds: Sequence[Any]) -> None:
        self._span = caller()
        notes = outer.opened_notes()
        for field in losses:
            if not field.has_grad:
                raise DifferentiationError(
                    f"forward mode inside of a tape is differentiated in reverse, and the loss '{field.name}' has no "
                    "gradient",
                    self._span,
                    hint="make it with needs_grad=True",
                    notes=notes,
                )
        self._outer = outer
        self._losses = losses
        self._params = params
        self._seeds = [direction_of(field, seed) for field, seed in zip(params, seeds, strict=True)]
        self._stretch = Stretch(keeps=True)
        self._journal = SecondOrder(saves=False, trace=inner_trace(outer))
        self._journal.will_run_again()
        self._journal.opened = self._span
        self._journal.opened_within = notes
        self._journal.takes_custom = False
        self._family = self._journal.trace.family
        self._listening: AbstractContextManager[None] | None = None

    def enter(self) -> None:
        """The block begins."""
        self._outer.may_change_gradients()
        give_gradients_duals()
        clear_own_duals()
        for field, direction in zip(self._params, self._seeds, strict=True):
            store_seed(field.dual, direction)
        try:
            listening = self._stretch.listening()
            listening.__enter__()
            self._listening = listening
            self._journal.start()
        except BaseException:  # an interrupt
            self.end()
            raise

    def end(self) -> None:
        """Nothing of it is recorded any longer."""
        listening, self._listening = self._listening, None
        try:
            self._journal.stop()
        finally:
            if listening is not None:
                listening.__exit__(None, None, None)

    def leave(self, *, completed: bool) -> None:
        """The block ends: it becomes a record, if it has `completed`."""
        journal, outer, stretch = self._journal, self._outer, self._stretch
        self.end()
        try:
            if completed:
                journal.lost_values()
        finally:
            journal.take_gradients_back()
            journal.forget()
        for field in self._params:
            if field not in self._losses:
                field.dual.memory.clear()
        if not completed:
            return
        stretch.read_by_python(journal)
        for event in journal.events:
            if isinstance(event, Custom) and event.again is None:
                notes = outer.opened_notes()
                raise DifferentiationError(
                    f"'{event.name}' cannot run in forward mode inside of another recording: it cannot be run again",
                    event.span,
                    notes=[Note("this is the block", self._span), *notes],
                )
        self._again = Again(journal, outer.trace)
        self._duals = [
            f.dual.buffer for f in list(session.fields) if f.buffer.primal is None and f.has_dual and f.has_grad
        ]
        custom = Custom(
            "forward mode",
            self._span,
            self._pull,
            loaded=stretch.loaded,
            written=stretch.written,
            fully_overwritten=(stretch.filled & stretch.written) | set(self._duals),
            gradient_tasks=tuple([task for event in journal.records for task in event.gradient_tasks]),
            release=self._release,
            sources=frozenset(journal.trace.taken_in),
            kept_bytes=stretch.start.nbytes,
        )
        outer.custom(custom)
        for buffer in self._duals:
            outer.has_values(buffer, self._span)

    def _release(self) -> None:
        self._stretch.start = MemoryCopies()
        self._journal.runs_again = False
        self._again.close()

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record."""
        adjoints: dict[Buffer, Array] = {}
        constant = {field.dual.buffer for field in self._params if field not in self._losses}
        for dual in self._duals:
            found = sweep.temporaries.of(dual)
            if found is not None and dual not in constant and dual.primal is not None:
                assert dual.primal.adjoint is not None
                adjoints[dual.primal.adjoint] = held_now(found)
        give_gradients_duals()
        for buffer in self._stretch.written:
            sweep.overwriting(buffer)
        self._stretch.start.put_back()
        journal = SecondOrder(trace=Trace(outer=self._outer.trace, family=self._family))
        directions = {
            field.buffer: direction.reshape(numbers(field.buffer).shape)
            for field, direction in zip(self._params, self._seeds, strict=True)
        }
        try:
            with duals_apart(None):
                run_again(self._again, journal, directions)
                leave_tangents(journal, adjoints, sweep)
        finally:
            journal.forget()
