"""Merges bounds checks of one window: of indices that differ by constants and come from one place in the source.

    check that %b is in 0 .. 64                     check that %b is in 0 .. 62
    %v: f32 = load @x[%b]                           %v: f32 = load @x[%b]
    %c: i32 = add %b, 2i32                    ->    %c: i32 = add %b, 2i32
    check that %c is in 0 .. 64                     %w: f32 = load @x[%c]
    %w: f32 = load @x[%c]

One place in the source is one subscript that was unrolled, so the merged check still names the user's own line. It
shows the first or the last index of the window, depending on which is out of range. A check does not move past a print,
an assertion or a `while`, whose effects before the fault are visible.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.access import MAX_SUMMAND, base_and_offset
from tinote.ir.nodes import Atom, Check, FaultKind, Function, Lit, Op, Prim, Print, Region, Var, While
from tinote.ir.query import definitions, has_any
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import i32, u1
from tinote.source import Span


def merge_checks(fn: Function) -> Function:
    """`fn`, in the CHECKED form, with one check per window."""
    return _Merger(fn).run(fn) if has_any(fn.region, Check) else fn


class _Key(NamedTuple):
    """The properties that all checks of a window share."""

    base: Var
    extent: int
    text: str
    axis: int
    place: Span


class _Window(NamedTuple):
    """A window: the least and the greatest distance from `base`."""

    base: Var
    least: int
    greatest: int


class _Merger(Rewriter):
    """Nothing is renamed, so facts about the old operations stay true."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.made = definitions(fn.region)
        #: the first check of each window, and those merged into it
        self.windows: dict[Op, _Window] = {}
        self.merged: set[Op] = set()
        self.seen: dict[Op, bool] = {}

    def enter(self, region: Region) -> None:
        groups: dict[_Key, list[tuple[Check, int]]] = {}
        for op in region.body:
            if isinstance(op, Check) and op.kind is FaultKind.BOUNDS:
                key, distance = self.key_of(op)
                if key is not None:
                    groups.setdefault(key, []).append((op, distance))
            elif self.can_be_seen(op):
                self.close(groups)
        self.close(groups)

    def can_be_seen(self, op: Op) -> bool:
        """Whether an operation, or one inside it, has effects that are visible after a fault."""
        if not op.regions:
            return _can_be_seen(op)
        if op not in self.seen:
            inside = (inner for region in op.regions for inner in region.body)
            self.seen[op] = _can_be_seen(op) or any(map(self.can_be_seen, inside))
        return self.seen[op]

    def close(self, groups: dict[_Key, list[tuple[Check, int]]]) -> None:
        """Close these windows: later checks do not join them."""
        for key, members in groups.items():
            if len(members) > 1:
                distances = [distance for _, distance in members]
                self.windows[members[0][0]] = _Window(key.base, min(distances), max(distances))
                self.merged.update([check for check, _ in members[1:]])
        groups.clear()

    def key_of(self, check: Check) -> tuple[_Key | None, int]:
        """The window that a check belongs to, and its distance; only a check of both sides belongs to one."""
        condition, index, extent = check.args[:3]
        base, distance = base_and_offset(index, self.made)
        if base is None or base.type is not i32 or not isinstance(extent, Lit) or not self.both_sides(condition, check):
            return None, 0
        distance = i32.wrap(distance)
        if not (0 <= extent.value < MAX_SUMMAND and abs(distance) < MAX_SUMMAND):
            return None, 0
        return _Key(base, int(extent.value), check.text, check.axis, check.loc), distance

    def both_sides(self, condition: Atom, check: Check) -> bool:
        """Whether a condition says that the index is not negative and below the extent."""
        _, index, extent = check.args[:3]
        both = self.made.get(condition) if isinstance(condition, Var) else None
        if not isinstance(both, Prim) or both.prim is not p.and_:
            return False
        low, high = (self.made.get(a) if isinstance(a, Var) else None for a in both.args)
        return (
            isinstance(low, Prim)
            and isinstance(high, Prim)
            and (low.prim, low.args) == (p.ge, (index, Lit(0, i32)))
            and (high.prim, high.args) == (p.lt, (index, extent))
        )

    def visit(self, op: Op) -> None:
        window = self.windows.get(op)
        if window is not None:
            assert isinstance(op, Check)
            self.check(op, window)
        elif op not in self.merged:
            super().visit(op)

    def check(self, op: Check, window: _Window) -> None:
        base, least, greatest = window
        extent = op.args[2]
        assert isinstance(extent, Lit)
        high_enough = self.apply(p.ge, u1, op, base, Lit(-least, i32))
        low_enough = self.apply(p.lt, u1, op, base, Lit(int(extent.value) - greatest, i32))
        first = self.apply(p.add, i32, op, base, Lit(least, i32))
        last = self.apply(p.add, i32, op, base, Lit(greatest, i32))
        shown = self.apply(p.select, i32, op, high_enough, last, first)
        inside = self.apply(p.and_, u1, op, high_enough, low_enough)
        self.emit(Check(FaultKind.BOUNDS, (inside, shown, extent, *op.args[3:]), op.text, op.axis, op.loc))


def _can_be_seen(op: Op) -> bool:
    """Whether an operation has an effect that is visible after a fault."""
    return isinstance(op, Print | While) or (isinstance(op, Check) and op.kind is FaultKind.ASSERT)
