"""A captured step over a batch: the same program with different values in each member, on all threads (`batch.c`).

Each thread has a lane: the program with its own memory for everything that the program writes, arguments and fields
alike. A lane runs one member after another: it loads the member's arguments and the contents of the session's fields,
runs the program, each launch on one thread, and stores the results in the member's rows of arrays. The session's memory
is not written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tinote.compiler.launch.native import Native
from tinote.errors import CaptureError, Note, TinoteError
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.recording import address_of
from tinote.lang.session.state import session
from tinote.lazy import lazy
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.runtime import layout
from tinote.runtime.launch import LaunchBlock, Launcher
from tinote.runtime.memory import Memory
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.runtime import jit
else:
    jit = lazy("tinote.runtime.jit")  # llvmlite takes long to load: not before something is to be run

Array = np.ndarray[Any, Any]

#: Greatest number of members that a lane takes at once, and least number of requests per lane.
_MOST_AT_ONCE, _LEAST_ASKED = 32, 8


class Batch:
    """A captured step that runs over a batch.

    `numbers`: for each numeric argument, whether it differs between members; `arrays`: for each array argument, the
    array of the capture, and whether it differs. `span`: the place of the request.

    `run` serves one caller at a time; others wait. Raises `CaptureError` for a step that changes globals, and for one
    whose results are of different kinds.
    """

    def __init__(
        self, program: Captured, numbers: Sequence[bool], arrays: Sequence[tuple[Array, bool]], span: Span
    ) -> None:
        self.program = program
        self._span = span
        plan, tables = program.plan, program.tables
        if program.assigned:
            raise CaptureError(
                f"this cannot be batched: it assigns {program.assigned[0]}, which the whole batch shares",
                span,
                hint="return the number",
            )
        self._draws = _draws(plan.root)
        #: sources and destinations of each member's values; lanes read it for each member
        self._table: list[int] = []
        #: numbers to load: the register, the entry, the stride between members in bytes
        self.taken_numbers = [
            (register.number, self._entry(), 8 * differs)
            for register, differs in zip(plan.inputs, numbers, strict=True)
        ]
        self.counter_entry = self._entry()
        written = plan.written
        blocks = {memory.address: number for number, memory in enumerate(tables.memories) if memory is not None}
        #: blocks to load: the block, its size, the entry, the stride between members in bytes
        self.taken_blocks: list[tuple[int, int, int, int]] = []
        #: for each array argument: the entry, or the array that all lanes read
        self._arrays: list[int | Array | None] = []
        private = {number for number in written if tables.memories[number] is not None}
        fields = set(private)
        for array, differs in arrays:
            block = blocks.get(address_of(array))
            if block is None:
                self._arrays.append(None)  # not read
            elif differs or block in written:
                private.add(block)
                fields.discard(block)
                self._arrays.append(self._entry())
                self.taken_blocks.append((block, array.nbytes, len(self._table) - 1, array.nbytes * differs))
            else:
                self._arrays.append(array)
        for block in sorted(fields):
            memory = tables.memories[block]
            assert memory is not None
            self.taken_blocks.append((block, memory.nbytes, self._entry(memory.address), 0))
        self._private = private
        self._data = [_filled(block.data) if block.kind == "data" else None for block in plan.blocks]
        ends = [step for step in plan.operations if isinstance(step, ops.End)]
        self._structure = _structure(ends[0].result)
        if any(_structure(end.result) != self._structure for end in ends):
            raise CaptureError(
                "this cannot be batched: what it returns differs in kind, shape or type between the sides of a "
                "condition",
                span,
            )
        #: rows to store, each with the entry of every part
        self.rows = [_Row(self, kind, *parts) for kind, parts in _leaves(self._structure)]
        self.table = Memory(8 * len(self._table))
        self.table.view()[:] = struct.pack(f"<{len(self._table)}q", *self._table)
        self._words = self.table.view().cast("q")
        self._lanes: list[_Lane] = []
        self._lane_table = Memory(0)
        self._lock = Lock()
        self._launcher = Launcher(jit.runtime_binary(), "tn_replay_batch", slots=4, num_threads=layout.MAX_THREADS)

    def _entry(self, address: int = 0) -> int:
        self._table.append(address)
        return len(self._table) - 1

    def entries(self, count: int) -> list[int]:
        """New entries of the table."""
        return [self._entry() for _ in range(count)]

    # ---- running

    def run(self, count: int, numbers: Sequence[Array], arrays: Sequence[Array]) -> Any:
        """Run `count` members. `numbers`: each an array of 8-byte numbers, one for each member or one for all;
        `arrays`: contiguous, with a leading batch axis where they differ. Returns the function's result, with arrays
        with a leading batch axis in place of numbers and arrays. Raises the error of the first member that fails, with
        its number.
        """
        with self._lock:
            words = self._words
            for (_, entry, _), values in zip(self.taken_numbers, numbers, strict=True):
                words[entry] = address_of(values)
            counters = session.launches + self._draws * np.arange(count, dtype=np.int64)
            words[self.counter_entry] = address_of(counters)
            for place, array in zip(self._arrays, arrays, strict=True):
                if isinstance(place, int):
                    words[place] = address_of(array)
                elif place is not None:
                    place[...] = array
            found: list[Array] = []
            for row in self.rows:
                made = row.make(count)
                for entry, start in row.entries:
                    words[entry] = address_of(made) + start
                found.append(made)
            self._launch(count)
            session.launches += count * self._draws
        finished = iter([row.finished(made) for row, made in zip(self.rows, found, strict=True)])
        return _built(self._structure, finished)

    def _launch(self, count: int) -> None:
        lanes = self._make_lanes(min(session.config.num_threads, count, layout.MAX_THREADS))
        launcher = self._launcher
        block = launcher.acquire()
        try:
            block.limit_threads(lanes)
            at_once = max(1, min(_MOST_AT_ONCE, count // (_LEAST_ASKED * lanes)))
            block.integers[0], block.integers[1], block.integers[3] = self._lane_table.address, count, at_once
            try:
                status = launcher.runtime.launch(block.address)
            except BaseException as error:
                for lane, (_, stopped, site) in self._reports(lanes):
                    if stopped == layout.STATUS_INTERRUPT:
                        lane.note(error, site)
                raise
            if status:
                self._fail(block, status, lanes, count)
        finally:
            launcher.release(block)

    def _make_lanes(self, count: int) -> int:
        if len(self._lanes) < count:
            program = self.program
            while len(self._lanes) < count:
                self._lanes.append(_Lane(self, program.plan, program.tables.natives, self._memories()))
            self._lane_table = Memory(layout.LANE_BYTES * count)
            view = self._lane_table.view()
            for k, lane in enumerate(self._lanes):
                struct.pack_into("<q", view, k * layout.LANE_BYTES + layout.LANE_CODE, lane.code_address)
                struct.pack_into("<q", view, k * layout.LANE_BYTES + layout.LANE_REGISTERS, lane.registers_address)
        return count

    def _memories(self) -> list[Memory | None]:
        """The blocks of one lane: its own, and those that all lanes only read."""
        tables = self.program.tables
        return [
            Memory(block.nbytes) if number in self._private else tables.memories[number] or self._data[number]
            for number, block in enumerate(tables.plan.blocks)
        ]

    def _reports(self, lanes: int) -> Iterator[tuple[_Lane, tuple[int, int, int]]]:
        """The last member, status and site of each lane."""
        view = self._lane_table.view()
        for k, lane in enumerate(self._lanes[:lanes]):
            at = k * layout.LANE_BYTES
            (member,) = struct.unpack_from("<q", view, at + layout.LANE_MEMBER)
            (status,) = struct.unpack_from("<i", view, at + layout.LANE_STATUS)
            (site,) = struct.unpack_from("<i", view, at + layout.LANE_SITE)
            yield lane, (member, status, site)

    def _fail(self, block: LaunchBlock, status: int, lanes: int, count: int) -> NoReturn:
        failed = block.integers[2]
        for lane, (member, found, site) in self._reports(lanes):
            if member == failed and found and status not in (layout.STATUS_INTERRUPT, layout.STATUS_LOST):
                try:
                    lane.fail(found, site)
                except TinoteError as error:
                    error.notes = (*error.notes, in_member(member, count, self._span))
                    raise
        self._launcher.raise_fault(block, status)
        raise AssertionError("a status is a fault")


def in_member(member: int, count: int, span: Span) -> Note:
    """The note on an error of one member."""
    return Note(f"in element {member} of a batch of {count}", span)


class _Lane(Prepared):
    """A program over memory of its own."""

    def __init__(
        self, batch: Batch, plan: Program, natives: Sequence[Native], memories: Sequence[Memory | None]
    ) -> None:
        self._batch = batch
        super().__init__(plan, natives, memories, 1)
        del self._batch  # which has its lanes

    def _start(self) -> None:
        self.code_address = self._code.address
        self.registers_address = self._registers.address

    def _entry_address(self, entry: int) -> int:
        return self._batch.table.address + 8 * entry

    def _take(self, nbytes: int, address: int, entry: int, stride: int) -> None:
        self._emit(None, layout.REPLAY_TAKE, nbytes, address, self._entry_address(entry), stride)

    def assemble(self) -> None:
        batch = self._batch
        for register, entry, stride in batch.taken_numbers:
            self._take(8, self.register_address(register), entry, stride)
        self._take(8, self.register_address(self.counter_register), batch.counter_entry, 8)
        for block, nbytes, entry, stride in batch.taken_blocks:
            self._take(nbytes, self.block_address(block), entry, stride)
        super().assemble()

    def _end(self, end: ops.End) -> None:
        parts = _parts(end.result)
        for row in self._batch.rows:
            for entry, _ in row.entries:
                part = next(parts)
                if isinstance(part, ops.View):
                    address = self._address_of(part)
                elif row.given == "<f8":
                    address = self.register_address(self._real(part, False, end.span))
                else:
                    address = self.register_address(self._operand(part)[0])
                nbytes = row.nbytes // len(row.entries)
                self._emit(None, layout.REPLAY_GIVE, nbytes, address, self._entry_address(entry), row.nbytes)
        super()._end(end)


# ---- results


class _Row:
    """A number, vector or array of the result over the batch: an array with a leading batch axis. `given`: the type
    that lanes store; `entries`: the entries of its parts, each with its byte in the row.
    """

    def __init__(self, batch: Batch, kind: str, shape: tuple[int, ...], dtype: str, given: str) -> None:
        self.given = given
        self._shape = shape
        self._dtype = dtype
        size = np.dtype(given).itemsize
        self.nbytes = size * int(np.prod(shape))
        parts = 1 if kind == "array" else int(np.prod(shape))
        self.entries = [(entry, size * k) for k, entry in enumerate(batch.entries(parts))]

    def make(self, count: int) -> Array:
        """Allocate it, without values."""
        return np.ndarray((count, *self._shape), self.given, Memory(count * self.nbytes, clear=False).view())

    def finished(self, made: Array) -> Array:
        """In its own type."""
        return made if self.given == self._dtype else made.astype(self._dtype)


def _structure(result: ops.Result) -> ops.Result:
    """The structure of a result, which is the same in all members: of each part its shape, its type, and that which
    lanes store.
    """

    def described(kind: str, parts: Any) -> Any:
        if kind == "constant":
            return parts
        if kind == "array":
            view, dtype = parts
            return view.shape, dtype, dtype
        shape, dtype, operands = parts if kind in ("vector", "matrix") else ((), "", parts)
        given = "<f8" if any(one.kind == "f" for one in operands) else "<i8"
        named = dtype not in ("", "object")
        return shape, np.dtype(dtype if named else "bool" if kind == "bool" else given).str, given

    return ops.with_leaves(result, described)


def _leaves(result: ops.Result) -> list[tuple[str, Any]]:
    """The parts of a result, or of a structure, that become arrays."""
    return [(kind, parts) for kind, parts in ops.leaves_of(result) if kind != "constant"]


def _parts(result: ops.Result) -> Iterator[ops.Operand | ops.View]:
    """The numbers and views of a result, in the order of `_leaves`."""
    for kind, parts in _leaves(result):
        yield from parts[2] if kind in ("vector", "matrix") else parts[:1]


def _built(structure: ops.Result, leaves: Iterator[Array]) -> Any:
    """A structure with these arrays."""
    kind, parts = structure
    if kind == "constant":
        return parts[0]
    if kind == "dict":
        return {key: _built(one, leaves) for key, one in parts}
    if kind not in ("tuple", "list"):
        return next(leaves)
    found = [_built(one, leaves) for one in parts]
    return tuple(found) if kind == "tuple" else found


# ---- analysis of a plan


def _draws(path: Path) -> int:
    """The greatest number of launches that draw random numbers, from a path on."""
    further = [_draws(side) for side in path.sides.values()]
    return sum(isinstance(step, ops.Seed) for step in path.steps) + max(further, default=0)


def _filled(data: bytes) -> Memory:
    made = Memory(max(len(data), 8))
    made.view()[: len(data)] = data
    return made
