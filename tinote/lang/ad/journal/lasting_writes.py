"""Writes of custom gradients to fields: which of them remain when the gradient has returned.

While the gradient of a function runs, it may write to any field. What the tape has computed, or still needs, comes
back when it returns; the rest – a counter, a sum of gradients, the state of an optimiser – is the user's own and stays.
Where a change is lost, a warning names its line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, Event, Read, Write
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.memory.undo import Rewind
from tinote.lang.index_regions import IndexRegion, IndexRegions, intersection, region_at, uncovered
from tinote.lang.kernels.access_region import BufferRegions, whole_regions

#: Gives elements of a field.
RegionsOf = Callable[[Buffer], Sequence[IndexRegion]]


def nothing(buffer: Buffer) -> Sequence[IndexRegion]:
    """No elements."""
    return ()


class LastingWrites:
    """Decides for the custom gradients of a sweep through `events`. `needed_around`: the elements that are needed
    after the sweep, by what differentiates the operations before its first.
    """

    __slots__ = ("_computed", "_events", "_needed_around", "_used", "_warned")

    def __init__(self, events: Sequence[Event], needed_around: RegionsOf = nothing) -> None:
        self._events = events
        self._needed_around = needed_around
        # of each field, the elements that are used, each with the position of the first operation that does
        self._used: dict[Buffer, list[tuple[int, IndexRegion]]] | None = None
        self._computed: set[Buffer] = set()  # the fields that an operation writes to
        self._warned: set[tuple[str, Buffer]] = set()

    def needed_before(self, position: int, buffer: Buffer) -> list[IndexRegion]:
        """The elements of a field that the operations before this position use."""
        if self._used is None:
            self._used = self._uses()
        own = [region for first, region in self._used.get(buffer, ()) if first < position]
        return [*own, *self._needed_around(buffer)]

    def settle(self, position: int, custom: Custom, sweep: CustomSweep, rewind: Rewind) -> None:
        """Give fields the values back that they held before the gradient of `custom`, except for what stays."""
        stays: dict[Buffer, list[IndexRegion]] = {}
        lost: list[Buffer] = []
        for buffer, region in sweep.overwritten:
            rewound = [*rewind.disturbed(buffer), *rewind.stale.get(buffer, ())]
            needed = [*self.needed_before(position, buffer), *rewound]
            scratch = [one for other, one in custom.scratch if other is buffer]
            remaining = uncovered(region, [*needed, *scratch])
            undone: Iterable[IndexRegion] = uncovered(region, [*remaining, *scratch])
            if buffer in self._computed or rewound:  # what is computed again is no change
                carried = sweep.carried.get(buffer, ())
                remaining = _common(remaining, carried)
                undone = _common(undone, carried)
            stays.setdefault(buffer, []).extend(remaining)
            if undone and buffer not in lost:
                lost.append(buffer)
        lost += sweep.put_back(stays)
        for buffer in lost:
            self._warn(buffer, custom, sweep)

    def _warn(self, buffer: Buffer, custom: Custom, sweep: CustomSweep) -> None:
        key = custom.name, buffer
        if key in self._warned:
            return
        self._warned.add(key)
        warning = DifferentiationError(
            f"what the gradient of '{custom.name}' leaves in '{buffer.name}' here is undone when it returns: the tape "
            f"needs what '{buffer.name}' held",
            sweep.written_at(buffer),
            hint=f"let it write to a field that the tape does not use, and change '{buffer.name}' after the tape",
            notes=[Note(f"'{custom.name}' was called", custom.span)],
        )
        warnings.warn_explicit(str(warning), UserWarning, warning.span.file, warning.span.line)

    def _uses(self) -> dict[Buffer, list[tuple[int, IndexRegion]]]:
        found: dict[Buffer, list[tuple[int, IndexRegion]]] = {}
        covered: dict[Buffer, IndexRegions] = {}
        seen: set[int] = set()
        for position, event in enumerate(self._events):
            if isinstance(event, RecordedLaunch):
                effects = event.arguments.effects(event.values)
                if effects.number in seen:
                    continue
                seen.add(effects.number)
                used: BufferRegions = (*effects.live_in, *effects.written)
            else:
                used = _used_by(event)
            self._computed.update(event.written)
            for buffer, region in used:
                parts = covered.setdefault(buffer, IndexRegions()).cover(region)
                found.setdefault(buffer, []).extend((position, part) for part in parts)
        return found


def _used_by(event: Event) -> BufferRegions:
    """The elements that an operation uses which is not a launch."""
    if isinstance(event, Custom):
        return event.effects.used
    if isinstance(event, Read):
        region = region_at(event.buffer, event.position)
        return () if region is None else ((event.buffer, region),)
    if isinstance(event, Write) and event.source is None:
        region = region_at(event.target, event.position)
        return () if region is None else ((event.target, region),)
    return whole_regions({*event.loaded, *event.written})


def _common(some: Iterable[IndexRegion], others: Iterable[IndexRegion]) -> list[IndexRegion]:
    others = list(others)
    return [common for one in some for other in others if (common := intersection(one, other)) is not None]
