"""Stores that happen in every run of a function: to all elements that their access regions say, and no others.

    for parallel %i: i32 in 0i32 .. 64i32:
      for %j: i32 in 0i32 .. %n:                 store @grid[%i, %j]: all of 64 × n elements
        store @grid[%i, %j], 0.0f32
        if %c:                                   store @flag[%i]: perhaps not
          store @flag[%i], 1i32

An index is a loop's index plus what is known at launch, each loop's in one dimension; a loop whose index does not occur
runs at least once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence

from tinote.ir.access import Access, Accesses, accesses_of
from tinote.ir.affine import Affine
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Buffer, Extent, For, Function, Lit, Op, Region, Store, Var


def definite_stores(fn: Function, accesses: Accesses, among: Container[Op] | None = None) -> list[Access]:
    """The stores of `fn` (scalar form) of that kind, one for each element type's worth of components, in order; those
    `among` some.
    """
    # What is known at launch.
    parameters = frozenset(fn.region.params) | {op.out for op in fn.region.body if isinstance(op, Extent)}
    found: list[Access] = []
    for loops, stores in _groups(fn.region, ()):
        group = stores if among is None else [store for store in stores if store in among]
        if not group:
            continue
        first = accesses.of(group[0])
        components = {tuple(store.index[first.buffer.rank :]) for store in group}
        known = [c for c in components if all(isinstance(k, Lit) for k in c)]
        whole = () in components or len(known) == math.prod([n or 0 for n in first.buffer.element])
        if whole and _covers(first, loops, accesses, parameters):
            found.append(first)
    return found


def live_in_reads(fn: Function, accesses: Accesses) -> list[Access]:
    """The values that `fn` reads before it writes them, as far as is known: all that it reads except for buffers that a
    definite store of an earlier statement has fully overwritten.
    """
    top = {op: n for n, op in enumerate(fn.region.body)}
    fully_overwritten: dict[Buffer, int] = {}
    for access in definite_stores(fn, accesses):
        if _is_whole(access, accesses):
            fully_overwritten.setdefault(access.buffer, _statement(access, top))
    return [
        access
        for access in accesses.all()
        if access.reads and _statement(access, top) <= fully_overwritten.get(access.buffer, len(top))
    ]


def overwritten_buffers(fn: Function) -> frozenset[Buffer]:
    """The buffers that `fn` (scalar form) overwrites completely before it reads anything of them."""
    accesses = accesses_of(fn)
    whole = {access.buffer for access in definite_stores(fn, accesses) if _is_whole(access, accesses)}
    return frozenset(whole - {access.buffer for access in live_in_reads(fn, accesses)})


def _groups(region: Region, loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], list[Store]]]:
    """The stores that no branch decides about, those to components of one element together; with the loops around."""
    groups: defaultdict[tuple[Buffer, tuple[Atom, ...]], list[Store]] = defaultdict(list)
    for op in region.body:
        if isinstance(op, Store) and op.buffer.flat is None:
            buffer = root_of(op.buffer)
            groups[buffer, tuple(op.index[: buffer.rank])].append(op)
        elif isinstance(op, For):
            yield from _groups(op.regions[0], (*loops, op))
    for group in groups.values():
        yield loops, group


def _covers(store: Access, loops: Sequence[For], accesses: Accesses, parameters: frozenset[Var]) -> bool:
    """Whether the store reaches every element of its region."""
    over = {loop.regions[0].params[0]: loop for loop in loops}
    used: set[Var] = set()
    for form in store.forms[: store.buffer.rank]:
        for v, factor in form.terms.items():
            if v in over:
                if v in used or abs(factor) != 1 or sum(w in over for w in form.terms) > 1:
                    return False
                used.add(v)
            elif v not in parameters:
                return False
    for v, loop in over.items():
        low, high = (accesses.affine(bound) for bound in loop.args[:2])
        if v not in used:
            if not accesses.prove((high - low).shifted(-1), None):
                return False
        elif not all(w in parameters for form in (low, high) for w in form.terms):
            return False
    return True


def _is_whole(store: Access, accesses: Accesses) -> bool:
    """Whether the region is the buffer, whatever the arguments."""
    for axis, form in enumerate(store.forms[: store.buffer.rank]):
        extent = store.buffer.shape[axis]
        if extent is None or _interval(form, accesses) != (0, extent - 1):
            return False
    return True


def _interval(form: Affine, accesses: Accesses) -> tuple[int, int]:
    return form.interval(accesses.interval)


def _statement(access: Access, top: dict[Op, int]) -> int:
    """The number of the outermost statement that an access is in."""
    loops = access.loops
    return top.get(loops[0].op if loops else access.op, -1)
