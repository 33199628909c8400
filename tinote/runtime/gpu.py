"""GPUs, by way of the `wgpu` library (extra `tinote[gpu]`): which there are, memory on one of them, and launches of
compute shaders.

    device = open_device(software=False)      # raises `NoDevice` with the reason
    memory = ResidentMemory(device, nbytes)   # bytes there, with a mirror here
    device.launch(program, params)            # all tasks, behind what was launched before
    device.read([(program.block, 0, 64)])     # waits for them

The library is told only what it can do: sizes and limits are looked at before, because what it cannot do it may answer
by ending the process. A software adapter, which is slower than the CPU itself, is taken only where it is asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tinote.runtime.layout import PAYLOAD_WORDS
from tinote.runtime.memory import readable_size
from tinote.runtime.resident import Newest, ResidentMemory

SOFTWARE_VARIABLE = "TINOTE_SOFTWARE_GPU"

#: Bytes of scratch memory, for the stacks of all invocations of a task.
_SCRATCH_BYTES = 64 << 20
#: Places in the arena are multiples of this.
_ALIGNMENT = 256
_FIRST_ARENA = 1 << 20
#: Bytes for the parameters of the launches that are submitted together; after so many of these they are. Nobody waits
#: for at most so many submissions.
_RING_BYTES = 1 << 18
_BATCH = 64
#: Groups of a task whose invocations add to the same numbers.
_MOST_SUMMING = 256
_MOST_UNREAD = 16
#: What a block begins with that is told when a kernel has failed.
_FAULT_BYTES = 4 * (2 + 2 * PAYLOAD_WORDS)
_SUBSTANTIAL = ("Vulkan", "Metal", "DX12")
_NEEDED = ("shader-f64", "shader-int64")
_BINDINGS = 4


class NoDevice(Exception):
    """There is no GPU to run kernels on. The message says why, and what to do."""


class DeviceFull(Exception):
    """What a launch needs does not fit. The message has the sizes."""


class AdapterInfo(NamedTuple):
    """An adapter: `software` where a CPU stands in for a GPU."""

    name: str
    backend: str
    software: bool
    f64: bool
    binding_bytes: int


class Dispatch(NamedTuple):
    """A task: how many iterations, if that is known, whether they run side by side, whether stacks are kept, and
    whether each invocation has sums to add to those of the others.
    """

    name: str
    parallel: bool
    turns: int | None
    saves: bool
    sums: bool = False


def _library() -> Any:
    try:
        wgpu = importlib.import_module("wgpu")
        extras = importlib.import_module("wgpu.backends.wgpu_native.extras")
    except (ImportError, OSError) as error:
        raise NoDevice(f"the library wgpu is not there ({error}): pip install wgpu") from None
    # OpenGL has neither f64 nor the limits. Once there is an instance, it stays.
    with contextlib.suppress(RuntimeError):
        extras.set_instance_extras(backends=list(_SUBSTANTIAL))
    return wgpu


def adapters() -> list[AdapterInfo]:
    """The adapters that could run kernels. Raises `NoDevice` without the library."""
    wgpu = _library()
    return [_described(adapter) for adapter in wgpu.gpu.enumerate_adapters_sync() if _is_substantial(adapter)]


def _is_substantial(adapter: Any) -> bool:
    return adapter.info["backend_type"] in ("Vulkan", "Metal", "D3D12", "DX12")


def _described(adapter: Any) -> AdapterInfo:
    info = adapter.info
    return AdapterInfo(
        str(info["device"]),
        str(info["backend_type"]),
        info["adapter_type"] == "CPU",
        all(name in adapter.features for name in _NEEDED),
        int(adapter.limits["max-storage-buffer-binding-size"]),
    )


def wants_software() -> bool:
    """Whether the environment asks for a software adapter."""
    return os.environ.get(SOFTWARE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")


_devices: dict[bool, Device] = {}
_lock = threading.RLock()


def open_device(software: bool = False) -> Device:
    """The device that kernels run on: the first GPU, or, where it is asked for, a CPU that stands in for one. Raises
    `NoDevice`.
    """
    with _lock:
        known = _devices.get(software)
        if known is not None and not known.lost:
            return known
        wgpu = _library()
        try:
            found = [a for a in wgpu.gpu.enumerate_adapters_sync() if _is_substantial(a)]
        except Exception as error:
            raise NoDevice(f"the system's drivers cannot be asked: {error}") from None
        real = [a for a in found if a.info["adapter_type"] != "CPU"]
        real.sort(key=lambda a: a.info["adapter_type"] != "DiscreteGPU")
        chosen = (real or found) if software else real
        if not chosen:
            reason = "the only adapter is a CPU that stands in for a GPU" if found else "no adapter was found"
            option = f" ({SOFTWARE_VARIABLE}=1, or software_gpu=True, takes it all the same)" if found else ""
            raise NoDevice(reason + option)
        made = _devices[software] = Device(wgpu, chosen[0])
        return made


class Program:
    """A compiled module: a pipeline for each task. `head_bytes`: what the host reads of its block. `holds`: the block
    has more than faults in it, which begins as zeros.
    """

    def __init__(
        self,
        device: Device,
        text: str,
        dispatches: Sequence[Dispatch],
        param_words: int,
        block_words: int,
        head_words: int,
        holds: bool,
    ):
        usage = device.wgpu.BufferUsage
        self.device = device
        self.dispatches = tuple(dispatches)
        module = device.device.create_shader_module(code=text)
        self.pipelines = [
            device.device.create_compute_pipeline(
                layout=device.layout, compute={"module": module, "entry_point": dispatch.name}
            )
            for dispatch in dispatches
        ]
        self.param_bytes = 4 * param_words
        self.head_bytes = 4 * head_words
        self.block = device.buffer(4 * block_words, usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
        self.holds = holds
        #: what a fault that nobody waited for is told to
        self.check: Callable[[bytes], None] | None = None
        self._group: Any = None
        self._made_for = -1

    def group(self) -> Any:
        """The four bindings, with the arena as it is now."""
        device = self.device
        if self._made_for != device.generation:
            whole = [(buffer, buffer.size) for buffer in (self.block, device.scratch, device.arena)]
            bound = [(device.ring, self.param_bytes), *whole]
            entries = [
                {"binding": n, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for n, (buffer, size) in enumerate(bound)
            ]
            self._group = device.device.create_bind_group(layout=device.bindings, entries=entries)
            self._made_for = device.generation
        return self._group


class Device:
    """One GPU and its memory: an arena of words, of which every block has a piece.

    Launches are encoded one behind the other and submitted together: when somebody reads, when the host has bytes for
    a launch to come, and now and then. All that is encoded happens in that order.
    """

    def __init__(self, wgpu: Any, adapter: Any) -> None:
        self.wgpu = wgpu
        self.info = _described(adapter)
        self.lost = False
        self.lock = threading.RLock()
        self.generation = 0
        limits = adapter.limits
        self.largest = min(int(limits["max-storage-buffer-binding-size"]), int(limits["max-buffer-size"])) & ~0xFF
        self.largest = min(self.largest, (1 << 32) - 256)  # addresses on the device have 32 bits
        try:
            self.device = adapter.request_device_sync(
                required_features=[name for name in _NEEDED if name in adapter.features],
                required_limits={
                    "max-storage-buffer-binding-size": int(limits["max-storage-buffer-binding-size"]),
                    "max-buffer-size": int(limits["max-buffer-size"]),
                },
            )
        except Exception as error:
            raise NoDevice(f"'{self.info.name}' gives no device: {error}") from None
        usage = wgpu.BufferUsage
        self._storage = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        kinds = ["uniform", "storage", "storage", "storage"]
        self.bindings = self.device.create_bind_group_layout(
            entries=[
                {
                    "binding": n,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": {"type": kind, "has_dynamic_offset": kind == "uniform"},
                }
                for n, kind in enumerate(kinds)
            ]
        )
        self.layout = self.device.create_pipeline_layout(bind_group_layouts=[self.bindings])
        self.scratch = self.buffer(min(_SCRATCH_BYTES, self.largest), usage.STORAGE)
        self.arena = self.buffer(min(_FIRST_ARENA, self.largest), self._storage)
        #: the parameters of the launches that are encoded
        self.ring = self.buffer(_RING_BYTES, usage.UNIFORM | usage.COPY_DST)
        #: pieces of the arena that nobody has: where, how many bytes
        self._free: list[tuple[int, int]] = [(0, self.arena.size)]
        #: pieces that are not needed any more; whoever lets one go appends it
        self.freed: deque[tuple[int, int]] = deque()
        self._placed: weakref.WeakSet[ResidentMemory] = weakref.WeakSet()
        self._staging: Any = None
        self._between: Any = None
        self._encoder: Any = None
        self._pass: Any = None
        self._params = bytearray()
        self._unread = 0
        self._late: dict[Program, None] = {}
        self._faults: list[tuple[Program, bytes]] = []
        self.submissions = 0

    def buffer(self, nbytes: int, usage: int) -> Any:
        """A buffer of the device. Raises `DeviceFull`."""
        size = max(-(-nbytes // 16) * 16, 16)
        if size > self.largest:
            raise DeviceFull(
                f"{readable_size(nbytes)} were asked for, and '{self.info.name}' binds at most "
                f"{readable_size(self.largest)} at once"
            )
        try:
            return self.device.create_buffer(size=size, usage=usage)
        except Exception as error:
            raise DeviceFull(f"'{self.info.name}' has no {readable_size(nbytes)} left: {error}") from None

    # ---- places in the arena

    def require(self, blocks: Collection[ResidentMemory]) -> None:
        """Have a place for each of these blocks. Others may lose theirs. Raises `DeviceFull`."""
        missing = [block for block in blocks if block.place is None]
        for block in missing:
            block.place = self._take(block.size, blocks)
            self._placed.add(block)

    def borrow(self, sizes: Sequence[int], beside: Collection[ResidentMemory]) -> list[int]:
        """Places for the time of one launch, which `give` ends, beside those of blocks. Raises `DeviceFull`."""
        found: list[tuple[int, int]] = []
        try:
            for size in sizes:
                found.append((self._take(size, beside, found), size))
        except DeviceFull:
            self.freed.extend(found)
            raise
        return [place for place, _ in found]

    def _take(self, nbytes: int, beside: Collection[ResidentMemory], taken: Sequence[tuple[int, int]] = ()) -> int:
        self._collect()
        size = _rounded(nbytes)
        found = self._first_fit(size)
        if found is None:
            found = self._grow(size)
        if found is None:
            self._make_room(beside)
            found = self._first_fit(size)
        if found is None:
            have = sum(_rounded(block.size) for block in beside) + sum(size for _, size in taken)
            raise DeviceFull(
                f"{readable_size(max(have, size))} were asked for, and '{self.info.name}' binds at most "
                f"{readable_size(self.largest)} at once"
            )
        return found

    def _collect(self) -> None:
        """Join the pieces that were given back to those that are free."""
        if not self.freed:
            return
        pieces = list(self._free)
        while self.freed:
            place, size = self.freed.popleft()
            pieces.append((place, _rounded(size)))
        self._free = []
        for place, size in sorted(pieces):
            if self._free and sum(self._free[-1]) == place:
                self._free[-1] = (self._free[-1][0], self._free[-1][1] + size)
            else:
                self._free.append((place, size))

    def _first_fit(self, size: int) -> int | None:
        for k, (place, room) in enumerate(self._free):
            if room >= size:
                self._free[k : k + 1] = [(place + size, room - size)] if room > size else []
                return place
        return None

    def _grow(self, size: int) -> int | None:
        """A larger arena with what this one holds, if there may be one."""
        old = self.arena
        wanted = old.size + size
        if wanted > self.largest:
            return None
        try:
            made = self.buffer(min(max(wanted, 2 * old.size), self.largest), self._storage)
        except DeviceFull:
            return None
        self.encoder().copy_buffer_to_buffer(old, 0, made, 0, old.size)
        self.submit()
        self.arena = made
        self.generation += 1
        old.destroy()
        self.freed.append((old.size, made.size - old.size & ~(_ALIGNMENT - 1)))
        self._collect()
        return self._first_fit(size)

    def _make_room(self, beside: Collection[ResidentMemory]) -> None:
        """Take the places of all other blocks: what they hold goes to the host."""
        others = [block for block in self._placed if block not in beside and block.place is not None]
        newer = [block for block in others if block.newest is Newest.DEVICE]
        if newer:
            self.download(newer)
        for block in others:
            assert block.place is not None
            block.newest = Newest.HOST
            self.freed.append((block.place, block.size))
            block.place = None
        self._collect()

    def drop(self, blocks: Iterable[ResidentMemory]) -> None:
        """Let the places of blocks go that the host holds."""
        for block in blocks:
            if block.place is not None and block.newest is Newest.HOST:
                self.freed.append((block.place, block.size))
                block.place = None

    # ---- what is encoded

    def encoder(self) -> Any:
        """What records copies; no pass is open."""
        if self._pass is not None:
            self._pass.end()
            self._pass = None
        if self._encoder is None:
            self._encoder = self.device.create_command_encoder()
        return self._encoder

    def submit(self) -> None:
        """Have the device begin with all that is encoded."""
        if self._encoder is None:
            return
        encoder = self.encoder()
        self._encoder = None
        queue = self.device.queue
        if self._params:
            queue.write_buffer(self.ring, 0, self._params)
            self._params = bytearray()
        queue.submit([encoder.finish()])
        self._unread += 1
        self.submissions += 1

    def upload(self, place: int, address: int, nbytes: int) -> None:
        """Bytes of the host's, behind all that is encoded."""
        self.submit()
        size = -(-nbytes // 4) * 4
        self.device.queue.write_buffer(self.arena, place, (ctypes.c_uint8 * size).from_address(address))

    def launch(self, program: Program, params: bytes | bytearray) -> None:
        """Encode all tasks of a program."""
        start = -(-len(self._params) // _ALIGNMENT) * _ALIGNMENT
        if start + len(params) > _RING_BYTES:
            self.submit()
            start = 0
        if program.holds:
            self.encoder().clear_buffer(program.block, 0, program.head_bytes)
        if self._pass is None:
            self._pass = self.encoder().begin_compute_pass()
        self._params += bytes(start - len(self._params)) + params
        run = self._pass
        run.set_bind_group(0, program.group(), [start])
        for pipeline, dispatch in zip(program.pipelines, program.dispatches, strict=True):
            run.set_pipeline(pipeline)
            run.dispatch_workgroups(self.groups(dispatch))

    def later(self, program: Program, check: Callable[[bytes], None]) -> None:
        """Nobody waits for this launch: its faults are looked for when somebody reads."""
        program.check = check
        self._late[program] = None
        if len(self._params) >= _BATCH * _ALIGNMENT:
            self.submit()
            if self._unread >= _MOST_UNREAD:  # no more than so much is on its way
                self.wait()

    def copy(self, source: ResidentMemory, target: ResidentMemory) -> None:
        """Copy a block on the device."""
        size = source.size
        if self._between is None or self._between.size < size:
            self._between = self.buffer(size, self.wgpu.BufferUsage.COPY_SRC | self.wgpu.BufferUsage.COPY_DST)
        encoder = self.encoder()
        # A buffer is not copied to itself.
        encoder.copy_buffer_to_buffer(self.arena, source.place, self._between, 0, size)
        encoder.copy_buffer_to_buffer(self._between, 0, self.arena, target.place, size)

    def clear(self, block: ResidentMemory) -> None:
        """Set a block to zero on the device."""
        self.encoder().clear_buffer(self.arena, block.place, block.size)

    # ---- what is read

    def read(self, parts: Sequence[tuple[Any, int, int]]) -> list[memoryview]:
        """Bytes of buffers, after all that is encoded: buffer, from where on (a multiple of 4), how many (as well)."""
        places: list[int] = []
        end = 0
        for _, _, nbytes in parts:
            places.append(end)
            end += -(-nbytes // 16) * 16
        usage = self.wgpu.BufferUsage
        if self._staging is None or self._staging.size < end:
            self._staging = self.buffer(max(end, 4096), usage.MAP_READ | usage.COPY_DST)
        encoder = self.encoder()
        for (buffer, offset, nbytes), place in zip(parts, places, strict=True):
            encoder.copy_buffer_to_buffer(buffer, offset, self._staging, place, nbytes)
        self.submit()
        self._staging.map_sync(self.wgpu.MapMode.READ, 0, end)
        try:
            whole = memoryview(bytes(self._staging.read_mapped(0, end)))
        finally:
            self._staging.unmap()
        self._unread = 0
        return [whole[place : place + nbytes] for (_, _, nbytes), place in zip(parts, places, strict=True)]

    def download(self, blocks: Sequence[ResidentMemory]) -> None:
        """Bring the host what the device holds of these blocks. Raises what launches that nobody waited for have to
        report.
        """
        parts = [(self.arena, block.place or 0, block.size) for block in blocks]
        for block, found in zip(blocks, self.fetch(parts), strict=True):
            ctypes.memmove(block.begin, bytes(found), block.nbytes)
            block.newest = Newest.BOTH
        self.report()

    def fetch(self, parts: Sequence[tuple[Any, int, int]]) -> list[memoryview]:
        """The same as `read`, together with the faults of launches that nobody waited for; `report` tells them."""
        late = list(self._late)
        self._late.clear()
        heads = [(program.block, 0, _FAULT_BYTES) for program in late]
        if not parts and not heads:
            self.submit()
            return []
        found = self.read([*parts, *heads])
        for program, head in zip(late, found[len(parts) :], strict=True):
            if head.cast("I")[0]:
                self.forget_faults(program)
                self._faults.append((program, bytes(head)))
        return found[: len(parts)]

    def forget_faults(self, program: Program) -> None:
        """Have a program run again after a fault."""
        self.device.queue.write_buffer(program.block, 0, bytes(_FAULT_BYTES))

    def report(self) -> None:
        """Raise the first fault of launches that nobody waited for."""
        if self._faults:
            (program, head), self._faults = self._faults[0], []
            if program.check is not None:
                program.check(head)

    def wait(self) -> None:
        """Wait until all launches have ended. Raises what they have to report."""
        with self.lock:
            if self._late or self._encoder is not None or self._unread:
                self.fetch([] if self._late else [(self.arena, 0, 4)])
            self.report()

    def groups(self, dispatch: Dispatch) -> int:
        """How many groups of invocations a task runs in."""
        if not dispatch.parallel:
            return 1
        # Many, where the number of iterations is known: some drivers end what runs for long.
        most = 4096 if dispatch.turns is not None or not self.info.software else 256
        if dispatch.sums:  # fewer invocations wait for each other
            most = min(most, _MOST_SUMMING)
        if dispatch.saves:  # each invocation has as much scratch memory as is left for it
            most = 4 if self.info.software else 128
        return most if dispatch.turns is None else min(max(-(-dispatch.turns // 64), 1), most)


def _rounded(nbytes: int) -> int:
    return max(-(-nbytes // _ALIGNMENT), 1) * _ALIGNMENT


def wait_for_all() -> None:
    """Wait until all launches on all devices have ended. Raises what they have to report."""
    for device in list(_devices.values()):
        if not device.lost:
            device.wait()
