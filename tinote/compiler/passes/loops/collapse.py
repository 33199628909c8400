"""Collapses a parallel task and the parallel loop in it into one loop over all pairs of iterations.

    task parallel %i: i32 in 0i32 .. 8i32:          task parallel %k: i32 in 0i32 .. 256i32:
      for parallel %j: i32 in 0i32 .. 32i32:          %i: i32 = raw_div %k, 32i32
        store @x[%i, %j], 1.0f32              ->      %n: i32 = mul %i, 32i32
                                                      %j: i32 = sub %k, %n
                                                      store @x[%i, %j], 1.0f32

A GPU profits from more invocations, and neighbouring ones then touch neighbouring elements. Before the inner loop there
may be arithmetic, loads of memory that the task does not write, and checks: they are repeated in each of its
iterations. The lengths must be known.

A plain atomic update, whose element differs in each iteration of the task, must also differ in each iteration of the
inner loop.
"""

from __future__ import annotations

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses, accesses_of, buffers_may_meet
from tinote.ir.affine import contains, span_of_type
from tinote.ir.build import Builder
from tinote.ir.query import trip_count, walk
from tinote.ir.rewrite import clone_region, with_body
from tinote.ir.types import Scalar

#: Operations that may be repeated. Chosen, not measured.
_MAX_REPEATED = 24


def collapse(fn: ir.Function) -> ir.Function:
    """`fn` with the parallel nest of each task collapsed into one loop."""
    while (found := _next(fn)) is not None:
        task, inner = found
        fn = with_body(fn, [_joined(task, inner) if op is task else op for op in fn.region.body])
    return fn


def _next(fn: ir.Function) -> tuple[ir.Task, ir.For] | None:
    """A task and the loop in it, if they can be collapsed."""
    nests = [(op, inner) for op in fn.region.body if isinstance(op, ir.Task) and (inner := _inner(op)) is not None]
    accesses = accesses_of(fn) if nests else None
    for task, inner in nests:
        assert accesses is not None
        if _stays_apart(task, inner, accesses):
            return task, inner
    return None


def _inner(task: ir.Task) -> ir.For | None:
    """The loop that ends a task, if nothing but its accesses may forbid collapsing."""
    body = task.body.body
    inner = body[-1] if body else None
    if not task.parallel or task.ordered or task.privates or not isinstance(inner, ir.For):
        return None
    if not inner.parallel or inner.ordered or len(body) > _MAX_REPEATED:
        return None
    outer, count = trip_count(*task.args), trip_count(inner.lo, inner.hi)
    t = inner.index.type
    if outer is None or count is None or outer < 1 or count < 1 or t is not task.args[0].type:
        return None
    if not isinstance(t, Scalar) or not contains(span_of_type(t), (0, outer * count)):
        return None
    written = {op.buffer for op in walk(inner.body) if isinstance(op, ir.Store | ir.Atomic)}
    for op in body[:-1]:
        if isinstance(op, ir.Load):
            if any(buffers_may_meet(op.buffer, b) for b in written):
                return None
        elif not isinstance(op, ir.Prim | ir.Extent | ir.Check):
            return None
    return inner


def _stays_apart(task: ir.Task, inner: ir.For, accesses: Accesses) -> bool:
    """Whether each iteration of the inner loop makes its plain updates to a different element."""
    loop = accesses.loops[inner]
    inside = accesses.within(loop)
    for mine in inside:
        if isinstance(mine.op, ir.Atomic) and mine.op.plain:
            others = [other for other in inside if buffers_may_meet(other.buffer, mine.buffer)]
            if any(accesses.may_meet_across(mine, other, loop) for other in others):
                return False
    return True


def _joined(task: ir.Task, inner: ir.For) -> ir.Task:
    outer, count = trip_count(*task.args), trip_count(inner.lo, inner.hi)
    t = inner.index.type
    assert outer is not None and count is not None and isinstance(t, Scalar)
    builder = Builder(loc=inner.loc, origin=inner.origin)
    k = ir.Var(t, "k")
    with builder.region(k) as region:
        row = builder.prim(p.raw_div, k, ir.Lit(count, t))
        column = builder.prim(p.sub, k, builder.prim(p.mul, row, ir.Lit(count, t)))
        indices: dict[ir.Var, ir.Atom] = {
            index: builder.prim(p.add, n, lo) if lo.value else n  # type: ignore[union-attr]
            for index, n, lo in ((task.body.params[0], row, task.args[0]), (inner.index, column, inner.lo))
        }
        copied, _ = clone_region(ir.Region((), (*task.body.body[:-1], *inner.body.body)), indices)
        for op in copied.body:
            builder.emit(op)
    made = task.rebuilt((ir.Lit(0, t), ir.Lit(outer * count, t)), (region.close(),))
    assert isinstance(made, ir.Task)
    return made
