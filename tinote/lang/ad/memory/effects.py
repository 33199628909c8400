"""What a block of operations does to memory."""

from __future__ import annotations

from collections.abc import Iterable

from tinote.ir.buffers import Buffer
from tinote.lang.index_regions import IndexRegion, IndexRegions, whole_region
from tinote.lang.kernels.access_region import BufferRegions, whole_regions


class BlockEffects:
    """`loaded`: the memory whose contents from before the block it reads; `written`: what it writes to; `filled`: what
    it certainly overwrites as a whole before it reads it. `follows`: the elements that it uses are known, too.
    """

    def __init__(
        self,
        loaded: Iterable[Buffer] = (),
        written: Iterable[Buffer] = (),
        filled: Iterable[Buffer] = (),
        *,
        follows: bool = False,
    ) -> None:
        self.loaded = set(loaded)
        self.written = set(written)
        self.filled = set(filled)
        self._used: dict[Buffer, IndexRegions] | None = {} if follows else None

    def load(self, buffers: Iterable[Buffer]) -> None:
        """Memory is read: as it was before, unless the block has filled it."""
        self.loaded.update([one for one in buffers if one not in self.filled])

    def use(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Elements, by default all, are read or written."""
        region = region or whole_region(buffer)
        if region is not None and self._used is not None:
            self._used.setdefault(buffer, IndexRegions()).add(region)

    def leave_out(self, buffers: Iterable[Buffer]) -> None:
        """This memory takes no part."""
        for buffer in buffers:
            for known in (self.loaded, self.written, self.filled):
                known.discard(buffer)
            if self._used is not None:
                self._used.pop(buffer, None)

    @property
    def used(self) -> BufferRegions:
        """The elements that it reads or writes; of memory where they are not known, all."""
        if self._used is None:
            return whole_regions(self.loaded | self.written)
        return tuple([(buffer, region) for buffer, regions in self._used.items() for region in regions])
