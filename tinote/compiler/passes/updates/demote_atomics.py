"""Demotes atomic updates to plain ones where no other thread can access the element.

    task parallel %i: i32 in 0i32 .. 64i32:         task parallel %i: i32 in 0i32 .. 64i32:
      private add @U.private of @U                    private add @U.private of @U
      %a: f32 = load @x[%i]                           %a: f32 = load @x[%i]
      atomic add @y[%i], %a                   ->      atomic plain add @y[%i], %a
      atomic add @U.private[], %a                     atomic plain add @U.private[], %a
      atomic add @h[%k], %a                           atomic add @h[%k], %a

A serial task runs on one thread, and a private copy belongs to one; where launches run on one thread, this holds for
all tasks. In a parallel task an element belongs to one iteration, and so to one thread, if no other iteration may
access it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinote.ir.access import Access, Accesses, Touched, accesses_of
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, Function, Op, Task
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import KEEP, Decision, Rewriter

#: A buffer and the operands that index it.
_Element = tuple[Buffer, tuple[Atom, ...]]


def _element(access: Access) -> _Element:
    return access.op.buffer, access.op.index


def demote_atomics(fn: Function, *, one_thread: bool = False) -> Function:
    """`fn` with plain updates of elements that only one thread can access. `one_thread`: launches run on one thread."""
    return _Demoter(accesses_of(fn), one_thread).run(fn)


class _Demoter(Rewriter):
    def __init__(self, accesses: Accesses, one_thread: bool) -> None:
        super().__init__()
        self.accesses = accesses
        self.one_thread = one_thread
        self.loop: Loop | None = None
        #: The accessed elements, one access each, without the facts known there.
        self.places = Touched(())
        self.apart: dict[_Element, bool] = {}

    def nest(self, op: Op) -> None:
        if isinstance(op, Task):
            self.loop = self.accesses.loops.get(op)
            inside = self.accesses.within(self.loop) if self.loop else []
            self.places = Touched({_element(a): Access(a.op, a.forms, a.loop, None) for a in inside}.values())
            self.apart = {}
        super().nest(op)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Atomic) or op.plain or not self.alone(op):
            return KEEP
        plain = op.rebuilt(op.args)
        assert isinstance(plain, Atomic)
        plain.plain = True
        self.emit(plain)
        return plain.outs

    def alone(self, op: Atomic) -> bool:
        """Whether no other thread of the task can access the element."""
        loop = self.loop
        if self.one_thread or loop is None or op.buffer.kind is BufferKind.PRIVATE:
            return True
        here = self.accesses.of(op)
        place = _element(here)
        if place not in self.apart:
            unaware = Access(op, here.forms, here.loop, None)
            self.apart[place] = not self.meets_any(unaware, self.places.near(unaware), loop)
        return self.apart[place] or not self.meets_any(here, self.accesses.near(here, loop), loop)

    def meets_any(self, here: Access, others: Iterable[Access], loop: Loop) -> bool:
        """Whether another iteration may access the element of `here` by one of `others`."""
        return any(self.accesses.may_meet_across(here, other, loop) for other in others)
