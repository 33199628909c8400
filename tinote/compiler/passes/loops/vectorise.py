"""Runs parallel loops in lanes: several iterations at once, one in each lane of the vector registers, with masks for
what they do differently.

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

What is the same for all lanes stays as it is (`ir/divergence.py`). An `if` whose lanes disagree runs both of its sides,
each for the lanes that take it and not at all if none does; a loop runs while a lane is active, and what it carries
stays for those that have left it. Loops that have the same first iteration for all lanes count together, so that
indices stay uniform. Elements that follow each other from lane to lane are moved as vectors, others gathered and
scattered, but for rows that are needed whole: they are transposed on the way in and out (`choose_tiles.py`). A private
copy that a task accumulates into gets a column for each lane, and the columns are summed up at the task's end;
elsewhere what lanes add to one and the same element is summed up first, and what may meet in one is added lane by
lane. A stack has a row of lanes for each push, a local array one for each place. Checks name the first lane that fails.

Which loops run in lanes `choose_lanes.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tinote.compiler.passes.analyses.choose_lanes import Chooser, Columns, LanesPlan, Machine, are_apart, is_cheap
from tinote.compiler.passes.analyses.choose_tiles import RowTile, row_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.atoms import false, true
from tinote.ir.buffers import root_of
from tinote.ir.divergence import Stride
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile, lanes_of
from tinote.ir.primitives import Primitive
from tinote.ir.query import definitions, uses, walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import Lanes, Ref, Scalar, Stack, Tile, Type, element_type, i32, i64, shape_of, u1
from tinote.remarks import Remark, Report, unread


def vectorise(fn: ir.Function, machine: Machine, report: Report = unread, *, always: bool = False) -> ir.Function:
    """`fn` with the loops in lanes for which that pays; `always`: all that can run so."""
    return _Vectoriser(Chooser(definitions(fn.region), machine, always=always), report).run(fn)


class _Vectoriser(Rewriter):
    """Nothing is renamed outside of the loops."""

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
            self.emit(_Loop(op, plan, self.columns).result())  # type: ignore[arg-type]
        if chooses:
            if self.columns:
                self.out[-1] = self.with_columns(self.out[-1])
            self.plans, self.columns = {}, {}

    def decided(self, loop: ir.For | ir.Task) -> dict[ir.Op, LanesPlan]:
        """The plans for a parallel loop and those inside of it, and a remark on each that is decided about."""
        found: dict[ir.Op, LanesPlan] = {}
        for op, plan in self.chooser.plans(loop, self.privates).items():
            if isinstance(plan, str):
                self.report(Remark("vectorise", op.loc, plan))
            else:
                self.report(Remark("vectorise", op.loc, f"{plan.lanes} iterations at a time, in lanes", done=True))
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
        """An update outside of the loops in lanes: of the first lane's column."""
        columns = self.columns.get(root_of(op.buffer)) if isinstance(op, ir.Atomic) else None
        if columns is None:
            return KEEP
        assert isinstance(op, ir.Atomic)
        at = ir.Var(i64)
        self.emit(ir.Prim(p.mul, (op.index[0], ir.Lit(columns.lanes, i64)), (at,), op.loc, op.origin))
        new = op.rebuilt((at, op.value))
        assert isinstance(new, ir.Atomic)
        new.buffer = columns.view
        self.emit(new)
        return DROP


def _common_columns(task: ir.Task, plans: dict[ir.Op, LanesPlan]) -> dict[ir.Buffer, Columns]:
    """The private copies for which all loops in lanes that update them want as many columns."""
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


class _Loop:
    """A loop while it is brought into lanes. `wide`: the lanes of values that differ; the scalar of a linear value, the
    first lane's, keeps its variable.
    """

    def __init__(self, loop: ir.For | ir.Task, plan: LanesPlan, columns: dict[ir.Buffer, Columns]) -> None:
        self.loop = loop
        self.divergence = plan.divergence
        self.lanes = plan.lanes
        self.used = uses(loop.regions[0])
        self.tiles = plan.tiles
        self.columns = columns
        #: for each tile its variable, and the operands that say where its rows are
        self.loaded: dict[RowTile, tuple[ir.Var, tuple[ir.Atom, ...]]] = {}
        self.out: list[ir.Op] = []
        self.wide: dict[ir.Var, ir.Var] = {}
        #: what was put into `wide` in each region that is open: it goes with the region
        self.scopes: list[list[ir.Var]] = []
        self.stacks: dict[ir.Var, ir.Var] = {}
        self.cells: dict[ir.Var, ir.Var] = {}
        #: how linear values are computed
        self.linear: dict[ir.Var, ir.Prim] = {}
        self.loop_mask = ir.Var(self.type(u1), "mask")
        self.mask: ir.Atom = self.loop_mask
        self.op: ir.Op = loop

    def result(self) -> ir.Op:
        """The loop in lanes."""
        body = self.loop.regions[0]
        params = (body.params[0], self.loop_mask)

        def enter() -> tuple[ir.Var, ...]:
            for tile in dict.fromkeys(self.tiles.values()):
                self.load_tile(tile)
            return params

        def leave() -> tuple[ir.Atom, ...]:
            for tile, (rows, where) in self.loaded.items():
                if tile.written:
                    self.emit(StoreTile(tile.buffer, where, rows, self.loop.loc))
            return ()

        inside = self.region(body, leave, enter)
        new = self.loop.rebuilt(self.loop.args, (inside,))
        assert isinstance(new, ir.For | ir.Task)
        new.vectorize = False
        return new

    # making operations

    def type(self, t: Type) -> Lanes:
        assert isinstance(t, Scalar)
        return Lanes(t, self.lanes)

    def emit(self, op: ir.Op) -> None:
        self.out.append(op)

    def prim(self, prim: Primitive, *args: ir.Atom, t: Type) -> ir.Var:
        out = ir.Var(t)
        self.emit(ir.Prim(prim, args, (out,), self.op.loc, self.op.origin))
        return out

    def all_of(self, mask: ir.Atom, condition: ir.Atom) -> ir.Atom:
        return self.prim(p.and_, mask, condition, t=self.type(u1))

    def without(self, mask: ir.Atom, condition: ir.Atom) -> ir.Atom:
        return self.all_of(mask, self.prim(p.logical_not, condition, t=self.type(u1)))

    def chosen(self, mask: ir.Atom, new: ir.Atom, old: ir.Atom) -> ir.Atom:
        t = new.type if isinstance(new.type, Lanes) else old.type
        return new if new is old else self.prim(p.select, mask, new, old, t=t)

    def reduce(self, prim: Primitive, lanes: ir.Atom) -> ir.Var:
        assert isinstance(lanes.type, Lanes)
        out = ir.Var(lanes.type.dtype)
        self.emit(Reduce(prim, lanes, (out,), self.op.loc, self.op.origin))
        return out

    def bind(self, v: ir.Var, lanes: ir.Var) -> None:
        """Say what the lanes of `v` are, until the region that is open ends."""
        self.wide[v] = lanes
        self.scopes[-1].append(v)

    def lanes_for(self, v: ir.Var) -> ir.Var:
        """A variable for the lanes of `v`, bound to it."""
        lanes = ir.Var(self.type(v.type), v.name)
        self.bind(v, lanes)
        return lanes

    def each(self, atom: ir.Atom) -> ir.Atom:
        """What each lane has for `atom`: lanes, or a scalar that counts for all of them."""
        if type(atom) is not ir.Var or self.divergence.step(atom) == 0:
            return atom
        found = self.wide.get(atom)
        if found is not None:
            return found
        made = self.linear.get(atom)
        if made is None:  # an index
            lanes = self.lanes_for(atom)
            self.emit(Ramp((atom, self.step(atom)), (lanes,), (), self.op.loc))
        else:
            args = tuple([self.each(a) for a in made.args])
            lanes = self.lanes_for(atom)
            self.emit(ir.Prim(made.prim, args, (lanes,), made.loc, made.origin))
        return lanes

    def step(self, atom: ir.Atom) -> ir.Atom:
        """How a linear value grows from lane to lane."""
        step, t = self.divergence.step(atom), atom.type
        assert step is not None and isinstance(t, Scalar)
        if not isinstance(step, Stride):
            return ir.Lit(step, t)
        product: ir.Atom = ir.Lit(step.factor, t)
        for factor in step.by:
            product = self.prim(p.mul, factor, product, t=t)
        return product

    def spread(self, atom: ir.Atom) -> ir.Var:
        """The lanes of `atom`."""
        each = self.each(atom)
        if isinstance(each, ir.Var) and isinstance(each.type, Lanes):
            return each
        out = ir.Var(self.type(each.type), each.name if isinstance(each, ir.Var) else "")
        self.emit(Broadcast((each,), (out,), (), self.op.loc))
        return out

    # regions

    def region(
        self,
        region: ir.Region | None,
        yields: Callable[[], Sequence[ir.Atom]],
        enter: Callable[[], tuple[ir.Var, ...]] = tuple,
    ) -> ir.Region:
        """What `region` becomes: `enter` gives the parameters and emits what stands before its body, `yields` the
        results.
        """
        outer, self.out = self.out, []
        self.scopes.append([])
        params = enter()
        for op in region.body if region is not None else ():
            self.visit(op)
        results = tuple(yields())
        for v in self.scopes.pop():
            self.wide.pop(v, None)
        body, self.out = self.out, outer
        return ir.Region(params, tuple(body), results)

    def visit(self, op: ir.Op) -> None:
        self.op = op
        if isinstance(op, ir.Prim):
            self.on_prim(op)
        elif isinstance(op, ir.If):
            self.on_if(op)
        elif isinstance(op, ir.For):
            self.on_for(op)
        elif isinstance(op, ir.While):
            self.on_while(op)
        elif isinstance(op, ir.Local | ir.Get | ir.Set):
            self.on_cell(op)
        elif op in self.tiles:
            self.on_tile(op, self.tiles[op])  # type: ignore[arg-type]
        elif isinstance(op, ir.Atomic):
            self.on_atomic(op)
        elif isinstance(op, ir.NewStack | ir.Push | ir.Pop):
            self.on_stack(op)
        elif self.divergence.uniform(*op.args):
            self.emit(op)
        elif isinstance(op, ir.Load):
            self.on_load(op)
        elif isinstance(op, ir.Store):
            self.on_store(op)
        elif isinstance(op, ir.Check):
            self.on_check(op)
        else:
            raise TypeError(f"{op!r} in a loop in lanes")

    # operations

    def on_prim(self, op: ir.Prim) -> None:
        step = self.divergence.step(op.out)
        if step is not None:
            self.emit(op)
            self.linear[op.out] = op
        else:
            args = tuple([self.each(a) for a in op.args])
            self.emit(ir.Prim(op.prim, args, (self.lanes_for(op.out),), op.loc, op.origin))

    def offset(self, op: ir.MemoryOp) -> ir.Atom:
        """Where the lanes find their elements: the first lane's offset if they follow each other, else each one's."""
        (offset,) = op.index
        step = self.divergence.step(offset)
        if step == op.buffer.dtype.size:
            return offset
        if not step:
            return self.spread(offset)
        out = ir.Var(self.type(i64))
        self.emit(Ramp((offset, self.step(offset)), (out,), (), op.loc))
        return out

    def load_tile(self, tile: RowTile) -> None:
        """Before all else: the rows of all lanes."""
        known, axes = row_of(tile.buffer)
        step: ir.Atom = ir.Lit(known, i64)
        for axis in axes:
            extent = ir.Var(i32)
            self.emit(ir.Extent(root_of(tile.buffer), axis, (extent,), self.op.loc))
            step = self.prim(p.mul, self.widened(extent), step, t=i64)
        index = self.widened(self.loop.regions[0].params[0])
        first: ir.Atom = self.prim(p.mul, index, step, t=i64)
        if tile.start:
            first = self.prim(p.add, first, ir.Lit(tile.start, i64), t=i64)
        where = (first, step, step if tile.width is None else ir.Lit(tile.width, i64), self.mask)
        rows = ir.Var(Tile(self.type(tile.buffer.dtype)), root_of(tile.buffer).name)
        self.emit(LoadTile(tile.buffer, where, (rows,), self.op.loc))
        self.loaded[tile] = rows, where

    def on_tile(self, op: ir.Load | ir.Store | ir.Atomic, tile: RowTile) -> None:
        """An access to one place of all rows."""
        rows, (first, *_) = self.loaded[tile]
        place = self.prim(p.sub, op.index[0], first, t=i64)
        t = self.type(op.buffer.dtype)
        # What lanes without an iteration hold is not written back.
        everywhere = self.mask is self.loop_mask
        held = self.lanes_for(op.out) if isinstance(op, ir.Load) else ir.Var(t)
        if not isinstance(op, ir.Store) or not everywhere:
            self.emit(ir.Get((rows, place), (held,), (), op.loc, op.origin))
        if isinstance(op, ir.Load):
            return
        value = self.spread(op.value)
        new = self.prim(op.prim, held, value, t=t) if isinstance(op, ir.Atomic) else value
        kept = new if everywhere else self.chosen(self.mask, new, held)
        self.emit(ir.Set((rows, place, kept), (), (), op.loc, op.origin))

    def on_cell(self, op: ir.Local | ir.Get | ir.Set) -> None:
        """A local cell or array: each lane has its own, and what one place of all of them holds lies side by side."""
        cell = op.out if isinstance(op, ir.Local) else op.args[0]
        assert isinstance(cell, ir.Var) and isinstance(cell.type, Ref)
        dtype = element_type(cell.type)
        if isinstance(op, ir.Local):
            count = math.prod(shape_of(cell.type.content))
            memory = self.cells[cell] = ir.Var(Tile(self.type(dtype)), cell.name)
            self.emit(ir.Local((ir.Lit(count * dtype.size, i64),), (memory,), (), op.loc, op.origin))
            for initial in op.args:
                self.emit(ir.Set((memory, ir.Lit(0, i64), self.spread(initial)), (), (), op.loc, op.origin))
            return
        if cell not in self.cells:
            self.emit(op)  # of all iterations, at the same place
            return
        memory = self.cells[cell]
        indices = op.args[1:] if isinstance(op, ir.Get) else op.args[1:-1]
        place = self.place(cell, indices)
        everywhere = self.mask is self.loop_mask
        held = self.lanes_for(op.out) if isinstance(op, ir.Get) else ir.Var(self.type(dtype))
        if isinstance(op, ir.Get) or not everywhere:
            self.emit(ir.Get((memory, place), (held,), (), op.loc, op.origin))
        if isinstance(op, ir.Set):
            value = self.spread(op.args[-1])
            kept = value if everywhere else self.chosen(self.mask, value, held)
            self.emit(ir.Set((memory, place, kept), (), (), op.loc, op.origin))

    def place(self, cell: ir.Var, indices: Sequence[ir.Atom]) -> ir.Atom:
        """How many bytes into an array an element lies. Lanes that take no part may have any index."""
        assert isinstance(cell.type, Ref)
        total: ir.Atom = ir.Lit(0, i64)
        for index, extent in zip(indices, shape_of(cell.type.content), strict=True):
            wide = self.widened(self.each(index))
            if isinstance(wide, ir.Lit):
                wide = ir.Lit(min(max(int(wide.value), 0), extent - 1), i64)
            else:
                t = wide.type
                wide = self.prim(
                    p.minimum, self.prim(p.maximum, wide, ir.Lit(0, i64), t=t), ir.Lit(extent - 1, i64), t=t
                )
            total = self.sum(self.product(total, extent), wide)
        return self.product(total, element_type(cell.type).size)

    def sum(self, a: ir.Atom, b: ir.Atom) -> ir.Atom:
        if isinstance(a, ir.Lit) and isinstance(b, ir.Lit):
            return ir.Lit(int(a.value) + int(b.value), i64)
        if isinstance(a, ir.Lit) and a.value == 0:
            return b
        return self.prim(p.add, a, b, t=a.type if isinstance(a.type, Lanes) else b.type)

    def product(self, a: ir.Atom, factor: int) -> ir.Atom:
        if isinstance(a, ir.Lit):
            return ir.Lit(int(a.value) * factor, i64)
        return self.prim(p.mul, a, ir.Lit(factor, i64), t=a.type)

    def on_load(self, op: ir.Load) -> None:
        offset = self.offset(op)
        self.emit(MaskedLoad(op.buffer, offset, self.mask, (self.lanes_for(op.out),), op.loc, op.origin))

    def on_store(self, op: ir.Store) -> None:
        self.emit(MaskedStore(op.buffer, self.offset(op), self.mask, self.spread(op.value), op.loc, op.origin))

    def on_column(self, op: ir.Atomic, columns: Columns) -> None:
        """An update of a private copy: each lane has its own column."""
        value, (offset,) = self.spread(op.value), op.index
        size, t = op.buffer.dtype.size, self.type(i64)
        if self.divergence.step(offset) == 0:
            # All lanes have the same row, and those that take no part change nothing.
            value = self.chosen(self.mask, value, ir.Lit(_start(op), op.buffer.dtype))
            at, mask = self.prim(p.mul, offset, ir.Lit(self.lanes, i64), t=i64), self.spread(true)
        else:
            at, mask = self.prim(p.mul, self.spread(offset), ir.Lit(self.lanes, i64), t=t), self.mask
            lane = ir.Var(t)
            self.emit(Ramp((ir.Lit(0, i64), ir.Lit(size, i64)), (lane,), (), op.loc))
            at = self.prim(p.add, at, lane, t=t)
        old = ir.Var(self.type(op.buffer.dtype))
        self.emit(MaskedLoad(columns.view, at, mask, (old,), op.loc, op.origin))
        new = self.prim(op.prim, old, value, t=old.type)
        self.emit(MaskedStore(columns.view, at, mask, new, op.loc, op.origin))

    def on_atomic(self, op: ir.Atomic) -> None:
        columns = self.columns.get(root_of(op.buffer))
        if columns is not None:
            self.on_column(op, columns)
            return
        if self.divergence.uniform(*op.index) and not op.outs:
            t = op.buffer.dtype
            value = self.spread(op.value)
            total = self.reduce(op.prim, self.chosen(self.mask, value, ir.Lit(_start(op), t)))
            self.emit(op.rebuilt((*op.index, total)))
            return
        if not are_apart(op, self.divergence):
            self.one_by_one(op)
            return
        value, offset = self.spread(op.value), self.offset(op)
        old = self.lanes_for(op.out) if op.outs else ir.Var(value.type)
        self.emit(MaskedLoad(op.buffer, offset, self.mask, (old,), op.loc, op.origin))
        new = self.prim(op.prim, old, value, t=value.type)
        self.emit(MaskedStore(op.buffer, offset, self.mask, new, op.loc, op.origin))

    def one_by_one(self, op: ir.Atomic) -> None:
        """An update that each lane makes after the other: two may have one element."""
        mask, operands = self.mask, [self.each(a) for a in op.args]
        lane = ir.Var(i32, "lane")

        def of_lane(a: ir.Atom) -> ir.Atom:
            return self.prim(p.extract, a, lane, t=a.type.dtype) if isinstance(a.type, Lanes) else a

        # What each lane found, if that is wanted: lane by lane it takes the place of zeros.
        carried = tuple([ir.Var(self.type(v.type), v.name) for v in op.outs])
        zeros = tuple([self.spread(_zero(v.type)) for v in op.outs])

        def update() -> tuple[ir.Atom, ...]:
            outs = tuple([ir.Var(v.type) for v in op.outs])
            self.emit(op.rebuilt(tuple([of_lane(a) for a in operands]), (), outs))
            return outs

        def each() -> tuple[ir.Atom, ...]:
            found = tuple([ir.Var(v.type) for v in op.outs])
            idle = ir.Region((), (), tuple([_zero(v.type) for v in op.outs]))
            self.emit(ir.If(of_lane(mask), self.region(None, update), idle, found, op.loc, op.origin))
            if not found:
                return ()
            numbers = ir.Var(self.type(i32))
            self.emit(Ramp((ir.Lit(0, i32), ir.Lit(1, i32)), (numbers,), (), op.loc))
            this = self.prim(p.eq, numbers, lane, t=self.type(u1))
            return tuple([self.chosen(this, self.spread(a), old) for a, old in zip(found, carried, strict=True)])

        body = self.region(None, each, lambda: (lane, *carried))
        outs = tuple([self.lanes_for(v) for v in op.outs])
        self.emit(ir.For(ir.Lit(0, i32), ir.Lit(self.lanes, i32), zeros, body, outs, op.loc, origin=op.origin))

    def on_stack(self, op: ir.NewStack | ir.Push | ir.Pop) -> None:
        """A row of a stack holds what all lanes push at once, those included that take no part: as pops take back what
        pushes left, one after the other, they run for the same lanes.
        """
        stack = op.out if isinstance(op, ir.NewStack) else op.args[0]
        assert isinstance(stack, ir.Var) and isinstance(stack.type, Stack)
        if self.divergence.step(stack) == 0:
            args = op.args
            if isinstance(op, ir.NewStack) and not self.divergence.uniform(*args):
                args = (self.most(op.args[0]),)
            self.emit(op if args is op.args else op.rebuilt(args))
            return
        if isinstance(op, ir.NewStack):
            assert isinstance(stack.type.content, Scalar)
            self.stacks[stack] = ir.Var(Stack(self.type(stack.type.content)), stack.name)
            self.emit(op.rebuilt(tuple([self.most(a) for a in op.args]), (), (self.stacks[stack],)))
        elif isinstance(op, ir.Push):
            self.emit(op.rebuilt((self.stacks[stack], self.spread(op.args[1]))))
        else:
            self.emit(op.rebuilt((self.stacks[stack],), (), (self.lanes_for(op.out),)))

    def most(self, capacity: ir.Atom) -> ir.Atom:
        """The largest capacity that a lane asks for: it is a trip count, and lanes count together."""
        if self.divergence.uniform(capacity):
            return capacity
        return self.reduce(p.maximum, self.chosen(self.mask, self.spread(capacity), ir.Lit(0, i64)))

    def on_check(self, op: ir.Check) -> None:
        condition, *shown = [self.each(a) for a in op.args]
        idle = self.prim(p.logical_not, self.mask, t=self.type(u1))
        holds = self.prim(p.or_, idle, condition, t=self.type(u1))
        self.emit(op.rebuilt((holds, *shown)))

    def on_if(self, op: ir.If) -> None:
        if self.divergence.uniform(op.condition):
            wide = self.differ(op.outs)
            regions = tuple([self.region(r, lambda r=r: self.results(r.yields, wide)) for r in op.regions])
            self.emit(op.rebuilt(op.args, regions, self.bound(op.outs, wide)))
            return
        condition = self.spread(op.condition)
        if is_cheap(op):
            sides: list[list[ir.Atom]] = []
            for region in op.regions:
                for inner in region.body:
                    self.visit(inner)
                self.op = op
                sides.append([self.each(y) for y in region.yields])
        else:
            outer = self.mask
            sides = [self.side(op.then, self.all_of(outer, condition))]
            plain = not op.orelse.body
            sides.append(
                [self.each(y) for y in op.orelse.yields]
                if plain
                else self.side(op.orelse, self.without(outer, condition))
            )
        for out, a, b in zip(op.outs, *sides, strict=True):
            self.emit(ir.Prim(p.select, (condition, a, b), (self.lanes_for(out),), op.loc, op.origin))

    def side(self, region: ir.Region, mask: ir.Atom) -> list[ir.Atom]:
        """One side of a divergent `if`, for the lanes of `mask`, skipped if there is none."""
        outer, op = self.mask, self.op
        some = self.reduce(p.or_, mask)
        self.mask = mask
        then = self.region(region, lambda: [self.spread(y) for y in region.yields])
        self.mask, self.op = outer, op
        orelse = self.region(None, lambda: [self.spread(_zero(y.type)) for y in region.yields])
        outs = tuple([ir.Var(self.type(y.type)) for y in region.yields])
        self.emit(ir.If(some, then, orelse, outs, op.loc, op.origin))
        return [*outs]

    def differ(self, variables: Sequence[ir.Var]) -> list[bool]:
        """Which of these become lanes."""
        return [self.divergence.step(v) != 0 for v in variables]

    def results(self, atoms: Sequence[ir.Atom], wide: Sequence[bool]) -> list[ir.Atom]:
        """Atoms that a region yields or that a loop begins with, as lanes where these are wanted."""
        return [self.spread(a) if w else a for a, w in zip(atoms, wide, strict=True)]

    def bound(self, variables: Sequence[ir.Var], wide: Sequence[bool]) -> tuple[ir.Var, ...]:
        """Variables that are bound here, as lanes where these are wanted."""
        return tuple([self.lanes_for(v) if w else v for v, w in zip(variables, wide, strict=True)])

    def on_for(self, op: ir.For) -> None:
        divergent = op in self.divergence.divergent
        outer, wide = self.mask, self.differ(op.carried)
        initial = tuple(self.results(op.initial, wide))
        carried: tuple[ir.Var, ...] = ()
        counter, lo, hi, start = op.index, op.lo, op.hi, None
        if self.divergence.step(op.lo) == 0:
            limit = self.each(op.hi)
        else:
            # Lanes begin at different indices, and count from there.
            counter, lo = ir.Var(i64), ir.Lit(0, i64)
            start = self.widened(self.each(op.lo) if divergent else op.lo)
            end = self.widened(self.each(op.hi) if divergent else op.hi)
            hi = limit = self.prim(p.sub, end, start, t=start.type if isinstance(start.type, Lanes) else end.type)
        if divergent:
            t = element_type(limit.type)
            hi = self.reduce(p.maximum, self.chosen(outer, limit, ir.Lit(t.lowest, t)))

        def enter() -> tuple[ir.Var, ...]:
            nonlocal carried
            carried = self.bound(op.carried, wide)
            if start is not None:
                self.count_from(start, counter, op)
            if divergent:
                self.mask = self.all_of(outer, self.prim(p.lt, counter, limit, t=self.type(u1)))
            return (counter, *carried)

        def leave() -> list[ir.Atom]:
            self.op = op
            results = self.results(op.body.yields, wide)
            if not divergent:
                return results
            if op.reverse:
                return self.waiting(self.mask, results, carried)
            return self.settled(self.mask, results, carried, op.outs)

        body = self.region(op.body, leave, enter)
        self.mask, self.op = outer, op
        new = op.rebuilt((lo, hi, *initial), (body,), self.bound(op.outs, wide))
        assert isinstance(new, ir.For)
        # Its iterations may be independent, but there are no lanes left to run them in.
        new.parallel = new.vectorize = False
        self.emit(new)

    def settled(
        self, mask: ir.Atom, new: Sequence[ir.Atom], old: Sequence[ir.Atom], outs: Sequence[ir.Var]
    ) -> list[ir.Atom]:
        """What a loop carries on: lanes that have left it keep what they left with, if anybody asks for that."""
        values = zip(new, old, outs, strict=True)
        return [self.chosen(mask, n, o) if out in self.used else n for n, o, out in values]

    def waiting(self, mask: ir.Atom, new: Sequence[ir.Atom], old: Sequence[ir.Atom]) -> list[ir.Atom]:
        """What a reverse loop carries on: lanes of fewer iterations come in later, with what they began with."""
        return [self.chosen(mask, n, o) for n, o in zip(new, old, strict=True)]

    def widened(self, atom: ir.Atom) -> ir.Atom:
        """An integer, or lanes of integers, in 64 bits."""
        if isinstance(atom, ir.Lit):
            return ir.Lit(int(atom.value), i64)
        t = self.type(i64) if isinstance(atom.type, Lanes) else i64
        return atom if atom.type == t else self.prim(p.cast, atom, t=t)

    def count_from(self, start: ir.Atom, counter: ir.Var, op: ir.For) -> None:
        """Bind the index of a loop that lanes begin at different places."""
        if self.divergence.step(op.index) is None:
            index = self.prim(p.add, start, counter, t=self.type(i64))
            out = self.lanes_for(op.index)
        else:
            first = self.widened(op.lo)
            index, out = self.prim(p.add, first, counter, t=i64), op.index
        prim, args = (p.cast, (index,)) if element_type(out.type) is not i64 else (p.add, (index, ir.Lit(0, i64)))
        self.emit(ir.Prim(prim, args, (out,), op.loc, op.origin))

    def on_while(self, op: ir.While) -> None:
        if op in self.divergence.divergent:
            self.on_divergent_while(op)
            return
        wide = self.differ(op.body.params)
        initial = tuple(self.results(op.initial, wide))
        condition, body = (
            self.region(r, lambda r=r, w=w: self.results(r.yields, w), lambda r=r: self.bound(r.params, wide))
            for r, w in ((op.condition, [False]), (op.body, wide))
        )
        self.emit(op.rebuilt(initial, (condition, body), self.bound(op.outs, wide)))

    def on_divergent_while(self, op: ir.While) -> None:
        """The condition is asked inside of the body, whose rest runs for the lanes for which it holds; the loop ends
        where it holds for none.
        """
        outer, every = self.mask, [True] * len(op.initial)
        initial = (true, outer, *self.results(op.initial, every))

        def flags() -> tuple[ir.Var, ir.Var]:
            return ir.Var(u1, "go"), ir.Var(self.type(u1), "mask")

        asked = tuple([ir.Var(self.type(v.type), v.name) for v in op.body.params])
        again = flags()
        condition = ir.Region((*again, *asked), (), (again[0],))
        _, active = params = flags()
        carried: tuple[ir.Var, ...] = ()
        outs: tuple[ir.Var, ...] = ()

        def enter() -> tuple[ir.Var, ...]:
            nonlocal carried
            carried = self.bound(op.body.params, every)
            for v, lanes in zip(op.condition.params, carried, strict=True):
                self.bind(v, lanes)
            self.mask = active
            return (*params, *carried)

        def work() -> list[ir.Atom]:
            """After the condition: the body for the lanes that go on."""
            nonlocal outs
            self.op = op
            on = self.mask = self.all_of(active, self.spread(op.condition.yields[0]))
            some = self.reduce(p.or_, on)

            def results() -> list[ir.Atom]:
                self.op = op
                new = self.results(op.body.yields, every)
                return [true, on, *self.settled(on, new, carried, op.outs)]

            then = self.region(op.body, results)
            orelse = ir.Region((), (), (false, active, *carried))
            outs = tuple([ir.Var(v.type) for v in (*params, *carried)])
            self.op = op
            self.emit(ir.If(some, then, orelse, outs, op.loc, op.origin))
            return [*outs]

        body = self.region(op.condition, work, enter)
        self.mask, self.op = outer, op
        left = flags()
        self.emit(op.rebuilt(initial, (condition, body), (*left, *self.bound(op.outs, every))))


def _start(op: ir.Atomic) -> float:
    """What changes nothing; -0.0 leaves a sum of negative zeros what it is."""
    t = op.buffer.dtype
    return -0.0 if op.prim is p.add and t.kind == "f" else p.neutral(op.prim, t)


def _zero(t: Type) -> ir.Lit:
    assert isinstance(t, Scalar)
    return ir.Lit(0.0 if t.kind == "f" else 0, t)
