"""How the cells of a sparse field lie in memory, and where it is written which of them are active.

    ti.root.pointer(ti.ij, 4).dense(ti.ij, 8)       two groups: 16 blocks, 64 cells in each
    x[i, j]                                         cell [block, cell] of a dense array of 16 by 64

Each level that can be inactive ends a group, which divides the dimensions once more; the cells of a group are numbered
row by row, and a field has one dimension for each group. So the cells of a block lie in one piece. A group with an
activity has an array of flags with the dimensions of the groups up to its own, or, where it is a list (`dynamic`), of
lengths with the dimensions above it. What is inactive holds zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class CellActivity(NamedTuple):
    """What says which cells of a group are active: `flags`, or, of a list, `lengths`. `listed`: the flags as they were
    when a loop began whose body changes them.
    """

    buffer: Any  # a `Buffer`, which refers to what is here
    listed: Any

    @property
    def is_list(self) -> bool:
        return self.listed is None


class CellGroup(NamedTuple):
    """One division of the dimensions: into how many parts each; `activity`: None where all of them are active."""

    extents: tuple[int, ...]
    activity: CellActivity | None

    @property
    def cells(self) -> int:
        """How many it has."""
        return math.prod(self.extents)


class Sparsity:
    """The groups of a field or level, outermost first. `axes`: the dimensions of the layout tree that it has; `offset`:
    the first index of each, or ().
    """

    __slots__ = ("axes", "groups", "offset", "shape")

    def __init__(self, axes: tuple[int, ...], groups: tuple[CellGroup, ...], offset: tuple[int, ...] = ()) -> None:
        self.axes = axes
        self.groups = groups
        self.offset = offset
        self.shape = tuple([math.prod(parts) for parts in zip(*[group.extents for group in groups], strict=True)])

    @property
    def counts(self) -> tuple[int, ...]:
        """The shape of its storage."""
        return tuple([group.cells for group in self.groups])

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Equal for those whose cells have the same places."""
        return self.shape, self.offset, tuple([group.extents for group in self.groups])

    @property
    def activities(self) -> tuple[tuple[int, CellActivity], ...]:
        """The groups with an activity: how many groups there are up to it, and it."""
        return tuple([(k + 1, g.activity) for k, g in enumerate(self.groups) if g.activity is not None])

    def is_activity(self, buffer: Any) -> bool:
        """Whether a buffer says what is active, and is not what the user sees."""
        return any(buffer in (activity.buffer, activity.listed) for _, activity in self.activities)

    def above_list(self) -> Sparsity | None:
        """The levels above a list, None if it is the only one."""
        axis = self.list_axis
        keep = [k for k in range(len(self.shape)) if k != axis]
        if not keep:
            return None
        groups = tuple([CellGroup(tuple([g.extents[k] for k in keep]), g.activity) for g in self.groups[:-1]])
        offset = tuple([self.offset[k] for k in keep]) if self.offset else ()
        return Sparsity(tuple([self.axes[k] for k in keep]), groups, offset)

    @property
    def list_axis(self) -> int:
        """The dimension along which the lists go: the only one that no other group divides."""
        own = [k for k, n in enumerate(self.groups[-1].extents) if n > 1]
        return own[0] if own else max(k for k in range(len(self.shape)) if all(g.extents[k] == 1 for g in self.groups))

    def inside(self, group: int) -> tuple[int, ...]:
        """How many cells one cell of a group has along each dimension."""
        found = [1] * len(self.shape)
        for inner in self.groups[group + 1 :]:
            found = [n * extent for n, extent in zip(found, inner.extents, strict=True)]
        return tuple(found)

    def places(
        self, index: Sequence[T], divide: Callable[[T, int], T], remainder: Callable[[T, int], T],
        join: Callable[[T, int, T], T], zero: T,
    ) -> tuple[T, ...]:  # fmt: skip
        """The place in the storage of a zero-based index, by arithmetic: `join(a, n, b)` is a * n + b."""
        return self.joined([self.digits(axis, i, divide, remainder) for axis, i in enumerate(index)], join, zero)

    def digits(
        self, axis: int, i: T, divide: Callable[[T, int], T], remainder: Callable[[T, int], T]
    ) -> tuple[T | None, ...]:
        """Which part a zero-based index along a dimension is in, for each group; None where there is but one part."""
        found: list[T | None] = []
        for k, group in enumerate(self.groups):
            extent, cells = group.extents[axis], self.inside(k)[axis]
            part = i if cells == 1 or extent == 1 else divide(i, cells)
            if extent > 1 and cells * extent != self.shape[axis]:
                part = remainder(part, extent)
            found.append(part if extent > 1 else None)
        return tuple(found)

    def joined(self, digits: Sequence[Sequence[T | None]], join: Callable[[T, int, T], T], zero: T) -> tuple[T, ...]:
        """The place of what has these digits in each dimension."""
        found: list[T] = []
        for k, group in enumerate(self.groups):
            place: T | None = None
            for own, extent in zip(digits, group.extents, strict=True):
                part = own[k]
                if part is not None:
                    place = part if place is None else join(place, extent, part)
            found.append(zero if place is None else place)
        return tuple(found)

    def digits_at(
        self, places: Sequence[T], divide: Callable[[T, int], T], remainder: Callable[[T, int], T]
    ) -> tuple[tuple[T | None, ...], ...]:
        """The digits in each dimension of a place in the storage."""
        found: list[list[T | None]] = [[] for _ in self.shape]
        for place, group in zip(places, self.groups, strict=True):
            rest = group.cells
            for own, extent in zip(found, group.extents, strict=True):
                if extent == 1:
                    own.append(None)
                    continue
                is_first, rest = rest == group.cells, rest // extent
                part = place if rest == 1 else divide(place, rest)
                own.append(part if is_first else remainder(part, extent))
        return tuple(map(tuple, found))

    def coordinates(
        self, places: Sequence[T], divide: Callable[[T, int], T], remainder: Callable[[T, int], T],
        join: Callable[[T, int, T], T], zero: T,
    ) -> tuple[T, ...]:  # fmt: skip
        """The zero-based index of a place in the storage: what `places` undoes."""
        return self.counted(self.digits_at(places, divide, remainder), join, zero)

    def counted(self, digits: Sequence[Sequence[T | None]], join: Callable[[T, int, T], T], zero: T) -> tuple[T, ...]:
        """The zero-based index of what has these digits in each dimension."""
        found: list[T] = []
        for axis, own in enumerate(digits):
            index: T | None = None
            for part, group in zip(own, self.groups, strict=True):
                if part is not None:
                    index = part if index is None else join(index, group.extents[axis], part)
            found.append(zero if index is None else index)
        return tuple(found)

    def described(self) -> tuple[Any, ...]:
        """All that it says, as plain values and buffers."""
        activities = [(k, activity.buffer, activity.listed) for k, activity in self.activities]
        return (self.axes, *self.geometry, tuple(activities))

    def __repr__(self) -> str:
        return f"<sparse {self.shape} in {self.counts}>"
