"""GPUs through the `wgpu` library (extra `tinote-lang[gpu]`): available devices, memory, and launches of compute
shaders.

    device = open_device(software=False)      # raises `NoDevice` with the reason
    memory = ResidentMemory(device, nbytes)   # bytes there, with a mirror here
    device.launch(program, params, counts)    # all tasks, after what was launched before
    device.read([(program.block, 0, 64)])     # waits for them

The library is asked only for what it can do: sizes and limits are looked at before, because what it cannot do it may
answer by ending the process. A software adapter, which is slower than the CPU itself, is taken only where it is asked
for.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from tinote.errors import KernelMemoryError
from tinote.runtime.arena import ALIGNMENT, ArenaPlaces, DeviceFull
from tinote.runtime.layout import PAYLOAD_WORDS, WORKGROUP
from tinote.runtime.memory import readable_size
from tinote.runtime.resident import Newest, ResidentMemory
from tinote.runtime.slices import SURPRISE_SECONDS, Dispatch, Pace
from tinote.runtime.task_runs import Timestamps, run_in_slices, run_measured

SOFTWARE_VARIABLE = "TINOTE_SOFTWARE_GPU"

#: Bytes of scratch memory, for the stacks of all invocations of a task.
_SCRATCH_BYTES = 64 << 20
_FIRST_ARENA = 1 << 20
#: Bytes for the parameters of the launches that are submitted together.
_RING_BYTES = 1 << 18
#: Bytes of the host's that go along with the launches that are submitted together; and of more than that at once.
_UPLOAD_BYTES, _MOST_UPLOADED = 1 << 18, 1 << 26
#: Launches that are submitted together.
_BATCH = 64
#: Groups of a task whose invocations add to the same numbers: each group makes one number of theirs. A CPU takes longer
#: for barriers than for iterations.
_MOST_SUMMING, _MOST_SUMMING_IN_SOFTWARE = 1024, 32
#: Submissions that nobody has waited for.
_MOST_UNREAD = 16
#: What a block begins with that is reported when a kernel has failed.
_FAULT_BYTES = 4 * (2 + 2 * PAYLOAD_WORDS)
_SUBSTANTIAL = ("Vulkan", "Metal", "DX12")
_NEEDED = ("shader-f64", "shader-int64")
_TIMESTAMPS, _FLOAT_ATOMICS = "timestamp-query", "shader-float32-atomic"


class NoDevice(Exception):
    """There is no GPU to run kernels on. The message says why, and what to do."""


class DeviceLostError(KernelMemoryError):
    """The device does not answer any more: its driver was reset, or it was taken out. The host's bytes are all there,
    what launches have written since they were last read is not. The next launch looks for a device again.
    """


class AdapterInfo(NamedTuple):
    """An adapter: `software` where a CPU stands in for a GPU."""

    name: str
    backend: str
    software: bool
    f64: bool
    binding_bytes: int


#: Some bytes of a buffer: from where on, a multiple of 4, and how many, as well.
_Part = tuple[Any, int, int]


class Reading(NamedTuple):
    """Bytes that are on their way to the host: the buffer that they come in and its promise; how many there are, and
    where those that were asked for; the programs that run before; those of which the faults come along; how often had
    been submitted then.
    """

    staging: Any
    mapped: Any
    size: int
    pieces: list[tuple[int, int]]
    encoded: set[GpuProgram]
    late: Sequence[GpuProgram]
    submissions: int


def _library() -> Any:
    try:
        wgpu = importlib.import_module("wgpu")
        extras = importlib.import_module("wgpu.backends.wgpu_native.extras")
    except (ImportError, OSError) as error:
        raise NoDevice(f"the library wgpu cannot be imported, {error}; install it: pip install wgpu") from None
    # OpenGL has neither f64 nor the limits. Once there is an instance, it stays.
    with contextlib.suppress(RuntimeError):
        extras.set_instance_extras(backends=list(_SUBSTANTIAL))
    return wgpu


@functools.cache
def adapters() -> list[AdapterInfo]:
    """The adapters that could run kernels. Raises `NoDevice` without the library."""
    return [_described(adapter) for adapter in _substantial(_library())]


@contextlib.contextmanager
def _display_folder() -> Iterator[None]:
    """A block in which drivers find a folder for sockets of a display where there is none, as in containers: each that
    looks for a display there complains on the standard error.
    """
    name = "XDG_RUNTIME_DIR"
    if name in os.environ:
        yield
        return
    os.environ[name] = tempfile.gettempdir()
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _substantial(wgpu: Any) -> list[Any]:
    try:
        with _display_folder():
            found = wgpu.gpu.enumerate_adapters_sync()
    except Exception as error:
        raise NoDevice(f"the system's drivers do not respond: {error}") from None
    return [one for one in found if one.info["backend_type"] in ("Vulkan", "Metal", "D3D12", "DX12")]


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
        found = _substantial(wgpu)
        real = [a for a in found if a.info["adapter_type"] != "CPU"]
        real.sort(key=lambda a: a.info["adapter_type"] != "DiscreteGPU")
        chosen = (real or found) if software else real
        if not chosen:
            reason = "the only adapter is a software driver on the CPU" if found else "no adapter was found"
            option = f"; {SOFTWARE_VARIABLE}=1, or software_gpu=True, accepts it" if found else ""
            raise NoDevice(reason + option)
        made = _devices[software] = Device(wgpu, chosen[0])
        return made


def _may_be_lost(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a device in which the library raises where the device is lost."""

    @functools.wraps(method)
    def asking(self: Device, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except Exception as error:
            if type(error).__module__.startswith("wgpu"):
                raise self.fail(error) from None
            raise

    return asking


class GpuProgram:
    """A compiled module: a pipeline for each task. `head_bytes`: what the host reads of its block. `holds`: the block
    has more than faults in it, which begins as zeros. `left`: the word that says that iterations are left, and how many
    there are in all.
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
        left: int,
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
        #: what is dispatched for all iterations: pipelines, how many groups
        self.whole = [(pipeline, device.groups(d)) for pipeline, d in zip(self.pipelines, dispatches, strict=True)]
        self.param_bytes = 4 * param_words
        self.head_bytes = 4 * head_words
        self.block = device.buffer(4 * block_words, usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
        self.holds = holds
        self.left_byte = 4 * left
        self.paces = [
            Pace(dispatch.work, not dispatch.parallel) if dispatch.divisible else None for dispatch in dispatches
        ]
        self._short: Sequence[int | None] | None = None
        #: what a fault that nobody waited for is reported to
        self.check: Callable[[bytes], None] | None = None
        self._group: Any = None
        self._made_for = -1

    def is_short(self, iterations: Sequence[int | None]) -> bool:
        """Whether all tasks can be dispatched as a whole, with these numbers of iterations."""
        if self._short is not None and iterations == self._short:
            return True
        short = all(pace is None or pace.is_short(n) for pace, n in zip(self.paces, iterations, strict=True))
        self._short = iterations if short else None
        return short

    def forget(self) -> None:
        """A launch took longer than was known."""
        self._short = None
        for pace in self.paces:
            if pace is not None:
                pace.forget()

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

    Launches, copies, clears and the host's bytes for them are encoded one after the other and submitted together: when
    somebody reads, and now and then. All that is encoded happens in that order.
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
                required_features=[
                    name for name in (*_NEEDED, _TIMESTAMPS, _FLOAT_ATOMICS) if name in adapter.features
                ],
                required_limits={
                    "max-storage-buffer-binding-size": int(limits["max-storage-buffer-binding-size"]),
                    "max-buffer-size": int(limits["max-buffer-size"]),
                },
            )
        except Exception as error:
            raise NoDevice(f"'{self.info.name}' gives no device: {error}") from None
        #: whether `launch_measured` asks the device's clock; otherwise it waits
        self.has_timestamps = _TIMESTAMPS in adapter.features
        self.timestamps: Timestamps | None = None
        #: whether it adds floats to memory that invocations share, and need not compare and exchange
        self.has_float_atomics = _FLOAT_ATOMICS in adapter.features
        usage = wgpu.BufferUsage
        self.storage = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
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
        self.arena = self.buffer(min(_FIRST_ARENA, self.largest), self.storage)
        #: the parameters of the launches that are encoded
        self.ring = self.buffer(_RING_BYTES, usage.UNIFORM | usage.COPY_DST)
        self.places = ArenaPlaces(self)
        self._staging: Any = None
        self._between: Any = None
        self._encoder: Any = None
        self._pass: Any = None
        #: the pass's, if it is known
        self._pipeline: Any = None
        self._params = bytearray()
        #: the host's bytes for what is encoded, and where they are once it is submitted; larger ones, each by itself
        self._uploads = bytearray()
        self._uploaded = self.buffer(_UPLOAD_BYTES, usage.COPY_SRC | usage.COPY_DST)
        self._large_uploads: list[Any] = []
        #: how many contexts want to submit what is encoded in them at their end
        self._held = 0
        self._unread = 0
        self._late: dict[GpuProgram, None] = {}
        self._encoded: set[GpuProgram] = set()
        self._faults: list[tuple[GpuProgram, bytes]] = []
        self.submissions = 0
        #: launches, copies and clears so far
        self.commands = 0
        #: what others have compiled for it, by whom it is for
        self.programs: dict[Any, GpuProgram] = {}
        self._waiter = ThreadPoolExecutor(1, "tinote-gpu")

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
            if "lost" in str(error):
                raise
            left = f"'{self.info.name}' has no {readable_size(nbytes)} of memory left ({_reason(error)})"
            raise DeviceFull(left) from None

    def fail(self, error: Exception) -> DeviceLostError:
        """The device is lost: blocks are what the host has of them. Gives what to raise."""
        self.lost = True
        self._encoder = self._pass = None
        self._params, self._uploads = bytearray(), bytearray()
        self._large_uploads.clear()
        self._late.clear()
        self._faults.clear()
        for block in list(self.places.placed):
            block.place, block.newest = None, Newest.HOST
        return DeviceLostError(
            f"the GPU '{self.info.name}' is lost ({_reason(error)}): fields hold what was last read from them",
            hint="the next launch looks for a GPU again; restore the fields that launches had changed",
        )

    # ---- what is encoded

    def encoder(self) -> Any:
        """What records copies; no pass is open."""
        if self._pass is not None:
            self._pass.end()
            self._pass = None
        if self._encoder is None:
            self._encoder = self.device.create_command_encoder()
        return self._encoder

    @_may_be_lost
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
        if self._uploads:
            queue.write_buffer(self._uploaded, 0, self._uploads)
            self._uploads = bytearray()
        queue.submit([encoder.finish()])
        self._large_uploads.clear()
        self._unread += 1
        self.submissions += 1

    @_may_be_lost
    def upload(self, place: int, address: int, nbytes: int) -> None:
        """Bytes of the host's, as they are now, after all that is encoded."""
        size = -(-nbytes // 4) * 4
        data = (ctypes.c_uint8 * size).from_address(address)
        queue = self.device.queue
        if self._encoder is not None and sum(one.size for one in self._large_uploads) + size > _MOST_UPLOADED:
            self.submit()
        if self._encoder is None:
            queue.write_buffer(self.arena, place, data)
            return
        start, source = len(self._uploads), self._uploaded
        if start + size <= _UPLOAD_BYTES:
            self._uploads += data
        else:  # what is written to a buffer of its own now is there before what is encoded begins
            start, source = 0, self.buffer(size, self.wgpu.BufferUsage.COPY_SRC | self.wgpu.BufferUsage.COPY_DST)
            queue.write_buffer(source, 0, data)
            self._large_uploads.append(source)
        self.encoder().copy_buffer_to_buffer(source, start, self.arena, place, size)

    @_may_be_lost
    def launch(
        self, program: GpuProgram, params: bytes | bytearray | memoryview, iterations: Sequence[int | None]
    ) -> None:
        """Encode all tasks of a program; `iterations`: how many each has, where that is known. Those that may take long
        have run when this returns.
        """
        if program.holds:
            self.encoder().clear_buffer(program.block, 0, program.head_bytes)
        if program.is_short(iterations):
            run = self._begin(program, params)
            for pipeline, groups in program.whole:
                if pipeline is not self._pipeline:
                    run.set_pipeline(pipeline)
                    self._pipeline = pipeline
                run.dispatch_workgroups(groups)
            return
        for number, (pace, known) in enumerate(zip(program.paces, iterations, strict=True)):
            if pace is None or pace.is_short(known):
                self.dispatch(program, number, params, program.whole[number][1])
            elif not run_in_slices(self, program, number, pace, known, bytearray(params))[0]:
                return

    @_may_be_lost
    def launch_measured(
        self, program: GpuProgram, params: bytes | bytearray | memoryview, iterations: Sequence[int | None]
    ) -> list[float]:
        """The same, each task separately. Gives what they took, in seconds, up to that which failed."""
        return run_measured(self, program, params, iterations)

    @_may_be_lost
    def dispatch(
        self,
        program: GpuProgram,
        number: int,
        params: bytes | bytearray | memoryview,
        groups: int,
        writes: Any = None,
    ) -> None:
        """Encode one task. `writes`: the timestamps of its pass, if it is to have one of its own."""
        run = self._begin(program, params, writes)
        self._pipeline = program.pipelines[number]
        run.set_pipeline(self._pipeline)
        run.dispatch_workgroups(groups)

    def _begin(self, program: GpuProgram, params: bytes | bytearray | memoryview, writes: Any = None) -> Any:
        """A pass in which the tasks of a program are to be dispatched with these parameters."""
        self.commands += 1
        start = -(-len(self._params) // ALIGNMENT) * ALIGNMENT
        if start + len(params) > _RING_BYTES:
            self.submit()
            start = 0
        if self._pass is None:
            self._pass = self.encoder().begin_compute_pass(timestamp_writes=writes)
            self._pipeline = None
        self._params += bytes(start - len(self._params)) + params
        self._pass.set_bind_group(0, program.group(), [start])
        self._encoded.add(program)
        return self._pass

    def expect(self, program: GpuProgram, check: Callable[[bytes], None]) -> None:
        """Look for the faults of a launch at the next read."""
        program.check = check
        self._late[program] = None

    def later(self, program: GpuProgram, check: Callable[[bytes], None]) -> None:
        """Expect an asynchronous launch: its faults are looked for at the next read."""
        self.expect(program, check)
        if len(self._params) >= _BATCH * ALIGNMENT and not self._held:
            self._submit_some()

    def _submit_some(self) -> None:
        """Have the device begin, and wait if much is on its way."""
        self.submit()
        if self._unread >= _MOST_UNREAD:
            self.wait()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Launches in this context are submitted at its end, unless something is read before."""
        with self.lock:
            self._held += 1
        try:
            yield
        finally:
            with self.lock:
                self._held -= 1
        if not self._held and not self.lost:
            with self.lock:
                self._submit_some()

    @_may_be_lost
    def copy(self, source: ResidentMemory, target: ResidentMemory) -> None:
        """Copy a block on the device."""
        self.copy_bytes(source.place or 0, target.place or 0, source.size)

    @_may_be_lost
    def copy_bytes(self, source: int, target: int, size: int) -> None:
        """Copy bytes of the arena."""
        self.commands += 1
        if self._between is None or self._between.size < size:
            self._between = self.buffer(size, self.wgpu.BufferUsage.COPY_SRC | self.wgpu.BufferUsage.COPY_DST)
        encoder = self.encoder()
        # A buffer is not copied to itself.
        encoder.copy_buffer_to_buffer(self.arena, source, self._between, 0, size)
        encoder.copy_buffer_to_buffer(self._between, 0, self.arena, target, size)

    @_may_be_lost
    def clear(self, block: ResidentMemory) -> None:
        """Set a block to zero on the device."""
        self.commands += 1
        self.encoder().clear_buffer(self.arena, block.place, block.size)

    # ---- what is read

    def read(self, parts: Sequence[_Part]) -> list[memoryview]:
        """Bytes of buffers, after all that is encoded."""
        return self.wait_for(self._begin_reading(parts))

    @_may_be_lost
    def _begin_reading(self, parts: Sequence[_Part], late: Sequence[GpuProgram] = ()) -> Reading:
        places: list[int] = []
        end = 0
        for _, _, nbytes in parts:
            places.append(end)
            end += -(-nbytes // 16) * 16
        usage = self.wgpu.BufferUsage
        staging, self._staging = self._staging, None  # an interrupt leaves it to the device
        if staging is None or staging.size < end:
            staging = self.buffer(max(end, 4096), usage.MAP_READ | usage.COPY_DST)
        encoder = self.encoder()
        for (buffer, offset, nbytes), place in zip(parts, places, strict=True):
            encoder.copy_buffer_to_buffer(buffer, offset, staging, place, nbytes)
        self.submit()
        encoded, self._encoded = self._encoded, set()
        mapped = staging.map_async(self.wgpu.MapMode.READ, 0, end)
        pieces = [(place, nbytes) for place, (_, _, nbytes) in zip(places, parts, strict=True)]
        return Reading(staging, mapped, end, pieces, encoded, late, self.submissions)

    @_may_be_lost
    def wait_for(self, reading: Reading) -> list[memoryview]:
        """The bytes, as soon as they are here; what was encoded after them may still run."""
        begun = time.perf_counter()
        # By another thread: an interrupt is not seen while the library waits.
        self._waiter.submit(reading.mapped.sync_wait).result()
        if time.perf_counter() - begun > SURPRISE_SECONDS:
            for program in reading.encoded:
                program.forget()
        staging = reading.staging
        try:
            whole = memoryview(bytes(staging.read_mapped(0, reading.size)))
        finally:
            staging.unmap()
        self._staging = staging
        self._unread = self.submissions - reading.submissions
        return [whole[place : place + nbytes] for place, nbytes in reading.pieces]

    def download(self, blocks: Sequence[ResidentMemory]) -> None:
        """Bring the host what the device holds of these blocks. Raises what launches that nobody waited for have to
        report.
        """
        parts = [(self.arena, block.place or 0, block.size) for block in blocks]
        for block, found in zip(blocks, self.fetch(parts), strict=True):
            ctypes.memmove(block.begin, bytes(found), block.nbytes)
            block.newest = Newest.BOTH
        self.report()

    def fetch(self, parts: Sequence[_Part]) -> list[memoryview]:
        """The same as `read`, together with the faults of asynchronous launches; `report` tells them."""
        if not parts and not self._late:
            self.submit()
            return []
        return self.fetched(self.begin_fetch(parts))

    def begin_fetch(self, parts: Sequence[_Part]) -> Reading:
        """Begin to `fetch`: what is encoded after this may run while the bytes come."""
        late = list(self._late)
        self._late.clear()
        return self._begin_reading([*parts, *[(program.block, 0, _FAULT_BYTES) for program in late]], late)

    def fetched(self, reading: Reading) -> list[memoryview]:
        """Wait for what `begin_fetch` has begun."""
        found = self.wait_for(reading)
        count = len(found) - len(reading.late)
        for program, head in zip(reading.late, found[count:], strict=True):
            if head.cast("I")[0]:
                self.forget_faults(program)
                self._faults.append((program, bytes(head)))
        return found[:count]

    def forget_faults(self, program: GpuProgram) -> None:
        """Have a program run again after a fault."""
        self.device.queue.write_buffer(program.block, 0, bytes(_FAULT_BYTES))

    def report(self) -> None:
        """Raise the first fault of asynchronous launches."""
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

    def groups(self, dispatch: Dispatch, iterations: int | None = None) -> int:
        """How many groups of invocations a task runs in, or a number of its iterations."""
        iterations = dispatch.iterations if iterations is None else iterations
        if not dispatch.parallel:
            return 1
        # Many, where the number of iterations is known: some drivers end what runs for long.
        most = 4096 if iterations is not None or not self.info.software else 256
        if dispatch.sums:
            most = _MOST_SUMMING_IN_SOFTWARE if self.info.software else _MOST_SUMMING
        if dispatch.saves:  # each invocation has as much scratch memory as is left for it
            most = 4 if self.info.software else 128
            # As much for stacks as for the arrays that are known of.
            most = max(1, min(most, self.scratch.size // (4 * WORKGROUP * (2 * dispatch.scratch + 1))))
        return most if iterations is None else min(max(-(-iterations // WORKGROUP), 1), most)


def _reason(error: Exception) -> str:
    """The last line of what the library says."""
    return str(error).strip().rpartition("\n")[2].strip() or type(error).__name__


def commands() -> int:
    """How many launches, copies and clears all devices have had so far."""
    return sum([device.commands for device in list(_devices.values())])


def wait_for_all() -> None:
    """Wait until all launches on all devices have ended. Raises what they have to report."""
    for device in list(_devices.values()):
        if not device.lost:
            device.wait()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Launches on devices in this context are one submission to each, unless something is read."""
    with contextlib.ExitStack() as stack:
        for device in list(_devices.values()):
            stack.enter_context(device.together())
        yield
