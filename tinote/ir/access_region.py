"""Access regions of loads and stores: which elements they reach, as expressions that are evaluated at launch
(`launch_values.py`), from the indices that the access analysis has found.

    for parallel %i: i32 in 1i32 .. 63i32:       nodes: 0 argument 0 (%t), 1 constant 1, 2 sub of 0 and 1,
      %s: i32 = sub %t, 1i32                            3 constant 1 … 62
      %a: f32 = load @x[%s, %i]                  @x[node 2, node 3]

The sums of the analysis go first, so that what cancels out is gone; a sum that might wrap is not a sum to it, and is
looked at again at launch, when its numbers are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, accesses_of
from tinote.ir.affine import variable
from tinote.ir.buffers import root_of
from tinote.ir.cost import own_cost
from tinote.ir.definite_stores import definite_stores, live_in_reads
from tinote.ir.launch_values import (
    Applied,
    Argument,
    BoundedInteger,
    Either,
    LoopIndex,
    Node,
    Nodes,
    Plan,
    Sum,
    SymbolicRegion,
    SymbolicRegions,
)
from tinote.ir.query import trip_count
from tinote.ir.types import Scalar, is_whole

#: The most definite stores of a function that are listed. Chosen, not measured.
MAX_DEFINITE_STORES = 16


def regions_of(fn: ir.Function, live_in: Iterable[ir.MemoryOp], before: frozenset[ir.Buffer]) -> SymbolicRegions:
    """What `fn` (scalar form) writes, what the accesses `live_in` reach, and all that read the buffers of `before`."""
    accesses = accesses_of(fn)
    nodes = BoundedNodes(accesses, fn.region.params)
    everything = accesses.all()
    return SymbolicRegions(
        live_in=nodes.regions(live_in),
        live_in_before=nodes.regions(a.op for a in everything if a.reads and a.buffer in before),
        written=nodes.regions(a.op for a in everything if a.writes),
        nodes=tuple(nodes.all),
        lengths=tuple(nodes.lengths),
    )


def filled_by(fn: ir.Function, stores: Collection[ir.Op]) -> SymbolicRegions:
    """What the `stores` of `fn` (scalar form) reach in every run, as `written`: all of that, and nothing else."""
    accesses = accesses_of(fn)
    nodes = BoundedNodes(accesses, fn.region.params)
    written = nodes.regions(access.op for access in definite_stores(fn, accesses, stores))
    return SymbolicRegions(
        live_in=(), live_in_before=(), written=written, nodes=tuple(nodes.all), lengths=tuple(nodes.lengths)
    )


class MemoryEffects(NamedTuple):
    """What a launch does to memory. `touched`: what it reads of the values that it finds, as `live_in`, and what it may
    write to. `definite`: what it stores to in every run, as `written`: all of that, and nothing else. `work`: what it
    computes for each element of that, in additions; infinite where that cannot be determined.
    """

    touched: SymbolicRegions
    definite: SymbolicRegions
    work: float = math.inf


def effects_of(fn: ir.Function) -> MemoryEffects:
    """The effects of `fn` (scalar form)."""
    accesses = accesses_of(fn)
    touched = regions_of(fn, [access.op for access in live_in_reads(fn, accesses)], frozenset())
    nodes = BoundedNodes(accesses, fn.region.params)
    stores = definite_stores(fn, accesses)
    # Their users join many regions into one, which would claim too much.
    written = nodes.regions(access.op for access in stores[:MAX_DEFINITE_STORES])
    definite = SymbolicRegions(tuple(nodes.all), tuple(nodes.lengths), (), (), written)
    return MemoryEffects(touched, definite, _work(fn.region, _loops_over_elements(stores)))


def _loops_over_elements(stores: Iterable[Access]) -> set[ir.Op]:
    """The loops whose iterations each store to elements of their own."""
    indices = {v for store in stores for form in store.forms[: store.buffer.rank] for v in form.terms}
    return {loop.op for store in stores for loop in store.loops if loop.op.regions[0].params[0] in indices}


def _work(region: ir.Region, once: set[ir.Op]) -> float:
    """What one run of a region takes, in additions, where an iteration of the loops `once` is all of them."""
    total = 0.0
    for op in region.body:
        if isinstance(op, ir.For):
            times = 1 if op in once else trip_count(op.lo, op.hi)
            if times is None:
                return math.inf
            total += times * _work(op.body, once)
        elif isinstance(op, ir.If):
            total += sum([_work(inner, once) for inner in op.regions])
        elif isinstance(op, ir.Prim | ir.Load | ir.Store | ir.Extent):
            total += own_cost(op)
        else:
            return math.inf
    return total


class BoundedNodes(Nodes):
    """Makes nodes of integers that have intervals."""

    def __init__(self, accesses: Accesses, parameters: Sequence[ir.Var]) -> None:
        super().__init__()
        self._accesses = accesses
        self._parameters = {v: position for position, v in enumerate(parameters)}
        self._numbers: dict[ir.Var, int] = {}

    def regions(self, operations: Iterable[ir.MemoryOp]) -> tuple[SymbolicRegion, ...]:
        found: dict[SymbolicRegion, None] = {}
        for op in operations:
            access = self._accesses.of(op)
            rank = access.buffer.rank
            found[SymbolicRegion(root_of(access.buffer), tuple([self.node(a) for a in op.index[:rank]]))] = None
        return tuple(found)

    def node(self, atom: ir.Atom) -> int:
        if isinstance(atom, ir.Lit):
            return self.add(BoundedInteger(int(atom.value), int(atom.value)))
        if atom not in self._numbers:
            self.resolve(atom, self._numbers, self._plan)
        return self._numbers[atom]

    def _plan(self, v: ir.Var) -> Plan:
        accesses, t = self._accesses, v.type
        if v in self._parameters:
            assert isinstance(t, Scalar)
            return (), lambda: self.add(Argument(self._parameters[v], t))
        form = accesses.affine(v)
        if form != variable(v):
            terms = form.terms.items()
            return (*form.terms,), lambda: self.add(Sum(form.const, tuple([(k, self.node(w)) for w, k in terms])))
        loop = accesses.indices.get(v)
        if loop is not None:
            return self._from(loop.op.args[:2], LoopIndex)
        op = accesses.definitions.get(v)
        if isinstance(op, ir.Extent):
            return (), lambda: self.length(op.buffer, op.axis)
        if isinstance(op, ir.If):
            return self._from([region.yields[op.outs.index(v)] for region in op.regions], Either)
        if isinstance(op, ir.Prim) and op.prim is p.select:
            return self._from(op.args[1:], Either)
        if isinstance(op, ir.Prim) and isinstance(t, Scalar) and all(is_whole(a.type) for a in op.args):
            return self._from(op.args, lambda *args: Applied(op.prim, t, args))
        return (), lambda: self.add(BoundedInteger(*accesses.interval(v)))

    def _from(self, sources: Sequence[ir.Atom], make: Callable[..., Node]) -> Plan:
        return sources, lambda: self.add(make(*[self.node(a) for a in sources]))
