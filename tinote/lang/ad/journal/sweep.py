"""The reverse sweep through a journal: the gradients of all launches, the last first, each on memory as the launch left
it, and what Python and custom VJPs did between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tinote.compiler.requests import Checks, Request
from tinote.errors import KernelFiniteError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Computed, Custom, Event, Launch, Read, Write
from tinote.lang.ad.journal.saved_values import SavedValues
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.traced import Traced
from tinote.lang.maths_derivatives import Dual
from tinote.lang.session.state import recorder

__all__ = ["Sweep"]

_ZERO = Dual(0.0)


class Sweep:
    """A sweep through `events`. `gradients`: which of a kernel's gradients runs. `done` is told of each custom VJP that
    has run. `initialising_writes`: whether there may be any (`Write.initialises`). `at`: the launch or custom stretch
    that was run last. `adjoints`: of traced numbers; they may be seeded.
    """

    def __init__(
        self,
        events: Sequence[Event],
        saved: SavedValues,
        gradients: Request,
        done: Callable[[Custom], None] | None = None,
        *,
        initialising_writes: bool = True,
    ) -> None:
        self._events = events
        self._saved = saved
        self._gradients = gradients
        self._done = done
        self._has_initialising_writes = initialising_writes
        self.at: Launch | Custom | None = None
        self.adjoints: dict[int, Dual] = {}

    def run(self, *, restore: bool = True) -> None:
        """Accumulate the gradients. Afterwards the fields hold again what they hold now, unless `restore` is false and
        nobody asks for that.
        """
        log, saves = self._saved.log, self._saved.between_launches
        overwrites_read = _read_before(self._events, self.adjoints) if self._has_initialising_writes else set[int]()
        try:
            log.begin(restores=restore)
            for position in range(len(self._events) - 1, -1, -1):
                event = self._events[position]
                if isinstance(event, Launch):
                    self.at = event
                    if saves and log.shown > event.after:
                        log.undo_to(event.after)
                    if event.regions.live_in_before:
                        self._restore(event)
                    self.launch(event)
                elif isinstance(event, Computed):
                    self.computed(event)
                elif isinstance(event, Read):
                    self.read(event)
                elif isinstance(event, Write):
                    if not event.initialises or position in overwrites_read:
                        self.write(event)
                else:
                    self.at = event
                    if saves and log.shown > event.after:
                        log.undo_to(event.after)
                    self.custom(event)
        finally:
            log.end()

    def _restore(self, launch: Launch) -> None:
        """Bring back what the gradient reads of the values from before the launch. It runs the launch's effects on
        these fields again.
        """
        live_in = {buffer for buffer, _ in launch.regions.live_in_before}
        for buffer, region in launch.regions.written:
            for one in (buffer, buffer.tangent):
                if one in live_in:
                    self._saved.log.disturb(one, region)
        self._saved.log.undo_between(launch.before, launch.after, live_in)

    def launch(self, launch: Launch) -> None:
        """Run the gradient of one launch."""
        code = launch.instance.specialisation.code
        request, flow = self._gradients, launch.flow
        if flow is None:
            code(request).launch(launch.gradient_arguments())
            return
        seeds = [self.adjoints.pop(number, _ZERO) for number in flow.outputs]
        values = [*launch.gradient_arguments(), *[seed.value for seed in seeds]]
        if flow.tangents:
            given = [0.0] * flow.floats
            for k, _, tangent in flow.inputs:
                given[k] = tangent
            values += [*given, *[seed.tangent for seed in seeds]]
        results = code(Request(request.derivative, arguments=True, checks=request.checks)).launch(values)
        for k, number, _ in flow.inputs:
            self.add(number, Dual(results[k], results[flow.floats + k] if flow.tangents else 0.0))

    def write(self, write: Write) -> None:
        """Move the gradient of the new values to where they came from."""
        adjoint = write.target.adjoint
        if adjoint is None:
            return
        tangent = adjoint.tangent
        if write.numbers is not None:
            values = numbers(adjoint)[write.position]
            tangents = np.zeros_like(values) if tangent is None else numbers(tangent)[write.position]
            self._add_all(write.numbers, values, tangents)
        source = None if write.source is None else write.source.adjoint
        _move(adjoint, source, write)
        if tangent is not None:
            _move(tangent, None if source is None else source.tangent, write)

    # ---- traced numbers

    def seed(self, number: Traced, adjoint: float) -> None:
        """Start with the adjoint of a number."""
        self.adjoints[number.number] = Dual(adjoint)

    def adjoint(self, number: Traced) -> Dual:
        """The adjoint of a number that was there before anything was recorded."""
        return self.adjoints.get(number.number, _ZERO)

    def add(self, number: int, adjoint: Dual) -> None:
        """Accumulate the adjoint of a traced number."""
        known = self.adjoints.get(number)
        self.adjoints[number] = adjoint if known is None else known + adjoint

    def _add_all(self, targets: np.ndarray[Any, Any], values: Any, tangents: Any) -> None:
        """Accumulate the adjoints of elements that were written into the numbers that were written there."""
        shape = np.shape(values)
        spread = np.broadcast_to(targets, shape).ravel()
        adjoints = np.ravel(values), np.ravel(tangents)
        for number in np.unique(targets).tolist():
            if number:
                chosen = spread == number
                self.add(number, Dual(*[float(one[chosen].sum()) for one in adjoints]))

    def read(self, read: Read) -> None:
        """The adjoint of a number that was read is that of the element."""
        found, adjoint = self.adjoints.pop(read.number, None), read.buffer.adjoint
        if found is not None and adjoint is not None:
            numbers(adjoint)[read.position] += found.value
            if adjoint.tangent is not None:
                numbers(adjoint.tangent)[read.position] += found.tangent

    def computed(self, event: Computed) -> None:
        """The adjoint of a number that Python computed goes to the operands. One of zero reaches nothing, whatever the
        slope.
        """
        found = self.adjoints.pop(event.number, None)
        if found is None or not (found.value or found.tangent):
            return
        assert event.rule.slopes is not None
        slopes = event.rule.slopes(event.result, *event.operands)
        for number, slope in zip(event.sources, slopes, strict=True):
            if number:
                self.add(number, found * slope)

    def custom(self, custom: Custom) -> None:
        """Run a custom VJP."""
        stale = self._saved.log.stale
        inner = CustomSweep(self._gradients, custom.name, custom.span, stale, self.adjoints)
        for buffer in custom.scratch:
            if buffer.dtype.kind == "f":  # a read before it is computed shows
                inner.overwriting(buffer)
                numbers(buffer)[...] = np.nan
        token = recorder.set(inner)
        try:
            with custom.arrays_again():
                custom.gradient(inner)
        finally:
            recorder.reset(token)
            inner.bring_back()
        if self._done is not None:
            self._done(custom)

    def run_launches(self) -> None:
        """Run the launches themselves once more, with checks for NaN and infinity, each on the fields as it found them.
        The last runs first, as the log of overwritten values is read backwards; raises the `KernelFiniteError` of the
        first launch that has one. For a journal that keeps what launches read.
        """
        log = self._saved.log
        first: KernelFiniteError | None = None
        try:
            log.begin(restores=True)
            for event in reversed(self._events):
                if not isinstance(event, Launch):
                    continue
                log.undo_to(event.before)
                for buffer, region in event.regions.written:
                    log.disturb(buffer, region)
                try:
                    event.instance.specialisation.code(Request(checks=Checks.FINITE)).launch(event.replay_arguments())
                except KernelFiniteError as error:
                    first, self.at = error, event
                # Earlier launches find again what this one has overwritten once more.
                log.undo_between(event.before, event.after, event.written)
        finally:
            log.end()
        if first is not None:
            raise first


def _read_before(events: Sequence[Event], seeds: Collection[int]) -> set[int]:
    """Positions of the initialising writes that replace values which something has used after all: numbers that Python
    had read there.
    """
    writes = [k for k, event in enumerate(events) if isinstance(event, Write) and event.initialises]
    if not writes:
        return set()
    used, fields = set(seeds), dict[Buffer, int]()
    for position in range(len(events) - 1, -1, -1):
        event = events[position]
        if isinstance(event, Launch):
            if event.flow is not None:
                used.update([number for _, number, _ in event.flow.inputs])
        elif isinstance(event, Write):
            if event.numbers is not None and event.target.adjoint is not None:
                used.update(event.numbers.ravel().tolist())
        elif isinstance(event, Custom):
            used |= event.numbers
        elif event.number in used:
            if isinstance(event, Read):
                fields[event.buffer] = position
            else:
                used.update(event.sources)
    return {k for k in writes if fields.get(_written(events[k]), k) < k}


def _written(event: Event) -> Buffer:
    assert isinstance(event, Write)
    return event.target


def _move(target: Buffer, source: Buffer | None, write: Write) -> None:
    values = numbers(target)
    if source is not None:
        numbers(source)[...] += values
    values[write.position] = 0
