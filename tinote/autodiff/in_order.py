"""Parallel loops of which several turns may store to one element are put in an order.

    for parallel %i in 0 .. %n:               for %i in 0 .. %n:
      %k = load @k[%i]                 ->       %k = load @k[%i]
      %a = load @x[%i]                          %a = load @x[%i]
      store @y[%k], %a                          store @y[%k], %a          (of several turns, the last one wins)

Which turn of a parallel loop stores last is not defined. Run in order, which is how a loop runs that is too small for
several threads, the last turn does: its value alone is what the element holds, and gets the gradient. Additions may
come in any order, and an element of which it is certain that no other turn stores to it needs none.
"""

from __future__ import annotations

from collections.abc import Set

from tinote.autodiff.activity import can_vary
from tinote.ir.access import Access, Accesses
from tinote.ir.buffers import Buffer, root_of
from tinote.ir.nodes import For, Function, Load, Op, Region, Store
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter

__all__ = ["InOrder", "loops_of", "put_in_order"]


def put_in_order(fn: Function, distinct: Set[Buffer] = frozenset()) -> Function:
    """`fn` with such loops made serial. What is loaded from `distinct` is another number in each turn."""
    stored = {root_of(op.buffer) for op in walk(fn.region) if isinstance(op, Store) and can_vary(op.buffer)}
    if not stored or not any(isinstance(op, For) and op.parallel for op in fn.region.body):
        return fn
    accesses = Accesses(fn)
    writes = [access for access in accesses.all() if access.writes and root_of(access.buffer) in stored]
    serial: set[Op] = set()
    for access in writes:
        if not isinstance(access.op, Store) or _is_distinct(access, accesses, distinct):
            continue
        for loop in _parallel(access):
            if loop.op not in serial and any(_meet(access, other, loop, accesses) for other in writes):
                serial.update(loops_of(loop.op))
    return InOrder(serial).run(fn) if serial else fn


def loops_of(op: Op) -> list[Op]:
    """A loop, and those inside of it."""
    return [inner for inner in walk(Region((), (op,))) if isinstance(inner, For)]


def _parallel(access: Access) -> list[Loop]:
    return [loop for loop in access.loops if isinstance(loop.op, For) and loop.op.parallel]


def _meet(access: Access, other: Access, loop: Loop, accesses: Accesses) -> bool:
    return (
        root_of(other.buffer) is root_of(access.buffer)
        and other.inside(loop)
        and accesses.may_meet_across(access, other, loop)
    )


def _is_distinct(access: Access, accesses: Accesses, distinct: Set[Buffer]) -> bool:
    """Whether an index of the access is such a number, plus the same in each turn."""
    for form in access.forms:
        for v in form.terms:
            made = accesses.definitions.get(v)
            if isinstance(made, Load) and made.buffer in distinct and len(form.terms) == 1:
                return True
    return False


class InOrder(Rewriter):
    """Makes the loops `serial` serial."""

    def __init__(self, serial: set[Op]) -> None:
        super().__init__()
        self.serial = serial

    def visit(self, op: Op) -> None:
        if isinstance(op, For) and op in self.serial:
            op = For(op.lo, op.hi, op.initial, op.body, op.outs, op.loc, reverse=op.reverse, origin=op.origin)
        super().visit(op)
