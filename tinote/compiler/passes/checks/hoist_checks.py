"""Hoists bounds checks out of loops: one check of the extreme index in place of one per iteration.

    for parallel %i: i32 in 0i32 .. %n:             %1: i64 = cast %n
      %a: u1 = lt %i, 64i32                         %2: i64 = add %1, -1i64
      check bounds "x" %a, %i, 64i32                %3: u1 = lt %2, 64i64
      store @x[%i], 1.0f32                    ->    %4: u1 = ge 0i32, %n
                                                    %5: u1 = or %4, %3
                                                    check bounds "x" %5, %2, 64i64
                                                    for parallel %i: i32 in 0i32 .. %n:
                                                      store @x[%i], 1.0f32

The index is affine in the loop indices (see `tinote.ir.access`), so it is least and greatest at the ends of the loops;
a loop without iterations checks nothing. A sum that may wrap counts as the exact one where it would have to wrap from
below i32 to come into range again: %n * %i + %j, with %j from 0. Only checks that every iteration executes move, and
never past a print or a `while`, whose effects before the fault are visible. Of several faults, another one than the
first may be reported.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.access import accesses_of
from tinote.ir.affine import Affine
from tinote.ir.emit_sums import emit_sum, fits
from tinote.ir.nodes import Atom, Check, FaultKind, For, Function, Lit, Op, Prim, Print, Region, Var, While
from tinote.ir.primitives import Primitive
from tinote.ir.prune import prune
from tinote.ir.query import has_any, trip_count, walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import i32, i64, u1


def hoist_checks(fn: Function) -> Function:
    """`fn`, in the CHECKED form, with checks of indices moved out of loops where that is possible."""
    new = _Hoister(fn).run(fn) if has_any(fn.region, Check) else fn
    return fn if new is fn else new.with_region(prune(new.region, keep_while=True))


class _Hoister(Rewriter):
    """Outer loops first, so that a check moves as far as it can. Nothing is renamed: the analysis stays true."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.accesses = accesses_of(fn)
        self.moved: set[Check] = set()

    def visit(self, op: Op) -> None:
        if isinstance(op, Check) and op in self.moved:
            return
        if isinstance(op, For) and not any(isinstance(inner, Print | While) for inner in walk(op.body)):
            self.collect(op.body, [self.accesses.loops[op]])
        super().visit(op)

    def collect(self, region: Region, loops: list[Loop]) -> None:
        """Move the checks that every iteration of `loops` executes to before the first of them."""
        for op in region.body:
            if isinstance(op, Check):
                if op.kind is FaultKind.BOUNDS and op not in self.moved and self.move(op, loops):
                    self.moved.add(op)
            elif isinstance(op, For) and self.fixed(op.lo, loops[0]) and self.fixed(op.hi, loops[0]):
                self.collect(op.body, [*loops, self.accesses.loops[op]])

    def fixed(self, atom: Atom, loop: Loop) -> bool:
        """Whether an atom is defined before the loop."""
        if not isinstance(atom, Var):
            return True
        home = self.accesses.home.get(atom)
        return home is None or not home.inside(loop)

    def move(self, check: Check, loops: list[Loop]) -> bool:
        """Emit `check` for all iterations at once, if that can be done."""
        condition, index, extent = check.args[:3]
        sides = self.sides(condition, index, extent)
        if sides is None:
            return False
        form, length = self.exact(index), self.accesses.affine(extent)
        ends: list[tuple[Primitive, Affine]] = []
        if sides[0]:
            ends.append((p.ge, self.extreme(form, loops, 1)))
        if sides[1]:
            ends.append((p.lt, self.extreme(form, loops, -1)))
        if not all(fits(f, self.accesses, lambda v: self.fixed(v, loops[0])) for f in (*[e for _, e in ends], length)):
            return False
        for prim, end in ends:
            here = emit_sum(end, self.accesses, self.emit, check)
            against = Lit(0, i64) if prim is p.ge else emit_sum(length, self.accesses, self.emit, check)
            holds: Atom = self.apply(prim, u1, check, here, against)
            for loop in loops:
                lo, hi = loop.op.args[:2]
                if not trip_count(lo, hi):
                    empty = self.apply(p.ge, u1, check, lo, hi)
                    holds = self.apply(p.or_, u1, check, empty, holds)
            shown = against if prim is p.lt else emit_sum(length, self.accesses, self.emit, check)
            arguments = (holds, here, shown, *check.args[3:])
            self.emit(Check(FaultKind.BOUNDS, arguments, check.text, check.axis, check.loc))
        return True

    def exact(self, index: Atom) -> Affine:
        """An index as a sum; one that wraps is in range just where that sum is, if the sum is not below i32."""
        form = self.accesses.affine(index)
        found = self.accesses.remainder(form) if index.type is i32 else None
        if found is None or found.divisor != 1 << 32:
            return form
        low, high = found.dividend.interval(self.accesses.interval)
        return found.dividend if low >= -(1 << 31) and high < 1 << 32 else form

    def sides(self, condition: Atom, index: Atom, extent: Atom) -> tuple[bool, bool] | None:
        """The bounds that a condition tests: `index >= 0`, `index < extent`, or both; None if it is another
        condition.
        """
        op = self.accesses.definitions.get(condition) if isinstance(condition, Var) else None
        if not isinstance(op, Prim):
            return None
        if op.prim is p.and_:
            first = self.sides(op.args[0], index, extent)
            second = self.sides(op.args[1], index, extent)
            return None if first is None or second is None else (first[0] or second[0], first[1] or second[1])
        if op.prim is p.ge and op.args[0] == index and op.args[1] == Lit(0, i32 if index.type is i32 else i64):
            return True, False
        if op.prim is p.lt and op.args == (index, extent):
            return False, True
        return None

    def extreme(self, form: Affine, loops: list[Loop], sign: int) -> Affine:
        """The least value of a form over all iterations (`sign` 1), or the greatest (-1)."""
        for loop in reversed(loops):
            assert loop.index is not None
            factor = form.coefficient(loop.index) * sign
            if factor:
                lo, hi = loop.op.args[:2]
                form = form.replaced(
                    loop.index, self.accesses.affine(lo) if factor > 0 else self.accesses.affine(hi).shifted(-1)
                )
        return form
