"""Vectorises parallel loops: one iteration per lane of the vector registers, with masks for divergent control flow.

    for parallel %i: i32 in 0i32 .. %n:                for parallel %i: i32, %m: u1x16 in 0i32 .. %n:
      %a: i64 = cast %i                                  %a: i64 = cast %i
      %b: i64 = mul %a, 4i64                             %b: i64 = mul %a, 4i64
      %x: f32 = load @x.flat[%b]                         %x: f32x16 = load @x.flat[%b] where %m
      %y: f32 = while carrying %v: f32 = %x:             %g, %l, %y = while carrying %go = true, %k = %m, %v = %x:
        %c: u1 = lt %v, 4.0f32                 ->          yield %go
        yield %c                                         do %go, %k, %v:
      do %v:                                               %c: u1x16 = lt %v, 4.0f32
        %w: f32 = mul %v, %v                               %on: u1x16 = and %k, %c
        yield %w                                           %some: u1 = reduce or %on
                                                           %0, %1, %2 = if %some:
      store @y.flat[%b], %y                                  %w: f32x16 = mul %v, %v
                                                             %3: f32x16 = select %on, %w, %v
                                                             yield true, %on, %3
                                                           else:
                                                             yield false, %k, %v
                                                           yield %0, %1, %2
                                                         store @y.flat[%b] where %m, %y

Uniform values stay scalar (`ir/divergence.py`). A divergent `if` runs both of its sides, each for the lanes that take
it, and skips a side that none takes. A divergent loop runs while a lane is active; lanes that have left keep their
carried values. Loops with the same first iteration for all lanes count together, so that indices stay uniform.
Consecutive elements are moved as vectors, others gathered and scattered, except for rows that are needed whole: those
are transposed on load and store (`choose_tiles.py`). A private copy that a task accumulates into gets a column for each
lane, and the columns are summed up at the task's end. Elsewhere, updates of one element by all lanes are reduced first,
and updates that may coincide are made lane by lane. A stack has a row of lanes for each push, a local array one for
each element. Checks report the first lane that fails.

`choose_lanes.py` decides which loops run in lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.passes.analyses.choose_lanes import Chooser, Columns, LanesPlan, Machine
from tinote.compiler.passes.loops.in_lanes.control import for_, if_, while_
from tinote.compiler.passes.loops.in_lanes.loop import LoopInLanes
from tinote.compiler.passes.loops.in_lanes.memory import atomic, cell, load, load_tile, store, update_tile
from tinote.compiler.passes.loops.in_lanes.stacks import stack
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.lanes import StoreTile, lanes_of
from tinote.ir.query import definitions, walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import i64
from tinote.remarks import Remark, Report, unread


def vectorise(fn: ir.Function, machine: Machine, report: Report = unread, *, always: bool = False) -> ir.Function:
    """`fn` with loops vectorised where that pays. `always`: wherever it is legal."""
    return _Vectoriser(Chooser(definitions(fn.region), machine, always=always), report).run(fn)


class _Vectoriser(Rewriter):
    """Vectorises the chosen loops. Nothing is renamed outside them."""

    def __init__(self, chooser: Chooser, report: Report) -> None:
        super().__init__()
        self.chooser = chooser
        self.report = report
        self.privates: tuple[ir.Private, ...] = ()
        self.plans: dict[ir.Op, LanesPlan] = {}
        #: the private copies of the task that have columns
        self.columns: dict[ir.Buffer, Columns] = {}

    def nest(self, op: ir.Op) -> None:
        if isinstance(op, ir.Task):
            self.privates = op.privates
        chooses = not self.plans and isinstance(op, ir.For | ir.Task) and op.parallel and lanes_of(op) == 1
        if chooses:
            self.plans = self.decided(op)  # type: ignore[arg-type]
            self.columns = _common_columns(op, self.plans) if isinstance(op, ir.Task) else {}
        plan = self.plans.get(op)
        if plan is None:
            super().nest(op)
        else:
            self.emit(_loop_in_lanes(LoopInLanes(op, plan, self.columns, _visit)))  # type: ignore[arg-type]
        if chooses:
            if self.columns:
                self.out[-1] = self.with_columns(self.out[-1])
            self.plans, self.columns = {}, {}

    def decided(self, loop: ir.For | ir.Task) -> dict[ir.Op, LanesPlan]:
        """The plans for a parallel loop and those inside it, with a remark on each decision."""
        found: dict[ir.Op, LanesPlan] = {}
        for op, plan in self.chooser.plans(loop, self.privates).items():
            if isinstance(plan, str):
                self.report(Remark("vectorise", op.loc, plan))
            else:
                self.report(Remark("vectorise", op.loc, f"vectorised ×{plan.lanes} (masked)", done=True))
                found[op] = plan
        return found

    def with_columns(self, task: ir.Op) -> ir.Task:
        """The task with its private copies replaced by those that have columns."""
        new = task.rebuilt(task.args, task.regions)
        assert isinstance(new, ir.Task)
        new.privates = tuple(
            [
                ir.Private(one.target, self.columns[one.copy].copy, one.prim) if one.copy in self.columns else one
                for one in new.privates
            ]
        )
        return new

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        """An update outside vectorised loops: it goes to the first lane's column."""
        columns = self.columns.get(root_of(op.buffer)) if isinstance(op, ir.Atomic) else None
        if columns is None:
            return KEEP
        assert isinstance(op, ir.Atomic)
        at = self.apply(p.mul, i64, op, op.index[0], ir.Lit(columns.lanes, i64))
        self.emit(op.elsewhere(columns.view, (at, op.value)))
        return DROP


def _common_columns(task: ir.Task, plans: dict[ir.Op, LanesPlan]) -> dict[ir.Buffer, Columns]:
    """The private copies for which all vectorised loops agree on the number of columns."""
    found: dict[ir.Buffer, Columns] = {}
    refused: set[ir.Buffer] = set()
    for loop, plan in plans.items():
        for op in walk(loop.regions[0]):
            copy = root_of(op.buffer) if isinstance(op, ir.Atomic) else None
            if copy is None or copy.kind is not ir.BufferKind.PRIVATE:
                continue
            columns = plan.columns.get(copy)
            if columns is None or found.setdefault(copy, columns).lanes != columns.lanes:
                refused.add(copy)
    return {copy: columns for copy, columns in found.items() if copy not in refused}


def _loop_in_lanes(e: LoopInLanes) -> ir.Op:
    """The loop in lanes."""
    body = e.loop.regions[0]
    params = (body.params[0], e.loop_mask)

    def enter() -> tuple[ir.Var, ...]:
        for tile in dict.fromkeys(e.tiles.values()):
            load_tile(e, tile)
        return params

    def leave() -> tuple[ir.Atom, ...]:
        for tile, (rows, where) in e.loaded.items():
            if tile.written:
                e.emit(StoreTile(tile.buffer, where, rows, e.loop.loc))
        return ()

    inside = e.region(body, leave, enter)
    new = e.loop.rebuilt(e.loop.args, (inside,))
    assert isinstance(new, ir.For | ir.Task)
    new.vectorize = False
    return new


def _visit(e: LoopInLanes, op: ir.Op) -> None:
    """Vectorise one operation."""
    e.op = op
    if isinstance(op, ir.Prim):
        e.on_prim(op)
    elif isinstance(op, ir.If):
        if_(e, op)
    elif isinstance(op, ir.For):
        for_(e, op)
    elif isinstance(op, ir.While):
        while_(e, op)
    elif isinstance(op, ir.Local | ir.Get | ir.Set):
        cell(e, op)
    elif op in e.tiles:
        update_tile(e, op, e.tiles[op])  # type: ignore[arg-type]
    elif isinstance(op, ir.Atomic):
        atomic(e, op)
    elif isinstance(op, ir.NewStack | ir.Push | ir.Pop):
        stack(e, op)
    elif e.divergence.uniform(*op.args):
        e.emit(op)
    elif isinstance(op, ir.Load):
        load(e, op)
    elif isinstance(op, ir.Store):
        store(e, op)
    elif isinstance(op, ir.Check):
        e.on_check(op)
    else:
        raise TypeError(f"{op!r} in a loop in lanes")
