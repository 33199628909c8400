"""Which elements one launch needs, restores and writes: the access regions of `ir/access_region.py`, evaluated."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tinote.ir.access_region import Argument, Reach, Reaches, Step
from tinote.ir.affine import Interval
from tinote.ir.buffers import Buffer
from tinote.lang.boxes import Box, Boxes, box_of

__all__ = ["NOTHING", "Footprint", "Footprints", "Places"]

#: So many footprints that depend on arguments are remembered: a loop of time steps runs again and again.
_MOST_KNOWN = 4096

#: Elements of several fields.
Places = tuple[tuple[Buffer, Box], ...]


class Footprint(NamedTuple):
    """Elements of fields and ndarrays. `restored`: what the gradient reads of the values from before the launch;
    `needed`: of those that the launch left; `written`: what the launch may write to. `number`: its own; no two have the
    same.
    """

    restored: Places
    needed: Places
    written: Places
    number: int


_numbers = itertools.count()


def _footprint(parts: Sequence[Places]) -> Footprint:
    restored, needed, written = parts
    return Footprint(restored, needed, written, next(_numbers))


NOTHING = _footprint([(), (), ()])


class _Varying(NamedTuple):
    """A box of which some dimensions depend on arguments: those of `axes`, each with its step and its length."""

    buffer: Buffer
    box: Box
    axes: tuple[tuple[int, int, int], ...]

    def at(self, found: Sequence[Interval]) -> Box | None:
        box = list(self.box)
        for axis, step, length in self.axes:
            low, high = found[step]
            first, last = max(low, 0), min(high + 1, length)
            if first >= last:
                return None
            box[axis] = first, last
        return tuple(box)


class Footprints:
    """Those of all launches of a kernel on the same memory. `actual`: the memory that a buffer of the code stands for;
    `follows`: whether such memory counts.
    """

    def __init__(self, reaches: Reaches, actual: Callable[[Buffer], Buffer], follows: Callable[[Buffer], bool]) -> None:
        self._reaches = reaches
        self._actual = actual
        self._follows = follows
        lengths = [actual(buffer).shape[axis] or 0 for buffer, axis in reaches.lengths]
        self._found: list[Interval] = []
        self._steps: list[tuple[int, Step]] = []
        varying: set[int] = set()
        for number, step in enumerate(reaches.steps):
            if isinstance(step, Argument) or varying.intersection(step.sources):
                varying.add(number)
                self._steps.append((number, step))
                self._found.append((0, 0))
            else:
                self._found.append(step.interval((), lengths, self._found))
        parts = [self._places(part, varying) for part in (reaches.restored, reaches.needed, reaches.written)]
        self._fixed = _footprint([fixed for fixed, _ in parts])
        self._varying = [moving for _, moving in parts]
        self._moves = any(self._varying)
        asked = [step.position for _, step in self._steps if isinstance(step, Argument)]
        #: what of the arguments a footprint depends on: a number, or a tuple of several
        self._asked: Callable[[Sequence[Any]], Any] = operator.itemgetter(*asked) if asked else tuple
        self._known: dict[Any, Footprint] = {}

    def of(self, arguments: Sequence[Any]) -> Footprint:
        """That of a launch with these scalar arguments."""
        if not self._moves:
            return self._fixed
        try:
            key = self._asked(arguments)
            known = self._known.get(key)
            if known is None:
                if len(self._known) == _MOST_KNOWN:
                    self._known.clear()
                known = self._known[key] = self._worked_out(arguments)
        except (TypeError, ValueError, OverflowError):  # no integer: the launch says so
            return self._everything()
        return known

    def _worked_out(self, arguments: Sequence[Any]) -> Footprint:
        found = self._found.copy()
        for number, step in self._steps:
            found[number] = step.interval(arguments, (), found)
        fixed = self._fixed.restored, self._fixed.needed, self._fixed.written
        return _footprint([part + _moved(moving, found) for part, moving in zip(fixed, self._varying, strict=True)])

    def _everything(self) -> Footprint:
        parts = self._reaches.restored, self._reaches.needed, self._reaches.written
        found: list[Places] = []
        for part in parts:
            buffers = {self._actual(reach.buffer) for reach in part}
            wholes = [(b, box) for b in buffers if self._follows(b) and (box := box_of(b)) is not None]
            found.append(tuple(wholes))
        return _footprint(found)

    def _places(self, reaches: Iterable[Reach], varying: set[int]) -> tuple[Places, list[_Varying]]:
        """Those that are the same in every launch, and those that are not; a few boxes each."""
        groups: dict[tuple[Buffer, tuple[int | None, ...]], Boxes] = {}
        for reach in reaches:
            buffer = self._actual(reach.buffer)
            box = self._fixed_part(buffer, reach.axes, varying) if self._follows(buffer) else None
            if box is not None:
                moving = tuple([step if step in varying else None for step in reach.axes])
                groups.setdefault((buffer, moving), Boxes()).add(box)
        fixed: list[tuple[Buffer, Box]] = []
        found: list[_Varying] = []
        for (buffer, moving), boxes in groups.items():
            axes = [(axis, step, buffer.shape[axis] or 0) for axis, step in enumerate(moving) if step is not None]
            for box in boxes:
                if axes:
                    found.append(_Varying(buffer, box, tuple(axes)))
                else:
                    fixed.append((buffer, box))
        return tuple(fixed), found

    def _fixed_part(self, buffer: Buffer, axes: tuple[int, ...], varying: set[int]) -> Box | None:
        """The box with the whole of each dimension that depends on arguments; None if there is nothing in it."""
        whole = box_of(buffer)
        if whole is None:
            return None
        box = list(whole)
        for axis, step in enumerate(axes):
            if step not in varying:
                low, high = self._found[step]
                first, last = max(low, 0), min(high + 1, whole[axis][1])
                if first >= last:
                    return None
                box[axis] = first, last
        return tuple(box)


def _moved(varying: list[_Varying], found: Sequence[Interval]) -> Places:
    return tuple([(v.buffer, box) for v in varying if (box := v.at(found)) is not None])
