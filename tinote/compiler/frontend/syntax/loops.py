"""Loops: parallel nests, serial loops, loops that are left early, and unrolled ones.

A loop that is left early becomes a `while` that tests a flag:

    for i in range(n):                      i, broken = cells
        if x[i] > 0:             →          while i < n and not broken:
            break                               if x[i] > 0: broken = 1
        s += 1                                  if not broken: s += 1
                                                i += 1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.emitter import Control, Emitter, Statements
from tinote.compiler.frontend.expressions import elements
from tinote.compiler.frontend.expressions import sparse_walks as walks
from tinote.compiler.frontend.expressions.bindings import bind_target
from tinote.compiler.frontend.expressions.conditions import evaluate_condition
from tinote.compiler.frontend.expressions.domains import Domain, check_unrolled, domain_of, static_items
from tinote.compiler.frontend.expressions.speculation import safe_to_speculate
from tinote.compiler.frontend.functions import generators
from tinote.compiler.frontend.functions.callees import is_static_call
from tinote.compiler.frontend.functions.jumps import jumps_of, none_of, returned_flag, unless
from tinote.compiler.frontend.functions.statements import lower_iteration
from tinote.compiler.frontend.scopes import Anchor, Completion, LoweredLoop, ParallelNest
from tinote.compiler.frontend.values import (
    FieldDomain,
    GeneratorCall,
    Grouped,
    IndexRange,
    NdRange,
    SparseDomain,
    StaticSequence,
    Value,
)
from tinote.errors import KernelSyntaxError
from tinote.ir import primitives as p
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, For, Lit, Var, While, false, true
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import Scalar, i32, i64, promote, strengthen, u1

Bounds = tuple[Atom, Atom]


def for_(e: Emitter, node: ast.For) -> None:
    if node.orelse:
        e.unsupported("`else` after a loop", "set a flag in the loop and test it afterwards", node.orelse[0])
    options, e.loop_options = e.loop_options, {}
    leaving = jumps_of(e, node.body)
    with e.at(node.iter):
        found = e.evaluate(node.iter)
        if isinstance(found, GeneratorCall) and not is_static_call(e, node.iter):
            generators.loop_over(e, node, found, leaving, options)
            return
        if (
            is_static_call(e, node.iter)
            or isinstance(found, StaticSequence)
            or (isinstance(found, Grouped) and isinstance(found.domain, StaticSequence))
        ):
            items = static_items(e, found)
            domain: Domain | None = None
        else:
            items = ()
            domain = domain_of(e, found)
    if domain is None:
        _unrolled(e, node, items, leaving)
        return
    parallel = e.depth == 0 and not options.get("serialize") and options.get("parallelize") != 1
    if parallel and (leaving.breaks or leaving.returns):
        if e.frame.parent is None and node in e.frame.source.tree.body:  # in another statement, it runs in order
            word = "break" if leaving.breaks else "return"
            place = next(
                s
                for s in analysis.statements_in(node.body)
                if isinstance(s, ast.Break if leaving.breaks else ast.Return)
            )
            e.error(
                f"`{word}` cannot leave a parallel loop: its iterations run at the same time",
                "write `ti.loop_config(serialize=True)` before the loop to run it in order",
                place,
                KernelSyntaxError,
            )
        parallel = False
    _loop(e, node, domain, leaving, parallel)


def _axes(e: Emitter, domain: Domain, node: ast.expr) -> tuple[list[Bounds], Any]:
    """The bounds of each loop of the nest; for a range with a step, the start and step of the indices."""
    with e.at(node):
        if isinstance(domain, Grouped):
            assert not isinstance(domain.domain, StaticSequence | SparseDomain)
            return _axes(e, domain.domain, node)
        if isinstance(domain, FieldDomain):
            return [elements.all_indices(e, domain.buffer, axis) for axis in range(domain.buffer.rank)], None
        if isinstance(domain, NdRange):
            return [_bounds(e, lo, hi) for lo, hi in domain.axes], None
        assert isinstance(domain, IndexRange)
        if domain.step == 1 and not isinstance(domain.step, Value):
            return [_bounds(e, domain.lo, domain.hi)], None
        return [_bounds(e, 0, _count(e, domain))], domain


def _bounds(e: Emitter, lo: Any, hi: Any) -> Bounds:
    """Two bounds of the same integer type."""
    first, last = e.as_value(lo), e.as_value(hi)
    t = strengthen(promote(first.dtype, last.dtype, e.fp, e.ip), e.fp, e.ip)
    if t is u1 or t.bits < 32:
        t = i32
    elif t.kind == "u":
        t = i64
    return _bound(e, first, t), _bound(e, last, t)


def _bound(e: Emitter, value: Value, t: Scalar) -> Atom:
    return e.literals.fitting(value.atom, t) if isinstance(value.atom, Lit) else e.b.cast(value.atom, t)


def _count(e: Emitter, domain: IndexRange) -> Any:
    """The length of a range with a step: the distance divided by the step, rounded up."""
    lo, hi, step = domain
    if not any(isinstance(v, Value) for v in domain):
        return len(range(lo, hi, step))
    distance = e.prim(p.sub, lo, hi) if any(isinstance(v, Value) for v in (lo, hi)) else lo - hi
    return e.prim(p.neg, e.prim(p.floordiv, distance, step))


def _index_names(e: Emitter, node: ast.For, domain: Domain, axes: int) -> list[ast.Name]:
    grouped = isinstance(domain, Grouped)
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    names = [t for t in targets if isinstance(t, ast.Name)]
    if len(names) != len(targets):
        e.unsupported("a loop target other than names", "loop over names and assign inside", node.target)
    expected = 1 if grouped else axes
    if len(names) != expected:
        hint = "`ti.grouped` gives one vector" if grouped else "write one name" if axes == 1 else f"write {axes} names"
        if len(names) == 1:
            hint = "take all indices as one vector: `for I in ti.grouped(…)`"
        indices = "1 index" if expected == 1 else f"{expected} indices"
        given = "1 name" if len(names) == 1 else f"{len(names)} names"
        e.error(f"this loop has {indices}, and {given}", hint, node.target)
    for name in names:
        binding = e.scope.find(name.id)
        if binding is not None and name.id != "_":
            e.error(
                f"`{name.id}` is a variable already and cannot be the index of this loop",
                "choose another name for one of them",
                name,
                KernelSyntaxError,
            )
    return names


def _loop(e: Emitter, node: ast.For, domain: Domain, leaving: analysis.Jumps, parallel: bool) -> None:
    sparsity = _sparsity(domain)
    axes, stepped = _axes(e, domain, node.iter) if sparsity is None else ([], None)
    names = _index_names(e, node, domain, len(axes) if sparsity is None else len(sparsity.shape))
    if sparsity is not None:
        _sparse_loop(e, node, domain, sparsity, names, leaving, parallel)
        return
    early = leaving.breaks or leaving.returns
    loop = LoweredLoop(parallel)
    if leaving.breaks:
        loop.broken = e.cell(u1, false, "broken")
    if leaving.returns:
        returned_flag(e)
    indices: list[Var] = []

    def innermost(opened: OpenRegion) -> None:
        """The body of the innermost loop."""
        saved = e.nest
        if parallel:
            e.nests += 1
            e.nest = ParallelNest(
                tuple([(i, lo, hi) for i, (lo, hi) in zip(indices, axes, strict=True)]), Anchor(opened), e.nests
            )
        try:
            with e.block("loop"):
                with e.at(node.target):
                    _bind_indices(e, names, indices, domain, stepped)
                lower_iteration(e, loop, node.body)
        finally:
            e.nest = saved

    def nest(axis: int) -> None:
        if axis == len(axes):
            innermost(e.b.innermost)
            return
        lo, hi = axes[axis]
        name = (
            names[0].id
            if len(names) == 1 and len(axes) == 1 and stepped is None
            else names[axis].id
            if len(names) == len(axes) and stepped is None
            else ""
        )
        assert isinstance(lo.type, Scalar)
        if early:
            _counted_while(e, lo, hi, name, loop, leaving, lambda index: (indices.append(index), nest(axis + 1)))
            return
        index = Var(lo.type, name)
        indices.append(index)
        with e.region(index) as opened:
            nest(axis + 1)
        e.b.emit(For(lo, hi, (), opened.close(), (), e.b.loc, parallel=parallel))

    nest(0)


def _sparsity(domain: Domain) -> Sparsity | None:
    of = domain.domain if isinstance(domain, Grouped) else domain
    return of.sparsity if isinstance(of, SparseDomain) else None


def _sparse_loop(
    e: Emitter,
    node: ast.For,
    domain: Domain,
    sparsity: Sparsity,
    names: list[ast.Name],
    leaving: analysis.Jumps,
    parallel: bool,
) -> None:
    """A loop over what is active: one loop for each group of cells, and a test for each that may be inactive."""
    early = leaving.breaks or leaving.returns
    loop = LoweredLoop(parallel)
    if leaving.breaks:
        loop.broken = e.cell(u1, false, "broken")
    if leaving.returns:
        returned_flag(e)
    bounds: list[tuple[Var, Atom, Atom]] = []
    before = walks.changes(e, sparsity)
    if e.depth == 0:
        e.sparse.begin_loop()
    if early:
        walks.snapshot(e, sparsity)

    def innermost(places: tuple[Var, ...]) -> None:
        saved = e.nest
        if parallel:
            e.nests += 1
            e.nest = ParallelNest(tuple(bounds), Anchor(e.b.innermost), e.nests)
        try:
            with e.block("loop"):
                with e.at(node.target):
                    index = walks.coordinates(e, sparsity, places)
                    _bind_indices(e, names, index, domain, None)
                lower_iteration(e, loop, node.body)
        finally:
            e.nest = saved

    def guarded(places: tuple[Var, ...]) -> None:
        if not walks.has_flags(sparsity, len(places) - 1):
            nest(places)
            return
        with e.region() as inside:
            nest(places)
        listed = early or walks.changes(e, sparsity) != before
        walks.where_active(e, sparsity, places, inside.close(), listed=listed)

    def nest(places: tuple[Var, ...]) -> None:
        if len(places) == len(sparsity.groups):
            innermost(places)
            return
        end = walks.bound(e, sparsity, places)
        if early:
            _counted_while(e, Lit(0, i32), end, "", loop, leaving, lambda index: guarded((*places, index)))
            return
        index = Var(i32)
        bounds.append((index, Lit(0, i32), end))
        with e.region(index) as opened:
            guarded((*places, index))
        if not places and walks.changes(e, sparsity) != before:
            walks.snapshot(e, sparsity)
        outermost = parallel and not places
        e.b.emit(For(Lit(0, i32), end, (), opened.close(), (), e.b.loc, parallel=outermost))

    nest(())
    if e.depth == 0:
        e.sparse.begin_loop()


def _bind_indices(e: Emitter, names: list[ast.Name], indices: Sequence[Atom], domain: Domain, stepped: Any) -> None:
    what = "index of a loop"
    if isinstance(domain, Grouped):
        # The only index of a field without dimensions is the empty tuple.
        index = e.pack([Value(i) for i in indices], (len(indices),)) if indices else ()
        e.bind(names[0].id, index, what)
    elif stepped is not None:
        scaled = e.prim(p.mul, Value(indices[0]), stepped.step)
        first = stepped.lo
        e.bind(
            names[0].id,
            scaled if first == 0 and not isinstance(first, Value) else e.prim(p.add, first, scaled, name=names[0].id),
            what,
        )
    else:
        for name, index in zip(names, indices, strict=True):
            e.bind(name.id, Value(index), what)


def _stops(e: Emitter, loop: LoweredLoop, leaving: analysis.Jumps) -> list[Var]:
    found = [loop.broken] if loop.broken is not None else []
    if leaving.returns and e.frame.results.returned is not None:
        found.append(e.frame.results.returned)
    return found


def _counted_while(
    e: Emitter, lo: Atom, hi: Atom, name: str, loop: LoweredLoop, leaving: analysis.Jumps, body: Callable[[Var], Any]
) -> None:
    """A loop over a range that may stop early."""
    assert isinstance(lo.type, Scalar)
    counter = e.cell(lo.type, lo, "next")
    with e.region() as condition:
        more = e.prim(p.lt, Value(e.b.get(counter)), Value(hi))
        go = e.prim(p.and_, more, none_of(e, _stops(e, loop, leaving)))
    with e.region() as inside:
        index = e.b.get(counter, name=name)
        body(index)
        e.b.set(counter, e.b.prim(p.add, index, Lit(1, lo.type)))
    e.b.emit(While((), condition.close(go.atom), inside.close(), (), e.b.loc))


def _unrolled(e: Emitter, node: ast.For, items: tuple[Any, ...], leaving: analysis.Jumps) -> None:
    loop = LoweredLoop()
    results = e.frame.results
    if leaving.breaks:
        loop.broken = e.cell(u1, false, "broken")
    if leaving.returns:
        returned_flag(e)
    sets_before = results.sets

    def once(item: Any) -> Completion:
        with e.block("loop"):
            bind_target(e, node.target, item, "variable of an unrolled loop")
            return lower_iteration(e, loop, node.body)

    with e.at(node.iter):
        e.unrolled += len(items)
        check_unrolled(e, e.unrolled)
    failures = e.failures
    for item in items:
        stops = [loop.broken] if loop.broken is not None and loop.breaks else []
        if results.returned is not None and results.sets > sets_before:
            stops.append(results.returned)
        if stops:
            unless(e, stops, lambda item=item: once(item))
        elif once(item) is Completion.LEAVES:
            return
        if e.failures > failures:
            return  # the other iterations would report the same


def while_(e: Emitter, node: ast.While, rest: list[ast.stmt], tail: bool) -> Completion | None:
    """Lower a loop. After a loop that ends only by `return`, `rest` is not reached."""
    if node.orelse:
        e.unsupported("`else` after a loop", "set a flag in the loop and test it afterwards", node.orelse[0])
    leaving = jumps_of(e, node.body)
    loop = LoweredLoop()
    if leaving.breaks:
        loop.broken = e.cell(u1, false, "broken")
    if leaving.returns:
        returned_flag(e)
    stops = _stops(e, loop, leaving)
    with e.region() as condition:
        with e.region() as tested, e.at(node.test):
            found = e.as_value(evaluate_condition(e, node.test))
        go = _while_condition(e, found, tested, stops)
    with e.region() as inside, e.block("loop"):
        lower_iteration(e, loop, node.body)
    e.b.emit(While((), condition.close(go), inside.close(), (), e.b.loc))
    return Completion.LEAVES if found.atom == true and leaving.returns and not leaving.breaks else None


def _while_condition(e: Emitter, found: Value, tested: OpenRegion, stops: list[Var]) -> Atom:
    """The test, which is not evaluated once the loop was left."""
    if not stops:
        e.splice(tested)
        return found.atom
    running = none_of(e, stops)
    if found.atom == true:
        e.splice(tested)
        return running.atom
    if safe_to_speculate(e, tested.body):
        e.splice(tested)
        return e.prim(p.and_, running, found).atom
    (out,) = e.b.if_(running.atom, tested.close(found.atom), OpenRegion(()).close(false))
    return out


STATEMENTS: Statements = {ast.For: for_}
CONTROL: Control = {ast.While: while_}
