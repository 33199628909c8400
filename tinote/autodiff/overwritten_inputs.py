"""Overwritten inputs: loads that the gradient executes again must find what the primal found, so no later write may
have changed the element.

The gradient runs after the whole kernel. A write *before* the load, in program order, produced what the load saw and
does no harm; a write that runs after it, further down or in a later iteration of a loop around both, does if it can
touch the same element. Two array arguments count as distinct: a launch that is differentiated is refused if they share
memory that is written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from tinote.errors import DifferentiationError, Note
from tinote.ir.access import Access, Accesses, accesses_of
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atomic, Buffer, For, Function, If, Load, Op, Region, Store


class Overwrite(NamedTuple):
    """`write` may change what `load` read, after it was read."""

    load: Load
    write: Store | Atomic


def refuse_overwrite(overwrite: Overwrite, hint: str) -> NoReturn:
    """Raise a `DifferentiationError` that names the line that reads and the line that overwrites."""
    raise DifferentiationError(
        f"the gradient needs the value of '{overwrite.load.buffer.name}' that is read here, "
        "but the kernel overwrites it afterwards",
        overwrite.load.loc,
        hint=hint,
        notes=[Note("overwritten here", overwrite.write.loc)],
    )


#: Where an operation stands: for each region around it, outermost first, the operation that owns the region, its number
#: among that operation's regions, and the position inside.
_Path = tuple[tuple[Op | None, int, int], ...]


def find_overwrites(fn: Function, loads: tuple[Load, ...]) -> Iterator[Overwrite]:
    """Each load among `loads` that a later write may meet, with the first such write."""
    if not loads:
        return
    accesses = accesses_of(fn)
    everything = accesses.all()
    paths = dict(_paths(fn.region, ()))
    order = {access.op: number for number, access in enumerate(everything)}
    writes: dict[Buffer, list[Access]] = {}
    for access in everything:
        if access.writes:
            writes.setdefault(root_of(access.buffer), []).append(access)
    for load in loads:
        read = accesses.of(load)
        # What stands before the outermost loop around the load, or else before the load, is over by then.
        begins = accesses.first_within(read.loops[0]) if read.loops else read
        candidates = writes.get(root_of(read.buffer), [])
        for write in candidates[bisect_left(candidates, order[begins.op], key=lambda access: order[access.op]) :]:
            if _meets_later(read, write, accesses, paths):
                assert isinstance(write.op, Store | Atomic)
                yield Overwrite(load, write.op)
                break


def _paths(region: Region, above: _Path, owner: Op | None = None, number: int = 0) -> Iterator[tuple[Op, _Path]]:
    for position, op in enumerate(region.body):
        here = (*above, (owner, number, position))
        yield op, here
        for k, inner in enumerate(op.regions):
            yield from _paths(inner, here, op, k)


def _meets_later(read: Access, write: Access, accesses: Accesses, paths: dict[Op, _Path]) -> bool:
    """Whether the write may touch, after the read, the element that was read."""
    shared = [loop for loop in read.loops if write.inside(loop)]
    for loop in shared:
        # The iterations of a parallel loop have no order: any of them may come later.
        unordered = isinstance(loop.op, For) and loop.op.parallel
        meets = accesses.may_meet_across if unordered else accesses.may_meet_later
        if meets(read, write, loop):
            return True
    if not _further_down(paths[read.op], paths[write.op]):
        return False
    return accesses.may_meet_within(read, write, shared[-1]) if shared else accesses.may_meet(read, write)


def _further_down(first: _Path, second: _Path) -> bool:
    """Whether the second operation runs after the first in one iteration of the loops around both."""
    common = 0
    while common < min(len(first), len(second)) and first[common][:2] == second[common][:2]:
        common += 1
    # They share the first `common` regions and part in the last of these, perhaps into two regions of one operation.
    a, b = first[common - 1][2], second[common - 1][2]
    if a != b:
        return b > a
    # In the two arms of an `if`, only one of them runs; the condition of a `while` runs before its body.
    return common < len(first) and not isinstance(first[common][0], If)
