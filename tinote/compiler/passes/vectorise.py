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

from tinote.compiler.passes._turns import Turns
from tinote.ir.access import buffers_may_meet
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Extent,
    For,
    Function,
    Get,
    If,
    Load,
    Memory,
    Op,
    Prim,
    Store,
    Task,
    Var,
)
from tinote.ir.query import definitions, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["vectorise"]


def vectorise(fn: Function) -> Function:
    """`fn` with `vectorize` set on the loops that bear it."""
    return _Vectoriser(definitions(fn.region)).run(fn)


class _Vectoriser(Rewriter):
    def __init__(self, definitions: dict[Var, Op]) -> None:
        super().__init__()
        self.definitions = definitions

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if isinstance(op, Task):
            if not op.parallel:
                return KEEP
        elif not isinstance(op, For):
            return KEEP
        if op.vectorize or not self.independent(op):
            return KEEP
        new = op.rebuilt(op.args, op.regions)
        assert isinstance(new, For | Task)
        new.vectorize = True
        self.emit(new)
        return new.outs

    def independent(self, loop: For | Task) -> bool:
        """Whether no turn touches what another writes."""
        body = loop.regions[0]
        inside = list(walk(body))
        if not all(map(_harmless, inside)):
            return False
        writes = [op for op in inside if isinstance(op, Store | Atomic)]
        if not writes:
            # Without a result there is nothing to run several of.
            return bool(loop.outs)
        accesses = [op for op in inside if isinstance(op, Memory) and not isinstance(op, Extent)]
        turns = Turns.of_task(loop, self.definitions) if isinstance(loop, Task) else Turns.of_loop(loop, self.definitions)
        return all(
            turns.apart(write, other)
            for write in writes
            for other in accesses
            if buffers_may_meet(write.buffer, other.buffer)
        )


def _harmless(op: Op) -> bool:
    """Whether several turns may do this at once, as far as the operation itself goes."""
    return isinstance(op, Prim | Load | Store | Extent | If | Get) or (isinstance(op, Atomic) and op.plain)
