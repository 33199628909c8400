"""Loops: parallel nests, serial loops, loops that are left early, and unrolled ones.

Jumps become structure where they can (what follows `if c: continue` goes into the other branch) and flags where
they must:

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

from tinote.compiler.frontend import analysis, wholes
from tinote.compiler.frontend.calls import Calls
from tinote.compiler.frontend.domains import Domain, check_unrolled, domain_of, static_items
from tinote.compiler.frontend.scopes import Anchor, Loop, ParallelNest, Way
from tinote.compiler.frontend.values import FieldDomain, Grouped, IndexRange, NdRange, StaticSequence, Value
from tinote.errors import KernelSyntaxError
from tinote.ir import primitives as p
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, For, Lit, Local, Var, While, false, true
from tinote.ir.types import Ref, Scalar, i32, i64, promote, strengthen, u1

__all__ = ["Loops"]

Bounds = tuple[Atom, Atom]


class Loops(Calls):
    """The emitter that knows loops. Lowering a list of statements is left to the next layer."""

    def statements(self, body: list[ast.stmt], tail: bool) -> Way:
        """Lower statements; how control certainly ends. `tail`: nothing of the loop's iteration (or the function)
        follows them.
        """
        raise NotImplementedError

    # flags

    def flag(self, anchor: Anchor, name: str) -> Var:
        """A cell that holds false, declared at `anchor`."""
        cell = Var(Ref(u1), name)
        anchor.insert(Local((false,), (cell,), (), self.b.loc))
        return cell

    def returned(self) -> Var:
        """The flag that this function has returned."""
        results = self.frame.results
        if results.returned is None:
            results.returned = self.flag(results.anchor, "returned")
        return results.returned

    def unless(self, flags: Sequence[Var], then: Callable[[], Any]) -> None:
        """Do something unless one of the flags is set."""
        condition = self._none_of(flags)
        with self.region() as opened:
            then()
        self.b.if_(condition.atom, opened.close())

    def _none_of(self, flags: Sequence[Var]) -> Value:
        found = Value(self.b.get(flags[0]))
        for flag in flags[1:]:
            found = self.prim(p.or_, found, Value(self.b.get(flag)))
        return self.prim(p.logical_not, found)

    def flags_after(self, leaving: analysis.Jumps) -> list[Var]:
        """The flags that say whether control goes on after something that can leave like this."""
        loop = self.frame.loops[-1] if self.frame.loops else None
        found: list[Var] = []
        if loop is not None and leaving.continues and loop.continued is not None:
            found.append(loop.continued)
        if loop is not None and leaving.breaks and loop.broken is not None:
            found.append(loop.broken)
        if leaving.returns and self.frame.results.returned is not None:
            found.append(self.frame.results.returned)
        return found

    # for

    def for_(self, node: ast.For) -> None:
        if node.orelse:
            self.unsupported("`else` after a loop", "set a flag in the loop and test it afterwards", node.orelse[0])
        options, self.loop_options = self.loop_options, {}
        leaving = analysis.Jumps(node.body)
        with self.at(node.iter):
            found = self.evaluate(node.iter)
            if (
                self.is_static_call(node.iter)
                or isinstance(found, StaticSequence)
                or (isinstance(found, Grouped) and isinstance(found.domain, StaticSequence))
            ):
                items = static_items(self, found)
                domain: Domain | None = None
            else:
                items = ()
                domain = domain_of(self, found)
        if domain is None:
            self._unrolled(node, items, leaving)
            return
        parallel = self.depth == 0 and not options.get("serialize") and options.get("parallelize") != 1
        if parallel and (leaving.breaks or leaving.returns):
            if self.frame.parent is None:
                word = "break" if leaving.breaks else "return"
                place = next(
                    s
                    for s in analysis.statements_in(node.body)
                    if isinstance(s, ast.Break if leaving.breaks else ast.Return)
                )
                self.error(
                    f"`{word}` cannot leave a parallel loop: its iterations run at the same time",
                    "write `ti.loop_config(serialize=True)` before the loop to run it in order",
                    place,
                    KernelSyntaxError,
                )
            parallel = False
        self._loop(node, domain, leaving, parallel)

    def _axes(self, domain: Domain, node: ast.expr) -> tuple[list[Bounds], Any]:
        """The bounds of each loop of the nest; for a range with a step, what the indices are made of."""
        with self.at(node):
            if isinstance(domain, Grouped):
                assert not isinstance(domain.domain, StaticSequence)
                return self._axes(domain.domain, node)
            if isinstance(domain, FieldDomain):
                return [wholes.all_indices(self, domain.buffer, axis) for axis in range(domain.buffer.rank)], None
            if isinstance(domain, NdRange):
                return [self._bounds(lo, hi) for lo, hi in domain.axes], None
            assert isinstance(domain, IndexRange)
            if domain.step == 1 and not isinstance(domain.step, Value):
                return [self._bounds(domain.lo, domain.hi)], None
            return [self._bounds(0, self._count(domain))], domain

    def _bounds(self, lo: Any, hi: Any) -> Bounds:
        """Two bounds of the same integer type."""
        first, last = self.as_value(lo), self.as_value(hi)
        t = strengthen(promote(first.dtype, last.dtype, self.fp, self.ip), self.fp, self.ip)
        if t is u1 or t.bits < 32:
            t = i32
        elif t.kind == "u":
            t = i64
        return self._bound(first, t), self._bound(last, t)

    def _bound(self, value: Value, t: Scalar) -> Atom:
        return self.fitting(value.atom, t) if isinstance(value.atom, Lit) else self.b.cast(value.atom, t)

    def _count(self, domain: IndexRange) -> Any:
        """How many numbers a range with a step has: the distance divided by the step, rounded up."""
        lo, hi, step = domain
        if not any(isinstance(v, Value) for v in domain):
            return len(range(lo, hi, step))
        distance = self.prim(p.sub, lo, hi) if any(isinstance(v, Value) for v in (lo, hi)) else lo - hi
        return self.prim(p.neg, self.prim(p.floordiv, distance, step))

    def _index_names(self, node: ast.For, domain: Domain, axes: int) -> list[ast.Name]:
        grouped = isinstance(domain, Grouped)
        targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
        names = [t for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(targets):
            self.unsupported("a loop target other than names", "loop over names and assign inside", node.target)
        expected = 1 if grouped else axes
        if len(names) != expected:
            hint = (
                "`ti.grouped` gives one vector" if grouped else "write one name" if axes == 1 else f"write {axes} names"
            )
            if len(names) == 1:
                hint = "take all indices as one vector: `for I in ti.grouped(…)`"
            indices = "1 index" if expected == 1 else f"{expected} indices"
            given = "1 name" if len(names) == 1 else f"{len(names)} names"
            self.error(f"this loop has {indices}, and {given}", hint, node.target)
        for name in names:
            binding = self.scope.find(name.id)
            if binding is not None and name.id != "_":
                self.error(
                    f"`{name.id}` is a variable already and cannot be the index of this loop",
                    "choose another name for one of them",
                    name,
                    KernelSyntaxError,
                )
        return names

    def _loop(self, node: ast.For, domain: Domain, leaving: analysis.Jumps, parallel: bool) -> None:
        axes, stepped = self._axes(domain, node.iter)
        names = self._index_names(node, domain, len(axes))
        early = leaving.breaks or leaving.returns
        loop = Loop(parallel)
        if leaving.breaks:
            loop.broken = self.cell(u1, false, "broken")
        if leaving.returns:
            self.returned()
        indices: list[Var] = []

        def innermost(opened: OpenRegion) -> None:
            """The body of the innermost loop."""
            saved = self.nest
            if parallel:
                self.nests += 1
                self.nest = ParallelNest(
                    tuple([(i, lo, hi) for i, (lo, hi) in zip(indices, axes, strict=True)]), Anchor(opened), self.nests
                )
            try:
                with self.block("loop", node):
                    with self.at(node.target):
                        self._bind_indices(names, indices, domain, stepped)
                    self.iteration(loop, node.body)
            finally:
                self.nest = saved

        def nest(axis: int) -> None:
            if axis == len(axes):
                innermost(self.b.innermost)
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
                self._counted_while(lo, hi, name, loop, leaving, lambda index: (indices.append(index), nest(axis + 1)))
                return
            index = Var(lo.type, name)
            indices.append(index)
            with self.region(index) as opened:
                nest(axis + 1)
            self.b.emit(For(lo, hi, (), opened.close(), (), self.b.loc, parallel=parallel))

        nest(0)

    def _bind_indices(self, names: list[ast.Name], indices: list[Var], domain: Domain, stepped: Any) -> None:
        what = "index of a loop"
        if isinstance(domain, Grouped):
            # The only index of a field without dimensions is the empty tuple.
            index = self.pack([Value(i) for i in indices], (len(indices),)) if indices else ()
            self.bind(names[0].id, index, what)
        elif stepped is not None:
            scaled = self.prim(p.mul, Value(indices[0]), stepped.step)
            first = stepped.lo
            self.bind(
                names[0].id,
                scaled
                if first == 0 and not isinstance(first, Value)
                else self.prim(p.add, first, scaled, name=names[0].id),
                what,
            )
        else:
            for name, index in zip(names, indices, strict=True):
                self.bind(name.id, Value(index), what)

    def iteration(self, loop: Loop, body: list[ast.stmt]) -> Way:
        """Lower the body of a loop once. Its `continue` flag, if it needs one, is declared at the point reached now."""
        loop.start = self.here()
        loop.continued = None
        self.frame.loops.append(loop)
        try:
            return self.statements(body, True)
        finally:
            self.frame.loops.pop()

    def _stops(self, loop: Loop, leaving: analysis.Jumps) -> list[Var]:
        found = [loop.broken] if loop.broken is not None else []
        if leaving.returns and self.frame.results.returned is not None:
            found.append(self.frame.results.returned)
        return found

    def _counted_while(
        self, lo: Atom, hi: Atom, name: str, loop: Loop, leaving: analysis.Jumps, body: Callable[[Var], Any]
    ) -> None:
        """A loop over a range that may stop early."""
        assert isinstance(lo.type, Scalar)
        counter = self.cell(lo.type, lo, "next")
        with self.region() as condition:
            more = self.prim(p.lt, Value(self.b.get(counter)), Value(hi))
            go = self.prim(p.and_, more, self._none_of(self._stops(loop, leaving)))
        with self.region() as inside:
            index = self.b.get(counter, name=name)
            body(index)
            self.b.set(counter, self.b.prim(p.add, index, Lit(1, lo.type)))
        self.b.emit(While((), condition.close(go.atom), inside.close(), (), self.b.loc))

    def _unrolled(self, node: ast.For, items: tuple[Any, ...], leaving: analysis.Jumps) -> None:
        loop = Loop()
        results = self.frame.results
        if leaving.breaks:
            loop.broken = self.cell(u1, false, "broken")
        if leaving.returns:
            self.returned()
        sets_before = results.sets

        def once(item: Any) -> Way:
            with self.block("loop", node):
                self.bind_target(node.target, item, "variable of an unrolled loop")
                return self.iteration(loop, node.body)

        with self.at(node.iter):
            self.turns += len(items)
            check_unrolled(self, self.turns)
        failures = self.failures
        for item in items:
            stops = [loop.broken] if loop.broken is not None and loop.breaks else []
            if results.returned is not None and results.sets > sets_before:
                stops.append(results.returned)
            if stops:
                self.unless(stops, lambda item=item: once(item))
            elif once(item) is Way.LEAVES:
                return
            if self.failures > failures:
                return  # the other turns would say the same

    # while

    def while_(self, node: ast.While) -> None:
        if node.orelse:
            self.unsupported("`else` after a loop", "set a flag in the loop and test it afterwards", node.orelse[0])
        leaving = analysis.Jumps(node.body)
        loop = Loop()
        if leaving.breaks:
            loop.broken = self.cell(u1, false, "broken")
        if leaving.returns:
            self.returned()
        stops = self._stops(loop, leaving)
        with self.region() as condition:
            with self.region() as tested, self.at(node.test):
                found = self.as_value(self.decision(node.test))
            go = self._while_condition(found, tested, stops)
        with self.region() as inside, self.block("loop", node):
            self.iteration(loop, node.body)
        self.b.emit(While((), condition.close(go), inside.close(), (), self.b.loc))

    def _while_condition(self, found: Value, tested: OpenRegion, stops: list[Var]) -> Atom:
        """The test, which is not evaluated once the loop was left."""
        if not stops:
            self.splice(tested)
            return found.atom
        running = self._none_of(stops)
        if found.atom == true:
            self.splice(tested)
            return running.atom
        if self.harmless(tested.body):
            self.splice(tested)
            return self.prim(p.and_, running, found).atom
        (out,) = self.b.if_(running.atom, tested.close(found.atom), OpenRegion(()).close(false))
        return out
