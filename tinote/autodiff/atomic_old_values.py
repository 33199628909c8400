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
for each loop around the operation, so the memory is the product of the trip counts. These must be known before the
launch: from literals, arguments, shapes and fields that the kernel does not write; otherwise an upper bound is taken,
if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tinote.autodiff.activity import may_be_active
from tinote.autodiff.control_dependence import controlling_reads
from tinote.autodiff.unfold import conflicts_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.buffers import root_of
from tinote.ir.launch_values import NO_SHAPES, ExactNodes, SymbolicShapes
from tinote.ir.query import walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Scalar

#: A trip count above this is not an upper bound to allocate for.
_MOST_ITERATIONS = 1 << 30


class Axis(NamedTuple):
    """The iterations of a loop, whose `loop_index` runs from `first` to `end`."""

    loop_index: ir.Var
    first: ir.Atom
    end: ir.Atom


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
    accesses = Accesses(fn)
    matter = controlling_reads(fn, fn.region.yields)
    nodes = launch_nodes(fn, accesses)
    found: list[OldValue] = []
    for op in wanted:
        if op not in matter or not any(conflict.writes for conflict in conflicts_of(accesses.of(op), accesses)):
            continue
        axes = [axis_of(loop.op, nodes, accesses) for loop in accesses.of(op).loops]
        known = tuple([axis for axis in axes if axis is not None])
        if len(known) == len(axes):
            dtype = op.out.type
            assert isinstance(dtype, Scalar)
            shape = (None,) * len(axes)
            buffer = ir.Buffer(f"{op.buffer.name}.old", dtype, shape, (), ir.BufferKind.ARRAY, noalias=True)
            found.append(OldValue(op, buffer, known))
    return OldValues(tuple(found), _shapes(found, nodes)) if found else NO_OLD_VALUES


def _shapes(values: Sequence[OldValue], nodes: ExactNodes) -> SymbolicShapes:
    pairs = [[(nodes.node(axis.first), nodes.node(axis.end)) for axis in value.axes] for value in values]
    dimensions = [tuple([(a, b) for a, b in axes if a is not None and b is not None]) for axes in pairs]
    buffers = tuple([value.buffer for value in values])
    return SymbolicShapes(buffers, tuple(dimensions), tuple(nodes.all), tuple(nodes.lengths))


def launch_nodes(fn: ir.Function, accesses: Accesses) -> ExactNodes:
    """The values that a launch determines: from its arguments and shapes, and from fields that `fn` does not write, as
    far as these are read outside of all loops.
    """
    outside = set(fn.region.body)
    written = {access.buffer for access in accesses.all() if access.writes}

    def admits(op: ir.Op) -> bool:
        if not isinstance(op, ir.Load):
            return True
        return op in outside and op.buffer.kind is ir.BufferKind.FIELD and root_of(op.buffer) not in written

    return ExactNodes(accesses.definitions, fn.region.params, admits)


def axis_of(op: ir.Op, nodes: ExactNodes, accesses: Accesses) -> Axis | None:
    """The iterations of a loop, as far as a launch determines them or their bounds."""
    if not isinstance(op, ir.For):
        return None
    index = op.index
    if nodes.node(op.lo) is not None and nodes.node(op.hi) is not None:
        return Axis(index, op.lo, op.hi)
    low, high = accesses.interval(index)
    assert isinstance(index.type, Scalar)
    return Axis(index, ir.Lit(low, index.type), ir.Lit(high + 1, index.type)) if high - low < _MOST_ITERATIONS else None


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
        index: list[ir.Atom] = []
        for axis in value.axes:
            position = axis.loop_index
            if not isinstance(axis.first, ir.Lit) or axis.first.value:
                position = ir.Var(axis.loop_index.type, "iteration")
                self.emit(ir.Prim(p.sub, (axis.loop_index, self.get(axis.first)), (position,), op.loc, op.origin))
            index.append(position)
        for made in self.made(value, op, tuple(index)):
            self.emit(made)
        return op.outs
