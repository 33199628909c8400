"""Memory for values that a launch saves for its gradient: one element for every iteration of the enclosing loops.

    for parallel %i in %lo..%hi:
      %v = …
      %k = sub %i, %lo                   `place`, the index of the present iteration
      store @v.saved[%k], %v             `buffer_for` makes the memory, `shapes_of` says how large it is

The number of iterations must be known before the launch: from literals, arguments, shapes and fields that the kernel
does not write; otherwise an upper bound is taken, if there is one. A value outside of all loops has a single place.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple, Protocol

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.buffers import root_of
from tinote.ir.launch_values import ExactNodes, SymbolicShapes
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, i32

#: A trip count above this is not an upper bound to allocate for. Chosen, not measured.
_MAX_ITERATIONS = 1 << 30


class Axis(NamedTuple):
    """The iterations of a loop, whose `loop_index` runs from `first` to `end`."""

    loop_index: ir.Var
    first: ir.Atom
    end: ir.Atom


class SavedPlace(Protocol):
    """A value that is saved: where, and a dimension for each loop around what computes it."""

    @property
    def op(self) -> ir.Op: ...

    @property
    def buffer(self) -> ir.Buffer: ...

    @property
    def axes(self) -> tuple[Axis, ...]: ...


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


def axes_of(loops: Sequence[ir.Op], nodes: ExactNodes, accesses: Accesses) -> tuple[Axis, ...] | None:
    """The iterations of loops, as far as a launch determines them or their bounds; None where it does not."""
    axes = [_axis_of(loop, nodes, accesses) for loop in loops]
    known = tuple([axis for axis in axes if axis is not None])
    return known if len(known) == len(axes) else None


def _axis_of(op: ir.Op, nodes: ExactNodes, accesses: Accesses) -> Axis | None:
    if not isinstance(op, ir.For):
        return None
    index = op.index
    if nodes.node(op.lo) is not None and nodes.node(op.hi) is not None:
        return Axis(index, op.lo, op.hi)
    low, high = accesses.interval(index)
    assert isinstance(index.type, Scalar)
    return Axis(index, ir.Lit(low, index.type), ir.Lit(high + 1, index.type)) if high - low < _MAX_ITERATIONS else None


def buffer_for(name: str, v: ir.Var, axes: Sequence[Axis]) -> ir.Buffer:
    """Memory for the values of `v`; its shape is known at launch only."""
    assert isinstance(v.type, Scalar)
    return ir.Buffer(name, v.type, (None,) * max(len(axes), 1), (), ir.BufferKind.ARRAY, noalias=True)


def shapes_of(values: Sequence[SavedPlace], nodes: ExactNodes, filled: Container[SavedPlace] = ()) -> SymbolicShapes:
    """The shapes of the buffers, as far as the launch determines them. `filled`: what is saved in every iteration."""
    dimensions: list[tuple[tuple[int, int], ...]] = []
    one = ir.Lit(0, i32), ir.Lit(1, i32)
    for value in values:
        pairs = [(axis.first, axis.end) for axis in value.axes] or [one]
        numbers = [(nodes.node(a), nodes.node(b)) for a, b in pairs]
        dimensions.append(tuple([(a, b) for a, b in numbers if a is not None and b is not None]))
    buffers = tuple([value.buffer for value in values])
    is_filled = tuple([value in filled for value in values])
    return SymbolicShapes(buffers, tuple(dimensions), tuple(nodes.all), tuple(nodes.lengths), is_filled)


def place(rewriter: Rewriter, value: SavedPlace) -> tuple[ir.Atom, ...]:
    """The index of the present iteration's place, computed where `rewriter` is."""
    op, index = value.op, list[ir.Atom]()
    for axis in value.axes:
        position = axis.loop_index
        if not isinstance(axis.first, ir.Lit) or axis.first.value:
            first = rewriter.get(axis.first)
            position = rewriter.apply(p.sub, position.type, op, position, first, name="iteration")
        index.append(position)
    return tuple(index) or (ir.Lit(0, i32),)
