"""Which memory a recording has used so far: for what differentiates it, and for other recordings at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.events import Event, Record
from tinote.lang.kernels.arguments import arguments_of

#: A launch: the kernel's instance, and the values.
_Launch = tuple[Any, tuple[Any, ...]]


class UsedMemory:
    """The memory that `events` use, and Python's writes and reads around them. `looked_at`: the memory that Python has
    seen, and whether as traced numbers.
    """

    __slots__ = ("_differentiated", "_events", "_looked_at_events", "looked_at", "met")

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._looked_at_events = 0  # the number of events that are counted here
        #: memory that events use or that has values from before, and whether an event has written to it
        self._differentiated: dict[Buffer, bool] = {}
        #: all memory that is used, and whether it is written
        self.met: dict[Buffer, bool] = {}
        self.looked_at: dict[Buffer, bool] = {}

    def computed_before(self, buffer: Buffer) -> bool:
        """Whether a recorded launch has written to the field."""
        self._look()
        return self._differentiated.get(buffer, False)

    def touches(self, buffer: Buffer) -> bool:
        """Whether recorded launches have read or written a field, or Python has given it new values since."""
        self._look()
        return buffer in self._differentiated

    def touched_before(self) -> set[Buffer]:
        """The fields that recorded launches have read or written, and that Python has written since."""
        self._look()
        return set(self._differentiated)

    def starts_from(self, buffers: Iterable[Buffer]) -> None:
        """Differentiate with respect to the present values of these fields: values that Python writes replace them,
        even if they have not been used yet.
        """
        for buffer in buffers:
            self._differentiated.setdefault(buffer, False)

    def has_computed(self, buffer: Buffer) -> None:
        """A derivative inside has left its result there."""
        self._differentiated[buffer] = True

    def read_by_python(self, buffer: Buffer) -> None:
        """Python sees its values."""
        self.looked_at.setdefault(buffer, False)
        self.met.setdefault(buffer, False)

    def with_launch(self, launch: _Launch | None) -> dict[Buffer, bool]:
        """All memory that is used, also by the launch under way, and whether it is written."""
        self._look()
        if launch is None:
            return self.met
        touched = arguments_of(*launch).accesses
        return {**dict.fromkeys(touched.loaded, False), **self.met, **dict.fromkeys(touched.written, True)}

    def is_written(self, buffer: Buffer, launch: _Launch | None) -> bool | None:
        """Whether anything recorded, or the launch under way, writes to a field; None: it does not use it."""
        self._look()
        found = self.met.get(buffer)
        if not found and launch is not None:
            touched = arguments_of(*launch).accesses
            found = True if buffer in touched.written else False if buffer in touched.loaded else found
        return found

    def _look(self) -> None:
        count = len(self._events)
        if self._looked_at_events == count:
            return
        for event in self._events[self._looked_at_events : count]:  # other threads may read at the same time
            if isinstance(event, Record):
                for buffer in event.touched:
                    self._differentiated.setdefault(buffer, False)
                    self.met.setdefault(buffer, False)
                for buffer in event.written:
                    self._differentiated[buffer] = self.met[buffer] = True
        self._looked_at_events = count
