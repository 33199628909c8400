"""The events of a journal, in order: launches, captured steps, blocks with a custom VJP, and Python's reads of fields,
arithmetic on these numbers (`Computed`) and writes to fields.

All analyses of a recorded program walk over these: the reverse sweep (`sweep.py`), the search for broken
gradient paths (`broken_path.py`), the picture of a tape (`graph.py`), the checks. Their effects on numbers and memory
have one interface (`program/recorded.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.compiler.launch.native import BoundArray
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.number_flow import NumberFlow
from tinote.lang.ad.journal.saving_launch import SavingLaunch
from tinote.lang.data.traced import Computed, Traced
from tinote.lang.index_regions import IndexRegions
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions
from tinote.lang.kernels.arguments import Arguments, ExternalArray, RecordingNeeds
from tinote.lang.kernels.kernel import Instance
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.source import NOWHERE, Span

#: of launches without external arrays
_NO_COPIES: Mapping[Buffer, Memory] = {}


class RecordedLaunch(RecordedOperation):
    """One launch: its kernel and values, and the elements that its gradient will read. `before` and `after`: the length
    of the log of overwritten values. `copies`: the contents of external arrays for the gradient; `input_copies`: those
    for the launch itself, if it is to be run again. `old_values`: those that the launch returns and saves. `flow`: the
    traced numbers that went in and came out, if any.
    """

    __slots__ = (
        "after", "arguments", "before", "copies", "flow", "input_copies", "instance", "needs", "old_values", "regions",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        instance: Instance,
        values: tuple[Any, ...],
        arguments: Arguments,
        needs: RecordingNeeds,
        regions: AccessRegions,
        before: int,
        after: int,
        old_values: SavingLaunch | None = None,
        flow: NumberFlow | None = None,
    ) -> None:
        self.instance = instance
        self.values = values
        self.arguments = arguments
        self.needs = needs
        self.regions = regions
        self.before = before
        self.after = after
        self.copies: Mapping[Buffer, Memory] = _NO_COPIES
        self.input_copies: Mapping[Buffer, Memory] = _NO_COPIES
        self.old_values = old_values
        self.flow = flow

    def differentiated_as(self, arguments: Arguments) -> RecordedLaunch:
        """The same launch with another gradient: with temporary adjoints or without."""
        regions = arguments.own_regions(self.values)
        made = RecordedLaunch(
            self.instance,
            self.values,
            arguments,
            arguments.needs,
            regions,
            self.before,
            self.after,
            self.old_values,
            self.flow,
        )
        made.copies, made.input_copies = self.copies, self.input_copies
        return made

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.instance.kernel_name

    @property
    def span(self) -> Span:
        """Where the kernel is defined."""
        return self.instance.specialisation.source.span

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """The reads and writes of each task of its gradient."""
        return self.arguments.gradient_tasks

    @property
    def live_in(self) -> BufferRegions:
        """The elements that its gradient reads after it."""
        return self.regions.live_in

    @property
    def sources(self) -> list[int]:
        return [] if self.flow is None else [number for _, number, _ in self.flow.inputs]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The positions in `values` of traced numbers, each with the number."""
        if self.flow is None:
            return []
        first = len(self.arguments.arrays)
        floats = [first + k for k, t in enumerate(self.instance.primal.parameters) if t.kind == "f"]
        return [(floats[k], number) for k, number, _ in self.flow.inputs]

    @property
    def results(self) -> list[int]:
        return [] if self.flow is None else self.flow.outputs

    @property
    def loaded(self) -> frozenset[Buffer]:
        return self.arguments.accesses.loaded

    @property
    def written(self) -> frozenset[Buffer]:
        return self.arguments.accesses.written

    @property
    def gradients(self) -> frozenset[Buffer]:
        return self.arguments.gradients

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        return self.loaded & self.arguments.temporaries

    def gradient_arguments(self) -> tuple[Any, ...]:
        """The arguments of the gradient: it reads the copies of external arrays, and may write to them. The
        arrays are followed by the old values that it reads and by memory for copies that it makes.
        """
        if not (self.copies or self.old_values or self.needs.copies):
            return self.values
        facts = self.arguments.gradient_facts
        further = [] if self.old_values is None else [*self.old_values.saved]
        bound = dict(self.arguments.arrays)
        further += [_memory_like(bound[buffer]) for buffer in facts.copied]
        return self._values(self.copies, facts.live_in_before, further)

    def replay_arguments(self, numbers: Mapping[int, float] | None = None) -> tuple[Any, ...]:
        """The arguments to run the launch itself again: copies of external arrays, and other values for traced
        `numbers`.
        """
        values = self._values(self.input_copies, self.written, [])
        if numbers is None:
            return values
        given = {at: numbers[number] for at, number in self.places if number in numbers}
        return tuple([given.get(k, value) for k, value in enumerate(values)]) if given else values

    def drop_saved(self) -> None:
        """Free the data for its gradient: there will be no further sweep."""
        self.copies, self.old_values = _NO_COPIES, None

    def run_again(self, numbers: dict[int, float]) -> None:
        """Run the launch itself with other values for traced numbers, and store its results there."""
        results = self.instance.primal.launch(self.replay_arguments(numbers))
        if self.flow is not None:
            floats = [value for t, value in zip(self.instance.primal.results, results, strict=False) if t.kind == "f"]
            numbers.update(zip(self.flow.outputs, floats, strict=True))

    def _values(
        self, copies: Mapping[Buffer, Memory], changed: frozenset[Buffer], further: list[BoundArray]
    ) -> tuple[Any, ...]:
        arrays = self.arguments.arrays
        found: list[BoundArray] = []
        for buffer, bound in arrays:
            kept = copies.get(buffer)
            if kept is not None:
                fresh = kept.copy() if buffer in changed else kept
                bound = bound._replace(address=fresh.address, owner=fresh)
            found.append(bound)
        return (*found, *further, *self.values[len(arrays) :])


def _memory_like(bound: BoundArray) -> BoundArray:
    """Memory for the numbers of an array, and for their tangents if it has any."""
    values, tangents = (Memory(max(bound.nbytes, 1)) for _ in range(2))
    return BoundArray(values.address, 0, tangents.address, 0, bound.shape, bound.nbytes, True, None, (values, tangents))


#: Maps a number of this recording to one of another.
NumberOf = Callable[[Traced], Any]


@dataclass(eq=False)
class Custom(RecordedOperation):
    """A block of the program with a custom VJP: `gradient` runs in its place in the reverse sweep.

    `loaded`: its live-in memory; `fully_overwritten`: fields that it overwrites completely; `lost`: fields without a
    gradient in which it left active values, with the span (None: perhaps in all memory that it wrote). `scratch`:
    elements that `gradient` recomputes before reading them; all others it finds as they were at the end of the block.
    `after`: the length of the log of overwritten values then. `gradient_tasks`: known launches of the gradient;
    `release` frees its memory. `copies`: contents of external arrays at the end. `notices_stale`: its launches and
    reads are checked for stale elements, so that not all values have to be saved. `sources`: the traced numbers from
    outside that went into it. `active`: loaded memory without a gradient that held differentiated values, with the
    place where these were written. `reads_active`: for a block that passes adjoints of such memory on, maps the memory
    whose adjoints are needed after it to the memory whose adjoints it needs itself. `kept_bytes`: an upper bound of the
    bytes that it saves for its gradient, if known. `made`: new ndarrays that hold its results. `carries_tangents`: in a
    sweep that carries tangents, its gradient does so too. `gradients`: those that `gradient` reads or writes; None:
    perhaps all, or, if it `tells_gradients`, those that it announces to the sweep. `again` repeats it in another
    recording, with that one's numbers in place of its own, if known; `is_function`: whether it is a user function with
    a custom gradient. `uses`: the elements that its launches and Python use, if known. `needs_fields`: whether
    `gradient` reads fields, as they were at the end of the block; `parts`: the number of following events that are
    parts of it.
    """

    name: str
    span: Span
    gradient: Callable[[CustomSweep], None]
    loaded: set[Buffer] = field(default_factory=set)
    written: set[Buffer] = field(default_factory=set)
    fully_overwritten: set[Buffer] = field(default_factory=set)
    lost: dict[Buffer, Span] | None = None
    scratch: BufferRegions = ()
    after: int = 0
    gradient_tasks: tuple[TaskSummary, ...] = ()
    release: Callable[[], None] | None = None
    notices_stale: bool = False
    copies: dict[Buffer, Memory] = field(default_factory=dict)
    sources: frozenset[int] = frozenset()
    active: dict[Buffer, Span] = field(default_factory=dict)
    reads_active: Callable[[set[Buffer]], set[Buffer]] | None = None
    kept_bytes: int = 0
    made: frozenset[Buffer] = frozenset()
    carries_tangents: bool = False
    gradients: frozenset[Buffer] | None = None
    tells_gradients: bool = False
    again: Callable[[Any, NumberOf], dict[int, Any]] | None = None
    is_function: bool = False
    uses: dict[Buffer, IndexRegions] | None = None
    needs_fields: bool = True
    parts: int = 0

    always: ClassVar[bool] = True

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        return () if self.reads_active is None else self.reads_active(reached)

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


def outermost(events: Iterable[Event]) -> Iterator[Event]:
    """The events that are not parts of another."""
    remaining = iter(events)
    for event in remaining:
        yield event
        if isinstance(event, Custom):
            for _ in range(event.parts):
                next(remaining)


#: Events that count as launches.
Record = RecordedLaunch | Custom | CapturedStep
Event = Record | Write | Read | Computed
