"""The work of one iteration of a parallel loop, which decides whether waking other threads pays.

It is computed at launch where it depends on lengths that are known only then.
"""

from __future__ import annotations

from tinote.compiler.codegen.llvm.function import TaskText
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.cost import UNKNOWN_TRIP_COUNT, own_cost
from tinote.ir.lanes import lanes_of
from tinote.ir.query import definitions, walk
from tinote.ir.types import Scalar, i64

#: Longest chain of operations that computes a length at launch. Chosen, not measured.
_MAX_DEPTH = 6
#: Counted iterations of one loop, at most: products with the work inside, which is at most 2**20, fit i64.
_MAX_TRIP_COUNT = 1 << 40

Amount = int | str
_COMPUTED = (p.add, p.sub, p.mul, p.minimum, p.maximum)


def iteration_work(e: TaskText, task: ir.Task, lo: str, hi: str) -> Amount:
    """The work, at least 1: a number, or the name of an i64 that `e` (the entry function) computes.

    `lo` and `hi` are the task's bounds as text.
    """
    amounts = _Amounts(e, task)
    amounts.known[task.body.params[0]] = amounts.middle(_amount(lo), _amount(hi))
    work = amounts.share(amounts.region(task.body), task)
    return max(1, int(work)) if isinstance(work, int) else amounts.call("smax", work, 1)


def is_uneven(task: ir.Task) -> bool:
    """Whether iterations do either hardly anything or a whole loop, as those over blocks that may be inactive, and may
    be given to any thread: sums that each thread keeps for itself depend on which are its own.
    """
    if task.privates or task.ordered:
        return False
    *before, last = task.body.body or [None]
    return (
        isinstance(last, ir.If)
        and not last.outs
        and not any(op.regions for op in before if op is not None)
        and any(isinstance(op, ir.For | ir.While) for region in last.regions for op in walk(region))
        and not any(isinstance(op, ir.Print) for op in walk(task.body))
    )


def _amount(text: str) -> Amount:
    return int(text) if text.lstrip("-").isdigit() else text


class _Amounts:
    """Evaluates lengths outside the task, if they depend only on literals, parameters, extents and loop indices (which
    count as the middle of their range).
    """

    def __init__(self, e: TaskText, task: ir.Task) -> None:
        self._e = e
        self._made = definitions(task.body)
        self._written = {root_of(op.buffer) for op in walk(task.body) if isinstance(op, ir.Store | ir.Atomic)}
        self.known: dict[ir.Var, Amount | None] = {}

    def call(self, name: str, a: Amount, b: Amount) -> str:
        return self._e.value(f"call i64 @llvm.{name}.i64(i64 {a}, i64 {b})")

    def _do(self, prim: p.Primitive, a: Amount, b: Amount) -> Amount:
        if isinstance(a, int) and isinstance(b, int):
            return prim.evaluate(i64, a, b)
        if prim in (p.minimum, p.maximum):
            return self.call(f"s{prim.name}", a, b)
        return self._e.value(f"{prim.name} i64 {a}, {b}")

    def middle(self, lo: Amount, hi: Amount) -> Amount:
        total = self._do(p.add, lo, hi)
        return total // 2 if isinstance(total, int) else self._e.value(f"ashr i64 {total}, 1")

    def share(self, work: Amount, loop: ir.For | ir.Task) -> Amount:
        """The work of one iteration, for a body that may execute several."""
        lanes = lanes_of(loop)
        if lanes == 1:
            return work
        return work // lanes if isinstance(work, int) else self._e.value(f"udiv i64 {work}, {lanes}")

    def region(self, region: ir.Region) -> Amount:
        total: Amount = 1
        for op in region.body:
            total = self._do(p.add, total, self._op(op))
        return total

    def _op(self, op: ir.Op) -> Amount:
        if isinstance(op, ir.For):
            lo, hi = self._value(op.lo, 0), self._value(op.hi, 0)
            if lo is None or hi is None:
                trip_count: Amount = UNKNOWN_TRIP_COUNT
                self.known[op.index] = None
            else:
                trip_count = self._do(p.minimum, self._do(p.maximum, self._do(p.sub, hi, lo), 0), _MAX_TRIP_COUNT)
                self.known[op.index] = self.middle(lo, hi)
            inner = self.share(self.region(op.body), op)
            return self._do(p.mul, self._do(p.minimum, inner, 1 << 20), trip_count)
        if isinstance(op, ir.While):
            return self._do(p.mul, self._do(p.add, self.region(op.condition), self.region(op.body)), UNKNOWN_TRIP_COUNT)
        if isinstance(op, ir.If):
            return self._do(p.maximum, self.region(op.then), self.region(op.orelse))
        return int(own_cost(op))

    def _value(self, atom: ir.Atom, depth: int) -> Amount | None:
        if type(atom) is ir.Lit:
            return int(atom.value)
        assert isinstance(atom, ir.Var)
        if atom in self.known:
            return self.known[atom]
        self.known[atom] = found = self._find(atom, depth)
        return found

    def _find(self, atom: ir.Var, depth: int) -> Amount | None:
        e = self._e
        if not isinstance(atom.type, Scalar) or atom.type.kind not in "iu" or depth > _MAX_DEPTH:
            return None
        if atom in e.module.layout.parameters:
            return e.wide(atom)
        op = self._made.get(atom)
        if isinstance(op, ir.Extent):
            buffer = root_of(op.buffer)
            length = buffer.shape[op.axis]
            return length if length is not None else e.value(f"zext i32 {e.extent(buffer, op.axis)} to i64")
        if isinstance(op, ir.Load):
            buffer = root_of(op.buffer)
            if (
                buffer.kind is ir.BufferKind.TEMPORARY
                and buffer not in self._written
                and (not op.index or (isinstance(op.index[0], ir.Lit) and op.index[0].value == 0))
            ):  # type: ignore[arg-type]
                at = e.value(f"getelementptr i8, ptr %block, i64 {e.module.layout.temporaries[buffer]}")
                loaded = e.value(f"load i{atom.type.bits}, ptr {at}, align 8")
                return (
                    loaded
                    if atom.type.bits == 64
                    else e.value(f"{'sext' if atom.type.kind == 'i' else 'zext'} i{atom.type.bits} {loaded} to i64")
                )
            return None
        if isinstance(op, ir.Prim):
            if op.prim is p.cast:
                return (
                    self._value(op.args[0], depth + 1)
                    if isinstance(op.args[0].type, Scalar) and op.args[0].type.kind in "iu"
                    else None
                )
            if op.prim in _COMPUTED:
                a, b = (self._value(x, depth + 1) for x in op.args)
                return None if a is None or b is None else self._do(op.prim, a, b)
        return None
