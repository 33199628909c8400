"""Analyses of a task before its text is emitted: the cost of an iteration, and shared totals."""

from __future__ import annotations

from tinote.ir.access import buffers_may_meet
from tinote.ir.nodes import Atom, Atomic, Buffer, For, Load, Region, Store, Var, While
from tinote.ir.query import trip_count, walk
from tinote.ir.reductions import can_be_reduced
from tinote.ir.types import Tangents

#: Greatest number of totals: each takes 256 bytes of a group's 16 kB of memory.
_MAX_SUMS = 32


def work_of(region: Region) -> int | None:
    """An upper bound of a region's operations, if known."""
    total = 0
    for op in region.body:
        times = trip_count(op.lo, op.hi) if isinstance(op, For) else None if isinstance(op, While) else 1
        if times is None:
            return None
        inner = [work_of(r) for r in op.regions]
        if None in inner:
            return None
        total += 1 + times * sum([n for n in inner if n is not None])
    return total


def sums_of(region: Region) -> frozenset[tuple[Buffer, tuple[Atom, ...]]]:
    """The elements that all iterations of a parallel task update by one operation, in buffers that it does not access
    otherwise: buffers and indices.
    """
    ops = list(walk(region))
    regions = [region, *[inner for op in ops for inner in op.regions]]
    inside = {v for op in ops for v in op.outs} | {v for r in regions for v in r.params}
    used: dict[Buffer, list[Load | Store | Atomic]] = {}
    for op in ops:
        if isinstance(op, Load | Store | Atomic):
            used.setdefault(op.buffer, []).append(op)
    found: dict[tuple[Buffer, tuple[Atom, ...]], None] = {}
    for buffer, accesses in used.items():
        others = [other for other in used if other is not buffer]
        if isinstance(buffer.dtype, Tangents) or any(buffers_may_meet(buffer, other) for other in others):
            continue
        updates = [op for op in accesses if isinstance(op, Atomic) and can_be_reduced(op)]
        updates = [op for op in updates if inside.isdisjoint([i for i in op.index if isinstance(i, Var)])]
        if len(updates) == len(accesses) and len({op.prim for op in updates}) == 1:
            found.update(dict.fromkeys([(buffer, op.index) for op in accesses]))
    return frozenset(list(found)[:_MAX_SUMS])
