"""Cuts long code into parts, each a function of its own.

    define i32 @task_0(ptr %block, …) {        define i32 @task_0_part_1(ptr %block, i32 %tid, ptr %fuel, ptr %results,
      … thousands of instructions …       ->                             float %v1) noinline { … }
    }                                          define i32 @task_0(ptr %block, …) { … call i32 @task_0_part_1(…) … }

The time that LLVM takes grows with the square of a function's length, or faster (measured: 500 times
`a = (a*3 + i) % 1009` in one function 4 s, 2,000 times 84 s). Code whose work for LLVM is more than `LONGEST` becomes
functions of about `_PART` each, so that the time grows in proportion. Values go into a part as arguments, and out of it
through memory; so vectors are found within a part alone. Shorter code stays whole.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir.lanes import LoadTile

#: Work of code that stays whole, in additions.
LONGEST = 3_000
#: Work of a part from which on it ends.
_PART = 400
#: What a part leaves of its work with the code that calls it.
_CALL = 8
_WORK: dict[type[ir.Op], int] = {
    ir.Check: 6, ir.For: 10, ir.While: 10, ir.If: 4, ir.Print: 8, ir.Load: 2, ir.Store: 2, ir.Atomic: 4, ir.Push: 5,
    ir.Pop: 5,
}  # fmt: skip
#: What takes memory that lasts to the end of its region.
_LASTING = (ir.Local, ir.NewStack, LoadTile)


class Part(NamedTuple):
    """Operations of a region, from number `first` up to `end`, and the variables of theirs that are used afterwards."""

    first: int
    end: int
    results: tuple[ir.Var, ...]


#: The parts of each region that has some, in order.
Parts = dict[ir.Region, list[Part]]


def cut(region: ir.Region) -> Parts:
    """The parts of a task's code; none unless it is long."""
    cutter = _Cutter()
    if cutter.work_of(region) <= LONGEST:
        return {}
    cutter.cut(region)
    return cutter.parts


class _Cutter:
    def __init__(self) -> None:
        self.parts: Parts = {}
        self._work: dict[ir.Region, int] = {}
        self._free: dict[ir.Op, set[ir.Var]] = {}

    def work_of(self, region: ir.Region) -> int:
        """The work of a region and all inside."""
        found = self._work.get(region)
        if found is None:
            found = self._work[region] = sum([_own_work(op) + sum(map(self.work_of, op.regions)) for op in region.body])
        return found

    def cut(self, region: ir.Region) -> int:
        """Find the parts of a region, the innermost first; the work that is left of it."""
        body = region.body
        if self.work_of(region) < _PART:
            return self.work_of(region)
        bounds: list[tuple[int, int]] = []
        left = work = first = 0
        for k, op in enumerate(body):
            mine = _own_work(op) + sum(map(self.cut, op.regions))
            if isinstance(op, _LASTING):
                left += work + mine
                work, first = 0, k + 1
                continue
            work += mine
            if work >= _PART:
                bounds.append((first, k + 1))
                left += _CALL
                work, first = 0, k + 1
        if bounds:
            self.parts[region] = self._described(region, bounds)
        return left + work

    def _described(self, region: ir.Region, bounds: list[tuple[int, int]]) -> list[Part]:
        """The parts with these bounds."""
        body = region.body
        last: dict[ir.Var, int] = {v: len(body) for v in region.yields if type(v) is ir.Var}
        for k in range(len(body) - 1, -1, -1):
            for v in self._free_in(body[k]):
                last.setdefault(v, k)
        found: list[Part] = []
        for first, end in bounds:
            results = [v for op in body[first:end] for v in op.outs if last.get(v, -1) >= end]
            found.append(Part(first, end, tuple(results)))
        return found

    def _free_in(self, op: ir.Op) -> set[ir.Var]:
        """The variables that an operation takes from outside."""
        found = self._free.get(op)
        if found is None:
            found = {a for a in op.args if type(a) is ir.Var}
            for region in op.regions:
                used = {v for v in region.yields if type(v) is ir.Var}
                used.update(*[self._free_in(inner) for inner in region.body])
                used.difference_update(region.params, *[inner.outs for inner in region.body])
                found |= used
            self._free[op] = found
        return found


def _own_work(op: ir.Op) -> int:
    return max(int(op.prim.cost), 1) if isinstance(op, ir.Prim) else _WORK.get(type(op), 1)
