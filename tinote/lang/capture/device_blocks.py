"""The blocks of a plan on a GPU: their bytes there, and those of the host that are copied there and back."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.ir.types import scalar_named
from tinote.lang.data.matrix import numpy_type
from tinote.program import operations as ops
from tinote.runtime.gpu import Device
from tinote.runtime.memory import Memory
from tinote.runtime.resident import Newest, ResidentMemory, resident_at


class PointerWord(NamedTuple):
    """A word with a place in a block, counted in `unit` bytes."""

    word: int
    block: int
    offset: int
    unit: int


class DeviceBlocks:
    """`residents`: by block, its bytes on the device. `pointers`: the words among the parameters of commands that say
    where blocks are.
    """

    def __init__(self, device: Device, blocks: Sequence[ops.Block], given: Collection[int]) -> None:
        self._device = device
        self._blocks = blocks
        self._given = given
        self.residents: list[ResidentMemory] = []
        self.pointers: list[PointerWord] = []
        #: for blocks of the host, or given by others, the place there
        self._hosts: dict[int, int] = {}
        #: the bytes on the device of blocks that are given, as long as they are given from the host; and from which
        #: byte on they are in a block that is there
        self._own: dict[int, ResidentMemory] = {}
        self._offsets: dict[int, int] = {}
        self._at: list[tuple[ResidentMemory, int]] = []
        self._moved = True

    def add(self, number: int, memory: Memory | None) -> Memory:
        """The next block gets its bytes on the device; returns its memory."""
        block = self._blocks[number]
        if isinstance(memory, ResidentMemory):
            self.residents.append(memory)
            return memory
        made = ResidentMemory(self._device, max(memory.nbytes if memory is not None else block.nbytes, 8))
        self.residents.append(made)
        if memory is not None:
            self._hosts[number] = memory.address
            return memory
        if block.kind == "input" or number in self._given:
            self._own[number] = made
            self._hosts[number] = 0
        elif block.data:
            ctypes.memmove(made.begin, block.data, len(block.data))
        return made

    def point(self, block: int, address: int) -> None:
        """A block that is given is there from now on."""
        known, self._moved = resident_at(address), True
        if known is not None:
            self.residents[block], self._offsets[block] = known, address - known.begin
            self._hosts.pop(block, None)
        elif block in self._own:
            self.residents[block], self._offsets[block] = self._own[block], 0
            self._hosts[block] = address

    def follow(self, device: Device) -> None:
        """Continue on another device."""
        self._device, self._moved = device, True

    def place(self, number: int) -> int:
        """The place of a block on the device."""
        return (self.residents[number].place or 0) + self._offsets.get(number, 0)

    def mirrored(self, view: ops.View) -> np.ndarray[Any, Any]:
        """The host's present values of a view."""
        block, begin = self.residents[view.block], self._offsets.get(view.block, 0)
        mirror: Any = (ctypes.c_ubyte * block.nbytes).from_address(block.begin)
        return np.ndarray(view.shape, numpy_type(scalar_named(view.type)), mirror, begin + view.offset, view.strides)

    def bring(self, words: memoryview) -> list[int]:
        """Copy host writes to the device, and locate blocks there, in these parameters of commands. Returns the blocks
        with views held elsewhere.
        """
        residents, device = self.residents, self._device
        if not (self._hosts or self._moved) and all(block.is_at(place) for block, place in self._at):
            return []
        for number, address in self._hosts.items():
            block = residents[number]
            if address and number not in self._given:
                ctypes.memmove(block.begin, address, self._blocks[number].nbytes)
                block.newest = Newest.HOST
        viewed = [number for number, block in enumerate(residents) if block.withdraw()]
        blocks = dict.fromkeys(residents)
        for block in blocks:
            block.follow(device)
        device.places.require(blocks)
        for block in blocks:
            if block.newest is Newest.HOST:
                device.upload(block.place or 0, block.begin, block.nbytes)
                block.newest = Newest.BOTH
        at = [(block, block.place or 0) for block in residents]
        if at != self._at or self._moved:
            for word, number, offset, unit in self.pointers:
                words[word] = (self.place(number) + offset) // unit
            self._at, self._moved = at, False
        return viewed

    def take_back(self, changed: Collection[int], viewed: Sequence[int], *, waits: bool) -> None:
        """Copy the host's blocks among those that have changed back, and raise faults of the program. `waits`: wait
        for the device also where there are none.
        """
        wanted = [number for number in changed if number in self._hosts or number in viewed]
        if wanted or waits:
            device = self._device
            blocks = [self.residents[number] for number in wanted]
            found = device.fetch([(device.arena, block.place or 0, block.size) for block in blocks])
            for number, block, data in zip(wanted, blocks, found, strict=True):
                if number in self._hosts:
                    ctypes.memmove(self._hosts[number], bytes(data), self._blocks[number].nbytes)
                else:
                    ctypes.memmove(block.begin, bytes(data), block.nbytes)
            device.report()
        for number in viewed:  # holders of a view may write at any time
            self.residents[number].newest = Newest.HOST
