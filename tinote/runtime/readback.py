"""Snapshots of blocks of a device, to be read while the device continues.

    with Looks() as looks:                 # once, to know what is looked at
        draw()
    before = Readback.of(looks.blocks)     # copied on the device, behind what was launched so far
    step()                                 # which the device runs meanwhile
    with before:
        draw()                             # looks at what the blocks held then
    before.is_whole                        # nothing else was looked at

A block tells of those who copy its bytes at once (`ResidentMemory.look`), as `x.to_numpy()` and `x[i]` do, and of those
who get at the bytes in another way, of whom nobody knows when they look at them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Sequence
from contextvars import Token
from typing import Any

from tinote.runtime import gpu
from tinote.runtime.gpu import Device, Reading
from tinote.runtime.resident import Newest, ResidentMemory, blocks, looking

__all__ = ["Looks", "Readback"]


class Looks:
    """Notes, in its context, which blocks are looked at. `is_whole`: that is all that was done on devices; nothing was
    launched, and nobody got, or has, a view of their bytes.
    """

    def __init__(self) -> None:
        self.blocks: weakref.WeakSet[ResidentMemory] = weakref.WeakSet()
        self.is_whole = True
        self._commands = 0
        self._token: Token[Any] | None = None

    def __enter__(self) -> Looks:
        self.is_whole = not _is_viewed()
        self._commands = gpu.commands()
        self._token = looking.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._token is not None
        looking.reset(self._token)
        self.is_whole = self.is_whole and gpu.commands() == self._commands

    def look(self, block: ResidentMemory) -> Any:
        """The bytes of a block are about to be copied. Gives those to copy, or None for what it holds."""
        self.blocks.add(block)
        return None

    def get_at(self) -> None:
        """The bytes of a block are about to be kept or changed."""
        self.is_whole = False


class Readback(Looks):
    """In its context, these blocks of a device look as they are now. `is_whole`: no others were looked at, either."""

    def __init__(self, device: Device, blocks: Sequence[ResidentMemory]) -> None:
        super().__init__()
        self._device = device
        self._held: dict[ResidentMemory, Any] = {}
        self._coming: list[ResidentMemory] = []
        self._reading: Reading | None = None
        with device.lock:
            for block in blocks:
                if block.newest is Newest.DEVICE:
                    self._coming.append(block)
                else:
                    self._held[block] = _bytes(ctypes.string_at(block.begin, block.nbytes))
            if self._coming:
                self._reading = device.begin_fetch([(device.arena, one.place or 0, one.size) for one in self._coming])

    @classmethod
    def of(cls, blocks: Iterable[ResidentMemory]) -> Readback | None:
        """Begin to read these blocks. None where they are not of one device, or somebody has a view of any."""
        found = list(blocks)
        devices = {block.device for block in found}
        if len(devices) != 1 or found[0].device.lost or _is_viewed():
            return None
        return cls(found[0].device, found)

    def __enter__(self) -> Looks:
        """Wait for the bytes. Raises what launches before have to report."""
        if self._reading is not None:
            with self._device.lock:
                reading, self._reading = self._reading, None
                for block, found in zip(self._coming, self._device.fetched(reading), strict=True):
                    self._held[block] = _bytes(found[: block.nbytes])
                self._device.report()
        return super().__enter__()

    def look(self, block: ResidentMemory) -> Any:
        super().look(block)
        found = self._held.get(block)
        if found is None:
            self.is_whole = False
        return found


def _bytes(found: bytes | memoryview) -> Any:
    return (ctypes.c_ubyte * len(found)).from_buffer_copy(found)


def _is_viewed() -> bool:
    """Whether there is a view of any block; what fields keep for the next time is taken back."""
    return sum([block.withdraw() for block in blocks()]) > 0
