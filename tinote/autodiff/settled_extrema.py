"""Extrema whose gradient needs no value that the launch has overwritten: the final one suffices.

    for parallel %i: i32 in 0i32 .. 9i32:
      %a: f32 = load @x[%i]
      atomic minimum @m[], %a

The element that equals what `m` holds in the end is the minimum. A gradient that begins with that value in place of the
one before the launch finds the same winner, of equal ones too (the last), and leaves the adjoint of `m` where it is if
the value before was less than all. The terms have to be the same bits again: elements of memory that the kernel does
not change, and what is exact of them.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, Buffer, Function, Load, Op, Prim, Store, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import definitions, walk

_EXTREMA = (p.minimum, p.maximum)
_EXACT = (p.neg, p.absolute, p.cast)


def settled_extrema(fn: Function) -> frozenset[Buffer]:
    """The buffers that `fn` (scalar form) only takes the minimum of, or only the maximum, with such terms."""
    accesses = [op for op in walk(fn.region) if isinstance(op, Load | Store | Atomic)]
    written = {root_of(op.buffer) for op in accesses if not isinstance(op, Load)}
    made = definitions(fn.region)
    updates: dict[Buffer, set[Primitive | None]] = {}
    for op in accesses:
        root = root_of(op.buffer)
        if root in written:
            updates.setdefault(root, set()).add(_updating(op, made, written))
    return frozenset([root for root, prims in updates.items() if len(prims) == 1 and None not in prims])


def _updating(op: Load | Store | Atomic, made: dict[Var, Op], written: set[Buffer]) -> Primitive | None:
    """The extremum by which an access updates an element with a term that is exact, if it does."""
    if isinstance(op, Atomic) and op.prim in _EXTREMA and not op.outs and _exact(op.value, made, written):
        return op.prim
    return None


def _exact(term: Atom, made: dict[Var, Op], written: set[Buffer]) -> bool:
    op = made.get(term) if isinstance(term, Var) else None
    if isinstance(op, Load):
        return root_of(op.buffer) not in written
    return not isinstance(term, Var) or (
        isinstance(op, Prim) and op.prim in _EXACT and _exact(op.args[0], made, written)
    )
