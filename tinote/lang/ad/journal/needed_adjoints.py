"""Activity analysis: which memory without a gradient of its own needs a temporary adjoint.

    rest_volume()           # writes a field without needs_grad from x, which has a gradient
    energy()                # reads it

While a journal is recorded, memory that holds differentiated values is marked as *active*. A launch that accesses
active memory is recorded with a gradient that has adjoints for it. A backward pass over the events then finds the
adjoints that are needed: those of memory that is read later on a path to a gradient. These exist during the reverse
sweep; a launch without any of them runs its ordinary gradient.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.events import Event
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.kernels.arguments import Arguments


class Needed(NamedTuple):
    """The `events` of a journal, each launch with the gradient that is to run, and the memory that needs a temporary
    adjoint.
    """

    events: Sequence[Event]
    buffers: frozenset[Buffer]


def needed_adjoints(
    events: Sequence[Event], active: Collection[Buffer], results: Iterable[int], wanted: Iterable[Buffer] = ()
) -> Needed:
    """The adjoints that a reverse sweep through `events` needs. `active`: the memory without a gradient that holds
    differentiated values; `results`: traced numbers whose adjoints are not zero; `wanted`: active memory whose adjoints
    are not zero. Raises the error of a refused launch whose gradient is needed.
    """
    if not active:
        return Needed(events, frozenset())
    found = list(events)
    used, needed, reached = set(results), set[Buffer](), set(wanted)

    def has_adjoint(buffer: Buffer) -> bool:
        return buffer.adjoint is not None or buffer in reached

    for position in range(len(found) - 1, -1, -1):
        event = found[position]
        goes_on = event.passes_on(used, has_adjoint)
        if isinstance(event, RecordedLaunch):
            runs = goes_on and needs_temporaries(event.arguments, reached, active)
            if event.arguments.plain is not None:
                found[position] = event = event.chosen(needs_temporaries=runs)
            needed |= event.arguments.temporaries
        if goes_on:
            used.update(event.sources)
            reached.update(event.through(active, reached))
    return Needed(found, frozenset(needed | reached))


def reaches(arguments: Arguments, reached: Collection[Buffer]) -> bool:
    """Whether a launch writes to memory whose adjoint may not be zero."""
    return any(buffer.adjoint is not None or buffer in reached for buffer in arguments.accesses.written)


def needs_temporaries(arguments: Arguments, reached: Collection[Buffer], active: Collection[Buffer]) -> bool:
    """Whether a nonzero adjoint passes through active memory in a launch on a needed path. If so, raises the error of a
    refused gradient.
    """
    touched = arguments.accesses
    if arguments.refused is not None:
        if any(b in active and (b in reached or b in touched.loaded) for b in touched.loaded | touched.written):
            raise arguments.refused
        return False
    return any(buffer in reached or buffer in touched.loaded for buffer in arguments.temporaries)
