"""What a journal has recorded, and its reverse sweep, as programs: operations on memory and numbers.

The sweep is recorded while it runs, like the steps of captures. The values that it restores, and those that launches
have saved for their gradients, are blocks passed as arguments. The recorded operations are written down without being
run again; numbers that Python has written, and the journal has not kept, are inputs of that program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tinote.compiler.launch.native import Native
from tinote.errors import DifferentiationError
from tinote.ir.buffers import row_major
from tinote.lang.ad.journal.events import Computed, Custom, Event, PlacedEvents, Read, Write
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.capture.explore import capturing
from tinote.lang.capture.recording import Array, Following, Tables
from tinote.lang.data.traced import Traced, number_now
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span, caller


def _place_of(events: Sequence[Event], event: Event) -> Span:
    """Where Python did this, if that is known; else where the kernel is."""
    if isinstance(events, PlacedEvents):
        return events.place(event)
    return NOWHERE if isinstance(event, Computed | Read) else event.span


class _LocatedSweep(Sweep):
    """`place`: of the recorded operation whose gradient runs now."""

    __slots__ = ("place",)

    def _at(self, event: Event, run: Callable[[Any], None], given: Any) -> None:
        self.place = _place_of(self._events, event)
        run(given)
        self.place = NOWHERE

    def launch(self, launch: RecordedLaunch) -> None:
        assert self.at is not None  # the event that `launch` may be another form of
        self._at(self.at, super().launch, launch)

    def write(self, write: Write) -> None:
        self._at(write, super().write, write)

    def read(self, read: Read) -> None:
        self._at(read, super().read, read)

    def computed(self, event: Computed) -> None:
        self._at(event, super().computed, event)


class _Placed(Following):
    """A recording of operations whose places are those that `place` gives, not those in Python that led here."""

    def __init__(self, tables: Tables, place: Callable[[], Span]) -> None:
        super().__init__(tables)
        self._place_now = place

    def add(self, step: ops.Operation) -> None:
        super().add(step._replace(span=self._place_now()))


def sweep_program(journal: Journal) -> Tables:
    """The program of the reverse sweep through a journal, which is run, with its blocks and codes in this process.
    Raises `DifferentiationError` for effects that a program cannot express.
    """
    _refuse_custom(journal, _OF_SWEEP)
    sweep = journal.sweep(kind=_LocatedSweep)
    sweep.place = NOWHERE
    tables = Tables(Program())
    with capturing:
        recording = _Placed(tables, lambda: sweep.place)
        # even after a refusal the sweep runs to its end, which restores the fields
        try:
            for number, (held, name) in enumerate(kept_by(journal)):
                recording.borrow(held, name, number)
            recording.run(sweep.run)
            _finish(recording, _OF_SWEEP)
        finally:
            recording.close()
    return tables


def forward_program(journal: Journal) -> Tables:
    """The program of the recorded operations, which are not run. Raises `DifferentiationError` for operations that a
    program cannot express.
    """
    _refuse_custom(journal, _OF_RECORD)
    tables = Tables(Program())
    with capturing:
        recording = _Unrun(tables)
        try:
            recording.run(lambda: recording.write_down(journal.events))
            _finish(recording, _OF_RECORD)
        finally:
            recording.close()
    tables.plan.inputs = recording.given
    return tables


class _Unrun(_Placed):
    """Recorded operations as a program. `given`: the registers of numbers that are not known any more."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables, lambda: self._span)
        self._span = NOWHERE
        self._known: dict[int, Any] = {}
        self.given: list[ops.Register] = []

    def run_code(self, code: Native, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([0.0 if t.kind == "f" else 0 for _, t in code.metadata_results()])

    def write_down(self, events: Sequence[Event]) -> None:
        values = {
            one.number: one.value
            for event in events
            if isinstance(event, Computed)
            for one in (event.result, *event.operands)
            if type(one) is Traced
        }
        for event in events:
            self._span = _place_of(events, event)
            if isinstance(event, RecordedLaunch):
                self._launched(event)
            elif isinstance(event, Computed):
                operands = [number_now(one, self._known) for one in event.operands]
                self._known[event.number] = event.rule.value(*operands)
            elif isinstance(event, Read):
                element = numbers(event.buffer)[(*event.position, ...)]
                self._known[event.number] = self._load(element, values.get(event.number, 1.0))
            elif isinstance(event, Write):
                self._written(event)
            else:
                self.refuse(f"'{event.name}' is one operation of it, with a program of its own")

    def _launched(self, launch: RecordedLaunch) -> None:
        values = list(launch.values)
        for at, number in launch.places:
            values[at] = self._known.get(number, values[at])
        for buffer, bound in launch.arguments.arrays:
            if not self._is_known(bound.address):
                block = self.tables.borrowed(bound.address, buffer.name, bound.nbytes)
                self._made.add(bound.address, bound.nbytes, (block, bound))
        results = self.launch(launch.instance.primal, tuple(values))
        floats = [one for one in results if type(one) is Traced and type(one.value) is float]
        self._known.update(zip(launch.results, floats, strict=False))

    def _written(self, write: Write) -> None:
        held = numbers(write.target)
        place = write.position if isinstance(write.position, tuple) else (write.position,)
        target = held[place if Ellipsis in place else (*place, ...)]
        if write.source is not None:
            self._copy(self._view(target), self._view(numbers(write.source)))
        elif isinstance(write.numbers, int):
            self._fill(target, self._number(write.numbers))
        elif write.numbers is not None:
            for index in np.ndindex(write.numbers.shape):
                self._fill(target[(..., *index)], self._number(int(write.numbers[index])))
        elif target.size == 1:
            self._fill(target, self._number(0))
        elif target.size:
            to = self._view(target)
            block = self.tables.borrowed(len(self.steps), f"written to {write.target.name}", target.nbytes)
            shape = to.shape
            self._copy(to, ops.View(block, 0, to.type, shape, row_major(shape, target.itemsize)))

    def _number(self, number: int) -> ops.Operand:
        """A number that Python has written; an input where it is not one of the recording's."""
        known = self._known.get(number)
        if known is not None:
            return self.operand(known)
        self.given.append(self.register("f"))
        return self.given[-1]


_OF_SWEEP = "the reverse sweep of this tape has no program"
_OF_RECORD = "what this tape has recorded has no program"


def _refuse_custom(journal: Journal, what: str) -> None:
    for event in journal.events:
        if isinstance(event, Custom):  # NumPy's writes to memory would not be recorded
            raise _has_none(what, f"'{event.name}' has a gradient of its own", event.span)


def _finish(recording: _Placed, what: str) -> None:
    """The recording is over: its steps are the program's."""
    refused = recording.refused
    if refused is not None:
        raise _has_none(what, refused.message.removeprefix("this cannot be captured: "), refused.span)
    recording.end(None, ())
    recording.tables.plan.root.steps = recording.steps


def _has_none(what: str, why: str, span: Span | None) -> DifferentiationError:
    return DifferentiationError(
        f"{what}: {why}",
        caller() if span is None else span,
        hint="`tape.graph()` shows what any tape has recorded",
    )


def kept_by(journal: Journal) -> Iterator[tuple[Memory | Array, str]]:
    """The saved data for its sweep, with names."""
    for entry in journal.saved.log.entries:
        if entry.values is not None:
            yield entry.values, f"saved {entry.buffer.name}"
    copies: dict[int, tuple[Memory, str]] = {}  # launches may share one
    for event in journal.events:
        if isinstance(event, RecordedLaunch):
            copies |= {id(one): (one, f"saved {buffer.name}") for buffer, one in event.copies.items()}
            for bound in () if event.old_values is None else event.old_values.saved:
                yield bound.owner, f"saved by {event.name}"
    yield from copies.values()
