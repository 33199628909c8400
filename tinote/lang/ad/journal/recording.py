"""What a tape records, and the way back through it.

A gradient launch executes some of the kernel's loads again, so it must find the elements as they were. A recording
knows which elements the launches so far will need, and before something overwrites some of these, it keeps their values
(`lang/ad/memory/undo.py`); in the reverse sweep each launch's gradient finds what it needs as the launch left it. Where
nothing needed is overwritten, nothing is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from contextvars import Token
from typing import Any, Protocol

import numpy as np

from tinote.compiler.requests import GRADIENT, Checks, Request
from tinote.errors import DifferentiationError, KernelFiniteError, KernelMemoryError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.backward import Backward
from tinote.lang.ad.journal.old_values import SavingLaunch
from tinote.lang.ad.journal.reads import PythonReads
from tinote.lang.ad.journal.records import Custom, Record
from tinote.lang.ad.journal.replacements import Replacement, reverse_after
from tinote.lang.ad.memory.undo import UndoLog, numbers
from tinote.lang.ad.rules.validation import AccessRules
from tinote.lang.boxes import Box, box_at, box_of, is_element
from tinote.lang.kernels.access_region import NOTHING
from tinote.lang.kernels.arguments import Arguments, Foreign, arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import (
    Recorder,
    Watcher,
    claim_gradients,
    end_watch,
    is_only_party,
    is_viewed,
    recorder,
    watch,
    world,
)
from tinote.runtime.memory import Memory
from tinote.source import Span, caller

__all__ = ["Backward", "Custom", "Record", "Recording", "living_buffers"]


class PythonWrites(Protocol):
    """Who is told of what Python writes to fields under a recording."""

    def written(self, records: int, buffer: Buffer, position: Any) -> None:
        """Behind so many records Python is about to write to a field, at `position` in its array (`Recorder`)."""

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """What was just said to be written gets new values, from `source` or from outside; else the old are shifted."""


class Recording:
    """Launches in their order, with what their gradients need of memory. `listener` is told of each write beforehand.
    Unless `saves`, nothing is kept from one launch to another, and the gradients run on the fields as they are at the
    end; what a kernel overwrites within itself is kept all the same. `rules`: what checks the rules of access, if
    anything; it is told of what happens while this is the recorder, and not of what happens in a function that has a
    gradient of its own. `keep`: hold on to what each launch and each gradient reads until nobody has the recording any
    more, so that they can be run again. `check`: who is told of what Python writes.

    It is the recorder (`world.recorder`) while it records; `reverse` then runs the gradients.
    """

    clears_duals = False
    #: which of a kernel's gradients runs on the way back
    mode = GRADIENT
    #: how a launch runs that saves the old values which its gradient needs
    saves_by = Request(records=True)
    gradients = None  # a derivative that a kernel computes would not be recorded

    def __init__(
        self,
        listener: Callable[[Buffer], None] | None = None,
        *,
        saves: bool = True,
        rules: AccessRules | None = None,
        keep: bool = False,
        check: PythonWrites | None = None,
    ) -> None:
        self.check = check
        self.keep = keep
        self.let_go = False  # whether something is gone without which the gradients cannot be run again
        self.at = 0  # the number of the record, counted from 1, that was run last
        #: what runs in place of a kernel's gradient on the way back
        self.back = self.mode
        self.records: list[Record | Custom] = []
        self.rules = rules
        self._saves = saves
        # Whether every write is looked at, not only what is written over something needed.
        self._looks_at_all = keep or listener is not None
        self._known = False  # whether the launch under way is known to overwrite nothing that is needed
        self._listener = listener
        self.replacements: list[Replacement] = []
        self._reads = PythonReads()
        self._touched: set[Buffer] = set()
        self._written_before: set[Buffer] = set()
        self._looked_at = 0  # so many records are counted in `_touched` and `_written_before`
        self._pending: Record | None = None
        self._refused: DifferentiationError | None = None  # what a launch was let pass with, for the rules to look at
        self._tokens: tuple[Token[Recorder | None], Token[Watcher | None]] | None = None
        self._log = UndoLog()
        self._other_bytes = 0  # of arrays that others manage, and of old values
        self._copies = False  # whether there are any of such arrays
        self.copied: list[tuple[int, Buffer, int]] = []  # behind so many records, bytes of a field

    def start(self) -> None:
        """Become the recorder of this context, and hear what other contexts write."""
        self._tokens = recorder.set(self), watch(self)

    def stop(self) -> None:
        """The end of what `start` began."""
        assert self._tokens is not None
        was_recorder, was_watcher = self._tokens
        end_watch(self, was_watcher)
        recorder.reset(was_recorder)

    # ---- what the recorder is told

    def launching_outside(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched in another thread or task, which is no part of this."""
        for buffer in own(arguments_of(instance, values).touched.written):
            self.overwritten(buffer)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """A kernel is about to be launched. Gives what is to be launched in its place, if the rules are checked."""
        log = self._log
        arguments = arguments_of(instance, values, self.mode)
        try:
            if arguments.values:
                arguments.refuse_shared()
            needs = arguments.needs
        except DifferentiationError as error:
            if self.rules is None:
                raise
            # The rules of access may say more of it, element by element: they have their say first.
            self._refused = self._refused or error
            return self.rules.launching(instance, arguments)
        # Where nothing is needed, it does not matter what is written.
        watches = (self._saves and arguments.asks) or self._looks_at_all or needs.restored or log.is_watching
        footprint = arguments.footprint(values) if watches else NOTHING
        before = log.length
        self._known = footprint is NOTHING or (self._saves and not self._looks_at_all and log.knows(footprint))
        if not self._known:
            log.need(footprint.restored)
            if self.keep:
                self._need_all_of(_inputs(arguments))
            for buffer, box in footprint.written:
                self.overwritten(buffer, box)
        saving = self._saving(instance, values, arguments) if needs.old_values else None
        record = self._pending = Record(instance, values, arguments, footprint, before, log.length, {}, {}, saving)
        for buffer in arguments.foreign:
            if buffer in needs.restored:
                self._keep_foreign(record.copies, buffer)
            if self.keep:
                self._keep_foreign(record.input_copies, buffer)
        return saving if self.rules is None else self.rules.launching(instance, arguments)

    def _need_all_of(self, buffers: Iterable[Buffer]) -> None:
        self._log.need(tuple([(buffer, box) for buffer in buffers if (box := box_of(buffer)) is not None]))

    def _need_now(self, record: Record | Custom) -> list[Buffer]:
        """The gradient of a record needs the present values; of which fields."""
        if isinstance(record, Custom):
            kept = list(living_buffers() - record.scratch)
            self._need_all_of(kept)
            return kept
        self._log.need(record.footprint.needed)
        return [buffer for buffer, _ in record.footprint.needed]

    def _saving(self, instance: Instance, values: tuple[Any, ...], arguments: Arguments) -> SavingLaunch:
        """A launch that saves the old values which its gradient needs."""
        buffer, place = arguments.needs.old_values[0]
        if self.rules is not None:
            raise DifferentiationError(
                f"the gradient needs the old values of '{buffer.name}' that are returned here, which a tape that "
                "checks the access rules does not keep",
                place,
                hint="write ti.loop_config(serialize=True) in front of the loop, or leave the checks out",
            )
        saving = SavingLaunch(
            instance.specialisation, values, self.saves_by, lambda nbytes: self.make_room(buffer, nbytes)
        )
        self._other_bytes += saving.nbytes
        return saving

    @property
    def copied_bytes(self) -> int:
        """How many bytes are kept for the way back."""
        return self._log.nbytes + self._other_bytes

    def _keep_foreign(self, copies: dict[Buffer, Memory], buffer: Foreign) -> None:
        """Keep what an array that others manage holds now."""
        nbytes = buffer.bound.nbytes
        self._copies = True
        self.make_room(buffer, nbytes)
        kept = copies[buffer] = Memory(nbytes)
        ctypes.memmove(kept.address, buffer.bound.address, nbytes)
        self._other_bytes += nbytes

    def launched(self) -> None:
        """The launch that was announced has ended well: it counts. (One that raised has written fields, but has no
        gradient.) Raises `AccessRuleError`.
        """
        record, self._pending = self._pending, None
        if record is not None:
            self._launched(record)
        if self.rules is not None:
            self.rules.launched()

    def _launched(self, record: Record) -> None:
        arguments, footprint = record.arguments, record.footprint
        if self._saves:
            for buffer in arguments.foreign:
                if buffer in arguments.needs.loaded and buffer not in record.copies:
                    self._keep_foreign(record.copies, buffer)
            if not self._known:
                self._log.need(footprint.needed)
                self._log.completed(footprint)
        self._add(record)
        if world.has_views:
            needed = footprint.needed if self._saves else ()
            self._distrust([buffer for buffer, _ in (*needed, *footprint.restored)])
            if self.keep:
                self._distrust(_inputs(arguments))

    def custom(self, custom: Custom) -> None:
        """A stretch with its own gradient has ended well: it counts, and finds all fields again as they are now."""
        if self.rules is not None:
            for buffer in custom.written:
                self.rules.forget(buffer)
        custom.after = self._log.length
        kept: list[Buffer] = []
        if self._saves:
            kept = self._need_now(custom)
            for buffer in custom.arrays:
                self._keep_foreign(custom.copies, buffer)
        self._add(custom)
        if world.has_views:
            self._distrust(kept)

    def _add(self, record: Record | Custom) -> None:
        self.records.append(record)

    def _distrust(self, buffers: Iterable[Buffer]) -> None:
        """Keep what is needed of fields that others may write to without a word."""
        for buffer in buffers:
            if is_viewed(buffer):
                self.overwritten(buffer)

    def written(self, buffer: Buffer, position: Any = ...) -> bool:
        """Python is about to write to a field; whether it shifts what is there. Raises `AccessRuleError`."""
        # A function that is exempt passes on what Python does in it.
        if self.rules is not None and position is not None and recorder.get() is self:
            self.rules.written(buffer, position)
        shifts = self._reads.shifts(buffer, position)
        renewed = (
            not shifts and buffer.adjoint is not None and isinstance(position, tuple) and self._assign(buffer, position)
        )
        self.overwritten(buffer, box_at(buffer, position))
        if self.check is not None:
            self.check.written(len(self.records), buffer, position)
            if renewed:
                self.check.replaced(buffer, None)
        return shifts

    def read(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        """Python reads an element: what it writes there next is perhaps computed from it."""
        self._reads.note(buffer, position)

    def _assign(self, buffer: Buffer, position: tuple[Any, ...]) -> bool:
        """Python writes constants to an element, or to components of one or of all; whether to a field that launches
        have used.
        """
        everywhere = position[0] is ... if position else False
        count = 1 if everywhere else buffer.rank
        element, component = position[:count], position[count:]
        if not (everywhere or is_element(buffer, element)) or buffer not in self.touched_before():
            return False
        box = None if everywhere else box_at(buffer, element)
        self.replacements.append(Replacement(len(self.records), buffer, None, box=box, component=component))
        return True

    def overwritten(self, buffer: Buffer, box: Box | None = None) -> None:
        """Elements of a field, by default all, are about to be written, by whomever: keep what is needed of them on the
        way back.
        """
        if self._listener is not None:
            self._listener(buffer)
        if self.rules is not None and recorder.get() is not self:
            self.rules.forget(buffer)
        nbytes = self._log.overwrite(buffer, box, self.make_room)
        if nbytes:
            self.copied.append((len(self.records), buffer, nbytes))

    def make_room(self, buffer: Buffer, nbytes: int) -> None:
        """So many bytes more are to be kept. Raises `KernelMemoryError` past the session's limit."""
        limit = world.config.memory_limit
        if self.copied_bytes + nbytes > limit:
            raise KernelMemoryError(
                f"the tape would hold more than {limit:,} bytes of overwritten values of '{buffer.name}'",
                hint="keep each step in its own slice of a field, record fewer steps, or raise "
                "ti.init(memory_limit=...)",
            )

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """Python gives a whole field new values. What no launch has used yet simply begins with them."""
        if source is buffer:
            return
        if self.rules is not None and source is not None and recorder.get() is self:
            self.rules.copied(source, buffer)
        if self.check is not None:
            self.check.replaced(buffer, source)
        self._look()
        if buffer in self._touched or source is not None:
            self.replacements.append(Replacement(len(self.records), buffer, source, caller()))
            self._touched.add(buffer)

    def computed_before(self, buffer: Buffer) -> bool:
        """Whether a recorded launch has written to the field."""
        self._look()
        return buffer in self._written_before

    def touched_before(self) -> set[Buffer]:
        """What recorded launches have read or written, and Python has given new values since."""
        self._look()
        return set(self._touched)

    def _look(self) -> None:
        for record in self.records[self._looked_at :]:
            self._touched |= record.touched
            self._written_before |= record.written
        self._looked_at = len(self.records)

    # ---- the way back

    def claim(self, *, clear: bool) -> None:
        """The gradients that `reverse` will touch belong to the present party from now on. `clear`: those that were
        another's start at zero.
        """
        if is_only_party():
            return
        for record in self.records:
            tasks = record.tasks if isinstance(record, Custom) else record.arguments.gradient_tasks
            claim_gradients(tasks, clear=clear)

    def reverse(self, *, restore: bool = True, done: Callable[[Custom], None] | None = None) -> None:
        """Run the gradients of all that was recorded, the last first, each on the fields as it left them; afterwards
        the fields hold again what they hold now, unless `restore` is false and nobody asks for that. `done` is told of
        each gradient of the user's own that has run.
        """
        log, records, saves = self._log, self.records, self._saves
        replacements = list(self.replacements)
        try:
            log.begin(restores=restore)
            for position in range(len(records), 0, -1):
                if replacements:
                    reverse_after(replacements, position)
                record = records[position - 1]
                self.at = position
                if saves and log.shown > record.after:
                    log.undo_to(record.after)
                if isinstance(record, Record):
                    if record.footprint.restored:
                        self._restore(record)
                    self.launch_back(position, record)
                else:
                    self._run(record)
                    if done is not None:
                        done(record)
            reverse_after(replacements, 0)
        finally:
            log.end()

    def _restore(self, record: Record) -> None:
        """Bring back what the gradient reads of the values from before the launch. It runs the launch's effects on
        these fields again.
        """
        restored = {buffer for buffer, _ in record.footprint.restored}
        for buffer, box in record.footprint.written:
            for one in (buffer, buffer.tangent):
                if one in restored:
                    self._log.disturb(one, box)
        self._log.undo_between(record.before, record.after, restored)

    def run_again(self) -> None:
        """Run the launches themselves once more, with checks for NaN and infinity, each on the fields as it found them.
        The last runs first, as the log of overwritten values is read backwards; raises the `KernelFiniteError` of the
        first launch that has one. For a recording that keeps what launches read.
        """
        log = self._log
        first: KernelFiniteError | None = None
        try:
            log.begin(restores=True)
            for position in range(len(self.records), 0, -1):
                record = self.records[position - 1]
                if isinstance(record, Custom):
                    continue
                log.undo_to(record.before)
                for buffer, box in record.footprint.written:
                    log.disturb(buffer, box)
                try:
                    record.instance.specialisation.code(Request(checks=Checks.FINITE)).launch(record.values_again())
                except KernelFiniteError as error:
                    first, self.at = error, position
                # Earlier launches find again what this one has overwritten once more.
                log.undo_between(record.before, record.after, record.written)
        finally:
            log.end()
        if first is not None:
            raise first

    def launch_back(self, position: int, record: Record) -> None:
        """Run the gradient of one launch, the record at `position`, counted from 1."""
        record.instance.specialisation.code(self.back).launch(record.values_back())

    def forget(self) -> None:
        """Let the copies go, unless they are to be kept: nothing will be reversed any more."""
        if self.keep:
            if not self._saves:  # the gradients have run on the fields as they are now
                for record in self.records:
                    self._need_now(record)
            self._log.seal(self.make_room)
        else:
            releases = [r.release for r in self.records if isinstance(r, Custom) and r.release is not None]
            self.let_go = self.let_go or self._copies or bool(releases) or self._log.length > 0
            self._log.forget()
            for release in releases:
                release()
        if self.rules is not None:
            self.rules.release()

    def _run(self, custom: Custom) -> None:
        backward = Backward(self.back)
        for buffer in custom.scratch:
            if buffer.dtype.kind == "f":  # whoever reads it without computing it first shall notice
                backward.written(buffer)
                numbers(buffer)[...] = np.nan
        token = recorder.set(backward)
        try:
            with custom.arrays_again():
                custom.gradient(backward)
        finally:
            recorder.reset(token)
            backward.bring_back()

    # ---- the chain from parameter to loss

    def refuse_severed(self, severed: dict[Buffer, Span] | None = None) -> dict[Buffer, Span]:
        """A varying value that goes through a field without gradient would silently count as constant: raise a
        `DifferentiationError`, and that of a launch without a gradient. `severed`: the fields that hold such values at
        the start; gives those at the end.
        """
        if self._refused is not None:
            raise self._refused
        severed = {} if severed is None else dict(severed)
        replacements = iter([*self.replacements, None])
        coming = next(replacements)
        for position, record in enumerate(self.records):
            while coming is not None and coming.position <= position:
                coming.sever(severed)
                coming = next(replacements)
            if isinstance(record, Custom):
                record.sever(severed)
                continue
            if severed:
                for further, write in record.arguments.broken_chain(severed):
                    severed.setdefault(further, write)
            for buffer, place in record.arguments.needs.severed:
                severed.setdefault(buffer, place)
        while coming is not None:
            coming.sever(severed)
            coming = next(replacements)
        return severed


def living_buffers() -> set[Buffer]:
    """The memory of all living fields, gradients and duals left out."""
    return {f.buffer for f in list(world.fields) if f.buffer.primal is None}


def _inputs(arguments: Arguments) -> list[Buffer]:
    """The fields and ndarrays that a launch reads, also to add to them."""
    return own(arguments.touched.loaded | arguments.touched.accumulated)
