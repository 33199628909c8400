"""Saves, in the primal launch, the old values of atomic operations that depend on scheduling, for the gradient to read.

    for parallel %i in 0..8:                     for parallel %i in 0..8:
      %k = atomic add @count[], 1          ->      %k = atomic add @count[], 1       `record`: the primal under a tape
      store @y[%k], %a                             store @count.old[%i], %k
                                                   store @y[%k], %a

                                           ->      atomic add @count[], 1            `replay`: what is differentiated
                                                   %k = load @count.old[%i]
                                                   store @y[%k], %a

This is done for atomic operations on memory without a gradient that several iterations of a parallel loop share, if a
write to memory with a gradient, or the kernel's result, depends on their old values. The saved values have a dimension
for each loop around the operation (`saved_places.py`), so the memory is the product of the trip counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tinote.autodiff.activity import may_be_active
from tinote.autodiff.control_dependence import controlling_reads
from tinote.autodiff.saved_places import Axis, axes_of, buffer_for, launch_nodes, place, shapes_of
from tinote.autodiff.unfold import conflicts_of
from tinote.ir import nodes as ir
from tinote.ir.access import accesses_of
from tinote.ir.launch_values import NO_SHAPES, SymbolicShapes
from tinote.ir.query import walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter


class OldValue(NamedTuple):
    """The old values of `op`, saved in `buffer`; its shape is known at launch only."""

    op: ir.Atomic
    buffer: ir.Buffer
    axes: tuple[Axis, ...]

    @property
    def source(self) -> ir.Buffer:
        """What the values were read from."""
        return self.op.buffer


class OldValues(NamedTuple):
    """What is saved of one launch, and the shapes of the buffers, as far as the launch determines them."""

    values: tuple[OldValue, ...]
    shapes: SymbolicShapes = NO_SHAPES


NO_OLD_VALUES = OldValues(())


def plan_old_values(fn: ir.Function) -> OldValues:
    """What a launch of `fn` (scalar form, simplified) saves; equal functions save the same."""
    wanted = [op for op in walk(fn.region) if isinstance(op, ir.Atomic) and op.outs and not may_be_active(op.buffer)]
    if not wanted:
        return NO_OLD_VALUES
    accesses = accesses_of(fn)
    matter = controlling_reads(fn, fn.region.yields)
    nodes = launch_nodes(fn, accesses)
    found: list[OldValue] = []
    for op in wanted:
        if op not in matter or not any(conflict.writes for conflict in conflicts_of(accesses.of(op), accesses)):
            continue
        axes = axes_of([loop.op for loop in accesses.of(op).loops], nodes, accesses)
        if axes is not None:
            found.append(OldValue(op, buffer_for(f"{op.buffer.name}.old", op.out, axes), axes))
    return OldValues(tuple(found), shapes_of(found, nodes)) if found else NO_OLD_VALUES


def record(fn: ir.Function, old: OldValues) -> ir.Function:
    """`fn`, saving its old values as well."""

    def save(value: OldValue, op: ir.Atomic, index: tuple[ir.Atom, ...]) -> Iterator[ir.Op]:
        yield op
        yield ir.Store(value.buffer, index, op.out, op.loc, op.origin)

    return _AtOldValues(old, save).run(fn) if old.values else fn


def replay(fn: ir.Function, old: OldValues) -> ir.Function:
    """`fn`, reading the old values that a launch of `record`'s result has saved."""

    def read(value: OldValue, op: ir.Atomic, index: tuple[ir.Atom, ...]) -> Iterator[ir.Op]:
        yield op.rebuilt(op.args, (), ())
        yield ir.Load(value.buffer, index, op.outs, op.loc, op.origin)

    return _AtOldValues(old, read).run(fn) if old.values else fn


_Made = Callable[[OldValue, ir.Atomic, tuple[ir.Atom, ...]], Iterator[ir.Op]]


class _AtOldValues(Rewriter):
    """Replaces each operation by what `made` gives for it, preceded by the index at which its old value is saved."""

    def __init__(self, old: OldValues, made: _Made) -> None:
        super().__init__()
        self.values = {value.op: value for value in old.values}
        self.made = made
        self.current: OldValue | None = None

    def visit(self, op: ir.Op) -> None:
        self.current = self.values.get(op) if isinstance(op, ir.Atomic) else None
        super().visit(op)

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        value = self.current
        if value is None or not isinstance(op, ir.Atomic):
            return KEEP
        for made in self.made(value, op, place(self, value)):
            self.emit(made)
        return op.outs
