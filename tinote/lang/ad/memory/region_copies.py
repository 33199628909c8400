"""Copies of elements of fields, to be restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.data.layout import array_over, warm_copy
from tinote.lang.index_regions import IndexRegion, IndexRegions, slices_of, uncovered, whole_region
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory
from tinote.runtime.seam import active_listener, listeners

Array = np.ndarray[Any, Any]


def bring_back(view: Array, values: Array) -> None:
    """Let elements hold what they held, which `values` are a copy of."""
    if listeners and (listener := active_listener()) is not None:
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
        self._copies: list[tuple[Any, Any]] = []  # memory with its contents, or elements with their values
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

    def regions_of(self, buffer: Buffer) -> Sequence[IndexRegion]:
        """Those of one field."""
        return tuple(self._regions.get(buffer, ()))

    def add(self, buffer: Buffer, region: IndexRegion | None = None) -> Sequence[IndexRegion]:
        """Copy what elements of a field, by default all, hold now, unless they were added before. Gives those that were
        not.
        """
        if buffer in self._last and self._last[buffer] == region:
            return ()
        self._last[buffer] = region
        region = region or whole_region(buffer)
        if region is None:
            return ()
        regions = self._regions.get(buffer)
        if regions is None:
            regions = self._regions[buffer] = IndexRegions()
        parts = regions.cover(region)
        if not parts:
            return ()
        memory = memory_of(buffer)
        if memory.is_resident or memory.is_reserved or memory in self._blocks:
            self.add_blocks([memory])
            return parts
        held = array_over(buffer, memory)
        for view in [held[slices_of(part)] for part in parts]:
            self._copies.append((view, warm_copy(view)))
            self.nbytes += view.nbytes
        return parts

    def add_blocks(self, memories: Iterable[Memory]) -> None:
        """The same of all that is in these."""
        for memory in memories:
            if memory not in self._blocks:
                self._copies.append((memory, memory.copy()))
                self._blocks.add(memory)
                self.nbytes += memory.taken

    def now(self) -> RegionCopies:
        """What all of it holds now."""
        made = RegionCopies()
        made._last.update(self._last)
        made._regions = {buffer: IndexRegions(*regions) for buffer, regions in self._regions.items()}
        made._blocks.update(self._blocks)
        made._copies = [(one, one.copy() if isinstance(one, Memory) else warm_copy(one)) for one, _ in self._copies]
        made.nbytes = self.nbytes
        return made

    def put_back_but(self, stays: Mapping[Buffer, Sequence[IndexRegion]]) -> list[Buffer]:
        """Give them what they held, except the elements in `stays`. Gives the fields that could not keep theirs: those
        on a device whose blocks are not to stay as a whole.
        """
        kept = RegionCopies()
        refused: list[Buffer] = []
        blocks: set[Memory] = set()
        for memory in self._blocks:
            inside = [one for one in self._regions if memory_of(one) is memory]
            if all(not uncovered(region, stays.get(one, ())) for one in inside for region in self._regions[one]):
                blocks.add(memory)
            else:
                refused += [one for one in inside if stays.get(one)]
        for buffer, regions in stays.items():
            if memory_of(buffer) not in self._blocks:
                for region in regions:
                    kept.add(buffer, region)
        self.put_back(without=blocks)
        kept.put_back()
        return refused

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
