"""What elements of fields held, to be put back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.data.layout import array_over, warm_copy
from tinote.lang.index_regions import IndexRegion, IndexRegions, slices_of, whole_region
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.runtime.seam import heard, seam

Array = np.ndarray[Any, Any]


def bring_back(view: Array, values: Array) -> None:
    """Let elements hold what they held, which `values` are a copy of."""
    if seam.listener is not None and (listener := heard()) is not None:
        listener.copying(view, values)
    view[...] = values


class RegionCopies:
    """Elements of fields with what each held when it was added; those of fields on a device are whole blocks there."""

    __slots__ = ("_blocks", "_copies", "_regions")

    def __init__(self) -> None:
        self._regions: dict[Buffer, IndexRegions] = {}
        self._copies: list[tuple[Array, Array]] = []
        self._blocks = MemoryCopies()

    def __bool__(self) -> bool:
        return bool(self._regions or tuple(self._blocks))

    def add(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Copy what elements of a field, by default all, hold now, unless they were added before."""
        region, memory = region or whole_region(buffer), memory_of(buffer)
        if region is None or memory in self._blocks:
            return
        if memory.is_resident:
            self._blocks.add(memory)
            return
        regions = self._regions.get(buffer)
        if regions is None:
            regions = self._regions[buffer] = IndexRegions()
        parts = regions.cover(region)
        if parts:
            held = array_over(buffer, memory)
            self._copies += [(view, warm_copy(view)) for view in [held[slices_of(part)] for part in parts]]

    def add_blocks(self, memories: Iterable[Memory]) -> None:
        """The same of all that is in these."""
        self._blocks.add_all(memories)

    def now(self) -> RegionCopies:
        """What all of it holds now."""
        made = RegionCopies()
        made.add_blocks(self._blocks)
        for buffer, regions in self._regions.items():
            for region in regions:
                made.add(buffer, region)
        return made

    def put_back(self) -> None:
        """Give them what they held."""
        self._blocks.put_back()  # what was added after elements of theirs had been, these have changed since
        for view, values in self._copies:
            bring_back(view, values)
