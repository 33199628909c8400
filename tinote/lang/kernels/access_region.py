"""Which elements one launch writes and its gradient reads: the access regions of `ir/launch_values.py`, evaluated."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tinote.ir.affine import Interval
from tinote.ir.buffers import Buffer
from tinote.ir.launch_values import Argument, BoundedNode, SymbolicRegion, SymbolicRegions
from tinote.lang.boxes import Box, Boxes, box_of

__all__ = ["NOTHING", "AccessRegions", "Places", "RegionEvaluator", "united"]

#: How many regions that depend on arguments are remembered: a loop of time steps runs again and again.
_MOST_KNOWN = 4096

#: Elements of several fields.
Places = tuple[tuple[Buffer, Box], ...]


class AccessRegions(NamedTuple):
    """Elements of fields and ndarrays. `live_in_before`: what the gradient reads of the values from before the launch;
    `live_in`: of those that the launch left; `written`: what the launch may write to. `number`: its own; no two have
    the same.
    """

    live_in_before: Places
    live_in: Places
    written: Places
    number: int


_numbers = itertools.count()


def _numbered(parts: Sequence[Places]) -> AccessRegions:
    before, after, written = parts
    return AccessRegions(before, after, written, next(_numbers))


NOTHING = _numbered([(), (), ()])


def united(a: AccessRegions, b: AccessRegions) -> AccessRegions:
    """What either reads, of one launch: both write the same."""
    before, after = (tuple(dict.fromkeys((*x, *y))) for x, y in zip(a[:2], b[:2], strict=True))
    return _numbered([before, after, a.written])


class _Varying(NamedTuple):
    """A box of which some dimensions depend on arguments: those of `axes`, each with its node and its length."""

    buffer: Buffer
    box: Box
    axes: tuple[tuple[int, int, int], ...]

    def at(self, found: Sequence[Interval]) -> Box | None:
        box = list(self.box)
        for axis, node, length in self.axes:
            low, high = found[node]
            first, last = max(low, 0), min(high + 1, length)
            if first >= last:
                return None
            box[axis] = first, last
        return tuple(box)


class RegionEvaluator:
    """The access regions of all launches of a kernel on the same memory. `actual`: the memory that a buffer of the code
    stands for; `follows`: whether such memory counts.
    """

    def __init__(
        self, regions: SymbolicRegions, actual: Callable[[Buffer], Buffer], follows: Callable[[Buffer], bool]
    ) -> None:
        self._parts = regions.live_in_before, regions.live_in, regions.written
        self._actual = actual
        self._follows = follows
        lengths = [actual(buffer).shape[axis] or 0 for buffer, axis in regions.lengths]
        self._found: list[Interval] = []
        self._nodes: list[tuple[int, BoundedNode]] = []
        varying: set[int] = set()
        for number, node in enumerate(regions.nodes):
            if isinstance(node, Argument) or varying.intersection(node.sources):
                varying.add(number)
                self._nodes.append((number, node))
                self._found.append((0, 0))
            else:
                self._found.append(node.interval((), lengths, self._found))
        parts = [self._places(part, varying) for part in self._parts]
        self._fixed = _numbered([fixed for fixed, _ in parts])
        self._varying = [moving for _, moving in parts]
        self._moves = any(self._varying)
        asked = [node.position for _, node in self._nodes if isinstance(node, Argument)]
        #: what of the arguments a region depends on: a number, or a tuple of several
        self._asked: Callable[[Sequence[Any]], Any] = operator.itemgetter(*asked) if asked else tuple
        self._known: dict[Any, AccessRegions] = {}

    @property
    def fixed(self) -> AccessRegions | None:
        """Those of every launch, if they do not depend on arguments."""
        return None if self._moves else self._fixed

    def of(self, arguments: Sequence[Any]) -> AccessRegions:
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

    def _worked_out(self, arguments: Sequence[Any]) -> AccessRegions:
        found = self._found.copy()
        for number, node in self._nodes:
            found[number] = node.interval(arguments, (), found)
        fixed = self._fixed.live_in_before, self._fixed.live_in, self._fixed.written
        return _numbered([part + _moved(moving, found) for part, moving in zip(fixed, self._varying, strict=True)])

    def _everything(self) -> AccessRegions:
        found: list[Places] = []
        for part in self._parts:
            buffers = {self._actual(region.buffer) for region in part}
            wholes = [(b, box) for b in buffers if self._follows(b) and (box := box_of(b)) is not None]
            found.append(tuple(wholes))
        return _numbered(found)

    def _places(self, regions: Iterable[SymbolicRegion], varying: set[int]) -> tuple[Places, list[_Varying]]:
        """Those that are the same in every launch, and those that are not; a few boxes each."""
        groups: dict[tuple[Buffer, tuple[int | None, ...]], Boxes] = {}
        for region in regions:
            buffer = self._actual(region.buffer)
            box = self._fixed_part(buffer, region.axes, varying) if self._follows(buffer) else None
            if box is not None:
                moving = tuple([node if node in varying else None for node in region.axes])
                groups.setdefault((buffer, moving), Boxes()).add(box)
        fixed: list[tuple[Buffer, Box]] = []
        found: list[_Varying] = []
        for (buffer, moving), boxes in groups.items():
            axes = [(axis, node, buffer.shape[axis] or 0) for axis, node in enumerate(moving) if node is not None]
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
        for axis, node in enumerate(axes):
            if node not in varying:
                low, high = self._found[node]
                first, last = max(low, 0), min(high + 1, whole[axis][1])
                if first >= last:
                    return None
                box[axis] = first, last
        return tuple(box)


def _moved(varying: list[_Varying], found: Sequence[Interval]) -> Places:
    return tuple([(v.buffer, box) for v in varying if (box := v.at(found)) is not None])
