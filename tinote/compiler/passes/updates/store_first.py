"""Turns the first update of zero-initialised memory into a store.

    for parallel %i: i32 in 0i32 .. %n:             for parallel %i: i32 in 0i32 .. %n:
      %a: f64 = load @w[%i]                           %a: f64 = load @w[%i]
      atomic add @x.grad[%i], %a                      %b: f64 = … 0.0 + %a
      atomic add @x.grad[%i], %a              ->      store @x.grad[%i], %b
    atomic add @x.grad[0i32], 1.0f64                  atomic add @x.grad[%i], %a
                                                    atomic add @x.grad[0i32], 1.0f64

The gradients of a sweep begin as zeros, so the first launch that adds to them need not read them. The update's element
must not have been accessed before: neither by the update itself in another iteration of the loops around it, nor by
another access before it or in iterations that may come first. The stored value is `0 + a`, which turns the negative
zero into the positive one; it is computed bitwise, since fast maths ignores the sign of a zero.

A buffer that such stores certainly fill need not even be cleared: `ir/access_region.py` gives the stored elements.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, accesses_of, buffers_may_meet
from tinote.ir.nodes import Atom, Atomic, Buffer, For, Function, Lit, Op, Store
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, Tangents, i16, i32, i64, u1

#: Accesses per buffer that are compared with each other, at most. Chosen, not measured.
_MAX_ACCESSES = 64
_WHOLE = {t.bits: t for t in (i16, i32, i64)}


def store_first(fn: Function, zeroed: Collection[Buffer]) -> Function:
    """`fn` with stores for the first updates of the buffers `zeroed`, which hold zeros when it begins."""
    return storing_first(fn, zeroed)[0]


def storing_first(fn: Function, zeroed: Collection[Buffer]) -> tuple[Function, frozenset[Op]]:
    """As `store_first`, and also returns the stores."""
    updates = _first_updates(accesses_of(fn), zeroed)
    if not updates:
        return fn, frozenset()
    storer = _Storer(updates)
    return storer.run(fn), frozenset(storer.stores)


def _first_updates(accesses: Accesses, zeroed: Collection[Buffer]) -> set[Op]:
    found: set[Op] = set()
    everything = accesses.all()
    for buffer in zeroed:
        others = [access for access in everything if buffers_may_meet(access.buffer, buffer)]
        if len(others) > _MAX_ACCESSES:
            continue
        for at, access in enumerate(others):
            if access.buffer is buffer and _is_sum(access.op) and _is_first(access, at, others, accesses):
                found.add(access.op)
    return found


def _is_sum(op: Op) -> bool:
    """Whether an operation adds one float, with its old value unused."""
    if not isinstance(op, Atomic) or op.prim is not p.add or op.outs:
        return False
    return op.buffer.dtype.kind == "f" and not isinstance(op.buffer.dtype, Tangents)


def _is_first(update: Access, at: int, others: Sequence[Access], accesses: Accesses) -> bool:
    """Whether the update at `at` among `others` is the first access to its element."""
    for k, other in enumerate(others):
        common: Loop | None = None
        for loop in update.loops:
            if not other.inside(loop):
                break
            common = loop
            if accesses.may_meet_later(other, update, loop):
                return False
            if not _is_ordered(loop) and accesses.may_meet_later(update, other, loop):
                return False
        if k < at:
            within = accesses.may_meet(other, update)
            if common is not None:
                within = accesses.may_meet_within(other, update, common)
            if within:
                return False
    return True


def _is_ordered(loop: Loop) -> bool:
    """Whether the iterations of a loop run in order."""
    return not (isinstance(loop.op, For) and loop.op.parallel)


class _Storer(Rewriter):
    """Replaces first updates by stores. `stores`: those emitted so far."""

    def __init__(self, updates: set[Op]) -> None:
        super().__init__()
        self.updates = updates
        self.stores: list[Op] = []

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if op not in self.updates:
            return KEEP
        assert isinstance(op, Atomic)
        value = self.positive_zero(op.value, op)
        self.stores.append(self.emit(Store(op.buffer, op.index, value, op.loc, op.origin)))
        return DROP

    def positive_zero(self, value: Atom, near: Op) -> Atom:
        """A float, or zero for the negative zero."""
        assert isinstance(value.type, Scalar)
        if isinstance(value, Lit):
            return Lit(0.0, value.type) if value.value == 0 else value
        whole = _WHOLE[value.type.bits]
        bits = self.apply(p.bitcast, whole, near, value)
        is_negative_zero = self.apply(p.eq, u1, near, bits, Lit(whole.lowest, whole))
        chosen = self.apply(p.select, whole, near, is_negative_zero, Lit(0, whole), bits)
        return self.apply(p.bitcast, value.type, near, chosen)
