"""The overwritten elements of launches, taken from an earlier recording that began with the same launches.

A program that is differentiated again and again launches the same kernels on the same elements each time. What a launch
overwrites of what is needed follows from its regions and from those before it alone, so that the answer for one
recording holds for the next, launch by launch, for as long as the regions are the same.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.lang.index_regions import IndexRegion

#: How many traces are remembered, and how many launches of each.
_MOST_TRACES = 64
_LONGEST = 1 << 16

#: What a launch overwrites of what is needed: of some of the regions that it writes, by their positions, these parts.
Overwritten = tuple[tuple[int, tuple[IndexRegion, ...]], ...]


class _Steps(NamedTuple):
    """The launches of a recording in their order, and what each has overwritten. A launch is identified by the number
    of its regions: numbers keep no memory alive, and none is given twice.
    """

    launches: list[int]
    overwritten: list[Overwritten]

    def beginning(self, length: int) -> _Steps:
        return _Steps(self.launches[:length], self.overwritten[:length])


#: Earlier recordings, by their first launch.
_known: dict[int, _Steps] = {}
_NONE = _Steps([], [])


class AccessTrace:
    """The launches of one recording from its beginning, up to the first time that something else than a launch
    overwrites what is needed.
    """

    __slots__ = ("_followed", "_length", "_own", "has_ended")

    def __init__(self) -> None:
        self._followed: _Steps | None = _NONE  # an earlier trace that this one is the same as so far; None: none is
        self._length = 0  # the number of its launches so far
        self._own: _Steps | None = None  # of this one, once it has parted from what it followed
        self.has_ended = False

    def next(self, number: int, overwrites: bool) -> Overwritten | None:
        """What the launch of regions `number`, which is about to be next, overwrites of what is needed, if that is
        known: then it is part of the trace; if not, `add` tells. Without `overwrites`, only nothing is an answer.
        """
        followed = self._followed
        if followed is None:
            return None
        if not self._length:
            followed = self._followed = _known.get(number, _NONE)
        launches, overwritten = followed
        length = self._length
        if length < len(launches) and launches[length] == number:
            found = overwritten[length]
            if overwrites or not found:
                self._length = length + 1
                return found
        self._part()
        return None

    def add(self, number: int, overwritten: Overwritten) -> None:
        """A launch has overwritten this, and what it needs itself counts from now on. Of a recording that has never
        asked for the `next` one, which keeps other values, no other can follow.
        """
        own = self._own
        if own is not None and not self.has_ended and len(own.launches) < _LONGEST:
            own.launches.append(number)
            own.overwritten.append(overwritten)

    def end(self) -> None:
        """Something needed is overwritten otherwise."""
        self._part()
        self.has_ended = True

    @property
    def is_own(self) -> bool:
        """Whether it has parted from every earlier one."""
        return self._own is not None

    def remember(self) -> None:
        """The recording is over."""
        own = self._own
        if own is not None and own.launches:
            if len(_known) >= _MOST_TRACES:
                _known.clear()
            first = own.launches[0]
            if _known.get(first, _NONE).launches[: len(own.launches)] != own.launches:
                _known[first] = own

    def _part(self) -> None:
        """From here on it is a trace of its own."""
        if self._followed is not None:
            self._own = self._followed.beginning(self._length)
            self._followed = None
