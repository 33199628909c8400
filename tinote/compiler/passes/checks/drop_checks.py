"""Drops checks of indices that are proved: the front end checks every index of a sparse field.

for parallel %i: i32 in 0i32 .. 63i32:          for parallel %i: i32 in 0i32 .. 63i32:
  %j: i32 = add %i, 1i32                          %j: i32 = add %i, 1i32
  %a: u1 = lt %j, 64i32                  ->       %a: u1 = lt %j, 64i32
  check bounds "x" %a, %j, 64i32                  …
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tinote.ir.access import Accesses
from tinote.ir.nodes import Atom, Check, FaultKind, Function, Op
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter


def drop_checks(fn: Function) -> Function:
    """`fn` without the checks of indices that always hold."""
    return _Dropper(fn).run(fn)


class _Dropper(Rewriter):
    """Nothing is renamed, so operations are analysed as they were."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.fn = fn

    @cached_property
    def accesses(self) -> Accesses:
        return Accesses(self.fn)

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Check) or op.kind is not FaultKind.BOUNDS:
            return KEEP
        index, extent = (self.accesses.affine(a) for a in op.args[1:3])
        return DROP if self.accesses.between(index, extent, self.accesses.known_before(op)) == (True, True) else KEEP
