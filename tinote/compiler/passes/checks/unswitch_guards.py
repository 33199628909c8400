"""Unswitches guards of one window: where all of them hold, the code between the first and the last runs without them.

    %1: u1 = … %b is in 0 .. 64                     %t: u1 = … %b is in 0 .. 61
    if %1:                                          if likely %t:
      atomic add @x[%b], %v                           atomic add @x[%b], %v
    …                                                 atomic add @x[%c], %v
    %3: u1 = … %d = %b + 2 is in 0 .. 64    ->        atomic add @x[%d], %v
    if %3:                                          else:
      atomic add @x[%d], %v                           %1: u1 = … %b is in 0 .. 64
    …                                                 …

The guards are those of `guard_accesses`, and of the program itself where it guards its accesses in the same form. The
indices of a window differ by constants and by indices of short loops; one test of their base decides all of them.
Loops that only read stay as they are: LLVM masks what they read, and runs several iterations at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import MAX_SUMMAND
from tinote.ir.lanes import lanes_of
from tinote.ir.query import bound_in, definitions, free_variables, is_shorter, surely_iterates, trip_count, walk
from tinote.ir.rewrite import Rewriter, clone_region
from tinote.ir.types import i32, u1

#: With fewer guards, and fewer for each base, what is saved is not worth a second copy of the code. Chosen.
_FEWEST, _FEWEST_EACH = 4, 2
#: Operations that are copied at most. Chosen.
_MOST_OPERATIONS = 4_000
#: Iterations of loops whose indices are part of a window. Chosen.
_MOST_ITERATIONS = 16


def unswitch_guards(fn: ir.Function) -> ir.Function:
    """`fn`, in the LOWERED form, with code of its own where many guards hold at once."""
    return _Unswitcher(fn).run(fn)


class _Side(NamedTuple):
    """One side of a guard: `base`, plus a number from `least` to `greatest`, is not negative or below `extent`."""

    base: ir.Var
    least: int
    greatest: int
    extent: ir.Atom | None


class _Window:
    """The sides that are tested of one base."""

    def __init__(self) -> None:
        self.least = MAX_SUMMAND
        self.greatest = -MAX_SUMMAND
        self.extents: dict[ir.Atom, int] = {}

    def add(self, side: _Side) -> None:
        self.least = min(self.least, side.least)
        self.greatest = max(self.greatest, side.greatest)
        if side.extent is not None:
            self.extents[side.extent] = max(self.extents.get(side.extent, -MAX_SUMMAND), side.greatest)


class _Unswitcher(Rewriter):
    """Nothing is renamed outside of what is copied, so facts about the old operations stay true."""

    def __init__(self, fn: ir.Function) -> None:
        super().__init__()
        self.top = fn.region
        self.made = definitions(fn.region)
        self.loops = {op.index: op for op in walk(fn.region) if isinstance(op, ir.For)}

    def nest(self, op: ir.Op) -> None:
        vector = isinstance(op, ir.For | ir.Task) and (op.vectorize or lanes_of(op) > 1)  # which masks its accesses
        if vector or (isinstance(op, ir.If) and op.likely):
            self.emit(op)
        else:
            super().nest(op)

    def region(self, region: ir.Region) -> ir.Region:
        found = None if region is self.top else self.unswitched(region)
        return super().region(region) if found is None else found

    def unswitched(self, region: ir.Region) -> ir.Region | None:
        """`region` with a copy of what its guards are in; None if they are too few, or no test decides them."""
        body = region.body
        inside = [list(_guards_in(op)) for op in body]
        holders = [k for k, guards in enumerate(inside) if guards]
        if not any(_writes(guard) for guard, _ in chain(*inside)):
            return None
        first, last = holders[0], holders[-1] + 1
        part = ir.Region((), body[first:last])
        later = bound_in(part)
        windows: dict[ir.Var, _Window] = {}
        holding: set[ir.Atom] = set()
        decided = 0
        for guard, times in chain(*inside):
            sides = self.sides(guard.condition, later)
            if sides is not None:
                holding.add(guard.condition)
                decided += times
                for side in sides:
                    windows.setdefault(side.base, _Window()).add(side)
        if decided < max(_FEWEST, _FEWEST_EACH * len(windows)) or sum(1 for _ in walk(part)) > _MOST_OPERATIONS:
            return None
        outs = [v for v in free_variables(ir.Region((), body[last:], region.yields)) if v in later]
        part = ir.Region((), part.body, tuple(outs))
        saved, self.out = self.out, list(body[:first])
        condition = self.test(windows, body[first])
        straight, _ = clone_region(_Straight(holding).region(part))
        guarded, _ = clone_region(part)
        self.emit(ir.If(condition, straight, guarded, tuple(outs), body[first].loc, likely=True))
        new, self.out = (*self.out, *body[last:]), saved
        return ir.Region(region.params, new, region.yields)

    def sides(self, condition: ir.Atom, later: set[ir.Var]) -> list[_Side] | None:
        """The sides that a condition tests; None if it tests something else, or what is bound `later`."""
        op = self.made.get(condition) if isinstance(condition, ir.Var) else None
        if not isinstance(op, ir.Prim):
            return None
        if op.prim is p.and_:
            first, second = (self.sides(part, later) for part in op.args)
            return None if first is None or second is None else first + second
        if op.prim is p.ge and op.args[1] == ir.Lit(0, i32):
            side = self.side(op.args[0], None, later)
        elif op.prim is p.lt and op.args[1].type is i32:
            side = self.side(op.args[0], op.args[1], later)
        else:
            return None
        return None if side is None else [side]

    def side(self, index: ir.Atom, extent: ir.Atom | None, later: set[ir.Var]) -> _Side | None:
        least = greatest = 0
        while isinstance(index, ir.Var):
            op = self.made.get(index)
            added = self.window_of(op.args[1], later) if isinstance(op, ir.Prim) and op.prim in (p.add, p.sub) else None
            if added is None:
                break
            assert isinstance(op, ir.Prim)
            low, high = added if op.prim is p.add else (-added[1], -added[0])
            least, greatest, index = least + low, greatest + high, op.args[0]
        if not isinstance(index, ir.Var) or index in later or max(-least, greatest) >= MAX_SUMMAND:
            return None
        known = extent is None or self.is_length(extent, later)
        return _Side(index, least, greatest, extent) if known else None

    def is_length(self, extent: ir.Atom, later: set[ir.Var]) -> bool:
        """Whether an extent is certainly not negative, and bound before."""
        if isinstance(extent, ir.Lit):
            return 0 <= extent.value < MAX_SUMMAND
        return extent not in later and isinstance(self.made.get(extent), ir.Extent)

    def window_of(self, atom: ir.Atom, later: set[ir.Var]) -> tuple[int, int] | None:
        """The least and the greatest value of a number, or of the index of a short loop inside of what is copied."""
        if isinstance(atom, ir.Lit):
            return int(atom.value), int(atom.value)
        loop = self.loops.get(atom) if atom in later else None
        if loop is None or not is_shorter(loop, _MOST_ITERATIONS + 1) or not surely_iterates(loop):
            return None
        assert isinstance(loop.lo, ir.Lit) and isinstance(loop.hi, ir.Lit)
        return int(loop.lo.value), int(loop.hi.value) - 1

    def test(self, windows: dict[ir.Var, _Window], near: ir.Op) -> ir.Atom:
        """The condition that each base is where all of its window is inside. A sum cannot wrap there."""
        condition: ir.Atom | None = None
        for base, window in windows.items():
            parts = [self.apply(p.ge, u1, near, base, ir.Lit(-window.least, i32))]
            for extent, greatest in (window.extents or {ir.Lit(MAX_SUMMAND, i32): window.greatest}).items():
                parts.append(self.apply(p.lt, u1, near, base, self.minus(extent, greatest, near)))
            for part in parts:
                condition = part if condition is None else self.apply(p.and_, u1, near, condition, part)
        assert condition is not None
        return condition

    def minus(self, extent: ir.Atom, by: int, near: ir.Op) -> ir.Atom:
        if isinstance(extent, ir.Lit):
            return ir.Lit(int(extent.value) - by, i32)
        return self.apply(p.sub, i32, near, extent, ir.Lit(by, i32)) if by > 0 else extent


class _Straight(Rewriter):
    """Leaves out the tests of conditions that hold."""

    def __init__(self, holding: set[ir.Atom]) -> None:
        super().__init__()
        self.env = dict.fromkeys(holding, ir.true)  # type: ignore[arg-type]

    def visit(self, op: ir.Op) -> None:
        if isinstance(op, ir.Prim) and op.out in self.env:
            return
        super().visit(op)

    def nest(self, op: ir.Op) -> None:
        if not isinstance(op, ir.If) or self.get(op.condition) != ir.true:
            super().nest(op)
            return
        for inner in op.then.body:
            self.visit(inner)
        for out, y in zip(op.outs, op.then.yields, strict=True):
            self.env[out] = self.get(y)


def _guards_in(op: ir.Op, times: int = 1) -> Iterator[tuple[ir.If, int]]:
    """The guards among an operation and what it contains, outermost first, and how often each is asked at least; a
    `while` may end before it reaches them.
    """
    if isinstance(op, ir.If) and _is_guard(op):
        yield op, times
    elif not isinstance(op, ir.While) and not (isinstance(op, ir.If) and op.likely):
        count = trip_count(op.lo, op.hi) if isinstance(op, ir.For) else 1
        for region in op.regions:
            for inner in region.body:
                yield from _guards_in(inner, times if count is None else times * count)


def _writes(guard: ir.If) -> bool:
    return any(op.writes for op in walk(guard.then))


def _is_guard(op: ir.If) -> bool:
    """Whether nothing happens where the condition does not hold, or only there, as where it is counted."""
    alone = not op.orelse.body and all(isinstance(y, ir.Lit) for y in op.orelse.yields)
    return alone or not (op.then.body or op.outs)
