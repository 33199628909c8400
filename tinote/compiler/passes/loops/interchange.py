"""Loop fission and interchange: moves the updates that an inner loop makes to one element after another into a nest of
their own, with the two loops interchanged.

    for parallel %i: i32 in 0i32 .. 4096i32:        for parallel %i: i32 in 0i32 .. 4096i32:
      %a: f32 = load @x[%i]                           %a: f32 = load @x[%i]
      %t: f32 = for %j … carrying %s: f32 …:          %t: f32 = for %j … carrying %s: f32 …:
        %b: f32 = load @x[%j]                           %b: f32 = load @x[%j]
        %c: f32 = mul %a, %b                            %c: f32 = mul %a, %b
        atomic add @y[%j], %c                           %d: f32 = add %s, %c
        %d: f32 = add %s, %c                ->          yield %d
        yield %d                                      atomic add @y[%i], %t
      atomic add @y[%i], %t                         for parallel %k: i32 in 0i32 .. 4096i32:
                                                      for parallel %l: i32 in 0i32 .. 4096i32:
                                                        %e: f32 = load @x[%l]
                                                        %f: f32 = load @x[%k]
                                                        %g: f32 = mul %e, %f
                                                        atomic add @y[%k], %g

The derivative of a sum over pairs has this form. On a GPU neighbouring iterations are at the same `%j` at the same time
and contend at each update. In the new nest each sums up for its own element (`accumulate`). The contributions are
computed twice, once for either index. So both loops must be long, with known lengths, and the contributions may only be
arithmetic and loads of memory that the loop does not write.

As in any parallel loop, the order of the sums is unspecified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.prune import prune
from tinote.ir.query import bound_in, free_variables, has_effect, trip_count, walk
from tinote.ir.rewrite import Rewriter, clone_region
from tinote.ir.types import u1

#: Iterations that the new parallel loop must have. Chosen, not measured.
_MIN_PARALLEL = 256
#: Greatest ratio of the inner to the outer number of iterations. Chosen, not measured.
_MAX_RATIO = 16
#: Greatest number of iterations of the inner loop: one invocation runs them all, and drivers stop long invocations
#: (Mesa's CPU driver after 65,535 iterations).
_MAX_INNER = 1 << 15
#: Operations that may be duplicated per extracted update. Chosen, not measured.
_MAX_OPERATIONS_PER_UPDATE = 200


def interchange(fn: ir.Function) -> ir.Function:
    """`fn` with the updates of inner loops moved into interchanged nests of their own.

    Only loops at its top are considered.
    """
    if not any(_inner_loops(op) for op in fn.region.body):
        return fn
    return _Interchanger().run(fn)


def _inner_loops(op: ir.Op) -> list[ir.For]:
    """The loops in the body of a parallel loop that could be interchanged with it."""
    if not isinstance(op, ir.For) or not op.parallel or op.ordered:
        return []
    return [
        inner
        for inner in op.body.body
        if isinstance(inner, ir.For)
        and not inner.ordered
        and _fits(trip_count(op.lo, op.hi), trip_count(inner.lo, inner.hi))
    ]


def _fits(outer: int | None, inner: int | None) -> bool:
    return (
        outer is not None
        and inner is not None
        and inner >= _MIN_PARALLEL
        and outer <= min(_MAX_RATIO * inner, _MAX_INNER)
    )


class _Interchanger(Rewriter):
    """Only the top of a function is looked at."""

    def visit(self, op: ir.Op) -> None:
        nests: list[ir.Op] = []
        while (found := _divided(op)) is not None:
            op, nest = found
            nests.append(nest)
        self.out += [op, *nests] if has_effect(op) or not nests else nests


def _divided(op: ir.Op) -> tuple[ir.Op, ir.For] | None:
    """The fission: a loop without some updates, and the nest that makes them."""
    for inner in _inner_loops(op):
        assert isinstance(op, ir.For)
        updates = _updates(op, inner)
        nest = _nest(op, inner, updates) if updates else None
        if nest is not None:
            return _Without(updates).region(ir.Region((), (op,))).body[0], nest
    return None


def _updates(outer: ir.For, inner: ir.For) -> frozenset[ir.Op]:
    """The additions directly in the inner loop to elements that depend on its index only."""
    before = outer.body.body[: outer.body.body.index(inner)]
    by_outer = _depending([*before, *inner.body.body], outer.index)
    by_inner = _depending(inner.body.body, inner.index)
    accesses = [op for op in walk(outer.body) if isinstance(op, ir.MemoryOp) and not isinstance(op, ir.Extent)]
    found: set[ir.Op] = set()
    for op in _outside_of_loops(inner.body):
        index = {a for a in op.index if isinstance(a, ir.Var)}
        if not _adds(op) or not index.isdisjoint(by_outer) or index.isdisjoint(by_inner):
            continue
        if all(_adds(other) for other in accesses if buffers_may_meet(other.buffer, op.buffer)):
            found.add(op)
    return frozenset(found)


def _adds(op: ir.Op) -> bool:
    return isinstance(op, ir.Atomic) and op.prim is p.add and not op.outs and op.buffer.dtype is not u1


def _outside_of_loops(region: ir.Region) -> Iterator[ir.Atomic]:
    """The updates of a region outside loops in it."""
    for op in region.body:
        if isinstance(op, ir.Atomic):
            yield op
        elif isinstance(op, ir.If):
            for inner in op.regions:
                yield from _outside_of_loops(inner)


def _depending(ops: Sequence[ir.Op], on: ir.Var) -> set[ir.Var]:
    """The variables that depend on a variable, itself included."""
    found = {on}

    def visit(op: ir.Op) -> None:
        inside = [v for r in op.regions for v in free_variables(r)]
        if found.isdisjoint([*[a for a in op.args if isinstance(a, ir.Var)], *inside]):
            return
        if isinstance(op, ir.If):
            for region in op.regions:
                for inner in region.body:
                    visit(inner)
        else:
            for region in op.regions:
                found.update(bound_in(region))
        found.update(op.outs)

    for op in ops:
        visit(op)
    return found


def _nest(outer: ir.For, inner: ir.For, updates: frozenset[ir.Op]) -> ir.For | None:
    """The interchanged loops with only these updates, if that is legal and pays."""
    body = prune(_Only(updates).region(ir.Region((), inner.body.body)))
    needed = {*free_variables(body)}
    if not needed.isdisjoint(inner.body.params[1:]):
        return None
    made: list[ir.Op] = []
    for op in reversed(outer.body.body[: outer.body.body.index(inner)]):
        if needed.isdisjoint(op.outs):
            continue
        made.insert(0, op)
        needed.update([a for a in op.args if isinstance(a, ir.Var)])
        needed.update([v for r in op.regions for v in free_variables(r)])
    ops = [*made, *body.body]
    every = list(walk(ir.Region((), tuple(ops))))
    if not all(_can_be_repeated(op) or op in updates for op in every) or any(isinstance(op, ir.For) for op in made):
        return None
    if len(every) > _MAX_OPERATIONS_PER_UPDATE * len(updates):
        return None
    written = {op.buffer for op in walk(outer.body) if isinstance(op, ir.Store | ir.Atomic)}
    read = {op.buffer for op in every if isinstance(op, ir.Load)}
    if any(buffers_may_meet(a, b) for a in written for b in read):
        return None
    swapped, _ = clone_region(ir.Region((), (_parallel(inner, _parallel(outer, *ops)),)))
    assert isinstance(swapped.body[0], ir.For)
    return swapped.body[0]


def _parallel(loop: ir.For, *body: ir.Op) -> ir.For:
    """A parallel loop over the same iterations with another body."""
    region = ir.Region((loop.index,), body)
    return ir.For(loop.lo, loop.hi, (), region, loc=loop.loc, parallel=True, origin=loop.origin)


def _can_be_repeated(op: ir.Op) -> bool:
    """Whether an operation gives the same whenever it runs, as long as the memory that it loads is not written."""
    return isinstance(op, ir.Load | ir.Extent | ir.If | ir.For) or (
        isinstance(op, ir.Prim) and op.prim is not p.random_bits
    )


class _Without(Rewriter):
    """Leaves operations out."""

    def __init__(self, left_out: frozenset[ir.Op]) -> None:
        super().__init__()
        self.left_out = left_out

    def visit(self, op: ir.Op) -> None:
        if op not in self.left_out:
            super().visit(op)


class _Only(_Without):
    """Leaves out all writes except some updates."""

    def visit(self, op: ir.Op) -> None:
        if op in self.left_out or not isinstance(op, ir.Store | ir.Atomic) or op.outs:
            super(_Without, self).visit(op)
