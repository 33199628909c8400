"""The reverse sweep through a journal: the gradients of all launches, the last first, each on memory as the launch left
it, and the adjoints of Python's operations and custom VJPs between them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tinote.compiler.requests import Request
from tinote.errors import KernelFiniteError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.activity import Needed, needed_adjoints
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Computed, Custom, Event, Read, Write
from tinote.lang.ad.journal.lasting_writes import LastingWrites
from tinote.lang.ad.journal.saved_values import RecordedLaunch, SavedValues
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints, SweepObserver, tangent_of
from tinote.lang.ad.memory.undo import Rewind, numbers
from tinote.lang.ad.memory.values import accumulate, add_at, assign, held_now, store
from tinote.lang.data.traced import Traced
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.index_regions import slices_of, whole_region
from tinote.lang.session.state import memory_of, recording_as
from tinote.runtime.seam import active_listener

Array = np.ndarray[Any, Any]

_ZERO = Dual(0.0)


class Sweep:
    """A sweep through `events`. `gradients`: the kernel gradient to run. `done` is called after each custom VJP.
    `initialising_writes`: whether there may be any (`Write.initialises`). `active`: memory without a gradient that
    holds active values. `adjoints`: those that exist; those of traced numbers may be seeded. `at`: the launch or custom
    block that ran last. `lasting`: what decides which values that custom gradients leave in fields stay, if any do.
    """

    __slots__ = (
        "_active",
        "_arrays",
        "_done",
        "_events",
        "_gradients",
        "_has_initialising_writes",
        "_position",
        "_rewind",
        "_saved",
        "adjoints",
        "at",
        "lasting",
    )

    def __init__(
        self,
        events: Sequence[Event],
        saved: SavedValues,
        gradients: Request,
        done: Callable[[Custom], None] | None,
        initialising_writes: bool,
        adjoints: SweepAdjoints,
        active: Collection[Buffer] = (),
    ) -> None:
        self._active = active
        self.adjoints = adjoints
        self.lasting: LastingWrites | None = None
        self._position = 0  # of the custom VJP that runs
        self._events = events
        self._saved = saved
        self._gradients = gradients
        self._done = done
        self._has_initialising_writes = initialising_writes
        self._rewind = Rewind(saved.log)
        self._arrays: dict[Buffer, Array] = {}
        self.at: Event | None = None

    def run(self, needed: Needed | None = None) -> None:
        """Accumulate the gradients. Afterwards the fields have their present values again. `needed`: by a sweep in
        which no number has an adjoint, if that is known.
        """
        if not self._active:
            self._run(self._events, restore=True)
            return
        adjoints = self.adjoints
        if needed is None or adjoints.numbers:
            needed = needed_adjoints(self._events, self._active, adjoints.numbers)
        adjoints.add_buffers(needed.buffers)
        try:
            self._run(needed.events, restore=True)
        finally:
            adjoints.let_go()

    def run_within(self, adjoints: SweepAdjoints, wanted: Collection[Buffer], *, restore: bool = False) -> None:
        """The same as a part of another sweep, which has these adjoints and restores the fields, unless `restore` is
        set; the adjoints of `wanted` may be nonzero.
        """
        needed = needed_adjoints(self._events, self._active, adjoints.numbers, wanted)
        self.adjoints = adjoints
        self._run(needed.events, restore=restore)

    def _run(self, events: Sequence[Event], *, restore: bool) -> None:
        rewind, saves = self._rewind, self._saved.between_launches
        overwrites_read = _read_before(events, self.adjoints) if self._has_initialising_writes else ()
        position = len(events)
        launch, observer = self.launch, self.adjoints.observer
        if observer is not None:
            launch = _watched(observer, self.adjoints, launch)
        try:
            rewind.begin(restores=restore)
            for event in reversed(events):
                position -= 1
                if isinstance(event, RecordedLaunch):
                    self.at = self._events[position]
                    if saves and rewind.shown > event.after:
                        rewind.undo_to(event.after)
                    if event.regions.live_in_before:
                        self._restore(event)
                    launch(event)
                elif isinstance(event, Computed):
                    self.computed(event)
                elif isinstance(event, Read):
                    self.read(event)
                elif isinstance(event, Write):
                    if not event.initialises or position in overwrites_read:
                        self.write(event)
                elif isinstance(event, CapturedStep):
                    self.at = self._events[position]
                    if saves and rewind.shown > event.after:
                        rewind.undo_to(event.after)
                    self.step(event)
                else:
                    self.at, self._position = self._events[position], position
                    if saves and rewind.shown > event.after:
                        rewind.undo_to(event.after)
                    (self.custom if observer is None else _watched(observer, self.adjoints, self.custom))(event)
        finally:
            rewind.end()

    def _restore(self, launch: RecordedLaunch) -> None:
        """Restore the values from before the launch that the gradient reads. The gradient repeats the launch's effects
        on these fields.
        """
        live_in = {buffer for buffer, _ in launch.regions.live_in_before}.difference(launch.arguments.shadows_as_values)
        for buffer, region in launch.regions.written:
            for one in (buffer, tangent_of(buffer, self.adjoints.tangents)):
                if one in live_in:
                    self._rewind.disturb(one, region)
        self._rewind.undo_between(launch.before, launch.after, live_in)

    def launch(self, launch: RecordedLaunch) -> None:
        """Run the gradient of one launch."""
        needs = launch.needs
        if needs.request is self._gradients and needs.code is not None and launch.flow is None:  # as of most
            needs.code.launch(launch.gradient_arguments())
            return
        specialisation = launch.instance.specialisation
        request, flow, temporaries = self._gradients, launch.flow, launch.arguments.request.temporaries
        if request.shares and not launch.arguments.request.shares:
            request = request.unshared
        if flow is None:
            values: Sequence[Any] = launch.gradient_arguments()
            if temporaries:
                request = request.with_temporaries(temporaries)
                values = self.adjoints.values(launch.arguments, values, request, launch.copies)
            specialisation.code(request).launch(values)
            return
        seeds = [self.adjoints.take(number) for number in flow.outputs]
        values = [*launch.gradient_arguments(), *[seed.value for seed in seeds]]
        if flow.tangents:
            given = [0.0] * flow.floats
            for k, _, tangent in flow.inputs:
                given[k] = tangent
            values += [*given, *[seed.tangent for seed in seeds]]
        request = (request.with_temporaries(temporaries) if temporaries else request).with_arguments
        if temporaries:
            values = self.adjoints.values(launch.arguments, values, request, launch.copies)
        results = specialisation.code(request).launch(values)
        for k, number, _ in flow.inputs:
            self.adjoints.add(number, Dual(results[k], results[flow.floats + k] if flow.tangents else 0.0))

    def step(self, step: CapturedStep) -> None:
        """Run the gradient of a captured step."""
        disturbed = step.way.facts.disturbed
        if disturbed:
            self._rewind.disturb_all(disturbed)
        seeds = [self.adjoints.take(number).value for number in step.results] if step.results else ()
        for number, adjoint in zip(step.sources, step.way.reverse(step, seeds, self.adjoints), strict=True):
            self.adjoints.add(number, Dual(adjoint))

    def write(self, write: Write) -> None:
        """Move the gradient of the new values to their sources."""
        adjoint = self.adjoints.of(write.target)
        if adjoint is None:
            return
        tangent = adjoint.tangent
        if write.numbers is not None:
            values = _read(self._array(adjoint), write.position)
            tangents = None if tangent is None else _read(self._array(tangent), write.position)
            self._add_all(write.numbers, values, tangents)
        source = None if write.source is None else self.adjoints.of(write.source)
        self._move(adjoint, source, write)
        if tangent is not None:
            self._move(tangent, None if source is None else source.tangent, write)

    def _array(self, buffer: Buffer) -> Array:
        """All numbers of a field (`numbers`)."""
        found = self._arrays.get(buffer)
        if found is None:
            found = self._arrays[buffer] = numbers(buffer)
        return found

    def _move(self, target: Buffer, source: Buffer | None, write: Write) -> None:
        values = self._array(target)
        if source is not None:
            accumulate(source, held_now(target) if active_listener() is not None else values)
        memory = memory_of(target)
        if write.position is ... and memory.is_reserved:
            memory.clear()
        else:
            assign(values, write.position, 0)

    # ---- traced numbers

    def seed(self, number: Traced, adjoint: float) -> None:
        """Start with the adjoint of a number."""
        self.adjoints.numbers[number.number] = Dual(adjoint)

    def adjoint(self, number: Traced) -> Dual:
        """The adjoint of a number from before the recording."""
        return self.adjoints.numbers.get(number.number, _ZERO)

    def _add_all(self, targets: Array | int, values: Any, tangents: Any) -> None:
        """Accumulate the adjoints of written elements into the numbers that were written."""
        if isinstance(targets, int):
            self.adjoints.add(targets, Dual(_total(values), 0.0 if tangents is None else _total(tangents)))
            return
        shape = np.shape(values)
        if not shape:
            self.adjoints.add(int(targets), Dual(_total(values), 0.0 if tangents is None else _total(tangents)))
            return
        spread = np.broadcast_to(targets, shape).ravel()
        adjoints = [np.ravel(one) for one in (values, tangents) if one is not None]
        for number in np.unique(targets).tolist():
            if number:
                chosen = spread == number
                self.adjoints.add(number, Dual(*[_total(one[chosen]) for one in adjoints]))

    def read(self, read: Read) -> None:
        """Add the adjoint of a number that was read to that of the element."""
        found, adjoint = self.adjoints.numbers.pop(read.number, None), self.adjoints.of(read.buffer)
        if found is not None and adjoint is not None:
            add_at(self._array(adjoint), read.position, found.value)
            if adjoint.tangent is not None:
                add_at(self._array(adjoint.tangent), read.position, found.tangent)

    def computed(self, event: Computed) -> None:
        """Propagate the adjoint of a number that Python computed to the operands. A zero adjoint is not propagated,
        even if the slope is infinite or NaN.
        """
        adjoints = self.adjoints
        found = adjoints.numbers.pop(event.number, None)
        if found is None or found.is_zero:
            return
        for operand, adjoint in zip(event.operands, event.adjoints(found), strict=True):
            if type(operand) is Traced and operand.number:
                adjoints.add(operand.number, adjoint)

    def custom(self, custom: Custom) -> None:
        """Run a custom VJP."""
        inner = CustomSweep(self._gradients, custom.name, custom.span, self._rewind.stale, self.adjoints)
        lasting = self.lasting
        if lasting is not None and not custom.is_function:
            inner.needed_around = functools.partial(lasting.needed_before, self._position + 1)
            lasting = None
        inner.keeps_writes = lasting is not None
        for buffer, region in custom.scratch:
            if buffer.dtype.kind == "f":  # a read before its computation is detected
                inner.overwriting(buffer, region)
                if memory_of(buffer).is_reserved:  # most of it is not taken, and is not to be
                    continue
                store(buffer, ... if region == whole_region(buffer) else slices_of(region), np.nan)
        try:
            with recording_as(inner), custom.arrays_again():
                custom.gradient(inner)
        except BaseException:
            inner.bring_back()
            raise
        if lasting is None:
            inner.bring_back()
        else:
            lasting.settle(self._position, custom, inner, self._rewind)
        for buffer in custom.effects.filled:
            self.adjoints.clear(buffer)
        if self._done is not None:
            self._done(custom)

    def run_launches(self, run: Callable[[RecordedLaunch], None]) -> None:
        """Let `run` launch each recorded launch again, on the fields as it found them. The last comes first, since the
        log of overwritten values is read backwards; raises the `KernelFiniteError` of the first launch that has one.
        For a journal that keeps what launches read.
        """
        rewind = self._rewind
        first: KernelFiniteError | None = None
        try:
            rewind.begin(restores=True)
            for event in reversed(self._events):
                if not isinstance(event, RecordedLaunch):
                    continue
                rewind.undo_to(event.before)
                for buffer, region in event.regions.written:
                    rewind.disturb(buffer, region)
                try:
                    run(event)
                except KernelFiniteError as error:
                    first, self.at = error, event
                # Earlier launches need the values that this one has overwritten again.
                rewind.undo_between(event.before, event.after, event.written)
        finally:
            rewind.end()
        if first is not None:
            raise first


def _watched(observer: SweepObserver, adjoints: SweepAdjoints, run: Callable[[Any], None]) -> Callable[[Event], None]:
    """`run`, with notifications of the observer before and after."""

    def watched(event: Event) -> None:
        observer.before(adjoints, event)
        run(event)
        observer.after(adjoints, event)

    return watched


def _read(array: Array, position: Any) -> Any:
    """The elements at a position: a number, or an array."""
    found = array[position]
    listener = active_listener()
    if listener is None:
        return found
    if np.ndim(found):
        listener.taking("the derivatives of several numbers that Python has")
        return found
    return listener.reading(array, position, found.item())


def _read_before(events: Sequence[Event], adjoints: SweepAdjoints) -> set[int]:
    """Positions of the initialising writes whose replaced values were used after all: as numbers that Python had read
    there.
    """
    writes = [k for k, event in enumerate(events) if isinstance(event, Write) and event.initialises]
    if not writes:
        return set()
    used, fields = set(adjoints.numbers), dict[Buffer, int]()
    for position in range(len(events) - 1, -1, -1):
        event = events[position]
        if event.passes_on(used, lambda buffer: adjoints.of(buffer) is not None):
            used.update(event.sources)
            if isinstance(event, Read):
                fields[event.buffer] = position
    return {k for k in writes if fields.get(_written(events[k]), k) < k}


def _written(event: Event) -> Buffer:
    assert isinstance(event, Write)
    return event.target


def _total(values: Any) -> float:
    """The sum of an array, or a number."""
    if type(values) is Traced:  # of a step that is being captured
        return values  # type: ignore[return-value]
    return float(values.sum() if isinstance(values, np.ndarray) else values)
