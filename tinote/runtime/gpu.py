"""GPUs, by way of the `wgpu` library (extra `tinote[gpu]`): which there are, memory on one of them, and launches of
compute shaders.

    device = open_device(software=False)      # raises `NoDevice` with the reason
    device.run(program, params, ranges)       # copies in, all tasks in one submission, copies out

The library is told only what it can do: sizes and limits are looked at before, because what it cannot do it may answer
by ending the process. A software adapter, which is slower than the CPU itself, is taken only where it is asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinote.runtime.memory import readable_size

SOFTWARE_VARIABLE = "TINOTE_SOFTWARE_GPU"

#: Bytes of scratch memory, for the stacks of all invocations of a task.
_SCRATCH_BYTES = 64 << 20
#: Places in the arena are multiples of this.
_ALIGNMENT = 256
_FIRST_ARENA = 1 << 20
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


class Range(NamedTuple):
    """Bytes of the host's memory, from a multiple of 16 on, and where they are on the device."""

    address: int
    nbytes: int
    place: int


class Dispatch(NamedTuple):
    """A task: how many iterations, if that is known, whether they run side by side, and whether stacks are kept."""

    name: str
    parallel: bool
    turns: int | None
    saves: bool


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
    """A compiled module: a pipeline for each task."""

    def __init__(self, device: Device, text: str, dispatches: Sequence[Dispatch], param_words: int, block_words: int):
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
        self.params = device.buffer(4 * param_words, usage.UNIFORM | usage.COPY_DST)
        self.block_bytes = 4 * block_words
        self.block = device.buffer(self.block_bytes, usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
        self._group: Any = None
        self._made_for = -1

    def group(self) -> Any:
        """The four bindings, with the arena as it is now."""
        device = self.device
        if self._made_for != device.generation:
            bound = (self.params, self.block, device.scratch, device.arena)
            entries = [
                {"binding": n, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
                for n, buffer in enumerate(bound)
            ]
            self._group = device.device.create_bind_group(layout=device.bindings, entries=entries)
            self._made_for = device.generation
        return self._group


class Device:
    """One GPU and its memory: an arena of words, of which a launch takes what it needs."""

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
                {"binding": n, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for n, kind in enumerate(kinds)
            ]
        )
        self.layout = self.device.create_pipeline_layout(bind_group_layouts=[self.bindings])
        self.scratch = self.buffer(min(_SCRATCH_BYTES, self.largest), usage.STORAGE)
        self.arena = self.buffer(_FIRST_ARENA, self._storage)

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

    def place(self, spans: Sequence[tuple[int, int]]) -> list[Range]:
        """Places in the arena for bytes of the host, given as addresses and sizes; those that share memory share it
        there. Raises `DeviceFull`.
        """
        found: list[Range] = []
        end = 0
        for address, nbytes in sorted(spans):
            start = address & ~15
            stop = address + nbytes
            last = found[-1] if found else None
            if last is not None and start < last.address + last.nbytes:
                found[-1] = last._replace(nbytes=max(last.nbytes, stop - last.address))
                end = found[-1].place + found[-1].nbytes
                continue
            place = -(-end // _ALIGNMENT) * _ALIGNMENT
            found.append(Range(start, stop - start, place))
            end = place + stop - start
        if end > self.arena.size:
            larger = min(max(end, 2 * self.arena.size), self.largest)
            made = self.buffer(max(end, larger), self._storage)
            self.arena.destroy()
            self.arena = made
            self.generation += 1
        return found

    def run(
        self,
        program: Program,
        params: bytes,
        ranges: Sequence[Range],
        written: Sequence[tuple[int, int, int]],
        head_bytes: int,
    ) -> bytes:
        """Copy `ranges` to the device, run all tasks, and copy back what is `written`: place, address, size. Gives the
        first bytes of the block.
        """
        queue = self.device.queue
        for span in ranges:
            if span.nbytes:
                size = -(-span.nbytes // 4) * 4
                queue.write_buffer(self.arena, span.place, (ctypes.c_uint8 * size).from_address(span.address))
        queue.write_buffer(program.params, 0, params)
        encoder = self.device.create_command_encoder()
        encoder.clear_buffer(program.block, 0, min(-(-head_bytes // 4) * 4, program.block.size))
        run = encoder.begin_compute_pass()
        run.set_bind_group(0, program.group())
        for pipeline, dispatch in zip(program.pipelines, program.dispatches, strict=True):
            run.set_pipeline(pipeline)
            run.dispatch_workgroups(self.groups(dispatch))
        run.end()
        queue.submit([encoder.finish()])
        head = bytes(queue.read_buffer(program.block, 0, -(-head_bytes // 4) * 4))
        for place, address, nbytes in written:
            if nbytes:
                first = place & ~3
                data = queue.read_buffer(self.arena, first, -(-(place + nbytes - first) // 4) * 4)
                ctypes.memmove(address, bytes(data)[place - first :], nbytes)
        return head

    def read_block(self, program: Program, first: int, nbytes: int) -> bytes:
        """Bytes of the block of a program, after a launch."""
        return bytes(self.device.queue.read_buffer(program.block, first, -(-nbytes // 4) * 4))

    def groups(self, dispatch: Dispatch) -> int:
        """How many groups of invocations a task runs in."""
        if not dispatch.parallel:
            return 1
        # Many, where the number of iterations is known: some drivers end what runs for long.
        most = 4096 if dispatch.turns is not None or not self.info.software else 256
        if dispatch.saves:  # each invocation has as much scratch memory as is left for it
            most = 4 if self.info.software else 128
        return most if dispatch.turns is None else min(max(-(-dispatch.turns // 64), 1), most)
