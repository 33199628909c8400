"""Write conflicts: a parallel loop whose iterations read what others change has no gradient, because the value that an
iteration finds depends on the order in which they run.

    best = 1e9
    for i in x:              # the iterations of an outermost loop are parallel
        if x[i] < best:      # every iteration reads `best` …
            best = x[i]      # … and any of them may change it: refused
"""

from __future__ import annotations

from collections.abc import Iterator

from tinote.errors import DifferentiationError, Note
from tinote.ir.access import Access, Accesses, Loop, accesses_of
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atomic, Buffer, For, Function, If, Lit, Load, MemoryOp, Op, Region, Store, While
from tinote.ir.query import is_shorter, surely_iterates, walk


def refuse_write_conflicts(fn: Function) -> None:
    """Raise a `DifferentiationError` where iterations of a parallel loop certainly conflict over a float: all touch one
    element, some read and some write it, and one of the two happens in every iteration. Branches whose condition is the
    same in all iterations are left out: they may not be taken at all.
    """
    loops = [op for op in fn.region.body if isinstance(op, For) and op.parallel and _reads_what_it_writes(op)]
    if loops:
        accesses = accesses_of(fn)
        for loop in loops:
            _refuse_write_conflicts_in(loop, accesses)


def _floats_in(op: For) -> list[MemoryOp]:
    return [inner for inner in walk(op.body) if isinstance(inner, MemoryOp) and inner.buffer.dtype.kind == "f"]


def _reads_what_it_writes(op: For) -> bool:
    if is_shorter(op, 2):
        return False
    inside = _floats_in(op)
    loaded = {root_of(inner.buffer) for inner in inside if isinstance(inner, Load)}
    return any(isinstance(inner, Store | Atomic) and root_of(inner.buffer) in loaded for inner in inside)


def _refuse_write_conflicts_in(op: For, accesses: Accesses) -> None:
    loop = accesses.loop_over(op.index)
    always, alike = set(_always(op.body)), set(_taken_alike(op.body, accesses, loop))
    found = map(accesses.of, _floats_in(op))
    fixed = [a for a in found if a.op not in alike and accesses.invariant_in(a, loop)]
    writes: dict[Buffer, list[Access]] = {}
    for write in fixed:
        if isinstance(write.op, Store | Atomic):
            writes.setdefault(root_of(write.buffer), []).append(write)
    for read in [a for a in fixed if isinstance(a.op, Load)]:
        for write in writes.get(root_of(read.buffer), ()):
            if (read.op in always or write.op in always) and accesses.may_meet_across(read, write, loop):
                raise DifferentiationError(
                    f"every iteration of this parallel loop may read '{read.op.buffer.name}' here, which others "
                    "change: without an order there is no gradient",
                    read.op.loc,
                    hint="write ti.loop_config(serialize=True) before the loop",
                    notes=[Note("changed here", write.op.loc)],
                )


def _always(region: Region) -> Iterator[Op]:
    """The operations that run whenever the region does."""
    for op in region.body:
        yield op
        if isinstance(op, While):
            yield from _always(op.condition)
        elif isinstance(op, For) and surely_iterates(op):
            yield from _always(op.body)


def _taken_alike(region: Region, accesses: Accesses, loop: Loop) -> Iterator[Op]:
    """What stands in a branch whose condition is the same in all iterations of the loop."""
    for op in walk(region):
        if isinstance(op, If) and (isinstance(op.condition, Lit) or accesses.invariant(op.condition, loop)):
            yield from walk(op.then)
            yield from walk(op.orelse)
