"""Moves checks of indices before loops: one check of the outermost index in place of one every iteration.

    for parallel %i: i32 in 0i32 .. %n:             %1: i64 = cast %n
      %a: u1 = lt %i, 64i32                         %2: i64 = add %1, -1i64
      check bounds "x" %a, %i, 64i32                %3: u1 = lt %2, 64i64
      store @x[%i], 1.0f32                    ->    %4: u1 = ge 0i32, %n
                                                    %5: u1 = or %4, %3
                                                    check bounds "x" %5, %2, 64i64
                                                    for parallel %i: i32 in 0i32 .. %n:
                                                      store @x[%i], 1.0f32

The index is a sum over the indices of the loops (see `tinote.ir.access`), so that it is least and greatest at their
ends; a loop without an iteration checks nothing. Only what every iteration would check is moved, and not before a
loop that prints or has a `while` in it: what it does before the fault can be seen. Of several faults another one than
the first may be reported.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.affine import Affine
from tinote.ir.nodes import Atom, Check, Extent, FaultKind, For, Function, Lit, Op, Prim, Print, Region, Var, While
from tinote.ir.primitives import Primitive
from tinote.ir.prune import prune
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, i32, i64, u1

__all__ = ["hoist_checks"]

#: Sums are computed in i64; with variables and factors up to these, they cannot wrap.
_LARGEST_VALUE = 1 << 32
_LARGEST_FACTOR = 1 << 20


def hoist_checks(fn: Function) -> Function:
    """`fn`, in the CHECKED form, with checks of indices moved out of loops where that is possible."""
    new = _Hoister(fn).run(fn)
    return fn if new is fn else new.with_region(prune(new.region, keep_while=True))


class _Hoister(Rewriter):
    """Outer loops first, so that a check moves as far as it can. Nothing is renamed: the analysis stays true."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.accesses = Accesses(fn)
        self.moved: set[Check] = set()

    def visit(self, op: Op) -> None:
        if isinstance(op, Check) and op in self.moved:
            return
        if isinstance(op, For) and not any(isinstance(inner, Print | While) for inner in walk(op.body)):
            self.collect(op.body, [self.accesses.loops[op]])
        super().visit(op)

    def collect(self, region: Region, loops: list[Loop]) -> None:
        """Move the checks that every iteration of `loops` comes to before the first of them."""
        for op in region.body:
            if isinstance(op, Check):
                if op.kind is FaultKind.BOUNDS and op not in self.moved and self.move(op, loops):
                    self.moved.add(op)
            elif isinstance(op, For) and self.fixed(op.lo, loops[0]) and self.fixed(op.hi, loops[0]):
                self.collect(op.body, [*loops, self.accesses.loops[op]])

    def fixed(self, atom: Atom, loop: Loop) -> bool:
        """Whether an atom is bound before the loop."""
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
        form, length = self.accesses.affine(index), self.accesses.affine(extent)
        ends: list[tuple[Primitive, Affine]] = []
        if sides[0]:
            ends.append((p.ge, self.extreme(form, loops, 1)))
        if sides[1]:
            ends.append((p.lt, self.extreme(form, loops, -1)))
        if not all(self.computable(f, loops[0]) for f in (*[end for _, end in ends], length)):
            return False
        for prim, end in ends:
            here = self.compute(end, check)
            against = Lit(0, i64) if prim is p.ge else self.compute(length, check)
            holds: Atom = self.apply(prim, u1, check, here, against)
            for loop in loops:
                lo, hi = loop.op.args[:2]
                if not (isinstance(lo, Lit) and isinstance(hi, Lit) and lo.value < hi.value):
                    empty = self.apply(p.ge, u1, check, lo, hi)
                    holds = self.apply(p.or_, u1, check, empty, holds)
            shown = against if prim is p.lt else self.compute(length, check)
            told = (holds, here, shown, *check.args[3:])
            self.emit(Check(FaultKind.BOUNDS, told, check.text, check.axis, check.loc))
        return True

    def sides(self, condition: Atom, index: Atom, extent: Atom) -> tuple[bool, bool] | None:
        """Which sides a condition tests: `index >= 0`, `index < extent`, or both; None if it is another condition."""
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

    def computable(self, form: Affine, loop: Loop) -> bool:
        """Whether a form can be computed before the loop, in i64 and without wrapping."""
        for v, c in form.terms.items():
            low, high = self.accesses.interval(v)
            small = abs(c) <= _LARGEST_FACTOR and low >= -_LARGEST_VALUE and high <= _LARGEST_VALUE
            if not small or not (self.fixed(v, loop) or isinstance(self.accesses.definitions.get(v), Extent)):
                return False
        return len(form.terms) < 64 and abs(form.const) < 1 << 48

    def apply(self, prim: Primitive, t: Scalar, near: Op, *args: Atom) -> Var:
        out = Var(t)
        self.emit(Prim(prim, args, (out,), near.loc, near.origin))
        return out

    def compute(self, form: Affine, near: Op) -> Atom:
        """Emit the computation of a form."""
        total: Atom | None = None
        for v, c in form.terms.items():
            term: Atom = self.again(v, near)
            if term.type is not i64:
                term = self.apply(p.cast, i64, near, term)
            if c != 1:
                term = self.apply(p.mul, i64, near, term, Lit(c, i64))
            total = term if total is None else self.apply(p.add, i64, near, total, term)
        if total is None:
            return Lit(form.const, i64)
        return self.apply(p.add, i64, near, total, Lit(form.const, i64)) if form.const else total

    def again(self, v: Var, near: Op) -> Var:
        """A variable where it may not be in scope: an extent is asked for anew."""
        op = self.accesses.definitions.get(v)
        if not isinstance(op, Extent):
            return v
        out = Var(i32, v.name)
        self.emit(Extent(op.buffer, op.axis, (out,), near.loc))
        return out
