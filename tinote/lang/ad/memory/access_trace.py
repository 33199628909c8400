"""Which launches are known to overwrite nothing that is needed, because an earlier recording began with the same ones.

A program that is differentiated again and again launches the same kernels on the same elements each time. Whether a
launch overwrites anything needed follows from its regions and from those before it alone, so that the answer for one
recording holds for the next, launch by launch, for as long as the regions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["AccessTrace"]

#: How many traces are remembered, and how many launches of each.
_MOST_TRACES = 64
_LONGEST = 1 << 16

#: Launches in the order of an earlier recording that overwrote nothing needed, by the first of them. A launch is told
#: by the number of its regions: numbers keep no memory alive, and none is given twice.
_harmless: dict[int, list[int]] = {}


class AccessTrace:
    """The launches of one recording from its beginning, up to the first that overwrites something needed."""

    __slots__ = ("_followed", "_launches", "_length", "has_ended")

    def __init__(self) -> None:
        self._followed: Sequence[int] | None = ()  # an earlier trace that this one is the same as so far; None: none is
        self._length = 0  # the number of its launches so far
        self._launches: list[int] = []  # of this one, when it follows no other
        self.has_ended = False

    def goes_on(self, number: int) -> bool:
        """Whether the launch of regions `number`, which is about to be next, is known to overwrite nothing needed. If
        so, it is part of the trace; if not, `add` tells.
        """
        followed = self._followed
        if followed is None:
            return False
        if not self._length:
            followed = self._followed = _harmless.get(number, ())
        if self._length < len(followed) and followed[self._length] == number:
            self._length += 1
            return True
        self._part()
        return False

    def add(self, number: int) -> None:
        """A launch has overwritten nothing needed, and what it needs itself counts from now on."""
        if not self.has_ended and len(self._launches) < _LONGEST:
            self._launches.append(number)

    def end(self) -> None:
        """Something needed is overwritten."""
        self._part()
        self.has_ended = True

    def remember(self) -> None:
        """The recording is over."""
        if self._launches:
            if len(_harmless) >= _MOST_TRACES:
                _harmless.clear()
            first = self._launches[0]
            known = _harmless.get(first, [])
            if known[: len(self._launches)] != self._launches:
                _harmless[first] = self._launches

    def _part(self) -> None:
        """From here on it is a trace of its own."""
        if self._followed is not None:
            self._launches = list(self._followed[: self._length])
            self._followed = None
