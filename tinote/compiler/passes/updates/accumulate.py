"""Turns atomic updates of a loop-invariant element into an accumulator that the loop carries.

    for parallel %i: i32 in 0i32 .. 64i32:          for parallel %i: i32 in 0i32 .. 64i32:
      for parallel %j: i32 in 0i32 .. 64i32:          %t: f32 = for %j: i32 in 0i32 .. 64i32 carrying %s: f32 = 0.0f32:
        %a: f32 = load @x[%j]                           %a: f32 = load @x[%j]
        atomic add @g[%i], %a                 ->        %u: f32 = add %s, %a
                                                        yield %u
                                                      atomic add @g[%i], %t

Inner loops come first, so that a sum moves out of a whole nest, but not out of the outermost parallel loop, which
threads share (privatisation handles that one). A parallel loop with an accumulator becomes serial. The loop may not
read or otherwise write the element; updates of the same kind commute. An update inside of an `if` contributes the
neutral element when it is not taken.

The update moves after the loop, where it would happen even if none happened inside. Adding the neutral element is
harmless if the element exists; otherwise the update is guarded.

Where workgroups of a GPU reduce updates of elements that all iterations of the outermost loop share, an inner parallel
loop without other updates stays parallel, since each pair of iterations may be an invocation.

Sums of floats are reassociated. In a parallel loop their order is unspecified anyway; in a serial one this requires
`fast_math`, and products of floats keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses, accesses_of, buffers_may_meet, indices_differ
from tinote.ir.primitives import Primitive
from tinote.ir.query import bound_in, surely_iterates, walk
from tinote.ir.reductions import can_be_reduced
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import u1


def accumulate(fn: ir.Function, fast_math: bool = False, *, reduces: bool = False) -> ir.Function:
    """`fn` with updates of loop-invariant elements made once, after the loop. `reduces`: updates of elements that all
    iterations share are reduced later.
    """
    return _Accumulator(accesses_of(fn), fast_math, reduces).run(fn)


class _Element(NamedTuple):
    """An updated element and its operation. Literals compare by their bits and variables by identity."""

    buffer: ir.Buffer
    prim: Primitive
    place: tuple[ir.Atom, ...]


class _Sum:
    """An element's accumulator in one loop.

    `guarded`: its update must not happen unless one happened inside the loop.
    """

    def __init__(self, first: ir.Atomic, conditional: bool, guarded: bool) -> None:
        self.first = first
        self.conditional = conditional
        self.guarded = guarded
        dtype = first.buffer.dtype
        self.neutral = ir.Lit(p.neutral(first.prim, dtype), dtype)
        self.carried = ir.Var(dtype, first.buffer.name)
        self.hit = ir.Var(u1, "hit")
        self.has_hit = False


_LOOPS = (ir.For, ir.While)


class _Accumulator(Rewriter):
    def __init__(self, accesses: Accesses, fast_math: bool, reduces: bool) -> None:
        super().__init__()
        self.accesses = accesses
        self.fast_math = fast_math
        self.reduces = reduces
        #: the loops around, as they were before
        self.around: list[ir.Op] = []
        #: updates moved out of loops, each with an original one
        self.moved: dict[ir.Op, ir.Atomic] = {}

    def nest(self, op: ir.Op) -> None:
        loops = isinstance(op, ir.For | ir.While)
        if loops:
            self.around.append(op)
        super().nest(op)
        if loops:
            self.around.pop()

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        # The loop itself counts as enclosing.
        if not isinstance(op, _LOOPS) or (isinstance(op, ir.For) and op.parallel and len(self.around) == 1):
            return KEEP
        sums = self.sums(op)
        if not sums:
            return KEEP
        self.rewrite(op, sums)
        return op.outs

    # legality

    def sums(self, loop: ir.For | ir.While) -> dict[_Element, _Sum]:
        body = loop.regions[-1]
        found = dict(_updates(body, False))
        if not found:
            return {}
        bound = bound_in(body)
        accesses = [
            op for r in loop.regions for op in walk(r) if isinstance(op, ir.MemoryOp) and not isinstance(op, ir.Extent)
        ]
        sums: dict[_Element, _Sum] = {}
        for op, conditional in found.items():
            element = _Element(op.buffer, op.prim, op.index)
            known = sums.get(element)
            if known is not None:
                # One unconditional update is enough.
                known.conditional = known.conditional and conditional
            elif self.fits(op, loop, bound) and not any(self.disturbs(other, op) for other in accesses):
                sums[element] = _Sum(op, conditional, not self.exists(op))
        if self.reduces and isinstance(loop, ir.For) and loop.parallel and self.are_shared(sums.values()):
            return {}
        iterates = surely_iterates(loop)
        for s in sums.values():
            s.guarded = s.guarded and (s.conditional or not iterates)
            s.has_hit = s.guarded and (s.conditional or isinstance(loop, ir.While))
        return sums

    def are_shared(self, sums: Iterable[_Sum]) -> bool:
        """Whether all iterations of the outermost loop update these elements, in parallel."""
        outermost = self.around[0]
        bound = bound_in(outermost.regions[-1])
        return (
            isinstance(outermost, ir.For)
            and outermost.parallel
            and all(can_be_reduced(s.first) and bound.isdisjoint(s.first.args[:-1]) for s in sums)  # type: ignore[arg-type]
        )

    def fits(self, op: ir.Atomic, loop: ir.For | ir.While, bound: set[ir.Var]) -> bool:
        dtype = op.buffer.dtype
        if any(a in bound for a in op.index if isinstance(a, ir.Var)):
            return False
        if dtype is u1 and op.prim not in (p.and_, p.or_, p.xor):
            return False
        unordered = isinstance(loop, ir.For) and loop.parallel
        # Partial products may overflow or vanish where the product does not.
        any_order = dtype.kind != "f" or op.prim in (p.minimum, p.maximum) or (self.fast_math and op.prim is p.add)
        return unordered or any_order

    def disturbs(self, other: ir.MemoryOp, update: ir.Atomic) -> bool:
        """Whether moving the update past this access changes the result."""
        if not buffers_may_meet(other.buffer, update.buffer):
            return False
        same_kind = isinstance(other, ir.Atomic) and other.prim is update.prim and not other.outs
        if same_kind and other.buffer.dtype is update.buffer.dtype:
            return False
        definitions = self.accesses.definitions
        return other.buffer is not update.buffer or not indices_differ(other.index, update.index, definitions)

    def exists(self, op: ir.Atomic) -> bool:
        """Whether the element is in range for certain even if the loop has no iteration."""
        access = self.accesses.of(self.moved.get(op, op))
        known = self.accesses.loops[self.around[-1]].known
        return all(self.accesses.in_range(access, axis, known) == (True, True) for axis in range(len(access.forms)))

    # the loop with its accumulators

    def rewrite(self, loop: ir.For | ir.While, sums: dict[_Element, _Sum]) -> None:
        """Emit the loop that carries the sums, and their updates after it."""
        flagged = [s for s in sums.values() if s.has_hit]
        new = [*[s.carried for s in sums.values()], *[s.hit for s in flagged]]
        initial = (*[s.neutral for s in sums.values()], *[ir.false for _ in flagged])
        *others, body = loop.regions
        worker = _Summing(sums)
        inner = worker.region(body, {e: s.carried for e, s in sums.items()}, {s: s.hit for s in flagged})
        yields = (*body.yields, *[worker.totals[e] for e in sums], *[worker.hits[s] for s in flagged])
        regions = [ir.Region((*body.params, *new), inner, yields)]
        if isinstance(loop, ir.While):
            # Every region has its own parameters.
            regions.insert(0, ir.Region((*others[0].params, *_fresh(new)), others[0].body, others[0].yields))
        outs = _fresh(new)
        emitted = loop.rebuilt((*loop.args, *initial), tuple(regions), (*loop.outs, *outs))
        if isinstance(emitted, ir.For):
            emitted.parallel = False
        self.emit(emitted)
        totals, hits = outs[: len(sums)], dict(zip(flagged, outs[len(sums) :], strict=True))
        for s, total in zip(sums.values(), totals, strict=True):
            update = s.first.rebuilt((*s.first.index, total))
            self.moved[update] = self.moved.get(s.first, s.first)
            if not s.guarded:
                self.emit(update)
                continue
            hit = hits.get(s)
            if hit is None:
                assert isinstance(loop, ir.For)
                hit = self.apply(p.lt, u1, loop, loop.lo, loop.hi)
            self.emit(ir.If(hit, ir.Region((), (update,)), ir.Region((), ()), (), s.first.loc, s.first.origin))


class _Summing:
    """Takes the updates out of a loop's body. `totals` and `hits`: the sums so far, and whether an update happened."""

    def __init__(self, sums: dict[_Element, _Sum]) -> None:
        self.sums = sums
        self.totals: dict[_Element, ir.Atom] = {}
        self.hits: dict[_Sum, ir.Atom] = {}
        self.out: list[ir.Op] = []

    def region(
        self, region: ir.Region, totals: dict[_Element, ir.Atom], hits: dict[_Sum, ir.Atom]
    ) -> tuple[ir.Op, ...]:
        """The body without updates, starting from these sums; those that it ends with stand in `totals` and `hits`."""
        self.totals, self.hits, self.out = dict(totals), dict(hits), []
        for op in region.body:
            s = self.sum_of(op)
            if s is not None:
                assert isinstance(op, ir.Atomic)
                self.add(_element(op), op.value, op)
                if s.has_hit:
                    self.hits[s] = ir.true
            elif isinstance(op, ir.If):
                self.branch(op)
            else:
                self.out.append(op)
        return tuple(self.out)

    def sum_of(self, op: ir.Op) -> _Sum | None:
        return self.sums.get(_element(op)) if isinstance(op, ir.Atomic) and not op.outs else None

    def add(self, element: _Element, value: ir.Atom, near: ir.Op) -> None:
        known = self.totals.get(element)
        self.totals[element] = value if known is None else self.prim(element.prim, known, value, near)

    def prim(self, prim: Primitive, a: ir.Atom, b: ir.Atom, near: ir.Op) -> ir.Var:
        out = ir.Var(a.type)
        self.out.append(ir.Prim(prim, (a, b), (out,), near.loc, near.origin))
        return out

    def branch(self, op: ir.If) -> None:
        touched = dict.fromkeys(_element(inner) for inner, _ in _updates(ir.Region((), (op,)), True))
        mine = [e for e in touched if e in self.sums]
        if not mine:
            self.out.append(op)
            return
        flagged = [self.sums[e] for e in mine if self.sums[e].has_hit]
        totals, hits, out = self.totals, self.hits, self.out
        regions: list[ir.Region] = []
        for region in op.regions:
            body = self.region(region, {}, {})
            contributed = [self.totals.get(e, self.sums[e].neutral) for e in mine]
            contributed += [self.hits.get(s, ir.false) for s in flagged]
            regions.append(ir.Region((), body, (*region.yields, *contributed)))
        self.totals, self.hits, self.out = totals, hits, out
        outs = _fresh([*[self.sums[e].carried for e in mine], *[s.hit for s in flagged]])
        self.out.append(op.rebuilt(op.args, tuple(regions), (*op.outs, *outs)))
        for e, total in zip(mine, outs, strict=False):
            self.add(e, total, op)
        for s, hit in zip(flagged, outs[len(mine) :], strict=True):
            known = self.hits.get(s)
            self.hits[s] = hit if known is None else self.prim(p.or_, known, hit, op)


def _element(op: ir.Atomic) -> _Element:
    return _Element(op.buffer, op.prim, op.index)


def _updates(region: ir.Region, conditional: bool) -> Iterable[tuple[ir.Atomic, bool]]:
    """The updates in a region, outside its loops, whose old value is unused, and whether each is in an `if`."""
    for op in region.body:
        if isinstance(op, ir.Atomic) and not op.outs and op.prim in p.ATOMICS:
            yield op, conditional
        elif isinstance(op, ir.If):
            for inner in op.regions:
                yield from _updates(inner, True)


def _fresh(variables: Sequence[ir.Var]) -> tuple[ir.Var, ...]:
    return tuple([ir.Var(v.type, v.name) for v in variables])
