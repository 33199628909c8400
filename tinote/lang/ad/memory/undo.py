"""The undo log of overwritten values: the entries that `journal/saved_values.py` decides to save.

The log is read backwards. Undoing its last entries brings back, for every record, the values that its gradient reads;
what no record needs is not kept, and is anything.

A program that is differentiated again and again launches the same kernels on the same elements each time. What a launch
overwrites of what is needed follows from its regions and from those before it alone, so that the answer for one
recording holds for the next, launch by launch, for as long as the regions are the same: the *trace* of a log is its
launches from the beginning, up to the first time that something else than a launch overwrites what is needed.
"""

from __future__ import annotations

from _thread import RLock  # `threading.RLock` is a function in Python, and each recording makes one
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.ad.memory.region_copies import RegionCopies, bring_back
from tinote.lang.data.layout import Copies, array_over
from tinote.lang.index_regions import IndexRegion, IndexRegions, slices_of, uncovered, whole_region
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory
from tinote.runtime.seam import unwinding

Array = np.ndarray[Any, Any]
MakeRoom = Callable[[Buffer, int], None]

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


class _Entry(NamedTuple):
    """What the elements of a region held before they were overwritten; None: that is gone. `view`: their memory. Of
    memory that is taken where it is written, all is kept: a copy takes as little.
    """

    buffer: Buffer
    region: IndexRegion
    view: Array | Memory
    values: Array | Memory | None

    def bring_back(self) -> bool:
        """Whether the values are there to come back."""
        if isinstance(self.view, Memory):
            assert isinstance(self.values, Memory)
            self.view.restore(self.values)
        elif self.values is not None:
            assert not isinstance(self.values, Memory)
            bring_back(self.view, self.values)
        return self.values is not None


class UndoLog:
    """The needs of what was recorded so far, and the values that were overwritten: `entries`, of `nbytes` in all. Where
    a method takes `make_room`, it tells that of the field and the bytes before something is kept, which may raise.
    Other threads may overwrite at any time.
    """

    __slots__ = (
        "_copies",
        "_counted",
        "_earlier",
        "_followed",
        "_has_ended",
        "_is_open",
        "_lock",
        "_needed",
        "_own",
        "_settled",
        "_views",
        "_wanted",
        "_wanted_bytes",
        "entries",
        "nbytes",
        "sealed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.nbytes = 0
        self._lock = RLock()  # a signal handler may interrupt who has it
        self._copies: Copies | None = None
        self._earlier: _Steps | None = _NONE  # an earlier trace that this one is the same as so far; None: none is
        self._own: _Steps | None = None  # this one, once it has parted from that
        self._has_ended = False  # whether something else than a launch has overwritten what is needed
        # Launches that were known, and what they overwrote; its own thread alone adds to it.
        self._followed: list[tuple[AccessRegions, Overwritten]] = []
        self._is_open = False  # whether a launch is under way that was not known
        self._counted = 0  # the number of them whose needs are counted in `_needed`
        self._needed: dict[Buffer, IndexRegions] = {}
        self._wanted: dict[Buffer, IndexRegions] = {}
        self._wanted_bytes = 0
        self.entries: list[_Entry] = []
        self._views: dict[tuple[Buffer, IndexRegion], Array] = {}
        self._settled: dict[
            int, BufferRegions
        ] = {}  # by their identity: what is needed since elements were last overwritten
        self.sealed: int | None = None  # the number of entries when all that was still there was kept

    @property
    def is_watching(self) -> bool:
        """Whether anything was needed so far."""
        return bool(self._needed or self._wanted or self._followed)

    # ---- forward

    def known(self, regions: AccessRegions, overwrites: bool) -> Overwritten | None:
        """What a launch overwrites of what is needed, if that is known: then its needs count, and of what it overwrites
        there is only to `keep` it. If not, `overwrite` and `need` must be called, and `completed`. Without
        `overwrites`, that is known only of launches that overwrite nothing.
        """
        earlier = self._earlier
        if earlier is not None:
            position = len(self._followed)
            if not position:
                earlier = self._earlier = _known.get(regions.number, _NONE)
            launches, overwritten = earlier
            if position < len(launches) and launches[position] == regions.number:
                found = overwritten[position]
                if overwrites or not found:
                    self._followed.append((regions, found))
                    return found
            self._part()
        if self._is_open:  # the launch before has failed
            self._end_trace()
        self._count()
        return None

    def not_kept(self) -> None:
        """What the launch overwrites that was known just now could not be kept: it does not take place."""
        self._end_trace()
        self._followed.pop()
        self._count()

    def launching(self) -> None:
        """A launch that was not known is about to overwrite what is needed."""
        self._is_open = True

    def completed(self, regions: AccessRegions, overwritten: Overwritten) -> None:
        """A launch that was not known has completed, and all its needs were recorded."""
        self._is_open = False
        own = self._own  # of a recording that never asks what is `known`, which keeps other values, there is none
        if own is not None and not self._has_ended and len(own.launches) < _LONGEST:
            own.launches.append(regions.number)
            own.overwritten.append(overwritten)

    def _part(self) -> None:
        """From here on its trace is one of its own."""
        if self._earlier is not None:
            self._own = self._earlier.beginning(len(self._followed))
            self._earlier = None

    def _end_trace(self) -> None:
        """Something needed is overwritten otherwise."""
        self._part()
        self._has_ended = True

    def _count(self) -> None:
        """Count the needs of launches that were known."""
        if self._counted == len(self._followed):
            return
        with self._lock:
            while self._counted < len(self._followed):
                regions, overwritten = self._followed[self._counted]
                self._add(regions.live_in_before)
                for k, _ in overwritten:
                    buffer, region = regions.written[k]
                    self._needed[buffer].remove(region)
                if overwritten:
                    self._settled.clear()
                self._add(regions.live_in)
                self._counted += 1

    def need(self, needed: BufferRegions) -> None:
        """The present values of these elements are needed in the reverse sweep."""
        if not needed or id(needed) in self._settled:
            return
        with self._lock:
            self._add(needed)

    def need_all(self, buffers: Iterable[Buffer], *, without: BufferRegions = (), perhaps: bool = False) -> None:
        """The present values of these fields, except what is in `without`, are needed by what is not a launch, so no
        earlier recording tells what may be overwritten. `perhaps`: they are wanted, but who reads them asks for
        `stale` first: they are kept only as far as `overwrite` is allowed to.
        """
        self._count()
        with self._lock:
            self._end_trace()
            self._settled.clear()
            whole = self._wanted if perhaps else self._needed
            known: dict[Buffer, list[IndexRegion]] = {}
            for buffer, region in without:
                known.setdefault(buffer, []).append(region)
            for buffer in buffers:
                region = whole_region(buffer)
                if region is None:
                    continue
                if buffer not in known:
                    whole[buffer] = IndexRegions(region)
                    continue
                regions = whole.setdefault(buffer, IndexRegions())
                for part in uncovered(region, known[buffer]):
                    regions.add(part)

    def _add(self, needed: BufferRegions) -> None:
        for buffer, region in needed:
            if buffer.primal is not None and buffer.primal.adjoint is buffer:
                continue  # gradients are what the sweep computes; who needs what they held has a copy
            regions = self._needed.get(buffer)
            if regions is None:
                self._needed[buffer] = IndexRegions(region)
            else:
                regions.add(region)
        self._settled[id(needed)] = needed

    @property
    def needed(self) -> BufferRegions:
        """The elements whose present values are needed."""
        self._count()
        return tuple([(buffer, region) for buffer, regions in self._needed.items() for region in regions])

    def keeps(self, buffer: Buffer) -> bool:
        """Whether elements of a field are needed or wanted, so that `overwrite` has something to do."""
        self._count()
        return buffer in self._needed or buffer in self._wanted

    def overwrite(
        self,
        buffer: Buffer,
        region: IndexRegion | None,
        make_room: MakeRoom,
        most_wanted: Callable[[], int],
        *,
        by_launch: bool = False,
    ) -> int:
        """These elements, by default all, of a field that it `keeps`, are about to be written: keep what is needed of
        them; of what is only wanted, up to `most_wanted()` bytes in all. Gives the bytes that were kept. `by_launch`:
        by a recorded launch, which `launching` and `completed` are called for.
        """
        regions, wanted = self._needed.get(buffer), self._wanted.get(buffer)
        if region is None:
            region = whole_region(buffer)
            if region is None:
                return 0
        with self._lock:
            met = regions.intersections(region) if regions is not None else []
            nbytes = 0
            if regions is not None and met:
                if not (by_launch or self._has_ended):
                    self._end_trace()
                self._settled.clear()
                nbytes += self._keep(buffer, met, make_room)
                regions.remove(region)
            if wanted is not None:
                nbytes += self._keep_wanted(buffer, wanted, region, met, make_room, most_wanted())
            return nbytes

    def lose(self, buffer: Buffer) -> None:
        """A field that nothing recorded has used is about to be written elsewhere: what it holds is gone, for all that
        might have read it.
        """
        with self._lock:
            for whole in (self._needed, self._wanted):
                for region in whole.pop(buffer, ()):
                    self.entries.append(_Entry(buffer, region, self.view_of(buffer, region), None))
            self._settled.clear()

    def keep(self, buffer: Buffer, parts: Sequence[IndexRegion], make_room: MakeRoom) -> int:
        """These parts are about to be overwritten, as is known of the launch. Gives the bytes that were kept."""
        with self._lock:
            return self._keep(buffer, parts, make_room)

    def _keep(self, buffer: Buffer, parts: Sequence[IndexRegion], make_room: MakeRoom) -> int:
        memory = memory_of(buffer)
        if memory.is_reserved and (whole := whole_region(buffer)) is not None:
            make_room(buffer, nbytes := memory.taken)
            self.entries.append(_Entry(buffer, whole, memory, memory.copy()))
            self.nbytes += nbytes
            return nbytes
        views = [self.view_of(buffer, part) for part in parts]
        nbytes = sum([view.nbytes for view in views])
        make_room(buffer, nbytes)
        copies = self._copies = self._copies or Copies()
        self.entries += [_Entry(buffer, part, view, copies.copy(view)) for part, view in zip(parts, views, strict=True)]
        self.nbytes += nbytes
        return nbytes

    def _keep_wanted(
        self,
        buffer: Buffer,
        wanted: IndexRegions,
        region: IndexRegion,
        kept: Sequence[IndexRegion],
        make_room: MakeRoom,
        most: int,
    ) -> int:
        """Save the needed part of a region besides what was `kept`, as long as that is little; else note its loss."""
        nbytes = 0
        for common in wanted.intersections(region):
            for part in uncovered(common, kept):
                view = self.view_of(buffer, part)
                if self._wanted_bytes + view.nbytes <= most:
                    self._wanted_bytes += view.nbytes
                    nbytes += self._keep(buffer, [part], make_room)
                else:
                    self.entries.append(_Entry(buffer, part, view, None))
        wanted.remove(region)
        return nbytes

    def seal(self, make_room: MakeRoom, most_wanted: Callable[[], int]) -> None:
        """Keep all that is needed and still there: anything may be overwritten from now on, unannounced. Each reverse
        sweep begins with memory as it is now.
        """
        if self.sealed is None:
            self.sealed = len(self.entries)
        self._count()
        for buffer in {*self._needed, *self._wanted}:
            self.overwrite(buffer, None, make_room, most_wanted)

    def view_of(self, buffer: Buffer, region: IndexRegion) -> Array:
        """The memory of elements of a field."""
        found = self._views.get((buffer, region))
        if found is None:
            found = self._views[buffer, region] = numbers(buffer)[slices_of(region)]
        return found

    def forget(self) -> None:
        """Let go of what was kept. Other threads that are about to overwrite something find that nothing is needed."""
        if not (self._needed or self._wanted or self._followed or self.entries or self._own):
            return
        own = self._own
        if own is not None and own.launches:
            if len(_known) >= _MOST_TRACES:
                _known.clear()
            first = own.launches[0]
            if _known.get(first, _NONE).launches[: len(own.launches)] != own.launches:
                _known[first] = own
        with self._lock:
            if self.entries:
                self._copies = None
                self.entries.clear()
                self._views.clear()
            self._counted = 0
            self._followed.clear()
            self._needed.clear()
            if self._wanted:
                self._wanted.clear()


class Rewind:
    """A reverse sweep through a log, from `begin` to `end`. `shown`: the number of entries that are not undone yet;
    `stale`: elements that are not what they were at this point of the program.
    """

    __slots__ = ("_disturbed", "_finals", "_log", "_restores", "shown", "stale")

    def __init__(self, log: UndoLog) -> None:
        self.shown = 0
        self.stale: dict[Buffer, IndexRegions] = {}
        self._log = log
        self._restores = True
        self._finals: RegionCopies | None = None
        self._disturbed: dict[int, BufferRegions] | None = None  # by their identity

    def begin(self, *, restores: bool) -> None:
        """Start from memory as it is now. `restores`: at the end it will hold that again."""
        log = self._log
        self._restores = restores
        self.shown = len(log.entries)
        if log.sealed is not None:  # what was kept since then was kept because anything may be overwritten
            self.undo_to(log.sealed)

    def undo_to(self, length: int) -> None:
        """Bring memory back to when the log had this length."""
        while self.shown > length:
            self.shown -= 1
            entry = self._log.entries[self.shown]
            if entry.values is not None:
                self.disturb(entry.buffer, entry.region)
            if not entry.bring_back():
                self.stale.setdefault(entry.buffer, IndexRegions()).add(entry.region)
            elif self.stale:
                fresh = self.stale.get(entry.buffer)
                if fresh is not None:
                    fresh.remove(entry.region)

    def undo_between(self, first: int, last: int, buffers: Collection[Buffer]) -> None:
        """Bring these fields back by the entries from `first` up to `last`, which remain to be undone."""
        for entry in reversed(self._log.entries[first:last]):
            if entry.buffer in buffers:
                self.disturb(entry.buffer, entry.region)
                entry.bring_back()

    def disturb(self, buffer: Buffer, region: IndexRegion) -> None:
        """These elements are about to change: their final values will come back."""
        if self._restores:
            if self._finals is None:
                self._finals = RegionCopies()
            self._finals.add(buffer, region)

    def disturbed(self, buffer: Buffer) -> Sequence[IndexRegion]:
        """The elements of a field whose final values will come back."""
        return () if self._finals is None else self._finals.regions_of(buffer)

    def disturb_all(self, regions: BufferRegions) -> None:
        """The same of several regions, mostly those of earlier calls."""
        if self._disturbed is None:
            self._disturbed = {}
        if id(regions) not in self._disturbed:
            self._disturbed[id(regions)] = regions
            for buffer, region in regions:
                self.disturb(buffer, region)

    def end(self) -> None:
        """The sweep is over."""
        self._disturbed = None
        if self._finals is not None:
            unwinding(self._finals.put_back)
            self._finals = None
        if self.stale:
            self.stale.clear()


def numbers(buffer: Buffer) -> Array:
    """All numbers of a field, sharing its memory, in the field's shape followed by that of its elements."""
    return array_over(buffer, memory_of(buffer))
