"""What a recording keeps of memory: before something overwrites elements that a recorded launch needs, their values.

The log is read backwards. Undoing its last entries brings back, for every record, the values that its gradient reads;
what no record needs is not kept, and is anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tinote.ir.buffers import Buffer
from tinote.lang.boxes import Box, Boxes, box_of, numbers_in, rest, slices_of
from tinote.lang.layout import array_over
from tinote.lang.world import memory_of

__all__ = ["UndoLog", "numbers"]

Array = np.ndarray[Any, Any]

#: Pieces of one field whose final values are kept apart; then the rest of it is kept, too.
_MOST_PIECES = 64


class _Entry(NamedTuple):
    """What the elements of a box held before they were overwritten. `array`: the memory of the whole field."""

    buffer: Buffer
    box: Box
    array: Array
    values: Array

    def bring_back(self) -> None:
        self.array[slices_of(self.box)] = self.values


class UndoLog:
    """The needs of what was recorded so far, and the values that were overwritten. `make_room` is told of the field and
    the bytes before something is kept, and may raise. Other threads may overwrite at any time.
    """

    def __init__(self, make_room: Callable[[Buffer, int], None]) -> None:
        self.nbytes = 0
        self._make_room = make_room
        self._lock = Lock()
        self._needed: dict[Buffer, Boxes] = {}
        self._entries: list[_Entry] = []
        self._arrays: dict[Buffer, Array] = {}
        self._shown = 0  # on the way back: so many entries are not undone yet
        self._restores = True
        self._sealed: int | None = None
        self._finals: list[_Entry] = []
        self._kept_finals: dict[Buffer, list[Box]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_watching(self) -> bool:
        """Whether anything was needed so far."""
        return bool(self._needed)

    # ---- forward

    def need(self, buffer: Buffer, box: Box) -> None:
        """The present values of these elements are needed on the way back."""
        with self._lock:
            boxes = self._needed.get(buffer)
            if boxes is None:
                self._needed[buffer] = Boxes(box)
            else:
                boxes.add(box)

    def overwrite(self, buffer: Buffer, box: Box) -> int:
        """These elements are about to be written: keep what is needed of them. Gives the bytes of it."""
        boxes = self._needed.get(buffer)
        if boxes is None:
            return 0
        with self._lock:
            met = boxes.meetings(box)
            if not met:
                return 0
            nbytes = sum([numbers_in(buffer, part) for part in met])
            self._make_room(buffer, nbytes)
            array = self._array_of(buffer)
            self._entries += [_Entry(buffer, part, array, array[slices_of(part)].copy()) for part in met]
            self.nbytes += nbytes
            boxes.remove(box)
            return nbytes

    def seal(self) -> None:
        """Keep all that is needed and still there: anything may be overwritten from now on, without a word. Each way
        back begins with memory as it is now.
        """
        if self._sealed is None:
            self._sealed = len(self._entries)
        for buffer in list(self._needed):
            box = box_of(buffer)
            if box is not None:
                self.overwrite(buffer, box)

    def _array_of(self, buffer: Buffer) -> Array:
        found = self._arrays.get(buffer)
        if found is None:
            found = self._arrays[buffer] = numbers(buffer)
        return found

    # ---- back

    def begin(self, *, restores: bool) -> None:
        """Start a way back. `restores`: at its end all memory will hold what it holds now."""
        self._shown = len(self._entries)
        self._restores = restores
        if self._sealed is not None:
            self.undo_to(self._sealed)

    def undo_to(self, length: int) -> None:
        """Bring memory back to when the log had this length."""
        while self._shown > length:
            self._shown -= 1
            entry = self._entries[self._shown]
            self.disturb(entry.buffer, entry.box)
            entry.bring_back()

    def undo_between(self, first: int, last: int, buffers: Collection[Buffer]) -> None:
        """Bring these fields back by the entries from `first` up to `last`, which remain to be undone."""
        for entry in reversed(self._entries[first:last]):
            if entry.buffer in buffers:
                self.disturb(entry.buffer, entry.box)
                entry.bring_back()

    def disturb(self, buffer: Buffer, box: Box) -> None:
        """On the way back these elements are about to change: their final values will come back."""
        if not self._restores:
            return
        known = self._kept_finals.setdefault(buffer, [])
        pieces = _uncovered(box, known)
        if len(known) + len(pieces) > _MOST_PIECES:
            pieces = _uncovered(box_of(buffer) or box, known)
        array = self._array_of(buffer)
        for piece in pieces:
            self._finals.append(_Entry(buffer, piece, array, array[slices_of(piece)].copy()))
        known += pieces

    def end(self) -> None:
        """The way back is over."""
        for final in self._finals:
            final.bring_back()
        self._finals.clear()
        self._kept_finals.clear()

    def forget(self) -> None:
        """Let go of what was kept."""
        self._needed.clear()
        self._entries.clear()
        self._arrays.clear()


def _uncovered(box: Box, known: list[Box]) -> list[Box]:
    pieces = [box]
    for other in known:
        pieces = [part for piece in pieces for part in rest(piece, other)]
    return pieces


def numbers(buffer: Buffer) -> Array:
    """All numbers of a field, sharing its memory, in the shape of the field with that of its elements behind."""
    return array_over(buffer, memory_of(buffer))
