"""A plan on a GPU: the arithmetic is done by the same instructions as on the CPU (`prepare.py`), while launches,
clears, copies and fills are commands for the device.

    run     instructions of the first stage      arguments that depend on numbers go where its commands find them
            commands of the stage                encoded, one after the other
            …                                    where numbers of theirs are needed, they are waited for and read
            end                                  all that is encoded is one submission

A read of a field afterwards waits for the device, as after a launch. A step waits at its end if one of its kernels may
fail, so that its error comes from the call; later launches of the step have run by then. External memory (NumPy arrays,
ndarrays) is copied to the device before each run and back after it.
"""

from __future__ import annotations

import ctypes
import math
import struct
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.codegen.wgsl import views
from tinote.compiler.launch.gpu_launch import GpuCode, device_of
from tinote.errors import KernelMemoryError
from tinote.ir.types import scalar_named
from tinote.lang.capture.device_blocks import DeviceBlocks, PointerWord
from tinote.lang.capture.instructions import NOWHERE_READY, axes_of, run_of
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.stages import MOST_AXES, DeviceStage, is_arithmetic, is_possible, stages_of
from tinote.lang.data.layout import warm_copy
from tinote.lang.data.matrix import numpy_type
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.runtime import layout
from tinote.runtime.gpu import Device, DeviceFull, Dispatch, GpuProgram
from tinote.runtime.memory import Memory
from tinote.runtime.resident import Newest

#: Where the parameters of each command begin: the device takes them from multiples of it.
_APART = 256
_FILL, _COPY = range(2)
#: The word at which the instructions begin, after a jump.
_BEGIN = 3


def _views_on(device: Device) -> GpuProgram:
    """The pipelines that fill and copy views."""
    found = device.programs.get(views)
    if found is None:
        entries = [Dispatch(name, True, None, False) for name in views.ENTRIES]
        found = device.programs[views] = GpuProgram(device, views.TEXT, entries, views.PARAM_WORDS, 4, 4, False, 0)
    return found


class _Command(NamedTuple):
    """`order`: which step of the plan it is; `encode`: has the plan's device do it."""

    order: int
    encode: Callable[[PreparedOnDevice], None]


class _Answer(NamedTuple):
    """A number that is read back: its place, in a block of the plan or of a kernel, and its size."""

    order: int
    block: int | GpuCode
    offset: int
    nbytes: int


class _Yield:
    """The work of the device before the instructions continue at the word `next`. `first`: the word that they began
    with. `answers`: the number of values read back; `results`: blocks that are read back, since Python gets them next;
    `changed`: written blocks; `checks`: whether a kernel may fail.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.next = first
        self.commands: list[_Command] = []
        self.answers = 0
        self.results: set[int] = set()
        self.changed: set[int] = set()
        self.checks = False


class _Parameters:
    """The parameters of all commands, in `nbytes` of memory: each command has room of its own there, of which the
    methods get the place.
    """

    def __init__(self, nbytes: int) -> None:
        self._memory = Memory(nbytes)
        self._taken = 0
        self.words = self._memory.view().cast("I")
        self.bytes = self._memory.view()

    @property
    def address(self) -> int:
        """Where they begin."""
        return self._memory.address

    def room(self, nbytes: int) -> int:
        """Take room for those of a command."""
        at = self._taken
        self._taken += _apart(nbytes)
        return at

    def put_axes(self, at: int, axes: Sequence[tuple[int, ...]], strides: int) -> None:
        """The extents of axes, and so many strides of each."""
        for part in range(1 + strides):
            padding = [0 if part else 1] * (MOST_AXES - len(axes))
            for k, number in enumerate([*padding, *[axis[part] for axis in axes]]):
                self.words[at // 4 + 4 + 4 * part + k] = number

    def number_at(self, at: int, name: str) -> Any:
        """The value of a fill, a number of this type."""
        dtype = np.dtype(numpy_type(scalar_named(name)))
        return np.frombuffer(self.bytes[at + views.VALUE_BYTE : at + views.VALUE_BYTE + dtype.itemsize], dtype)[0]


class PreparedOnDevice(Prepared):
    """A plan that runs on the session's GPU. Raises `CaptureError` for operations that no device supports."""

    def __init__(
        self,
        plan: Program,
        natives: Sequence[Any],
        memories: Sequence[Memory | None],
        threads: int | None = None,
        length: int | None = None,
        *,
        ready: Callable[[Path], bool] | None = None,
        given: Collection[int] = (),
    ) -> None:
        self._codes: Sequence[GpuCode] = natives
        self._device = device_of(session.config)
        self._views = _views_on(self._device)
        self._on_device = DeviceBlocks(self._device, plan.blocks, given)
        self._yields: list[_Yield] = []
        self._now = _Yield(0)
        self._orders: dict[int, int] = {}
        self._order = 0
        self._fillers: dict[int, int] = {}
        self._afterwards: list[tuple[int, _Command]] = []
        self._failed_step: ops.Operation | None = None
        self._checks: dict[int, Callable[[bytes], None]] = {}
        steps = plan.operations
        room = sum([_apart(self._codes[one.code].param_bytes if isinstance(one, ops.Launch) else 64) for one in steps])
        self._params = _Parameters(max(room, 8))
        count = sum(
            [len(one.results) if isinstance(one, ops.Launch) else isinstance(one, ops.LoadElement) for one in steps]
        )
        #: numbers that are read back: on the device, and on the host
        self._answered = Memory(max(8 * count, 8))
        self._answers = self._buffer_for_answers()
        super().__init__(plan, natives, memories, None, length, ready=ready, given=given)
        self._jump = self._code.view().cast("q")
        #: where there is no arithmetic: what is reached at once, by the word
        starts = [_BEGIN, *[one.next for one in self._yields]]
        self._at_once = {at: self.words[at + 1] for at in starts if self.words[at] == layout.REPLAY_END}

    def _buffer_for_answers(self) -> Any:
        usage = self._device.wgpu.BufferUsage
        return self._device.buffer(self._answered.nbytes, usage.COPY_SRC | usage.COPY_DST)

    # ---- memory

    def _memory_of_block(self, number: int, memory: Memory | None) -> Memory:
        return self._on_device.add(number, memory)

    def point(self, block: int, address: int) -> None:
        self._on_device.point(block, address)

    def memory_of(self, view: ops.View) -> np.ndarray[Any, Any]:
        block = self._on_device.residents[view.block]
        if self.plan.blocks[view.block].kind != "scratch":
            return super().memory_of(view)
        if block.newest is Newest.DEVICE:  # the host sees a copy for now, and the device continues with its own
            with self._device.lock:
                self._device.download([block])
        return self._on_device.mirrored(view)

    def copier(self, view: ops.View, dtype: str) -> Callable[[], np.ndarray[Any, Any]]:
        return lambda: warm_copy(self.memory_of(view).view(dtype))

    def launch_block(self, step: ops.Launch) -> tuple[int, memoryview]:
        raise AssertionError("the device launches")

    # ---- making commands

    def assemble(self) -> None:
        # A jump comes first, to where a run begins or goes on.
        self._emit(None, layout.REPLAY_BRANCH, self._cell(0), _BEGIN)
        super().assemble()

    def _steps(self, path: Path) -> bool:
        return all(self._stage(stage) for stage in stages_of(Path(path.steps)).stages)

    def _stage(self, stage: DeviceStage) -> bool:
        self._now = _Yield(len(self.words))
        answers: list[tuple[str, Any, int, Any]] = []
        ends: list[ops.End] = []
        goes_on = True
        for step in stage.steps:
            if self._length is not None:
                if not self._length:
                    goes_on = False
                    break
                self._length -= 1
            self._order += 1
            self._orders[len(self.words)] = self._order
            if is_arithmetic(step):
                if isinstance(step, ops.End):
                    ends.append(step)
                else:
                    self._step(step)
            else:
                self.begins[len(self.words)] = step
                answers += self._command(step)
        if self._now.commands:
            self._emit(None, layout.REPLAY_END, NOWHERE_READY - 1 - len(self._yields))
            self._yields.append(self._now)
            self._now.next = len(self.words)
        for name, register, at, span in answers:
            self._load(name, register, at, span)
        for step in ends:
            self._step(step)
        if not self._now.commands and self._yields and self.plan.root.branch is None:
            self._yields[-1].results |= {block for end in ends for block in self._arrays_in(end.result)}
        if not goes_on:
            self._emit(None, layout.REPLAY_END, 0)
        return goes_on

    def _arrays_in(self, result: ops.Result) -> Iterator[int]:
        """The blocks of the plan's own that are returned, from which arrays are copied."""
        for kind, parts in ops.leaves_of(result):
            if kind == "array" and self.plan.blocks[parts[0].block].kind == "scratch":
                yield parts[0].block

    def _command(self, step: ops.Operation) -> list[tuple[str, Any, int, Any]]:
        """Make a command of a step. Returns the numbers that are read back."""
        match step:
            case ops.Launch():
                return self._launch_command(step)
            case ops.LoadElement(register, source, span):
                offset = source.offset
                answer = _Answer(
                    self._order, source.block, offset & ~3, 8 if scalar_named(source.type).size == 8 else 4
                )
                at = self._answer(answer)
                return [(source.type, register, at + offset % 4, span)]
            case ops.Clear():
                self._fill_command(step, _bytes_of(step), ops.Constant("i", 0))
            case ops.Fill(target, value):
                self._fill_command(step, target, value)
            case ops.Copy():
                self._copy_command(step)
        return []

    def _launch_command(self, step: ops.Launch) -> list[tuple[str, Any, int, Any]]:
        code, now = self._codes[step.code], self._now
        at = self._params.room(code.param_bytes)
        params = self._params.bytes[at : at + code.param_bytes]
        units, written = code.units(), code.written_addresses()
        for byte, block, offset in (*self.plan.codes[step.code].pointers, *step.pointers):
            if block < 0:
                continue
            if offset % units[byte]:
                raise KernelMemoryError("memory is not aligned to its numbers", step.span)
            self._on_device.pointers.append(PointerWord((at + byte) // 4, block, offset, units[byte]))
            if byte in written:
                now.changed.add(block)
        for byte, extent in step.extents:
            self._params.words[(at + byte) // 4] = extent
        self._params.words[(at + code.param_bytes) // 4 - 3] = 0xFFFFFFFF  # all iterations
        readers: list[Callable[[], Any]] = []
        for argument, (name, byte) in zip(step.arguments, self.plan.codes[step.code].parameters, strict=True):
            form = struct.Struct("<" + layout.WORDS[name][0])
            self._put(name, argument, at + byte, step)
            readers.append(lambda form=form, here=byte: form.unpack_from(params, here)[0])
        counts = code.counts_iterations
        self._checks.setdefault(step.code, self._check(code, step))
        check = self._checks[step.code]

        def encode(_: PreparedOnDevice) -> None:
            code.replay(params, [read() for read in readers] if counts else (), check)

        now.commands.append(_Command(self._order, encode))
        now.checks |= code.checks
        found: list[tuple[str, Any, int, Any]] = []
        for byte, name, register in step.results:
            answer = _Answer(self._order, code, byte, 4 * _words_of(name))
            found.append((name, register, self._answer(answer), step.span))
        return found

    def _check(self, code: GpuCode, step: ops.Launch) -> Callable[[bytes], None]:
        """The receiver of faults of a code that this step is the first to launch."""

        whose = weakref.ref(self)

        def check(head: bytes) -> None:
            if (plan := whose()) is not None:
                plan._failed_step = step
            code.check(head)

        return check

    def _put(self, name: str, operand: ops.Operand, at: int, step: ops.Launch | ops.Clear | ops.Fill) -> None:
        """Add an operand to the parameters, as a number of this type."""
        if isinstance(operand, ops.Constant):
            value = operand.value
            packed = struct.pack(f"<{layout.WORDS[name]}", float(value) if name.startswith("f") else value)
            self._params.bytes[at : at + 4 * _words_of(name)] = packed[: 4 * _words_of(name)]
        elif operand.kind == "s":
            cell = self.register_address(operand.number)
            self._emit(None, layout.REPLAY_COPY, 8, self._params.address + at, cell, 0)
        else:
            self._store(name, operand, self._params.address + at, step.span)

    def _fill_command(self, step: ops.Clear | ops.Fill, target: ops.View, value: ops.Operand) -> None:
        if 0 in target.shape:
            return
        axes = axes_of(target)
        at = self._params.room(64)
        self._put(target.type, value, at + views.VALUE_BYTE, step)
        if len(axes) > MOST_AXES:
            self._here(step, at)
            return
        count = math.prod([extent for extent, _ in axes])
        self._params.words[at // 4 + 1], self._params.words[at // 4 + 2] = count, scalar_named(target.type).size
        self._params.put_axes(at, axes, 1)
        self._on_device.pointers.append(PointerWord(at // 4, target.block, target.offset, 1))
        self._do_view(_FILL, at, count, target.block)

    def _copy_command(self, step: ops.Copy) -> None:
        target, source = self._in_words(step)
        if 0 in target.shape:
            return
        if not is_possible(step._replace(target=target, source=source)):
            self._here(step, 0)
        elif target.block == source.block:
            self._shift(step, run_of(target, source)[0])
        else:
            self._copy_views(target, source)
        if step.always and source.block in self._fillers:
            self._afterwards.append((self._fillers[source.block], self._now.commands[-1]))
        self._fillers[target.block] = self._order

    def _in_words(self, step: ops.Copy) -> tuple[ops.View, ops.View]:
        """The views of a copy. A copy of a block's last bytes includes the padding before the next block."""
        run, axes = run_of(step.target, step.source)
        ends = [view.offset + run >= self.plan.blocks[view.block].nbytes for view in (step.target, step.source)]
        if axes or run % 4 == 0 or step.target.type != step.source.type or not all(ends):
            return step.target, step.source
        whole = {"type": "u32", "shape": (-(-run // 4),), "strides": (4,)}
        return step.target._replace(**whole), step.source._replace(**whole)

    def _copy_views(self, target: ops.View, source: ops.View) -> None:
        run, axes = run_of(target, source)
        count = math.prod([extent for extent, *_ in axes]) * run // 4
        at = self._params.room(64)
        self._params.words[at // 4 + 2], self._params.words[at // 4 + 3] = run // 4, count
        self._params.put_axes(at, [(extent, to // 4, origin // 4) for extent, to, origin in axes], 2)
        self._on_device.pointers.append(PointerWord(at // 4, target.block, target.offset, 4))
        self._on_device.pointers.append(PointerWord(at // 4 + 1, source.block, source.offset, 4))
        self._do_view(_COPY, at, count, target.block)

    def _here(self, step: ops.Clear | ops.Copy | ops.Fill, at: int) -> None:
        """Do a step on the host that the device cannot do, since it has only words and does not convert. `at`: the
        position among the parameters of a fill's value.
        """
        target = step.target if isinstance(step, ops.Copy | ops.Fill) else _bytes_of(step)
        source = step.source if isinstance(step, ops.Copy) else target
        if 0 in target.shape:
            return

        def encode(plan: PreparedOnDevice) -> None:
            device = plan._device
            to, origin = plan._on_device.residents[target.block], plan._on_device.residents[source.block]
            newer = [block for block in dict.fromkeys((to, origin)) if block.newest is Newest.DEVICE]
            device.download(newer)
            with np.errstate(all="ignore"):
                held = plan._on_device.mirrored
                copies = isinstance(step, ops.Copy)
                held(target)[...] = held(source) if copies else plan._params.number_at(at, target.type)
            device.upload(to.place or 0, to.begin, to.nbytes)
            for block in newer:  # commands after this one write there
                block.newest = Newest.DEVICE

        self._now.commands.append(_Command(self._order, encode))
        self._now.changed.add(target.block)

    def _shift(self, step: ops.Copy, nbytes: int) -> None:
        """A copy within a block, whose parts may overlap."""
        number = step.target.block

        def encode(plan: PreparedOnDevice) -> None:
            place = plan._on_device.place(number)
            plan._device.copy_bytes(place + step.source.offset, place + step.target.offset, nbytes)

        self._now.commands.append(_Command(self._order, encode))
        self._now.changed.add(number)

    def _do_view(self, entry: int, at: int, count: int, block: int) -> None:
        params = self._params.bytes[at : at + 64]
        groups = self._device.groups(self._views.dispatches[entry], count)

        def encode(plan: PreparedOnDevice) -> None:
            plan._device.dispatch(plan._views, entry, params, groups)

        self._now.commands.append(_Command(self._order, encode))
        self._now.changed.add(block)

    def _answer(self, answer: _Answer) -> int:
        """Read a number back from the device; returns its place."""
        now = self._now
        place = 8 * now.answers
        now.answers += 1

        def encode(plan: PreparedOnDevice) -> None:
            device = plan._device
            if isinstance(answer.block, GpuCode):
                source, begin = answer.block.on(device).block, answer.offset
            else:
                source, begin = device.arena, plan._on_device.place(answer.block) + answer.offset
            device.encoder().copy_buffer_to_buffer(source, begin, plan._answers, place, answer.nbytes)

        now.commands.append(_Command(answer.order, encode))
        return self._answered.address + place

    # ---- running

    def run(self) -> int:
        if self._device.lost:
            self._follow()
        device = self._device
        with device.together(), device.lock:
            try:
                viewed = self._on_device.bring(self._params.words)
                return self._run(viewed)
            except DeviceFull as error:
                raise KernelMemoryError(f"the memory of a captured step: {error}") from None

    def _follow(self) -> None:
        """Continue with another device after the original one is lost."""
        device = self._device = device_of(session.config)
        for code in self._codes:
            code.on(device)
        self._views = _views_on(device)
        self._on_device.follow(device)
        self._answers = self._buffer_for_answers()

    def _run(self, viewed: Sequence[int]) -> int:
        integers, words = self._block.integers, self._jump
        at_once = self._at_once
        done: list[_Yield] = []
        word = _BEGIN
        try:
            while True:
                reached = at_once.get(word, None)
                if reached is None:
                    words[2] = word
                    status = self._launch(self._address)
                    if status:
                        return self._stopped(status, self._block.site)
                    reached = integers[2]
                if reached >= NOWHERE_READY:
                    break
                stage = self._yields[NOWHERE_READY - 1 - reached]
                done.append(stage)
                self._do(stage, stage.commands)
                word = stage.next
        finally:
            self._take_back(done, viewed)
        return reached

    def _do(self, stage: _Yield, commands: Sequence[_Command]) -> None:
        for block in stage.changed:
            self._on_device.residents[block].newest = Newest.DEVICE
        now = 0
        try:
            for command in commands:
                now = command.order
                command.encode(self)
            if stage.answers:
                self._report(stage)
        except BaseException:
            self._unwind_after(now)
            raise

    def _report(self, stage: _Yield) -> None:
        """Wait for numbers, and for blocks that Python gets next."""
        device = self._device
        blocks = [self._on_device.residents[number] for number in stage.results if number not in self.given]
        parts = [(device.arena, block.place or 0, block.size) for block in blocks]
        found, *others = device.fetch([(self._answers, 0, 8 * stage.answers), *parts])
        ctypes.memmove(self._answered.address, bytes(found), 8 * stage.answers)
        device.report()
        for block, data in zip(blocks, others, strict=True):
            ctypes.memmove(block.begin, bytes(data), block.nbytes)
            block.newest = Newest.BOTH

    def _stopped(self, status: int, site: int) -> int:
        """Arithmetic has failed: complete the steps before it first."""
        if 0 <= site < self.main:
            return NOWHERE_READY
        order = self._orders[max([at for at in self._orders if at <= site])]
        self._failed_step = self.begins[max([at for at in self.begins if at <= site])]
        for stage in self._yields:
            if stage.first <= site < stage.next:
                self._do(stage, [one for one in stage.commands if one.order < order])
        self._unwind_after(order)
        self.fail(status, site)

    def _unwind_after(self, order: int) -> None:
        """Do the cleanup that is due after this step."""
        for filled, command in self._afterwards:
            if filled < order < command.order:
                command.encode(self)

    def _take_back(self, done: Sequence[_Yield], viewed: Sequence[int]) -> None:
        """Copy the host's blocks back, and raise faults of the program."""
        if self._device.lost:
            return
        changed = set().union(*[stage.changed for stage in done])
        self._on_device.take_back(changed, viewed, waits=any(stage.checks for stage in done))

    @property
    def failed(self) -> ops.Operation | None:
        return self._failed_step


def _apart(nbytes: int) -> int:
    return -(-nbytes // _APART) * _APART


def _words_of(name: str) -> int:
    return 2 if scalar_named(name).size == 8 else 1


def _bytes_of(step: ops.Clear) -> ops.View:
    """The cleared bytes, in words if possible."""
    size, name = (4, "u32") if step.offset % 4 == step.nbytes % 4 == 0 else (1, "u8")
    return ops.View(step.block, step.offset, name, (step.nbytes // size,), (size,))
