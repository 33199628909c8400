"""Snapshots of the memory that a program uses, to be restored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from threading import get_ident
from typing import Any

from tinote.compiler.launch.native import BoundArray
from tinote.ir.nodes import Buffer
from tinote.lang.ad.memory.region_copies import RegionCopies
from tinote.lang.ad.memory.values import store
from tinote.lang.data.ndarrays import CopiedArray
from tinote.lang.data.traced import constants
from tinote.lang.index_regions import IndexRegion, IndexRegions, slices_of, uncovered, whole_region
from tinote.lang.kernels.arguments import observed_arguments
from tinote.lang.kernels.stand_ins import stand_ins
from tinote.lang.session.owners import claim, close_recording, give_back, own_duals, owner_of, use
from tinote.lang.session.state import Recorder, is_viewed, memory_of, session
from tinote.runtime.memory import Memory
from tinote.runtime.owner import Owner, present_owner
from tinote.runtime.seam import unwinding

_ALL_OF_EACH: Mapping[Buffer, IndexRegions] = {}


class ShadowsBefore(RegionCopies):
    """A block that leaves gradients and duals as they were: what is about to change is added, and what is to be
    computed begins at zero (`begin`). Those that others may write to unnoticed are there from the start.
    """

    __slots__ = ("_begun", "_has_all_duals", "_kept", "_owners", "_partly", "_recordings")

    def __init__(self) -> None:
        super().__init__()
        self._begun: dict[Memory, Buffer] = {}
        self._partly: dict[Buffer, IndexRegions] = {}
        self._kept: dict[Memory, Buffer] = {}
        self._has_all_duals = False
        self._owners: dict[Buffer, Owner] = {}
        self._recordings: list[Recorder] = []

    def __enter__(self) -> ShadowsBefore:
        if session.has_views:
            for buffer in list(session.views):
                if buffer.primal is not None and is_viewed(buffer):
                    self.add_blocks([memory_of(buffer)])
        return self

    def __exit__(self, *error: object) -> None:
        try:
            unwinding(self.put_back)
        finally:
            if self._owners:
                give_back(self._owners)
            for recording in self._recordings:
                close_recording(recording)
            self._recordings.clear()  # they know this

    def hold_for(self, recording: Recorder) -> None:
        """This recording computes them: they are its own until the end of the block."""
        self._recordings.append(recording)

    @property
    def begun(self) -> list[Buffer]:
        """What is being computed."""
        return [*self._begun.values(), *self._partly]

    def begin(
        self, recording: Recorder, shadows: Iterable[Buffer], touched: Mapping[Buffer, IndexRegions] = _ALL_OF_EACH
    ) -> None:
        """The recording is about to compute these gradients or duals, if it does not yet. `touched`: the elements of
        some, if no others of theirs are read or written.
        """
        found = {memory: buffer for buffer in shadows if (memory := memory_of(buffer)) not in self._begun}
        if not found:
            return
        use(recording, found.values())
        for buffer, owner in claim(found.values()).items():
            self._owners.setdefault(buffer, owner)
        for buffer in [one for one in found.values() if one in touched or one in self._partly]:
            if buffer in touched:
                del found[memory_of(buffer)]
                begun = self._partly.setdefault(buffer, IndexRegions())
                parts = [part for region in touched[buffer] for part in begun.cover(region)]
            else:
                whole, begun = whole_region(buffer), self._partly.pop(buffer)
                parts = [] if whole is None else uncovered(whole, begun)
                self._begun[memory_of(buffer)] = buffer
            for part in parts:
                self.add(buffer, part)
                store(buffer, slices_of(part), 0.0)
        fresh = [memory for memory in found if memory not in self._begun]
        self.add_blocks(fresh)
        for memory in fresh:
            memory.clear()
        self._begun.update(found)

    def begin_duals(self, recording: Recorder, duals: Iterable[Buffer]) -> None:
        """The same of duals; after `begin_all_duals`, of those that another owner has computed."""
        if self._has_all_duals:
            mine = present_owner()
            duals = [dual for dual in duals if not mine.includes(owner_of(dual))]
        self.begin(recording, duals)

    def begin_all_duals(self, recording: Recorder) -> None:
        """A derivative inside is about to use any of the present owner's duals: they begin at zero, and there may be
        further ones.
        """
        if not self._has_all_duals:
            self.begin(recording, own_duals())
            self._has_all_duals = True

    def begin_anew(self) -> None:
        """Another run comes: what it computes begins at zero again."""
        self._begun.clear()
        self._partly.clear()
        self._has_all_duals = False

    def begin_sweep(
        self,
        recording: Recorder,
        shadows: Iterable[Buffer],
        touched: Mapping[Buffer, IndexRegions] = _ALL_OF_EACH,
        *,
        zero: Iterable[Buffer] = (),
    ) -> None:
        """The recording is about to sweep: gradients, and their duals, begin at zero, now these and others when it
        uses them. The duals of fields hold tangents of the run. `touched`: as for `begin`; `zero`: its own gradients,
        which are zero.
        """
        self._begun = {memory: buffer for memory, buffer in self._begun.items() if _is_dual_of_field(buffer)}
        self._begun.update((memory_of(buffer), buffer) for buffer in zero)
        self._partly.clear()
        self.begin(recording, shadows, touched)

    def keep(self, shadows: Mapping[Buffer, Memory]) -> None:
        """These shadows may change; other code may compute some of them in the meantime."""
        for buffer, memory in shadows.items():
            if memory not in self:
                self.add_blocks([memory])
                self._kept[memory] = buffer

    def put_back(self, since: int = 0, *, without: Collection[Memory] = ()) -> None:
        if self._kept:
            mine = present_owner()
            without = {memory for memory, buffer in self._kept.items() if not mine.includes(owner_of(buffer))}
        super().put_back(since, without=without)


def _is_dual_of_field(shadow: Buffer) -> bool:
    primal = shadow.primal
    return primal is not None and primal.primal is None and primal.tangent is shadow


class State:
    """A block that knows what fields and ndarrays held at its beginning, of all that this thread changes in it, and how
    many random launches there were: when it is put back, kernels draw the same random numbers again. `arrays`: also
    what launches change of NumPy's arrays, and of others of which the memory is not the session's.
    """

    def __init__(self, *, arrays: bool = False) -> None:
        self._arrays = arrays
        self._copies = RegionCopies()
        self._strided: dict[int, tuple[Any, Any]] = {}  # arrays that launches get as copies
        self._thread = get_ident()
        self._launches = session.launches

    def __enter__(self) -> State:
        session.watchers.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self in session.watchers:
            session.watchers.remove(self)

    def add(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Elements of it, by default all, are about to change. (Of gradients and duals, `ShadowsBefore` knows.)"""
        standing = stand_ins.get()
        if buffer.primal is None and (standing is None or not standing.has(buffer)):
            self._copies.add(buffer, region)

    def launching_outside(self, instance: Any, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        if get_ident() != self._thread:
            return
        values = constants(values)
        for buffer, region in observed_arguments(instance, values).written(values):
            self.add(buffer, region)
        for at, array in enumerate(values if self._arrays else ()):
            if not isinstance(array, BoundArray) or array.buffer is not None or not instance.primal.writes_array(at):
                continue
            if isinstance(array, CopiedArray):
                self._strided.setdefault(id(array.original), (array.original, array.original.copy()))
            else:
                self._copies.add_blocks([array.memory])

    def overwriting_outside(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Python is about to write to elements of a field."""
        if get_ident() == self._thread:
            self.add(buffer, region)

    def replaying_outside(self, memories: Iterable[Memory]) -> bool:
        """A captured step is about to be replayed."""
        if get_ident() == self._thread:
            self._copies.add_blocks(memories)
        return True

    def now(self) -> State:
        """What holds now of all that it knows of."""
        found = State()
        found._copies = self._copies.now()
        return found

    def put_back(self) -> None:
        """Give all of it what it held."""
        self.put_back_memory()
        session.launches = self._launches

    def put_back_memory(self) -> None:
        """The same, but draw other random numbers."""
        self._copies.put_back()
        for array, held in self._strided.values():
            array[...] = held
