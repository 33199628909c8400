"""Keeps the order of iterations that conflict over differentiated values: each thread runs its iterations of such a
loop in order, as the gradient does.

    for parallel %i in 0 .. %n:               for parallel ordered %i in 0 .. %n:
      %k = load @k[%i]                 ->       %k = load @k[%i]
      %a = load @x[%k]                          %a = load @x[%k]
      store @x[%i], %a                          store @x[%i], %a

Which loops these are `sequential_reverse.py` says. Lanes, and the invocations of a GPU, would run several of their
iterations at once, and the values, their tangents and their gradients would be those of different orders. Floats in
memory without a gradient count as well: under a tape, what differentiated values pass through has temporary adjoints.
"""

from __future__ import annotations

from tinote.autodiff.sequential_reverse import ConflictSearch, some_may_matter
from tinote.ir.access import accesses_of
from tinote.ir.buffers import Buffer
from tinote.ir.conflicts import in_order
from tinote.ir.nodes import Function
from tinote.remarks import Remark, Report, unread


def keep_order(fn: Function, report: Report = unread) -> Function:
    """`fn`, which computes values or tangents, in scalar form, with such loops `ordered`."""
    if not some_may_matter(fn):
        return fn
    found = ConflictSearch(fn, accesses_of(fn), frozenset(), _may_be_differentiated, active_only=True).meeting()
    for loop in found:
        report(Remark("keep_order", loop.loc, "iterations may conflict over what is differentiated"))
    return in_order(fn, found)


def _may_be_differentiated(buffer: Buffer) -> bool:
    return buffer.dtype.kind == "f"
