"""The reverse sweep through a journal: the gradients of all launches, the last first, each on memory as the launch left
it, and what Python and custom VJPs did between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinote.compiler.requests import Checks, Request
from tinote.errors import KernelFiniteError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, Event, Launch, Write
from tinote.lang.ad.journal.saved_values import SavedValues
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.session.state import recorder

__all__ = ["Sweep"]


class Sweep:
    """A sweep through `events`. `gradients`: which of a kernel's gradients runs. `done` is told of each custom VJP that
    has run. `at`: the launch or custom stretch that was run last.
    """

    def __init__(
        self,
        events: Sequence[Event],
        saved: SavedValues,
        gradients: Request,
        done: Callable[[Custom], None] | None = None,
    ) -> None:
        self._events = events
        self._saved = saved
        self._gradients = gradients
        self._done = done
        self.at: Launch | Custom | None = None

    def run(self, *, restore: bool = True) -> None:
        """Accumulate the gradients. Afterwards the fields hold again what they hold now, unless `restore` is false and
        nobody asks for that.
        """
        log, saves = self._saved.log, self._saved.between_launches
        try:
            log.begin(restores=restore)
            for event in reversed(self._events):
                if isinstance(event, Launch):
                    self.at = event
                    if saves and log.shown > event.after:
                        log.undo_to(event.after)
                    if event.regions.live_in_before:
                        self._restore(event)
                    self.launch(event)
                elif isinstance(event, Write):
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
        for buffer, box in launch.regions.written:
            for one in (buffer, buffer.tangent):
                if one in live_in:
                    self._saved.log.disturb(one, box)
        self._saved.log.undo_between(launch.before, launch.after, live_in)

    def launch(self, launch: Launch) -> None:
        """Run the gradient of one launch."""
        launch.instance.specialisation.code(self._gradients).launch(launch.values_back())

    def write(self, write: Write) -> None:
        """Move the gradient of the new values to where they came from."""
        adjoint = write.target.adjoint
        if adjoint is None or not write.renews:
            return
        source = None if write.source is None else write.source.adjoint
        _move(adjoint, source, write)
        if adjoint.tangent is not None:
            _move(adjoint.tangent, None if source is None else source.tangent, write)

    def custom(self, custom: Custom) -> None:
        """Run a custom VJP."""
        inner = CustomSweep(self._gradients, custom.name, custom.place, self._saved.log.stale)
        for buffer in custom.scratch:
            if buffer.dtype.kind == "f":  # whoever reads it without computing it first shall notice
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
                for buffer, box in event.regions.written:
                    log.disturb(buffer, box)
                try:
                    event.instance.specialisation.code(Request(checks=Checks.FINITE)).launch(event.values_again())
                except KernelFiniteError as error:
                    first, self.at = error, event
                # Earlier launches find again what this one has overwritten once more.
                log.undo_between(event.before, event.after, event.written)
        finally:
            log.end()
        if first is not None:
            raise first


def _move(target: Buffer, source: Buffer | None, write: Write) -> None:
    values = numbers(target)
    if source is not None:
        numbers(source)[...] += values
    values[write.position] = 0
