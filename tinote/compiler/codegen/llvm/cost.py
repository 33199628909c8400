"""How long code runs, roughly: which loops poll the stop word, how often, and which parallel loops are worth waking
threads for.

The unit is the time of an addition, about a third of a nanosecond.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tinote.compiler.codegen.llvm.ranges import Ranges, range_of, result_range
from tinote.ir.lanes import lanes_of
from tinote.ir.nodes import Atom, Atomic, For, If, MemoryOp, Op, Pop, Prim, Print, Push, Region, While
from tinote.ir.query import trip_count, walk
from tinote.ir.types import Scalar

#: Work between two polls of the stop word (about 0.1 ms; a poll costs some nanoseconds).
BETWEEN_POLLS = 1 << 18
#: Work for which waking other threads does not pay (about 20 µs).
PARALLEL_WORTH = 60_000
_LONGEST_STRIP = 1 << 15
#: Strips are multiples of what machine code may do at once, so that only the last one leaves a rest.
_WHOLE = 64
_LONGEST_UNPOLLED = 1 << 16
#: Work for which it does not pay to ask whether it is time to poll: a loop of at most as much, by the ranges of its
#: bounds, counts as half of it to whoever contains it.
_SHORT = 1 << 12
_ATOMIC_COST = 20
#: Work within a CPU's reordering window: it overlaps shorter iterations anyway.
_LOOK_AHEAD = 256
#: With this much independent work an iteration keeps a CPU's units busy.
_BUSY = 2.5
#: Work of an iteration past which LLVM is not asked to vectorise: the time that it thinks about it grows with the
#: square of that (measured with chains of integers: 2,100 additions 0.7 s, 7,000 6 s, 21,000 over a minute; of sines
#: alike).
_LONGEST_VECTORISED = 3_000


class Polling(Enum):
    """How a loop polls the stop word."""

    NEVER = "never"  # short: whoever contains it accounts for it
    STRIPS = "strips"  # between strips of iterations; a strip is a loop without interruption
    ITERATIONS = "iterations"  # counts at every iteration, because it contains a loop that is not short


class LoopPlan(NamedTuple):
    """`cost` is one iteration's (in lanes, its share of what runs for all), without the loops inside that account for
    themselves; `strip` the iterations in a strip, a multiple of the lanes.
    """

    polling: Polling
    cost: int
    strip: int


def is_latency_bound(body: Region) -> bool:
    """Whether an iteration is long and mostly one dependence chain, so that two independent iterations at once take
    little longer than one.
    """
    work = longest = 0.0
    ready: dict[Atom, float] = {}  # the work that must be done before a value is there
    for op in body.body:
        if op.regions:
            return False
        cost = own_cost(op)
        work += cost
        done = max([ready.get(a, 0.0) for a in op.args], default=0.0) + cost
        longest = max(longest, done)
        for out in op.outs:
            ready[out] = done
    return work > _LOOK_AHEAD and work < _BUSY * longest


def is_too_long(body: Region) -> bool:
    """Whether vectorising a loop with this body would take LLVM seconds."""
    return sum(own_cost(op) for op in walk(body)) > _LONGEST_VECTORISED


class Loops:
    """The plans of all loops in a task, and its cost."""

    __slots__ = ("_ranges", "plans")

    def __init__(self) -> None:
        self.plans: dict[Op, LoopPlan] = {}
        self._ranges: Ranges = {}

    def plan(self, region: Region, lanes: int, ranges: Ranges) -> LoopPlan:
        """A plan for running `region` again and again, as a loop whose number of iterations is not known. `lanes`: how
        many iterations it stands for; `ranges`: of its index.
        """
        self._ranges = dict(ranges)
        cost, long = self._region(region)
        return _plan(cost, long, lanes)

    def _region(self, region: Region) -> tuple[int, bool]:
        """Cost, and whether there are loops inside that account for themselves."""
        total, long = 1, False
        for op in region.body:
            cost, inner = self._op(op)
            total += cost
            long = long or inner
        return total, long

    def _op(self, op: Op) -> tuple[int, bool]:
        if isinstance(op, For):
            lows, highs = range_of(self._ranges, op.lo), range_of(self._ranges, op.hi)
            self._ranges[op.index] = lows[0], max(highs[1] - 1, lows[0])
            cost, long = self._region(op.body)
            lanes, count = lanes_of(op), trip_count(op.lo, op.hi)
            most = highs[1] - lows[0]
            if count is None and most >= 0 and cost * most <= _SHORT:
                count = most // 2
            if count is not None:
                count = -(-count // lanes)
            if count is not None and not long and count < _LONGEST_UNPOLLED and count * cost <= BETWEEN_POLLS:
                self.plans[op] = LoopPlan(Polling.NEVER, cost, 0)
                return count * cost, False
            self.plans[op] = _plan(cost, long, lanes)
            return 1, True
        if isinstance(op, While):
            cost = sum(self._region(r)[0] for r in op.regions)
            self.plans[op] = LoopPlan(Polling.ITERATIONS, cost, 1)
            return 1, True
        if isinstance(op, If):
            then, orelse = (self._region(r) for r in op.regions)
            return max(then[0], orelse[0]), then[1] or orelse[1]
        if isinstance(op, Prim) and len(op.outs) == 1:
            t = op.outs[0].type
            known = result_range(self._ranges, op, t) if isinstance(t, Scalar) and t.kind != "f" else None
            if known is not None and isinstance(t, Scalar) and t.lowest <= known[0] and known[1] <= t.highest:
                self._ranges[op.outs[0]] = known
        return int(own_cost(op)), False


def own_cost(op: Op) -> float:
    """The cost of an operation without regions."""
    if isinstance(op, Prim):
        return op.prim.cost
    if isinstance(op, Atomic):
        return 2 if op.plain else _ATOMIC_COST
    if isinstance(op, Print):
        return 200
    return 1 if isinstance(op, MemoryOp | Push | Pop) else 0


def _plan(cost: int, long: bool, lanes: int) -> LoopPlan:
    cost = -(-cost // lanes)
    if long:
        return LoopPlan(Polling.ITERATIONS, cost, 1)
    strip = min(_LONGEST_STRIP, BETWEEN_POLLS // cost)
    whole = _WHOLE if strip > _WHOLE else lanes
    return LoopPlan(Polling.STRIPS, cost, max(whole, strip - strip % whole))
