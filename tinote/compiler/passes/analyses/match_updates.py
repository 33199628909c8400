"""Finds out which atomic updates a store amounts to: what leads from the old value of an element to the new one.

%a: f32 = load @x[%i]
%b: f32 = add %a, %v                  atomic add @x[%i], %v, and atomic add @x[%i], -%w
%c: f32 = sub %b, %w
store @x[%i], %c
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.primitives import Primitive
from tinote.ir.query import definitions, uses, walk
from tinote.ir.types import Scalar, Type, u1
from tinote.source import NOWHERE, Span

#: What certainly holds the old value.
Holders = frozenset[ir.Var]


class Update(NamedTuple):
    """A change of memory by an operation and a value. `negated`: by the negative value; `narrowed`: computed in a
    wider type than the memory's. `compared`: it happened only if the value was greater, or less, than that in memory,
    which it is not where that is NaN. `loc`: where it is written, if not where the store is."""

    prim: Primitive
    value: ir.Atom
    negated: bool = False
    narrowed: bool = False
    compared: bool = False
    loc: Span = NOWHERE


def changed_in(region: ir.Region) -> set[ir.Buffer]:
    """The buffers that a region changes."""
    return {op.buffer for op in walk(region) if isinstance(op, ir.Store | ir.Atomic)}


class UpdateMatcher:
    """Looks for the updates that stores in a region amount to."""

    def __init__(self, region: ir.Region) -> None:
        self.definitions = definitions(region)
        self.counts = uses(region)
        self.changed = changed_in(region)
        self.forget()

    def forget(self) -> None:
        """Begin with nothing replaced."""
        #: what holds the old value or is computed from it, and how often what is replaced used it
        self.consumed: dict[ir.Var, int] = {}
        self.rewrites: dict[ir.Op, list[ir.Op]] = {}

    def hold(self, v: ir.Var, times: int = 0) -> None:
        """`v` depends on the old value, and `times` more of its uses are replaced."""
        self.consumed[v] = self.consumed.get(v, 0) + times

    def atomics(self, update: Update, near: ir.Store) -> list[ir.Op]:
        """The atomic update that `near` makes, and what its value is computed by."""
        made: list[ir.Op] = []
        value = self.value_of(update, near, made)
        loc = near.loc if update.loc is NOWHERE else update.loc
        return [*made, ir.Atomic(update.prim, near.buffer, near.index, value, (), loc, near.origin)]

    def value_of(self, update: Update, near: ir.Store, made: list[ir.Op]) -> ir.Atom:
        """What an element is updated with."""
        t, value = near.buffer.dtype, update.value
        for prim, applies in ((p.cast, update.narrowed), (p.neg, update.negated)):
            if prim is p.cast and applies and isinstance(value, ir.Lit):
                value = ir.Lit(p.cast_number(t, value.value), t)
            elif applies:
                out = ir.Var(t)
                made.append(ir.Prim(prim, (value,), (out,), near.loc, near.origin))
                value = out
        return value

    def nothing_else_asks(self) -> bool:
        """Whether nothing uses what is replaced but what is replaced."""
        return all(self.counts.get(v, 0) == count for v, count in self.consumed.items())

    def updates(self, value: ir.Var, current: Holders) -> list[Update] | None:
        """The changes that lead from what `current` holds to `value`: the last one, or a chain of operations by each of
        which one more value comes in. Looks at no value twice, and does not recur along a chain.
        """
        found = self.last_change(value, current)
        if found is not None:
            return found
        seen = {value}
        chain: list[tuple[ir.Prim, int]] = []
        untried = [self.links(value)]
        while untried:
            step = next(untried[-1], None)
            if step is None:
                untried.pop()
                del chain[len(untried) - 1 :]
                continue
            link = step[0].args[step[1]]
            assert isinstance(link, ir.Var)
            found = [] if link in current else None if link in seen else self.last_change(link, current)
            steps = [step, *reversed(chain)]
            if found is not None and self.keeps_low_bits(steps, value.type):
                for op, k in steps:
                    link = op.args[k]
                    assert isinstance(link, ir.Var)
                    self.hold(link, 1)
                    self.rewrites[op] = []
                    if op.prim is not p.cast:
                        negated, other = op.prim is p.sub, op.args[1 - k]
                        narrowed = other.type is not value.type
                        found.append(Update(p.add if negated else op.prim, other, negated, narrowed, loc=op.loc))
                return found
            if link not in seen:
                seen.add(link)
                chain.append(step)
                untried.append(self.links(link))
        return None

    def last_change(self, value: ir.Var, current: Holders) -> list[Update] | None:
        """The change from what `current` holds to `value`, if it is none that others may follow in a chain."""
        return None

    def links(self, value: ir.Var) -> Iterator[tuple[ir.Prim, int]]:
        """The operation that gives `value`, with the position of each operand that it may have changed."""
        op = self.definitions.get(value)
        if not isinstance(op, ir.Prim):
            return
        if op.prim is p.cast and isinstance(op.args[0], ir.Var):
            yield op, 0
        if op.prim is p.sub or op.prim in p.ATOMICS:
            for k in (0, 1) if op.prim is not p.sub else (0,):
                if isinstance(op.args[k], ir.Var) and op.args[k] is not op.args[1 - k]:
                    yield op, k

    def keeps_low_bits(self, steps: Sequence[tuple[ir.Prim, int]], t: Type) -> bool:
        """Whether what is computed in wider types on the way, as an f32 in f64 or an i8 in i32, comes to the same in
        type `t` (but for rounding): sums and bits do, and extrema of numbers that are of that type.
        """
        if not any(op.prim is p.cast for op, _ in steps):
            return True
        types = [a.type for op, k in steps for a in (op.out, op.args[k])]
        if not isinstance(t, Scalar) or not all(isinstance(wide, Scalar) and wide is not u1 for wide in types):
            return False
        scalars = [wide for wide in types if isinstance(wide, Scalar)]
        if any((wide.kind == "f") != (t.kind == "f") or wide.bits < t.bits for wide in scalars):
            return False
        extrema = [op.args[1 - k] for op, k in steps if op.prim in (p.minimum, p.maximum)]
        if t.kind == "f" or not extrema:
            return True
        return all(wide.kind == t.kind for wide in scalars) and all(self.fits(a, t) for a in extrema)

    def fits(self, atom: ir.Atom, t: Scalar) -> bool:
        """Whether an integer is certainly one of type `t`."""
        if isinstance(atom, ir.Lit):
            return t.lowest <= atom.value <= t.highest
        op = self.definitions.get(atom)
        return atom.type is t or (isinstance(op, ir.Prim) and op.prim is p.cast and op.args[0].type is t)

    def alike(self, a: ir.Atom, b: ir.Atom) -> bool:
        """Whether two atoms have one value, though they may be computed twice."""
        pairs = [(a, b)]
        seen: set[tuple[ir.Atom, ir.Atom]] = set()
        while pairs:
            pair = a, b = pairs.pop()
            if a == b or pair in seen:
                continue
            seen.add(pair)
            one = self.definitions.get(a) if isinstance(a, ir.Var) else None
            other = self.definitions.get(b) if isinstance(b, ir.Var) else None
            if one is None or other is None or len(one.args) != len(other.args) or a.type != b.type:
                return False
            if isinstance(one, ir.Load) and isinstance(other, ir.Load):
                same = one.buffer is other.buffer and not any(buffers_may_meet(one.buffer, c) for c in self.changed)
            else:
                same = isinstance(one, ir.Prim) and isinstance(other, ir.Prim) and one.prim is other.prim
            if not same:
                return False
            pairs += zip(one.args, other.args, strict=True)
        return True
