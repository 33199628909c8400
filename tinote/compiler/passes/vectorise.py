"""Marks the innermost loops whose turns are proved independent, so that machine code may run several at once.

    task parallel %i: i32 in 0i32 .. 64i32:                task parallel %i: i32 in 0i32 .. 64i32:
      for %j: i32 in 0i32 .. 64i32:                          for vectorize %j: i32 in 0i32 .. 64i32:
        %a: f32 = load @x[%j]                         ->       %a: f32 = load @x[%j]
        store @y[%i, %j], %a                                   store @y[%i, %j], %a

Proved means: what one turn writes, no other turn reads or writes. Reductions are carried values, and machine code sees
for itself what it can make of those. A wrong mark is a wrong result, so that anything with an effect of another sort
(checks, prints, stacks, cells, indivisible updates) leaves a loop as it is. The loop of a parallel task counts when it
has no loop inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.access import Accesses
from tinote.ir.nodes import Atom, Atomic, Extent, For, Function, Get, If, Load, Op, Prim, Store, Task
from tinote.ir.query import walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["vectorise"]


def vectorise(fn: Function) -> Function:
    """`fn` with `vectorize` set on the loops that bear it."""
    return _Vectoriser(Accesses(fn)).run(fn)


class _Vectoriser(Rewriter):
    def __init__(self, accesses: Accesses) -> None:
        super().__init__()
        self.accesses = accesses

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not (isinstance(op, For) or (isinstance(op, Task) and op.parallel)):
            return KEEP
        if op.vectorize or not self.independent(op):
            return KEEP
        new = op.rebuilt(op.args, op.regions)
        assert isinstance(new, For | Task)
        new.vectorize = True
        self.emit(new)
        return new.outs

    def independent(self, op: For | Task) -> bool:
        """Whether no turn touches what another writes."""
        if not all(map(_harmless, walk(op.regions[0]))):
            return False
        loop = self.accesses.loops[op]
        inside = self.accesses.within(loop)
        writes = [access for access in inside if access.writes]
        if not writes:
            # Without a result there is nothing to run several of.
            return bool(op.outs)
        return not any(self.accesses.may_meet_across(write, other, loop) for write in writes for other in inside)


def _harmless(op: Op) -> bool:
    """Whether several turns may do this at once, as far as the operation itself goes."""
    return isinstance(op, Prim | Load | Store | Extent | If | Get) or (isinstance(op, Atomic) and op.plain)
