"""A kernel as WGSL bound to memory: the backend for GPUs beside machine code (`native.py`).

The host's memory is the truth between launches: what a launch touches is copied to the device before it, and what it
writes is copied back after it. So all else, from Python's writes to views of NumPy's, is as on the CPU.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.codegen.wgsl.module import generate
from tinote.compiler.codegen.wgsl.shader import FAULTS, LOOP_ENDED, PAYLOAD, PRINTED, RING_WORDS, SITE, Shader
from tinote.compiler.codegen.wgsl.text import Features, words_of
from tinote.compiler.launch.access_summary import TaskSummary, summarise_tasks
from tinote.compiler.launch.native import BoundArray, Origin, address_sources
from tinote.config import Config
from tinote.errors import CompilerBug, KernelMemoryError, KernelRuntimeError, KernelTargetError
from tinote.ir.buffers import bytes_of, root_of
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.types import Scalar
from tinote.runtime.gpu import Device, DeviceFull, Dispatch, Program, open_device
from tinote.runtime.launch import write_prints
from tinote.runtime.layout import WORDS
from tinote.runtime.memory import Memory
from tinote.runtime.profile import Clock, profile
from tinote.runtime.sites import Bounds, SiteKind, fault, formatter
from tinote.runtime.threads import Stoppable


class GpuCode(Stoppable):
    """WGSL bound to memory: `launch(values)` runs it, as that of machine code (`Native`) does."""

    __slots__ = (
        "_arrays",
        "_clock",
        "_config",
        "_device",
        "_fields",
        "_fn",
        "_given",
        "_lent",
        "_program",
        "_shader",
        "_written",
        "cached",
        "origin",
        "parameters",
        "results",
        "seconds",
        "tasks",
    )

    def __init__(
        self,
        fn: Function,
        config: Config,
        memory_of: Callable[[Buffer], Memory],
        arrays: Sequence[Buffer] = (),
    ) -> None:
        self.origin = Origin.GPU
        self.cached = False
        self.seconds = 0.0
        self._fn = fn
        self._config = config
        self._device: Device = open_device(config.software_gpu)
        self._shader: Shader = generate(fn, Features(self._device.info.f64))
        self.tasks: tuple[TaskSummary, ...] = summarise_tasks(fn)
        sources = address_sources(arrays)
        self._arrays = len(arrays)
        self._lent = {b: sources[b] for _, b in self._shader.bases if b in sources}
        self._fields = {b: memory_of(b) for _, b in self._shader.bases if b not in sources}
        written = {root_of(b) for task in self.tasks for b in task.accesses.written}
        self._written = [b for _, b in self._shader.bases if b in written or b.kind is BufferKind.SAVED]
        self.parameters = tuple([t for _, t in self._shader.parameters])
        self.results = tuple([t for _, t in self._shader.results])
        self._given = struct.Struct("<" + "".join([WORDS[t.name] for t in self.parameters]))
        self._clock = Clock(0, fn.name, "GPU", fn.loc) if config.kernel_profiler else None
        self._program = self._made()
        super().__init__()

    def _made(self) -> Program:
        shader = self._shader
        dispatches = [Dispatch(e.name, e.parallel, e.turns, e.saves) for e in shader.entries]
        if shader.param_words > 4 * 4096:
            raise KernelTargetError(f"'{self._fn.name}' has more arguments and fields than a GPU takes", self._fn.loc)
        try:
            return Program(self._device, shader.text, dispatches, shader.param_words, shader.block_words)
        except DeviceFull as error:
            raise KernelMemoryError(str(error), self._fn.loc) from None
        except Exception as error:
            if type(error).__module__.startswith("wgpu"):
                raise CompilerBug("WGSL", str(error)) from error
            raise

    def stop(self) -> int:
        """A launch on a GPU cannot be stopped: nothing runs that could be."""
        return 0

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these arrays and then these scalar arguments (the launch seed, if any, last). Raises `struct.error`
        for a value that does not fit its type, and the located error of the kernel's first fault.
        """
        given = self._given.pack(*values[self._arrays :])
        started = time.perf_counter_ns()
        with self._device.lock:
            head = self._run(values, given)
        if self._clock is not None:
            profile.record([(self._clock, time.perf_counter_ns() - started)])
        words = memoryview(head).cast("I")
        if words[FAULTS]:
            number = words[SITE]
            site = self._shader.sites[number]
            if site.text == LOOP_ENDED:
                raise KernelRuntimeError(LOOP_ENDED, site.loc, hint="run this kernel with ti.init(arch=ti.cpu)")
            types = self._shader.site_types[number]
            payload = [_signed(words, PAYLOAD + 2 * k, t) for k, t in enumerate(types[:6])]
            raise fault(int(site.kind), site, payload, self._config.memory_limit)
        return tuple([_number(words, at, t) for at, t in self._shader.results])

    def _run(self, values: Sequence[Any], given: bytes) -> bytes:
        shader, device = self._shader, self._device
        #: the bytes that come along: from where, how many; where the buffer begins
        spans: dict[Buffer, tuple[int, int, int]] = {}
        for b, memory in self._fields.items():
            whole = memory.whole
            spans[b] = (whole.address, whole.nbytes, memory.address)
        for b, (position, part) in self._lent.items():
            address = values[position][part]
            spans[b] = (address, _bytes_of(b, values[position]), address)
        try:
            ranges = device.place([(address, nbytes) for address, nbytes, _ in spans.values() if nbytes])
        except DeviceFull as error:
            raise KernelMemoryError(f"the memory of '{self._fn.name}': {error}", self._fn.loc) from None
        params = bytearray(4 * shader.param_words)
        for k, (at, t) in enumerate(shader.parameters):
            params[4 * at : 4 * (at + words_of(t))] = given[8 * k : 8 * k + 4 * words_of(t)]
        for at, b, axis in shader.extents:
            struct.pack_into("<I", params, 4 * at, values[self._lent[b][0]].shape[axis])
        places: dict[Buffer, int] = {}
        for at, b in shader.bases:
            address, nbytes, first = spans[b]
            if not nbytes:
                continue
            span = next(r for r in ranges if r.address <= address < r.address + r.nbytes)
            places[b] = span.place + address - span.address
            begin = span.place + first - span.address
            unit = min(b.dtype.size, 4)
            if begin % unit:
                raise KernelMemoryError(f"'{b.name}' is not aligned to its numbers", self._fn.loc)
            struct.pack_into("<I", params, 4 * at, begin // unit)
        written = [(places[b], *spans[b][:2]) for b in self._written if b in places]
        ring = shader.ring
        head_words = shader.block_words if ring is None else ring
        try:
            head = device.run(self._program, bytes(params), ranges, written, 4 * head_words)
            if ring is not None:
                self._print(ring, head)
        except Exception as error:
            if type(error).__module__.startswith("wgpu"):
                device.lost = True
                raise KernelMemoryError(f"the GPU '{device.info.name}' failed: {error}", self._fn.loc) from None
            raise
        return head

    def _print(self, ring: int, head: bytes) -> None:
        """Write what the launch has printed."""
        words = memoryview(head).cast("I")
        count, dropped = min(words[PRINTED], RING_WORDS), words[PRINTED + 1]
        if not count:
            return
        record = memoryview(self._device.read_block(self._program, 4 * ring, 4 * count)).cast("I")
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
            pieces.append(formatter(site.arguments)(shown))
            at += size
        if dropped:
            pieces.append(f"[{dropped} more prints were dropped: the kernel prints faster than they can be shown]\n")
        write_prints("".join(pieces), sys.stdout.write)


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
