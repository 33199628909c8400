"""What a tape records, and the way back through it.

A gradient launch executes some of the kernel's loads again, so it must find the elements as they were. A recording
knows which elements the launches so far will need, and before something overwrites some of these, it keeps their values
(`undo.py`); on the way back each launch's gradient finds what it needs as the launch left it. Where nothing needed is
overwritten, nothing is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from contextvars import Token
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.modes import Mode
from tinote.compiler.native import BoundArray
from tinote.compiler.summary import TaskSummary
from tinote.errors import DifferentiationError, KernelMemoryError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.old_values import SavingLaunch
from tinote.lang.ad.replacements import Replacement, reverse_after
from tinote.lang.ad.undo import UndoLog, numbers
from tinote.lang.ad.validation import AccessRules
from tinote.lang.arguments import Arguments, Foreign, arguments_of, own, place_in
from tinote.lang.boxes import Box, box_at, box_of, is_element
from tinote.lang.footprint import NOTHING, Footprint
from tinote.lang.kernel import Instance
from tinote.lang.world import (
    Recorder,
    Watcher,
    claim_gradients,
    end_watch,
    is_viewed,
    memory_of,
    recorder,
    watch,
    world,
)
from tinote.runtime.memory import Memory
from tinote.source import Span, caller

__all__ = ["Backward", "Custom", "Record", "Recording", "living_buffers"]


class Record(NamedTuple):
    """One launch: what was launched with which values, and which elements its gradient will read. `copies`: what it
    will read of arrays that others manage. `before` and `after`: how long the log of overwritten values was.
    `old_values`: those that the launch returns and saves.
    """

    instance: Instance
    values: tuple[Any, ...]
    arguments: Arguments
    footprint: Footprint
    copies: dict[Buffer, Memory]
    before: int
    after: int
    old_values: SavingLaunch | None = None

    @property
    def tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of the launch read and wrote."""
        return self.arguments.tasks

    @property
    def touched(self) -> frozenset[Buffer]:
        """All that the launch read or wrote."""
        found = self.arguments.touched
        return found.loaded | found.written

    @property
    def written(self) -> frozenset[Buffer]:
        """All that the launch wrote."""
        return self.arguments.touched.written

    def values_back(self) -> tuple[Any, ...]:
        """The values for the gradient: it reads the copies of arrays that others manage, and may write to them. Behind
        the arrays stand the old values that it reads and memory for copies that it makes.
        """
        needs = self.arguments.needs
        if not (self.copies or self.old_values or needs.copied):
            return self.values
        arrays = self.arguments.arrays
        found: list[BoundArray] = []
        for buffer, bound in arrays:
            kept = self.copies.get(buffer)
            if kept is not None:
                fresh = kept.copy() if buffer in needs.restored else kept
                bound = bound._replace(address=fresh.address, owner=fresh)
            found.append(bound)
        if self.old_values is not None:
            found += self.old_values.saved
        places = dict(arrays)
        found += [_memory_like(places[buffer]) for buffer in needs.copied]
        return (*found, *self.values[len(arrays) :])


def _memory_like(bound: BoundArray) -> BoundArray:
    """Memory for the numbers of an array, and for their tangents if it has any."""
    values, tangents = (Memory(max(bound.nbytes, 1)) for _ in range(2))
    return BoundArray(values.address, 0, tangents.address, 0, bound.shape, bound.nbytes, True, None, (values, tangents))


@dataclass(eq=False)
class Custom:
    """A stretch of the program with a gradient of its own: `gradient` runs in its place on the way back.

    `loaded`: what its launches read of values from before; `renewed`: fields that it gave new values throughout;
    `severed`: fields without a gradient in which it left varying values, with the place (None: perhaps in all that it
    wrote). `scratch`: fields that `gradient` promises to compute itself before it reads them; it finds the others as
    they were at the end of the stretch. `after`: how long the log of overwritten values was then. `tasks`: what the
    gradient is known to launch; `release` lets go of the memory that it holds.
    """

    name: str
    place: Span
    gradient: Callable[[Backward], None]
    loaded: set[Buffer] = field(default_factory=set)
    written: set[Buffer] = field(default_factory=set)
    renewed: set[Buffer] = field(default_factory=set)
    severed: dict[Buffer, Span] | None = None
    scratch: frozenset[Buffer] = frozenset()
    after: int = 0
    tasks: tuple[TaskSummary, ...] = ()
    release: Callable[[], None] | None = None

    @property
    def touched(self) -> set[Buffer]:
        """All that was read or written."""
        return self.loaded | self.written

    def sever(self, severed: dict[Buffer, Span]) -> None:
        """Follow the fields without gradient that hold varying values through this stretch."""
        for buffer in self.renewed:
            severed.pop(buffer, None)
        broken = [(b, place) for b in self.loaded if (place := place_in(severed, b)) is not None]
        for buffer, place in broken:
            if any(b.adjoint is not None for b in self.written):
                raise DifferentiationError(
                    f"'{buffer.name}' has no gradient, but values that are differentiated go through it",
                    place,
                    hint=f"make '{buffer.name}' with needs_grad=True",
                    notes=[Note(f"from there '{self.name}' reads them", self.place)],
                )
        left = self.severed
        if left is None:
            varies = bool(broken) or any(b.adjoint is not None for b in self.loaded)
            left = {b: self.place for b in self.written if varies and b.adjoint is None and b.dtype.kind == "f"}
        for buffer, place in left.items():
            severed.setdefault(buffer, place)


class Recording:
    """Launches in their order, with what their gradients need of memory. `listener` is told of each write beforehand.
    Unless `saves`, nothing is kept from one launch to another, and the gradients run on the fields as they are at the
    end; what a kernel overwrites within itself is kept all the same. `rules`: what checks the rules of access, if
    anything; it is told of what happens while this is the recorder, and not of what happens in a function that has a
    gradient of its own.

    It is the recorder (`world.recorder`) while it records; `reverse` then runs the gradients.
    """

    clears_duals = False
    #: which of a kernel's gradients runs on the way back
    mode = Mode.GRADIENT

    def __init__(
        self,
        listener: Callable[[Buffer], None] | None = None,
        *,
        saves: bool = True,
        rules: AccessRules | None = None,
    ) -> None:
        self.records: list[Record | Custom] = []
        self.rules = rules
        self._saves = saves
        self._listener = listener
        self._replacements: list[Replacement] = []
        self._read: set[tuple[Buffer, tuple[int, ...]]] = set()  # elements, by Python
        self._touched: set[Buffer] = set()
        self._written_before: set[Buffer] = set()
        self._looked_at = 0  # so many records are counted in `_touched` and `_written_before`
        self._pending: Record | None = None
        self._tokens: tuple[Token[Recorder | None], Token[Watcher | None]] | None = None
        self._log = UndoLog(self.make_room)
        self._other_bytes = 0  # of arrays that others manage, and of old values

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
        arguments = arguments_of(instance, values, self.mode)
        arguments.refuse_shared()
        needs = arguments.needs
        watches = self._saves or needs.restored or self._log.is_watching
        footprint = arguments.footprint(values) if watches else NOTHING
        for buffer, box in footprint.restored:
            self._log.need(buffer, box)
        before = len(self._log)
        for buffer, box in footprint.written:
            self.overwritten(buffer, box)
        saving = self._saving(instance, values, arguments) if needs.old_values else None
        self._pending = Record(instance, values, arguments, footprint, {}, before, len(self._log), saving)
        for buffer in arguments.foreign:
            if buffer in needs.restored:
                self._keep_foreign(self._pending, buffer)
        return saving if self.rules is None else self.rules.launching(instance, arguments)

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
        saving = SavingLaunch(instance.specialisation, values, lambda nbytes: self.make_room(buffer, nbytes))
        self._other_bytes += saving.nbytes
        return saving

    @property
    def copied_bytes(self) -> int:
        """How many bytes are kept for the way back."""
        return self._log.nbytes + self._other_bytes

    def _keep_foreign(self, record: Record, buffer: Foreign) -> None:
        """Keep what an array that others manage holds now."""
        nbytes = buffer.bound.nbytes
        self.make_room(buffer, nbytes)
        kept = record.copies[buffer] = Memory(nbytes)
        ctypes.memmove(kept.address, buffer.bound.address, nbytes)
        self._other_bytes += nbytes

    def launched(self) -> None:
        """The launch that was announced has ended well: it counts. (One that raised has written fields, but has no
        gradient.) Raises `AccessRuleError`.
        """
        record = self._pending
        assert record is not None
        self._pending = None
        for buffer in record.arguments.foreign if self._saves else ():
            if buffer in record.arguments.needs.loaded and buffer not in record.copies:
                self._keep_foreign(record, buffer)
        needed = record.footprint.needed if self._saves else ()
        for buffer, box in needed:
            self._log.need(buffer, box)
        self._add(record)
        if world.views:
            self._distrust([buffer for buffer, _ in (*needed, *record.footprint.restored)])
        if self.rules is not None:
            self.rules.launched()

    def custom(self, custom: Custom) -> None:
        """A stretch with its own gradient has ended well: it counts, and finds all fields again as they are now."""
        if self.rules is not None:
            for buffer in custom.written:
                self.rules.forget(buffer)
        custom.after = len(self._log)
        kept = living_buffers() - custom.scratch if self._saves else ()
        for buffer in kept:
            box = box_of(buffer)
            if box is not None:
                self._log.need(buffer, box)
        self._add(custom)
        if world.views:
            self._distrust(kept)

    def _add(self, record: Record | Custom) -> None:
        self.records.append(record)

    def _distrust(self, buffers: Iterable[Buffer]) -> None:
        """Keep what is needed of fields that others may write to without a word."""
        for buffer in buffers:
            if is_viewed(buffer):
                self.overwritten(buffer)

    def written(self, buffer: Buffer, position: Any = ...) -> None:
        """Python is about to write to a field. Raises `AccessRuleError`."""
        # A function that is exempt passes on what Python does in it.
        if self.rules is not None and position is not None and recorder.get() is self:
            self.rules.written(buffer, position)
        if buffer.adjoint is not None and isinstance(position, tuple):
            self._assign(buffer, position)
        self.overwritten(buffer, box_at(buffer, position))

    def read(self, buffer: Buffer, position: tuple[int, ...]) -> None:
        """Python reads an element: what it writes there next is perhaps computed from it."""
        self._read.add((buffer, position))

    def _assign(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        """Python gives an element a new value. Unless it has read the old one, it is a constant."""
        if (buffer, position) in self._read:
            self._read.remove((buffer, position))
        elif is_element(buffer, position) and buffer in self.touched_before():
            box = box_at(buffer, position)
            self._replacements.append(Replacement(len(self.records), buffer, None, box=box))

    def overwritten(self, buffer: Buffer, box: Box | None = None) -> None:
        """Elements of a field, by default all, are about to be written, by whomever: keep what is needed of them on the
        way back.
        """
        if self._listener is not None:
            self._listener(buffer)
        if self.rules is not None and recorder.get() is not self:
            self.rules.forget(buffer)
        box = box_of(buffer) if box is None else box
        if box is not None:
            self._log.overwrite(buffer, box)

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
        self._look()
        if buffer in self._touched or source is not None:
            self._replacements.append(Replacement(len(self.records), buffer, source, caller()))
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
        for record in self.records:
            tasks = record.tasks if isinstance(record, Custom) else record.arguments.gradient_tasks
            claim_gradients(tasks, clear=clear)

    def reverse(self, *, restore: bool = True) -> None:
        """Run the gradients of all that was recorded, the last first, each on the fields as it left them; afterwards
        the fields hold again what they hold now, unless `restore` is false and nobody asks for that.
        """
        log = self._log
        log.begin(restores=restore)
        replacements = list(self._replacements)
        try:
            for position in range(len(self.records), 0, -1):
                reverse_after(replacements, position)
                record = self.records[position - 1]
                log.undo_to(record.after)
                if isinstance(record, Record):
                    self._restore(record)
                    self.launch_back(position, record)
                else:
                    self._run(record)
            reverse_after(replacements, 0)
        finally:
            log.end()

    def _restore(self, record: Record) -> None:
        """Bring back what the gradient reads of the values from before the launch. It runs the launch's effects on
        these fields again.
        """
        restored = {buffer for buffer, _ in record.footprint.restored}
        if restored:
            for buffer, box in record.footprint.written:
                for one in restored.intersection((buffer, buffer.tangent)):
                    self._log.disturb(one, box)
            self._log.undo_between(record.before, record.after, restored)

    def launch_back(self, position: int, record: Record) -> None:
        """Run the gradient of one launch, the record at `position`, counted from 1."""
        record.instance.specialisation.gradient().launch(record.values_back())

    def forget(self) -> None:
        """Let the copies go: nothing will be reversed any more."""
        self._log.forget()
        if self.rules is not None:
            self.rules.release()
        for record in self.records:
            if isinstance(record, Custom) and record.release is not None:
                record.release()

    def _run(self, custom: Custom) -> None:
        backward = Backward()
        for buffer in custom.scratch:
            if buffer.dtype.kind == "f":  # whoever reads it without computing it first shall notice
                backward.written(buffer)
                numbers(buffer)[...] = np.nan
        token = recorder.set(backward)
        try:
            custom.gradient(backward)
        finally:
            recorder.reset(token)
            backward.bring_back()

    # ---- the chain from parameter to loss

    def refuse_severed(self, severed: dict[Buffer, Span] | None = None) -> dict[Buffer, Span]:
        """A varying value that goes through a field without gradient would silently count as constant: raise a
        `DifferentiationError`. `severed`: the fields that hold such values at the start; gives those at the end.
        """
        severed = {} if severed is None else dict(severed)
        replacements = iter([*self._replacements, None])
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


class Backward:
    """The recorder while a gradient of the user's own runs: nothing is recorded, and what is overwritten comes back."""

    clears_duals = False

    def __init__(self) -> None:
        self._overwritten: dict[Buffer, Memory] = {}

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        for buffer in own(arguments_of(instance, values).touched.written):
            self.written(buffer)

    def launched(self) -> None:
        """Nothing is recorded."""

    def written(self, buffer: Buffer, position: Any = ...) -> None:
        """A field is about to be written. Gradients are what this is for."""
        if buffer.primal is None and buffer not in self._overwritten:
            self._overwritten[buffer] = memory_of(buffer).copy()

    def bring_back(self) -> None:
        """Give all fields their values again."""
        for buffer, values in self._overwritten.items():
            memory_of(buffer).restore(values)

    def read(self, buffer: Buffer, position: tuple[int, ...]) -> None:
        """Nothing is recorded."""

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """Nothing is recorded."""


def living_buffers() -> set[Buffer]:
    """The memory of all living fields, gradients and duals left out."""
    return {f.buffer for f in list(world.fields) if f.buffer.primal is None}
