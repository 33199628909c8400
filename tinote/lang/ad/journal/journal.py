"""The journal: what a program did to memory while it is differentiated, as typed events in their order.

It is the recorder of its context while it is open. What the reverse sweep reads of memory is kept on the way
(`saved_values.py`); observers look on (`observer.py`); at the end the events are followed for broken gradient paths and
swept in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from typing import Any

import numpy as np

from tinote.compiler.requests import GRADIENT, Request
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.events import Custom, Event, Launch, Read, Write
from tinote.lang.ad.journal.number_flow import NumberFlow, look_for_plain
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.saved_values import SavedValues, living_buffers, refuse_old_values
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.traced import Trace, Traced, constants, holds_traced, objects, traced_array
from tinote.lang.index_regions import IndexRegion, is_element, region_at
from tinote.lang.kernels.arguments import arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import (
    Recorder,
    Watcher,
    claim_gradients,
    end_watch,
    is_only_owner,
    recorder,
    session,
    watch,
)
from tinote.source import NOWHERE, Span, caller

__all__ = ["Journal", "living_buffers"]


class Journal(Recorder):
    """`observers`: who looks on. `saves`: whether anything is kept from one launch to another; `keep`: whether launches
    and gradients can be run again as long as anybody has the journal; `fit`: what limits the memory (`SavedValues`).
    `trace`: what numbers that Python reads belong to.
    """

    gradients = None  # a derivative that a kernel computes would not be recorded
    #: which of a kernel's gradients the reverse sweep runs, where no traced numbers take part
    derivative = GRADIENT
    #: how a launch runs that saves the old values which its gradient needs
    saves_by = Request(records=True)
    trace: Trace

    def __init__(
        self,
        observers: Sequence[Observer] = (),
        *,
        saves: bool = True,
        keep: bool = False,
        fit: Callable[[int], None] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.keep = keep
        self.trace = Trace() if trace is None else trace
        self.trace.events = self.events
        self._observers = tuple(observers)
        self._checks_before_refusal = bool(observers) and any(one.checks_before_refusal for one in observers)
        self._tangents = self.derivative.has_tangents
        self.saved = SavedValues(self._observers, between_launches=saves, again=keep, tangents=self._tangents, fit=fit)
        self._touched: set[Buffer] = set()
        self._written_before: set[Buffer] = set()
        self._looked_at = 0  # the number of events that are counted in `_touched` and `_written_before`
        self._has_initialising_writes = False  # whether there are writes to fields that nothing has used
        self._read: set[Buffer] = set()  # fields of which Python has numbers
        self._pending: Launch | None = None
        self._refused: DifferentiationError | None = None  # what a launch was let pass with, for others to judge first
        self._tokens: tuple[Token[Recorder | None], Token[Watcher | None]] | None = None

    @property
    def records(self) -> list[Launch | Custom]:
        """The launches and the stretches with a custom VJP."""
        return [event for event in self.events if isinstance(event, Launch | Custom)]

    @property
    def has_something(self) -> bool:
        """Whether anything was recorded, or refused."""
        return bool(self.events) or self._refused is not None

    def start(self) -> None:
        """Become the recorder of this context, and hear what other contexts write."""
        self._tokens = recorder.set(self), watch(self)

    def stop(self) -> None:
        """The end of what `start` began."""
        assert self._tokens is not None
        was_recorder, was_watcher = self._tokens
        end_watch(self, was_watcher)
        recorder.reset(was_recorder)
        self.trace.close()

    # ---- launches

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        given, flow, arguments = values, None, instance.arguments
        if instance.returns_floats or self._tangents or (values and Traced in map(type, values)):
            flow = self.flow(instance, values)
            values = constants(values)
            arguments = arguments_of(instance, values, self.request(flow))
        elif arguments is None or arguments.request is not self.derivative:
            arguments = arguments_of(instance, values, self.derivative)
        try:
            if arguments.values:
                arguments.refuse_shared()
            self._pending = launch = self.saved.launching(instance, values, arguments, self.saves_by, flow)
        except DifferentiationError as error:
            if not self._checks_before_refusal:
                raise
            self._refused = self._refused or error
            self._pending = launch = None
        if self.trace.root.taken_out is not None:
            look_for_plain(self.trace, given, arguments)
        native = None if launch is None else launch.old_values
        if native is not None and self._checks_before_refusal:
            why = "a tape that checks the access rules does not keep"
            refuse_old_values(arguments, why, "the loop, or leave the checks out")
        for one in self._observers:
            native = one.launching(instance, arguments) or native
        if flow is None:
            return native
        flow.runs = native
        return flow

    def flow(self, instance: Instance, values: tuple[Any, ...]) -> NumberFlow | None:
        """What runs a launch that traced numbers go into or come out of."""
        if instance.returns_floats or self._tangents or (values and Traced in map(type, values)):
            return NumberFlow(self.trace, instance, tangents=self._tangents)
        return None

    def request(self, flow: NumberFlow | None) -> Request:
        """Which of a kernel's gradients is for such a launch."""
        return self.derivative if flow is None else Request(self.derivative.derivative, arguments=True)

    def launched(self) -> None:
        launch, self._pending = self._pending, None
        if launch is not None:
            self.saved.launched(launch)
            self.events.append(launch)
            external = launch.arguments.external_arrays
            if external and any(buffer in external for buffer, _ in launch.arguments.gradient_facts.broken_paths):
                self.trace.note_taken_out()  # an active value is in an array that anybody may read
            if session.has_views:
                self.saved.distrust_views(launch)
        if self._observers:
            for one in self._observers:
                one.launched()

    def launching_outside(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched in another thread or task, which is no part of this."""
        for buffer in own(arguments_of(instance, values).accesses.written):
            self.overwriting(buffer)

    def custom(self, custom: Custom) -> None:
        """A stretch with a custom VJP has ended well."""
        for one in self._observers:
            one.custom(custom)
        kept = self.saved.custom(custom)
        self.events.append(custom)
        if session.has_views:
            self.saved.distrust(kept)

    # ---- Python

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        self.overwriting(buffer, region_at(buffer, position))
        traced = None if source is not None else self._numbers_in(value, buffer)
        records = source is not None or traced is not None or self._was_used(buffer, position)
        span = caller() if records and (position is ... or buffer.adjoint is None) else NOWHERE
        write = Write(buffer, position, source, traced, span, initialises=not records)
        exempt = bool(self._observers) and recorder.get() is not self
        for one in self._observers:
            one.writing(write, exempt=exempt)
        if records or self.keep or buffer in self._read:
            self.events.append(write)
            self._has_initialising_writes |= write.initialises
            if write.is_whole and records:
                self._touched.add(buffer)

    def _numbers_in(self, value: Any, buffer: Buffer) -> np.ndarray[Any, Any] | None:
        """The traced numbers in a value that is written to a field; None where there are none."""
        if buffer.dtype.kind != "f" or buffer.primal is not None:
            return None
        if type(value) is Traced:
            return np.array(value.number) if self.trace.is_active(value) else None
        if not holds_traced(value):
            if self.trace.root.taken_out is not None:
                self.trace.note_plain(value, f"'{buffer.name}'")
            return None
        array = traced_array(value)
        items = [one.number if self.trace.is_active(one) else 0 for one in array.ravel().tolist()]
        return np.array(items, np.int64).reshape(array.shape)

    def _was_used(self, buffer: Buffer, position: Any) -> bool:
        """Whether a launch has used the field, so that the gradient of what is written there is not that of what was
        there before.
        """
        if isinstance(position, tuple) and position[:1] != (...,):
            if buffer.adjoint is None or not is_element(buffer, position[: buffer.rank]):
                return False
        return self.touches(buffer)

    def sharing(self, buffer: Buffer) -> None:
        self.taking(buffer)
        self.overwriting(buffer)
        for one in self._observers:
            one.sharing(buffer)

    def taking(self, buffer: Buffer) -> None:
        if buffer.dtype.kind == "f" and buffer.adjoint is not None:
            self.trace.note_taken_out()

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        if buffer.dtype.kind != "f" or buffer.primal is not None:
            return value
        self._read.add(buffer)
        if not buffer.element:
            return self._number_at(buffer, position, value)
        positions = [(*position, *component) for component in np.ndindex(buffer.element)]
        items = [self._number_at(buffer, at, v) for at, v in zip(positions, value.ravel().tolist(), strict=True)]
        return objects(items, buffer.element)

    def _number_at(self, buffer: Buffer, position: tuple[int, ...], value: float) -> Traced:
        found = self.trace.new(value)
        if self._tangents and buffer.tangent is not None:
            found.along(numbers(buffer.tangent)[position].item())
        self.events.append(Read(found.number, buffer, position))
        return found

    def overwriting(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Elements of a field, by default all, are about to be written, by whomever."""
        self.saved.overwriting(buffer, region, exempt=bool(self._observers) and recorder.get() is not self)

    @property
    def copied_bytes(self) -> int:
        """How many bytes are kept for the reverse sweep."""
        return self.saved.nbytes

    # ---- what has happened so far

    def computed_before(self, buffer: Buffer) -> bool:
        """Whether a recorded launch has written to the field."""
        self._look()
        return buffer in self._written_before

    def touches(self, buffer: Buffer) -> bool:
        """Whether recorded launches have read or written a field, or Python has given it new values since."""
        self._look()
        return buffer in self._touched

    def starts_from(self, buffers: Iterable[Buffer]) -> None:
        """The present values of these fields are what is differentiated with respect to: whatever Python writes to them
        takes their place, also where nothing has used them yet.
        """
        self._touched.update(buffers)

    def touched_before(self) -> set[Buffer]:
        """What recorded launches have read or written, and Python has given new values since."""
        self._look()
        return set(self._touched)

    def _look(self) -> None:
        for event in self.events[self._looked_at :]:
            if type(event) is Launch or type(event) is Custom:
                self._touched |= event.touched
                self._written_before |= event.written
        self._looked_at = len(self.events)

    # ---- at its end

    def lost_values(self, lost: dict[Buffer, Span] | None = None) -> LostValues:
        """The values that are lost on the way (`LostValues`). Raises `DifferentiationError` for a broken gradient path,
        and for a launch without a gradient. `lost`: fields without a gradient that hold active values at the start.
        """
        if self._refused is not None:
            raise self._refused
        values = LostValues(at_first=lost)
        values.follow(self.events)
        return values

    def claim(self, *, clear: bool) -> None:
        """The gradients that `reverse` will touch belong to the present owner from now on. `clear`: those that were
        another's start at zero.
        """
        if not is_only_owner():
            for event in self.records:
                claim_gradients(event.gradient_tasks, clear=clear)

    def reverse(self, *, restore: bool = True) -> None:
        """Run the gradients of all that was recorded."""
        if self.events:
            self.sweep().run(restore=restore)

    def sweep(self, gradients: Request | None = None, done: Callable[[Custom], None] | None = None) -> Sweep:
        """A reverse sweep through all that was recorded, to be run; by default of `derivative`."""
        return Sweep(
            self.events,
            self.saved,
            gradients or self.derivative,
            done,
            initialising_writes=self._has_initialising_writes,
        )

    def forget(self) -> None:
        """Let the copies go, unless they are to be kept: nothing will be reversed any more."""
        if self.keep:
            self.saved.seal(self.records)
        else:
            self.saved.let_go([event for event in self.events if type(event) is Custom])
        for one in self._observers:
            one.release()
