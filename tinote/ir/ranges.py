"""Which values integers can take: intervals, affine forms, and facts that hold where an operation runs.

    for %i: i32 in 1i32 .. %n:
      %a: i32 = sub %i, 1i32            affine form %i - 1, for it cannot wrap: %i >= 1
      if %t:                            where %t is  lt %a, 8i32:
        … here                          %i - 1 >= 0, %n - 1 - %i >= 0 and 7 - (%i - 1) >= 0 are known

Exact: a form stands for the mathematical integer, so an operation that might wrap makes a variable of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd
from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.affine import Affine, Interval, apply_to_intervals, constant, contains, span_of_type, variable
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.float_ranges import as_integer, float_range
from tinote.ir.nodes import Atom, Buffer, Check, Extent, For, If, Lit, Op, Prim, Region, Task, Var, While
from tinote.ir.types import Scalar, i32, is_whole

#: Facts that are combined for one proof. Chosen, not measured.
_MAX_DEPTH = 4
#: Combinations of facts that are tried for one proof. Chosen, not measured.
_MAX_TRIES = 60

_CHOICES = (p.minimum, p.maximum, p.select)


class Loop:
    """A loop (or parallel task) around operations. `known`: what holds before it. `index` is None for a `While`."""

    __slots__ = ("index", "known", "op", "parent")

    def __init__(self, op: Op, index: Var | None, parent: Loop | None, known: Known | None) -> None:
        self.op = op
        self.index = index
        self.parent = parent
        self.known = known

    def chain(self) -> tuple[Loop, ...]:
        """This loop and those around it, outermost first."""
        found: list[Loop] = []
        loop: Loop | None = self
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return tuple(reversed(found))

    def inside(self, other: Loop) -> bool:
        """Whether this is `other` or lies in it."""
        loop: Loop | None = self
        while loop is not None:
            if loop is other:
                return True
            loop = loop.parent
        return False


class Remainder(NamedTuple):
    """`dividend` modulo `divisor`: what `op` leaves of a division, or of a sum that may wrap."""

    dividend: Affine
    divisor: int
    op: Prim


#: Forms that are not negative, forms that are not zero, and remainders with their values.
_Facts = tuple[list[Affine], list[Affine], list[tuple[Remainder, Affine]]]


class Known:
    """A fact and those before it: a condition that held, or that a loop's index is within its bounds.

    `renamed`: the variables of a `while`'s condition in terms of its body's. The forms are worked out when asked for.
    """

    __slots__ = ("condition", "forms", "loop", "parent", "renamed", "truth")

    def __init__(
        self,
        parent: Known | None,
        condition: Atom | None = None,
        truth: bool = True,
        loop: Loop | None = None,
        renamed: dict[Var, Var] | None = None,
    ) -> None:
        self.parent = parent
        self.condition = condition
        self.truth = truth
        self.loop = loop
        self.renamed = renamed
        self.forms: _Facts | None = None


class Ranges:
    """What is known about the integers of a region. `visit` is a hook for what an analysis on top collects."""

    def __init__(self, region: Region) -> None:
        self.definitions: dict[Var, Op] = {}
        self.home: dict[Var, Loop | None] = {}  # the innermost loop that a variable is bound in
        self.order: dict[Var, int] = {}  # when it is bound
        self.known_at: dict[Var, Known | None] = {}
        self.loops: dict[Op, Loop] = {}
        self._carried: dict[Var, tuple[Op, int]] = {}
        self.indices: dict[Var, Loop] = {}
        self._extents: dict[tuple[Buffer, int], Var] = {}
        self._intervals: dict[Var, Interval] = {}
        self._affine: dict[Var, Affine] = {}
        self._positive_divisor: dict[Var, bool] = {}
        self._tries = 0
        for param in region.params:
            self._bind(param, None, None)
        self._walk(region, None, None)

    def visit(self, op: Op, loop: Loop | None, known: Known | None) -> None:
        """Called for every operation, in order, with the loop around it and what is known when it runs."""

    # the walk

    def _bind(self, v: Var, loop: Loop | None, known: Known | None) -> None:
        self.home[v] = loop
        self.known_at[v] = known
        self.order[v] = len(self.order)

    def _walk(self, region: Region, loop: Loop | None, known: Known | None) -> None:
        for op in region.body:
            self.visit(op, loop, known)
            if isinstance(op, If):
                self._walk(op.then, loop, Known(known, op.condition, True))
                self._walk(op.orelse, loop, Known(known, op.condition, False))
            elif isinstance(op, CustomVJP):
                for seed in op.adjoint.params:
                    self._bind(seed, loop, known)
                self._walk(op.adjoint, loop, known)
            elif op.regions:
                self._enter(op, loop, known)
            elif isinstance(op, Extent):
                self._extents.setdefault((op.buffer, op.axis), op.out)
            elif isinstance(op, Check):
                known = Known(known, op.args[0], True)
            for out in op.outs:
                self.definitions[out] = op
                self._bind(out, loop, known)

    def _enter(self, op: Op, parent: Loop | None, known: Known | None) -> None:
        """Walk the regions of a loop or task."""
        if isinstance(op, Task) and not op.parallel:
            self._walk(op.body, parent, known)
            return
        body = op.regions[-1]
        first = 0 if isinstance(op, While) else 1
        index = body.params[0] if first else None
        loop = self.loops[op] = Loop(op, index, parent, known)
        for region in op.regions:
            for k, param in enumerate(region.params):
                self._bind(param, loop, known)
                if k >= first:
                    self._carried[param] = (op, k - first)
        if isinstance(op, While):
            test = op.condition
            self._walk(test, loop, known)
            inside = Known(known, test.yields[0], True, renamed=dict(zip(test.params, body.params, strict=True)))
        else:
            assert index is not None
            self.indices[index] = loop
            inside = Known(known, loop=loop)
        self._walk(body, loop, inside)

    def _computed_before(self, v: Var, known: Mapping[Var, object]) -> list[Var]:
        """The integers that `v` is computed from and that are not `known`, each after those that it is computed from.
        Whoever works them out in this order does not recur as deep as a program is long.
        """
        found: dict[Var, None] = {}
        waiting = [v]
        while waiting:
            op = self.definitions.get(waiting[-1])
            sources = op.args if isinstance(op, Prim) and all(is_whole(a.type) for a in op.args) else ()
            missing = [a for a in sources if isinstance(a, Var) and a not in known and a not in found]
            if missing:
                waiting += missing
            else:
                found[waiting.pop()] = None
        del found[v]
        return list(found)

    # intervals: what holds everywhere

    def interval(self, atom: Atom) -> Interval:
        """The least and the greatest value of an integer (or truth value) anywhere in its scope."""
        if isinstance(atom, Lit):
            return int(atom.value), int(atom.value)
        found = self._intervals.get(atom)
        if found is None:
            t = atom.type
            assert isinstance(t, Scalar) and t.kind != "f"
            for v in self._computed_before(atom, self._intervals):
                self.interval(v)
            whole = self._intervals[atom] = span_of_type(t)  # while it is being worked out
            found = self._intervals[atom] = self._interval(atom, whole)
        return found

    def _interval(self, v: Var, whole: Interval) -> Interval:
        loop = self.indices.get(v)
        if loop is not None:
            return self.interval(loop.op.args[0])[0], self.interval(loop.op.args[1])[1] - 1
        if v in self._carried:
            return self._carried_interval(v, whole)
        op = self.definitions.get(v)
        if isinstance(op, Extent):
            return 0, i32.highest
        if isinstance(op, If):
            k = op.outs.index(v)
            sides = [self.interval(r.yields[k]) for r in op.regions]
            return min(sides[0][0], sides[1][0]), max(sides[0][1], sides[1][1])
        if isinstance(op, Prim):
            found = self._prim_interval(op)
            if found is not None and contains(whole, found):
                return found
        return whole

    def _prim_interval(self, op: Prim) -> Interval | None:
        args = op.args[1:] if op.prim is p.select else op.args
        if op.prim is p.cast and isinstance(t := args[0].type, Scalar) and t.kind == "f":
            assert isinstance(op.out.type, Scalar)
            whole = span_of_type(op.out.type)
            return as_integer(float_range(args[0], self.definitions, self.interval), whole)
        for a in args:
            if not isinstance(a.type, Scalar) or a.type.kind == "f":
                return None
        return apply_to_intervals(op.prim, [self.interval(a) for a in args])

    def _carried_interval(self, v: Var, whole: Interval) -> Interval:
        """A carried value that never shrinks stays at or above what it starts with, and the other way round."""
        op, k = self._carried[v]
        first = 1 if isinstance(op, For) else 0
        body = op.regions[-1]
        param = body.params[first + k]
        start = self.interval(op.args[2 * first + k])
        step = self._step(body.yields[k], param)
        low, high = whole
        if step is not None and step[0] >= 0:
            low = start[0]
        if step is not None and step[1] <= 0:
            high = start[1]
        return low, high

    def _step(self, atom: Atom, param: Var) -> Interval | None:
        """The interval of `atom - param`, if it is known."""
        form = self.affine(atom) - variable(param)
        if isinstance(atom, Var) and atom in form.terms:
            op = self.definitions.get(atom)
            if isinstance(op, If):
                k = op.outs.index(atom)
                sides = [self._step(r.yields[k], param) for r in op.regions]
            elif isinstance(op, Prim) and op.prim is p.select:
                sides = [self._step(a, param) for a in op.args[1:]]
            else:
                sides = [None]
            found = [s for s in sides if s is not None]
            if len(found) == len(sides) == 2:
                return min(found[0][0], found[1][0]), max(found[0][1], found[1][1])
        if param in form.terms:
            return None
        return form.interval(self.interval)

    # affine forms

    def affine(self, atom: Atom) -> Affine:
        """An integer as an exact sum over loop indices, parameters and what else it is computed from."""
        if isinstance(atom, Lit):
            return constant(int(atom.value))
        found = self._affine.get(atom)
        if found is None:
            for v in self._computed_before(atom, self._affine):
                self.affine(v)
            self._affine[atom] = variable(atom)  # while it is being worked out
            found = self._affine[atom] = self._form(atom) or variable(atom)
        return found

    def _form(self, v: Var) -> Affine | None:
        op = self.definitions.get(v)
        if isinstance(op, Extent):
            return variable(self._extents[op.buffer, op.axis])
        t = v.type
        if not isinstance(op, Prim) or not isinstance(t, Scalar) or t.kind not in "iu":
            return None
        form = self._sum(op)
        if form is None:
            return None
        whole = span_of_type(t)
        if contains(whole, form.interval(self.interval)):
            return form
        known = self.known_at[v]
        fits = self.prove(form.shifted(-whole[0]), known) and self.prove(form.times(-1).shifted(whole[1]), known)
        return form if fits else None

    def _sum(self, op: Prim) -> Affine | None:
        """What an operation on integers gives before it is wrapped, if that is a sum."""
        prim, args = op.prim, op.args
        if any(not is_whole(a.type) for a in args):
            return None
        if prim is p.add:
            return self.affine(args[0]) + self.affine(args[1])
        if prim is p.sub:
            return self.affine(args[0]) - self.affine(args[1])
        if prim is p.neg:
            return self.affine(args[0]).times(-1)
        if prim is p.cast:
            return self.affine(args[0])
        if prim is p.mul:
            left, right = self.affine(args[0]), self.affine(args[1])
            if left.terms and right.terms:
                return None
            return left.times(right.const) if not right.terms else right.times(left.const)
        if prim is p.shl and isinstance(args[1], Lit) and 0 <= args[1].value < op.out.type.bits:  # type: ignore[union-attr]
            return self.affine(args[0]).times(1 << int(args[1].value))
        return None

    def extent(self, buffer: Buffer, axis: int) -> Affine | None:
        """The length of a buffer along an axis; None when nothing in the region asks for it."""
        known = (*buffer.shape, *buffer.element)[axis]
        if known is not None:
            return constant(known)
        asked = self._extents.get((buffer, axis))
        return None if asked is None else variable(asked)

    # facts

    def facts(self, known: Known | None) -> Iterator[Affine]:
        """Forms that are not negative where `known` holds, the latest first."""
        while known is not None:
            yield from self._forms(known)[0]
            known = known.parent

    def nonzero(self, known: Known | None) -> Iterator[Affine]:
        """Forms that are not zero where `known` holds."""
        while known is not None:
            yield from self._forms(known)[1]
            known = known.parent

    def remainders(self, known: Known | None) -> Iterator[tuple[Remainder, Affine]]:
        """Remainders with the values that they have where `known` holds."""
        while known is not None:
            yield from self._forms(known)[2]
            known = known.parent

    def remainder(self, form: Affine) -> Remainder | None:
        """A form as the remainder that it is by a literal divisor, or as a sum that may wrap."""
        if len(form.terms) != 1:
            return None
        ((v, factor),) = form.terms.items()
        op = self.definitions.get(v)
        if factor != 1 or not isinstance(op, Prim) or not all(is_whole(a.type) for a in op.args):
            return None
        divisor = _divisor_of(op)
        if divisor:
            return Remainder(self._unwrapped(self.affine(op.args[0]), divisor).shifted(form.const), divisor, op)
        t = v.type
        if not isinstance(t, Scalar) or t.kind not in "iu" or self._sum(op) is None:
            return None
        return Remainder(self._unwrapped(form, 1 << t.bits), 1 << t.bits, op)

    def _unwrapped(self, form: Affine, divisor: int) -> Affine:
        """What a form is congruent to modulo `divisor`, if none of its sums wraps."""
        for _ in range(_MAX_DEPTH):
            wrapping = None
            for v in form.terms:
                op, t = self.definitions.get(v), v.type
                if isinstance(op, Prim) and isinstance(t, Scalar) and t.kind in "iu" and (1 << t.bits) % divisor == 0:
                    wrapping = self._sum(op)
                    if wrapping is not None:
                        form = form.replaced(v, wrapping)
                        break
            if wrapping is None:
                break
        return form

    def _forms(self, known: Known) -> _Facts:
        forms = known.forms
        if forms is None:
            forms = known.forms = ([], [], [])
            if known.loop is not None:
                op, index = known.loop.op, known.loop.index
                assert index is not None
                lo, hi = self.affine(op.args[0]), self.affine(op.args[1])
                forms[0].extend((variable(index) - lo, hi.shifted(-1) - variable(index)))
            elif known.condition is not None:
                self._collect(known.condition, known.truth, forms)
                if known.renamed:
                    for group in forms[:2]:
                        group[:] = [_renamed(form, known.renamed) for form in group]
                    forms[2].clear()
        return forms

    def _collect(self, condition: Atom, truth: bool, forms: _Facts) -> None:
        """Add what a condition says about integers when it is true or false."""
        waiting = [(condition, truth)]
        while waiting:
            atom, holds = waiting.pop()
            op = self.definitions.get(atom) if isinstance(atom, Var) else None
            if not isinstance(op, Prim):
                continue
            if op.prim is p.logical_not:
                waiting.append((op.args[0], not holds))
            elif op.prim is (p.and_ if holds else p.or_):
                waiting += [(a, holds) for a in reversed(op.args)]
            else:
                self._collect_comparison(op, holds, forms)

    def _collect_comparison(self, op: Prim, truth: bool, forms: _Facts) -> None:
        prim, args = op.prim, op.args
        if prim in p.NEGATED and all(is_whole(a.type) for a in args):
            prim = prim if truth else p.NEGATED[prim]
            a, b = self.affine(args[0]), self.affine(args[1])
            if prim is p.lt:
                forms[0].append((b - a).shifted(-1))
            elif prim is p.le:
                forms[0].append(b - a)
            elif prim is p.gt:
                forms[0].append((a - b).shifted(-1))
            elif prim is p.ge:
                forms[0].append(a - b)
            elif prim is p.eq:
                forms[0].extend((a - b, b - a))
                for one, value in ((a, b), (b, a)):
                    found = self.remainder(one)
                    if found is not None and _divisor_of(found.op):
                        forms[2].append((found, value))
            else:
                forms[1].append(a - b)

    def _facts_of(self, v: Var) -> Iterator[Affine]:
        """Forms that are not negative because of how `v` is computed."""
        op = self.definitions.get(v)
        if not isinstance(op, Prim) or not all(is_whole(a.type) for a in op.args[-2:]):
            return
        here = variable(v)
        if op.prim is p.minimum or op.prim is p.maximum:
            sign = 1 if op.prim is p.minimum else -1
            for a in op.args:
                yield (self.affine(a) - here).times(sign)
        elif op.prim is p.floordiv and isinstance(op.args[1], Lit) and op.args[1].value > 0:
            divisor = int(op.args[1].value)
            rest = self.affine(op.args[0]) - here.times(divisor)
            yield rest
            yield rest.times(-1).shifted(divisor - 1)
        elif op.prim is p.mod:
            divisor = self.affine(op.args[1]).shifted(-1)
            if v not in self._positive_divisor:
                self._positive_divisor[v] = self.prove(divisor, self.known_at[v])
            if self._positive_divisor[v]:
                yield here
                yield divisor - here

    # proofs

    def prove(self, form: Affine, known: Known | None) -> bool:
        """Whether `form >= 0` for certain where `known` holds."""
        # A proof that another one needs on its way counts its tries anew: its answer is remembered.
        tries, self._tries = self._tries, 0
        found = self._prove(form, known, _MAX_DEPTH)
        self._tries = tries
        return found

    def _prove(self, form: Affine, known: Known | None, depth: int) -> bool:
        if form.interval(self.interval)[0] >= 0:
            return True
        self._tries += 1
        if depth == 0 or self._tries > _MAX_TRIES:
            return False
        # Variables that are bound last are bounded in terms of earlier ones, so they are eliminated first.
        for v in sorted(form.terms, key=self.order.__getitem__, reverse=True):
            factor = form.terms[v]
            for fact in (*self._facts_of(v), *self.facts(known)):
                other = fact.terms.get(v, 0)
                if other and (other > 0) == (factor > 0):
                    common = gcd(factor, other)
                    rest = form.times(abs(other) // common).plus(fact, -(abs(factor) // common))
                    if self._prove(rest, known, depth - 1):
                        return True
            op = self.definitions.get(v)
            if isinstance(op, Prim) and op.prim in _CHOICES:
                return self._prove_choice(form, v, op, known, depth)
        return False

    def _prove_choice(self, form: Affine, v: Var, op: Prim, known: Known | None, depth: int) -> bool:
        """`v` is one of two values: the form must hold for both."""
        if op.prim is not p.select:
            return all(self._prove(form.replaced(v, self.affine(a)), known, depth - 1) for a in op.args)
        condition, a, b = op.args
        yes, no = Known(known, condition, True), Known(known, condition, False)
        return self._prove(form.replaced(v, self.affine(a)), yes, depth - 1) and self._prove(
            form.replaced(v, self.affine(b)), no, depth - 1
        )


def _divisor_of(op: Prim) -> int:
    """The literal that an operation gives the remainder by; 0 if it is none."""
    by = op.args[-1]
    if not isinstance(by, Lit) or by.value <= 0:
        return 0
    if op.prim in (p.mod, p.raw_mod):
        return int(by.value)
    return int(by.value) + 1 if op.prim is p.and_ and not int(by.value) & (int(by.value) + 1) else 0


def _renamed(form: Affine, names: dict[Var, Var]) -> Affine:
    return Affine(form.const, {names.get(v, v): c for v, c in form.terms.items()})
