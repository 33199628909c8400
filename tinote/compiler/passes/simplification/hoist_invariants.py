"""Loop-invariant code motion: moves computations that are the same in every iteration out of loops.

    for parallel %i: i32 in 0i32 .. 64i32:          for parallel %i: i32 in 0i32 .. 64i32:
      for %j: i32 in 0i32 .. %n:                      %a: f32 = load @x[%i]
        %a: f32 = load @x[%i]                         %b: f32 = mul %a, 2.0f32
        %b: f32 = mul %a, 2.0f32              ->      for %j: i32 in 0i32 .. %n:
        store @y[%j], %b                                store @y[%j], %b

Hoisted code runs even if the loop has no iterations, so only operations that cannot fault are hoisted: primitives,
except integer division unless by a nonzero literal; and loads from buffers that the loop does not write, if the index
is certainly in range, or if the loop certainly has an iteration and nothing before the load may stop it. Nothing leaves
an outermost parallel loop: its iterations would have to load the value from memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses, accesses_of, buffers_may_meet
from tinote.ir.buffers import root_of
from tinote.ir.query import surely_iterates, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Tensor, is_integer


def hoist_invariants(fn: ir.Function) -> ir.Function:
    """`fn` with loop invariants computed before their loops."""
    return _Hoister(fn).run(fn)


class _Hoister(Rewriter):
    """Hoists from inner loops first, so that code may move out of several loops."""

    def __init__(self, fn: ir.Function) -> None:
        super().__init__()
        self.fn = fn
        self.parallel_depth = 0
        self.accesses: Accesses | None = None

    def nest(self, op: ir.Op) -> None:
        parallel = (isinstance(op, ir.For) and op.parallel) or (isinstance(op, ir.Task) and op.parallel)
        self.parallel_depth += parallel
        super().nest(op)
        self.parallel_depth -= parallel

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if isinstance(op, ir.For):
            # `parallel_depth` counts this loop, too.
            if op.parallel and self.parallel_depth <= 1:
                return KEEP
        elif not isinstance(op, ir.While):
            return KEEP
        iterates = surely_iterates(op)
        written = _written(op)
        regions: list[ir.Region] = []
        changed = False
        for region in op.regions:
            # The condition of a `while` is computed at least once.
            surely = iterates or (isinstance(op, ir.While) and region is op.condition)
            kept = self.split(op, region, written, surely)
            changed |= len(kept) < len(region.body)
            regions.append(
                ir.Region(region.params, tuple(kept), region.yields) if len(kept) < len(region.body) else region
            )
        if not changed:
            return KEEP
        self.emit(op.rebuilt(op.args, tuple(regions)))
        return op.outs

    def split(self, loop: ir.Op, region: ir.Region, written: set[ir.Buffer], surely: bool) -> list[ir.Op]:
        """Emit the operations that may be hoisted out of a region of `loop`, and return the rest."""
        bound: set[ir.Var] = set(region.params)
        kept: list[ir.Op] = []
        for op in region.body:
            if not any(type(a) is ir.Var and a in bound for a in op.args) and self.movable(loop, op, written, surely):
                self.emit(op)
                continue
            kept.append(op)
            bound.update(op.outs)
            surely = surely and not _may_stop(op)
        return kept

    def movable(self, loop: ir.Op, op: ir.Op, written: set[ir.Buffer], surely: bool) -> bool:
        if isinstance(op, ir.Prim):
            if op.prim in p.DIVISIONS and is_integer(op.out.type):
                return type(op.args[1]) is ir.Lit and op.args[1].value != 0
            return op.prim not in (p.extract, p.insert) or surely or _inside_tensor(op)
        if isinstance(op, ir.Extent):
            return True
        if isinstance(op, ir.Load):
            if any(buffers_may_meet(op.buffer, b) for b in written):
                return False
            return surely or self.surely_in_range(op, loop)
        return False

    def surely_in_range(self, op: ir.Load, loop: ir.Op) -> bool:
        """Whether the index is in range for certain before the loop, even if it has no iteration.

        Nothing is renamed, so the old operations can be analysed.
        """
        if op.buffer.flat is not None:
            return False
        if all(isinstance(i, ir.Lit) for i in op.index):
            return _literals_inside(op.index, (*op.buffer.shape, *op.buffer.element)[: len(op.index)])
        if not isinstance(loop, ir.For):
            return False
        if self.accesses is None:
            self.accesses = accesses_of(self.fn)
        return self.accesses.surely_in_range(self.accesses.of(op), self.accesses.loop_over(loop.index))


def _written(loop: ir.Op) -> set[ir.Buffer]:
    """The buffers that a loop writes."""
    return {root_of(op.buffer) for r in loop.regions for op in walk(r) if isinstance(op, ir.Store | ir.Atomic)}


def _may_stop(op: ir.Op) -> bool:
    """Whether `op` may prevent the execution of operations after it: by a failing check or an endless loop."""
    if isinstance(op, ir.Check | ir.While):
        return True
    return any(isinstance(inner, ir.Check | ir.While) for r in op.regions for inner in walk(r))


def _literals_inside(index: tuple[ir.Atom, ...], shape: tuple[int | None, ...]) -> bool:
    return all(isinstance(i, ir.Lit) and n is not None and 0 <= i.value < n for i, n in zip(index, shape, strict=True))


def _inside_tensor(op: ir.Prim) -> bool:
    tensor = op.args[0].type
    assert isinstance(tensor, Tensor)
    return _literals_inside(op.args[1:] if op.prim is p.extract else op.args[1:-1], tensor.shape)
