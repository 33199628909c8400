"""Last updates of carried values: where an iteration keeps or replaces a value, as in a running minimum, the loop also
carries the index of the iteration that replaced it last. The reverse is then one step at that index, instead of a loop.

    %m = for %i in 0 .. %n carrying %s = %a:     %m.1, %w = for %i in 0 .. %n carrying %s = %a, %k = %n:
      %x = load @x[%i]                             %x = load @x[%i]
      %t = min %s, %x                     ->       %t = min %s, %x
      yield %t                                     … %l = %i where %x is taken, else %k …
                                                   yield %t, %l
                                                 %c = ne %w, %n
                                                 %r = if %c:
                                                   %y = load @x[%w]
                                                   yield %y
                                                 else:
                                                   yield %a
                                                 %m = surrogate %m.1, %r

The value is that of the loop, and the derivative that of the winner's term, computed once more: nothing is saved for
each iteration, and no loop runs backwards to find out who won. Of a minimum or maximum the term is taken that the
derivative rules of these say (`ir/primitives.py`), of equal ones too; `if x < s: s = x` and what is replaced along
with it (the colour of what is nearest) go by the condition that they have.

A term has to be computable from the index alone: from nothing that the loop carries, and from no memory that it writes.
Loops of a few iterations stay as they are. Where nothing but such extrema of elements in memory comes out of a loop
that nothing surrounds, its iterations may run at once: one parallel loop finds the extremum, another the last iteration
that attains it (the first, where the rule has it so). A term that is computed could differ in its last bit from one
loop to the other, an element cannot. An extremum that a serial loop keeps in memory, as atomic updates leave it when
they are unfolded (`unfold.py`), becomes a carried value first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinote.autodiff.activity import active_variables
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.query import free_variables, is_shorter, uses, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter, clone_region
from tinote.ir.types import Scalar, Type, is_integer, u1

#: Loops of fewer iterations stay as they are: written out they save nothing, and neighbours run as vectors. Chosen, not
#: measured.
_MIN_ITERATIONS = 8
#: Loops of a length that is known and less than this are not worth two parallel ones. Chosen, not measured.
_MIN_PARALLEL_ITERATIONS = 1024
_EXTREMA = {p.minimum: p.lt, p.maximum: p.gt}


def select_winners(fn: ir.Function, *, arguments: bool = False) -> ir.Function:
    """`fn` with the derivatives of such values taken where they were replaced last. `arguments`: whether the float
    arguments are active (`active_variables`).
    """
    if not any(isinstance(op, ir.For) for op in walk(fn.region)):
        return fn
    fn = _Carrier().run(fn)
    return _Winners(active_variables(fn, arguments=arguments).variables).run(fn)


# ---- from memory to carried values


class _Kept(NamedTuple):
    """An element of rank 0 that each iteration of a loop loads, takes an extremum of, and stores."""

    load: ir.Load
    store: ir.Store


class _Carrier(Rewriter):
    """Makes extrema that serial loops keep in memory carried values."""

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not isinstance(op, ir.For) or op.parallel:
            return KEEP
        kept = list(_kept_in(op))
        if not kept:
            return KEEP
        params = [ir.Var(one.load.out.type, one.load.out.name) for one in kept]
        initial = [ir.Var(q.type, q.name) for q in params]
        outs = [ir.Var(q.type, q.name) for q in params]
        for one, start in zip(kept, initial, strict=True):
            self.emit(ir.Load(one.load.buffer, one.load.index, (start,), one.load.loc, one.load.origin))
        gone = {op for one in kept for op in one}
        inside = ir.Region((), tuple([o for o in op.body.body if o not in gone]), op.body.yields)
        inside = Rewriter({one.load.out: q for one, q in zip(kept, params, strict=True)}).region(inside)
        yields = (*inside.yields, *[one.store.value for one in kept])
        body = ir.Region((*op.body.params, *params), inside.body, yields)
        self.emit(op.rebuilt((*op.args, *initial), (body,), (*op.outs, *outs)))
        for one, out in zip(kept, outs, strict=True):
            self.emit(ir.Store(one.store.buffer, one.store.index, out, one.store.loc, one.store.origin))
        return op.outs


def _kept_in(loop: ir.For) -> Iterator[_Kept]:
    made = {out: op for op in loop.body.body for out in op.outs}
    counts = uses(loop.body)
    touched = [op for op in walk(loop.body) if isinstance(op, ir.Load | ir.Store | ir.Atomic)]
    for store in loop.body.body:
        if not isinstance(store, ir.Store) or store.buffer.shape or not all(isinstance(a, ir.Lit) for a in store.index):
            continue
        taken = made.get(store.value) if isinstance(store.value, ir.Var) else None
        if not isinstance(taken, ir.Prim) or taken.prim not in _EXTREMA:
            continue
        loads = [made.get(a) for a in taken.args if isinstance(a, ir.Var)]
        for load in loads:
            if (
                isinstance(load, ir.Load)
                and load.buffer is store.buffer
                and load.index == store.index
                and counts[load.out] == 1
                and not any(op is not load and op is not store and _may_meet(op, store) for op in touched)
            ):
                yield _Kept(load, store)
                break


def _may_meet(op: ir.MemoryOp, store: ir.Store) -> bool:
    """Whether an access may touch what `store` does, whose indices are all literal."""
    if op.buffer is not store.buffer:
        return buffers_may_meet(op.buffer, store.buffer)
    pairs = zip(op.index, store.index, strict=False)
    return not any(isinstance(a, ir.Lit) and isinstance(b, ir.Lit) and a.value != b.value for a, b in pairs)


# ---- winners


class _Choice(NamedTuple):
    """The carried value number `position` becomes `term`, which `slice` computes, or stays: by `condition`, if that is
    `when`; as an extremum of the two without one.
    """

    position: int
    op: ir.Prim | ir.If
    term: ir.Atom
    slice: tuple[ir.Op, ...]
    condition: ir.Atom | None = None
    when: bool = True


class _Winners(Rewriter):
    def __init__(self, active: set[ir.Var]) -> None:
        super().__init__()
        self.active = active
        self.depth = 0

    def nest(self, op: ir.Op) -> None:
        self.depth += 1
        super().nest(op)
        self.depth -= 1

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not isinstance(op, ir.For) or not any(v in self.active for v in op.outs) or is_shorter(op, _MIN_ITERATIONS):
            return KEEP
        found = list(self.choices(op))
        if not found:
            return KEEP
        if self.depth == 1 and _may_run_at_once(op, found):
            return self.found_at_once(op, found)
        index = op.index
        params = [ir.Var(index.type, "winner") for _ in found]
        winners = [ir.Var(index.type, "winner") for _ in found]
        further: list[ir.Op] = []
        yields: list[ir.Atom] = []
        for one, before in zip(found, params, strict=True):
            further += _index_after(one, index, before)
            yields.append(further[-1].out)
        body = ir.Region((*op.body.params, *params), (*op.body.body, *further), (*op.body.yields, *yields))
        outs = list(op.outs)
        for one in found:
            old = outs[one.position]
            outs[one.position] = ir.Var(old.type, old.name)
        self.emit(op.rebuilt((*op.args, *[op.hi] * len(found)), (body,), (*outs, *winners)))
        values: list[ir.Atom] = list(op.outs)
        for one, winner in zip(found, winners, strict=True):
            some = ir.Var(u1)
            self.emit(ir.Prim(p.ne, (winner, op.hi), (some,), one.op.loc, one.op.origin))
            values[one.position] = self.at_winner(op, one, winner, some, outs[one.position])
        return values

    def found_at_once(self, loop: ir.For, found: list[_Choice]) -> list[ir.Atom]:
        """What the loop carries, which is extrema of elements alone, by two parallel loops."""
        index, lo = loop.index, loop.lo
        assert isinstance(lo, ir.Lit) and isinstance(index.type, Scalar)
        values = [_temporary(one.term.type, "extremum") for one in found]
        winners = [_temporary(index.type, "winner") for _ in found]
        first = [one.op.args[0] is one.term for one in found]  # of equal ones, as `_index_after` has it
        nobody: list[ir.Atom] = [loop.hi if wins else ir.Lit(int(lo.value) - 1, index.type) for wins in first]
        for one, value, winner, none in zip(found, values, winners, nobody, strict=True):
            initial = self.emit(_constant(loop.initial[one.position], one.op))
            self.emit(ir.Store(value, (), initial.out, one.op.loc, one.op))
            self.emit(ir.Store(winner, (), none, one.op.loc, one.op))
        chosen = {one.op for one in found}
        body: list[ir.Op] = [op for op in loop.body.body if op not in chosen]
        for one, value in zip(found, values, strict=True):
            assert isinstance(one.op, ir.Prim)
            constant = _constant(one.term, one.op)
            body += [constant, ir.Atomic(one.op.prim, value, (), constant.out, (), one.op.loc, one.op)]
        self.at_once(loop, body)
        finals = [ir.Var(one.term.type, value.name) for one, value in zip(found, values, strict=True)]
        body = [op for op in loop.body.body if any(op in one.slice for one in found)]
        for one, value, winner, none, final, wins in zip(found, values, winners, nobody, finals, first, strict=True):
            self.emit(ir.Load(value, (), (final,), one.op.loc, one.op))
            attains, candidate = ir.Var(u1), ir.Var(index.type)
            body.append(ir.Prim(p.eq, (one.term, final), (attains,), one.op.loc, one.op))
            body.append(ir.Prim(p.select, (attains, index, none), (candidate,), one.op.loc, one.op))
            body.append(ir.Atomic(p.minimum if wins else p.maximum, winner, (), candidate, (), one.op.loc, one.op))
        self.at_once(loop, body)
        results: list[ir.Atom] = [*loop.outs]
        for one, winner, none, final, wins in zip(found, winners, nobody, finals, first, strict=True):
            where, some = ir.Var(index.type, "winner"), ir.Var(u1)
            self.emit(ir.Load(winner, (), (where,), one.op.loc, one.op))
            self.emit(ir.Prim(p.ne, (where, none), (some,), one.op.loc, one.op))
            if wins:  # The initial value comes before all elements that are equal to it.
                beaten, both = ir.Var(u1), ir.Var(u1)
                self.emit(ir.Prim(p.ne, (loop.initial[one.position], final), (beaten,), one.op.loc, one.op))
                self.emit(ir.Prim(p.and_, (some, beaten), (both,), one.op.loc, one.op))
                some = both
            results[one.position] = self.at_winner(loop, one, where, some, final)
        return results

    def at_once(self, loop: ir.For, body: list[ir.Op]) -> None:
        """A parallel loop over the indices of `loop`."""
        inside, _ = clone_region(ir.Region((loop.index,), tuple(body), ()))
        self.emit(ir.For(loop.lo, loop.hi, (), inside, (), loop.loc, parallel=True, origin=loop))

    def choices(self, loop: ir.For) -> Iterator[_Choice]:
        """What the loop carries, active, that each iteration keeps or replaces by a term of nothing but its index."""
        made = {out: op for op in loop.body.body for out in op.outs}
        written = [op.buffer for op in walk(loop.body) if isinstance(op, ir.Store | ir.Atomic)]
        for k, (q, y) in enumerate(zip(loop.carried, loop.body.yields, strict=True)):
            op = made.get(y) if isinstance(y, ir.Var) else None
            if loop.outs[k] not in self.active or not isinstance(op, ir.Prim | ir.If) or not isinstance(q.type, Scalar):
                continue
            found = _choice_of(op, y, q)
            if found is None:
                continue
            term, condition, when, inner = found
            computed = _slice(loop, term, (*loop.body.body, *inner))
            if computed is not None and not any(
                isinstance(o, ir.Load) and any(buffers_may_meet(o.buffer, b) for b in written)
                for o in walk(ir.Region((), computed))
            ):
                yield _Choice(k, op, term, computed, condition, when)

    def at_winner(self, loop: ir.For, one: _Choice, winner: ir.Var, some: ir.Var, value: ir.Var) -> ir.Var:
        """The value of the loop with the derivative of the winner's term, if `some` iteration has won."""
        loc, origin = one.op.loc, one.op.origin
        found, out = ir.Var(value.type, value.name), ir.Var(value.type, value.name)
        again, _ = clone_region(ir.Region((), one.slice, (one.term,)), {loop.index: winner})
        initial = ir.Region((), (), (loop.initial[one.position],))
        self.emit(ir.If(some, again, initial, (found,), loc, origin))
        self.emit(ir.Prim(p.surrogate, (value, found), (out,), loc, origin))
        return out


def _temporary(t: Type, name: str) -> ir.Buffer:
    assert isinstance(t, Scalar)
    return ir.Buffer(name, t, (), (), ir.BufferKind.TEMPORARY)


def _constant(atom: ir.Atom, op: ir.Op) -> ir.Prim:
    """What makes an atom a constant for derivatives of any order."""
    assert isinstance(atom.type, Scalar)
    return ir.Prim(p.surrogate, (atom, ir.Lit(0.0, atom.type)), (ir.Var(atom.type),), op.loc, op)


def _may_run_at_once(loop: ir.For, found: list[_Choice]) -> bool:
    """Whether a loop does nothing but find extrema of elements, perhaps of many."""
    if (
        loop.reverse
        or not isinstance(loop.lo, ir.Lit)
        or len(found) != len(loop.carried)
        or is_shorter(loop, _MIN_PARALLEL_ITERATIONS)
    ):
        return False
    return all(isinstance(op, ir.Prim | ir.Load | ir.Extent | ir.Check) for op in loop.body.body) and all(
        one.condition is None
        and all(isinstance(op, ir.Load | ir.Extent) or is_integer(op.out.type) for op in one.slice)
        for one in found
    )


def _choice_of(
    op: ir.Prim | ir.If, value: ir.Atom, kept: ir.Var
) -> tuple[ir.Atom, ir.Atom | None, bool, tuple[ir.Op, ...]] | None:
    """Where `value`, which `op` binds, is `kept` or another one: that one, the condition, when it holds, and what `op`
    itself computes for it.
    """
    if isinstance(op, ir.If):
        k = [v is value for v in op.outs].index(True)
        sides = op.then.yields[k], op.orelse.yields[k]
        condition, inner = op.condition, (op.then.body, op.orelse.body)
    elif op.prim is p.select:
        condition, *sides = op.args
        inner = (), ()
    elif op.prim in _EXTREMA:
        terms = [a for a in op.args if a is not kept]
        return (terms[0], None, True, ()) if len(terms) == 1 else None
    else:
        return None
    if (sides[0] is kept) is (sides[1] is kept):
        return None
    which = 1 if sides[0] is kept else 0
    return sides[which], condition, which == 0, inner[which]


def _slice(loop: ir.For, term: ir.Atom, ops: tuple[ir.Op, ...]) -> tuple[ir.Op, ...] | None:
    """Those of an iteration's operations `ops` that compute a term; None where it takes more than the index."""
    made = {out: op for op in ops for out in op.outs}
    needed: set[ir.Op] = set()
    pending = [term]
    while pending:
        atom = pending.pop()
        if atom in loop.carried:
            return None
        op = made.get(atom) if isinstance(atom, ir.Var) else None
        if op is None or op in needed:
            continue
        whole = ir.Region((), (op,))
        if not all(map(_is_repeatable, walk(whole))):
            return None
        needed.add(op)
        pending += free_variables(whole)
    return tuple([op for op in ops if op in needed])


def _is_repeatable(op: ir.Op) -> bool:
    if isinstance(op, ir.Prim):
        return op.prim is not p.random_bits
    return isinstance(op, ir.Load | ir.Extent | ir.For | ir.While | ir.If)


def _index_after(one: _Choice, index: ir.Var, before: ir.Var) -> list[ir.Op]:
    """What says which index has won so far: the last operation gives it."""
    loc, origin = one.op.loc, one.op.origin
    after = ir.Var(index.type, "winner")
    if one.condition is not None:
        sides = (index, before) if one.when else (before, index)
        return [ir.Prim(p.select, (one.condition, *sides), (after,), loc, origin)]
    assert isinstance(one.op, ir.Prim)
    first, second = one.op.args
    # As the derivative rule has it: the first operand is taken if it beats the second, or that is NaN.
    beats, missing, taken = ir.Var(u1), ir.Var(u1), ir.Var(u1)
    sides = (index, before) if first is one.term else (before, index)
    return [
        ir.Prim(_EXTREMA[one.op.prim], (first, second), (beats,), loc, origin),
        ir.Prim(p.isnan, (second,), (missing,), loc, origin),
        ir.Prim(p.or_, (beats, missing), (taken,), loc, origin),
        ir.Prim(p.select, (taken, *sides), (after,), loc, origin),
    ]
