"""What is found out about a task before its text is made: what an iteration costs, and where all iterations add up."""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, For, Lit, Load, Region, Store, Var, While
from tinote.ir.query import walk
from tinote.ir.types import u1

_MOST_SUMS = 16  # elements of one buffer


def work_of(region: Region) -> int | None:
    """How many operations a region takes at most, if that is known."""
    total = 0
    for op in region.body:
        times = 1
        if isinstance(op, While):
            return None
        if isinstance(op, For):
            if not isinstance(op.lo, Lit) or not isinstance(op.hi, Lit):
                return None
            times = max(int(op.hi.value) - int(op.lo.value), 0)
        inner = [work_of(r) for r in op.regions]
        if None in inner:
            return None
        total += 1 + times * sum([n for n in inner if n is not None])
    return total


def sums_of(region: Region) -> frozenset[tuple[Buffer, tuple[Atom, ...]]]:
    """Where all iterations of a parallel task add to the same element that it uses for nothing else: buffers and
    indices.
    """
    ops = list(walk(region))
    regions = [region, *[inner for op in ops for inner in op.regions]]
    inside = {v for op in ops for v in op.outs} | {v for r in regions for v in r.params}
    used = [op for op in ops if isinstance(op, Load | Store | Atomic)]
    found: dict[Buffer, set[tuple[Atom, ...]]] = {}
    for op in used:
        places = found.setdefault(op.buffer, set())
        adds = isinstance(op, Atomic) and not op.plain and op.prim is p.add and not op.outs
        fits = op.buffer.dtype.bits == 32 and op.buffer.dtype is not u1
        if adds and fits and inside.isdisjoint([i for i in op.index if isinstance(i, Var)]):
            places.add(op.index)
        else:
            found[op.buffer] = _NoPlaces()
    alone = {b for b in found if not any(_may_share(b, other) for other in found if other is not b)}
    return frozenset(
        [(b, place) for b, places in found.items() if b in alone and len(places) <= _MOST_SUMS for place in places]
    )


class _NoPlaces(set[tuple[Atom, ...]]):
    """Of a buffer that is used otherwise, too."""

    def add(self, element: tuple[Atom, ...]) -> None:
        """Nothing is added."""


def _may_share(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers may have memory in common: an argument with anything that launches are given."""
    given = [one for one in (a, b) if one.kind is BufferKind.ARRAY and not one.noalias]
    return bool(given) and BufferKind.TEMPORARY not in (a.kind, b.kind)
