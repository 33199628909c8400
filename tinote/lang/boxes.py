"""Boxes of elements: which part of a field is needed, written or kept.

A box is a half-open interval of indices for each dimension of a field, never empty; a 0-D field has one box, `()`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

from tinote.ir.buffers import Buffer

__all__ = ["Box", "Boxes", "box_at", "box_of", "is_element", "meeting", "rest", "slices_of", "volume"]

Box = tuple[tuple[int, int], ...]

#: So many boxes of one field are told apart when some are added, and when some are taken away.
_MOST = 16
_MOST_PIECES = 64


def box_of(buffer: Buffer) -> Box | None:
    """All elements; None if there are none."""
    shape = [n or 0 for n in buffer.shape]
    return tuple([(0, n) for n in shape]) if 0 not in shape else None


def box_at(buffer: Buffer, position: Any) -> Box | None:
    """The elements that a `position` in the field's array touches (`Recorder.written`): integers for its first
    dimensions, and all of the others.
    """
    whole = box_of(buffer)
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


def slices_of(box: Box) -> tuple[Any, ...]:
    """Its elements as an index into the field's array."""
    return (*[slice(first, last) for first, last in box], ...)


def volume(box: Box) -> int:
    """How many elements it has."""
    return math.prod([last - first for first, last in box])


def meeting(a: Box, b: Box) -> Box | None:
    """What two boxes of one field have in common."""
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


def rest(box: Box, without: Box) -> list[Box]:
    """The elements of `box` that are not in `without`, in boxes that do not meet."""
    if box == without:
        return []
    common = meeting(box, without)
    if common is None:
        return [box]
    found: list[Box] = []
    for axis, ((first, last), (begin, end)) in enumerate(zip(box, common, strict=True)):
        before, behind = common[:axis], box[axis + 1 :]
        if first < begin:
            found.append((*before, (first, begin), *behind))
        if end < last:
            found.append((*before, (end, last), *behind))
    return found


class Boxes:
    """A part of one field: a few boxes. It may be more than was added, where that makes it simpler."""

    __slots__ = ("_all",)

    def __init__(self, *boxes: Box) -> None:
        self._all = list(boxes)

    def __iter__(self) -> Iterator[Box]:
        return iter(self._all)

    def add(self, box: Box) -> None:
        """Make `box` a part. Boxes become one when that is no larger than the two were."""
        if box in self._all:
            return
        if not self._all:
            self._all.append(box)
            return
        k = 0
        while k < len(self._all):
            both = _joined(self._all[k], box)
            if both is None:
                k += 1
            elif both == self._all[k]:
                return
            else:
                del self._all[k]
                box, k = both, 0
        self._all.append(box)
        if len(self._all) > _MOST:
            self._simplify()

    def meetings(self, box: Box) -> list[Box]:
        """What it has in common with `box`."""
        return [common for one in self._all if (common := meeting(one, box)) is not None]

    def remove(self, box: Box) -> None:
        """Take the elements of `box` away."""
        self._all = [piece for one in self._all for piece in rest(one, box)]
        if len(self._all) > _MOST_PIECES:
            self._simplify()

    def _simplify(self) -> None:
        self._all = [functools.reduce(_around, self._all)]


def _joined(a: Box, b: Box) -> Box | None:
    """The smallest box around two, if it is no larger than they are together."""
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


def _around(a: Box, b: Box) -> Box:
    """The smallest box around two."""
    return tuple([(min(i, k), max(j, m)) for (i, j), (k, m) in zip(a, b, strict=True)])
