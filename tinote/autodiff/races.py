"""Parallel loops whose turns read what the others change have no gradient: which value a turn finds depends on an order
that there is not.

    best = 1e9
    for i in x:              # the turns of an outermost loop are parallel
        if x[i] < best:      # every turn reads `best` …
            best = x[i]      # … and any of them may change it: refused

    for i in range(n - 1):
        x[i] = x[i + 1] * 2  # changed here, and read by the turn before: refused
"""

from __future__ import annotations

from collections.abc import Iterator

from tinote.errors import DifferentiationError, Note
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses
from tinote.ir.affine import Affine, variable
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, For, Function, If, Lit, Load, Memory, Op, Prim, Region, Store, Var, While
from tinote.ir.query import walk
from tinote.ir.ranges import Loop

__all__ = ["refuse_races"]


def refuse_races(fn: Function) -> None:
    """Raise a `DifferentiationError` where turns of a parallel loop certainly meet over a float. Either all touch one
    element, some read and some write it, and one of the two happens in every turn; branches that all turns take alike
    are left out: they may not be taken at all. Or each turn reads what a turn at a fixed distance writes.
    """
    for op in fn.region.body:
        if isinstance(op, For) and op.parallel:
            inside = [inner for inner in walk(op.body) if isinstance(inner, Memory) and inner.buffer.dtype.kind == "f"]
            loaded = {root_of(inner.buffer) for inner in inside if isinstance(inner, Load)}
            if any(isinstance(inner, Store | Atomic) and root_of(inner.buffer) in loaded for inner in inside):
                accesses = Accesses(fn)
                if not _runs_once(op):
                    _refuse_shared(op, inside, accesses)
                for loop in walk(Region((), (op,))):
                    if isinstance(loop, For) and loop.parallel:
                        _refuse_shifted(loop, accesses)


def _refuse_shared(op: For, inside: list[Memory], accesses: Accesses) -> None:
    """Refuse an element that all turns touch."""
    loop = accesses.loop_over(op.index)
    always, alike = set(_always(op.body)), set(_taken_alike(op.body, accesses, loop))
    fixed = [a for a in map(accesses.of, inside) if a.op not in alike and accesses.invariant_in(a, loop)]
    for read in fixed:
        for write in fixed:
            if (read.op in always or write.op in always) and _meet(read, write, accesses, loop):
                raise DifferentiationError(
                    f"every turn of this parallel loop may read '{read.op.buffer.name}' here, which others change: "
                    "without an order there is no gradient",
                    read.op.loc,
                    hint="write ti.loop_config(serialize=True) in front of the loop",
                    notes=[Note("changed here", write.op.loc)],
                )


def _refuse_shifted(op: For, accesses: Accesses) -> None:
    """Refuse elements that one turn reads and another changes, a fixed number of turns away."""
    loop = accesses.loop_over(op.index)
    found = [(accesses.of(inner), ifs) for inner, ifs in _regularly(op.body, (), accesses, loop)]
    for read, ifs in found:
        for write, others in found:
            if ifs == others and _meet(read, write, accesses, loop) and _surely_meet(read, write, accesses, loop):
                raise DifferentiationError(
                    f"each turn of this parallel loop reads an element of '{read.op.buffer.name}' that another one "
                    "changes: without an order there is no gradient",
                    read.op.loc,
                    hint="write the new values to another field, or ti.loop_config(serialize=True) in front of the "
                    "loop",
                    notes=[Note("changed here", write.op.loc)],
                )


def _regularly(
    region: Region, ifs: tuple[Region, ...], accesses: Accesses, loop: Loop
) -> Iterator[tuple[Memory, tuple[Region, ...]]]:
    """The accesses to floats in all turns of a loop but those at its ends, with the branches around each: those for
    which an index is compared with a number. All turns run the inner loops alike.
    """
    for op in region.body:
        if isinstance(op, Memory) and op.buffer.dtype.kind == "f":
            yield op, ifs
        elif isinstance(op, For):
            if all(isinstance(bound, Lit) or accesses.invariant(bound, loop) for bound in (op.lo, op.hi)):
                yield from _regularly(op.body, ifs, accesses, loop)
        elif isinstance(op, If) and _is_bound(op.condition, accesses):
            for branch in op.regions:
                yield from _regularly(branch, (*ifs, branch), accesses, loop)


def _is_bound(condition: Atom, accesses: Accesses) -> bool:
    """Whether the condition is that the index of a loop is less, or greater, than a number."""
    made = accesses.definitions.get(condition) if isinstance(condition, Var) else None
    if not isinstance(made, Prim):
        return False
    if made.prim in (p.and_, p.or_):
        return all(_is_bound(part, accesses) for part in made.args)
    if made.prim not in (p.lt, p.le, p.gt, p.ge) or any(a.type.kind == "f" for a in made.args):
        return False
    difference = accesses.affine(made.args[0]) - accesses.affine(made.args[1])
    return len(difference.terms) == 1 and all(v in accesses.indices for v in difference.terms)


def _surely_meet(read: Access, write: Access, accesses: Accesses, loop: Loop) -> bool:
    """Whether one turn of the loop reads what another one writes, for certain: in each dimension the indices are the
    same multiple of the index of a loop around both, and differ by a number.
    """
    distances: dict[Var, int] = {}
    for f, g in zip(_unwrapped(read, accesses), _unwrapped(write, accesses), strict=False):
        moving = [v for v in {**f.terms, **g.terms} if not (v is not loop.index and accesses.invariant(v, loop))]
        if (f - g).terms or len(moving) > 1:
            return False
        for v in moving:
            distance, rest = divmod(g.const - f.const, f.coefficient(v))
            if rest or distances.setdefault(v, distance) != distance:
                return False
        if not moving and f.const != g.const:
            return False
    assert loop.index is not None
    return distances.get(loop.index, 0) != 0 and all(
        _has_turns(v, distance, read, write, accesses) for v, distance in distances.items()
    )


def _unwrapped(access: Access, accesses: Accesses) -> list[Affine]:
    """The indices of an access in the turns in which none of them wraps around: `(i + 1) % n` is `i + 1` there."""
    found: list[Affine] = []
    for form in access.forms:
        made = accesses.definitions.get(next(iter(form.terms))) if len(form.terms) == 1 else None
        if isinstance(made, Prim) and made.prim in (p.mod, p.raw_mod) and form == variable(made.out):
            inside = accesses.affine(made.args[0])
            if len(inside.terms) == 1 and abs(inside.const) <= 1 and _is_wide(made.args[1], inside, accesses):
                form = inside
        found.append(form)
    return found


def _is_wide(divisor: Atom, form: Affine, accesses: Accesses) -> bool:
    """Whether most values of the form are less than the divisor: of a loop as long, all but those at its ends."""
    (v,) = form.terms
    first, last = accesses.interval(v)
    if isinstance(divisor, Lit):
        return form.coefficient(v) == 1 and 2 <= last - first < int(divisor.value)
    loop = accesses.indices.get(v)
    return form.coefficient(v) == 1 and loop is not None and isinstance(loop.op, For) and loop.op.hi is divisor


def _has_turns(v: Var, distance: int, read: Access, write: Access, accesses: Accesses) -> bool:
    """Whether the loop over `v` has two turns so far apart, in one of which the read happens, and in the other the
    write. A loop of unknown length is taken to have two turns.
    """
    loop = accesses.indices.get(v)
    if loop is None or not isinstance(loop.op, For):
        return False
    if not (isinstance(loop.op.lo, Lit) and isinstance(loop.op.hi, Lit)):
        return abs(distance) <= 1
    first, last = accesses.interval_at(v, read.known)
    least, greatest = accesses.interval_at(v, write.known)
    return max(first, least + distance) <= min(last, greatest + distance)


def _meet(read: Access, write: Access, accesses: Accesses, loop: Loop) -> bool:
    return (
        isinstance(read.op, Load)
        and isinstance(write.op, Store | Atomic)
        and root_of(read.buffer) is root_of(write.buffer)
        and accesses.may_meet_across(read, write, loop)
    )


def _runs_once(loop: For) -> bool:
    return isinstance(loop.lo, Lit) and isinstance(loop.hi, Lit) and loop.hi.value - loop.lo.value <= 1


def _always(region: Region) -> Iterator[Op]:
    """What runs whenever the region does."""
    for op in region.body:
        yield op
        if isinstance(op, While):
            yield from _always(op.condition)
        elif isinstance(op, For) and isinstance(op.lo, Lit) and isinstance(op.hi, Lit) and op.lo.value < op.hi.value:
            yield from _always(op.body)


def _taken_alike(region: Region, accesses: Accesses, loop: Loop) -> Iterator[Op]:
    """What stands in a branch that all turns of the loop take alike."""
    for op in walk(region):
        if isinstance(op, If) and (isinstance(op.condition, Lit) or accesses.invariant(op.condition, loop)):
            yield from walk(op.then)
            yield from walk(op.orelse)
