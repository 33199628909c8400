"""Atomic operations that nobody else can meet become a load, arithmetic and a store, whose derivatives are known.

    %old = atomic mul @x[%i], %a      ->      %old = load @x[%i]
                                              %new = mul %old, %a
                                              store @x[%i], %new

An accumulation whose old value nobody asks for stays as it is: it is linear, and its derivative needs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.nodes import Atom, Atomic, For, Function, Load, Op, Prim, Store, Var
from tinote.ir.query import walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["unfold_atomics"]


def unfold_atomics(fn: Function) -> Function:
    """`fn` with the atomic operations unfolded that need it and run alone on their element."""
    wanted = [op for op in walk(fn.region) if isinstance(op, Atomic) and (op.prim is not p.add or op.outs)]
    if not wanted:
        return fn
    accesses = Accesses(fn)
    alone: set[tuple[Atom, ...] | Op] = set()
    for op in wanted:
        access = accesses.of(op)
        loops = [loop for loop in access.loops if isinstance(loop.op, For) and loop.op.parallel]
        if all(accesses.unique_per_iteration(access, loop) for loop in loops):
            alone.add(op)
    return _Unfold({id(op) for op in alone}).run(fn) if alone else fn


class _Unfold(Rewriter):
    """Operations are looked up before they are rewritten: a rewritten one is another object."""

    def __init__(self, chosen: set[int]) -> None:
        super().__init__()
        self.chosen = chosen
        self.current: Op | None = None

    def visit(self, op: Op) -> None:
        self.current = op
        super().visit(op)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Atomic) or id(self.current) not in self.chosen:
            return KEEP
        old, new = Var(op.value.type, "old"), Var(op.value.type, "new")
        self.emit(Load(op.buffer, op.index, (old,), op.loc, op.origin))
        self.emit(Prim(op.prim, (old, op.value), (new,), op.loc, op.origin))
        self.emit(Store(op.buffer, op.index, new, op.loc, op.origin))
        return (old,) if op.outs else ()
