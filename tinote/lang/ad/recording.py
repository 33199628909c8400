"""What a tape records, and the way back through it.

A gradient launch executes some of the kernel's loads again, so it must find the fields as they were. A recording counts
a version a field, and before something overwrites a version that a recorded launch will need, it keeps a copy; on the
way back each launch's gradient runs on the versions that the launch saw. Where nothing needed is overwritten, nothing
is copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tinote.compiler.modes import Mode
from tinote.compiler.summary import TaskSummary
from tinote.errors import DifferentiationError, KernelMemoryError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.old_values import SavingLaunch
from tinote.lang.ad.records import Record
from tinote.lang.ad.replacements import Replacement, numbers, replace_back, sever
from tinote.lang.ad.validation import AccessRules
from tinote.lang.arguments import Arguments, Foreign, arguments_of, own, place_in
from tinote.lang.kernel import Instance
from tinote.lang.world import claim_gradients, is_viewed, memory_of, recorder, world
from tinote.runtime.memory import Memory
from tinote.source import Span, caller

__all__ = ["Backward", "Custom", "Record", "Recording", "living_buffers", "numbers"]


_UNKNOWN = -1  # the version of a field that holds nothing that was ever recorded


@dataclass(eq=False)
class Custom:
    """A stretch of the program with a gradient of its own: `gradient` runs in its place on the way back.

    `loaded`: what its launches read of values from before; `renewed`: fields that it gave new values throughout;
    `severed`: fields without a gradient in which it left varying values, with the place (None: perhaps in all that it
    wrote). `versions`: the fields as they were at its end, which `gradient` finds again. `scratch`: fields that
    `gradient` promises to compute itself before it reads them. `tasks`: what the gradient is known to launch;
    `release` lets go of the memory that it holds.
    """

    name: str
    place: Span
    gradient: Callable[[Backward], None]
    loaded: set[Buffer] = field(default_factory=set)
    written: set[Buffer] = field(default_factory=set)
    renewed: set[Buffer] = field(default_factory=set)
    severed: dict[Buffer, Span] | None = None
    scratch: frozenset[Buffer] = frozenset()
    versions: dict[Buffer, int] = field(default_factory=dict)
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


class PythonWrites(Protocol):
    """Who is told of what Python writes to fields under a recording."""

    def written(self, records: int, buffer: Buffer, position: Any) -> None:
        """Behind so many records Python is about to write to a field, at `position` in its array (`Recorder`)."""

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """What was just said to be written is a whole field, from `source` or from outside."""


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
    mode = Mode.GRADIENT
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
        self._listener = listener
        self.replacements: list[Replacement] = []
        self._touched: set[Buffer] = set()
        self._written_before: set[Buffer] = set()
        self._looked_at = 0  # so many records are counted in `_touched` and `_written_before`
        self._pending: Record | None = None
        self._versions: dict[Buffer, int] = {}
        self._wanted: set[tuple[Buffer, int]] = set()
        self._copies: dict[tuple[Buffer, int], Memory] = {}
        self.copied_bytes = 0
        self.copied: list[tuple[int, Buffer, int]] = []  # behind so many records a field, and the bytes of it
        self._shown: dict[Buffer, int] = {}
        self._finals: dict[Buffer, Memory] = {}
        self._restores = True

    # ---- what the recorder is told

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """A kernel is about to be launched. Gives what is to be launched in its place, if the rules are checked."""
        arguments = arguments_of(instance, values, self.mode)
        arguments.refuse_shared()
        needs = arguments.needs
        before = {b: self._versions.get(b, 0) for b in own(needs.restored)}
        self._wanted.update(before.items())
        inputs = self._inputs_of(arguments) if self.keep else None
        for buffer in own(arguments.touched.written):
            self.overwritten(buffer)
        versions = before
        if self._saves:
            versions = {b: self._versions.get(b, 0) for b in own(needs.loaded)} | before
        saving = self._saving(instance, values, arguments) if needs.old_values else None
        self._pending = Record(instance, values, versions, arguments, {}, saving, inputs, {})
        for buffer in arguments.foreign:
            if buffer in needs.restored:
                self._keep_foreign(self._pending.copies, buffer)
            if self.keep:
                self._keep_foreign(self._pending.input_copies, buffer)
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
        self.copied_bytes += saving.nbytes
        return saving

    def _inputs_of(self, arguments: Arguments) -> dict[Buffer, int]:
        """The versions of what a launch is about to read."""
        found = {b: self._versions.get(b, 0) for b in own(arguments.touched.loaded | arguments.touched.accumulated)}
        self._wanted.update(found.items())
        return found

    def _keep_foreign(self, copies: dict[Buffer, Memory], buffer: Foreign) -> None:
        """Keep what an array that others manage holds now."""
        nbytes = buffer.bound.nbytes
        self.make_room(buffer, nbytes)
        kept = copies[buffer] = Memory(nbytes)
        ctypes.memmove(kept.address, buffer.bound.address, nbytes)
        self.copied_bytes += nbytes

    def launched(self) -> None:
        """The launch that was announced has ended well: it counts. (One that raised has written fields, but has no
        gradient.) Raises `AccessRuleError`.
        """
        record = self._pending
        assert record is not None
        self._pending = None
        for buffer in record.arguments.foreign if self._saves else ():
            if buffer in record.arguments.needs.loaded and buffer not in record.copies:
                self._keep_foreign(record.copies, buffer)
        self._add(record)
        if self.rules is not None:
            self.rules.launched()

    def custom(self, custom: Custom) -> None:
        """A stretch with its own gradient has ended well: it counts, and finds all fields again as they are now."""
        if self.rules is not None:
            for buffer in custom.written:
                self.rules.forget(buffer)
        kept = living_buffers() - custom.scratch if self._saves else ()
        custom.versions = {b: self._versions.get(b, 0) for b in kept}
        self._add(custom)

    def _add(self, record: Record | Custom) -> None:
        self._wanted.update(record.versions.items())
        self.records.append(record)
        if world.views:
            for buffer in record.versions:
                if is_viewed(buffer):
                    self.overwritten(buffer)

    def written(self, buffer: Buffer, position: Any = ...) -> None:
        """Python is about to write to a field. Raises `AccessRuleError`."""
        # A function that is exempt passes on what Python does in it.
        if self.rules is not None and position is not None and recorder.get() is self:
            self.rules.written(buffer, position)
        self.overwritten(buffer)
        if self.check is not None:
            self.check.written(len(self.records), buffer, position)

    def overwritten(self, buffer: Buffer) -> None:
        """A field is about to be written, by whomever: keep what is needed of it on the way back."""
        if self._listener is not None:
            self._listener(buffer)
        if self.rules is not None and recorder.get() is not self:
            self.rules.forget(buffer)
        if self._save(buffer):
            self.copied.append((len(self.records), buffer, memory_of(buffer).nbytes))
        self._versions[buffer] = self._versions.get(buffer, 0) + 1

    def _save(self, buffer: Buffer) -> bool:
        """Keep the present version of a field if it is needed; whether it was not kept yet."""
        key = (buffer, self._versions.get(buffer, 0))
        if key not in self._wanted or key in self._copies:
            return False
        memory = memory_of(buffer)
        self.make_room(buffer, memory.nbytes)
        self._copies[key] = memory.copy()
        self.copied_bytes += memory.nbytes
        return True

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
        for record in self.records:
            tasks = record.tasks if isinstance(record, Custom) else record.arguments.gradient_tasks
            claim_gradients(tasks, clear=clear)

    def reverse(self, *, restore: bool = True, done: Callable[[Custom], None] | None = None) -> None:
        """Run the gradients of all that was recorded, the last first, each on the fields as it left them; afterwards
        the fields hold again what they hold now, unless `restore` is false and nobody asks for that. `done` is told of
        each gradient of the user's own that has run.
        """
        self._shown = dict(self._versions)
        self._restores = restore
        replacements = list(self.replacements)
        try:
            for position in range(len(self.records), 0, -1):
                replace_back(replacements, position)
                record = self.records[position - 1]
                self.at = position
                self._show(record.versions)
                if isinstance(record, Record):
                    self.launch_back(position, record)
                    # The gradient has run the effects on these again, for itself.
                    self._shown.update(dict.fromkeys(own(record.arguments.needs.restored), _UNKNOWN))
                else:
                    self._run(record)
                    if done is not None:
                        done(record)
            replace_back(replacements, 0)
        finally:
            self._put_back()

    def run_again(self) -> None:
        """Run the launches themselves once more, with checks for NaN and infinity, each on the fields as it found them;
        those that the recording did not keep the inputs of are left out.
        """
        self._shown = dict(self._versions)
        try:
            for position, record in enumerate(self.records, 1):
                if isinstance(record, Custom) or record.inputs is None:
                    continue
                self.at = position
                self._show(record.inputs)
                for buffer in own(record.written):
                    self.disturbed(buffer)
                record.instance.specialisation.code(Mode.FINITE).launch(record.values_again())
        finally:
            self._put_back()

    def _put_back(self) -> None:
        for buffer, final in self._finals.items():
            memory_of(buffer).restore(final)
        self._finals = {}

    def launch_back(self, position: int, record: Record) -> None:
        """Run the gradient of one launch, the record at `position`, counted from 1."""
        record.instance.specialisation.code(self.back).launch(record.values_back())

    def forget(self) -> None:
        """Let the copies go, unless they are to be kept: nothing will be reversed any more."""
        if self.keep:
            for buffer in {buffer for buffer, _ in self._wanted}:
                self._save(buffer)
                self._versions[buffer] = self._versions.get(buffer, 0) + 1  # it may change from now on
        else:
            holds = any(r.copies if isinstance(r, Record) else r.release for r in self.records)
            self.let_go = bool(self._copies) or holds
            self._copies.clear()
        if self.rules is not None:
            self.rules.release()
        for record in self.records:
            if isinstance(record, Custom) and record.release is not None and not self.keep:
                record.release()

    def disturbed(self, buffer: Buffer) -> None:
        """On the way back something is about to write to a field."""
        if buffer not in self._finals:
            self._finals[buffer] = memory_of(buffer).copy()
        self._shown[buffer] = -1

    def _show(self, versions: dict[Buffer, int]) -> None:
        for buffer, version in versions.items():
            if self._shown.get(buffer, 0) != version:
                if self._restores:
                    self.disturbed(buffer)
                kept = self._copies.get((buffer, version)) or self._finals[buffer]
                memory_of(buffer).restore(kept)
                self._shown[buffer] = version

    def _run(self, custom: Custom) -> None:
        for buffer in custom.scratch:
            if buffer.dtype.kind == "f":  # whoever reads it without computing it first shall notice
                self.disturbed(buffer)
                numbers(buffer)[...] = np.nan
        backward = Backward(self)
        token = recorder.set(backward)
        try:
            custom.gradient(backward)
        finally:
            recorder.reset(token)

    # ---- the chain from parameter to loss

    def refuse_severed(self, severed: dict[Buffer, Span] | None = None) -> dict[Buffer, Span]:
        """A varying value that goes through a field without gradient would silently count as constant: raise a
        `DifferentiationError`. `severed`: the fields that hold such values at the start; gives those at the end.
        """
        severed = {} if severed is None else dict(severed)
        replacements = iter([*self.replacements, None])
        coming = next(replacements)
        for position, record in enumerate(self.records):
            while coming is not None and coming.position <= position:
                sever(severed, coming)
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
            sever(severed, coming)
            coming = next(replacements)
        return severed


class Backward:
    """The recorder while a gradient of the user's own runs: nothing is recorded, and what is overwritten comes back."""

    clears_duals = False

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @property
    def gradients(self) -> Mode:
        """What `kernel.grad` runs: what runs on the whole way back."""
        return self.recording.back

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        for buffer in own(arguments_of(instance, values).touched.written):
            self.written(buffer)

    def launched(self) -> None:
        """Nothing is recorded."""

    def written(self, buffer: Buffer, position: Any = ...) -> None:
        """A field is about to be written. Gradients are what this is for."""
        if buffer.primal is None:
            self.recording.disturbed(buffer)

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """Nothing is recorded."""


def living_buffers() -> set[Buffer]:
    """The memory of all living fields, gradients and duals left out."""
    return {f.buffer for f in list(world.fields) if f.buffer.primal is None}
