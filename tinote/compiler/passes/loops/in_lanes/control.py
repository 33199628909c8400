"""Control flow in lanes: masks say which lanes are active."""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.analyses.choose_lanes import is_cheap
from tinote.compiler.passes.loops.in_lanes.loop import LoopInLanes, zero_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.atoms import false, true
from tinote.ir.types import Lanes, element_type, i64, u1


def if_(e: LoopInLanes, op: ir.If) -> None:
    if e.divergence.uniform(op.condition):
        wide = e.differ(op.outs)
        regions = tuple([e.region(r, lambda r=r: e.results(r.yields, wide)) for r in op.regions])
        e.emit(op.rebuilt(op.args, regions, e.bound(op.outs, wide)))
        return
    condition = e.spread(op.condition)
    if is_cheap(op):
        sides: list[list[ir.Atom]] = []
        for region in op.regions:
            for inner in region.body:
                e.visit(e, inner)
            e.op = op
            sides.append([e.each(y) for y in region.yields])
    else:
        outer = e.mask
        sides = [side_of(e, op.then, e.all_of(outer, condition))]
        plain = not op.orelse.body
        sides.append(
            [e.each(y) for y in op.orelse.yields] if plain else side_of(e, op.orelse, e.without(outer, condition))
        )
    for out, a, b in zip(op.outs, *sides, strict=True):
        e.emit(ir.Prim(p.select, (condition, a, b), (e.lanes_for(out),), op.loc, op.origin))


def side_of(e: LoopInLanes, region: ir.Region, mask: ir.Atom) -> list[ir.Atom]:
    """One side of a divergent `if`, for the lanes of `mask`; skipped if none is active."""
    outer, op = e.mask, e.op
    some = e.reduce(p.or_, mask)
    e.mask = mask
    then = e.region(region, lambda: [e.spread(y) for y in region.yields])
    e.mask, e.op = outer, op
    orelse = e.region(None, lambda: [e.spread(zero_of(y.type)) for y in region.yields])
    outs = tuple([ir.Var(e.type(y.type)) for y in region.yields])
    e.emit(ir.If(some, then, orelse, outs, op.loc, op.origin))
    return [*outs]


def for_(e: LoopInLanes, op: ir.For) -> None:
    divergent = op in e.divergence.divergent
    outer, wide = e.mask, e.differ(op.carried)
    initial = tuple(e.results(op.initial, wide))
    carried: tuple[ir.Var, ...] = ()
    counter, lo, hi, start = op.index, op.lo, op.hi, None
    if e.divergence.step(op.lo) == 0:
        limit = e.each(op.hi)
    else:
        # Lanes begin at different indices, and count from there.
        counter, lo = ir.Var(i64), ir.Lit(0, i64)
        start = e.widened(e.each(op.lo) if divergent else op.lo)
        end = e.widened(e.each(op.hi) if divergent else op.hi)
        hi = limit = e.prim(p.sub, end, start, t=start.type if isinstance(start.type, Lanes) else end.type)
    if divergent:
        t = element_type(limit.type)
        hi = e.reduce(p.maximum, e.chosen(outer, limit, ir.Lit(t.lowest, t)))

    def enter() -> tuple[ir.Var, ...]:
        nonlocal carried
        carried = e.bound(op.carried, wide)
        if start is not None:
            count_from(e, start, counter, op)
        if divergent:
            e.mask = e.all_of(outer, e.prim(p.lt, counter, limit, t=e.type(u1)))
        return (counter, *carried)

    def leave() -> list[ir.Atom]:
        e.op = op
        results = e.results(op.body.yields, wide)
        if not divergent:
            return results
        if op.reverse:
            return waiting(e, e.mask, results, carried)
        return settled(e, e.mask, results, carried, op.outs)

    body = e.region(op.body, leave, enter)
    e.mask, e.op = outer, op
    new = op.rebuilt((lo, hi, *initial), (body,), e.bound(op.outs, wide))
    assert isinstance(new, ir.For)
    # Its iterations may be independent, but the lanes are in use already.
    new.parallel = new.vectorize = False
    e.emit(new)


def settled(
    e: LoopInLanes, mask: ir.Atom, new: Sequence[ir.Atom], old: Sequence[ir.Atom], outs: Sequence[ir.Var]
) -> list[ir.Atom]:
    """The values that a loop carries on: lanes that have left keep their last values, where these are used."""
    values = zip(new, old, outs, strict=True)
    return [e.chosen(mask, n, o) if out in e.used else n for n, o, out in values]


def waiting(e: LoopInLanes, mask: ir.Atom, new: Sequence[ir.Atom], old: Sequence[ir.Atom]) -> list[ir.Atom]:
    """The values that a reverse loop carries on: lanes with fewer iterations enter later, with their initial values."""
    return [e.chosen(mask, n, o) for n, o in zip(new, old, strict=True)]


def count_from(e: LoopInLanes, start: ir.Atom, counter: ir.Var, op: ir.For) -> None:
    """Bind the index of a loop that lanes begin at different places."""
    if e.divergence.step(op.index) is None:
        index = e.prim(p.add, start, counter, t=e.type(i64))
        out = e.lanes_for(op.index)
    else:
        first = e.widened(op.lo)
        index, out = e.prim(p.add, first, counter, t=i64), op.index
    prim, args = (p.cast, (index,)) if element_type(out.type) is not i64 else (p.add, (index, ir.Lit(0, i64)))
    e.emit(ir.Prim(prim, args, (out,), op.loc, op.origin))


def while_(e: LoopInLanes, op: ir.While) -> None:
    if op in e.divergence.divergent:
        divergent_while(e, op)
        return
    wide = e.differ(op.body.params)
    initial = tuple(e.results(op.initial, wide))
    condition, body = (
        e.region(r, lambda r=r, w=w: e.results(r.yields, w), lambda r=r: e.bound(r.params, wide))
        for r, w in ((op.condition, [False]), (op.body, wide))
    )
    e.emit(op.rebuilt(initial, (condition, body), e.bound(op.outs, wide)))


def divergent_while(e: LoopInLanes, op: ir.While) -> None:
    """A divergent `while`. The body evaluates the condition first; its rest runs for the lanes where it holds, and the
    loop ends when no lane is left.
    """
    outer, every = e.mask, [True] * len(op.initial)
    initial = (true, outer, *e.results(op.initial, every))

    def flags() -> tuple[ir.Var, ir.Var]:
        return ir.Var(u1, "go"), ir.Var(e.type(u1), "mask")

    asked = tuple([ir.Var(e.type(v.type), v.name) for v in op.body.params])
    again = flags()
    condition = ir.Region((*again, *asked), (), (again[0],))
    _, active = params = flags()
    carried: tuple[ir.Var, ...] = ()
    outs: tuple[ir.Var, ...] = ()

    def enter() -> tuple[ir.Var, ...]:
        nonlocal carried
        carried = e.bound(op.body.params, every)
        for v, lanes in zip(op.condition.params, carried, strict=True):
            e.bind(v, lanes)
        e.mask = active
        return (*params, *carried)

    def work() -> list[ir.Atom]:
        """Emit the body, after the condition, for the lanes that continue."""
        nonlocal outs
        e.op = op
        on = e.mask = e.all_of(active, e.spread(op.condition.yields[0]))
        some = e.reduce(p.or_, on)

        def results() -> list[ir.Atom]:
            e.op = op
            new = e.results(op.body.yields, every)
            return [true, on, *settled(e, on, new, carried, op.outs)]

        then = e.region(op.body, results)
        orelse = ir.Region((), (), (false, active, *carried))
        outs = tuple([ir.Var(v.type) for v in (*params, *carried)])
        e.op = op
        e.emit(ir.If(some, then, orelse, outs, op.loc, op.origin))
        return [*outs]

    body = e.region(op.condition, work, enter)
    e.mask, e.op = outer, op
    left = flags()
    e.emit(op.rebuilt(initial, (condition, body), (*left, *e.bound(op.outs, every))))
