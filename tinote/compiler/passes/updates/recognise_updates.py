"""Recognises read-modify-write sequences that parallel iterations may make to one element, and makes them atomic
updates.

    for parallel %i: i32 in 0i32 .. %n:             for parallel %i: i32 in 0i32 .. %n:
      %c: i32 = load @c[%i]                           %c: i32 = load @c[%i]
      %a: f32 = load @h[%c]                 ->
      %b: f32 = add %a, %e
      store @h[%c], %b                                atomic add @h[%c], %e

`h[c] = h[c] + e` means what `h[c] += e` does, in whatever order iterations run: so do `e + h[c]`, `-`, `*`, `min`,
`max`, `&`, `|` and `^`, by way of a local variable, and in a branch. `e` must not depend on that element, and nothing
else may use the loaded value. Elements that no other iteration writes are left alone, and so are extrema and products
of floats that others read or write in another way: these have a gradient only in serial order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

from tinote.compiler.passes.analyses.match_updates import UpdateMatcher
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, accesses_of, buffers_may_meet
from tinote.ir.primitives import Primitive
from tinote.ir.query import walk
from tinote.ir.rewrite import Replacing
from tinote.ir.types import Scalar

_KINDS = (ir.BufferKind.FIELD, ir.BufferKind.ARRAY)


def recognise_updates(fn: ir.Function, may_be_atomic: Callable[[Scalar], bool] = lambda t: True) -> ir.Function:
    """`fn`, in the SCALAR form, with such updates. `may_be_atomic`: whether a type has atomic updates."""
    matcher, rewrites = _Matcher(fn, may_be_atomic), dict[ir.Op, list[ir.Op]]()
    for op in fn.region.body:
        if isinstance(op, ir.For) and op.parallel:
            for update in matcher.updates_in(op):
                rewrites |= update.rewrites
    return Replacing(rewrites).run(fn) if rewrites else fn


class _Found(NamedTuple):
    """A store that is an update by `prim`: its load, the accesses that may alias it, and the replacement."""

    prim: Primitive
    reads: list[ir.Load]
    others: list[Access]
    rewrites: dict[ir.Op, list[ir.Op]]


class _Matcher(UpdateMatcher):
    def __init__(self, fn: ir.Function, may_be_atomic: Callable[[Scalar], bool]) -> None:
        super().__init__(fn.region)
        self.fn = fn
        self.may_be_atomic = may_be_atomic
        self.found: dict[ir.Op, _Found] = {}

    @cached_property
    def accesses(self) -> Accesses:
        """Those of the function."""
        return accesses_of(self.fn)

    def updates_in(self, loop: ir.For) -> list[_Found]:
        """The updates in a parallel loop."""
        memory = [op for op in walk(loop.body) if isinstance(op, ir.MemoryOp)]
        loaded = {op.buffer for op in memory if isinstance(op, ir.Load)}
        self.stored = {op.buffer for op in memory if isinstance(op, ir.Store) and op.buffer.kind in _KINDS} & loaded
        if not self.stored:
            return []
        self.found = {}
        self.changed = {op.buffer for op in memory if isinstance(op, ir.Store | ir.Atomic)}
        self.region(loop.body, loop, {})
        while True:
            reads = {load: one.prim for one in self.found.values() for load in one.reads}
            lonely = [
                op for op, one in self.found.items() if not all(self.agrees(one, a.op, reads) for a in one.others)
            ]
            if not lonely:
                return list(self.found.values())
            for op in lonely:
                del self.found[op]

    def agrees(self, one: _Found, other: ir.Op, reads: Mapping[ir.Load, Primitive]) -> bool:
        """Whether an update commutes with the accesses of other iterations."""
        if isinstance(other, ir.Atomic):
            return other.prim is one.prim and not other.outs
        if isinstance(other, ir.Load):
            return reads.get(other) is one.prim
        return other in self.found and self.found[other].prim is one.prim

    def region(self, region: ir.Region, loop: ir.For, known: dict[ir.Load, None]) -> None:
        """Match the stores in a region of `loop`.

        `known`: the loads of what it stores, before it, whose elements have not changed since.
        """
        known = dict(known)
        for op in region.body:
            if isinstance(op, ir.Load):
                if op.buffer in self.stored:
                    known[op] = None
                continue
            if isinstance(op, ir.Store) and op.buffer in self.stored:
                self.store(op, loop, known)
            for inner in op.regions:
                self.region(inner, loop, known if isinstance(op, ir.If) else {})
            for write in walk(ir.Region((), (op,))) if op.regions else (op,):
                if known and isinstance(write, ir.Store | ir.Atomic):
                    known = {load: None for load in known if not self.may_change(write, load)}

    def may_change(self, write: ir.Store | ir.Atomic, load: ir.Load) -> bool:
        if write.buffer is not load.buffer:
            return buffers_may_meet(write.buffer, load.buffer)
        # Usually it is another component of the element.
        literals = zip(reversed(write.index), reversed(load.index), strict=False)
        return not any(isinstance(a, ir.Lit) and isinstance(b, ir.Lit) and a.value != b.value for a, b in literals)

    def store(self, op: ir.Store, loop: ir.For, known: dict[ir.Load, None]) -> None:
        """Whether a store updates the loaded element."""
        loads = [load for load in known if load.buffer is op.buffer and self.same_place(load, op)]
        value, t = op.value, op.buffer.dtype
        if not loads or not isinstance(value, ir.Var) or not self.may_be_atomic(t):
            return
        self.forget()
        updates = self.updates(value, frozenset([load.out for load in loads]))
        if not updates or any(update.prim is not updates[0].prim for update in updates):
            return
        self.hold(value, 1)
        if not self.nothing_else_asks() or any(self.reads(update.value, op) for update in updates):
            return
        read = [load for load in loads if load.out in self.consumed]
        meeting = [a for a in self.meeting(op, loop) if a.op not in read]
        if any(a.writes for a in meeting):
            self.rewrites[op] = [new for update in updates for new in self.atomics(update._replace(loc=op.loc), op)]
            prim = updates[0].prim
            in_any_case = t.kind != "f" or prim is p.add
            self.found[op] = _Found(prim, read, [] if in_any_case else meeting, self.rewrites)

    def same_place(self, a: ir.MemoryOp, b: ir.MemoryOp) -> bool:
        return len(a.index) == len(b.index) and all(map(self.alike, a.index, b.index))

    def reads(self, value: ir.Atom, element: ir.MemoryOp) -> bool:
        """Whether a value may depend on an element."""
        seen: set[ir.Atom] = set()
        waiting = [value]
        while waiting:
            atom = waiting.pop()
            op = self.definitions.get(atom) if isinstance(atom, ir.Var) else None
            if op is None or atom in seen:
                continue
            seen.add(atom)
            waiting += op.args
            if isinstance(op, ir.MemoryOp):
                if op.buffer is element.buffer and self.same_place(op, element):
                    return True
            elif element.buffer in [
                inner.buffer for r in op.regions for inner in walk(r) if isinstance(inner, ir.MemoryOp)
            ]:
                return True
        return False

    def meeting(self, op: ir.Store, loop: ir.For) -> list[Access]:
        """The accesses to the element by other iterations, and by the store itself."""
        accesses, here = self.accesses, self.accesses.of(op)
        unaware = Access(op, here.forms, here.loop, None)
        around = [one for one in here.loops if isinstance(one.op, ir.For) and one.op.parallel]
        return [
            other
            for other in accesses.within(accesses.loops[loop])
            if buffers_may_meet(other.buffer, here.buffer)
            and any(
                other.inside(one)
                and accesses.may_meet_across(unaware, other, one)
                and accesses.may_meet_across(here, other, one)
                for one in around
            )
        ]
