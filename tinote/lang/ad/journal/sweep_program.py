"""What a reverse sweep does, as a program: recorded while it runs, as the steps of captures are.

The values that it brings back, and those that launches have saved for their gradients, are blocks that it is called
with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tinote.errors import CaptureError, DifferentiationError
from tinote.lang.ad.journal.events import Launch
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.capture.explore import capturing
from tinote.lang.capture.recording import Array, Recording, Tables
from tinote.program.program import Program
from tinote.runtime.memory import Memory


def sweep_program(journal: Journal, sweep: Callable[[], None]) -> Tables:
    """The program of a `sweep` through a journal, which runs, with what blocks and codes are in this process. Raises
    `DifferentiationError` for what no program says.
    """
    tables = Tables(Program())
    with capturing:
        recording = Recording(tables, prints=True)
        try:
            for number, (held, name) in enumerate(kept_by(journal)):
                recording.lend(held, name, number)
            recording.run(sweep)
            recording.end(None, ())
        except CaptureError as error:
            why = error.message.removeprefix("this cannot be captured: ")
            raise DifferentiationError(f"the reverse sweep of this tape has no program: {why}", error.span) from None
        finally:
            recording.close()
    tables.plan.root.steps = recording.steps
    return tables


def kept_by(journal: Journal) -> Iterator[tuple[Memory | Array, str]]:
    """What it has kept for its sweep, and names for that."""
    for entry in journal.saved.log.entries:
        if entry.values is not None:
            yield entry.values, f"saved {entry.buffer.name}"
    copies: dict[int, tuple[Memory, str]] = {}  # launches may have one in common
    for event in journal.events:
        if isinstance(event, Launch):
            copies |= {id(one): (one, f"saved {buffer.name}") for buffer, one in event.copies.items()}
            for bound in () if event.old_values is None else event.old_values.saved:
                yield bound.owner, f"saved by {event.name}"
    yield from copies.values()
