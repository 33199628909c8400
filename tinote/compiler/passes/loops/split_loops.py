"""Index-set splitting: separates the boundary iterations of a parallel loop, where indices are clamped or wrapped, so
that indices are affine in the others.

    for parallel %i: i32 in 0i32 .. 64i32:          for %i.1: i32 in 0i32 .. 1i32:
      %a: i32 = sub %i, 1i32                          … the iteration as it was …
      %j: i32 = max %a, 0i32                        for parallel %i: i32 in 1i32 .. 64i32:
      %v: f32 = load @x[%j]                 ->        %a: i32 = sub %i, 1i32
      store @y[%i], %v                                %v: f32 = load @x[%a]
                                                      store @y[%i], %v

What is decided: `min`, `max`, `abs`, `%` (and a mask of low bits), comparisons, and with them selections and branches,
where all but a few iterations at either end agree. The middle of the loop is the range where all decided operations
hold, computed at launch if bounds or extents are known only then. The boundary iterations are unchanged, in a loop of
their own. So the middle loads and stores consecutive elements, divides nothing, and what a reverse sweep scatters in it
is gathered (`scatter_to_gather`). In a nest each level is split; the boundary of all levels is one nest.

An operation that might wrap is affine in the middle if it does not wrap there. A loop is split only if that removes a
division, a branch, or the clamp of a memory index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinote.compiler.passes.analyses.decide_indices import Decisions, Nest, nest_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import Affine, contains, span_of_type
from tinote.ir.build import Builder
from tinote.ir.emit_sums import emit_sum
from tinote.ir.primitives import Primitive
from tinote.ir.prune import prune
from tinote.ir.ranges import Ranges
from tinote.ir.rewrite import Rewriter, clone_region
from tinote.ir.types import Scalar, i32, i64


def split_loops(fn: ir.Function) -> ir.Function:
    """`fn` with the parallel nests at its top split where indices are clamped or wrapped."""
    nests = {op: nest for op in fn.region.body if (nest := nest_of(op)) is not None}
    return _Splitter(fn, nests).run(fn) if nests else fn


class _Middle(NamedTuple):
    """The middle of a level: the iterations `begin` to `end` of those from `lo` to `hi`."""

    lo: ir.Atom
    begin: ir.Atom
    end: ir.Atom
    hi: ir.Atom

    @property
    def is_all(self) -> bool:
        return self.begin is self.lo and self.end is self.hi


class _Splitter(Rewriter):
    """Only the top of a function is looked at."""

    def __init__(self, fn: ir.Function, nests: dict[ir.Op, Nest]) -> None:
        super().__init__()
        self.ranges = Ranges(fn.region)
        self.nests = nests

    def visit(self, op: ir.Op) -> None:
        nest = self.nests.get(op)
        if nest is None:
            self.out.append(op)
            return
        decisions = Decisions(nest, self.ranges)
        if not decisions.choices or not decisions.worthwhile():
            self.out.append(op)
            return
        self.split(nest, decisions)

    def split(self, nest: Nest, decisions: Decisions) -> None:
        builder = Builder(loc=nest.loops[0].loc, origin=nest.loops[0].origin)
        with builder.region() as opened:
            emitter = _Bounds(builder, self.ranges, nest.loops[0])
            middles = [
                emitter.middle(loop, *bounds) for loop, bounds in zip(nest.loops, decisions.bounds(), strict=True)
            ]
            levels = [k for k, middle in enumerate(middles) if not middle.is_all]
            if levels:
                _Boundary(builder, nest, middles, levels[-1]).level(0, ir.true, {})
        bounds = {nest.loops[k]: (middles[k].begin, middles[k].end) for k in levels}
        middle = _Specialiser(decisions, bounds).region(ir.Region((), (nest.loops[0],)))
        self.out += opened.body
        self.out += prune(middle, keep_while=True).body


class _Bounds:
    """Emits the bounds of the middle."""

    def __init__(self, builder: Builder, ranges: Ranges, near: ir.Op) -> None:
        self.builder = builder
        self.ranges = ranges
        self.near = near

    def middle(self, loop: ir.For, lows: Sequence[Affine], highs: Sequence[Affine]) -> _Middle:
        lo, hi = loop.args[:2]
        if not lows and not highs:
            return _Middle(lo, lo, hi, hi)
        first, last = self.ranges.affine(lo), self.ranges.affine(hi)
        lo, hi = self.before(lo), self.before(hi)
        begin = self.bound(self.strictest([first, *lows], 1), p.maximum, lo, hi)
        # An empty middle ends where it begins.
        end = self.bound(self.strictest([last, *highs], -1), p.minimum, hi, begin)
        return _Middle(lo, begin, end, hi)

    def strictest(self, forms: Sequence[Affine], sign: int) -> list[Affine]:
        """The forms that may be the greatest (`sign` 1) or the least (-1).

        The first one stays first, plus a constant if needed.
        """
        own, *others = forms
        for form in others:
            if not (form - own).terms and (form - own).const * sign > 0:
                own = form
        found = [own]
        for form in others:
            if not any(self.covers(other, form, sign) for other in found):
                found = [own, *[other for other in found[1:] if not self.covers(form, other, sign)], form]
        return found

    def covers(self, a: Affine, b: Affine, sign: int) -> bool:
        """Whether `a` is certainly at least (or at most) `b`."""
        return (a - b).times(sign).interval(self.ranges.interval)[0] >= 0

    def bound(self, forms: Sequence[Affine], prim: Primitive, own: ir.Atom, limit: ir.Atom) -> ir.Atom:
        """The greatest or least of several forms; the first is the loop's bound `own` plus a constant. If that may
        overflow the type, the result is a value between `own` and `limit` that makes the middle empty.
        """
        t = own.type
        assert isinstance(t, Scalar)
        builder, here = self.builder, self.ranges.affine(own)
        distance = (forms[0] - here).const
        if len(forms) == 1:
            if distance == 0:
                return own
            if isinstance(own, ir.Lit) and contains(span_of_type(t), (forms[0].const, forms[0].const)):
                return ir.Lit(forms[0].const, t)
            if contains(span_of_type(t), forms[0].interval(self.ranges.interval)):
                return builder.prim(p.add, own, ir.Lit(distance, t))
            if prim is p.minimum and isinstance(limit, ir.Lit) and limit.value - distance <= t.highest:
                # Where the loop is too short, it ends at `limit` or before.
                enough = builder.prim(p.maximum, own, ir.Lit(limit.value - distance, t))
                return builder.prim(p.add, enough, ir.Lit(distance, t))
        total = self.wide(forms[0])
        for form in forms[1:]:
            total = builder.prim(prim, total, self.wide(form))
        opposite = p.minimum if prim is p.maximum else p.maximum
        return builder.cast(builder.prim(opposite, total, builder.cast(limit, i64)), t)

    def before(self, atom: ir.Atom) -> ir.Atom:
        """A bound as computed before the nest."""
        if isinstance(atom, ir.Lit) or self.ranges.home.get(atom) is None:
            return atom
        assert isinstance(atom.type, Scalar)
        return self.builder.cast(self.wide(self.ranges.affine(atom)), atom.type)

    def wide(self, form: Affine) -> ir.Atom:
        return emit_sum(form, self.ranges, self.builder.emit, self.near)


class _Boundary:
    """Emits the boundary nest: the unchanged iterations outside the middle of some level. At the innermost split level
    (`last`) it runs the iterations before and after the middle, or all of them where an outer index is outside its
    middle.
    """

    def __init__(self, builder: Builder, nest: Nest, middles: Sequence[_Middle], last: int) -> None:
        self.builder = builder
        self.nest = nest
        self.middles = middles
        self.last = last

    def level(self, level: int, inside: ir.Atom, env: dict[ir.Var, ir.Atom]) -> None:
        """The loops from a level inwards.

        `inside`: whether the outer indices are all in the middle; `env`: the substitutions for the variables of the
        outer levels.
        """
        loop = self.nest.loops[level]
        if level == self.last:
            self.ends(loop, self.middles[level], inside, env)
            return
        builder, middle = self.builder, self.middles[level]
        index = ir.Var(loop.index.type, loop.index.name)
        with builder.region(index) as opened:
            if middle.begin is not middle.lo:
                inside = self.both(inside, builder.prim(p.ge, index, middle.begin))
            if middle.end is not middle.hi:
                inside = self.both(inside, builder.prim(p.lt, index, middle.end))
            outer_part, inner = clone_region(ir.Region((), loop.body.body[:-1]), {**env, loop.index: index})
            for op in outer_part.body:
                builder.emit(op)
            self.level(level + 1, inside, inner)
        lo, hi = (env.get(a, a) if isinstance(a, ir.Var) else a for a in loop.args[:2])
        builder.emit(ir.For(lo, hi, (), opened.close(), (), loop.loc, parallel=True, origin=loop.origin))

    def both(self, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        return b if a == ir.true else self.builder.prim(p.and_, a, b)

    def ends(self, loop: ir.For, middle: _Middle, inside: ir.Atom, env: dict[ir.Var, ir.Atom]) -> None:
        """The iterations before and after the middle of the last level that is split."""
        lo, begin, end, hi = middle
        below = begin is not lo
        above = end is not hi
        first_end = self.choice(p.minimum, begin, hi) if below else lo
        second_begin = self.choice(p.maximum, begin, end) if above else hi
        if inside != ir.true:
            # The whole range is treated as before the middle, if anything is before it, or else as after it.
            first_end = self.select(inside, first_end, hi if below else lo)
            second_begin = self.select(inside, second_begin, hi if below else lo)
        if not above:
            self.run(loop, lo, first_end, env)
        elif not below:
            self.run(loop, second_begin, hi, env)
        else:
            side = ir.Var(i32)
            with self.builder.region(side) as opened:
                before = self.builder.prim(p.eq, side, ir.Lit(0, i32))
                self.run(loop, self.select(before, lo, second_begin), self.select(before, first_end, hi), env)
            sides = ir.Lit(0, i32), ir.Lit(2, i32)
            self.builder.emit(ir.For(*sides, (), opened.close(), (), loop.loc, origin=loop.origin))

    def run(self, loop: ir.For, lo: ir.Atom, hi: ir.Atom, env: dict[ir.Var, ir.Atom]) -> None:
        body, _ = clone_region(loop.body, env)
        self.builder.emit(ir.For(lo, hi, (), body, (), loop.loc, origin=loop.origin))

    def choice(self, prim: Primitive, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        if isinstance(a, ir.Lit) and isinstance(b, ir.Lit):
            return a if (a.value >= b.value) is (prim is p.maximum) else b
        return self.builder.prim(prim, a, b)

    def select(self, condition: ir.Atom, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        return a if a == b else self.builder.prim(p.select, condition, a, b)


class _Specialiser(Rewriter):
    """Specialises a nest for the middle."""

    def __init__(self, decisions: Decisions, bounds: dict[ir.For, tuple[ir.Atom, ir.Atom]]) -> None:
        super().__init__()
        self.decisions = decisions
        self.bounds = bounds

    def nest(self, op: ir.Op) -> None:
        choice = self.decisions.choices.get(op)
        if choice is not None and choice.side is not None:
            for inner in choice.side.body:
                self.visit(inner)
            for out, y in zip(op.outs, choice.side.yields, strict=True):
                self.env[out] = self.get(y)
            return
        if isinstance(op, ir.For) and op in self.bounds:
            op = op.rebuilt((*self.bounds[op], *op.initial), op.regions)
        super().nest(op)

    def visit(self, op: ir.Op) -> None:
        choice = self.decisions.choices.get(op)
        if choice is None or choice.side is not None:
            super().visit(op)
            return
        assert isinstance(op, ir.Prim)
        if choice.atom is not None:
            self.env[op.out] = self.get(choice.atom)
        else:
            assert choice.form is not None
            self.env[op.out] = self.sum(choice.form, op)

    def sum(self, form: Affine, op: ir.Prim) -> ir.Atom:
        """The affine form of an operation, emitted as a variable plus a constant if possible, so that later passes
        recognise it.
        """
        t = op.out.type
        assert isinstance(t, Scalar)
        return emit_sum(form, self.decisions.ranges, self.emit, op, t, self.get)
