"""Partially unrolls small inner loops with a known trip count.

                                                         %t: f32 = for %k: i32 in 0i32 .. 25i32 carrying %u: f32 = %a:
                                                           %m: i32 = mul %k, 4i32
    %t: f32 = for %i: i32 in 0i32 .. 100i32                %x: f32 = load @x[%m]
              carrying %s: f32 = %a:                ->     %v: f32 = add %u, %x
      %x: f32 = load @x[%i]                                %n: i32 = add %m, 1i32
      %v: f32 = add %s, %x                                 %y: f32 = load @x[%n]
      yield %v                                             %w: f32 = add %v, %y
                                                           …

The order of iterations is unchanged. A GPU then counts, compares and jumps once for several iterations and overlaps
their loads; not all drivers unroll loops themselves. The remaining iterations are unrolled after the loop, or before it
if it runs backwards.
"""

from __future__ import annotations

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.cost import length_of
from tinote.ir.query import span_of, trip_count, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter, clone_region
from tinote.ir.types import Scalar
from tinote.remarks import Remark, Report, unread

#: Unroll factor. Chosen, not measured.
_ITERATIONS_TOGETHER = 4
#: Least trip count of an unrolled loop. Chosen, not measured.
_MIN_ITERATIONS = 16
#: Length of an iteration's code, in additions. Chosen, not measured.
_MAX_LENGTH = 64.0
#: Operations of an iteration. Chosen, not measured.
_MAX_OPERATIONS = 32


def unroll_partially(fn: ir.Function, report: Report = unread) -> ir.Function:
    """`fn` with the small innermost loops of its tasks unrolled."""
    return _Unroller(report).run(fn)


class _Unroller(Rewriter):
    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report

    def on(self, op: ir.Op) -> Decision | tuple[ir.Atom, ...]:
        if not isinstance(op, ir.For) or any(isinstance(inner, ir.For | ir.While) for inner in walk(op.body)):
            return KEEP
        why = _why_rolled(op)
        text = why or f"{_ITERATIONS_TOGETHER} iterations are written one after the other"
        self.report(Remark("unroll_partially", span_of(op), text, done=not why))
        return KEEP if why else _unrolled(self, op)


def _why_rolled(loop: ir.For) -> str:
    """Why an innermost loop is not unrolled; empty if it is."""
    count = trip_count(loop.lo, loop.hi)
    if count is None:
        return "how often it runs is known at run time only"
    if count < _MIN_ITERATIONS:
        return f"it has fewer than {_MIN_ITERATIONS} iterations"
    inside = list(walk(loop.body))
    if len(inside) > _MAX_OPERATIONS or sum(map(length_of, inside)) > _MAX_LENGTH:
        return "an iteration is too long"
    return ""


def _unrolled(rewriter: Rewriter, loop: ir.For) -> tuple[ir.Atom, ...]:
    """Emit the unrolled loop; returns its final carried values."""
    assert isinstance(loop.lo, ir.Lit) and isinstance(loop.hi, ir.Lit)
    t, lo, hi = loop.lo.type, int(loop.lo.value), int(loop.hi.value)
    assert isinstance(t, Scalar)
    count, left = divmod(hi - lo, _ITERATIONS_TOGETHER)
    steps, rest = range(lo, lo + _ITERATIONS_TOGETHER), range(hi - left, hi)
    carried = tuple(loop.initial)
    if loop.reverse:
        steps, rest = steps[::-1], rest[::-1]
        carried = _written_out(rewriter, loop, rest, carried)
    builder = Builder(loc=loop.loc, origin=loop.origin)
    k = ir.Var(t, loop.index.name)
    params = tuple([ir.Var(v.type, v.name) for v in loop.carried])
    with builder.region(k, *params) as region:
        begin = builder.prim(p.mul, k, ir.Lit(_ITERATIONS_TOGETHER, t))
        values: tuple[ir.Atom, ...] = params
        for step in steps:
            index = builder.prim(p.add, begin, ir.Lit(step, t))
            values = _iteration(builder, loop, index, values)
    outs = tuple([ir.Var(v.type, v.name) for v in loop.outs])
    made = loop.rebuilt((ir.Lit(0, t), ir.Lit(count, t), *carried), (region.close(*values),), outs)
    rewriter.emit(made)
    carried = outs
    if not loop.reverse:
        carried = _written_out(rewriter, loop, rest, carried)
    return carried


def _written_out(
    rewriter: Rewriter, loop: ir.For, iterations: range, carried: tuple[ir.Atom, ...]
) -> tuple[ir.Atom, ...]:
    builder, t = Builder(loc=loop.loc, origin=loop.origin), loop.lo.type
    assert isinstance(t, Scalar)
    with builder.region() as region:
        for iteration in iterations:
            carried = _iteration(builder, loop, ir.Lit(iteration, t), carried)
    for op in region.body:
        rewriter.emit(op)
    return carried


def _iteration(builder: Builder, loop: ir.For, index: ir.Atom, carried: tuple[ir.Atom, ...]) -> tuple[ir.Atom, ...]:
    """Emit one iteration; returns its carried values."""
    env = dict(zip((loop.index, *loop.carried), (index, *carried), strict=True))
    copied, _ = clone_region(ir.Region((), loop.body.body, loop.body.yields), env)
    for op in copied.body:
        builder.emit(op)
    return copied.yields
