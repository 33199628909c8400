"""Loop fusion in gradients: a recomputed loop and its reverse become one loop if the reverse runs forwards and needs no
result of the other. The same for branches on the same condition.

    %m, %a = for %i in 0..%n carrying %t = 0.0, %s = 1.0:      %m, %a, %b = for %i in 0..%n carrying %t = …, %s = …:
      …                                                          …
    %c = mul %d, %m                                        ->    atomic add @x.grad[%i], %h
    %b = for %i in 0..%n carrying %u = 1.0:                      …
      atomic add @x.grad[%i], %h                               %c = mul %d, %m

What both compute is computed once; of nested loops each is executed once then, in place of once for each level. The
first one moves down to the second, with all that depends on it after. They may be exchanged where none reads or sets
what the other changes: additions to memory commute.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.query import free_variables, walk
from tinote.ir.rewrite import Rewriting, keeping


def fuse_sweeps(region: ir.Region) -> ir.Region:
    """`region` with such loops and branches fused."""
    return _Fuser().region(region)


class _Effects(NamedTuple):
    """What an operation does to memory and stacks. `others`: whether it does anything else that can be seen."""

    reads: frozenset[ir.Buffer]
    adds: frozenset[ir.Buffer]
    writes: frozenset[ir.Buffer]
    stacks: frozenset[ir.Atom]
    others: bool

    def conflict(self, other: _Effects) -> bool:
        """Whether two operations may not be exchanged."""
        return (
            _meet(self.writes, other.reads | other.adds | other.writes)
            or _meet(other.writes, self.reads | self.adds)
            or _meet(self.adds, other.reads)
            or _meet(other.adds, self.reads)
            or not self.stacks.isdisjoint(other.stacks)
            or (self.others and other.others)
        )


def _meet(some: Iterable[ir.Buffer], others: Iterable[ir.Buffer]) -> bool:
    return any(buffers_may_meet(a, b) for a in some for b in others)


def _effects_of(op: ir.Op) -> _Effects:
    reads: set[ir.Buffer] = set()
    adds: set[ir.Buffer] = set()
    writes: set[ir.Buffer] = set()
    stacks: set[ir.Atom] = set()
    others = False
    for one in (op, *[inner for r in op.regions for inner in walk(r)]):
        if isinstance(one, ir.Load):
            reads.add(one.buffer)
        elif isinstance(one, ir.Atomic) and one.prim is p.add and not one.outs:
            adds.add(one.buffer)
        elif isinstance(one, ir.Store | ir.Atomic):
            writes.add(one.buffer)
        elif isinstance(one, ir.Push | ir.Pop):
            stacks.add(one.args[0])
        elif isinstance(one, ir.NewStack):
            stacks.update(one.outs)
        elif not isinstance(one, ir.Prim | ir.Extent | ir.If | ir.For):
            others = True
    return _Effects(frozenset(reads), frozenset(adds), frozenset(writes), frozenset(stacks), others)


class _Fuser(Rewriting):
    """`env`: what stands for a variable. `known`: the results of what has been computed, by what it is."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Hashable, tuple[ir.Var, ...]] = {}

    def region(self, region: ir.Region) -> ir.Region:
        added: list[Hashable] = []
        body: list[ir.Op] = []
        for op in self.merged(region.body, added):
            op = op.rebuilt(self.renamed(op.args), op.regions)
            if isinstance(op, ir.For):
                body.append(self.loop(op))
            elif isinstance(op, ir.If):
                body.append(self.branch(op))
            elif not self.is_known(op, added):
                regions = tuple(map(self.region, op.regions))
                body.append(op.rebuilt(op.args, regions) if regions else op)
        for key in added:
            self.known.pop(key, None)
        return ir.Region(region.params, tuple(body), self.renamed(region.yields))

    def is_known(self, op: ir.Op, added: list[Hashable]) -> bool:
        """Whether an operation computes what another one has; its results stand for this one's then."""
        key: Hashable
        if isinstance(op, ir.Prim):
            key = (op.prim, op.args, op.out.type)
        elif isinstance(op, ir.Load):
            # Another load of the same element may have found something else in the primal function.
            key = (op.buffer, op.args, op.origin)
        else:
            return False
        found = self.known.get(key)
        if found is None:
            self.known[key] = op.outs
            added.append(key)
        elif found is not op.outs:
            self.env.update(zip(op.outs, found, strict=True))
            return True
        return False

    # ---- what becomes one

    def merged(self, body: Sequence[ir.Op], added: list[Hashable]) -> list[ir.Op]:
        """The operations of a region, with those fused that can be; what is inside of these is not looked at."""
        found: list[ir.Op] = []
        for op in body:
            if isinstance(op, ir.Prim):
                op = op.rebuilt(self.renamed(op.args), ())
                if self.is_known(op, added):
                    continue
            found = self.with_one(found, op)
        return found

    def with_one(self, found: list[ir.Op], op: ir.Op) -> list[ir.Op]:
        """`found` and one more operation, which is fused with one of them if it can be."""
        if isinstance(op, ir.For | ir.If) and op.origin is not None:
            for k, earlier in enumerate(found):
                if earlier.origin is op.origin and self.are_alike(earlier, op):
                    between = self.exchanged(found[k + 1 :], earlier, op)
                    if between is not None:
                        before, after = between
                        return [*found[:k], *before, self.fused(earlier, op), *after]
        return [*found, op]

    def are_alike(self, a: ir.Op, b: ir.Op) -> bool:
        if isinstance(a, ir.For) and isinstance(b, ir.For):
            ordered = not (a.parallel or b.parallel or a.reverse or b.reverse)
            return ordered and self.renamed(a.args[:2]) == self.renamed(b.args[:2])
        return isinstance(a, ir.If) and isinstance(b, ir.If) and self.get(a.condition) == self.get(b.condition)

    def exchanged(
        self, between: Sequence[ir.Op], first: ir.Op, second: ir.Op
    ) -> tuple[list[ir.Op], list[ir.Op]] | None:
        """What stands between two operations that become one: before it, and after it; None if they cannot."""
        before: list[ir.Op] = []
        after: list[ir.Op] = []
        late = set(first.outs)
        moved = [_effects_of(first)]
        for op in between:
            effects = _effects_of(op)
            if not late.isdisjoint(self.used(op)) or any(effects.conflict(one) for one in moved):
                after.append(op)
                late.update(op.outs)
                moved.append(effects)
            else:
                before.append(op)
        effects = _effects_of(second)
        if not late.isdisjoint(self.used(second)) or any(effects.conflict(one) for one in moved):
            return None
        return before, after

    def used(self, op: ir.Op) -> set[ir.Atom]:
        return {self.get(a) for a in (*op.args, *[v for r in op.regions for v in free_variables(r)])}

    def fused(self, a: ir.Op, b: ir.Op) -> ir.Op:
        outs = (*a.outs, *b.outs)
        if isinstance(a, ir.For) and isinstance(b, ir.For):
            self.env[b.index] = a.index
            body = ir.Region(
                (*a.body.params, *b.carried), (*a.body.body, *b.body.body), (*a.body.yields, *b.body.yields)
            )
            return a.rebuilt((*a.args, *b.initial), (body,), outs)
        regions = [
            ir.Region((), (*r.body, *s.body), (*r.yields, *s.yields)) for r, s in zip(a.regions, b.regions, strict=True)
        ]
        return a.rebuilt(a.args, tuple(regions), outs)

    # ---- inside of what has been fused

    def branch(self, op: ir.If) -> ir.Op:
        then, orelse = map(self.region, op.regions)
        same: dict[tuple[ir.Atom, ir.Atom], ir.Var] = {}
        for out, pair in zip(op.outs, zip(then.yields, orelse.yields, strict=True), strict=True):
            first = same.setdefault(pair, out)
            if first is not out:
                self.env[out] = first
        kept = [k for k, out in enumerate(op.outs) if out not in self.env]
        return keeping(op.rebuilt(op.args, (then, orelse)), kept)

    def loop(self, op: ir.For) -> ir.Op:
        """A loop without the carried values that are another one's all along."""
        alike: dict[Hashable, int] = {}
        equal: dict[int, int] = {}
        for k, (q, initial) in enumerate(zip(op.carried, op.initial, strict=True)):
            first = alike.setdefault((q.name, q.type, initial), k)
            if first != k:
                equal[k] = first
        while True:
            saved = dict(self.env)
            self.env.update({op.carried[k]: op.carried[first] for k, first in equal.items()})
            body = self.region(op.body)
            differ = [k for k, first in equal.items() if body.yields[k] != body.yields[first]]
            if not differ:
                break
            self.env = saved
            for k in differ:
                del equal[k]
        self.env.update({op.outs[k]: op.outs[first] for k, first in equal.items()})
        kept = [k for k in range(len(op.outs)) if k not in equal]
        return keeping(op.rebuilt(op.args, (body,)), kept)
