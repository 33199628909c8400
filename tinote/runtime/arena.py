"""Allocation of blocks in the memory of a GPU."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from tinote.runtime.memory import readable_size
from tinote.runtime.resident import Newest, ResidentMemory

#: Places in the arena are multiples of this.
ALIGNMENT = 256


class DeviceFull(Exception):
    """What a launch needs does not fit. The message has the sizes."""


class ArenaPlaces:
    """The places of blocks in the arena of `device`, a `gpu.Device`, and its free pieces."""

    def __init__(self, device: Any) -> None:
        self.device = device
        #: pieces of the arena that nobody has: where, how many bytes
        self.free: list[tuple[int, int]] = [(0, device.arena.size)]
        #: pieces that are not needed any more; whoever lets one go appends it
        self.freed: deque[tuple[int, int]] = deque()
        self.placed: weakref.WeakSet[ResidentMemory] = weakref.WeakSet()

    def require(self, blocks: Collection[ResidentMemory]) -> None:
        """Have a place for each of these blocks. Others may lose theirs. Raises `DeviceFull`."""
        missing = [block for block in blocks if block.place is None]
        for block in missing:
            block.place = self.take(block.size, blocks)
            self.placed.add(block)

    def borrow(self, sizes: Sequence[int], kept: Collection[ResidentMemory]) -> list[int]:
        """Places for the time of one launch, which `give` ends, besides those of blocks. Raises `DeviceFull`."""
        found: list[tuple[int, int]] = []
        try:
            for size in sizes:
                found.append((self.take(size, kept, found), size))
        except DeviceFull:
            self.freed.extend(found)
            raise
        return [place for place, _ in found]

    def take(self, nbytes: int, kept: Collection[ResidentMemory], taken: Sequence[tuple[int, int]] = ()) -> int:
        self.collect()
        size = _rounded(nbytes)
        found = self.first_fit(size)
        if found is None:
            found = self.grow(size)
        if found is None:
            self.make_room(kept)
            found = self.first_fit(size)
        if found is None:
            have = sum(_rounded(block.size) for block in kept) + sum(size for _, size in taken)
            raise DeviceFull(
                f"{readable_size(max(have, size))} were asked for, and '{self.device.info.name}' binds at most "
                f"{readable_size(self.device.largest)} at once"
            )
        return found

    def collect(self) -> None:
        """Join the pieces that were given back to those that are free."""
        if not self.freed:
            return
        pieces = list(self.free)
        while self.freed:
            place, size = self.freed.popleft()
            pieces.append((place, _rounded(size)))
        self.free = []
        for place, size in sorted(pieces):
            if self.free and sum(self.free[-1]) == place:
                self.free[-1] = (self.free[-1][0], self.free[-1][1] + size)
            else:
                self.free.append((place, size))

    def first_fit(self, size: int) -> int | None:
        for k, (place, room) in enumerate(self.free):
            if room >= size:
                self.free[k : k + 1] = [(place + size, room - size)] if room > size else []
                return place
        return None

    def grow(self, size: int) -> int | None:
        """A larger arena with what this one holds, if there may be one."""
        old = self.device.arena
        wanted = old.size + size
        if wanted > self.device.largest:
            return None
        try:
            made = self.device.buffer(min(max(wanted, 2 * old.size), self.device.largest), self.device.storage)
        except DeviceFull:
            return None
        self.device.encoder().copy_buffer_to_buffer(old, 0, made, 0, old.size)
        self.device.submit()
        self.device.arena = made
        self.device.generation += 1
        old.destroy()
        self.freed.append((old.size, made.size - old.size & ~(ALIGNMENT - 1)))
        self.collect()
        return self.first_fit(size)

    def make_room(self, kept: Collection[ResidentMemory]) -> None:
        """Take the places of all other blocks: what they hold goes to the host."""
        others = [block for block in self.placed if block not in kept and block.place is not None]
        newer = [block for block in others if block.newest is Newest.DEVICE]
        if newer:
            self.device.download(newer)
        for block in others:
            assert block.place is not None
            block.newest = Newest.HOST
            self.freed.append((block.place, block.size))
            block.place = None
        self.collect()


def _rounded(nbytes: int) -> int:
    return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
