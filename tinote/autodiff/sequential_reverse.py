"""Sequential reverse: parallel loops whose iterations conflict are differentiated as serial ones, which is the order in
which they run where there is little to do.

    for parallel %i in 0 .. %n:               for %i in 0 .. %n:
      %k = load @k[%i]                 ->       %k = load @k[%i]
      %a = load @x[%i]                          %a = load @x[%i]
      store @y[%k], %a                          store @y[%k], %a          (of several iterations, the last one wins)

An element that several iterations may store to holds the value of the last, which alone gets the gradient. Where an
iteration may read what another one changes, the values are those of the serial order, too; this goes for what is not
differentiated as well, such as flags. Additions may come in any order. Under a tape a launch runs these loops in the
same order (`lang/ad/journal/saved_values.py`). Where iterations certainly conflict, whatever memory holds
(`dependence_distance.py`), there is no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

from tinote.autodiff.activity import may_be_active
from tinote.autodiff.dependence_distance import CarriedDependence, find_carried_dependence, keeps_apart
from tinote.ir.access import Access, Accesses, Touched, accesses_of
from tinote.ir.buffers import Buffer, root_of
from tinote.ir.nodes import Atomic, For, Function, If, Load, MemoryOp, Op, Region, Store
from tinote.ir.query import walk
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import Rewriter


class SequentialReverse(NamedTuple):
    """A function whose parallel loops may run in any order; or else `dependence` says where they may not. `in_order`:
    others were made serial.
    """

    function: Function
    dependence: CarriedDependence | None = None
    in_order: bool = False


def make_sequential(fn: Function, distinct: Set[Buffer] = frozenset()) -> SequentialReverse:
    """`fn` with such loops made serial. What is loaded from `distinct` differs in each iteration."""
    if not some_may_matter(fn):
        return SequentialReverse(fn)
    accesses = accesses_of(fn)
    dependence = find_carried_dependence(accesses)
    if dependence is not None:
        return SequentialReverse(fn, dependence)
    meeting = ConflictSearch(fn, accesses, distinct, may_be_active).meeting()
    if not meeting:
        return SequentialReverse(fn)
    serial = SerialiseLoops({inner for loop in meeting for inner in loops_of(loop)}).run(fn)
    return SequentialReverse(serial, in_order=True)


def some_may_matter(fn: Function) -> bool:
    """Whether there is a parallel loop in which floats are stored, or anything is both read and changed."""
    return any(_may_matter(op) for op in fn.region.body if isinstance(op, For) and op.parallel)


def loops_of(op: Op) -> list[Op]:
    """A loop, and those inside of it."""
    return [inner for inner in walk(Region((), (op,))) if isinstance(inner, For)]


def _may_matter(loop: For) -> bool:
    """Whether floats are stored in a loop, or anything is both read and changed."""
    changed: set[Buffer] = set()
    read: set[Buffer] = set()
    for op in walk(loop.body):
        if isinstance(op, MemoryOp):
            if isinstance(op, Store) and op.buffer.dtype.kind == "f":
                return True
            (changed if isinstance(op, Store | Atomic) else read).add(root_of(op.buffer))
    return not changed.isdisjoint(read)


class ConflictSearch:
    """Which parallel loops have iterations that conflict over values that are differentiated, or, unless
    `active_only`, over what they read of others.
    """

    def __init__(
        self,
        fn: Function,
        accesses: Accesses,
        distinct: Set[Buffer],
        is_active: Callable[[Buffer], bool],
        *,
        active_only: bool = False,
    ) -> None:
        self.accesses = accesses
        self.distinct = distinct
        self.is_active = is_active
        self.active_only = active_only
        self.branches = dict(_branches(fn.region, ()))

    def meeting(self) -> list[For]:
        """These loops."""
        loops = [loop for loop in self.accesses.loops if isinstance(loop, For) and loop.parallel]
        return [loop for loop in loops if self.meets(loop)]

    def meets(self, op: For) -> bool:
        """Whether several iterations of a loop may store to one element, or one may read what another one changes."""
        loop = self.accesses.loops[op]
        touched: dict[Buffer, list[Access]] = {}
        for access in self.accesses.within(loop):
            if (self.is_active(access.op.buffer) or not self.active_only) and not self._is_distinct(access):
                touched.setdefault(root_of(access.buffer), []).append(access)
        for inside in touched.values():
            places = {alike[0].op: alike for alike in _by_place(inside).values()}
            near = Touched([alike[0] for alike in places.values()]).near
            for writes in [alike for alike in places.values() if alike[0].writes]:
                # Additions may come in any order, and what only others read matters in none.
                is_kept = isinstance(writes[0].op, Store) and self.is_active(writes[0].op.buffer)
                for other in near(writes[0]):
                    if (is_kept or isinstance(other.op, Load)) and self._meet(writes, places[other.op], loop):
                        return True
        return False

    def _meet(self, writes: list[Access], others: list[Access], loop: Loop) -> bool:
        """Whether one of the writes, at one place, matters to one of the others, at another."""
        # A thousand branches may write to one place. Mostly its index says enough, whatever is known in each.
        a, b = [Access(one.op, one.forms, one.loop, None) for one in (writes[0], others[0])]
        return self.accesses.may_meet_across(a, b, loop) and any(
            self._matters(write, other, loop) and self.accesses.may_meet_across(write, other, loop)
            for write in writes
            for other in others
        )

    def _matters(self, write: Access, other: Access, loop: Loop) -> bool:
        """Whether two accesses count as a conflict unless they are proved disjoint. A read and a write do not where an
        index that is the same in all iterations differs, such as the slot in a ring of buffers, or in branches that
        keep the two iterations apart, such as that for one colour of a checkerboard.
        """
        if not isinstance(other.op, Load):
            return True
        accesses = self.accesses
        for f, g in zip(write.forms, other.forms, strict=False):
            if f != g and all(v is not loop.index and accesses.invariant(v, loop) for v in (*f.terms, *g.terms)):
                return False
        around = (*self.branches[write.op], *self.branches[other.op])
        return not any(
            keeps_apart(op.condition, other, write, accesses, loop)
            for op in around
            if self._is_iteration_dependent(op, loop)
        )

    def _is_iteration_dependent(self, op: If, loop: Loop) -> bool:
        """Whether a branch's condition differs between iterations of the loop."""
        home = self.accesses.loop_of(op)
        return home is not None and home.inside(loop)

    def _is_distinct(self, access: Access) -> bool:
        """Whether an index of the access differs in each iteration."""
        for form in access.forms:
            made = self.accesses.definitions.get(next(iter(form.terms))) if len(form.terms) == 1 else None
            if isinstance(made, Load) and made.buffer in self.distinct:
                return True
        return False


def _by_place(accesses: Iterable[Access]) -> dict[tuple[object, ...], list[Access]]:
    """Accesses of one kind to one buffer with equal indices together."""
    found: dict[tuple[object, ...], list[Access]] = {}
    for access in accesses:
        found.setdefault((type(access.op), access.op.buffer, access.op.index), []).append(access)
    return found


def _branches(region: Region, around: tuple[If, ...]) -> Iterator[tuple[Op, tuple[If, ...]]]:
    """The accesses in a region, each with the branches that it stands in."""
    for op in region.body:
        if isinstance(op, MemoryOp):
            yield op, around
        for inner in op.regions:
            yield from _branches(inner, (*around, op) if isinstance(op, If) else around)


class SerialiseLoops(Rewriter):
    """Makes the loops in `serial` serial."""

    def __init__(self, serial: set[Op]) -> None:
        super().__init__()
        self.serial = serial

    def nest(self, op: Op) -> None:
        if isinstance(op, For) and op in self.serial:
            op = For(op.lo, op.hi, op.initial, op.body, op.outs, op.loc, reverse=op.reverse, origin=op.origin)
        super().nest(op)
