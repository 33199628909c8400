"""Dependence distance: parallel loops in which an iteration reads what another one, a fixed number of iterations away,
changes.

    for i in range(n - 1):
        x[i] = x[i + 1] * 2      # the element that the next iteration changes

    for i in x:
        if i > 0:                # true in most iterations
            x[i] += x[i - 1]

The value that an iteration finds depends on the order in which they run, so there is no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from tinote.errors import DifferentiationError, Note
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses
from tinote.ir.affine import Affine, variable
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atom, Atomic, Extent, For, If, Lit, Load, MemoryOp, Op, Prim, Region, Store, Var
from tinote.ir.primitives import Primitive
from tinote.ir.ranges import Loop
from tinote.ir.types import is_float


class CarriedDependence(NamedTuple):
    """What one iteration of a parallel loop reads at `read` another one changes at `write`."""

    read: Load
    write: Store | Atomic


class Takes(Enum):
    """Which iterations of a loop take a branch."""

    MOST = auto()  # those whose index is less, or greater, than a number
    ANY = auto()  # that depends on what memory holds, or on how an index compares with another one or an argument
    SOME = auto()  # anything else, such as every second one


def refuse_carried_dependence(dependence: CarriedDependence | None) -> None:
    """Raise a `DifferentiationError` if there is one."""
    if dependence is not None:
        raise DifferentiationError(
            f"each iteration of this parallel loop reads an element of '{dependence.read.buffer.name}' that another "
            "one changes: without an order there is no gradient",
            dependence.read.loc,
            hint="write the new values to another field, or ti.loop_config(serialize=True) before the loop",
            notes=[Note("changed here", dependence.write.loc)],
        )


def find_carried_dependence(accesses: Accesses) -> CarriedDependence | None:
    """Where iterations of a parallel loop certainly conflict over a float: the first such pair of a read and a write,
    in branches that most iterations take.
    """
    for op, loop in accesses.loops.items():
        if isinstance(op, For) and op.parallel:
            inside = list(_in_most_iterations(op.body, (), accesses, loop))
            reads = [(accesses.of(inner), ifs) for inner, ifs in inside if isinstance(inner, Load)]
            read = {access.buffer for access, _ in reads}
            writes = [(accesses.of(inner), ifs) for inner, ifs in inside if not isinstance(inner, Load)]
            for write, ifs in writes:
                if write.buffer in read:
                    for other, others in reads:
                        if ifs == others and _certainly_conflict(other, write, accesses, loop):
                            assert isinstance(other.op, Load) and isinstance(write.op, Store | Atomic)
                            return CarriedDependence(other.op, write.op)
    return None


def _in_most_iterations(
    region: Region, ifs: tuple[Region, ...], accesses: Accesses, loop: Loop
) -> Iterator[tuple[MemoryOp, tuple[Region, ...]]]:
    """The accesses to floats in most iterations of a loop, with the branches around each. Inner loops count if their
    bounds are the same in all iterations.
    """
    for op in region.body:
        if isinstance(op, Load | Store | Atomic) and op.buffer.dtype.kind == "f":
            yield op, ifs
        elif isinstance(op, For):
            if all(isinstance(bound, Lit) or accesses.invariant(bound, loop) for bound in (op.lo, op.hi)):
                yield from _in_most_iterations(op.body, ifs, accesses, loop)
        elif isinstance(op, If) and takes(op.condition, accesses) is Takes.MOST:
            for branch in op.regions:
                yield from _in_most_iterations(branch, (*ifs, branch), accesses, loop)


def takes(condition: Atom, accesses: Accesses) -> Takes:
    """Which iterations of a loop take a branch under this condition."""
    parts = {_takes(part, accesses) for part in _operands(condition, accesses, (p.and_, p.or_))}
    return next(kind for kind in (Takes.SOME, Takes.ANY, Takes.MOST) if kind in parts)


def _operands(condition: Atom, accesses: Accesses, prims: Sequence[Primitive]) -> list[Atom]:
    """What a condition is composed of by `prims`, each once, in order."""
    found: dict[Atom, None] = {}
    seen: set[Atom] = set()
    waiting = [condition]
    while waiting:
        atom = waiting.pop()
        made = accesses.definitions.get(atom) if isinstance(atom, Var) else None
        if not isinstance(made, Prim) or made.prim not in prims:
            found[atom] = None
        elif atom not in seen:
            seen.add(atom)
            waiting += reversed(made.args)
    return list(found)


def _takes(condition: Atom, accesses: Accesses) -> Takes:
    """The same for a condition that `and` and `or` do not compose."""
    made = accesses.definitions.get(condition) if isinstance(condition, Var) else None
    if not isinstance(made, Prim):
        return Takes.SOME if isinstance(condition, Lit) else Takes.ANY
    if not all(_is_computed(part, accesses) for part in made.args):
        return Takes.ANY
    if made.prim not in (p.lt, p.le, p.gt, p.ge, p.eq, p.ne) or any(map(is_float, [part.type for part in made.args])):
        return Takes.SOME
    difference = accesses.affine(made.args[0]) - accesses.affine(made.args[1])
    indices = [v for v in difference.terms if v in accesses.indices]
    others = [v for v in difference.terms if v not in accesses.indices]
    if any(accesses.home.get(v) is not None for v in others) or (made.prim in (p.eq, p.ne) and len(indices) < 2):
        return Takes.SOME
    return Takes.MOST if len(indices) == 1 and not others else Takes.ANY


def _is_computed(atom: Atom, accesses: Accesses) -> bool:
    """Whether an atom is computed from loop indices and values bound outside all loops, without reading memory."""
    seen: set[Atom] = set()
    waiting = [atom]
    while waiting:
        atom = waiting.pop()
        if atom in seen or isinstance(atom, Lit) or atom in accesses.indices or accesses.home.get(atom) is None:
            continue
        seen.add(atom)
        op = accesses.definitions.get(atom)
        if not isinstance(op, Prim | Extent):
            return False
        waiting += op.args
    return True


def _certainly_conflict(read: Access, write: Access, accesses: Accesses, loop: Loop) -> bool:
    """Whether one iteration of the loop certainly reads what another one writes: in each dimension the indices are the
    same multiple of the index of a loop around both, and differ by a number.
    """
    if root_of(read.buffer) is not root_of(write.buffer) or not accesses.may_meet_across(read, write, loop):
        return False
    distances = _distances(read, write, accesses, loop)
    assert loop.index is not None
    if distances is None or not distances.get(loop.index):
        return False
    return all(_has_iterations_apart(v, distance, read, write, accesses) for v, distance in distances.items())


def _distances(read: Access, write: Access, accesses: Accesses, loop: Loop) -> dict[Var, int] | None:
    """How much greater the index of each loop is in the iteration that reads an element than in the one that writes it;
    None where that is not a fixed number.
    """
    distances: dict[Var, int] = {}
    for f, g in zip(_unwrapped(read, accesses), _unwrapped(write, accesses), strict=False):
        moving = [v for v in {**f.terms, **g.terms} if v is loop.index or not accesses.invariant(v, loop)]
        if (f - g).terms or len(moving) > 1 or (not moving and f.const != g.const):
            return None
        for v in moving:
            distance, rest = divmod(g.const - f.const, f.coefficient(v))
            if rest or distances.setdefault(v, distance) != distance:
                return None
    return distances


def keeps_apart(condition: Atom, read: Access, write: Access, accesses: Accesses, loop: Loop) -> bool:
    """Whether only one of two dependent iterations takes a branch: the remainder of an index differs, as on a
    checkerboard. A branch taken by some iterations that cannot be analysed is trusted to do so.
    """
    made = accesses.definitions.get(condition) if isinstance(condition, Var) else None
    if isinstance(made, Prim) and made.prim in (p.and_, p.or_):
        operands = _operands(condition, accesses, (made.prim,))
        parts = [keeps_apart(part, read, write, accesses, loop) for part in operands]
        return any(parts) if made.prim is p.and_ else all(parts)
    if takes(condition, accesses) is not Takes.SOME:
        return False
    distances = _distances(read, write, accesses, loop)
    found = _remainder(made, accesses)
    if distances is None or found is None:
        return True
    form, divisor = found
    if any(v in accesses.indices and v not in distances and not accesses.invariant(v, loop) for v in form.terms):
        return False
    return sum(form.coefficient(v) * distance for v, distance in distances.items()) % divisor != 0


def _remainder(op: Op | None, accesses: Accesses) -> tuple[Affine, int] | None:
    """What a comparison divides, and by which number, if it compares a remainder."""
    if isinstance(op, Prim) and op.prim in (p.eq, p.ne):
        for part in op.args:
            made = accesses.definitions.get(part) if isinstance(part, Var) else None
            if isinstance(made, Prim) and made.prim in (p.mod, p.raw_mod) and isinstance(made.args[1], Lit):
                return accesses.affine(made.args[0]), int(made.args[1].value)
    return None


def _unwrapped(access: Access, accesses: Accesses) -> list[Affine]:
    """The indices of an access in the iterations in which none wraps around: `(i + 1) % n` is `i + 1` there."""
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
    """Whether most values of the form are less than the divisor: in a loop of that length, all but the ends."""
    (v,) = form.terms
    first, last = accesses.interval(v)
    if isinstance(divisor, Lit):
        return form.coefficient(v) == 1 and 2 <= last - first < int(divisor.value)
    loop = accesses.indices.get(v)
    return form.coefficient(v) == 1 and loop is not None and isinstance(loop.op, For) and loop.op.hi is divisor


def _has_iterations_apart(v: Var, distance: int, read: Access, write: Access, accesses: Accesses) -> bool:
    """Whether the loop over `v` has two iterations at that distance, one with the read and the other with the write. A
    loop of unknown length is taken to have two iterations.
    """
    loop = accesses.indices.get(v)
    if loop is None or not isinstance(loop.op, For):
        return False
    if not (isinstance(loop.op.lo, Lit) and isinstance(loop.op.hi, Lit)):
        return abs(distance) <= 1
    first, last = accesses.interval_at(v, read.known)
    least, greatest = accesses.interval_at(v, write.known)
    return max(first, least + distance) <= min(last, greatest + distance)
