"""Loads that the gradient executes again must find what the primal found: no write that comes later may have changed the element.

The gradient runs after the whole kernel. A write *before* the load, in program order, is what the load saw and harms nothing; a write that runs after it, further down or in a
later turn of a loop around both, does if it can touch the same element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tinote.autodiff.reverse import Gradient
from tinote.errors import DifferentiationError, Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, BufferKind, For, Function, If, Lit, Load, Memory, Op, Prim, Region, Store, Var, While
from tinote.ir.query import bound_in, walk

__all__ = ["Hazard", "find_hazards", "refuse_hazards"]


class Hazard(NamedTuple):
    """`write` may change what `load` read, after it was read."""

    load: Load
    write: Store | Atomic


def refuse_hazards(fn: Function, gradient: Gradient) -> None:
    """Raise a `DifferentiationError` that names both lines when a needed value may be overwritten within the kernel."""
    for hazard in find_hazards(fn, gradient.needed_loads):
        name = hazard.load.buffer.name
        raise DifferentiationError(
            f"the gradient needs the value of '{name}' that is read here, but the kernel overwrites it afterwards",
            hazard.load.loc,
            hint="write to another field, or split the kernel so that reading and overwriting are separate launches",
            notes=[Note("overwritten here", hazard.write.loc)],
        )


class _Place(NamedTuple):
    """Where an operation stands: the enclosing operations, outermost first, with the number of the region and the position inside it."""

    steps: tuple[tuple[Op | None, int, int], ...]


def find_hazards(fn: Function, loads: tuple[Load, ...]) -> Iterator[Hazard]:
    """Every pair of a load among `loads` and a later write that may meet it."""
    places = dict(_places(fn.region, ()))
    definitions = {op.out: op for op in walk(fn.region) if isinstance(op, Prim)}
    writes = [op for op in places if isinstance(op, Store | Atomic)]
    for load in loads:
        for write in writes:
            if _may_alias(load, write) and _meets_later(load, write, places, definitions):
                yield Hazard(load, write)


def _may_alias(a: Memory, b: Memory) -> bool:
    if a.buffer is b.buffer:
        return True
    return BufferKind.ARRAY in (a.buffer.kind, b.buffer.kind) and BufferKind.TEMPORARY not in (a.buffer.kind, b.buffer.kind)


def _places(region: Region, above: tuple[tuple[Op | None, int, int], ...], owner: Op | None = None, number: int = 0) -> Iterator[tuple[Op, _Place]]:
    for position, op in enumerate(region.body):
        steps = (*above, (owner, number, position))
        yield op, _Place(steps)
        for k, inner in enumerate(op.regions):
            yield from _places(inner, steps, op, k)


def _meets_later(load: Load, write: Store | Atomic, places: dict[Op, _Place], definitions: dict[Var, Op]) -> bool:
    first, second = places[load].steps, places[write].steps
    common = 0
    while common < min(len(first), len(second)) and first[common][:2] == second[common][:2]:
        common += 1
    # Steps 0..common-1 are shared regions; they part at positions first[common-1][2] and second[common-1][2], or in two regions of one operation.
    shared = [step[0] for step in first[:common]]
    if load.buffer is write.buffer:
        for depth, owner in enumerate(shared):
            if isinstance(owner, For) and _in_other_turn(load, write, owner, definitions):
                return True
            if isinstance(owner, While) and depth and _same_turn(load, write, owner, definitions):
                return True
        if not _later_in_region(first, second, common):
            return False
        innermost = shared[-1]
        return _same_turn(load, write, innermost, definitions)
    return True


def _later_in_region(first: tuple[tuple[Op | None, int, int], ...], second: tuple[tuple[Op | None, int, int], ...], common: int) -> bool:
    a, b = first[common - 1][2], second[common - 1][2]
    if a != b:
        return b > a
    # The same operation holds both: in two arms of an `If` they never both run; a condition of a `While` runs before its body.
    owner = first[common][0] if common < len(first) else None
    return not isinstance(owner, If) and owner is not None


class _Affine(NamedTuple):
    constant: int
    terms: dict[Var, int]


def _affine(atom: Atom, definitions: dict[Var, Op]) -> _Affine:
    """`atom` as a constant plus multiples of variables; a variable that is not a sum or multiple stands for itself."""
    if isinstance(atom, Lit):
        return _Affine(int(atom.value), {})
    op = definitions.get(atom)
    if isinstance(op, Prim):
        if op.prim in (p.add, p.sub):
            a, b = _affine(op.args[0], definitions), _affine(op.args[1], definitions)
            sign = 1 if op.prim is p.add else -1
            terms = dict(a.terms)
            for v, c in b.terms.items():
                terms[v] = terms.get(v, 0) + sign * c
            return _Affine(a.constant + sign * b.constant, {v: c for v, c in terms.items() if c})
        if op.prim is p.mul:
            a, b = _affine(op.args[0], definitions), _affine(op.args[1], definitions)
            if not a.terms or not b.terms:
                scale, other = (a.constant, b) if not a.terms else (b.constant, a)
                return _Affine(scale * other.constant, {v: scale * c for v, c in other.terms.items() if scale})
        if op.prim is p.cast and isinstance(op.args[0], Var):
            return _affine(op.args[0], definitions)
    return _Affine(0, {atom: 1})


def _in_other_turn(load: Load, write: Store | Atomic, loop: For, definitions: dict[Var, Op]) -> bool:
    """Whether a turn of `loop` that runs after the load's may write the load's element."""
    inside = bound_in(loop.body)
    for a, b in zip(load.index, write.index, strict=False):
        x, y = _affine(a, definitions), _affine(b, definitions)
        if any(v in inside and v is not loop.index for v in (*x.terms, *y.terms)):
            continue
        step = x.terms.get(loop.index, 0)
        others = {v: c for v, c in x.terms.items() if v is not loop.index}
        if step != y.terms.get(loop.index, 0) or others != {v: c for v, c in y.terms.items() if v is not loop.index}:
            continue
        difference = x.constant - y.constant
        if step == 0:
            if difference:
                return False
            continue
        # x at turn i meets y at turn i + turns
        turns, rest = divmod(difference, step)
        if rest or turns == 0:
            return False
        if not loop.parallel and (turns < 0) != loop.reverse:
            return False
        if isinstance(loop.lo, Lit) and isinstance(loop.hi, Lit) and abs(turns) >= int(loop.hi.value) - int(loop.lo.value):
            return False
    return True


def _same_turn(load: Load, write: Store | Atomic, region_owner: Op | None, definitions: dict[Var, Op]) -> bool:
    """Whether both may name one element when what surrounds them is in the same turn."""
    for a, b in zip(load.index, write.index, strict=False):
        x, y = _affine(a, definitions), _affine(b, definitions)
        if x.terms == y.terms and x.constant != y.constant and not _varies_between(x, region_owner):
            return False
    return True


def _varies_between(form: _Affine, owner: Op | None) -> bool:
    """Whether a variable of `form` is bound in a loop further in than `owner`, so that it may differ between the two operations."""
    if owner is None:
        return False
    inner: set[Var] = set()
    for region in owner.regions:
        for op in region.body:
            if isinstance(op, For | While):
                for r in op.regions:
                    inner |= bound_in(r)
    return any(v in inner for v in form.terms)
