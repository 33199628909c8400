"""Queries that many passes make of the IR."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from tinote.ir.buffers import family_of
from tinote.ir.nodes import Atom, Buffer, For, Function, Lit, MemoryOp, Op, Prim, Region, Task, Var
from tinote.ir.primitives import Primitive
from tinote.source import Span


def walk(region: Region) -> Iterator[Op]:
    """Every operation in `region`, outer before inner, in order."""
    for op in region.body:
        yield op
        for inner in op.regions:
            yield from walk(inner)


def has_any(region: Region, *kinds: type[Op]) -> bool:
    """Whether there is an operation of one of these kinds in `region`."""
    return any(isinstance(op, kinds) for op in walk(region))


def has_units(fn: Function) -> bool:
    """Whether memory that a function works on has a declared unit."""
    memory = (family_of(op.buffer) for op in walk(fn.region) if isinstance(op, MemoryOp))
    return any(buffer.unit is not None for buffer in memory)


def span_of(op: Op) -> Span:
    """Where an operation comes from, or, where differentiation made it, the one that it is derived from."""
    return op.loc if op.loc.line or op.origin is None else op.origin.loc


def trip_count(lo: Atom, hi: Atom) -> int | None:
    """The number of iterations of a loop from `lo` up to `hi`, where both are literal."""
    return max(int(hi.value) - int(lo.value), 0) if isinstance(lo, Lit) and isinstance(hi, Lit) else None


def is_shorter(loop: For, than: int) -> bool:
    """Whether a loop certainly has fewer iterations."""
    count = trip_count(loop.lo, loop.hi)
    return count is not None and count < than


def surely_iterates(loop: Op) -> bool:
    """Whether a loop certainly has an iteration."""
    return isinstance(loop, For) and bool(trip_count(loop.lo, loop.hi))


def has_effect(op: Op) -> bool:
    """Whether the operation, or anything inside it, must stay even if its outs are unused."""
    return op.writes or any(has_effect(inner) for r in op.regions for inner in r.body)


def bound_in(region: Region) -> set[Var]:
    """All variables bound in `region`, parameters and inner regions included."""
    found = set(region.params)
    for op in region.body:
        found.update(op.outs)
        for inner in op.regions:
            found |= bound_in(inner)
    return found


def free_variables(region: Region) -> list[Var]:
    """Variables that `region` uses and does not bind, in order of first use."""
    bound: set[Var] = set()
    found: dict[Var, None] = {}

    def visit(r: Region) -> None:
        bound.update(r.params)
        for op in r.body:
            for a in op.args:
                if type(a) is Var and a not in bound:
                    found[a] = None
            for inner in op.regions:
                visit(inner)
            bound.update(op.outs)
        for y in r.yields:
            if type(y) is Var and y not in bound:
                found[y] = None

    visit(region)
    return list(found)


def uses(region: Region) -> dict[Var, int]:
    """How often each variable is used in `region` and below."""
    counts: dict[Var, int] = {}

    def visit(r: Region) -> None:
        for op in r.body:
            for a in op.args:
                if type(a) is Var:
                    counts[a] = counts.get(a, 0) + 1
            for inner in op.regions:
                visit(inner)
        for y in r.yields:
            if type(y) is Var:
                counts[y] = counts.get(y, 0) + 1

    visit(region)
    return counts


def definitions(region: Region) -> dict[Var, Op]:
    """The operation that binds each variable; parameters of regions are absent."""
    return {v: op for op in walk(region) for v in op.outs}


def operands_first(
    atom: Atom, definitions: Mapping[Var, Op], known: Container[Atom], through: Container[Primitive]
) -> Iterator[Prim]:
    """The applications of primitives in `through` that compute `atom`, operands before what uses them, except for those
    of variables in `known`. Whoever asks makes each known before the next: so that what is worked out of operands is
    worked out once, however often a value is used and however long the way to it is.
    """
    waiting = [atom]
    while waiting:
        one = waiting[-1]
        op = definitions.get(one) if type(one) is Var and one not in known else None
        if not isinstance(op, Prim) or op.prim not in through:
            waiting.pop()
            continue
        missing = [a for a in op.args if type(a) is Var and a not in known and _is_made(a, definitions, through)]
        if missing:
            waiting += missing
        else:
            waiting.pop()
            yield op


def _is_made(v: Var, definitions: Mapping[Var, Op], through: Container[Primitive]) -> bool:
    op = definitions.get(v)
    return isinstance(op, Prim) and op.prim in through


def buffers_of(fn: Function) -> tuple[Buffer, ...]:
    """The buffers that a function touches, in order of first appearance: what a launch must provide. A flat view counts
    as what it is the view of.
    """
    found: dict[Buffer, None] = {}
    for op in walk(fn.region):
        if isinstance(op, MemoryOp):
            buffer = op.buffer
            while buffer.flat is not None:
                buffer = buffer.flat
            found[buffer] = None
        elif isinstance(op, Task):
            for private in op.privates:
                found[private.target] = None
                found[private.copy] = None
    return tuple(found)
