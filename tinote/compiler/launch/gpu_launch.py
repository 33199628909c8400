"""A kernel as WGSL bound to memory: the launch backend for GPUs.

Fields live on the device (`tinote.runtime.resident`): they are copied when the host has written them, and back when it
asks for them. Arrays of the caller's are copied in before a launch and back after it. A launch that gives something,
prints, checks, or writes what somebody has a view of is waited for; others are encoded and run one after another.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinote.compiler.codegen.wgsl.features import Features
from tinote.compiler.codegen.wgsl.module import generate
from tinote.compiler.codegen.wgsl.shader import (
    FAULTS,
    HEAD,
    LEFT,
    LOOP_ENDED,
    PAYLOAD,
    PRINTED,
    RING_WORDS,
    SITE,
    TOO_MANY,
    Shader,
)
from tinote.compiler.codegen.wgsl.types import unit_of, words_of
from tinote.compiler.launch.access_summary import summarise_tasks
from tinote.compiler.launch.native import BoundArray, Origin, address_sources
from tinote.compiler.launch.text_code import TextCode
from tinote.config import Config
from tinote.errors import (
    CompilerBug,
    KernelMemoryError,
    KernelRuntimeError,
    KernelTargetError,
    note_interruption,
    refusing_deep_nests,
)
from tinote.ir.buffers import bytes_of, root_of
from tinote.ir.nodes import Atomic, Buffer, BufferKind, Function, Lit, Task
from tinote.ir.query import walk
from tinote.ir.types import Scalar
from tinote.runtime.gpu import Device, DeviceFull, DeviceLostError, GpuProgram, NoDevice, open_device
from tinote.runtime.launch import print_formatter, write_prints
from tinote.runtime.layout import WORDS, WORKGROUP
from tinote.runtime.memory import Memory
from tinote.runtime.profile import Clock, profile
from tinote.runtime.resident import Newest, ResidentMemory, resident_at
from tinote.runtime.seam import active_listener, listeners, silently
from tinote.runtime.sites import Bounds, Site, SiteKind, fault
from tinote.source import NOWHERE, Span

#: Values of an array among an invocation's variables (`Features.indexed`), on GPUs and on CPUs. Chosen, not measured.
_MAX_INDEXED, _MAX_INDEXED_BY_SOFTWARE = 256, 8
#: Branches and loops inside one another on a CPU (`Features.nested`): its limit, 80, counts others.
_MAX_NESTED_BY_SOFTWARE = 64
#: Faults that are the device's, not the program's: no launch is waited for because of them.
_LIMITS = (LOOP_ENDED, TOO_MANY)
_LESS_MEMORY = "use smaller fields, or run this kernel with ti.init(arch=ti.cpu)"


class ArgumentBound(NamedTuple):
    """A bound of a task's iterations that is an argument: its position among the values of a launch."""

    position: int


class _Repeat(NamedTuple):
    """An asynchronous launch that only uses fields: blocks with their places, those that it writes, its parameters."""

    places: list[tuple[ResidentMemory, int]]
    changed: list[ResidentMemory]
    params: bytes


class _FaultCheck(NamedTuple):
    """The check of a launch's faults, called with the head of its block; raises the error there. It outlives the kernel
    and its fields while a launch is pending, so it holds no memory.
    """

    sites: tuple[Site, ...]
    types: tuple[tuple[Scalar, ...], ...]
    memory_limit: int

    def __call__(self, head: bytes) -> None:
        words = memoryview(head).cast("I")
        if not words[FAULTS]:
            return
        number = words[SITE]
        site = self.sites[number]
        if site.text in _LIMITS:
            raise KernelRuntimeError(site.text, site.loc, hint="run this kernel with ti.init(arch=ti.cpu)")
        payload = [_signed(words, PAYLOAD + 2 * k, t) for k, t in enumerate(self.types[number][:6])]
        raise fault(int(site.kind), site, payload, self.memory_limit)


#: Where the iterations of a task begin or end. None: it is in memory.
Bound = int | ArgumentBound | None


class ShaderOfKernel(NamedTuple):
    """WGSL that belongs to no device. `bounds`: between which numbers the iterations of each entry are, as far as
    literals and scalar arguments tell, which are counted from 0.
    """

    shader: Shader
    bounds: list[tuple[Bound, Bound]]


def shader_of(fn: Function) -> ShaderOfKernel:
    """The shader of a lowered function for any device that has WebGPU. Raises `KernelTargetError`."""
    with refusing_deep_nests(fn.name, fn.loc):
        return ShaderOfKernel(generate(fn, Features(indexed=_MAX_INDEXED)), _bounds_of(fn, 0))


def device_of(config: Config, loc: Span = NOWHERE) -> Device:
    """The session's device. Raises `KernelTargetError` where there is none any more."""
    try:
        return open_device(config.software_gpu)
    except NoDevice as error:
        hint = "call ti.init(arch=ti.cpu), and run the program again"
        raise KernelTargetError(f"there is no GPU any more: {error}", loc, hint=hint) from None


def workgroups_of(fn: Function, config: Config) -> list[tuple[int, int]]:
    """The size and the number of the workgroups in which a launch on the device of these options runs each task."""
    device = device_of(config, fn.loc)
    entries = generate(fn, _features(device)).entries[: sum(isinstance(op, Task) for op in fn.region.body)]
    return [(WORKGROUP if e.parallel else 1, device.groups(e)) for e in entries]


def features_of(config: Config) -> Features:
    """What shaders may use: those of the session's device, or of one that has f64."""
    return _features(device_of(config)) if config.arch == "gpu" else Features(f64=True)


def _features(device: Device) -> Features:
    found = Features(device.info.f64, _MAX_INDEXED, device.has_float_atomics)
    if not device.info.software:
        return found
    return found._replace(indexed=_MAX_INDEXED_BY_SOFTWARE, nested=_MAX_NESTED_BY_SOFTWARE)


class GpuCode(TextCode):
    """WGSL bound to memory: `launch(values)` runs it, as that of machine code (`Native`) does."""

    def __init__(
        self,
        fn: Function,
        config: Config,
        memory_of: Callable[[Buffer], Memory],
        arrays: Sequence[Buffer] = (),
    ) -> None:
        super().__init__(fn, Origin.GPU, summarise_tasks(fn))
        self._fn = fn
        self._config = config
        self._device: Device = device_of(config, fn.loc)
        self._shader: Shader = generate(fn, _features(self._device))
        sources = address_sources(arrays)
        #: what looks for the faults of a launch in its block
        self.check = _FaultCheck(self._shader.sites, self._shader.site_types, config.memory_limit)
        self._arrays = len(arrays)
        self._bound = {b: sources[b] for _, b in self._shader.bases if b in sources}
        self._fields = {b: memory_of(b) for _, b in self._shader.bases if b not in sources}
        written = {root_of(b) for task in self.tasks for b in task.accesses.written}
        self._written = [b for _, b in self._shader.bases if b in written or b.kind is BufferKind.SAVED]
        self._bounds = _bounds_of(fn, len(arrays))
        depends = any(isinstance(end, ArgumentBound) for pair in self._bounds for end in pair)
        self._known = None if depends else [_count(lo, hi, ()) for lo, hi in self._bounds]
        tasks = [op for op in fn.region.body if isinstance(op, Task)] if config.kernel_profiler else []
        by = "GPU's timestamps" if self._device.has_timestamps else "waiting for the GPU"
        self._clocks = [Clock(k, fn.name, task.name, task.loc, by) for k, task in enumerate(tasks)]
        #: whether a launch ends when it has run: it gives something, or its errors are to come from where it was called
        self._waits = bool(
            self.results
            or self._shader.ring is not None
            or self._clocks
            or any(site.text not in _LIMITS for site in self._shader.sites)
        )
        self._program = self._made()
        #: the last launch, if another one may be like it
        self._repeat: _Repeat | None = None

    def _made(self) -> GpuProgram:
        shader = self._shader
        if shader.param_words > 4 * 4096:
            raise KernelTargetError(f"'{self._fn.name}' has more arguments and fields than a GPU takes", self._fn.loc)
        try:
            words = shader.block_words if shader.ring is None else shader.ring
            holds = shader.block_words > HEAD
            sizes = shader.param_words, shader.block_words, words
            return GpuProgram(self._device, shader.text, shader.entries, *sizes, holds, LEFT)
        except DeviceFull as error:
            raise KernelMemoryError(str(error), self._fn.loc, _LESS_MEMORY) from None
        except Exception as error:
            if type(error).__module__.startswith("wgpu"):
                raise CompilerBug("WGSL", str(error)) from error
            raise

    # ---- what a captured step asks (`lang/capture/`): its slots are the parameters of a launch

    @property
    def name(self) -> str:
        """The kernel's."""
        return self._fn.name

    @property
    def digest(self) -> str:
        """Of its text."""
        return hashlib.sha256(self._shader.text.encode()).hexdigest()

    @property
    def prints(self) -> bool:
        """Whether launches print."""
        return self._shader.ring is not None

    @property
    def checks(self) -> bool:
        """Whether a launch may end with an error that is the program's."""
        return any(site.text not in _LIMITS for site in self._shader.sites)

    @property
    def adds_in_any_order(self) -> bool:
        """Whether it adds up floats in whichever order the device's invocations come: sums round accordingly."""
        tasks = [op for op in self._fn.region.body if isinstance(op, Task)]
        return any(
            isinstance(op, Atomic) and not op.plain and op.buffer.dtype.kind == "f" and op.prim.name in ("add", "mul")
            for task, entry in zip(tasks, self._shader.entries, strict=False)
            if entry.parallel
            for op in walk(task.body)
        )

    @property
    def arrays(self) -> int:
        """How many arrays the values of a launch begin with."""
        return self._arrays

    @property
    def param_bytes(self) -> int:
        """The bytes of a launch's parameters."""
        return 4 * self._shader.param_words

    @property
    def parameter_places(self) -> tuple[tuple[str, int], ...]:
        """The type and the place of each scalar argument, as bytes from the first parameter."""
        return tuple([(t.name, 4 * at) for at, t in self._shader.parameters])

    def addresses(self) -> list[tuple[int, Buffer]]:
        """What a launch has the place of, each with the byte where it is among the parameters."""
        return [(4 * at, b) for at, b in self._shader.bases]

    def fixed_addresses(self) -> list[tuple[int, str, Memory]]:
        """The memory that is the same in each launch, each with its byte among the parameters, and its name."""
        return [(4 * at, b.name, self._fields[b]) for at, b in self._shader.bases if b in self._fields]

    def bound_addresses(self, arrays: Sequence[Any]) -> list[tuple[int, int, int]]:
        """The addresses that a launch with these arrays gets, each with its byte and the position of its array."""
        bound = [(at, *self._bound[b]) for at, b in self._shader.bases if b in self._bound]
        return [(4 * at, arrays[position].address_of(part), position) for at, position, part in bound]

    def bound_extents(self, arrays: Sequence[Any]) -> list[tuple[int, int]]:
        """The extents of these arrays, each with its byte."""
        return [(4 * at, arrays[self._bound[b][0]].shape[axis]) for at, b, axis in self._shader.extents]

    def writes_array(self, position: int) -> bool:
        """Whether a launch writes to the array at this position."""
        return any(self._bound[b] == (position, 0) for b in self._written if b in self._bound)

    def written_addresses(self) -> set[int]:
        """The bytes at which the places stand that a launch writes to."""
        return {4 * at for at, b in self._shader.bases if b in self._written}

    def units(self) -> dict[int, int]:
        """By the byte of each place: the bytes that it is counted in."""
        return {4 * at: unit_of(b.dtype) for at, b in self._shader.bases}

    def metadata_results(self) -> list[tuple[int, Scalar]]:
        """Where each result is, as bytes from the begin of the block."""
        return [(4 * at, t) for at, t in self._shader.results]

    def launch_in_order(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Launch without notifying the listener."""
        return silently(self.launch, values)  # type: ignore[no-any-return]

    def on(self, device: Device) -> GpuProgram:
        """What runs on this device."""
        if self._device is not device:
            self._device, self._repeat = device, None
            self._program = self._made()
        return self._program

    @property
    def counts_iterations(self) -> bool:
        """Whether it depends on scalar arguments how many iterations its loops have."""
        return self._known is None

    def replay(self, params: memoryview, numbers: Sequence[Any], check: Callable[[bytes], None]) -> None:
        """Encode a launch with these parameters; `numbers` are the scalar arguments, if iterations depend on them. What
        it prints is shown. `check` gets its faults, which come with what is read next.
        """
        device, program = self._device, self._program
        known = self._known
        if known is None:
            known = self._iterations([None] * self._arrays + list(numbers))
        try:
            device.launch(program, params, known)
        except KeyboardInterrupt as interrupt:
            note_interruption(interrupt, f"interrupted in the kernel '{self._fn.name}'", self._fn.loc)
            raise
        device.expect(program, check)
        if self._shader.ring is not None:
            (head,) = device.fetch([(program.block, 0, program.head_bytes)])
            self._print(self._shader.ring, bytes(head))
            device.report()

    def stop(self) -> int:
        """A launch on a GPU cannot be stopped: nothing runs that could be."""
        return 0

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these arrays and then these scalar arguments (the launch seed, if any, last). Raises `struct.error`
        for a value that does not fit its type, and the located error of the kernel's first fault.
        """
        if listeners and (listener := active_listener()) is not None:
            return listener.launch(self, values)  # type: ignore[no-any-return]
        given = self._given.pack(*values[self._arrays :])
        if self._device.lost:
            self._look_for_device()
        with self._device.lock:
            head = self._run(values, given)
        if head is None:
            return ()
        words = memoryview(head).cast("I")
        return tuple([_number(words, at, t) for at, t in self._shader.results])

    def _look_for_device(self) -> None:
        """Go on with another device, as that which this was made for is lost."""
        self._device = device_of(self._config, self._fn.loc)
        self._program, self._repeat = self._made(), None

    def _run(self, values: Sequence[Any], given: bytes) -> bytes | None:
        try:
            return self._run_on_device(values, given)
        except DeviceFull as error:
            raise KernelMemoryError(f"the memory of '{self._fn.name}': {error}", self._fn.loc, _LESS_MEMORY) from None
        except KeyboardInterrupt as interrupt:
            note_interruption(interrupt, f"interrupted in the kernel '{self._fn.name}'", self._fn.loc)
            raise
        except DeviceLostError as error:
            raise DeviceLostError(error.message, self._fn.loc, hint=error.hint) from None

    def _run_on_device(self, values: Sequence[Any], given: bytes) -> bytes | None:
        """Gives the begin of the block, if it is needed."""
        if (repeat := self._repeat) is not None:
            if all(block.is_at(place) for block, place in repeat.places):
                self._launch_again(repeat, values, given)
                return None
            self._repeat = None
        device = self._device
        #: where a buffer begins on the host, its block on the device, or its bytes that come along
        blocks: dict[Buffer, tuple[int, ResidentMemory]] = {}
        spans: dict[Buffer, tuple[int, int, int]] = {}
        for b, memory in self._fields.items():
            whole = memory.whole
            if isinstance(whole, ResidentMemory):
                whole.follow(device)
            if isinstance(whole, ResidentMemory) and whole.device is device:
                blocks[b] = memory.begin, whole
            else:
                spans[b] = (whole.address, whole.nbytes, memory.address)
        for b, (position, part) in self._bound.items():
            address = values[position].address_of(part)
            block = resident_at(address)
            if block is not None:
                block.follow(device)
            if block is not None and block.device is device:
                blocks[b] = address, block
            else:
                spans[b] = (address, _bytes_of(b, values[position]), address)
        used = list(dict.fromkeys([block for _, block in blocks.values()]))
        viewed = {block for block in used if block.withdraw()}
        device.places.require(used)
        ranges = _joined([(address, nbytes) for address, nbytes, _ in spans.values() if nbytes])
        places = device.places.borrow([nbytes for _, nbytes in ranges], used) if ranges else []
        try:
            return self._encode(values, given, blocks, spans, viewed, [(*r, p) for r, p in zip(ranges, places)])  # noqa: B905
        finally:
            device.places.freed.extend([(place, nbytes) for place, (_, nbytes) in zip(places, ranges, strict=True)])

    def _launch_again(self, repeat: _Repeat, values: Sequence[Any], given: bytes) -> None:
        """Launch as the last time, with other scalar arguments."""
        params = repeat.params
        if given:
            params = bytearray(params)
            self._pack_scalars(params, given)
        try:
            self._device.launch(self._program, params, self._iterations(values))
        finally:
            for block in repeat.changed:
                block.newest = Newest.DEVICE
        self._device.later(self._program, self.check)

    def _pack_scalars(self, params: bytearray, given: bytes) -> None:
        for k, (at, t) in enumerate(self._shader.parameters):
            size = 4 * words_of(t)
            params[4 * at : 4 * at + size] = given[8 * k : 8 * k + size]

    def _encode(
        self,
        values: Sequence[Any],
        given: bytes,
        blocks: dict[Buffer, tuple[int, ResidentMemory]],
        spans: dict[Buffer, tuple[int, int, int]],
        viewed: set[ResidentMemory],
        ranges: Sequence[tuple[int, int, int]],
    ) -> bytes | None:
        shader, device = self._shader, self._device
        for block in {block for _, block in blocks.values()}:
            if block.newest is Newest.HOST:
                assert block.place is not None
                device.upload(block.place, block.begin, block.nbytes)
                block.newest = Newest.BOTH
        for address, nbytes, place in ranges:
            device.upload(place, address, nbytes)
        params = bytearray(4 * shader.param_words)
        self._pack_scalars(params, given)
        for at, b, axis in shader.extents:
            struct.pack_into("<I", params, 4 * at, values[self._bound[b][0]].shape[axis])
        written: list[tuple[int, int, int]] = []
        changed: set[ResidentMemory] = set()
        for at, b in shader.bases:
            if b in blocks:
                first, block = blocks[b]
                assert block.place is not None
                begin = block.place + first - block.begin
                if b in self._written:
                    changed.add(block)
            else:
                address, nbytes, first = spans[b]
                if not nbytes:
                    continue
                start, _, place = next(r for r in ranges if r[0] <= address < r[0] + r[1])
                begin = place + first - start
                if b in self._written:
                    written.append((place + address - start, address, nbytes))
            unit = unit_of(b.dtype)
            if begin % unit:
                raise KernelMemoryError(f"'{b.name}' is not aligned to its numbers", self._fn.loc)
            struct.pack_into("<I", params, 4 * at, begin // unit)
        struct.pack_into("<I", params, len(params) - 12, 0xFFFFFFFF)
        try:
            if self._clocks:
                seconds = device.launch_measured(self._program, params, self._iterations(values))
                taken = [round(1e9 * s) for s in seconds] + [0] * len(self._clocks)
                profile.record(list(zip(self._clocks, taken)))  # noqa: B905
            else:
                device.launch(self._program, params, self._iterations(values))
        finally:  # also if it was interrupted
            for block in changed:
                block.newest = Newest.DEVICE
        seen = [block for block in viewed if block in changed]
        head = None
        if self._waits or written or seen:
            parts = [(self._program.block, 0, self._program.head_bytes)]
            parts += [(device.arena, place & ~3, -(-(place + n - (place & ~3)) // 4) * 4) for place, _, n in written]
            parts += [(device.arena, block.place or 0, block.size) for block in seen]
            found = device.fetch(parts)
            head = bytes(found[0])
            for (place, address, nbytes), data in zip(written, found[1:], strict=False):
                ctypes.memmove(address, bytes(data[place & 3 :]), nbytes)
            for block, data in zip(seen, found[1 + len(written) :], strict=True):
                ctypes.memmove(block.begin, bytes(data), block.nbytes)
            if memoryview(head).cast("I")[FAULTS]:
                device.forget_faults(self._program)
        else:
            device.later(self._program, self.check)
            if not (self._bound or ranges or viewed):
                places = [(block, block.place) for _, block in blocks.values() if block.place is not None]
                self._repeat = _Repeat(list(dict.fromkeys(places)), list(changed), bytes(params))
        for block in viewed:  # whoever has a view may write at any time
            block.newest = Newest.HOST
        if head is not None:
            device.report()
            if shader.ring is not None:
                self._print(shader.ring, head)
            self.check(head)
        return head

    def _iterations(self, values: Sequence[Any]) -> Sequence[int | None]:
        """How many iterations each task has, as far as literals and arguments tell."""
        return [_count(lo, hi, values) for lo, hi in self._bounds] if self._known is None else self._known

    def _print(self, ring: int, head: bytes) -> None:
        """Write what the launch has printed."""
        words = memoryview(head).cast("I")
        count, dropped = min(words[PRINTED], RING_WORDS), words[PRINTED + 1]
        if not count:
            return
        record = memoryview(self._device.read([(self._program.block, 4 * ring, 4 * count)])[0]).cast("I")
        pieces: list[str] = []
        at = 0
        while at < count:
            number = record[at]
            types = self._shader.site_types[number]
            size = 1 + sum(map(words_of, types))
            if at + size > count:
                break
            shown: list[int] = []
            here = at + 1
            for t in types:
                shown.append(_signed(record, here, t))
                here += words_of(t)
            site = self._shader.sites[number]
            if site.kind is not SiteKind.PRINT or isinstance(site.arguments, Bounds):
                raise CompilerBug("GPU launch", f"{site!r} prints")
            pieces.append(print_formatter(site, set())(shown))
            at += size
        if dropped:
            pieces.append(f"[{dropped} more prints were dropped: the kernel prints faster than they can be shown]\n")
        write_prints("".join(pieces), sys.stdout.write)


def _bounds_of(fn: Function, arrays: int) -> list[tuple[Bound, Bound]]:
    """Between which numbers the iterations of each entry point are. The values of a launch begin with `arrays`."""
    positions = {v: ArgumentBound(arrays + k) for k, v in enumerate(fn.region.params)}
    tasks = [op for op in fn.region.body if isinstance(op, Task)]
    found: list[tuple[Bound, Bound]] = []
    for task in tasks:
        ends = [int(a.value) if isinstance(a, Lit) else positions.get(a) for a in task.args]
        found.append((ends[0], ends[1]) if task.parallel else (None, None))
    return [*found, (None, None)] if fn.region.yields else found


def _count(lo: Bound, hi: Bound, values: Sequence[Any]) -> int | None:
    """How many iterations there are between two bounds, if that is known."""
    if lo is None or hi is None:
        return None
    first, last = [int(values[end.position]) if isinstance(end, ArgumentBound) else end for end in (lo, hi)]
    return max(last - first, 0)


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bytes of the host's, from multiples of 16 on; those that share memory are one."""
    found: list[tuple[int, int]] = []
    for address, nbytes in sorted(spans):
        start = address & ~15
        stop = address + nbytes
        if found and start < sum(found[-1]):
            found[-1] = (found[-1][0], max(found[-1][1], stop - found[-1][0]))
        else:
            found.append((start, stop - start))
    return found


def _bytes_of(b: Buffer, array: BoundArray) -> int:
    """The bytes of an array argument, or of its gradient or dual."""
    size = b.dtype.size
    for n in (*array.shape, *b.element):
        size *= n
    return size if None in b.shape or bytes_of(b) is None else bytes_of(b) or 0


def _number(words: Any, at: int, t: Scalar) -> Any:
    (found,) = struct.unpack_from("<" + WORDS[t.name][0], words[at : at + words_of(t)].tobytes())
    return found


def _signed(words: Any, at: int, t: Scalar) -> int:
    """A word of a site: integers extended by their sign, floats as bits."""
    value = words[at] | (words[at + 1] << 32 if words_of(t) == 2 else 0)
    bits = 64 if words_of(t) == 2 else 32
    if t.kind == "i" or bits == 64:
        return value - (1 << bits) if value >> (bits - 1) else value
    return value
