"""`Tape(loss, grad_check=...)`: at the end of the block its launches run again from perturbed values, and the
differences of the loss are compared with the gradients.

What Python did in the block is done again, too, and means what it means to the tape: constants are written again, what
was computed from fields is computed from them as they are then, and fields that nothing had used yet begin with values
that are shifted as much as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.checks.gradcheck import Compared, GradientReport, compare, require_f64
from tinote.lang.ad.functional.layer import Execute
from tinote.lang.ad.journal.events import Custom, Write
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.saved_values import living_buffers
from tinote.lang.ad.memory.states import State
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.index_regions import IndexRegion
from tinote.lang.session.state import session
from tinote.source import Span, caller

_STEP, _ELEMENTS = 1e-4, 200


class _Numbers(NamedTuple):
    """What elements held before and after Python wrote to them."""

    write: Write
    before: Any
    after: Any = None


class GradientCheck(Observer):
    """The comparison at the end of one tape. `chosen`: the fields to compare; True for all that have a gradient and
    that the launches use. `start` is called when the block begins.
    """

    sees_every_write = True

    def __init__(self, chosen: Sequence[Field] | bool, loss: Field, tolerance: float = 1e-6) -> None:
        self.span = caller()
        for one in [] if isinstance(chosen, bool) else chosen:
            if not isinstance(one, Field) or not one.has_grad:
                what = f"'{one.name}' has no gradient" if isinstance(one, Field) else f"{one!r} is not a field"
                raise DifferentiationError(
                    f"grad_check is a list of fields with gradients, or True, but {what}", self.span
                )
        self._chosen = chosen
        self._loss = loss
        self._tolerance = tolerance
        self._start: State | None = None
        self._latest: _Numbers | None = None
        self._written: dict[int, _Numbers] = {}  # by the identity of the write
        self._viewed: Buffer | None = None

    # ---- while the tape records

    def start(self) -> None:
        """The block begins: fields are as the program finds them."""
        self._start = State()
        self._start.add(self._loss.buffer)

    def writing(self, write: Write, *, exempt: bool) -> None:
        self._settle()
        if write.target.primal is None:
            self._latest = _Numbers(write, np.array(numbers(write.target)[write.position]))

    def sharing(self, buffer: Buffer) -> None:
        self._viewed = buffer

    def overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool) -> None:
        self._settle()
        if not exempt and self._start is not None and buffer.primal is None:
            self._start.add(buffer, region)

    def _settle(self) -> None:
        """What Python wrote last is there to be read."""
        if self._latest is not None:
            write, before, _ = self._latest
            after = np.array(numbers(write.target)[write.position])
            self._written[id(write)] = _Numbers(write, before, after)
            self._latest = None

    # ---- at its end

    def compare(self, journal: Journal) -> GradientReport:
        """Compare the gradients that the journal has left. Raises `DifferentiationError` with the report
        (`error.report`) when one disagrees, and for a program that cannot be run again.
        """
        self._settle()
        self._refuse(journal)
        assert self._start is not None
        fields = self._fields(journal)
        for one in (*fields, self._loss):
            require_f64("grad_check", one.buffer, one.name, self.span)
        for one in fields:  # the comparison moves them
            self._start.add(one.buffer)
        gradients = [numbers(one.grad.buffer).copy() for one in fields]
        report = GradientReport(self._tolerance, sum(gradient.size for gradient in gradients))
        report.forward_note = "a tape compares with differences alone"
        end = self._start.now()
        try:
            task = Compared(lambda: self._run_again(journal), fields, self._loss)
            compare(task, (), self._start, gradients, _STEP, _ELEMENTS, report)
        finally:
            end.put_back()
        if not report.ok:
            error = DifferentiationError(repr(report), self.span)
            error.report = report  # type: ignore[attr-defined]
            raise error
        return report

    def _fields(self, journal: Journal) -> list[Field]:
        if not isinstance(self._chosen, bool):
            return list(self._chosen)
        touched = journal.memory.touched_before()
        fields = [f for f in list(session.fields) if f.buffer in touched and f.has_grad and f.buffer.primal is None]
        return sorted([f for f in fields if f is not self._loss], key=lambda f: f.name)

    def _refuse(self, journal: Journal) -> None:
        why: str | None = None
        span: Span = self.span
        for record in journal.records:
            if isinstance(record, Custom):
                why, span = f"it has a gradient of its own in place of that of '{record.name}'", record.span
        if self._viewed is not None and self._viewed in living_buffers():
            why = f"'{self._viewed.name}' was exported as an array, through which other code may write"
        if why is not None:
            raise DifferentiationError(
                f"grad_check cannot run this tape again: {why}",
                span,
                hint="call ti.ad.gradcheck with a function that runs the program",
            )

    def _run_again(self, journal: Journal) -> None:
        values: dict[int, float] = {}  # of traced numbers
        here = Execute()
        for event in journal.events:
            if isinstance(event, Write):
                self._write_again(event, values)
            else:
                event.emit(here, values)

    def _write_again(self, write: Write, values: dict[int, float]) -> None:
        if id(write) not in self._written:  # to a gradient
            return
        _, before, after = self._written[id(write)]
        held = numbers(write.target)
        if write.source is not None:
            held[...] = numbers(write.source)
        elif write.numbers is not None:
            given = np.array([values.get(k, np.nan) for k in write.sources]).reshape(np.shape(write.numbers))
            held[write.position] = np.where(np.not_equal(write.numbers, 0), given, after)
        elif write.initialises and write.target.dtype.kind == "f":
            held[write.position] += after - before
        else:
            held[write.position] = after
