"""Cost model of run time: which loops poll the stop word and how often, and which parallel loops are worth waking
threads for.

Costs are in additions: see `ir/cost.py`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tinote.compiler.codegen.llvm.ranges import Ranges, range_of, result_range
from tinote.ir.cost import own_cost
from tinote.ir.lanes import lanes_of
from tinote.ir.nodes import Atom, For, If, Op, Prim, Region, While
from tinote.ir.query import trip_count, walk
from tinote.ir.types import Scalar

#: Cost between two polls of the stop word, in additions: about 0.1 ms, while a poll takes some nanoseconds.
COST_BETWEEN_POLLS = 1 << 18
#: Cost from which on waking other threads pays, in additions: about 20 µs.
MIN_PARALLEL_COST = 60_000
#: Iterations between two polls. Chosen, not measured.
_MAX_STRIP = 1 << 15
#: Strips are multiples of this number of iterations, more than any vector loop takes at once, so that only the last
#: strip leaves a remainder.
_STRIP_MULTIPLE = 64
#: Greatest number of iterations of a loop that does not poll. Chosen, not measured.
_MAX_UNPOLLED = 1 << 16
#: Cost below which a loop does not poll, in additions: a loop of at most this cost, by the ranges of its bounds, counts
#: as half of it in the enclosing loop. Chosen, not measured.
_MAX_SHORT_COST = 1 << 12
#: Cost within a CPU's reordering window, in additions: a CPU overlaps shorter iterations anyway. Chosen, not measured.
_REORDERED_COST = 256
#: Ratio of an iteration's cost to that of its longest dependence chain: with this much instruction-level parallelism a
#: CPU's units are busy. Chosen, not measured.
_BUSY_PARALLELISM = 2.5
#: Cost of an iteration past which LLVM does not vectorise, in additions: its compile time grows with the square
#: (measured with chains of integers: 2,100 additions 0.7 s, 7,000 6 s, 21,000 over a minute; similar with sines).
_MAX_VECTORISED_COST = 3_000


class Polling(Enum):
    """How a loop polls the stop word."""

    NEVER = "never"  # short: the enclosing loop accounts for it
    STRIPS = "strips"  # polls between strips of iterations; a strip does not poll
    ITERATIONS = "iterations"  # counts at every iteration, since it contains a loop that is not short


class LoopPlan(NamedTuple):
    """`cost` is one iteration's (in lanes, its share of the vector code), without inner loops that poll themselves;
    `strip` the iterations in a strip, a multiple of the lanes.
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
    return work > _REORDERED_COST and work < _BUSY_PARALLELISM * longest


def is_too_long(body: Region) -> bool:
    """Whether vectorising a loop with this body would take LLVM seconds."""
    return sum(own_cost(op) for op in walk(body)) > _MAX_VECTORISED_COST


class Loops:
    """The plans of all loops in a task, and its cost."""

    __slots__ = ("_ranges", "plans")

    def __init__(self) -> None:
        self.plans: dict[Op, LoopPlan] = {}
        self._ranges: Ranges = {}

    def plan(self, region: Region, lanes: int, ranges: Ranges) -> LoopPlan:
        """A plan for `region` as the body of a loop with an unknown trip count. `lanes`: iterations per execution of
        it; `ranges`: of its index.
        """
        self._ranges = dict(ranges)
        cost, long = self._region(region)
        return _plan(cost, long, lanes)

    def _region(self, region: Region) -> tuple[int, bool]:
        """The cost, and whether there are inner loops that poll themselves."""
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
            if count is None and most >= 0 and cost * most <= _MAX_SHORT_COST:
                count = most // 2
            if count is not None:
                count = -(-count // lanes)
            if count is not None and not long and count < _MAX_UNPOLLED and count * cost <= COST_BETWEEN_POLLS:
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


def _plan(cost: int, long: bool, lanes: int) -> LoopPlan:
    cost = -(-cost // lanes)
    if long:
        return LoopPlan(Polling.ITERATIONS, cost, 1)
    strip = min(_MAX_STRIP, COST_BETWEEN_POLLS // cost)
    whole = _STRIP_MULTIPLE if strip > _STRIP_MULTIPLE else lanes
    return LoopPlan(Polling.STRIPS, cost, max(whole, strip - strip % whole))
