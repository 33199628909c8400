"""Dead code elimination: removes operations without effect whose outs are unused, carried values of loops that only
feed themselves, unused outs of an `If`, and the unused old value of an `Atomic`.

    for %i in 0..%n carry %s = 0.0, %t = 1.0:          for %i in 0..%n carry %t = 1.0:
      %u = add %s, %x                           ->       %v = mul %t, 2.0
      %v = mul %t, 2.0                                   yield %v
      yield %u, %v                (first out unused)

Marks from the effects and the live variables to what they depend on, then sweeps; linear in the size of the region.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tinote.ir import nodes as ir
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.query import has_effect
from tinote.ir.rewrite import keeping, remade, remade_region
from tinote.ir.types import Stack


def _writes(op: ir.Op) -> bool:
    return op.writes


def prune(
    region: ir.Region,
    live: Iterable[ir.Var] = (),
    *,
    keep_while: bool = False,
    effect: Callable[[ir.Op], bool] = _writes,
    unread: bool = False,
) -> ir.Region:
    """`region` without dead code; itself when there is none.

    Its own yields and the variables in `live` are used from outside. `keep_while`: a `While` stays even if it has no
    effect, because it may never end. `effect` says which operations without regions are roots; if `unread`, writes to
    temporaries are none, and stay as far as something that stays loads from these.
    """
    if effect is _writes and not unread and _is_all_used(region, live):
        return region
    marker = _Marker(keep_while, effect, unread)
    marker.collect(region, None)
    # Only now are all binders known: an effect in the condition of a `While` depends on what that yields further down.
    for op in marker.effects:
        marker.keep(op)
    marker.mark(region.yields)
    marker.mark(live)
    marker.spread()
    return _sweep(region, marker)


def _is_all_used(region: ir.Region, live: Iterable[ir.Var]) -> bool:
    """Whether it is plain that nothing is dead: all that is bound is used, and what binds nothing has an effect. (Of
    what is dead, the last has a use that is dead and stands after it.)
    """
    used = set(live)
    bound: list[ir.Var] = []

    def look(region: ir.Region) -> bool:
        """Note what is bound and used; whether everything in it binds or has an effect."""
        for op in region.body:
            for a in op.args:
                if type(a) is ir.Var:
                    used.add(a)
            if op.outs:
                bound.extend(op.outs)
            elif not (op.writes or (op.regions and has_effect(op))):
                return False
            for inner in op.regions:
                if not look(inner):
                    return False
        for y in region.yields:
            if type(y) is ir.Var:
                used.add(y)
        return True

    return look(region) and used.issuperset(bound)


def prune_unread(region: ir.Region) -> ir.Region:
    """`region` without dead code, including writes to temporaries from which nothing that stays is loaded."""
    return prune(region, unread=True)


def _carried_from(op: ir.Op) -> int:
    """How many parameters of a loop's body stand before the carried values."""
    return 1 if isinstance(op, ir.For) else 0


class _Marker:
    """Which operations and which of their outs are live."""

    def __init__(self, keep_while: bool, effect: Callable[[ir.Op], bool], unread: bool) -> None:
        self.keep_while = keep_while
        self.unread = unread
        #: what writes to each temporary, until something that stays loads from it
        self.writes: dict[ir.Buffer, list[ir.Op]] = {}
        self.effect = effect
        #: the operation that binds a variable, and which of its outs it is; likewise for carried parameters
        self.owner: dict[ir.Var, tuple[ir.Op, int]] = {}
        self.parent: dict[ir.Op, ir.Op | None] = {}
        self.live: set[ir.Op] = set()
        self.needed: set[tuple[ir.Op, int]] = set()
        self.pending: list[tuple[ir.Op, int]] = []
        self.effects: list[ir.Op] = []
        #: what pushes on and pops from each stack: all of it stays, or none
        self.moves: dict[ir.Var, list[ir.Op]] = {}

    def collect(self, region: ir.Region, parent: ir.Op | None) -> None:
        """Find out which operation binds each variable, and which have effects."""
        owner, parents = self.owner, self.parent
        for op in region.body:
            parents[op] = parent
            for k, out in enumerate(op.outs):
                owner[out] = (op, k)
            if op.regions:
                first = _carried_from(op)
                for inner in op.regions:
                    for k, param in enumerate(inner.params):
                        owner[param] = (op, -1 if isinstance(op, ir.Task | CustomVJP) else k - first)
                    self.collect(inner, op)
                if isinstance(op, ir.Task) or (self.keep_while and isinstance(op, ir.While)):
                    self.effects.append(op)
            elif self.unread and isinstance(op, ir.Store | ir.Atomic) and op.buffer.kind is ir.BufferKind.TEMPORARY:
                self.writes.setdefault(op.buffer, []).append(op)
            elif self.effect(op):
                self.effects.append(op)
            if isinstance(op, ir.Push | ir.Pop) and isinstance(op.args[0], ir.Var):
                self.moves.setdefault(op.args[0], []).append(op)

    def mark(self, atoms: Iterable[ir.Atom]) -> None:
        owner, needed = self.owner, self.needed
        for a in atoms:
            if type(a) is ir.Var:
                slot = owner.get(a)
                if slot is not None and slot not in needed:
                    needed.add(slot)
                    self.pending.append(slot)
                if isinstance(a.type, Stack):
                    self.pending += [(op, -1) for op in self.moves.pop(a, ())]

    def keep(self, op: ir.Op) -> None:
        """Mark an operation and whatever decides whether it runs."""
        at: ir.Op | None = op
        while at is not None and at not in self.live:
            self.live.add(at)
            if self.writes and isinstance(at, ir.Load | ir.Atomic):
                self.pending += [(op, -1) for op in self.writes.pop(at.buffer, ())]
            if isinstance(at, ir.For):
                self.mark(at.args[:2])
            elif isinstance(at, ir.While):
                self.mark(at.condition.yields)
            else:
                self.mark(at.args)
                if isinstance(at, CustomVJP):
                    self.mark(at.adjoint.yields)
            at = self.parent[at]

    def spread(self) -> None:
        pending = self.pending
        while pending:
            op, k = pending.pop()
            self.keep(op)
            if k < 0:
                continue
            if isinstance(op, ir.For):
                self.mark((op.args[2 + k], op.body.yields[k]))
            elif isinstance(op, ir.While):
                self.mark((op.args[k], op.body.yields[k]))
            elif isinstance(op, ir.If):
                self.mark((op.then.yields[k], op.orelse.yields[k]))


def _sweep(region: ir.Region, marker: _Marker) -> ir.Region:
    """`region` with its marked operations; itself when these are all."""
    body: list[ir.Op] = []
    live = marker.live
    for op in region.body:
        if op in live:
            if op.regions:
                op = _sweep_inside(op, marker)
            elif isinstance(op, ir.Atomic) and op.outs and (op, 0) not in marker.needed:
                op = op.rebuilt(op.args, (), ())
            body.append(op)
    return remade_region(region, body)


def _sweep_inside(op: ir.Op, marker: _Marker) -> ir.Op:
    """A live operation with regions, with only its live outs."""
    kept = [k for k in range(len(op.outs)) if (op, k) in marker.needed or isinstance(op, CustomVJP)]
    if len(kept) < len(op.outs):
        op = keeping(op, kept)
    return remade(op, op.args, tuple([_sweep(r, marker) for r in op.regions]))
