"""Pattern matching of read-modify-write sequences: the atomic updates that a store is equivalent to.

%a: f32 = load @x[%i]
%b: f32 = add %a, %v                  atomic add @x[%i], %v, and atomic add @x[%i], -%w
%c: f32 = sub %b, %w
store @x[%i], %c
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.primitives import Primitive
from tinote.ir.query import definitions, uses, walk
from tinote.ir.types import Scalar, Type, u1
from tinote.source import NOWHERE, Span

#: The variables that certainly hold the old value.
Holders = frozenset[ir.Var]


class Update(NamedTuple):
    """One read-modify-write: an operation and its operand.

    `negated`: the operand is negated; `narrowed`: computed in a wider type than the memory's. `compared`: done only if
    the operand was greater, or less, than the value in memory, which is false where that is NaN. `loc`: its place in
    the source, if it differs from the store's.
    """

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
    """Matches the stores of a region with atomic updates."""

    def __init__(self, region: ir.Region) -> None:
        self._region = region
        self.forget()

    @cached_property
    def definitions(self) -> dict[ir.Var, ir.Op]:
        """The operation that binds each variable."""
        return definitions(self._region)

    @cached_property
    def counts(self) -> dict[ir.Var, int]:
        """How often each variable is used."""
        return uses(self._region)

    @cached_property
    def changed(self) -> set[ir.Buffer]:
        """The buffers that it changes."""
        return changed_in(self._region)

    def forget(self) -> None:
        """Start over with no replaced operations."""
        #: variables that hold the old value or are computed from it, with the number of their uses in replaced
        #: operations
        self.consumed: dict[ir.Var, int] = {}
        self.rewrites: dict[ir.Op, list[ir.Op]] = {}

    def hold(self, v: ir.Var, times: int = 0) -> None:
        """Record that `v` depends on the old value and that `times` more of its uses are replaced."""
        self.consumed[v] = self.consumed.get(v, 0) + times

    def atomics(self, update: Update, near: ir.Store) -> list[ir.Op]:
        """The atomic update in place of `near`, and the operations that compute its operand."""
        made: list[ir.Op] = []
        value = self.value_of(update, near, made)
        loc = near.loc if update.loc is NOWHERE else update.loc
        return [*made, ir.Atomic(update.prim, near.buffer, near.index, value, (), loc, near.origin)]

    def value_of(self, update: Update, near: ir.Store, made: list[ir.Op]) -> ir.Atom:
        """The operand of an update."""
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
        """Whether all uses of the replaced operations are replaced, too."""
        return all(self.counts.get(v, 0) == count for v, count in self.consumed.items())

    def updates(self, value: ir.Var, current: Holders) -> list[Update] | None:
        """The updates that lead from the value that `current` holds to `value`: one, or a chain of operations with one
        operand each. Visits each value once, without recursion along the chain.
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
        """The update from the value that `current` holds to `value`, if it is of a kind that can only end a chain."""
        return None

    def links(self, value: ir.Var) -> Iterator[tuple[ir.Prim, int]]:
        """The operation that defines `value`, with the positions of the operands that may hold the old value."""
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
        """Whether a computation in wider types (an f32 in f64, an i8 in i32) gives the same in type `t`, up to
        rounding. Sums and bit operations do, and so do extrema of numbers of that type.
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
        """Whether an integer certainly fits type `t`."""
        if isinstance(atom, ir.Lit):
            return t.lowest <= atom.value <= t.highest
        op = self.definitions.get(atom)
        return atom.type is t or (isinstance(op, ir.Prim) and op.prim is p.cast and op.args[0].type is t)

    def alike(self, a: ir.Atom, b: ir.Atom) -> bool:
        """Whether two atoms have the same value, even if they are computed separately."""
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
