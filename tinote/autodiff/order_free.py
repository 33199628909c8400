"""Reverse loops whose iterations may run in any order: they only add, and do not change memory that they read.

    for reverse %j in 0..%n carrying %d = %g, %s = 0.0:
      %c = mul %d, %v
      atomic add @x.grad[%j], %c          (additions commute)
      %t = add %s, %c                     (so do these)
      yield %d, %t                        (%d is the same all along)

Such a loop may run in the order of the primal one, and compute what that carries on the way: nothing has to be saved
for each iteration (`storage.py`), and both may become one loop (`fuse_sweeps.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.query import definitions, free_variables, walk

_PURE = (ir.Prim, ir.Extent, ir.If, ir.For)


def is_order_free(loop: ir.For) -> bool:
    """Whether the iterations of a loop may run in any order, rounding of sums aside."""
    if not _only_adds(loop.body):
        return False
    made = definitions(loop.body)
    pairs = enumerate(zip(loop.carried, loop.body.yields, strict=True))
    changing = [k for k, (q, y) in pairs if _unchanged(y, made) is not q]
    return all(_is_sum(loop.body, loop.carried[k], k) for k in changing)


def _unchanged(atom: ir.Atom, made: Mapping[ir.Var, ir.Op]) -> ir.Atom:
    """What a loop that carries it leaves as it was stands for what goes in."""
    while isinstance(atom, ir.Var):
        loop = made.get(atom)
        if not isinstance(loop, ir.For):
            return atom
        k = loop.outs.index(atom)
        if _unchanged(loop.body.yields[k], made) is not loop.carried[k]:
            return atom
        atom = loop.initial[k]
    return atom


def reads_alone(region: ir.Region) -> bool:
    """Whether nothing in a region writes to memory or to a stack."""
    return all(isinstance(op, (*_PURE, ir.Load)) for op in walk(region))


def _only_adds(region: ir.Region) -> bool:
    """Whether a region changes memory by atomic additions alone, and reads none of their results."""
    read: set[ir.Buffer] = set()
    written: set[ir.Buffer] = set()
    for op in walk(region):
        if isinstance(op, ir.Load):
            read.add(op.buffer)
        elif isinstance(op, ir.Atomic) and op.prim is p.add and not op.outs:
            written.add(op.buffer)
        elif not isinstance(op, _PURE):
            return False
    return not any(buffers_may_meet(a, b) for a in read for b in written)


def _is_sum(body: ir.Region, carried: ir.Var, position: int) -> bool:
    """Whether each iteration adds something to a carried value, and uses it for nothing else."""
    partial: set[ir.Atom] = {carried}
    return _adds_up(body, partial) and all((y in partial) == (k == position) for k, y in enumerate(body.yields))


def _adds_up(region: ir.Region, partial: set[ir.Atom]) -> bool:
    """Add to `partial`, the values that the sum takes on, those that are bound in `region`; False if one of them goes
    anywhere else, or is left out on one way.
    """
    for op in region.body:
        given = [a in partial for a in op.args]
        if isinstance(op, ir.Prim):
            if any(given):
                if op.prim is not p.add or all(given):
                    return False
                partial.add(op.out)
        elif isinstance(op, ir.If):
            if given[0] or not all(_adds_up(r, partial) for r in op.regions):
                return False
            for out, then, orelse in zip(op.outs, op.then.yields, op.orelse.yields, strict=True):
                if (then in partial) != (orelse in partial):
                    return False
                if then in partial:
                    partial.add(out)
        elif isinstance(op, ir.For):
            # Once for each iteration, and not once: no sum of this loop's.
            if any(given[:2]) or sum(given) > 1 or not partial.isdisjoint(free_variables(op.body)):
                return False
            inside: set[ir.Atom] = {q for q, one in zip(op.carried, given[2:], strict=True) if one}
            if inside and not _adds_up(op.body, inside):
                return False
            for q, y, out in zip(op.carried, op.body.yields, op.outs, strict=True):
                if (q in inside) != (y in inside):
                    return False
                if q in inside:
                    partial.add(out)
        elif any(given):
            return False
    return True
