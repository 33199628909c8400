"""Finds integer arithmetic that serves only as byte offsets, which machine code may assume not to wrap."""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.nodes import Atomic, Load, Prim, Region, Store, Var
from tinote.ir.types import i64


def offset_arithmetic(region: Region) -> set[Var]:
    """Sums and products in i64 that serve only as byte offsets.

    They do not wrap, since every access is in range.
    """
    made: list[tuple[Var, Prim]] = []
    other: set[Var] = set()
    offsets: set[Var] = set()

    def visit(r: Region) -> None:
        for op in r.body:
            if (
                isinstance(op, Prim)
                and op.outs[0].type is i64
                and (op.prim is p.add or op.prim is p.mul or op.prim is p.sub)
            ):
                made.append((op.outs[0], op))
            elif isinstance(op, Load | Store | Atomic):
                if op.index and type(op.index[0]) is Var:
                    offsets.add(op.index[0])
                if not isinstance(op, Load) and type(op.value) is Var:
                    other.add(op.value)
            else:
                other.update([a for a in op.args if type(a) is Var])
            for inner in op.regions:
                visit(inner)
        other.update([a for a in r.yields if type(a) is Var])

    visit(region)
    found: set[Var] = set()
    for out, op in reversed(made):
        if out in offsets and out not in other:
            found.add(out)
            offsets.update([a for a in op.args if type(a) is Var])
        else:
            other.update([a for a in op.args if type(a) is Var])
    return found
