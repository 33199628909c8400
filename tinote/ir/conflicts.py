"""Conflicts between the iterations of a loop: two accesses by which different iterations may touch one element, one of
which changes it, so that the order of the iterations matters.

    for parallel %i: i32 in 0i32 .. 64i32:
      %k: i32 = load @k[%i]
      %a: f32 = load @x[%k]           may read …
      store @x[%i], %a                … what this stores in another iteration

Whoever runs several iterations at once wants a proof that there is none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, Touched, buffers_may_meet
from tinote.ir.primitives import Primitive
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import is_float


class Conflict(NamedTuple):
    """Two accesses that may conflict in different iterations, perhaps one and the same."""

    first: Access
    second: Access

    def __str__(self) -> str:
        a, b = self.first.op, self.second.op
        name, line = f"`{b.buffer.name}`", b.loc.line
        if a is b:
            return f"several iterations may {_verb(b)} one element of {name} in line {line}"
        other = "" if a.buffer is b.buffer else f" as `{a.buffer.name}`"
        changed = f"what an iteration {_verb(b)}s of {name} in line {line}"
        return f"{changed}, another one may {_verb(a)}{other} in line {a.loc.line}"


def find_conflict(
    accesses: Accesses,
    loop: Loop,
    inside: Iterable[Access] | None = None,
    *,
    unordered: bool = False,
    exact: bool = False,
) -> Conflict | None:
    """The first conflict between iterations of a loop, of those between the accesses `inside`, if not between all. It
    is found unless it is proved that there is none.

    `unordered`: the loop has no order of its own, and what comes to the same in all orders is no conflict: atomic
    updates by one operation, and stores of one value. `exact`: sums and products of floats do not come to the same.
    """
    found = accesses.within(loop) if inside is None else list(inside)
    written = {access.buffer for access in found if access.writes}
    sharing = Touched([access for access in found if access.writes]).sharing
    shared = {access.buffer for access in found if access.buffer in written or sharing(access.buffer)}
    #: by what they do, and then by where they do it
    kinds: dict[object, dict[object, list[Access]]] = {}
    for access in found:
        if access.buffer in shared:
            places = kinds.setdefault(_kind_of(access, unordered, exact), {})
            places.setdefault((access.op.buffer, access.op.index), []).append(access)
    groups = list(kinds.items())
    for k, (kind, places) in enumerate(groups):
        for other, others in groups[k:]:
            if kind is other and (kind is ir.Load or isinstance(kind, Primitive)):
                continue  # they come to the same in all orders
            if kind is ir.Load and other is ir.Load:
                continue
            alike = {more[0].op: more for more in others.values()}
            near = Touched([more[0] for more in others.values()]).near
            for some in places.values():
                for one in near(some[0]):
                    conflict = _conflict_of(some, alike[one.op], accesses, loop, unordered)
                    if conflict is not None:
                        return conflict
    return None


def _kind_of(access: Access, unordered: bool, exact: bool) -> object:
    """What an access does: two of a kind that is a primitive, or `Load`, never conflict."""
    op = access.op
    if not isinstance(op, ir.Atomic) or not unordered:
        return type(op)
    if op.outs:
        return op
    return op if exact and op.prim in (p.add, p.mul) and is_float(op.buffer.dtype) else op.prim


def _conflict_of(
    some: list[Access], others: list[Access], accesses: Accesses, loop: Loop, unordered: bool
) -> Conflict | None:
    """A conflict between accesses to one place and those to another."""
    if not buffers_may_meet(some[0].buffer, others[0].buffer):
        return None
    # Mostly the indices alone tell. What is known where each access runs is asked only if they do not.
    a, b = [Access(one.op, one.forms, one.loop, None) for one in (some[0], others[0])]
    if not accesses.may_meet_across(a, b, loop):
        return None
    for a, b in _pairs(some, others):
        harmless = unordered and _comes_to_the_same(a, b, accesses, loop)
        if not harmless and accesses.may_meet_across(a, b, loop):
            return Conflict(a, b)
    return None


def _pairs(some: list[Access], others: list[Access]) -> Iterable[tuple[Access, Access]]:
    """All pairs of the accesses to two places, those with equal facts once."""
    seen: set[object] = set()
    for k, a in enumerate(some):
        for b in others[k:] if others is some else others:
            key = a.known, b.known, a.op.args[-1:], b.op.args[-1:], a.op.outs, b.op.outs
            if key not in seen:
                seen.add(key)
                yield a, b


def _comes_to_the_same(a: Access, b: Access, accesses: Accesses, loop: Loop) -> bool:
    """Whether two stores leave the same value, or one update is made by each iteration itself, so that old values are
    those of the order in which the iterations are.
    """
    x, y = a.op, b.op
    if isinstance(x, ir.Store) and isinstance(y, ir.Store):
        return x.value == y.value and (isinstance(x.value, ir.Lit) or accesses.invariant(x.value, loop))
    return x is y and isinstance(x, ir.Atomic) and (not x.outs or a.loop is loop)


def _verb(op: ir.MemoryOp) -> str:
    return "read" if isinstance(op, ir.Load) else "write" if isinstance(op, ir.Store) else "update"


def in_order(fn: ir.Function, loops: Container[ir.Op]) -> ir.Function:
    """`fn` with these parallel loops `ordered`."""
    return _Ordering(loops).run(fn) if loops else fn


class _Ordering(Rewriter):
    """Nothing is renamed."""

    def __init__(self, loops: Container[ir.Op]) -> None:
        super().__init__()
        self.loops = loops

    def nest(self, op: ir.Op) -> None:
        if op in self.loops:
            op = op.rebuilt(op.args, op.regions)
            assert isinstance(op, ir.For)
            op.ordered = True
        super().nest(op)
