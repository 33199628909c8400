"""The events of a journal, in order: launches, captured steps, blocks with a custom VJP, and Python's reads of fields,
arithmetic on these numbers (`Computed`) and writes to fields.

All analyses of a recorded program walk over these: the reverse sweep (`sweep.py`), the search for broken
gradient paths (`broken_path.py`), the picture of a tape (`graph.py`), the checks. Their effects on numbers and memory
have one interface (`program/recorded.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, ClassVar

import numpy as np

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.saved_values import RecordedLaunch, SavedValues
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.values import element_at, held_now, hold, store
from tinote.lang.data.traced import Computed, Traced, number_now, objects
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.kernels.arguments import ExternalArray
from tinote.lang.session.state import Recorder, note_python_write
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.source import NOWHERE, Span, span_at, users_frame

#: Maps a number of this recording to one of another.
NumberOf = Callable[[Traced], Any]


@dataclass(eq=False)
class Custom(RecordedOperation):
    """A block of the program with a custom VJP: `gradient` runs in its place in the reverse sweep.

    `effects`: what it does to memory; `lost`: fields without a gradient in which it left active values, with the span
    (None: perhaps in all memory that it wrote). `scratch`: elements that `gradient` recomputes before reading them; all
    others it finds as they were at the end of the block.
    `after`: the length of the log of overwritten values then. `gradient_tasks`: known launches of the gradient;
    `release` frees its memory. `copies`: contents of external arrays at the end. `sources`: the traced numbers from
    outside that went into it. `active`: loaded memory without a gradient that held differentiated values, with the
    place where these were written. `reads_active`: for a block that passes adjoints of such memory on, maps the memory
    whose adjoints are needed after it to the memory whose adjoints it needs itself. `kept_bytes`: an upper bound of the
    bytes that it saves for its gradient, if known. `made`: new ndarrays that hold its results. `gradients`: those that
    `gradient` reads or writes; None: perhaps all, or, if it `tells_gradients`, those that it announces to the sweep.
    `again` repeats it in another recording, with that one's numbers in place of its own, if known; `is_function`:
    whether it is a user function with a custom gradient, whose reads are checked for stale elements, so that not all
    values have to be saved. `needs_fields`: whether `gradient` reads fields, as they were at the end of the block;
    `parts`: the number of following events that are parts of it.
    """

    name: str
    span: Span
    gradient: Callable[[CustomSweep], None]
    effects: BlockEffects = field(default_factory=BlockEffects)
    lost: dict[Buffer, Span] | None = None
    scratch: BufferRegions = ()
    after: int = 0
    gradient_tasks: tuple[TaskSummary, ...] = ()
    release: Callable[[], None] | None = None
    copies: dict[Buffer, Memory] = field(default_factory=dict)
    sources: frozenset[int] = frozenset()
    active: dict[Buffer, Span] = field(default_factory=dict)
    reads_active: Callable[[set[Buffer]], set[Buffer]] | None = None
    kept_bytes: int = 0
    made: frozenset[Buffer] = frozenset()
    gradients: frozenset[Buffer] | None = None
    tells_gradients: bool = False
    again: Callable[[Any, NumberOf], dict[int, Any]] | None = None
    is_function: bool = False
    needs_fields: bool = True
    parts: int = 0

    always: ClassVar[bool] = True

    @property
    def loaded(self) -> set[Buffer]:
        return self.effects.loaded

    @property
    def written(self) -> set[Buffer]:
        return self.effects.written

    def emit(self, recorder: Recorder, known: dict[int, Any]) -> None:
        assert self.again is not None
        known.update(self.again(recorder, lambda one: number_now(one, known)))

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        return () if self.reads_active is None else self.reads_active(reached)

    def keep(self, saved: SavedValues) -> list[Buffer]:
        """It has completed, and its gradient will find all fields as they are now. Returns those that it may read."""
        self.after = saved.completed(self.release)
        if not saved.between_launches:
            return []
        kept = self.need(saved)
        for buffer in self.arrays:
            saved.keep_external(self.copies, buffer)
        return kept

    def need(self, saved: SavedValues) -> list[Buffer]:
        """The same where the present values are kept otherwise."""
        if self.needs_fields:
            return saved.need_all(self.scratch, perhaps=self.is_function)
        saved.log.need_all(())
        return []

    @property
    def arrays(self) -> list[ExternalArray]:
        """The external arrays that its launches read, each once."""
        return list({(b.first, b.last): b for b in self.loaded if isinstance(b, ExternalArray)}.values())

    @contextmanager
    def arrays_again(self) -> Iterator[None]:
        """A block in which these arrays have their contents from then. Raises `DifferentiationError` for one that has
        changed and cannot be written to.
        """
        now = MemoryCopies()
        try:
            for array, kept in self.copies.items():
                assert isinstance(array, ExternalArray)
                memory = array.bound.memory
                if memory.view() == kept.view():
                    continue
                if not array.bound.writable:
                    raise DifferentiationError(
                        f"the array '{array.name}', which is read-only, has changed since '{self.name}' ran",
                        self.span,
                        hint="pass a copy of it",
                    )
                now.add(memory)
                memory.restore(kept)
            yield
        finally:
            now.put_back()


class Read(RecordedOperation):
    """Python read traced number `number` of the element of `buffer` at `position`, or of a component of it."""

    __slots__ = ("buffer", "number", "position")

    def __init__(self, number: int, buffer: Buffer, position: tuple[int, ...]) -> None:
        self.number = number
        self.buffer = buffer
        self.position = position

    @property
    def results(self) -> tuple[int]:
        return (self.number,)

    @property
    def loaded(self) -> tuple[Buffer]:
        return (self.buffer,)

    def emit(self, recorder: Recorder, known: dict[int, Any]) -> None:
        value = element_at(self.buffer, self.position)
        known[self.number] = recorder.number_at(self.buffer, self.position, value)


class Write(RecordedOperation):
    """Python gave elements of `target` new values: those at `position` in its array (of the field's shape followed
    by that of its elements; `...`: all of them). The values are those of the field `source`, the traced numbers
    `numbers` (one for all of them, or an array that fits the elements, 0 for constants), or constants. `initialises`:
    nothing recorded has used the field before, so that these are its initial values and their gradient is the field's,
    unless numbers that Python had read there were used. `values`: the written values, if they are to be written again.
    """

    __slots__ = ("initialises", "numbers", "position", "source", "span", "target", "values")

    def __init__(
        self,
        target: Buffer,
        position: Any,
        source: Buffer | None = None,
        numbers: np.ndarray[Any, Any] | int | None = None,
        span: Span = NOWHERE,
        *,
        initialises: bool = False,
    ) -> None:
        self.target = target
        self.position = position
        self.source = source
        self.numbers = numbers
        self.span = span
        self.initialises = initialises
        self.values: Any = None

    @property
    def sources(self) -> list[int]:
        if self.numbers is None:
            return []
        return [self.numbers] if isinstance(self.numbers, int) else self.numbers.ravel().tolist()

    @property
    def loaded(self) -> tuple[Buffer, ...]:
        return () if self.source is None else (self.source,)

    @property
    def written(self) -> tuple[Buffer]:
        return (self.target,)

    @property
    def is_whole(self) -> bool:
        """Whether all elements got new values."""
        return self.position is ...

    def emit(self, recorder: Recorder, known: dict[int, Any]) -> None:
        with recorder.leaving_value(self.target) as target:
            if self.source is not None:
                note_python_write(self.target, self.position, None, self.source)
                hold(target, held_now(self.source))
                return
            value = self._now(known)
            note_python_write(self.target, self.position, value)
            store(target, self.position, value)

    def _now(self, known: dict[int, Any]) -> Any:
        """The written values, with these numbers."""
        if self.numbers is None:
            return self.values
        if isinstance(self.numbers, int):
            return known.get(self.numbers, self.values.item())
        pairs = zip(self.numbers.ravel().tolist(), self.values.ravel().tolist(), strict=True)
        return objects([known.get(number, value) for number, value in pairs], self.numbers.shape)


def outermost(events: Iterable[Event]) -> Iterator[Event]:
    """The events that are not parts of another."""
    remaining = iter(events)
    for event in remaining:
        yield event
        if isinstance(event, Custom):
            for _ in range(event.parts):
                next(remaining)


class PlacedEvents(list["Event"]):
    """Events with their places in the user's code: of those that can be run again, for pictures of them."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[int, tuple[CodeType, int]] = {}

    def append(self, event: Event) -> None:
        super().append(event)
        frame = users_frame("numpy")
        self._places[id(event)] = frame.f_code, frame.f_lasti

    def place(self, event: Event) -> Span:
        """Where Python did this."""
        place = self._places.get(id(event))
        return NOWHERE if place is None else span_at(*place)


#: Events that count as launches.
Record = RecordedLaunch | Custom | CapturedStep
Event = Record | Write | Read | Computed
