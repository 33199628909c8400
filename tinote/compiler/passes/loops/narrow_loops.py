"""Narrows loop bounds to the iterations in which the body does anything.

    for parallel %i: i32 in 0i32 .. 64i32:
      %a: u1 = gt %i, 0i32
      for parallel %j: i32 in 0i32 .. %n:               for parallel %i: i32 in 1i32 .. 64i32:
        %b: u1 = lt %j, 63i32                    ->       %m: i32 = min %n, 63i32
        %c: u1 = and %a, %b                               for parallel %j: i32 in 0i32 .. %m:
        if %c:                                              …
          …

A comparison of the index with a loop invariant becomes a bound. An invariant condition moves out of the loop (not out
of the outermost one, whose iterations threads share). Inner loops come first, so that a condition moves out to the loop
whose index it tests. Bounds checks, differentiation and vectorisation then find loops without branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Extent, For, Function, If, Lit, Op, Prim, Region, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import bound_in, definitions
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import u1


def narrow_loops(fn: Function) -> Function:
    """`fn` with conditions on indices turned into loop bounds."""
    return _Narrower(fn).run(fn)


class _Narrower(Rewriter):
    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.definitions = definitions(fn.region)
        self.depth = 0

    def nest(self, op: Op) -> None:
        self.depth += 1
        super().nest(op)
        self.depth -= 1

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, For) or op.outs or not op.body.body:
            return KEEP
        *before, last = op.body.body
        if not isinstance(last, If) or last.outs or last.orelse.body or not all(map(_computes, before)):
            return KEEP
        bound = bound_in(op.body)
        lo, hi = op.lo, op.hi
        staying: list[Atom] = []
        leaving: list[Atom] = []
        for condition in self.conjuncts(last.condition):
            narrower = self.narrowed(condition, op.index, lo, hi, bound)
            if narrower is not None:
                lo, hi = narrower
            elif condition not in bound and self.depth > 1:
                leaving.append(condition)
            else:
                staying.append(condition)
        if lo is op.lo and hi is op.hi and not leaving:
            return KEEP
        body = (*before, *self.guarded(staying, last.then.body, last))
        narrowed = op.rebuilt((lo, hi), (Region(op.body.params, body),))
        for made in self.guarded(leaving, (narrowed,), op):
            self.emit(made)
        return ()

    def conjuncts(self, condition: Atom) -> list[Atom]:
        """The conjuncts of a condition."""
        found: dict[Atom, None] = {}
        waiting = [condition]
        while waiting:
            atom = waiting.pop()
            op = self.definitions.get(atom) if type(atom) is Var else None
            if isinstance(op, Prim) and op.prim is p.and_ and atom not in found:
                waiting += [self.get(a) for a in reversed(op.args)]
            else:
                found[atom] = None
        return list(found)

    def narrowed(self, condition: Atom, index: Var, lo: Atom, hi: Atom, bound: set[Var]) -> tuple[Atom, Atom] | None:
        """The bounds of the iterations in which `condition` holds, if it compares the index with a loop invariant."""
        op = self.definitions.get(condition) if type(condition) is Var else None
        if not isinstance(op, Prim) or op.prim not in (p.lt, p.le, p.gt, p.ge):
            return None
        prim, (a, b) = op.prim, (self.get(x) for x in op.args)
        if b is index:
            prim, a, b = p.MIRRORED[prim], b, a
        if a is not index or b in bound:
            return None
        if prim in (p.gt, p.le):
            # To the next number, which must be one.
            if not isinstance(b, Lit) or b.value >= index.type.highest:  # type: ignore[union-attr]
                return None
            b = Lit(int(b.value) + 1, b.type)
        if prim in (p.gt, p.ge):
            return self.choice(p.maximum, lo, b, op), hi
        return lo, self.choice(p.minimum, hi, b, op)

    def choice(self, prim: Primitive, a: Atom, b: Atom, near: Op) -> Atom:
        if isinstance(a, Lit) and isinstance(b, Lit):
            return a if (a.value >= b.value) is (prim is p.maximum) else b
        return self.apply(prim, a.type, near, a, b)

    def guarded(self, conditions: Sequence[Atom], body: tuple[Op, ...], near: Op) -> tuple[Op, ...]:
        """`body` under conditions."""
        if not conditions:
            return body
        made: list[Op] = []
        condition, *others = conditions
        for other in others:
            both = Var(u1)
            made.append(Prim(p.and_, (condition, other), (both,), near.loc, near.origin))
            self.definitions[both] = made[-1]
            condition = both
        return (*made, If(condition, Region((), body), Region((), ()), (), near.loc, near.origin))


def _computes(op: Op) -> bool:
    return isinstance(op, Prim | Extent) and not (isinstance(op, Prim) and op.prim is p.random_bits)
