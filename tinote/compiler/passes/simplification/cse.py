"""Common subexpression elimination: computes equal expressions once.

    %a: f32 = mul %x, %y                            %a: f32 = mul %x, %y
    %b: f32 = mul %y, %x                      ->    %c: f32 = add %a, %a
    %c: f32 = add %a, %b

A result is reused where it is in scope: in the rest of its region and in the regions inside. It covers primitives and
extents only; `forward_stores` handles memory. A check that has passed is not repeated.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tinote.ir.nodes import Atom, Check, Extent, Function, Op, Prim, Region
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter


def cse(fn: Function) -> Function:
    """`fn` with repeated computations replaced by the first."""
    return _Cse().run(fn)


class _Cse(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Hashable, tuple[Atom, ...]] = {}
        #: the keys that each open region added; they are removed when it ends
        self.scopes: list[list[Hashable]] = []

    def enter(self, region: Region) -> None:
        self.scopes.append([])

    def leave(self, region: Region) -> None:
        for key in self.scopes.pop():
            del self.known[key]

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if isinstance(op, Prim):
            args = op.args
            if op.prim.commutative and hash(args[0]) > hash(args[1]):
                args = (args[1], args[0])
            key: Hashable = (op.prim, args, op.outs[0].type)
        elif isinstance(op, Extent):
            key = (op.buffer, op.axis)
        elif isinstance(op, Check):
            key = (Check, op.args[0])
        else:
            return KEEP
        found = self.known.get(key)
        if found is None:
            self.known[key] = op.outs
            self.scopes[-1].append(key)
            return KEEP
        return found if op.outs else DROP
