"""What a gradient costs beside its arithmetic: what it saves, what it computes again, and how it adds to adjoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tinote.compiler.adjoints import adjoint_operations
from tinote.compiler.schedule import bytes_of
from tinote.ir.buffers import Buffer, BufferKind, root_of
from tinote.ir.nodes import Atom, Atomic, Function, Lit, Load, NewStack, Op, Prim, Push, Task, Var
from tinote.ir.query import buffers_of, walk
from tinote.ir.types import Stack, Tensor, element_type
from tinote.source import Span

__all__ = ["Accumulation", "GradientCosts", "Recomputed", "Saved", "gradient_costs"]


class Saved(NamedTuple):
    """Values kept for the reverse part: `nbytes` each, `count` of them or None when known at launch only. `stack` is
    where one iteration pushes them; without one, a launch copies the whole buffer `name`.
    """

    name: str
    type: str
    nbytes: int
    count: int | None
    stack: Var | None
    span: Span


class Recomputed(NamedTuple):
    """What stands at one place of the source and is done again by the gradient: `again` operations and loads of the
    primal, and `factors`, what only its derivative needs.
    """

    span: Span
    again: int
    factors: int


class Accumulation(NamedTuple):
    """Where an adjoint is added to: `how` is "atomic", "plain" (no other thread can meet the element) or "private"
    (each thread has a copy of `nbytes`, None when known at launch only).
    """

    target: str
    how: str
    nbytes: int | None
    span: Span


class GradientCosts(NamedTuple):
    """What `gradient_costs` finds, each in the order of the code or of the source."""

    saved: tuple[Saved, ...]
    recomputed: tuple[Recomputed, ...]
    accumulated: tuple[Accumulation, ...]


def gradient_costs(fn: Function) -> GradientCosts:
    """The costs of the last form of a gradient; all empty if differentiation did not make `fn`."""
    operations = list(walk(fn.region))
    adjoints = adjoint_operations(fn)
    copies = [
        Saved(b.name, repr(b.dtype), b.dtype.size, (bytes_of(b) or 0) // b.dtype.size or None, None, fn.loc)
        for b in buffers_of(fn)
        if b.kind is BufferKind.SAVED and b.flat is None
    ]
    return GradientCosts(
        (*_stacks(operations), *copies),
        tuple(_recomputed([op for op in operations if op.origin is not None and op not in adjoints])),
        tuple(_accumulated(operations)),
    )


def _stacks(operations: list[Op]) -> Iterator[Saved]:
    pushed = {op.args[0]: op.args[1] for op in operations if isinstance(op, Push)}
    binders: dict[Atom, Op] = {v: op for op in operations for region in op.regions for v in region.params}
    binders |= {v: op for op in operations for v in op.outs}
    for op in operations:
        if not isinstance(op, NewStack):
            continue
        stack = op.out.type
        assert isinstance(stack, Stack)
        content = stack.content
        components = math.prod(content.shape) if isinstance(content, Tensor) else 1
        count = int(op.args[0].value) if op.args and isinstance(op.args[0], Lit) else None
        nbytes = components * element_type(content).size
        # A stack that the compiler makes for one value is where that value is.
        place = next((found for found in map(_place, (op, binders.get(pushed.get(op.out, op.out)))) if found), op.loc)
        yield Saved(op.out.name or "value", repr(content), nbytes, count, op.out, place)


def _place(op: Op | None) -> Span | None:
    """The source of an operation, its primal's if it has none of its own."""
    if op is None or op.loc.line:
        return op and op.loc
    return op.origin.loc if op.origin is not None and op.origin.loc.line else None


def _recomputed(operations: list[Op]) -> Iterator[Recomputed]:
    counts: dict[Span, list[int]] = {}
    for op in operations:
        primal = op.origin
        if isinstance(op, Load):
            again = True
        elif isinstance(op, Prim) and op.prim.name != "cast":
            again = isinstance(primal, Prim) and primal.prim is op.prim
        else:
            continue
        counts.setdefault(_place(op) or op.loc, [0, 0])[0 if again else 1] += 1
    for span in sorted(counts, key=lambda s: s[:3]):
        yield Recomputed(span, *counts[span])


def _accumulated(operations: list[Op]) -> Iterator[Accumulation]:
    private: dict[Buffer, Buffer] = {p.copy: p.target for op in operations if isinstance(op, Task) for p in op.privates}
    for op in operations:
        if not isinstance(op, Atomic):
            continue
        root = root_of(op.buffer)
        target = private.get(root, root)
        if target.primal is None:
            continue
        how = "private" if root in private else "plain" if op.plain else "atomic"
        yield Accumulation(target.name, how, bytes_of(root) if how == "private" else None, _place(op) or op.loc)
