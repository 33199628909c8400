"""The nest in which each element sums up what it gets: what `gather` puts in the place of one that scatters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Atomic, Buffer, For, If, Lit, Op, Region, Var, true
from tinote.ir.types import Scalar

__all__ = ["Dimension", "Nest", "Update", "needed", "span", "sums_of"]

#: How many copies of contributions the rim may take; what would need more tests for each.
_MOST_COPIES = 300


class Nest:
    """Loops inside one another that carry nothing, the outermost one parallel, with nothing beside the inner ones but
    operations without effects. `work`: the operations of all levels in order.
    """

    def __init__(self, loops: tuple[For, ...], work: tuple[Op, ...]) -> None:
        self.loops = loops
        self.work = work
        self.indices = tuple([loop.index for loop in loops])
        self.definitions: dict[Var, Op] = {op.out: op for op in work if op.outs}


#: One dimension of an update's index: the level of the loop whose index stands there, or what has one value in the nest
#: (a variable or None for zero, and a number that is added to it).
Dimension = int | tuple[Var | None, int]


class Update(NamedTuple):
    """An update that can be gathered. `offsets`: what is added to the index of each level."""

    op: Atomic
    place: tuple[Dimension, ...]
    offsets: tuple[int, ...]


def sums_of(nest: Nest, updates: Sequence[Update]) -> list[Op]:
    """What does `updates`, and nothing else that the nest does."""
    return _Emitter(nest, updates).nest_of_sums()


def span(distances: Iterable[tuple[int, ...]], level: int) -> tuple[int, int]:
    """The least and the greatest offset at a level."""
    several = [offsets[level] for offsets in distances]
    return min(several), max(several)


def needed(atoms: Sequence[Atom], nest: Nest) -> list[Op]:
    """The operations of a nest from which `atoms` are computed, in order."""
    found: set[Op] = set()
    pending = list(atoms)
    while pending:
        a = pending.pop()
        op = nest.definitions.get(a) if type(a) is Var else None
        if op is not None and op not in found:
            found.add(op)
            pending += op.args
    return [op for op in nest.work if op in found]


class _Emitter:
    """Emits the nest in which each element sums up what it gets. The loops run over elements: an index p stands where
    the index plus an offset stood, and a contribution at that offset is the one of the turn p - offset.
    """

    def __init__(self, nest: Nest, updates: Sequence[Update]) -> None:
        self.nest = nest
        self.depth = len(nest.loops)
        self.builder = Builder(loc=nest.loops[0].loc, origin=nest.loops[0].origin)
        self.distances: dict[tuple[int, ...], list[Update]] = {}
        for update in updates:
            self.distances.setdefault(update.offsets, []).append(update)
        #: on which levels the result of each operation depends
        self.levels: dict[Var, frozenset[int]] = {v: frozenset([k]) for k, v in enumerate(nest.indices)}
        for op in nest.work:
            depends = [self.levels[a] for a in op.args if type(a) is Var and a in self.levels]
            self.levels.update(dict.fromkeys(op.outs, frozenset[int]().union(*depends)))
        #: from this level inwards, the rim is written out
        copies = len(self.distances)
        self.written_out = self.depth
        while self.written_out > 0:
            least, most = span(self.distances, self.written_out - 1)
            copies *= 2 * (most - least) + 1
            if copies > _MOST_COPIES:
                break
            self.written_out -= 1

    def nest_of_sums(self) -> list[Op]:
        """The nest, for bounds so far apart that each offset has a contribution somewhere in the middle; and another
        one, which tests for each contribution, for bounds of which this is not known and does not hold.
        """
        everything = frozenset(range(self.depth))
        with self.builder.region() as opened:
            wide = self.wide()
            if wide is None:
                self.level((), list(self.distances), frozenset(), parallel=True)
            else:
                self.level((), list(self.distances), frozenset(), parallel=True, when=wide)
                with self.builder.region() as narrow:
                    self.level((), list(self.distances), everything, parallel=False)
                loop = self.nest.loops[0]
                self.builder.emit(If(wide, Region((), ()), narrow.close(), (), loop.loc, loop.origin))
        return opened.body

    def wide(self) -> Atom | None:
        """Whether the bounds are so far apart, where they are not literal."""
        found: Atom | None = None
        for level, loop in enumerate(self.nest.loops):
            least, most = span(self.distances, level)
            if least == most or all(isinstance(bound, Lit) for bound in loop.args):
                continue
            here = self.builder.prim(p.ge, self.moved(loop.hi, least), self.moved(loop.lo, most))
            found = here if found is None else self.builder.prim(p.and_, found, here)
        return found

    # the loops

    def level(
        self,
        places: tuple[Atom, ...],
        distances: list[tuple[int, ...]],
        tested: frozenset[int],
        *,
        parallel: bool,
        when: Atom | None = None,
    ) -> None:
        """The loops from this level inwards. `places`: the indices of the elements further out; `distances`: the
        offsets that have contributions there; `tested`: the levels at which this has to be tested. `when`: whether
        there is anything to be done.
        """
        level = len(places)
        if level == self.depth:
            self.turn(places, distances, tested)
            return
        lo, hi = self.nest.loops[level].args
        least, most = span(distances, level)
        begin, end = self.moved(lo, most), self.moved(hi, least)
        if least == most or tested:
            first, last = self.moved(lo, least), self.moved(hi, most)
            if least < most:
                tested |= {level}
            self.loop(first, self.choice(when, last, first), places, distances, tested, parallel=parallel)
        elif level < self.written_out:
            self.rows(places, distances, when)
        else:
            with self.builder.region() as rim:
                for k in range(least, most):
                    below = [d for d in distances if d[level] <= k]
                    self.level((*places, self.moved(lo, k)), below, tested, parallel=False)
                    above = [d for d in distances if d[level] > k]
                    self.level((*places, self.moved(hi, k)), above, tested, parallel=False)
            self.builder.innermost.body.extend(
                rim.body if when is None else [If(when, rim.close(), Region((), ()), (), self.builder.loc)]
            )
            self.loop(begin, self.choice(when, end, begin), places, distances, tested, parallel=parallel)

    def loop(
        self,
        lo: Atom,
        hi: Atom,
        places: tuple[Atom, ...],
        distances: list[tuple[int, ...]],
        tested: frozenset[int],
        *,
        parallel: bool,
    ) -> None:
        old = self.nest.loops[len(places)]
        place = Var(old.index.type, old.index.name)
        with self.builder.region(place) as opened:
            self.level((*places, place), distances, tested, parallel=parallel)
        self.builder.emit(For(lo, hi, (), opened.close(), (), old.loc, parallel=parallel, origin=old.origin))

    def rows(self, places: tuple[Atom, ...], distances: list[tuple[int, ...]], when: Atom | None) -> None:
        """A loop with further loops inside: whether anything has to be tested for is settled once a turn."""
        level = len(places)
        old = self.nest.loops[level]
        place = Var(old.index.type, old.index.name)
        least, most = span(distances, level)
        with self.builder.region(place) as opened:
            inside = self.within(place, self.moved(old.lo, most), self.moved(old.hi, least))
            with self.builder.region() as middle:
                self.level((*places, place), distances, frozenset(), parallel=True)
            with self.builder.region() as rim:
                self.level((*places, place), distances, frozenset([level]), parallel=False)
            self.builder.emit(If(inside, middle.close(), rim.close(), (), old.loc, old.origin))
        first, last = self.moved(old.lo, least), self.moved(old.hi, most)
        bounds = first, self.choice(when, last, first)
        self.builder.emit(For(*bounds, (), opened.close(), (), old.loc, parallel=True, origin=old.origin))

    def within(self, place: Atom, lo: Atom, hi: Atom) -> Atom:
        above, below = self.builder.prim(p.ge, place, lo), self.builder.prim(p.lt, place, hi)
        return self.builder.prim(p.and_, above, below)

    def moved(self, atom: Atom, by: int) -> Atom:
        assert isinstance(atom.type, Scalar)
        if by == 0:
            return atom
        if isinstance(atom, Lit):
            return Lit(int(atom.value) + by, atom.type)
        return self.builder.prim(p.add, atom, Lit(by, atom.type))

    def choice(self, when: Atom | None, a: Atom, b: Atom) -> Atom:
        return a if when is None else self.builder.prim(p.select, when, a, b)

    # one turn

    def turn(self, places: tuple[Atom, ...], distances: list[tuple[int, ...]], tested: frozenset[int]) -> None:
        """All updates of one element."""
        if tested:
            for offsets in distances:
                self.contribution(places, offsets, sorted(tested))
            return
        copies = _Copies(self, places)
        sums: dict[tuple[Buffer, tuple[Dimension, ...]], tuple[Update, Atom]] = {}
        for offsets in distances:
            for update in self.distances[offsets]:
                value = copies.value(update.op.value, offsets)
                known = sums.get((update.op.buffer, update.place))
                total = value if known is None else self.builder.prim(p.add, known[1], value)
                sums[update.op.buffer, update.place] = update, total
        for update, total in sums.values():
            copies.update(update, total)

    def contribution(self, places: tuple[Atom, ...], offsets: tuple[int, ...], tested: Sequence[int]) -> None:
        """What an element gets from the turn at some distance, if there is such a turn."""
        copies = _Copies(self, places)
        exists: Atom = true
        for level in tested:
            loop = self.nest.loops[level]
            here = self.within(copies.index(level, offsets[level]), loop.lo, loop.hi)
            exists = here if exists is true else self.builder.prim(p.and_, exists, here)
        updates = self.distances[offsets]
        with self.builder.region() as opened:
            for update in updates:
                copies.update(update, copies.value(update.op.value, offsets))
        loc, origin = updates[0].op.loc, updates[0].op.origin
        self.builder.emit(If(exists, opened.close(), Region((), ()), (), loc, origin))


class _Copies:
    """Copies of the operations of a turn, each made once for each distance that it depends on."""

    def __init__(self, emitter: _Emitter, places: tuple[Atom, ...]) -> None:
        self.emitter = emitter
        self.places = places
        self.made: dict[tuple[Var, tuple[int, ...]], Atom] = {}

    def index(self, level: int, offset: int) -> Atom:
        """The index of the turn that contributes at an offset."""
        if offset == 0:
            return self.places[level]
        key = self.emitter.nest.indices[level], (offset,)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self.emitter.moved(self.places[level], -offset)
        return found

    def value(self, atom: Atom, offsets: tuple[int, ...]) -> Atom:
        """What `atom` is in the turn that contributes at `offsets`."""
        nest = self.emitter.nest
        for op in needed((atom,), nest):
            levels = self.emitter.levels[op.out]
            key = op.out, tuple([offsets[level] for level in sorted(levels)])
            if key not in self.made:
                out = self.made[key] = Var(op.out.type, op.out.name)
                self.emitter.builder.emit(op.rebuilt(tuple([self.known(a, offsets) for a in op.args]), (), (out,)))
        return self.known(atom, offsets)

    def known(self, atom: Atom, offsets: tuple[int, ...]) -> Atom:
        if type(atom) is not Var:
            return atom
        nest = self.emitter.nest
        if atom in nest.indices:
            level = nest.indices.index(atom)
            return self.index(level, offsets[level])
        if atom not in nest.definitions:
            return atom
        return self.made[atom, tuple([offsets[level] for level in sorted(self.emitter.levels[atom])])]

    def update(self, update: Update, value: Atom) -> None:
        """Emit one update of the element."""
        index = [
            self.places[d] if isinstance(d, int) else self.value(a, update.offsets)
            for d, a in zip(update.place, update.op.index, strict=True)
        ]
        self.emitter.builder.emit(update.op.rebuilt((*index, value)))
