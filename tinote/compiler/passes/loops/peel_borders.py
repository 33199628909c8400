"""Reads what a row of cells needs of the next block before the loop over the row.

    for %k: i32 in 0i32 .. 16i32:                   %b.1: i32 = add %q, 1i32
      %i: i32 = add %first, %k                      %last: f32 = load @x[%b.1, 0i32]
      %t: i32 = add %i, 1i32                        for %k: i32 in 0i32 .. 16i32:
      %b: i32 = shr %t, 4i32                 ->       %in: u1 = lt %k, 15i32
      %c: i32 = and %t, 15i32                         %v: f32 = if %in:
      %v: f32 = load @x[%b, %c]                         %c: i32 = add %k, 1i32
                                                        %v.1: f32 = load @x[%q, %c]
                                                        yield %v.1
                                                      else:
                                                        yield %last

`%first` is `%q` times 16, so a neighbour is in the same block, or, of the last cell, in the next one. Vector code reads
consecutive elements then, in place of one by one. What is read before is in range, whatever the iterations do: its
place is moved into the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.access import Accesses, buffers_may_meet
from tinote.ir.affine import Affine
from tinote.ir.emit_sums import emit_sum
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, For, Function, If, Lit, Load, Op, Prim, Region, Store, Var
from tinote.ir.query import bound_in, trip_count, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import i32, u1

#: Shorter loops are no work for vector lanes.
_SHORTEST = 8
#: An index that is computed in more steps is left alone.
_MOST_STEPS = 64
_QUOTIENTS = (p.shr, p.floordiv)
_REMAINDERS = (p.and_, p.mod)
#: What indices are computed by.
_ARITHMETIC = (p.add, p.sub, p.mul, *_QUOTIENTS, *_REMAINDERS)


def peel_borders(fn: Function) -> Function:
    """`fn` with neighbours in the next block read before innermost loops."""
    return _Peeler(fn).run(fn)


class _Row(NamedTuple):
    """An innermost loop over `extent` cells: what is defined in it, and the memory that it writes to."""

    cell: Var
    extent: int
    bound: set[Var]
    written: set[Buffer]


class _Border(NamedTuple):
    """`t` is `extent` · `quotient` + the index of the loop + `shift`, which is 1 or -1."""

    t: Atom
    quotient: Affine
    shift: int


class _Peeler(Rewriter):
    """Nothing is renamed."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.ranges = Accesses(fn)
        self.row: _Row | None = None
        self.before: list[Op] = []

    def nest(self, op: Op) -> None:
        if not isinstance(op, For):
            super().nest(op)
            return
        saved = self.row, self.before
        self.row, self.before = _row(op), []
        super().nest(op)
        self.row, self.before = saved

    def on(self, op: Op) -> Decision:
        if isinstance(op, For):
            self.out += self.before
        return KEEP

    def visit(self, op: Op) -> None:
        row = self.row
        if isinstance(op, Load) and row is not None and op.buffer.kind is BufferKind.FIELD:
            is_written = any(buffers_may_meet(op.buffer, other) for other in row.written)
            border = None if is_written else self.border(op.index, row)
            if border is not None and self.peel(op, border, row):
                return
        super().visit(op)

    def border(self, index: Sequence[Atom], row: _Row) -> _Border | None:
        """What of an index is divided by the length of the row, and may be in one block or the next."""
        found: _Border | None = None
        waiting, seen = [*index], set[Atom]()
        while waiting:
            atom = waiting.pop()
            op = self.ranges.definitions.get(atom) if isinstance(atom, Var) and atom in row.bound else None
            if atom in seen or not isinstance(op, Prim) or op.prim not in _ARITHMETIC:
                continue
            seen.add(atom)
            if len(seen) > _MOST_STEPS:
                return None
            if found is None and _divisor(op) == row.extent:
                found = self.over_border(op.args[0], row)
            waiting += op.args
        return found

    def over_border(self, t: Atom, row: _Row) -> _Border | None:
        """Whether `t` is that of a neighbour in the row."""
        form = self.ranges.affine(t)
        shift = (form.const + 1) % row.extent - 1
        rest = Affine(form.const - shift, {v: c for v, c in form.terms.items() if v is not row.cell})
        is_whole = not any(v in row.bound or c % row.extent for v, c in rest.terms.items())
        if abs(shift) != 1 or form.coefficient(row.cell) != 1 or not is_whole:
            return None
        return _Border(t, Affine(rest.const // row.extent, {v: c // row.extent for v, c in rest.terms.items()}), shift)

    def peel(self, op: Load, border: _Border, row: _Row) -> bool:
        """Read the neighbour of the border before the row, if its place is known there."""
        saved, self.out = self.out, []
        places = [self.place(a, border, row, op, {}, beyond=True) for a in op.index]
        before, self.out = self.out, saved
        if any(place is None for place in places):
            return False
        self.out = before
        index: list[Atom] = []
        for place, old, extent in zip(places, op.index, (*op.buffer.shape, *op.buffer.element), strict=True):
            assert place is not None
            if place is not old and extent is not None:
                place = self.apply(p.minimum, i32, op, place, Lit(extent - 1, i32))
                place = self.apply(p.maximum, i32, op, place, Lit(0, i32))
            index.append(place)
        first = Var(op.out.type, op.out.name)
        self.emit(op.rebuilt(tuple(index), (), (first,)))
        self.before += self.out
        self.out = []
        within = [self.place(a, border, row, op, {}, beyond=False) or a for a in op.index]
        value = Var(op.out.type, op.out.name)
        self.emit(op.rebuilt(tuple(within), (), (value,)))
        body, self.out = self.out, saved
        limit = Lit(row.extent - 1 if border.shift > 0 else 1, i32)
        inside = self.apply(p.lt if border.shift > 0 else p.ge, u1, op, row.cell, limit)
        self.emit(If(inside, Region((), tuple(body), (value,)), Region((), (), (first,)), op.outs, op.loc, op.origin))
        return True

    def place(
        self, atom: Atom, border: _Border, row: _Row, near: Op, known: dict[Atom, Atom | None], *, beyond: bool
    ) -> Atom | None:
        """What a part of an index is in the same block, or, `beyond` it, of the neighbour there: known before the loop,
        or None.
        """
        if atom not in row.bound:
            return atom
        if atom in known:
            return known[atom]
        known[atom] = None if beyond else atom
        op = self.ranges.definitions.get(atom)
        if isinstance(op, Prim) and op.prim in _ARITHMETIC:
            divisor = _divisor(op)
            if op.args[0] == border.t and divisor and divisor % row.extent == 0:
                known[atom] = self.digit(op, border, row, divisor, near, beyond=beyond)
            else:
                args = [self.place(a, border, row, near, known, beyond=beyond) for a in op.args]
                if None not in args and (beyond or tuple(args) != op.args):
                    known[atom] = self.apply(op.prim, op.out.type, near, *args)  # type: ignore[arg-type]
        return known[atom]

    def digit(self, op: Prim, border: _Border, row: _Row, divisor: int, near: Op, *, beyond: bool) -> Atom:
        """A quotient of `t`, or its remainder."""
        cell: Atom = Lit(0 if border.shift > 0 else row.extent - 1, i32)
        if not beyond:
            cell = self.apply(p.add, i32, near, row.cell, Lit(border.shift, i32))
        if op.prim in _REMAINDERS and divisor == row.extent:
            return cell
        block = emit_sum(border.quotient.shifted(border.shift if beyond else 0), self.ranges, self.emit, near, i32)
        if divisor > row.extent:
            by = Lit(divisor // row.extent, i32)
            block = self.apply(p.floordiv if op.prim in _QUOTIENTS else p.mod, i32, near, block, by)
        if op.prim in _QUOTIENTS:
            return block
        return self.apply(p.add, i32, near, self.apply(p.mul, i32, near, block, Lit(row.extent, i32)), cell)


def _row(op: For) -> _Row | None:
    count = trip_count(op.lo, op.hi)
    if count is None or count < _SHORTEST or op.parallel or op.lo != Lit(0, i32):
        return None
    inside = [*walk(op.body)]
    if any(isinstance(one, For) for one in inside):
        return None
    written = {one.buffer for one in inside if isinstance(one, Store | Atomic)}
    return _Row(op.index, count, bound_in(op.body), written)


def _divisor(op: Prim) -> int:
    """What an operation divides by, or gives the remainder of; 0 for others."""
    by = op.args[1] if len(op.args) == 2 else None
    if not isinstance(by, Lit) or op.out.type is not i32:
        return 0
    n = int(by.value)
    if op.prim is p.shr:
        return 1 << n
    if op.prim is p.and_:
        return n + 1 if n > 0 and not n & n + 1 else 0
    return n if op.prim in (p.floordiv, p.mod) and n > 0 else 0
