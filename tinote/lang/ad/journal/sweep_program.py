"""A reverse sweep as a program, recorded while it runs like the steps of captures.

The values that it restores, and those that launches have saved for their gradients, are blocks passed as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tinote.errors import DifferentiationError
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.capture.explore import capturing
from tinote.lang.capture.recording import Array, Following, Tables
from tinote.program.program import Program
from tinote.runtime.memory import Memory
from tinote.source import Span, caller


def sweep_program(journal: Journal, sweep: Callable[[], None]) -> Tables:
    """The program of a `sweep` through a journal, which is run, with its blocks and codes in this process. Raises
    `DifferentiationError` for effects that a program cannot express.
    """
    for event in journal.events:
        if isinstance(event, Custom):  # NumPy's writes to memory would not be recorded
            raise _has_none(f"'{event.name}' has a gradient of its own", event.span)
    tables = Tables(Program())
    with capturing:
        recording = Following(tables)  # even after a refusal the sweep runs to its end, which restores the fields
        try:
            for number, (held, name) in enumerate(kept_by(journal)):
                recording.borrow(held, name, number)
            recording.run(sweep)
            refused = recording.refused
            if refused is not None:
                raise _has_none(refused.message.removeprefix("this cannot be captured: "), refused.span)
            recording.end(None, ())
        finally:
            recording.close()
    tables.plan.root.steps = recording.steps
    return tables


def _has_none(why: str, span: Span | None) -> DifferentiationError:
    return DifferentiationError(
        f"the reverse sweep of this tape has no program: {why}",
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
