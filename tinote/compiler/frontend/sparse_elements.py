"""Elements of sparse fields, and the activation of what is written to.

    x[i, j] = 1.0          atomic max activity[block], 1
                           store x[block, cell], 1.0

What is inactive holds zeros, so a read is a load. In a loop over active cells, those that it runs over are active.
"""

from __future__ import annotations

from typing import Any

from tinote.compiler.frontend.values import MemoryPlace, Value
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Buffer, Lit
from tinote.ir.primitives import Primitive
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import i8, i32

Places = tuple[Atom, ...]


class SparsityState:
    """What the lowering of a kernel knows of sparse fields."""

    def __init__(self) -> None:
        #: the places of the indices of loops over active cells, by what lies alike
        self.located: dict[tuple[Any, Places], Places] = {}
        #: the digits of an index along one dimension of such a loop
        self.digits: dict[tuple[Any, int, Atom], tuple[Atom | None, ...]] = {}
        #: cells that a loop runs over, by the activity that says so
        self.active: set[tuple[Buffer, Places]] = set()
        #: what says what is active, where the body of the loop relies on it
        self.relied_on: set[Buffer] = set()
        #: the same of what it has deactivated
        self.cleared: set[Buffer] = set()
        #: how often activity was changed
        self.changes: dict[Buffer, int] = {}

    def note_active(self, sparsity: Sparsity, places: Places) -> None:
        """What follows runs for active cells only: those at these places."""
        for depth, activity in sparsity.activities:
            self.active.add((activity.buffer, places[:depth]))

    def begin_loop(self) -> None:
        """What comes now is not in the body of the loop so far."""
        self.relied_on.clear()
        self.cleared.clear()

    def change(self, activity: Buffer) -> None:
        """Code that changes an activity was emitted."""
        self.changes[activity] = self.changes.get(activity, 0) + 1


class SparsePlace(MemoryPlace):
    """An element of a sparse field, or one component of it. A write activates its cell."""

    __slots__ = ("sparsity", "state")

    def __init__(
        self, buffer: Buffer, index: Places, state: SparsityState, components: Places = (), constant: bool = False
    ) -> None:
        super().__init__(buffer, index, components, constant)
        assert buffer.sparsity is not None
        self.sparsity = buffer.sparsity
        self.state = state

    def store(self, b: Builder, value: Atom) -> None:
        activate(b, self.state, self.sparsity, self.index)
        super().store(b, value)

    def component(self, indices: Places) -> SparsePlace:
        return SparsePlace(self.buffer, self.index, self.state, indices, self.constant)

    def combine(self, b: Builder, prim: Primitive, value: Value, old: bool) -> Value | None:
        activate(b, self.state, self.sparsity, self.index)
        return super().combine(b, prim, value, old)


def activate(b: Builder, state: SparsityState, sparsity: Sparsity, places: Places) -> None:
    """Have the cell at a place active."""
    for depth, activity in sparsity.activities:
        if (activity.buffer, places[:depth]) in state.active and activity.buffer not in state.cleared:
            state.relied_on.add(activity.buffer)
            continue
        state.change(activity.buffer)
        if activity.is_list:
            length = b.prim(p.add, places[depth - 1], Lit(1, i32))
            b.atomic(p.maximum, activity.buffer, places[: depth - 1], length)
        else:
            b.atomic(p.maximum, activity.buffer, places[:depth], Lit(1, i8))
