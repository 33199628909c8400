"""Which elements one launch writes and its gradient reads: the access regions of `ir/launch_values.py`, evaluated."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.ir.buffers import Buffer
from tinote.lang.data.traced import Traced
from tinote.lang.index_regions import IndexRegion, IndexRegions, whole_region
from tinote.runtime.seam import Listener, active_listener, listeners

if TYPE_CHECKING:  # what came from the disk or the compiler is evaluated, and nothing made
    from tinote.ir.affine import Interval
    from tinote.ir.launch_values import BoundedNode, SymbolicRegion, SymbolicRegions

#: How many regions that depend on arguments are remembered: a loop of time steps runs again and again.
_MOST_KNOWN = 4096

#: Elements of several fields.
BufferRegions = tuple[tuple[Buffer, IndexRegion], ...]


def whole_regions(buffers: Iterable[Buffer]) -> BufferRegions:
    """All elements of fields."""
    return tuple([(buffer, region) for buffer in buffers if (region := whole_region(buffer)) is not None])


class AccessRegions:
    """Elements of fields and ndarrays. `live_in_before`: what the gradient reads of the values from before the launch;
    `live_in`: of those that the launch left; `written`: what the launch may write to. `number`: its own; no two have
    the same.
    """

    __slots__ = ("live_in", "live_in_before", "number", "written")

    def __init__(self, live_in_before: BufferRegions, live_in: BufferRegions, written: BufferRegions) -> None:
        self.live_in_before = live_in_before
        self.live_in = live_in
        self.written = written
        self.number = next(_numbers)


_numbers = itertools.count()


NOTHING = AccessRegions((), (), ())


def of_several(live_in: BufferRegions, written: BufferRegions) -> AccessRegions:
    """Those of several launches that are recorded as one: the gradient reads nothing from before that it does not keep
    itself.
    """
    return AccessRegions((), live_in, written)


def united(a: AccessRegions, b: AccessRegions) -> AccessRegions:
    """What either reads, of one launch: both write the same."""
    before = tuple(dict.fromkeys((*a.live_in_before, *b.live_in_before)))
    return AccessRegions(before, tuple(dict.fromkeys((*a.live_in, *b.live_in))), a.written)


class _ParametricRegion(NamedTuple):
    """An index region some of whose dimensions depend on arguments: `axes`, each with its node and its length."""

    buffer: Buffer
    region: IndexRegion
    axes: tuple[tuple[int, int, int], ...]

    def at(self, found: Sequence[Interval]) -> IndexRegion | None:
        region = list(self.region)
        for axis, node, length in self.axes:
            low, high = found[node]
            first, last = max(low, 0), min(high + 1, length)
            if first >= last:
                return None
            region[axis] = first, last
        return tuple(region)


class RegionEvaluator:
    """The access regions of all launches of a kernel on the same memory. `actual`: the memory that a buffer of the code
    stands for; `follows`: whether such memory counts.
    """

    def __init__(
        self, symbolic: SymbolicRegions, actual: Callable[[Buffer], Buffer], follows: Callable[[Buffer], bool]
    ) -> None:
        self._parts = symbolic.live_in_before, symbolic.live_in, symbolic.written
        self._actual = actual
        self._follows = follows
        lengths = [actual(buffer).shape[axis] or 0 for buffer, axis in symbolic.lengths]
        self._found: list[Interval] = []
        self._nodes: list[tuple[int, BoundedNode]] = []
        arguments = symbolic.arguments()
        parametric: set[int] = set()
        for number, node in enumerate(symbolic.nodes):
            if number in arguments or parametric.intersection(node.sources):
                parametric.add(number)
                self._nodes.append((number, node))
                self._found.append((0, 0))
            else:
                self._found.append(node.interval((), lengths, self._found))
        parts = [self._split(part, parametric) for part in self._parts]
        self._fixed = AccessRegions(*[fixed for fixed, _ in parts])
        self._parametric = [parametric_axes for _, parametric_axes in parts]
        self._has_parametric = any(self._parametric)
        #: the buffers of which other elements are touched for other arguments
        self.moving = frozenset([region.buffer for regions in self._parametric for region in regions])
        #: the positions of the arguments that a region depends on
        self.asked = asked = list(arguments.values())
        #: what of the arguments a region depends on: a number, or a tuple of several
        self._asked: Callable[[Sequence[Any]], Any] = operator.itemgetter(*asked) if asked else tuple
        self._known: dict[Any, AccessRegions] = {}

    @property
    def fixed(self) -> AccessRegions | None:
        """Those of every launch, if they do not depend on arguments."""
        return None if self._has_parametric else self._fixed

    def of(self, arguments: Sequence[Any]) -> AccessRegions:
        """That of a launch with these scalar arguments."""
        if not self._has_parametric:
            return self._fixed
        if listeners and (listener := active_listener()) is not None and Traced in map(type, arguments):
            arguments = self._chosen(arguments, listener)
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

    def _chosen(self, arguments: Sequence[Any], listener: Listener) -> Sequence[Any]:
        """Arguments with plain numbers where a region depends on them."""
        found, asked = list(arguments), [arguments[k] for k in self.asked]
        if Traced in map(type, asked):
            plain = listener.choosing(asked, "which elements a kernel touches, since that depends on its arguments,")
            for k, value in zip(self.asked, plain, strict=True):
                found[k] = value
        return found

    def _worked_out(self, arguments: Sequence[Any]) -> AccessRegions:
        found = self._found.copy()
        for number, node in self._nodes:
            found[number] = node.interval(arguments, (), found)
        fixed = self._fixed.live_in_before, self._fixed.live_in, self._fixed.written
        return AccessRegions(
            *[
                part + _evaluated(parametric_axes, found)
                for part, parametric_axes in zip(fixed, self._parametric, strict=True)
            ]
        )

    def _everything(self) -> AccessRegions:
        found: list[BufferRegions] = []
        for part in self._parts:
            buffers = {self._actual(access.buffer) for access in part}
            found.append(whole_regions(filter(self._follows, buffers)))
        return AccessRegions(*found)

    def _split(
        self, symbolic: Iterable[SymbolicRegion], parametric: set[int]
    ) -> tuple[BufferRegions, list[_ParametricRegion]]:
        """Those that are the same in every launch, and those that are not; a few of each buffer."""
        groups: dict[tuple[Buffer, tuple[int | None, ...]], IndexRegions] = {}
        for access in symbolic:
            buffer = self._actual(access.buffer)
            region = self._fixed_part(buffer, access.axes, parametric) if self._follows(buffer) else None
            if region is not None:
                parametric_axes = tuple([node if node in parametric else None for node in access.axes])
                groups.setdefault((buffer, parametric_axes), IndexRegions()).add(region)
        fixed: list[tuple[Buffer, IndexRegion]] = []
        found: list[_ParametricRegion] = []
        for (buffer, parametric_axes), regions in groups.items():
            axes = [
                (axis, node, buffer.shape[axis] or 0) for axis, node in enumerate(parametric_axes) if node is not None
            ]
            for region in regions:
                if axes:
                    found.append(_ParametricRegion(buffer, region, tuple(axes)))
                else:
                    fixed.append((buffer, region))
        return tuple(fixed), found

    def _fixed_part(self, buffer: Buffer, axes: tuple[int, ...], parametric: set[int]) -> IndexRegion | None:
        """The region with the whole of each dimension that depends on arguments; None if there is nothing in it."""
        whole = whole_region(buffer)
        if whole is None:
            return None
        region = list(whole)
        for axis, node in enumerate(axes):
            if node not in parametric:
                low, high = self._found[node]
                first, last = max(low, 0), min(high + 1, whole[axis][1])
                if first >= last:
                    return None
                region[axis] = first, last
        return tuple(region)


def _evaluated(parametric: list[_ParametricRegion], found: Sequence[Interval]) -> BufferRegions:
    return tuple([(v.buffer, region) for v in parametric if (region := v.at(found)) is not None])
