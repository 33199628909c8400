"""Preserves the order of iterations that may conflict: each thread runs its iterations of such a loop in order.

    for parallel %i in 0 .. %n:               for parallel ordered %i in 0 .. %n:
      %k = load @k[%i]                 ->       %k = load @k[%i]
      %a = load @x[%k]                          %a = load @x[%k]
      store @x[%i], %a                          store @x[%i], %a

Otherwise vectorisation would run several of their iterations at once, and interchange or splitting would change their
order. `ir/conflicts.py` finds these loops: all whose iterations are not proved independent. The remark on each names
two accesses that may conflict.
"""

from __future__ import annotations

from tinote.ir.access import accesses_of
from tinote.ir.conflicts import find_conflict, in_order
from tinote.ir.nodes import For, Function, Op
from tinote.ir.query import walk
from tinote.remarks import Remark, Report, unread


def keep_order(fn: Function, report: Report = unread, *, exact: bool = False) -> Function:
    """`fn`, in scalar form, with such loops marked `ordered`. `exact`: sums of floats keep their order, too."""
    parallel = [op for op in walk(fn.region) if isinstance(op, For) and op.parallel]
    if not any(op.writes for loop in parallel for op in walk(loop.body)):
        return fn
    accesses = accesses_of(fn)
    found: set[Op] = set()
    for op in parallel:
        conflict = find_conflict(accesses, accesses.loops[op], unordered=True, exact=exact)
        if conflict is not None:
            found.add(op)
            report(Remark("keep_order", op.loc, str(conflict)))
    return in_order(fn, found)
