"""If-conversion: turns short branches inside independent loops into selects, so that iterations differ only in values.

    for vectorize %j: i32 in 0i32 .. 64i32:              for vectorize %j: i32 in 0i32 .. 64i32:
      %a: f32 = load @v[%j]                                %a: f32 = load @v[%j]
      %c: u1 = lt %a, 0.0f32                               %c: u1 = lt %a, 0.0f32
      if %c:                                        ->     %1: f32 = load @v[%j]
        store @v[%j], 0.0f32                               %2: f32 = select %c, 0.0f32, %1
                                                           store @v[%j], %2

A converted branch touches only elements that every iteration touches anyway: they are in range and cached, and no other
iteration writes them (`mark_vector_loops` has proved that), so writing back the old value is invisible. Operations that
may fault, have visible effects, or are expensive stay in their branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.cost import MAX_FLAT_BRANCH_COST, own_cost
from tinote.ir.query import has_any
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import is_integer

Element = tuple[ir.Buffer, tuple[ir.Atom, ...]]


def if_convert(fn: ir.Function) -> ir.Function:
    """`fn` without the branches that can be converted."""
    return _Flattener().run(fn) if has_any(fn.region, ir.If) else fn


class _Flattener(Rewriter):
    """Inner branches first. Nothing is renamed."""

    def __init__(self) -> None:
        super().__init__()
        #: the elements that every iteration of the loop under consideration touches
        self.touched: frozenset[Element] = frozenset()
        self.inside = False

    def nest(self, op: ir.Op) -> None:
        if isinstance(op, ir.For | ir.Task) and op.vectorize:
            self.touched = frozenset(_element(o) for o in op.regions[0].body if _is_access(o))
            self.inside = True
            super().nest(op)
            self.inside = False
        else:
            super().nest(op)

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if not self.inside or not isinstance(op, ir.If):
            return KEEP
        if not all(self.may_always_run(inner) for r in op.regions for inner in r.body):
            return KEEP
        if sum([own_cost(inner) for r in op.regions for inner in r.body]) > MAX_FLAT_BRANCH_COST:
            return KEEP
        self.side(op.condition, op.then, chosen=True)
        self.side(op.condition, op.orelse, chosen=False)
        for out, a, b in zip(op.outs, op.then.yields, op.orelse.yields, strict=True):
            self.emit(ir.Prim(p.select, (op.condition, a, b), (out,), op.loc, op.origin))
        return DROP

    def may_always_run(self, op: ir.Op) -> bool:
        """Whether an operation may be executed speculatively (a write then stores the old value)."""
        if isinstance(op, ir.Prim):
            return not (op.prim in p.DIVISIONS and is_integer(op.out.type) and not isinstance(op.args[1], ir.Lit))
        return isinstance(op, ir.Extent) or (_is_access(op) and _element(op) in self.touched)

    def side(self, condition: ir.Atom, region: ir.Region, *, chosen: bool) -> None:
        """Emit one side; its writes take effect if the condition is `chosen`."""
        for op in region.body:
            if not isinstance(op, ir.Store | ir.Atomic):
                self.emit(op)
                continue
            dtype = op.buffer.dtype
            old = op.outs[0] if op.outs else ir.Var(dtype)
            self.emit(ir.Load(op.buffer, op.index, (old,), op.loc, op.origin))
            value = op.value
            if isinstance(op, ir.Atomic):
                value = self.apply(op.prim, dtype, op, old, op.value)
            sides = (value, old) if chosen else (old, value)
            new = self.apply(p.select, dtype, op, condition, *sides)
            self.emit(ir.Store(op.buffer, op.index, new, op.loc, op.origin))


def _is_access(op: ir.Op) -> bool:
    """Whether an operation accesses a component of an element that is known at compile time."""
    if not isinstance(op, ir.Load | ir.Store) and not (isinstance(op, ir.Atomic) and op.plain):
        return False
    rank = op.buffer.rank
    return len(op.index) == rank + len(op.buffer.element) and all(isinstance(a, ir.Lit) for a in op.index[rank:])


def _element(op: ir.Op) -> Element:
    assert isinstance(op, ir.MemoryOp)
    return op.buffer, op.index[: op.buffer.rank]
