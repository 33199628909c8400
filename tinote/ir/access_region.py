"""Access regions of loads and stores: which elements they reach, as nodes that are worked out at launch
(`launch_values.py`), from what the access analysis says of their indices.

    for parallel %i: i32 in 1i32 .. 63i32:       nodes: 0 argument 0 (%t), 1 constant 1, 2 sub of 0 and 1,
      %s: i32 = sub %t, 1i32                            3 constant 1 … 62
      %a: f32 = load @x[%s, %i]                  @x[node 2, node 3]

The sums of the analysis go first, so that what cancels out is gone; a sum that might wrap is no sum to it, and is
looked at again at launch, when its numbers are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.affine import variable
from tinote.ir.buffers import root_of
from tinote.ir.definite_stores import definite_stores, live_in_reads
from tinote.ir.launch_values import (
    Applied,
    Argument,
    Constant,
    Either,
    Iterations,
    Nodes,
    Sum,
    SymbolicRegion,
    SymbolicRegions,
)
from tinote.ir.nodes import Atom, Buffer, Extent, Function, If, Lit, Memory, Prim, Var
from tinote.ir.types import Scalar

__all__ = ["Effects", "effects_of", "regions_of"]

#: How many definite stores of a function are listed.
MOST_DEFINITE_STORES = 16


def regions_of(fn: Function, live_in: Iterable[Memory], before: frozenset[Buffer]) -> SymbolicRegions:
    """What `fn` (scalar form) writes, what the accesses `live_in` reach, and all that read the buffers of `before`."""
    accesses = Accesses(fn)
    nodes = _Bounds(accesses, fn.region.params)
    everything = accesses.all()
    return SymbolicRegions(
        live_in=nodes.regions(live_in),
        live_in_before=nodes.regions(a.op for a in everything if a.reads and a.buffer in before),
        written=nodes.regions(a.op for a in everything if a.writes),
        nodes=tuple(nodes.all),
        lengths=tuple(nodes.lengths),
    )


class Effects(NamedTuple):
    """What a launch does to memory. `touched`: what it reads of the values that it finds, as `live_in`, and what it may
    write to. `definite`: what it stores to in every run, as `written`: all of that, and nothing else.
    """

    touched: SymbolicRegions
    definite: SymbolicRegions


def effects_of(fn: Function) -> Effects:
    """The effects of `fn` (scalar form)."""
    accesses = Accesses(fn)
    touched = regions_of(fn, [access.op for access in live_in_reads(fn, accesses)], frozenset())
    nodes = _Bounds(accesses, fn.region.params)
    # Their users join many regions into one, which would claim too much.
    written = nodes.regions(access.op for access in definite_stores(fn, accesses)[:MOST_DEFINITE_STORES])
    return Effects(touched, SymbolicRegions(tuple(nodes.all), tuple(nodes.lengths), (), (), written))


class _Bounds(Nodes):
    """Makes nodes of integers that have intervals."""

    def __init__(self, accesses: Accesses, parameters: Sequence[Var]) -> None:
        super().__init__()
        self._accesses = accesses
        self._parameters = {v: position for position, v in enumerate(parameters)}
        self._numbers: dict[Var, int] = {}

    def regions(self, operations: Iterable[Memory]) -> tuple[SymbolicRegion, ...]:
        found: dict[SymbolicRegion, None] = {}
        for op in operations:
            access = self._accesses.of(op)
            rank = access.buffer.rank
            found[SymbolicRegion(root_of(access.buffer), tuple([self.node(a) for a in op.index[:rank]]))] = None
        return tuple(found)

    def node(self, atom: Atom) -> int:
        if isinstance(atom, Lit):
            return self.add(Constant(int(atom.value), int(atom.value)))
        found = self._numbers.get(atom)
        if found is None:
            found = self._numbers[atom] = self._made(atom)
        return found

    def _made(self, v: Var) -> int:
        accesses, t = self._accesses, v.type
        if v in self._parameters:
            assert isinstance(t, Scalar)
            return self.add(Argument(self._parameters[v], t))
        form = accesses.affine(v)
        if form != variable(v):
            return self.add(Sum(form.const, tuple([(factor, self.node(w)) for w, factor in form.terms.items()])))
        loop = accesses.indices.get(v)
        if loop is not None:
            return self.add(Iterations(*[self.node(bound) for bound in loop.op.args[:2]]))
        op = accesses.definitions.get(v)
        if isinstance(op, Extent):
            return self.length(op.buffer, op.axis)
        if isinstance(op, If):
            return self.add(Either(*[self.node(region.yields[op.outs.index(v)]) for region in op.regions]))
        if isinstance(op, Prim) and op.prim is p.select:
            return self.add(Either(*[self.node(a) for a in op.args[1:]]))
        if isinstance(op, Prim) and isinstance(t, Scalar) and all(_is_whole(a) for a in op.args):
            return self.add(Applied(op.prim, t, tuple([self.node(a) for a in op.args])))
        return self.add(Constant(*accesses.interval(v)))


def _is_whole(atom: Atom) -> bool:
    return isinstance(atom.type, Scalar) and atom.type.kind != "f"
