"""Scatter to gather: turns a parallel nest that adds to an element's neighbours into one that sums each element's
contributions.

    for parallel %i: i32 in 1i32 .. 63i32:          … the boundary: @y[0], @y[1], @y[62] and @y[63] …
      %a: i32 = load @x[%i]                         for parallel %p: i32 in 2i32 .. 62i32:
      %n: i32 = add %i, 1i32                          %q: i32 = sub %p, 1i32
      %m: i32 = sub %i, 1i32                ->        %a: i32 = load @x[%q]
      atomic add @y[%n], %a                           %r: i32 = add %p, 1i32
      atomic add @y[%m], %a                           %b: i32 = load @x[%r]
                                                      %s: i32 = add %a, %b
                                                      atomic add @y[%p], %s

The derivative of a stencil has this form. Afterwards each element belongs to one iteration, so its update is not atomic
and the loop can be vectorised. In the middle, all of an element's contributions exist. At the boundary, where some do
not, the existing ones are unrolled, element by element and row by row. Where that would be too much code, or where
bounds may lie closer together than the contributions, each contribution is tested for.

A contribution is computed once for each distance rather than once per iteration: only cheap ones are. They may read no
memory that other iterations of the nest write. Other writes of the nest stay in the remaining nest, after this one.

Sums of floats are reassociated. In a parallel loop their order is unspecified anyway; in a serial one this requires
`fast_math`.

Method: adjoint stencils by loop shifting, as in Hückelheim, Kukreja, Narayanan et al., "Automatic differentiation for
adjoint stencil loops", 2019.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Touched, accesses_of, base_and_offset
from tinote.ir.affine import contains, span_of_type
from tinote.ir.build import Builder
from tinote.ir.cost import own_cost
from tinote.ir.query import is_shorter, span_of, walk
from tinote.ir.rewrite import Rewriter, same
from tinote.ir.types import Scalar, i32, u1
from tinote.remarks import Remark, Report, unread

#: Cost of the contributions per replaced update, at most, in additions: more than an atomic update, since vector code
#: does several additions at once. Chosen, not measured.
_MAX_COST_PER_UPDATE = 32.0
#: How far apart the offsets at one level may be. Chosen, not measured.
_MAX_OFFSETS_APART = 8
#: Operations of the contributions to one element, at most, for the boundary to be unrolled. Chosen, not
#: measured.
_MAX_WRITTEN_OUT = 100
#: Copies of contributions in an unrolled boundary, at most; beyond that, each contribution is tested for. Chosen, not
#: measured.
_MAX_COPIES = 300


class _Nest:
    """A loop nest without carried values whose outermost loop is parallel. Between the loops there are only operations
    without effects. `work`: the operations of all levels in order.
    """

    def __init__(self, loops: tuple[ir.For, ...], work: tuple[ir.Op, ...]) -> None:
        self.loops = loops
        self.work = work
        self.indices = tuple([loop.index for loop in loops])
        self.definitions: dict[ir.Var, ir.Op] = {op.out: op for op in work if op.outs}
        self.positions = {op: k for k, op in enumerate(work)}


#: One dimension of an update's index: the level of the loop whose index it uses, or an invariant of the nest (a
#: variable, or None for zero, plus a constant).
_Dimension = int | tuple[ir.Var | None, int]


#: A buffer and the index of an element of it.
_Element = tuple[ir.Buffer, tuple[_Dimension, ...]]


class _Update(NamedTuple):
    """An update that can be gathered.

    `element`: the element's index; `offsets`: the constant added to the index of each level.
    """

    op: ir.Atomic
    element: tuple[_Dimension, ...]
    offsets: tuple[int, ...]


def scatter_to_gather(fn: ir.Function, report: Report = unread, *, fast_math: bool = False) -> ir.Function:
    """`fn` with the scattering nests at its top turned into gathering ones."""
    if not any(isinstance(op, ir.For) and op.parallel for op in fn.region.body):
        return fn
    return _Gatherer(fn, report, fast_math).run(fn)


class _Gatherer(Rewriter):
    def __init__(self, fn: ir.Function, report: Report, fast_math: bool) -> None:
        super().__init__()
        self.accesses = accesses_of(fn)
        self.report = report
        self.fast_math = fast_math

    def visit(self, op: ir.Op) -> None:
        """Only the top of a function is looked at."""
        if not isinstance(op, ir.For) or not op.parallel or not _adds_in_several_places(op):
            self.out.append(op)
            return
        nest = _nest_of(op)
        updates = nest if isinstance(nest, str) else self.updates(nest)
        if isinstance(nest, str) or isinstance(updates, str):
            if updates:
                self.report(Remark("scatter_to_gather", span_of(op), str(updates)))
            self.out.append(op)
            return
        self.report(Remark("scatter_to_gather", span_of(op), "each element sums up what it gets", done=True))
        self.out += _sums_of(nest, updates)
        rest = _without(op, {id(update.op) for update in updates})
        if any(inner.writes for inner in walk(rest.body)):
            self.out.append(rest)

    # legality

    def any_order(self, nest: _Nest) -> bool:
        """Whether the updates may be reordered."""
        return self.fast_math or not any(isinstance(op, ir.Atomic) and op.buffer.dtype.kind == "f" for op in nest.work)

    def updates(self, nest: _Nest) -> list[_Update] | str:
        """The updates of a nest to gather, or the reason why there are none; the reason is empty where nothing goes to
        neighbours.
        """
        found = [u for op in nest.work if isinstance(op, ir.Atomic) and (u := self.update_of(op, nest)) is not None]
        if not _scattered(found):
            return ""
        if not all(loop.parallel for loop in nest.loops) and not self.any_order(nest):
            return "the sums of a serial loop inside of it keep their order without fast maths"
        inside = [op for op in nest.work if isinstance(op, ir.Load | ir.Store | ir.Atomic)]
        touched = Touched(map(self.accesses.of, inside))
        elements: dict[ir.Op, _Element] = {u.op: _element(u) for u in found}
        steady: dict[ir.Op, bool] = {}
        alone = [u for u in found if self.alone(u, elements, touched)]
        candidates = [u for u in alone if self.repeatable(u, touched, nest, steady)]
        found = _scattered(candidates)
        if not found:
            mixed = not _scattered(alone)
            return f"it {'touches in another way what it adds to' if mixed else 'changes what it computes sums from'}"
        why = self.why_bounded(nest, found)
        if why:
            return why
        contributions: dict[tuple[int, ...], dict[ir.Op, None]] = {}
        for u in found:
            contributions.setdefault(u.offsets, {}).update(dict.fromkeys(_needed(u.op.args, nest)))
        found += self.joined_updates(nest, candidates, found, contributions)
        cost = sum([own_cost(op) for several in contributions.values() for op in several])
        gone = {u.op for u in found}
        remaining = [op for op in nest.work if isinstance(op, ir.Store | ir.Atomic) and op not in gone]
        still = set(_needed([a for op in remaining for a in op.args], nest))
        saved = sum([own_cost(op) for op in set[ir.Op]().union(*contributions.values()) - still])
        pays = cost <= _MAX_COST_PER_UPDATE * len(found) + saved
        return found if pays else "computing each contribution where it arrives would cost more than it saves"

    def joined_updates(
        self,
        nest: _Nest,
        candidates: Sequence[_Update],
        found: Sequence[_Update],
        contributions: dict[tuple[int, ...], dict[ir.Op, None]],
    ) -> list[_Update]:
        """Further updates worth gathering along with `found`, since most of their operands are computed there anyway.
        They are added to the `contributions`.
        """
        taken = {u.op for u in found}
        joining: list[_Update] = []
        for u in candidates:
            there = contributions.get(u.offsets)
            if u.op in taken or there is None:
                continue
            needed = _needed(u.op.args, nest)
            if 2 * sum([own_cost(op) for op in needed if op not in there]) <= sum([own_cost(op) for op in needed]):
                there.update(dict.fromkeys(needed))
                joining.append(u)
        return joining

    def update_of(self, op: ir.Atomic, nest: _Nest) -> _Update | None:
        """An update whose index uses each loop index exactly once, plus a constant, and otherwise only invariants."""
        if op.outs or op.prim is not p.add or op.buffer.dtype is u1:
            return None
        outermost = self.accesses.loops[nest.loops[0]]
        element: list[_Dimension] = []
        offsets: dict[int, int] = {}
        for a, form in zip(op.index, self.accesses.of(op).forms, strict=True):
            base, offset = base_and_offset(a, self.accesses.definitions)
            if base in nest.indices:
                level = nest.indices.index(base)
                if level in offsets or form.terms != {base: 1} or form.const != offset:
                    return None
                offsets[level] = offset
                element.append(level)
            elif all(self.accesses.invariant(v, outermost) for v in form.terms):
                element.append((base, offset))
            else:
                return None
        if len(offsets) < len(nest.loops):
            return None
        return _Update(op, tuple(element), tuple([offsets[level] for level in range(len(nest.loops))]))

    def alone(self, update: _Update, elements: Mapping[ir.Op, _Element], touched: Touched) -> bool:
        """Whether the nest accesses the elements only by updates of the same kind."""
        mine = self.accesses.of(update.op)
        return not any(
            elements.get(other.op) != _element(update) and self.accesses.may_meet(mine, other)
            for other in touched.near(mine)
        )

    def repeatable(self, update: _Update, touched: Touched, nest: _Nest, steady: dict[ir.Op, bool]) -> bool:
        """Whether a contribution's operands are unchanged by the nest until it is computed.

        `steady`: results for loads so far.
        """
        for op in _needed(update.op.args, nest):
            if isinstance(op, ir.Load):
                if op not in steady:
                    steady[op] = self.is_steady(self.accesses.of(op), touched, nest)
                if not steady[op]:
                    return False
        return True

    def is_steady(self, load: Access, touched: Touched, nest: _Nest) -> bool:
        """Whether the nest leaves the loaded memory unchanged until the load."""
        around = [loop for loop in load.loops if loop.op in nest.loops]
        return not any(
            any(self.accesses.may_meet_across(load, write, loop) for loop in around)
            or (
                nest.positions[write.op] < nest.positions[load.op]
                and self.accesses.may_meet_within(load, write, around[-1])
            )
            for write in touched.near(load)
            if write.writes
        )

    def why_bounded(self, nest: _Nest, updates: Sequence[_Update]) -> str:
        """Why the loops cannot run over the updated elements; empty if the bounds plus any offset fit their type, and
        literal bounds are far enough apart.
        """
        for level, loop in enumerate(nest.loops):
            least, most = _span([u.offsets for u in updates], level)
            assert isinstance(loop.lo.type, Scalar)
            whole = span_of_type(loop.lo.type)
            for bound in loop.args:
                low, high = self.accesses.affine(bound).interval(self.accesses.interval)
                if not contains(whole, (low + least, high + most)):
                    return "its bounds may be the least or the greatest numbers of their type"
            if most - least > _MAX_OFFSETS_APART:
                return f"it adds to elements that are more than {_MAX_OFFSETS_APART} apart"
            if is_shorter(loop, most - least):
                return "it has fewer iterations than what it adds to is apart"
        return ""


def _element(update: _Update) -> _Element:
    return update.op.buffer, update.element


def _scattered(updates: Sequence[_Update]) -> list[_Update]:
    """The updates whose elements get contributions at several offsets. An update of each iteration's own element stays
    where it is, unless it shares computations.
    """
    offsets: dict[_Element, set[tuple[int, ...]]] = {}
    for u in updates:
        offsets.setdefault(_element(u), set()).add(u.offsets)
    return [u for u in updates if len(offsets[_element(u)]) > 1]


def _adds_in_several_places(loop: ir.For) -> bool:
    """Whether an iteration updates a buffer at more than one index."""
    places: dict[ir.Buffer, tuple[ir.Atom, ...]] = {}
    updates = [op for op in walk(loop.body) if isinstance(op, ir.Atomic)]
    return any(places.setdefault(op.buffer, op.index) != op.index for op in updates)


def _nest_of(op: ir.For) -> _Nest | str:
    """The nest that begins with a parallel loop, if it has only arithmetic, loads and writes; or why there is none."""
    loops: list[ir.For] = []
    work: list[ir.Op] = []
    inner: ir.For | None = op
    outer_bound: set[ir.Var] = set()
    while inner is not None:
        if any(a in outer_bound for a in inner.args if type(a) is ir.Var):
            return "the bounds of a loop inside of it depend on the loop around"
        loops.append(inner)
        body, inner = inner.body.body, None
        if body and isinstance(body[-1], ir.For) and not body[-1].outs:
            body, inner = body[:-1], body[-1]
        allowed = (
            (ir.Prim, ir.Load, ir.Extent) if inner is not None else (ir.Prim, ir.Load, ir.Extent, ir.Store, ir.Atomic)
        )
        if not all(isinstance(o, allowed) and not (isinstance(o, ir.Prim) and o.prim is p.random_bits) for o in body):
            branches = any(isinstance(o, ir.If) for o in body)
            return f"it {'has a branch' if branches else 'does more than compute, load and add'} inside"
        work += body
        outer_bound.add(loops[-1].index)
        outer_bound.update([v for o in body for v in o.outs])
    return _Nest(tuple(loops), tuple(work))


def _without(loop: ir.For, gone: set[int]) -> ir.For:
    """A nest without some of its updates."""
    body: list[ir.Op] = []
    for op in loop.body.body:
        if id(op) not in gone:
            body.append(_without(op, gone) if isinstance(op, ir.For) else op)
    if same(body, loop.body.body):
        return loop
    rebuilt = loop.rebuilt(loop.args, (ir.Region(loop.body.params, tuple(body)),))
    assert isinstance(rebuilt, ir.For)
    return rebuilt


# ---- the gathering nest


def _sums_of(nest: _Nest, updates: Sequence[_Update]) -> list[ir.Op]:
    """Emit a nest that makes only `updates`."""
    return _Emitter(nest, updates).nest_of_sums()


def _span(distances: Iterable[tuple[int, ...]], level: int) -> tuple[int, int]:
    """The least and the greatest offset at a level."""
    several = [offsets[level] for offsets in distances]
    return min(several), max(several)


def _needed(atoms: Sequence[ir.Atom], nest: _Nest) -> list[ir.Op]:
    """The backward slice of `atoms` in a nest, in program order."""
    found: set[ir.Op] = set()
    pending = list(atoms)
    while pending:
        a = pending.pop()
        op = nest.definitions.get(a) if type(a) is ir.Var else None
        if op is not None and op not in found:
            found.add(op)
            pending += op.args
    return sorted(found, key=nest.positions.__getitem__)


class _Emitter:
    """Emits the gathering nest. The loops run over elements: the index p replaces the index plus an offset, and the
    contribution at that offset is that of the iteration p - offset.
    """

    def __init__(self, nest: _Nest, updates: Sequence[_Update]) -> None:
        self.nest = nest
        self.depth = len(nest.loops)
        self.builder = Builder(loc=nest.loops[0].loc, origin=nest.loops[0].origin)
        self.distances: dict[tuple[int, ...], list[_Update]] = {}
        for update in updates:
            self.distances.setdefault(update.offsets, []).append(update)
        #: the levels that each operation's result depends on
        self.levels: dict[ir.Var, frozenset[int]] = {v: frozenset([k]) for k, v in enumerate(nest.indices)}
        for op in nest.work:
            depends = [self.levels[a] for a in op.args if type(a) is ir.Var and a in self.levels]
            self.levels.update(dict.fromkeys(op.outs, frozenset[int]().union(*depends)))
        length = sum(
            [len(_needed([a for u in several for a in u.op.args], nest)) for several in self.distances.values()]
        )
        #: whether the boundary is a loop that tests for each contribution, because unrolled code would be too long
        self.long = length > _MAX_WRITTEN_OUT
        #: from this level inwards, the boundary is unrolled
        copies = len(self.distances)
        self.written_out = self.depth
        while self.written_out > 0:
            least, most = _span(self.distances, self.written_out - 1)
            copies *= 2 * (most - least) + 1
            if copies > _MAX_COPIES:
                break
            self.written_out -= 1

    def nest_of_sums(self) -> list[ir.Op]:
        """The nest for bounds far enough apart that in the middle all contributions exist. Unless that is known at
        compile time, there is a second nest, which tests for each contribution.
        """
        everything = frozenset(range(self.depth))
        with self.builder.region() as opened:
            # A loop over the ends tests for each contribution: it is right wherever the bounds are.
            wide = None if self.long and self.depth == 1 else self.wide()
            if wide is None:
                self.level((), list(self.distances), frozenset(), parallel=True)
            else:
                self.level((), list(self.distances), frozenset(), parallel=True, when=wide)
                with self.builder.region() as narrow:
                    self.level((), list(self.distances), everything, parallel=False)
                loop = self.nest.loops[0]
                self.builder.emit(ir.If(wide, ir.Region((), ()), narrow.close(), (), loop.loc, loop.origin))
        return opened.body

    def wide(self) -> ir.Atom | None:
        """Whether the bounds are so far apart, where they are not literal."""
        found: ir.Atom | None = None
        for level, loop in enumerate(self.nest.loops):
            least, most = _span(self.distances, level)
            if least == most or all(isinstance(bound, ir.Lit) for bound in loop.args):
                continue
            here = self.builder.prim(p.ge, self.moved(loop.hi, least), self.moved(loop.lo, most))
            found = here if found is None else self.builder.prim(p.and_, found, here)
        return found

    # the loops

    def level(
        self,
        indices: tuple[ir.Atom, ...],
        distances: list[tuple[int, ...]],
        tested: frozenset[int],
        *,
        parallel: bool,
        when: ir.Atom | None = None,
    ) -> None:
        """The loops from this level inwards. `indices`: the indices of the elements further out; `distances`: the
        offsets that have contributions there; `tested`: the levels at which this must be tested. `when`: the condition
        under which there is anything to do.
        """
        level = len(indices)
        if level == self.depth:
            self.iteration(indices, distances, tested)
            return
        lo, hi = self.nest.loops[level].args
        least, most = _span(distances, level)
        begin, end = self.moved(lo, most), self.moved(hi, least)
        if least == most or tested:
            first, last = self.moved(lo, least), self.moved(hi, most)
            if least < most:
                tested |= {level}
            self.loop(first, self.choice(when, last, first), indices, distances, tested, parallel=parallel)
        elif level < self.written_out:
            self.rows(indices, distances, when)
        else:
            with self.builder.region() as rim:
                if self.long:
                    self.ends(indices, distances, tested)
                for k in range(least, most if not self.long else least):
                    below = [d for d in distances if d[level] <= k]
                    self.level((*indices, self.moved(lo, k)), below, tested, parallel=False)
                    above = [d for d in distances if d[level] > k]
                    self.level((*indices, self.moved(hi, k)), above, tested, parallel=False)
            self.builder.innermost.body.extend(
                rim.body if when is None else [ir.If(when, rim.close(), ir.Region((), ()), (), self.builder.loc)]
            )
            self.loop(begin, self.choice(when, end, begin), indices, distances, tested, parallel=parallel)

    def ends(self, indices: tuple[ir.Atom, ...], distances: list[tuple[int, ...]], tested: frozenset[int]) -> None:
        """The elements at both ends of a level, in one loop that tests for each contribution."""
        level = len(indices)
        loop, builder = self.nest.loops[level], self.builder
        least, most = _span(distances, level)
        begin, end = self.moved(loop.lo, most), self.moved(loop.hi, most)
        low_end = builder.prim(p.minimum, begin, end)
        high_begin = builder.prim(p.maximum, begin, self.moved(loop.hi, least))
        side = ir.Var(i32)
        with builder.region(side) as opened:
            first = builder.prim(p.eq, side, ir.Lit(0, i32))
            lo = builder.prim(p.select, first, self.moved(loop.lo, least), high_begin)
            hi = builder.prim(p.select, first, low_end, end)
            self.loop(lo, hi, indices, distances, tested | {level}, parallel=False)
        sides = ir.Lit(0, i32), ir.Lit(2, i32)
        self.builder.emit(ir.For(*sides, (), opened.close(), (), loop.loc, origin=loop.origin))

    def loop(
        self,
        lo: ir.Atom,
        hi: ir.Atom,
        indices: tuple[ir.Atom, ...],
        distances: list[tuple[int, ...]],
        tested: frozenset[int],
        *,
        parallel: bool,
    ) -> None:
        old = self.nest.loops[len(indices)]
        index = ir.Var(old.index.type, old.index.name)
        with self.builder.region(index) as opened:
            self.level((*indices, index), distances, tested, parallel=parallel)
        self.builder.emit(ir.For(lo, hi, (), opened.close(), (), old.loc, parallel=parallel, origin=old.origin))

    def rows(self, indices: tuple[ir.Atom, ...], distances: list[tuple[int, ...]], when: ir.Atom | None) -> None:
        """A loop with further loops inside: whether tests are needed is decided once per iteration."""
        level = len(indices)
        old = self.nest.loops[level]
        index = ir.Var(old.index.type, old.index.name)
        least, most = _span(distances, level)
        with self.builder.region(index) as opened:
            inside = self.within(index, self.moved(old.lo, most), self.moved(old.hi, least))
            with self.builder.region() as middle:
                self.level((*indices, index), distances, frozenset(), parallel=True)
            with self.builder.region() as rim:
                self.level((*indices, index), distances, frozenset([level]), parallel=False)
            self.builder.emit(ir.If(inside, middle.close(), rim.close(), (), old.loc, old.origin))
        first, last = self.moved(old.lo, least), self.moved(old.hi, most)
        bounds = first, self.choice(when, last, first)
        self.builder.emit(ir.For(*bounds, (), opened.close(), (), old.loc, parallel=True, origin=old.origin))

    def within(self, index: ir.Atom, lo: ir.Atom, hi: ir.Atom) -> ir.Atom:
        above, below = self.builder.prim(p.ge, index, lo), self.builder.prim(p.lt, index, hi)
        return self.builder.prim(p.and_, above, below)

    def moved(self, atom: ir.Atom, by: int) -> ir.Atom:
        assert isinstance(atom.type, Scalar)
        if by == 0:
            return atom
        if isinstance(atom, ir.Lit):
            return ir.Lit(int(atom.value) + by, atom.type)
        return self.builder.prim(p.add, atom, ir.Lit(by, atom.type))

    def choice(self, when: ir.Atom | None, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        return a if when is None else self.builder.prim(p.select, when, a, b)

    # one iteration

    def iteration(self, indices: tuple[ir.Atom, ...], distances: list[tuple[int, ...]], tested: frozenset[int]) -> None:
        """All updates of one element."""
        if tested:
            for offsets in distances:
                self.contribution(indices, offsets, sorted(tested))
            return
        copies = _Copies(self, indices)
        sums: dict[tuple[ir.Buffer, tuple[_Dimension, ...]], tuple[_Update, ir.Atom]] = {}
        for offsets in distances:
            for update in self.distances[offsets]:
                value = copies.value(update.op.value, offsets)
                known = sums.get((update.op.buffer, update.element))
                total = value if known is None else self.builder.prim(p.add, known[1], value)
                sums[update.op.buffer, update.element] = update, total
        for update, total in sums.values():
            copies.update(update, total)

    def contribution(self, indices: tuple[ir.Atom, ...], offsets: tuple[int, ...], tested: Sequence[int]) -> None:
        """The contribution to an element from the iteration at some distance, if that iteration exists."""
        copies = _Copies(self, indices)
        exists: ir.Atom = ir.true
        for level in tested:
            loop = self.nest.loops[level]
            here = self.within(copies.index(level, offsets[level]), loop.lo, loop.hi)
            exists = here if exists is ir.true else self.builder.prim(p.and_, exists, here)
        updates = self.distances[offsets]
        with self.builder.region() as opened:
            for update in updates:
                copies.update(update, copies.value(update.op.value, offsets))
        loc, origin = updates[0].op.loc, updates[0].op.origin
        self.builder.emit(ir.If(exists, opened.close(), ir.Region((), ()), (), loc, origin))


class _Copies:
    """Copies of the operations of an iteration, each made once for each distance that it depends on."""

    def __init__(self, emitter: _Emitter, indices: tuple[ir.Atom, ...]) -> None:
        self.emitter = emitter
        self.indices = indices
        self.made: dict[tuple[ir.Var, tuple[int, ...]], ir.Atom] = {}

    def index(self, level: int, offset: int) -> ir.Atom:
        """The index of the iteration that contributes at an offset."""
        if offset == 0:
            return self.indices[level]
        key = self.emitter.nest.indices[level], (offset,)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self.emitter.moved(self.indices[level], -offset)
        return found

    def value(self, atom: ir.Atom, offsets: tuple[int, ...]) -> ir.Atom:
        """The value of `atom` in the iteration that contributes at `offsets`."""
        nest = self.emitter.nest
        for op in _needed((atom,), nest):
            levels = self.emitter.levels[op.out]
            key = op.out, tuple([offsets[level] for level in sorted(levels)])
            if key not in self.made:
                out = self.made[key] = ir.Var(op.out.type, op.out.name)
                self.emitter.builder.emit(op.rebuilt(tuple([self.known(a, offsets) for a in op.args]), (), (out,)))
        return self.known(atom, offsets)

    def known(self, atom: ir.Atom, offsets: tuple[int, ...]) -> ir.Atom:
        if type(atom) is not ir.Var:
            return atom
        nest = self.emitter.nest
        if atom in nest.indices:
            level = nest.indices.index(atom)
            return self.index(level, offsets[level])
        if atom not in nest.definitions:
            return atom
        return self.made[atom, tuple([offsets[level] for level in sorted(self.emitter.levels[atom])])]

    def update(self, update: _Update, value: ir.Atom) -> None:
        """Emit one update of the element."""
        index = [
            self.indices[d] if isinstance(d, int) else self.value(a, update.offsets)
            for d, a in zip(update.element, update.op.index, strict=True)
        ]
        self.emitter.builder.emit(update.op.rebuilt((*index, value)))
