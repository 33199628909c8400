"""Walks over active cells.

    for block in 0 .. 16:                 one loop for each group of the field's cells
      if activity[block]:                 a group with an activity is asked
        for cell in 0 .. 64: …

Iterations run over what was active before the loop: where its body changes that, it is copied before (`snapshot`).
"""

from __future__ import annotations

from collections.abc import Callable

from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.sparse_elements import Places
from tinote.compiler.frontend.values import Value
from tinote.ir import primitives as p
from tinote.ir.index_arithmetic import IndexArithmetic, index_of_digits
from tinote.ir.nodes import Atom, For, Lit, Region, Var
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import i32


def bound(e: Emitter, sparsity: Sparsity, places: Places) -> Atom:
    """The number of cells of the group that comes after these places."""
    group = sparsity.groups[len(places)]
    if group.activity is not None and group.activity.is_list:
        return e.b.load(group.activity.buffer, places)
    return Lit(group.cells, i32)


def where_active(e: Emitter, sparsity: Sparsity, places: Places, region: Region, *, listed: bool) -> None:
    """Run what is in a region where the cells of the last group are active, or were so when they were listed."""
    activity = sparsity.groups[len(places) - 1].activity
    assert activity is not None and activity.listed is not None
    flag = e.b.load(activity.listed if listed else activity.buffer, places)
    e.b.if_(e.prim(p.ne, Value(flag), 0).atom, region)


def has_flags(sparsity: Sparsity, group: int) -> bool:
    """Whether the cells of a group are active or not one by one."""
    activity = sparsity.groups[group].activity
    return activity is not None and not activity.is_list


def walk(
    e: Emitter, sparsity: Sparsity, body: Callable[[Places], None], places: Places = (), depth: int | None = None
) -> None:
    """A loop over the cells that are active now, of all groups or of the first `depth`, below these places."""
    if len(places) == (len(sparsity.groups) if depth is None else depth):
        body(places)
        return
    end, index = bound(e, sparsity, places), Var(i32)
    parallel = e.depth == 0
    with e.region(index) as opened:
        inner = (*places, index)
        if has_flags(sparsity, len(places)):
            with e.region() as inside:
                walk(e, sparsity, body, inner, depth)
            where_active(e, sparsity, inner, inside.close(), listed=False)
        else:
            walk(e, sparsity, body, inner, depth)
    e.b.emit(For(Lit(0, i32), end, (), opened.close(), (), e.b.loc, parallel=parallel))


def snapshot(e: Emitter, sparsity: Sparsity) -> None:
    """Copy what is active, for a loop that changes it."""
    deepest = max([depth for depth, activity in sparsity.activities if not activity.is_list], default=0)

    def level(places: Places) -> None:
        if len(places) == deepest:
            return
        end, index = bound(e, sparsity, places), Var(i32)
        parallel = e.depth == 0
        with e.region(index) as opened:
            inner = (*places, index)
            activity = sparsity.groups[len(places)].activity
            if activity is not None and activity.listed is not None:
                e.b.store(activity.listed, inner, e.b.load(activity.buffer, inner))
                with e.region() as inside:
                    level(inner)
                where_active(e, sparsity, inner, inside.close(), listed=False)
            else:
                level(inner)
        e.b.emit(For(Lit(0, i32), end, (), opened.close(), (), e.b.loc, parallel=parallel))

    level(())


def changes(e: Emitter, sparsity: Sparsity) -> list[int]:
    """How often the code so far changes what is active there."""
    return [e.sparse.changes.get(activity.buffer, 0) for _, activity in sparsity.activities]


def coordinates(e: Emitter, sparsity: Sparsity, places: Places) -> Places:
    """The index of a cell that a loop runs over, as its users count; it is known to be active."""
    arithmetic = IndexArithmetic(e.b)
    digits = sparsity.digits_at(places, arithmetic.divide, arithmetic.remainder)
    index = index_of_digits(e.b, sparsity, digits)
    e.sparse.located[sparsity.geometry, index] = places
    for axis, (i, own) in enumerate(zip(index, digits, strict=True)):
        e.sparse.digits[sparsity.geometry, axis, i] = own
    e.sparse.note_active(sparsity, places)
    return index
