"""The tape: record launches, then run their gradients in reverse.

    with ti.ad.Tape(loss=U):
        compute_U()
    # x.grad now holds dU/dx

A gradient launch executes some of the kernel's loads again, so it must find the fields as they were. The tape counts a version a field, and before something overwrites a version that a recorded launch
will need, it keeps a copy; on the way back each launch's gradient runs on the versions that the launch saw. Where nothing needed is overwritten, nothing is copied.

Recording is per context (`contextvars`): launches of other threads and of other asyncio tasks never land on an open tape.
"""

from __future__ import annotations

import ctypes
import math
from contextvars import Token
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.summary import TaskSummary
from tinote.errors import DifferentiationError, KernelMemoryError, Note, at_users_frames
from tinote.ir.nodes import Buffer
from tinote.lang.fields import Field
from tinote.lang.kernel import Instance
from tinote.lang.matrix import numpy_type
from tinote.lang.world import (
    Recorder,
    claim_gradients,
    gradient_memories,
    is_viewed,
    memory_of,
    recorder,
    take_all_gradients,
    world,
)
from tinote.runtime.memory import Memory
from tinote.source import Span, caller

__all__ = ["Record", "Tape", "clear_all_gradients"]


def clear_all_gradients() -> None:
    """Set the gradients of all fields to zero, a live view's too."""
    take_all_gradients()
    _clear(gradient_memories())


def _clear(memories: tuple[Memory, ...]) -> None:
    for memory in memories:
        ctypes.memset(memory.address, 0, memory.nbytes)


class Record(NamedTuple):
    """One launch: what was launched with which scalars, and the version of each field that its gradient will read."""

    instance: Instance
    values: tuple[Any, ...]
    versions: dict[Buffer, int]

    @property
    def tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of the launch read and wrote."""
        return self.instance.primal.tasks


class _Replacement(NamedTuple):
    """After `position` launches, Python gave a whole field new values: those of `source`, or constants."""

    position: int
    target: Buffer
    source: Buffer | None
    place: Span


class Tape:
    """Record the launches in a `with` block, and at its end accumulate the derivative of `loss` into the gradients of the fields.

    `loss`: a 0-D field with a gradient; it is set to 0 at entry and its gradient to 1 at exit. `clear_gradients`: set all gradients to zero at entry. An exception inside of the
    block leaves everything as it is and no gradient is computed. `fill`, `from_numpy` and `copy_from` in the block are differentiated: behind them a field's gradient is that of its
    new values only until the first launch that uses the field; single elements that Python writes are constants whose gradient is added to that of the values before. Raises `DifferentiationError` for a loss that cannot be differentiated and for what cannot be
    differentiated right.
    """

    clears_duals = False

    def __init__(self, loss: Field, clear_gradients: bool = True) -> None:
        if not isinstance(loss, Field):
            raise DifferentiationError(f"the loss of a tape must be a field, not {loss!r}", caller())
        if loss.shape != () or loss.element != ():
            raise DifferentiationError(
                f"the loss of a tape must be a 0-D scalar field, but '{loss.name}' has shape {loss.shape}{' and elements of shape ' + str(loss.element) if loss.element else ''}",
                caller(),
                hint="sum into a field with shape=(), or call kernel.grad() with gradients of your own",
            )
        if not loss.has_grad:
            raise DifferentiationError(f"the loss '{loss.name}' has no gradient", caller(), hint="make it with needs_grad=True")
        self.loss = loss
        self.clear_gradients = clear_gradients
        self.records: list[Record] = []
        self._replacements: list[_Replacement] = []
        self._touched: set[Buffer] = set()
        self._looked_at = 0  # so many records are counted in `_touched`
        self._pending: Record | None = None
        self._versions: dict[Buffer, int] = {}
        self._wanted: set[tuple[Buffer, int]] = set()
        self._copies: dict[tuple[Buffer, int], Memory] = {}
        self._copied_bytes = 0
        self._token: Token[Recorder | None] | None = None
        self._entered = False

    # ---- the block

    def __enter__(self) -> Tape:
        if self._entered:
            raise DifferentiationError("a tape records once; make a new one for each block", caller())
        if recorder.get() is not None:
            raise DifferentiationError("a tape cannot be opened inside of another one", caller())
        self._entered = True
        if self.clear_gradients:
            _clear(gradient_memories())
        self.loss.fill(0)
        self._token = recorder.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._token is not None
        recorder.reset(self._token)
        try:
            if kind is None:
                self._differentiate()
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        finally:
            self._copies.clear()

    # ---- what the recorder is told

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        specialisation = instance.specialisation
        needed = specialisation.gradient_needs().loaded
        written = specialisation.touched().written
        for buffer in written:
            self.written(buffer)
        versions = {b: self._versions.get(b, 0) for b in needed}
        self._pending = Record(instance, values, versions)

    def launched(self) -> None:
        """The launch that was announced has ended well: it counts. (One that raised has written fields, but has no gradient.)"""
        record = self._pending
        assert record is not None
        self._pending = None
        self._wanted.update(record.versions.items())
        self.records.append(record)
        if world.views:
            for buffer in record.versions:
                if is_viewed(buffer):
                    self.written(buffer)

    def written(self, buffer: Buffer) -> None:
        """A field is about to be written: keep what a recorded launch needs of it."""
        version = self._versions.get(buffer, 0)
        key = (buffer, version)
        if key in self._wanted and key not in self._copies:
            memory = memory_of(buffer)
            limit = world.config.memory_limit
            if self._copied_bytes + memory.nbytes > limit:
                raise KernelMemoryError(
                    f"the tape would hold more than {limit:,} bytes of overwritten values of '{buffer.name}'",
                    hint="keep each step in its own slice of a field, record fewer steps, or raise ti.init(memory_limit=...)",
                )
            self._copies[key] = _copy(memory)
            self._copied_bytes += memory.nbytes
        self._versions[buffer] = version + 1

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """Python gives a whole field new values. What no launch has used yet simply begins with them."""
        if source is buffer:
            return
        for record in self.records[self._looked_at :]:
            touched = record.instance.specialisation.touched()
            self._touched |= touched.loaded | touched.written
        self._looked_at = len(self.records)
        if buffer in self._touched or source is not None:
            self._replacements.append(_Replacement(len(self.records), buffer, source, caller()))
            self._touched.add(buffer)

    # ---- the way back

    def _replace_back(self, position: int) -> None:
        """The reverse of what Python did after so many launches: the gradient of new values is not that of the old."""
        while self._replacements and self._replacements[-1].position >= position:
            done = self._replacements.pop()
            if done.target.adjoint is None:
                continue
            target = _numbers(done.target.adjoint)
            if done.source is not None and done.source.adjoint is not None:
                _numbers(done.source.adjoint)[...] += target
            target[...] = 0

    def _differentiate(self) -> None:
        self._refuse_severed()
        finals: dict[Buffer, Memory] = {}
        shown = dict(self._versions)
        for record in self.records:
            claim_gradients(record.instance.specialisation.gradient().tasks, clear=self.clear_gradients)
        self.loss.grad.fill(1)
        try:
            for position in range(len(self.records), 0, -1):
                self._replace_back(position)
                record = self.records[position - 1]
                for buffer, version in record.versions.items():
                    if shown.get(buffer, 0) != version:
                        memory = memory_of(buffer)
                        if buffer not in finals:
                            finals[buffer] = _copy(memory)
                        ctypes.memmove(memory.address, self._copies[buffer, version].address, memory.nbytes)
                        shown[buffer] = version
                record.instance.specialisation.gradient().launch(record.values)
            self._replace_back(0)
        finally:
            for buffer, final in finals.items():
                ctypes.memmove(memory_of(buffer).address, final.address, final.nbytes)
        self.loss.grad.fill(1)

    def _refuse_severed(self) -> None:
        """A varying value that goes through a field without gradient would silently count as constant."""
        severed: dict[Buffer, Span] = {}
        replacements = iter([*self._replacements, None])
        coming = next(replacements)
        for position, record in enumerate(self.records):
            while coming is not None and coming.position <= position:
                self._sever(severed, coming)
                coming = next(replacements)
            specialisation = record.instance.specialisation
            if severed:
                for buffer in specialisation.touched().loaded:
                    place = severed.get(buffer)
                    if place is not None:
                        for further, write in specialisation.refuse_broken_chain(buffer, place):
                            severed.setdefault(further, write)
            for buffer, place in specialisation.gradient_needs().severed:
                severed.setdefault(buffer, place)

    @staticmethod
    def _sever(severed: dict[Buffer, Span], done: _Replacement) -> None:
        """What a copy by Python means for the chain from parameter to loss."""
        target, source = done.target, done.source
        if source is None:
            severed.pop(target, None)
        elif source in severed:
            if target.adjoint is not None:
                raise DifferentiationError(
                    f"'{source.name}' has no gradient, but values that are differentiated go through it",
                    severed[source],
                    hint=f"make '{source.name}' with needs_grad=True",
                    notes=[Note(f"from there they are copied to '{target.name}'", done.place)],
                )
            severed.setdefault(target, severed[source])
        elif source.adjoint is not None and target.adjoint is None and target.dtype.kind == "f":
            severed.setdefault(target, done.place)


def _numbers(buffer: Buffer) -> np.ndarray[Any, Any]:
    """All numbers of a field, in a row."""
    return np.frombuffer(memory_of(buffer).view(), dtype=numpy_type(buffer.dtype), count=math.prod(buffer.shape) * math.prod(buffer.element))


def _copy(memory: Memory) -> Memory:
    copy = Memory(memory.nbytes)
    ctypes.memmove(copy.address, memory.address, memory.nbytes)
    return copy
