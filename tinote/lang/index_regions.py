"""Index regions: which elements of a field are needed, written or kept.

An index region is a half-open interval of indices for each dimension of a field, never empty; a
0-D field has one, `()`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any

from tinote.ir.buffers import Buffer

IndexRegion = tuple[tuple[int, int], ...]

#: How many regions of one field are distinguished when some are added, and when some are removed.
_MOST = 16
_MOST_PIECES = 64


def whole_region(buffer: Buffer) -> IndexRegion | None:
    """All elements; None if there are none."""
    shape = [n or 0 for n in buffer.shape]
    return tuple([(0, n) for n in shape]) if 0 not in shape else None


def region_at(buffer: Buffer, position: Any) -> IndexRegion | None:
    """The elements that a `position` in the field's array touches (`Recorder.written`): integers for its first
    dimensions, and all of the others.
    """
    whole = whole_region(buffer)
    if whole is None or not isinstance(position, tuple):
        return whole
    found: list[tuple[int, int]] = []
    for k in position[: len(whole)]:
        if not isinstance(k, int):
            break
        found.append((k, k + 1))
    return (*found, *whole[len(found) :])


def is_element(buffer: Buffer, position: tuple[Any, ...]) -> bool:
    """Whether a position in the field's array is that of a whole element."""
    return len(position) == buffer.rank and all(isinstance(k, int) for k in position)


def slices_of(region: IndexRegion) -> tuple[Any, ...]:
    """Its elements as an index into the field's array."""
    return (*[slice(first, last) for first, last in region], ...)


def volume(region: IndexRegion) -> int:
    """How many elements it has."""
    return math.prod([last - first for first, last in region])


def intersection(a: IndexRegion, b: IndexRegion) -> IndexRegion | None:
    """The elements that two regions of one field have in common."""
    if a == b:
        return a
    found: list[tuple[int, int]] = []
    for (first, last), (begin, end) in zip(a, b):  # noqa: B905  # asked at each launch; as long as each other
        # Without `min` and `max`, whose calls take most of the time.
        low = begin if first < begin else first
        high = end if end < last else last
        if low >= high:
            return None
        found.append((low, high))
    return tuple(found)


def difference(region: IndexRegion, without: IndexRegion) -> list[IndexRegion]:
    """The elements of `region` that are not in `without`, as disjoint regions."""
    if region == without:
        return []
    common = intersection(region, without)
    if common is None:
        return [region]
    found: list[IndexRegion] = []
    for axis, ((first, last), (begin, end)) in enumerate(zip(region, common, strict=True)):
        before, after = common[:axis], region[axis + 1 :]
        if first < begin:
            found.append((*before, (first, begin), *after))
        if end < last:
            found.append((*before, (end, last), *after))
    return found


def uncovered(region: IndexRegion, known: Iterable[IndexRegion]) -> list[IndexRegion]:
    """The elements of `region` that are in none of the others, as disjoint regions."""
    parts = [region]
    for other in known:
        parts = [piece for part in parts for piece in difference(part, other)]
    return parts


class IndexRegions:
    """A union of a few index regions of one field. It may cover more than was added, where that makes it simpler."""

    __slots__ = ("_all",)

    def __init__(self, *regions: IndexRegion) -> None:
        self._all = list(regions)

    def __iter__(self) -> Iterator[IndexRegion]:
        return iter(self._all)

    def add(self, region: IndexRegion) -> None:
        """Add a region. Two are joined where the joined one is no larger than the two together."""
        if region in self._all:
            return
        self._join(region)
        if len(self._all) > _MOST:
            self._simplify()

    def cover(self, region: IndexRegion) -> list[IndexRegion]:
        """Add a region, and perhaps some around it. Gives, as disjoint regions, what was not in the union before."""
        if region in self._all:
            return []
        parts = uncovered(region, self._all)
        if parts and len(self._all) + len(parts) > _MOST_PIECES:
            around = functools.reduce(_around, self._all, region)
            parts, self._all = uncovered(around, self._all), [around]
        else:
            for part in parts:  # disjoint, so that a joined region is exactly two
                self._join(part)
        return parts

    def _join(self, region: IndexRegion) -> None:
        """Add a region that is not among them."""
        k = 0
        while k < len(self._all):
            both = _joined(self._all[k], region)
            if both is None:
                k += 1
            elif both == self._all[k]:
                return
            else:
                del self._all[k]
                region, k = both, 0
        self._all.append(region)

    def intersections(self, region: IndexRegion) -> list[IndexRegion]:
        """Its intersections with `region`."""
        return [common for one in self._all if (common := intersection(one, region)) is not None]

    def remove(self, region: IndexRegion) -> None:
        """Take the elements of `region` away."""
        self._all = [piece for one in self._all for piece in difference(one, region)]
        if len(self._all) > _MOST_PIECES:
            self._simplify()

    def _simplify(self) -> None:
        self._all = [functools.reduce(_around, self._all)]


def _joined(a: IndexRegion, b: IndexRegion) -> IndexRegion | None:
    """The smallest region around two, if it is no larger than they are together."""
    axis = -1
    for k, one in enumerate(a):
        if one != b[k]:
            if axis >= 0:
                both = _around(a, b)
                return both if volume(both) <= volume(a) + volume(b) else None
            axis = k
    if axis < 0:
        return a
    (first, last), (begin, end) = a[axis], b[axis]
    if end < first or last < begin:
        return None
    return (*a[:axis], (min(first, begin), max(last, end)), *a[axis + 1 :])


def _around(a: IndexRegion, b: IndexRegion) -> IndexRegion:
    """The smallest region around two."""
    return tuple([(min(i, k), max(j, m)) for (i, j), (k, m) in zip(a, b, strict=True)])
