"""Synchronous runs of GPU tasks: those that are measured, and those that run slice by slice.

`device` is a `gpu.Device`, `program` a `gpu.GpuProgram`.
"""

from __future__ import annotations

import importlib
import struct
import time
from collections.abc import Sequence
from typing import Any

from tinote.runtime.slices import Pace


class Timestamps:
    """When a pass begins and ends by the device's own clock, which neither the host nor the driver's queue adds to."""

    def __init__(self, device: Any) -> None:
        usage = device.wgpu.BufferUsage
        self.queries = device.device.create_query_set(type="timestamp", count=2)
        self.found = device.buffer(16, usage.QUERY_RESOLVE | usage.COPY_SRC)
        native = importlib.import_module("wgpu.backends.wgpu_native")
        #: nanoseconds that a step of the clock takes
        self.period = float(native.lib.wgpuQueueGetTimestampPeriod(device.device.queue._internal))

    @property
    def writes(self) -> dict[str, Any]:
        """What a pass is begun with."""
        return {"query_set": self.queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1}

    def seconds(self, read: memoryview) -> float:
        """What the pass took, from the bytes of `found`."""
        begun, ended = read.cast("Q")
        return 1e-9 * self.period * max(ended - begun, 0)


def run_measured(
    device: Any, program: Any, params: bytes | bytearray | memoryview, iterations: Sequence[int | None]
) -> list[float]:
    """Launch a program, each task separately. Gives what they took, in seconds, up to that which failed."""
    if program.holds:
        device.encoder().clear_buffer(program.block, 0, program.head_bytes)
    device.read([(program.block, 0, 4)])  # what was there before
    if device.has_timestamps and device.timestamps is None:
        device.timestamps = Timestamps(device)
    found: list[float] = []
    for number, (pace, known) in enumerate(zip(program.paces, iterations, strict=True)):
        if pace is None or pace.is_short(known):
            words, seconds = _run(device, program, number, params, program.whole[number][1], device.timestamps)
            good = not words[0]
        else:
            good, seconds = run_in_slices(device, program, number, pace, known, bytearray(params), device.timestamps)
        found.append(seconds)
        if not good:
            break
    return found


def _run(
    device: Any,
    program: Any,
    number: int,
    params: bytes | bytearray | memoryview,
    groups: int,
    timestamps: Timestamps | None = None,
) -> tuple[memoryview, float]:
    """Run one task, or a slice of it. Gives the words that its block begins with, and the seconds that it took: by
    timestamps, or until it was waited for.
    """
    parts = [(program.block, 0, program.left_byte + 4)]
    if timestamps is None:
        device.dispatch(program, number, params, groups)
    else:
        device.encoder()
        device.dispatch(program, number, params, groups, timestamps.writes)
        device.encoder().resolve_query_set(timestamps.queries, 0, 2, timestamps.found, 0)
        parts.append((timestamps.found, 0, 16))
    begun = time.perf_counter()
    words, *stamps = device.read(parts)
    waited = time.perf_counter() - begun
    return words.cast("I"), waited if timestamps is None else timestamps.seconds(stamps[0])


def run_in_slices(
    device: Any,
    program: Any,
    number: int,
    pace: Pace,
    total: int | None,
    params: bytearray,
    timestamps: Timestamps | None = None,
) -> tuple[bool, float]:
    """Run a task slice by slice. Gives whether there was no fault, and what the slices took."""
    device.read([(program.block, 0, 4)])  # what was there before
    first, seconds = 0, 0.0
    while True:
        size = pace.size
        struct.pack_into("<II", params, len(params) - 16, first, size)
        groups = device.groups(program.dispatches[number], size)
        words, taken = _run(device, program, number, params, groups, timestamps)
        seconds += taken
        left = words[program.left_byte // 4]
        total = left or total
        ran = size if left or total is None else max(min(size, total - first), 1)
        pace.note(ran, taken)
        first += ran
        if not left or words[0]:
            pace.count = first
            return not words[0], seconds
        device.device.queue.write_buffer(program.block, program.left_byte, bytes(4))
