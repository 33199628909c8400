"""Copies of elements of fields, to be restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.data.layout import array_over, warm_copy
from tinote.lang.index_regions import IndexRegion, IndexRegions, slices_of, whole_region
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory
from tinote.runtime.seam import active_listener, seam

Array = np.ndarray[Any, Any]


def bring_back(view: Array, values: Array) -> None:
    """Let elements hold what they held, which `values` are a copy of."""
    if seam.listener is not None and (listener := active_listener()) is not None:
        listener.copying(view, values)
    view[...] = values


class RegionCopies:
    """Elements of fields with what each held when it was added; those of fields on a device are whole blocks there.
    `nbytes`: how many bytes the copies take.
    """

    __slots__ = ("_blocks", "_copies", "_last", "_regions", "nbytes")

    def __init__(self) -> None:
        #: the region of each field that was added last: most launches of a loop write to the same again
        self._last: dict[Buffer, IndexRegion | None] = {}
        self._regions: dict[Buffer, IndexRegions] = {}
        self._blocks: set[Memory] = set()
        self._copies: list[tuple[Any, Any]] = []
        self.nbytes = 0

    def __contains__(self, memory: Memory) -> bool:
        """Whether all of a block was added."""
        return memory in self._blocks

    def __len__(self) -> int:
        return len(self._copies)

    @property
    def regions(self) -> BufferRegions:
        """The elements that were added, and perhaps some around them."""
        return tuple([(buffer, region) for buffer, regions in self._regions.items() for region in regions])

    def add(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Copy what elements of a field, by default all, hold now, unless they were added before."""
        if buffer in self._last and self._last[buffer] == region:
            return
        self._last[buffer] = region
        region = region or whole_region(buffer)
        if region is None:
            return
        regions = self._regions.get(buffer)
        if regions is None:
            regions = self._regions[buffer] = IndexRegions()
        parts = regions.cover(region)
        if not parts:
            return
        memory = memory_of(buffer)
        if memory.is_resident or memory in self._blocks:
            self.add_blocks([memory])
            return
        held = array_over(buffer, memory)
        for view in [held[slices_of(part)] for part in parts]:
            self._copies.append((view, warm_copy(view)))
            self.nbytes += view.nbytes

    def add_blocks(self, memories: Iterable[Memory]) -> None:
        """The same of all that is in these."""
        for memory in memories:
            if memory not in self._blocks:
                self._copies.append((memory, memory.copy()))
                self._blocks.add(memory)
                self.nbytes += memory.nbytes

    def now(self) -> RegionCopies:
        """What all of it holds now."""
        made = RegionCopies()
        made.add_blocks(self._blocks)
        for buffer, region in self.regions:
            made.add(buffer, region)
        return made

    def put_back(self, since: int = 0, *, without: Collection[Memory] = ()) -> None:
        """Give them what they held; by `since`, those that were added when there were so many copies. `without`:
        blocks that stay as they are.
        """
        # The last first: of a block that was added after elements of it, these had changed.
        for held, values in reversed(self._copies[since:]):
            if isinstance(held, Memory):
                if held not in without:
                    held.restore(values)
            else:
                bring_back(held, values)
