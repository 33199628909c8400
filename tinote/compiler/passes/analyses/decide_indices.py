"""Analysis for index-set splitting: which clamps, remainders and conditions of a parallel nest are decided in all but a
few boundary iterations. `split_loops` splits the nest accordingly.

Every integer is an affine form (`tinote.ir.affine`) under some facts; a fact is an affine form that is not negative. A
fact about the index of one loop holds on one side of a bound. An operation is decided if each of its facts holds except
in a few iterations at one end of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import Affine, span_of_type, variable
from tinote.ir.emit_sums import fits
from tinote.ir.primitives import Primitive
from tinote.ir.query import walk
from tinote.ir.ranges import Known, Ranges
from tinote.ir.types import Scalar, Type, is_whole, u1

#: Iterations at either end of a loop that may differ from the others. Chosen, not measured.
_MAX_BOUNDARY = 8
#: Length of a loop in multiples of its boundary, at least. Chosen, not measured.
_MIN_LOOP_PER_BOUNDARY = 4
#: Greatest number of operations of a nest: the boundary repeats them. Chosen, not measured.
_MAX_OPERATIONS = 400

_COMPARISONS = (p.lt, p.le, p.gt, p.ge, p.eq, p.ne)
_REMAINDERS = (p.mod, p.raw_mod)
_DECIDED = (p.minimum, p.maximum, p.absolute, p.and_, *_REMAINDERS)


class Nest(NamedTuple):
    """A nest of parallel loops. Between the loops there are only operations without effects."""

    loops: tuple[ir.For, ...]

    @property
    def indices(self) -> tuple[ir.Var, ...]:
        return tuple([loop.index for loop in self.loops])


def nest_of(op: ir.Op) -> Nest | None:
    """The nest that begins with a loop, if something in it might be decided and all of it may be duplicated."""
    if not isinstance(op, ir.For) or not op.parallel or op.ordered:
        return None
    count, promising = 0, False
    for inner in walk(op.body):
        count += 1
        # Random numbers depend on the loop of an iteration, and code that uses old values may rely on one thread's
        # order.
        if isinstance(inner, ir.Print) or (isinstance(inner, ir.Prim) and inner.prim is p.random_bits):
            return None
        if isinstance(inner, ir.Atomic) and inner.outs:
            return None
        promising |= isinstance(inner, ir.If) or (isinstance(inner, ir.Prim) and _may_be_decided(inner))
    if not promising or count > _MAX_OPERATIONS:
        return None
    loops = [op]
    while True:
        *before, last = loops[-1].body.body or (op,)
        if not isinstance(last, ir.For) or not last.parallel or last.ordered or last is loops[-1]:
            return Nest(tuple(loops))
        if not all(isinstance(o, ir.Prim | ir.Load | ir.Extent) for o in before):
            return Nest(tuple(loops))
        loops.append(last)


def _may_be_decided(op: ir.Prim) -> bool:
    return (op.prim in _DECIDED or op.prim is p.select) and is_whole(op.out.type) and op.out.type is not u1


class _Fact(NamedTuple):
    """An affine form that is not negative.

    `guards`: it holds where an operation does not wrap, which is nearly always.
    """

    form: Affine
    guards: bool = False


class _Form(NamedTuple):
    """An integer as an affine form under some facts."""

    sum: Affine
    facts: tuple[_Fact, ...] = ()


class _Truth(NamedTuple):
    """The value of a condition under some facts."""

    holds: bool
    facts: tuple[_Fact, ...] = ()


class IndexChoice(NamedTuple):
    """The value of an operation in the middle iterations: an operand, a literal, the affine `form`, or one side of an
    `if`.
    """

    facts: tuple[_Fact, ...]
    atom: ir.Atom | None = None
    form: Affine | None = None
    side: ir.Region | None = None


class _Limit(NamedTuple):
    """The index of a level is at least (`low`), or less than, a bound."""

    level: int
    low: bool
    bound: Affine


class Decisions:
    """The decided operations of a nest, and the iterations in which they are decided."""

    def __init__(self, nest: Nest, ranges: Ranges) -> None:
        self.nest = nest
        self.indices = nest.indices
        self.ranges = ranges
        self.outermost = ranges.loops[nest.loops[0]]
        known = self.outermost.known
        for loop in nest.loops:
            known = Known(known, loop=ranges.loops[loop])
        self.known = known
        #: the indices whose least and greatest values are known exactly
        self.literal = {loop.index for loop in nest.loops if all(isinstance(a, ir.Lit) for a in loop.args[:2])}
        self.forms: dict[ir.Var, _Form] = {}
        self.truths: dict[ir.Atom, _Truth] = {ir.true: _Truth(True), ir.false: _Truth(False)}
        self.choices: dict[ir.Op, IndexChoice] = {}
        self.limits: dict[_Fact, _Limit | bool] = {}
        self.visit(nest.loops[0].body)

    # ---- where facts hold

    def limit(self, fact: _Fact) -> _Limit | bool:
        """The iterations in which a fact holds: all of them (True), those on one side of a bound, or unknown
        (False).
        """
        found = self.limits.get(fact)
        if found is None:
            found = self.limits[fact] = self._always(fact.form) or self._limit(fact)
        return found

    def _always(self, form: Affine) -> bool:
        """Whether a form is nowhere negative."""
        low, high = form.interval(self.ranges.interval)
        if low >= 0 or high < 0 or all(v in self.literal for v in form.terms):
            return low >= 0
        return self.ranges.prove(form, self.known)

    def _limit(self, fact: _Fact) -> _Limit | bool:
        if fact.form.interval(self.ranges.interval)[1] < 0:
            return False
        form = self.worst(fact.form)
        levels = [k for k, index in enumerate(self.indices) if index in form.terms]
        if len(levels) != 1:
            return False
        (level,) = levels
        index, loop = self.indices[level], self.nest.loops[level]
        factor = form.terms[index]
        rest = form.replaced(index, Affine(0, {}))
        lo, hi = (self.ranges.affine(a) for a in loop.args[:2])
        if abs(factor) > 1 and rest.terms:
            return False
        if not all(self.computable(one) for one in (rest, lo, hi)):
            return False
        if not fact.guards:
            widest = _MAX_BOUNDARY
            if not lo.terms and not hi.terms:
                widest = min(widest, (hi.const - lo.const) // _MIN_LOOP_PER_BOUNDARY)
            inner = lo.shifted(widest) if factor > 0 else hi.shifted(-1 - widest)
            if not self.ranges.prove(rest + inner.times(factor), self.known):
                return False
        if factor > 0:
            return _Limit(level, True, rest.times(-1) if rest.terms else Affine(-(rest.const // factor), {}))
        return _Limit(level, False, (rest if rest.terms else Affine(rest.const // -factor, {})).shifted(1))

    def worst(self, form: Affine) -> Affine:
        """The least value of a form over the loops inside of the nest."""
        ranges = self.ranges
        inner = [v for v in form.terms if v in ranges.indices and v not in self.indices]
        for v in sorted(inner, key=ranges.order.__getitem__, reverse=True) if inner else ():
            loop = ranges.indices[v]
            if not loop.inside(self.outermost):
                continue
            lo, hi = loop.op.args[:2]
            end = ranges.affine(lo) if form.terms[v] > 0 else ranges.affine(hi).shifted(-1)
            if loop.op in self.choices or any(w in self.ranges.indices for w in end.terms):
                continue
            form = form.replaced(v, end)
        return form

    def computable(self, form: Affine) -> bool:
        """Whether a form can be computed before the nest."""
        order = self.ranges.order
        first = order[self.indices[0]]
        return fits(form, self.ranges, lambda v: self.ranges.home.get(v) is None and order[v] < first)

    def holds(self, facts: Iterable[_Fact]) -> bool:
        """Whether facts hold in all but a few iterations."""
        return all(self.limit(fact) is not False for fact in facts)

    # ---- operations, in order

    def form(self, atom: ir.Atom) -> _Form:
        """An integer as an affine form, fully expanded."""
        found = self.forms.get(atom) if isinstance(atom, ir.Var) else None
        if found is not None:
            return found
        whole = self.ranges.affine(atom)
        facts: tuple[_Fact, ...] = ()
        for v in tuple(whole.terms):
            part = self.forms.get(v)
            if part is not None:
                whole = whole.replaced(v, part.sum)
                facts += part.facts
        return _Form(whole, facts)

    def visit(self, region: ir.Region) -> None:
        for op in region.body:
            if isinstance(op, ir.Prim):
                self.prim(op)
            elif isinstance(op, ir.If):
                self.branch(op)
            else:
                for inner in op.regions:
                    self.visit(inner)

    def branch(self, op: ir.If) -> None:
        truth = self.truths.get(op.condition)
        if truth is None:
            for region in op.regions:
                self.visit(region)
            return
        side = op.then if truth.holds else op.orelse
        self.choices[op] = IndexChoice(truth.facts, side=side)
        self.visit(side)
        for out, y in zip(op.outs, side.yields, strict=True):
            self.becomes(out, y, truth.facts)

    def becomes(self, out: ir.Var, atom: ir.Atom, facts: tuple[_Fact, ...]) -> None:
        """Record that `out` equals `atom` under facts."""
        if out.type is u1:
            truth = self.truths.get(atom)
            if truth is not None:
                self.truths[out] = _Truth(truth.holds, (*facts, *truth.facts))
        elif is_whole(out.type):
            form = self.form(atom)
            self.forms[out] = _Form(form.sum, (*facts, *form.facts))

    def prim(self, op: ir.Prim) -> None:
        prim = op.prim
        if prim is p.select:
            truth = self.truths.get(op.args[0])
            if truth is not None:
                chosen = op.args[1 if truth.holds else 2]
                self.choices[op] = IndexChoice(truth.facts, chosen)
                self.becomes(op.out, chosen, truth.facts)
        elif not is_whole(op.out.type) or not all(is_whole(a.type) for a in op.args):
            return
        elif op.out.type is u1:
            self.condition(op)
        elif prim is p.minimum or prim is p.maximum:
            a, b = op.args
            left, right = self.form(a), self.form(b)
            sign = 1 if prim is p.maximum else -1
            above = (left.sum - right.sum).times(sign)
            for chosen, other in ((a, above), (b, above.times(-1))):
                if self.choose(op, (*left.facts, *right.facts, _Fact(other)), chosen):
                    return
        elif prim is p.absolute:
            form = self.form(op.args[0])
            if not self.choose(op, (*form.facts, _Fact(form.sum)), op.args[0]):
                opposite = form.sum.times(-1)
                self.choose(op, (*form.facts, *self.fitting(opposite, op.out.type), _Fact(opposite)), form=opposite)
        elif prim in _REMAINDERS or prim is p.and_:
            self.remainder(op)
        else:
            self.arithmetic(op)

    def choose(
        self, op: ir.Prim, facts: tuple[_Fact, ...], atom: ir.Atom | None = None, form: Affine | None = None
    ) -> bool:
        """Record an integer as an atom or an affine form, if the facts hold in all but a few iterations."""
        if not self.holds(facts):
            return False
        self.choices[op] = IndexChoice(facts, atom, form)
        value = self.form(atom).sum if form is None and atom is not None else form
        assert value is not None
        self.forms[op.out] = _Form(value, facts)
        return True

    def condition(self, op: ir.Prim) -> None:
        """The decision about a comparison or a combination of conditions."""
        prim, args = op.prim, op.args
        truth: _Truth | None = None
        if prim in _COMPARISONS:
            truth = self.comparison(op)
        elif prim is p.logical_not:
            of = self.truths.get(args[0])
            truth = None if of is None else _Truth(not of.holds, of.facts)
        elif prim is p.and_ or prim is p.or_:
            sides = [self.truths.get(a) for a in args]
            settling = prim is p.or_
            known = [side for side in sides if side is not None]
            truth = next((side for side in known if side.holds is settling), None)
            if truth is None and len(known) == 2:
                truth = _Truth(not settling, (*known[0].facts, *known[1].facts))
        if truth is not None:
            self.truths[op.out] = truth
            self.choices[op] = IndexChoice(truth.facts, ir.true if truth.holds else ir.false)

    def comparison(self, op: ir.Prim) -> _Truth | None:
        left, right = self.form(op.args[0]), self.form(op.args[1])
        above, below = left.sum - right.sum, right.sum - left.sum
        more, less = above.shifted(-1), below.shifted(-1)
        #: the forms that must not be negative for the comparison to hold, and for it to fail: one of several sets
        cases: dict[Primitive, tuple[tuple[tuple[Affine, ...], ...], tuple[tuple[Affine, ...], ...]]] = {
            p.lt: (((less,),), ((above,),)),
            p.le: (((below,),), ((more,),)),
            p.gt: (((more,),), ((below,),)),
            p.ge: (((above,),), ((less,),)),
            p.eq: (((above, below),), ((more,), (less,))),
            p.ne: (((more,), (less,)), ((above, below),)),
        }
        for holds, several in zip((True, False), cases[op.prim], strict=True):
            for sums in several:
                facts = (*left.facts, *right.facts, *[_Fact(s) for s in sums])
                if self.holds(facts):
                    return _Truth(holds, facts)
        return None

    def remainder(self, op: ir.Prim) -> None:
        """`a % m`, and `a & (m - 1)` for a power of two: `a` less a multiple of `m`."""
        a, b = op.args
        if op.prim is p.and_:
            if isinstance(a, ir.Lit):
                a, b = b, a
            if not isinstance(b, ir.Lit):
                return
            mask = int(b.value)
            if mask < 0 or mask & (mask + 1):
                return
            modulus = _Form(Affine(mask + 1, {}))
        else:
            modulus = self.form(b)
        if modulus.facts or any(index in modulus.sum.terms for index in self.indices):
            return
        if not self.ranges.prove(modulus.sum.shifted(-1), self.known):
            return
        form = self.form(a)
        quotients = (0, 1, -1)
        if not modulus.sum.terms and all(v in self.literal for v in form.sum.terms):
            quotients = (sum(form.sum.interval(self.ranges.interval)) // 2 // modulus.sum.const,)
        for quotient in quotients:
            if quotient < 0 and op.prim is p.raw_mod:
                return
            value = form.sum - modulus.sum.times(quotient)
            facts = (*form.facts, _Fact(value), _Fact((modulus.sum - value).shifted(-1)))
            if self.choose(op, facts, a) if quotient == 0 else self.choose(op, facts, form=value):
                return

    def arithmetic(self, op: ir.Prim) -> None:
        """The affine form of an addition or the like that does not wrap, or nearly never."""
        out, args = op.out, op.args
        if self.ranges.affine(out) != variable(out):
            return
        forms = [self.form(a) for a in args]
        prim, value = op.prim, None
        if prim is p.add:
            value = forms[0].sum + forms[1].sum
        elif prim is p.sub:
            value = forms[0].sum - forms[1].sum
        elif prim is p.neg:
            value = forms[0].sum.times(-1)
        elif prim is p.cast:
            value = forms[0].sum
        elif prim is p.mul and not (forms[0].sum.terms and forms[1].sum.terms):
            one, other = forms if forms[0].sum.terms else forms[::-1]
            value = one.sum.times(other.sum.const)
        if value is None or not any(index in value.terms for index in self.indices):
            return
        facts = [fact for form in forms for fact in form.facts]
        self.forms[out] = _Form(value, (*facts, *self.fitting(value, out.type)))

    def fitting(self, value: Affine, t: Type) -> list[_Fact]:
        """The facts under which a sum does not overflow its type."""
        assert isinstance(t, Scalar)
        whole = span_of_type(t)
        low, high = value.interval(self.ranges.interval)
        below = [] if low >= whole[0] else [_Fact(value.shifted(-whole[0]), guards=True)]
        return below if high <= whole[1] else [*below, _Fact(value.times(-1).shifted(whole[1]), guards=True)]

    # ---- profitability

    def worthwhile(self) -> bool:
        """Whether splitting removes a division, a branch or the clamp of an index."""
        if any(isinstance(op, ir.If) or (isinstance(op, ir.Prim) and op.prim in _REMAINDERS) for op in self.choices):
            return True
        clamps = {op for op in self.choices if isinstance(op, ir.Prim) and op.out.type is not u1}
        seen: set[ir.Op] = set()
        waiting: list[ir.Atom] = []
        if clamps:
            waiting = [a for op in walk(self.nest.loops[0].body) if isinstance(op, ir.MemoryOp) for a in op.index]
        while waiting:
            atom = waiting.pop()
            op = self.ranges.definitions.get(atom) if isinstance(atom, ir.Var) else None
            if op is None or op in seen:
                continue
            if op in clamps:
                return True
            seen.add(op)
            if isinstance(op, ir.Prim):
                waiting += op.args
            elif isinstance(op, ir.If):
                waiting += [r.yields[op.outs.index(atom)] for r in op.regions]  # type: ignore[arg-type]
        return False

    def bounds(self) -> list[tuple[list[Affine], list[Affine]]]:
        """For each level the lower and upper bounds of the index in the middle, besides those of the loop."""
        found: list[tuple[list[Affine], list[Affine]]] = [([], []) for _ in self.indices]
        for fact in dict.fromkeys(fact for choice in self.choices.values() for fact in choice.facts):
            limit = self.limit(fact)
            if isinstance(limit, _Limit):
                found[limit.level][0 if limit.low else 1].append(limit.bound)
        return found
