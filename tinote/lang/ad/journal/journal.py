"""The journal: what a program did to memory while it is differentiated, as typed events in their order.

It is the recorder of its context while it is open. What the reverse sweep reads of memory is kept on the way
(`saved_values.py`); observers look on (`observer.py`); at the end the events are followed for broken gradient paths and
swept in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Token
from typing import Any

from tinote.compiler.requests import GRADIENT, Request
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.events import Custom, Event, Launch, Write
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.reads import PythonReads
from tinote.lang.ad.journal.saved_values import SavedValues, living_buffers, refuse_old_values
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.boxes import Box, box_at, is_element
from tinote.lang.kernels.arguments import arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import (
    Recorder,
    Watcher,
    claim_gradients,
    end_watch,
    is_only_party,
    recorder,
    watch,
    world,
)
from tinote.source import NOWHERE, Span, caller

__all__ = ["Journal", "living_buffers"]


class Journal(Recorder):
    """`observers`: who looks on. `saves`: whether anything is kept from one launch to another; `keep`: whether launches
    and gradients can be run again as long as anybody has the journal; `fit`: what limits the memory (`SavedValues`).
    """

    gradients = None  # a derivative that a kernel computes would not be recorded
    #: which of a kernel's gradients the reverse sweep runs
    derivative = GRADIENT
    #: how a launch runs that saves the old values which its gradient needs
    saves_by = Request(records=True)

    def __init__(
        self,
        observers: Sequence[Observer] = (),
        *,
        saves: bool = True,
        keep: bool = False,
        fit: Callable[[int], None] | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.keep = keep
        self._observers = tuple(observers)
        self._judges_first = any(one.judges_first for one in observers)
        self.saved = SavedValues(
            observers, between_launches=saves, again=keep, tangents=self.derivative.has_tangents, fit=fit
        )
        self._reads = PythonReads()
        self._touched: set[Buffer] = set()
        self._written_before: set[Buffer] = set()
        self._looked_at = 0  # so many events are counted in `_touched` and `_written_before`
        self._pending: Launch | None = None
        self._refused: DifferentiationError | None = None  # what a launch was let pass with, for others to judge first
        self._tokens: tuple[Token[Recorder | None], Token[Watcher | None]] | None = None

    @property
    def records(self) -> list[Launch | Custom]:
        """The launches and the stretches with a custom VJP."""
        return [event for event in self.events if not isinstance(event, Write)]

    def start(self) -> None:
        """Become the recorder of this context, and hear what other contexts write."""
        self._tokens = recorder.set(self), watch(self)

    def stop(self) -> None:
        """The end of what `start` began."""
        assert self._tokens is not None
        was_recorder, was_watcher = self._tokens
        end_watch(self, was_watcher)
        recorder.reset(was_recorder)

    # ---- launches

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        arguments = arguments_of(instance, values, self.derivative)
        try:
            if arguments.values:
                arguments.refuse_shared()
            self._pending = launch = self.saved.launching(instance, values, arguments, self.saves_by)
        except DifferentiationError as error:
            if not self._judges_first:
                raise
            self._refused = self._refused or error
            self._pending = launch = None
        native = None if launch is None else launch.old_values
        if native is not None and self._judges_first:
            why = "a tape that checks the access rules does not keep"
            refuse_old_values(arguments, why, "the loop, or leave the checks out")
        for one in self._observers:
            native = one.launching(instance, arguments) or native
        return native

    def launched(self) -> None:
        launch, self._pending = self._pending, None
        if launch is not None:
            self.saved.launched(launch)
            self.events.append(launch)
            if world.has_views:
                self.saved.distrust_views(launch)
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
        if world.has_views:
            self.saved.distrust(kept)

    # ---- Python

    def writing(self, buffer: Buffer, position: Any, source: Buffer | None = None) -> bool:
        shifts = source is None and self._reads.shifts(buffer, position)
        self.overwriting(buffer, box_at(buffer, position))
        records = source is not None or (not shifts and self._was_used(buffer, position))
        place = caller() if records and position is ... else NOWHERE
        write = Write(buffer, position, source, place, renews=records or position is ...)
        exempt = bool(self._observers) and recorder.get() is not self
        for one in self._observers:
            one.writing(write, self.saved.count, exempt=exempt)
        if records:
            self.events.append(write)
            if write.is_whole:
                self._touched.add(buffer)
        return shifts

    def _was_used(self, buffer: Buffer, position: Any) -> bool:
        """Whether a launch has used the field, so that the gradient of what is written there is not that of what was
        there before.
        """
        if isinstance(position, tuple) and position[:1] != (...,):
            if buffer.adjoint is None or not is_element(buffer, position[: buffer.rank]):
                return False
        return buffer in self.touched_before()

    def sharing(self, buffer: Buffer) -> None:
        self.overwriting(buffer)
        for one in self._observers:
            one.sharing(buffer)

    def reading(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        self._reads.note(buffer, position)

    def overwriting(self, buffer: Buffer, box: Box | None = None) -> None:
        """Elements of a field, by default all, are about to be written, by whomever."""
        self.saved.overwriting(buffer, box, exempt=bool(self._observers) and recorder.get() is not self)

    @property
    def copied_bytes(self) -> int:
        """How many bytes are kept for the reverse sweep."""
        return self.saved.nbytes

    # ---- what has happened so far

    def computed_before(self, buffer: Buffer) -> bool:
        """Whether a recorded launch has written to the field."""
        self._look()
        return buffer in self._written_before

    def touched_before(self) -> set[Buffer]:
        """What recorded launches have read or written, and Python has given new values since."""
        self._look()
        return set(self._touched)

    def _look(self) -> None:
        for event in self.events[self._looked_at :]:
            if not isinstance(event, Write):
                self._touched |= event.touched
                self._written_before |= event.written
        self._looked_at = len(self.events)

    # ---- at its end

    def refuse_broken_path(self, lost: dict[Buffer, Span] | None = None) -> dict[Buffer, Span]:
        """Raise `DifferentiationError` for a broken gradient path, and for a launch without a gradient. `lost`: the
        fields without a gradient that hold varying values at the start; gives those at the end.
        """
        if self._refused is not None:
            raise self._refused
        values = LostValues(at_first=lost)
        values.follow(self.events)
        return values.places

    def claim(self, *, clear: bool) -> None:
        """The gradients that `reverse` will touch belong to the present party from now on. `clear`: those that were
        another's start at zero.
        """
        if not is_only_party():
            for event in self.records:
                claim_gradients(event.gradient_tasks, clear=clear)

    def reverse(self, gradients: Request | None = None, *, restore: bool = True) -> None:
        """Run the gradients of all that was recorded (`Sweep`), by default those of `derivative`."""
        self.sweep(gradients).run(restore=restore)

    def sweep(self, gradients: Request | None = None, done: Callable[[Custom], None] | None = None) -> Sweep:
        """A reverse sweep through all that was recorded, to be run."""
        return Sweep(self.events, self.saved, gradients or self.derivative, done)

    def forget(self) -> None:
        """Let the copies go, unless they are to be kept: nothing will be reversed any more."""
        if self.keep:
            self.saved.seal(self.records)
        else:
            self.saved.let_go([event for event in self.events if isinstance(event, Custom)])
        for one in self._observers:
            one.release()
