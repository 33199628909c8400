"""Outlining: cuts long code into parts, each a function of its own.

    define i32 @task_0(ptr %block, …) {          define i32 @part_1(ptr %block, i32 %tid, ptr %room) noinline { … }
      … thousands of instructions …       ->     define i32 @task_0(ptr %block, …) {
    }                                              … call i32 @part_1(ptr %block, i32 %tid, ptr %room) …

The time that LLVM takes grows with the square of a function's length, or faster (measured: 500 times
`a = (a*3 + i) % 1009` in one function 4 s, 2,000 times 84 s). Code whose work for LLVM is more than `MAX_WHOLE_WORK`
becomes functions of about `_MIN_PART_WORK` each, so that the time is linear. Results that other parts use go through
memory, the `room` of the caller; so vectorisation happens only within a part. Shorter code stays whole, except for the
unlikely branches of conditions, which are always parts.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir.lanes import LoadTile
from tinote.ir.query import walk

#: LLVM's work on code that stays one function, at most: see above for longer code.
MAX_WHOLE_WORK = 3_000
#: LLVM's work after which a part ends. Chosen, not measured.
_MIN_PART_WORK = 400
#: Number of parts of one region from which on they are joined, so that the calling code is short. Chosen, not measured.
_MAX_PARTS = 16
#: LLVM's work on a part's call. Chosen, not measured.
_CALL_WORK = 8
_WORK: dict[type[ir.Op], int] = {
    ir.Check: 6, ir.For: 10, ir.While: 10, ir.If: 4, ir.Print: 8, ir.Load: 2, ir.Store: 2, ir.Atomic: 4, ir.Push: 5,
    ir.Pop: 5,
}  # fmt: skip
#: Operations that allocate memory until the end of their region.
_LASTING = (ir.Local, ir.NewStack, LoadTile)
#: Operations to the last use of such memory that stays in its part. Chosen, not measured.
_MAX_DISTANCE = 50


class Part(NamedTuple):
    """The operations of a region from number `first` up to `end`, as a region of their own, and their results that are
    used afterwards. (The results of nested parts belong to those.)
    """

    first: int
    end: int
    region: ir.Region
    results: tuple[ir.Var, ...] = ()


#: The parts of each region that has some, in order.
Parts = dict[ir.Region, list[Part]]


def cut(region: ir.Region) -> Parts:
    """The parts of a task's code; only its unlikely branches unless it is long."""
    cutter = _Cutter()
    for op in walk(region):
        if isinstance(op, ir.If) and op.likely and op.orelse.body:
            cutter.outline(op.orelse)
    if cutter.work_of(region) <= MAX_WHOLE_WORK:
        return cutter.parts
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
            found = self._work[region] = sum([_own_work(op) + sum(map(self.work_of, _whole(op))) for op in region.body])
        return found

    def outline(self, region: ir.Region) -> None:
        """Make a region one part, which may have parts itself."""
        inner = ir.Region((), region.body, region.yields)
        self.cut(inner)
        nested = {op for part in self.parts.get(inner, ()) for op in part.region.body}
        used = set(region.yields)
        results = [v for op in region.body if op not in nested for v in op.outs if v in used]
        self.parts[region] = [Part(0, len(region.body), inner, tuple(results))]

    def cut(self, region: ir.Region) -> int:
        """Find the parts of a region, the innermost first; returns the remaining work."""
        body = region.body
        if self.work_of(region) < _MIN_PART_WORK:
            return self.work_of(region)
        last = self._last_uses(region)
        found: list[Part] = []
        left = work = first = open_until = 0
        for k, op in enumerate(body):
            mine = _own_work(op) + sum(map(self.cut, _whole(op)))
            if isinstance(op, _LASTING):
                end = last.get(op.out, k)
                if end - k > _MAX_DISTANCE:
                    left += work + mine
                    work, first = 0, k + 1
                    continue
                open_until = max(open_until, end)
            work += mine
            if work >= _MIN_PART_WORK and k >= open_until:
                results = [v for inner in body[first : k + 1] for v in inner.outs if last.get(v, k) > k]
                found.append(Part(first, k + 1, ir.Region((), body[first : k + 1]), tuple(results)))
                left += _CALL_WORK
                work, first = 0, k + 1
        if found:
            self.parts[region] = found = self._joined(body, found)
        return left + work

    def _joined(self, body: tuple[ir.Op, ...], parts: list[Part]) -> list[Part]:
        """Many parts joined into a few."""
        while len(parts) > _MAX_PARTS:
            joined: list[Part] = []
            for part in parts:
                if joined and len(self.parts[joined[-1].region]) < _MAX_PARTS and joined[-1].end == part.first:
                    first, inner = joined[-1].first, self.parts.pop(joined.pop().region)
                else:
                    first, inner = part.first, []
                region = ir.Region((), body[first : part.end])
                self.parts[region] = [*inner, part._replace(first=part.first - first, end=part.end - first)]
                joined.append(Part(first, part.end, region))
            if len(joined) == len(parts):
                break
            parts = joined
        return parts

    def _last_uses(self, region: ir.Region) -> dict[ir.Var, int]:
        """The number of the last operation of a region that uses each variable."""
        body = region.body
        last: dict[ir.Var, int] = {v: len(body) for v in region.yields if type(v) is ir.Var}
        for k in range(len(body) - 1, -1, -1):
            for v in self._free_in(body[k]):
                last.setdefault(v, k)
        return last

    def _free_in(self, op: ir.Op) -> set[ir.Var]:
        """The free variables of an operation."""
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


def _whole(op: ir.Op) -> tuple[ir.Region, ...]:
    """The regions of an operation that are not parts as a whole."""
    return op.regions[:1] if isinstance(op, ir.If) and op.likely else op.regions


def _own_work(op: ir.Op) -> int:
    return max(int(op.prim.cost), 1) if isinstance(op, ir.Prim) else _WORK.get(type(op), 1)
