"""Turns a parallel nest that adds to the neighbours of an element into one that sums up what an element gets.

    for parallel %i: i32 in 1i32 .. 63i32:          … the rim: @y[0], @y[1], @y[62] and @y[63] …
      %a: i32 = load @x[%i]                         for parallel %p: i32 in 2i32 .. 62i32:
      %n: i32 = add %i, 1i32                          %q: i32 = sub %p, 1i32
      %m: i32 = sub %i, 1i32                ->        %a: i32 = load @x[%q]
      atomic add @y[%n], %a                           %r: i32 = add %p, 1i32
      atomic add @y[%m], %a                           %b: i32 = load @x[%r]
                                                      %s: i32 = add %a, %b
                                                      atomic add @y[%p], %s

That is what the derivative of a stencil looks like. Afterwards each element belongs to one turn, so that its update is
an ordinary one and the loop is fit for vector code. In the middle, all of an element's contributions exist. At the rim,
where some do not, those that do are written out, element by element and row by row; where that would be too much code,
or where bounds may lie closer together than the contributions, each is tested for.

A contribution is computed once for each distance rather than once a turn: only cheap ones are. They may read nothing
that other turns of the nest write; what the same turn writes later is left to the nest that remains, behind.

Sums of floats are reassociated. In a parallel loop their order is open anyway; in a serial one it takes `fast_math`.

Method: adjoint stencils by loop shifting, as in Hückelheim, Kukreja, Narayanan et al., "Automatic differentiation for
adjoint stencil loops", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.gathered import Dimension, Nest, Update, needed, span, sums_of
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, base_and_offset, buffers_may_meet
from tinote.ir.affine import contains, span_of_type
from tinote.ir.nodes import (
    Atomic,
    Buffer,
    Extent,
    For,
    Function,
    Lit,
    Load,
    Op,
    Prim,
    Region,
    Store,
    Var,
)
from tinote.ir.query import walk
from tinote.ir.rewrite import Rewriter, same
from tinote.ir.types import Scalar, u1

__all__ = ["gather"]

#: What the contributions may cost in additions, for each update. An indivisible update takes about as long as 50
#: additions one by one, and vector code does several additions at once.
_COST_OF_UPDATE = 32.0
#: What a load costs where its neighbour has been loaded just before, in additions.
_COST_OF_LOAD = 1.0
#: How far apart the offsets at one level may be.
_WIDEST = 8


def gather(fn: Function, fast_math: bool = False) -> Function:
    """`fn` with the nests at its top that scatter to neighbours gathering from them."""
    if not any(isinstance(op, For) and op.parallel for op in fn.region.body):
        return fn
    return _Gatherer(fn, fast_math).run(fn)


class _Gatherer(Rewriter):
    def __init__(self, fn: Function, fast_math: bool) -> None:
        super().__init__()
        self.accesses = Accesses(fn)
        self.fast_math = fast_math

    def visit(self, op: Op) -> None:
        """Only the top of a function is looked at."""
        if not isinstance(op, For) or not op.parallel:
            self.out.append(op)
            return
        nest = _nest_of(op)
        if nest is not None and not all(loop.parallel for loop in nest.loops) and not self.any_order(nest):
            nest = None
        updates = self.updates(nest) if nest is not None else []
        if nest is None or not updates:
            self.out.append(op)
            return
        self.out += sums_of(nest, updates)
        rest = _without(op, {id(update.op) for update in updates})
        if any(inner.writes for inner in walk(rest.body)):
            self.out.append(rest)

    # what can be gathered

    def any_order(self, nest: Nest) -> bool:
        """Whether the updates may be made in another order than serial loops have them."""
        return self.fast_math or not any(isinstance(op, Atomic) and op.buffer.dtype.kind == "f" for op in nest.work)

    def updates(self, nest: Nest) -> list[Update]:
        """The updates of a nest to gather; empty unless that pays."""
        found = [u for op in nest.work if isinstance(op, Atomic) and (u := self.update_of(op, nest)) is not None]
        found = [u for u in found if self.alone(u, found, nest) and self.repeatable(u, nest)]
        offsets: dict[tuple[Buffer, tuple[Dimension, ...]], set[tuple[int, ...]]] = {}
        for u in found:
            offsets.setdefault((u.op.buffer, u.place), set()).add(u.offsets)
        # What each turn adds to an element of its own is well where it is.
        found = [u for u in found if len(offsets[u.op.buffer, u.place]) > 1]
        if not found or not self.loops_can_grow(nest, found):
            return []
        contributions: dict[tuple[int, ...], dict[Op, None]] = {}
        for u in found:
            contributions.setdefault(u.offsets, {}).update(dict.fromkeys(needed(u.op.args, nest)))
        cost = sum([_cost(op) for several in contributions.values() for op in several])
        return found if cost <= _COST_OF_UPDATE * len(found) else []

    def update_of(self, op: Atomic, nest: Nest) -> Update | None:
        """An update whose index names the index of each loop once, plus a number, and else nothing of the nest."""
        if op.outs or op.prim is not p.add or op.buffer.dtype is u1:
            return None
        outermost = self.accesses.loops[nest.loops[0]]
        place: list[Dimension] = []
        offsets: dict[int, int] = {}
        for a, form in zip(op.index, self.accesses.of(op).forms, strict=True):
            base, offset = base_and_offset(a, self.accesses.definitions)
            if base in nest.indices:
                level = nest.indices.index(base)
                if level in offsets or form.terms != {base: 1} or form.const != offset:
                    return None
                offsets[level] = offset
                place.append(level)
            elif all(self.accesses.invariant(v, outermost) for v in form.terms):
                place.append((base, offset))
            else:
                return None
        if len(offsets) < len(nest.loops):
            return None
        return Update(op, tuple(place), tuple([offsets[level] for level in range(len(nest.loops))]))

    def alone(self, update: Update, found: Sequence[Update], nest: Nest) -> bool:
        """Whether the nest touches the elements in no other way than by updates of the same sort."""
        mine = self.accesses.of(update.op)
        alike = {other.op for other in found if _congruent(update, other)}
        return not any(
            self.accesses.may_meet(mine, other)
            for other in self.of_nest(nest)
            if other.op not in alike and buffers_may_meet(mine.buffer, other.buffer)
        )

    def of_nest(self, nest: Nest) -> list[Access]:
        return [self.accesses.of(op) for op in nest.work if isinstance(op, Load | Store | Atomic)]

    def repeatable(self, update: Update, nest: Nest) -> bool:
        """Whether the nest does not change what a contribution is computed from before it is."""
        writes = [(k, self.accesses.of(op)) for k, op in enumerate(nest.work) if isinstance(op, Store | Atomic)]
        for op in needed(update.op.args, nest):
            if isinstance(op, Load):
                access, place = self.accesses.of(op), nest.work.index(op)
                around = [loop for loop in access.loops if loop.op in nest.loops]
                for k, write in writes:
                    if not buffers_may_meet(access.buffer, write.buffer):
                        continue
                    if any(self.accesses.may_meet_across(access, write, loop) for loop in around):
                        return False
                    if k < place and self.accesses.may_meet_within(access, write, around[-1]):
                        return False
        return True

    def loops_can_grow(self, nest: Nest, updates: Sequence[Update]) -> bool:
        """Whether the bounds plus any of the offsets are numbers of their type, and far enough apart if literal."""
        for level, loop in enumerate(nest.loops):
            least, most = span([u.offsets for u in updates], level)
            assert isinstance(loop.lo.type, Scalar)
            whole = span_of_type(loop.lo.type)
            for bound in loop.args:
                low, high = self.accesses.affine(bound).interval(self.accesses.interval)
                if not contains(whole, (low + least, high + most)):
                    return False
            if most - least > _WIDEST:
                return False
            if isinstance(loop.lo, Lit) and isinstance(loop.hi, Lit) and loop.hi.value - loop.lo.value < most - least:
                return False
        return True


def _congruent(a: Update, b: Update) -> bool:
    return a.op.buffer is b.op.buffer and a.place == b.place


def _nest_of(op: For) -> Nest | None:
    """The nest that begins with a parallel loop, if it is one and does nothing but arithmetic, loads and writes."""
    loops: list[For] = []
    work: list[Op] = []
    inner: For | None = op
    outer_bound: set[Var] = set()
    while inner is not None:
        if any(a in outer_bound for a in inner.args if type(a) is Var):
            return None
        loops.append(inner)
        body, inner = inner.body.body, None
        if body and isinstance(body[-1], For) and not body[-1].outs:
            body, inner = body[:-1], body[-1]
        allowed = (Prim, Load, Extent) if inner is not None else (Prim, Load, Extent, Store, Atomic)
        if not all(isinstance(o, allowed) and not (isinstance(o, Prim) and o.prim is p.random_bits) for o in body):
            return None
        work += body
        outer_bound.add(loops[-1].index)
        outer_bound.update([v for o in body for v in o.outs])
    return Nest(tuple(loops), tuple(work))


def _cost(op: Op) -> float:
    return op.prim.cost if isinstance(op, Prim) else _COST_OF_LOAD


def _without(loop: For, gone: set[int]) -> For:
    """A nest without some of its updates."""
    body: list[Op] = []
    for op in loop.body.body:
        if id(op) not in gone:
            body.append(_without(op, gone) if isinstance(op, For) else op)
    if same(body, loop.body.body):
        return loop
    rebuilt = loop.rebuilt(loop.args, (Region(loop.body.params, tuple(body)),))
    assert isinstance(rebuilt, For)
    return rebuilt
