"""Makes plain those atomic updates that no other thread can meet.

    task parallel %i: i32 in 0i32 .. 64i32:         task parallel %i: i32 in 0i32 .. 64i32:
      private add @U.private of @U                    private add @U.private of @U
      %a: f32 = load @x[%i]                           %a: f32 = load @x[%i]
      atomic add @y[%i], %a                   ->      atomic plain add @y[%i], %a
      atomic add @U.private[], %a                     atomic plain add @U.private[], %a
      atomic add @h[%k], %a                           atomic add @h[%k], %a

A serial task has no other threads, and a private copy belongs to one. In a parallel task an element belongs to one
iteration, and so to one thread, if no access of another iteration may meet it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes._turns import Turns
from tinote.ir.access import buffers_may_meet
from tinote.ir.nodes import Atom, Atomic, BufferKind, Extent, Function, Memory, Op, Task
from tinote.ir.query import definitions, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["demote_atomics"]


def demote_atomics(fn: Function) -> Function:
    """`fn` with every atomic update plain that only one thread can reach."""
    return _Demoter(fn).run(fn)


class _Demoter(Rewriter):
    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.definitions = definitions(fn.region)
        self.turns: Turns | None = None
        self.accesses: list[Memory] = []
        self.lonely: dict[object, bool] = {}

    def visit(self, op: Op) -> None:
        if isinstance(op, Task):
            self.turns = Turns.of_task(op, self.definitions) if op.parallel else None
            self.accesses = [a for a in walk(op.body) if isinstance(a, Memory) and not isinstance(a, Extent)]
            self.lonely = {}
        super().visit(op)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Atomic) or op.plain or not self.alone(op):
            return KEEP
        plain = op.rebuilt(op.args)
        assert isinstance(plain, Atomic)
        plain.plain = True
        self.emit(plain)
        return plain.outs

    def alone(self, op: Atomic) -> bool:
        """Whether no other thread of the task reaches the element."""
        if self.turns is None or op.buffer.kind is BufferKind.PRIVATE:
            return True
        key = (op.buffer, op.index)
        found = self.lonely.get(key)
        if found is None:
            turns = self.turns
            others = (a for a in self.accesses if buffers_may_meet(a.buffer, op.buffer))
            found = self.lonely[key] = all(turns.apart(op, other) for other in others)
        return found
