"""The code of one task: control flow, checks, prints, and the walk over its operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tinote.compiler.codegen.llvm import cells as llvm_cells
from tinote.compiler.codegen.llvm import faults as llvm_faults
from tinote.compiler.codegen.llvm import lanes as llvm_lanes
from tinote.compiler.codegen.llvm import memory as llvm_memory
from tinote.compiler.codegen.llvm.cost import (
    COST_BETWEEN_POLLS,
    LoopPlan,
    Loops,
    Polling,
    is_latency_bound,
    is_too_long,
)
from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.offsets import offset_arithmetic
from tinote.compiler.codegen.llvm.parts import Part, Parts
from tinote.compiler.codegen.llvm.primitives import emit_prim
from tinote.compiler.codegen.llvm.ranges import range_of, result_range
from tinote.compiler.codegen.llvm.shared import Shared
from tinote.compiler.codegen.llvm.stacks import Stacks
from tinote.compiler.codegen.llvm.sums import steps_of_sums
from tinote.compiler.codegen.llvm.text import TYPES
from tinote.compiler.codegen.llvm.tiles import load_tile, store_tile
from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import Interval, span_of_type
from tinote.ir.checks import checks_alone, without_checks
from tinote.ir.float_ranges import as_integer
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile, lanes_of
from tinote.ir.query import walk
from tinote.ir.types import Lanes, Scalar, i64, u64
from tinote.source import NOWHERE, Span


class TaskText(FunctionEmitter):
    """Emits the operations of one function."""

    def __init__(self, module: Shared, region: ir.Region, tid: str, loc: Span) -> None:
        super().__init__(module, region, tid, loc)
        self.parts: Parts = {}
        self.stacks = Stacks(self)
        self.loops = Loops()
        #: access groups of the parallel loops around the code under construction
        self.groups: tuple[int, ...] = ()
        self._offsets = offset_arithmetic(region)
        self._sums = steps_of_sums(region) if self.flags else set[ir.Op]()
        self._fuel = ""

    # walking

    def region(self, region: ir.Region) -> list[str]:
        """Emit a region's operations; its yields as text."""
        self.stacks.enter()
        outer = self.mark
        location, scope = self.module.debug.location, self.debug_scope
        parts = {} if self.gathered else {part.first: part for part in self.parts.get(region, ())}
        done = 0
        for k, op in enumerate(region.body):
            if k < done:
                continue
            if k in parts:
                done = parts[k].end
                self._call_part(parts[k])
                continue
            handler = _HANDLERS.get(type(op))
            if handler is None:
                raise CompilerBug("LLVM code", f"no code for {op!r}")
            self.mark = location(op.loc, scope) if op.loc is not NOWHERE else outer
            handler(self, op)
        self.mark = outer
        yields = [self.use(y) for y in region.yields]
        self.stacks.leave(region)
        return yields

    def _call_part(self, cut: Part) -> None:
        """Emit operations as a function of their own and call it."""
        part = self._begin_part(cut.region.body[0].loc)
        part.region(cut.region)
        for v in cut.results:
            value = part.use(v)
            at = part.value(f"getelementptr i8, ptr {part.room()}, i64 {self.reserve(v)}")
            llvm_memory.store_cell(part, v.type, value, at)  # type: ignore[arg-type]
        self.made.update(cut.results, part.made)
        part.do("ret i32 0")
        part.finish()
        given = [f"{ty} {text}" for text, (ty, _) in part.captured.items()]
        taken = [f"{ty} {name}" for ty, name in part.captured.values()]
        called = self.module.add_part(", ".join(["ptr %block", "i32 %tid", *taken]), part)
        arguments = ", ".join(["ptr %block", f"i32 {self.tid}", *given])
        self.leave_if_failed(self.value(f"call i32 {called}({arguments})"))

    def _begin_part(self, loc: Span) -> TaskText:
        """A function that goes on with what is known here."""
        part = TaskText(self.module, ir.Region((), ()), "%tid", loc)
        part.caller, part.root, part.stacks = self, self.root, Stacks(part, self.stacks)
        part.ranges, part.definitions, part.magnitudes = self.ranges, self.definitions, self.magnitudes
        part.written, part.tiles, part.one_lane = self.written, self.tiles, self.one_lane
        part.parts, part.loops, part._offsets, part._sums = self.parts, self.loops, self._offsets, self._sums
        part.groups, part.group_text, part.proved_text = self.groups, self.group_text, self.proved_text
        part._stack_left = self._stack_left
        return part

    def leave_if_failed(self, status: str) -> None:
        """Go on only if what was called has given 0."""
        on, failed = self.label(), self.label()
        good = self.value(f"icmp eq i32 {status}, 0")
        self.do(f"br i1 {good}, label %{on}, label %{failed}, !prof !{self.module.likely}")
        self.cold_block(failed, f"ret i32 {status}")
        self.begin(on)

    def prim(self, op: ir.Prim) -> None:
        out = op.outs[0]
        t = out.type
        if isinstance(t, Lanes):
            llvm_lanes.prim(self, op)
            return
        if op.prim is p.extract:
            llvm_lanes.extract(self, op)
            return
        if not isinstance(t, Scalar):
            raise CompilerBug("LLVM code", f"a tensor value in machine code: {op!r}")
        if t.bits >= 32 and t.kind == "i":
            known = self._result_range(op, t)
            fits = known is not None and t.lowest <= known[0] and known[1] <= t.highest
            if fits:
                self.ranges[out] = known  # type: ignore[assignment]
            self.no_wrap = fits or out in self._offsets
        else:
            self.no_wrap = False
        if op.prim is p.cast and t is i64 and op.args[0] in self.widened:
            self.env[out] = self.widened[op.args[0]]  # type: ignore[index]
            return
        operands = [self.use(a) for a in op.args]
        self.summing = op in self._sums
        self.env[out] = emit_prim(self, op.prim, t, op.args, operands)
        self.definitions[out] = op

    def _result_range(self, op: ir.Prim, t: Scalar) -> Interval | None:
        """What an integer lies between before it is wrapped, if anything is known."""
        made_of = op.args[0].type
        if op.prim is p.cast and isinstance(made_of, Scalar) and made_of.kind == "f":
            return as_integer(self.float_range(op.args[0]), span_of_type(t))
        return result_range(self.ranges, op, t)

    # loops

    def for_(self, op: ir.For) -> None:
        plan = self.loops.plans[op]
        index = op.index
        lows, highs = range_of(self.ranges, op.lo), range_of(self.ranges, op.hi)
        self.ranges[index] = (lows[0], max(highs[1] - 1, lows[0]))
        lo, hi = self.wide(op.lo), self.wide(op.hi)
        initial = [self.use(a) for a in op.initial]
        outs = self.loop(
            op.body,
            lo,
            hi,
            initial,
            plan,
            op.loc,
            vectorize=op.vectorize,
            reverse=op.reverse,
            runs=lows[1] < highs[0],
            lanes=lanes_of(op),
        )
        for out, text in zip(op.outs, outs, strict=True):
            self.env[out] = text

    def loop(
        self,
        body: ir.Region,
        lo: str,
        hi: str,
        initial: list[str],
        plan: LoopPlan,
        loc: Span,
        *,
        vectorize: bool,
        reverse: bool,
        runs: bool,
        lanes: int,
    ) -> list[str]:
        """A loop over [lo, hi) in i64; `runs`: at least one iteration for certain; `lanes`: how many iterations the
        body stands for. Returns the carried values at its end.
        """
        # Only what is proved is promised: iterations of a parallel loop may meet all the same.
        group = self.module.metadata.distinct("!{}") if vectorize else None
        if plan.polling is not Polling.STRIPS:
            return self._plain_loop(body, lo, hi, initial, plan, loc, group, vectorize, reverse, runs, lanes)
        # Strips of iterations, each a loop that nothing interrupts.
        step = plan.strip
        less = "ult" if body.params[0].type is u64 else "slt"
        carried = [TYPES[v.type] for v in _carried(body, lanes)]  # type: ignore[index]
        before, strip, done = self.block, self.label(), self.label()
        before = self._guard(lo, hi, strip, done, runs, less)
        self.begin(strip)
        start = self.name()
        hole = self.hole()
        values = [self.name() for _ in carried]
        holes = [self.hole() for _ in carried]
        # The rest cannot wrap as an unsigned number, however far apart the bounds are.
        rest = self.value(f"sub i64 {start}, {lo}" if reverse else f"sub i64 {hi}, {start}")
        count = self.value(f"call i64 @llvm.umin.i64(i64 {rest}, i64 {step})")
        end = self.value(f"sub i64 {start}, {count}" if reverse else f"add i64 {start}, {count}")
        first, last = (end, start) if reverse else (start, end)
        results = self._plain_loop(body, first, last, values, plan, loc, group, vectorize, reverse, True, lanes)
        self._burn(self.value(f"mul nuw nsw i64 {count}, {plan.cost}"), loc)
        more = self.value(f"icmp ne i64 {end}, {lo if reverse else hi}")
        latch = self.block
        self.do(f"br i1 {more}, label %{strip}, label %{done}")
        self.fill(hole, f"{start} = phi i64 [ {hi if reverse else lo}, %{before} ], [ {end}, %{latch} ]")
        for at, name, ty, a, b in zip(holes, values, carried, initial, results, strict=True):
            self.fill(at, f"{name} = phi {ty} [ {a}, %{before} ], [ {b}, %{latch} ]")
        self.begin(done)
        if runs:
            return results
        return [
            self.value(f"phi {ty} [ {a}, %{before} ], [ {b}, %{latch} ]")
            for ty, a, b in zip(carried, initial, results, strict=True)
        ]

    def _guard(self, lo: str, hi: str, enter: str, skip: str, runs: bool, less: str) -> str:
        """Enter a loop if it has an iteration; returns the block that this is decided in."""
        if runs:
            self.do(f"br label %{enter}")
        else:
            self.do(f"br i1 {self.value(f'icmp {less} i64 {lo}, {hi}')}, label %{enter}, label %{skip}")
        return self.block

    def _plain_loop(
        self,
        body: ir.Region,
        lo: str,
        hi: str,
        initial: list[str],
        plan: LoopPlan,
        loc: Span,
        group: int | None,
        vectorize: bool,
        reverse: bool,
        runs: bool,
        lanes: int,
    ) -> list[str]:
        """The loop itself: entered if it has an iteration, left at its bottom."""
        if vectorize and not is_too_long(body) and any(isinstance(op, ir.Check) for op in walk(body)):
            self._checks_first(body, lo, hi)
            body = without_checks(body)
        index = body.params[0]
        t = index.type
        assert isinstance(t, Scalar)
        unsigned = t is u64
        params = _carried(body, lanes)
        carried = [TYPES[v.type] for v in params]  # type: ignore[index]
        loop, done, rest = self.label(), self.label(), ""
        start = self.value(f"add i64 {hi}, -1") if reverse else lo
        before = self._guard(lo, hi, loop, done, runs, "ult" if unsigned else "slt")
        self.begin(loop)
        iteration = self.name()
        hole = self.hole()
        values = [self.name() for _ in carried]
        holes = [self.hole() for _ in carried]
        self._bind_index(index, iteration)
        for v, name in zip(params, values, strict=True):
            self.env[v] = name
        if lanes > 1:
            mask = body.params[1]
            assert isinstance(mask.type, Lanes)
            # The rest cannot wrap as an unsigned number, but what follows the last lanes may.
            rest = self.value(f"sub i64 {hi}, {iteration}")
            self.env[mask] = llvm_lanes.mask_below(self, rest, mask.type)
        outer = (self.groups, self.group_text, self.proved_text)
        if group is not None:
            self.groups = (*self.groups, group)
            chosen = (
                group
                if len(self.groups) == 1
                else self.module.metadata.add("!{" + ", ".join(f"!{g}" for g in self.groups) + "}")
            )
            self.group_text = f", !llvm.access.group !{chosen}"
        self.proved_text = f", !llvm.access.group !{group}" if vectorize else ""
        results = self.region(body)
        self.groups, self.group_text, self.proved_text = outer
        if plan.polling is Polling.ITERATIONS:
            self._burn(str(plan.cost * lanes), loc)
        wraps = "" if unsigned or lanes > 1 else " nsw"
        following = self.value(f"add{wraps} i64 {iteration}, {-1 if reverse else lanes}")
        if reverse:
            more = self.value(f"icmp {'ugt' if unsigned else 'sgt'} i64 {iteration}, {lo}")
        elif lanes > 1:
            more = self.value(f"icmp ugt i64 {rest}, {lanes}")
        else:
            more = self.value(f"icmp {'ult' if unsigned else 'slt'} i64 {following}, {hi}")
        latch = self.block
        note = self._loop_note(group, body, twice=vectorize and is_latency_bound(body))
        self.do(f"br i1 {more}, label %{loop}, label %{done}{note}")
        self.fill(hole, f"{iteration} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        for at, name, ty, a, b in zip(holes, values, carried, initial, results, strict=True):
            self.fill(at, f"{name} = phi {ty} [ {a}, %{before} ], [ {b}, %{latch} ]")
        self.begin(done)
        if runs:
            return [self.value(f"phi {ty} [ {b}, %{latch} ]") for ty, b in zip(carried, results, strict=True)]
        return [
            self.value(f"phi {ty} [ {a}, %{before} ], [ {b}, %{latch} ]")
            for ty, a, b in zip(carried, initial, results, strict=True)
        ]

    def _bind_index(self, index: ir.Var, iteration: str) -> None:
        """Say that the index of a loop is `iteration`, an i64."""
        t = index.type
        assert isinstance(t, Scalar)
        narrow = f"trunc {'nsw' if t.kind == 'i' else 'nuw'} i64 {iteration} to {TYPES[t]}"
        self.env[index] = self.value(narrow) if t.bits < 64 else iteration
        self.widened[index] = iteration

    def _checks_first(self, body: ir.Region, lo: str, hi: str) -> None:
        """Make the checks of all iterations of an independent loop before it: first whether all hold, several
        iterations at once; if not, one iteration after the other up to the fault.
        """
        index, alone = body.params[0], checks_alone(body)
        less = "ult" if index.type is u64 else "slt"
        self.gathered = self.first("alloca i1")
        self.do(f"store i1 true, ptr {self.gathered}")
        with self.counted(lo, hi, less) as iteration:
            self._bind_index(index, iteration)
            self.region(alone)
        good = self.value(f"load i1, ptr {self.gathered}")
        self.gathered = ""
        on, search = self.label(), self.label()
        self.do(f"br i1 {good}, label %{on}, label %{search}, !prof !{self.module.likely}")
        self.begin(search)
        with self.counted(lo, hi, less) as iteration:
            self._bind_index(index, iteration)
            self.region(alone)
        self.do(f"br label %{on}")
        self.begin(on)

    def _loop_note(self, group: int | None, body: ir.Region, *, twice: bool) -> str:
        """Loop metadata. `twice`: run two iterations (or vectors of iterations) side by side. LLVM does so for short
        iterations only.

        `vectorize.enable` never asks for vectors: LLVM takes it as leave to reorder sums whatever the flags say, and
        warns where it cannot vectorise.
        """
        metadata = self.module.metadata
        notes = [] if group is None else [metadata.add(f'!{{!"llvm.loop.parallel_accesses", !{group}}}')]
        if twice:
            notes.append(metadata.add('!{!"llvm.loop.interleave.count", i32 2}'))
        if is_too_long(body):
            notes.append(metadata.add('!{!"llvm.loop.vectorize.enable", i1 false}'))
        if not notes:
            return ""
        told = ", ".join([f"!{note}" for note in notes])
        return f", !llvm.loop !{metadata.distinct(f'!{{{{self}}, {told}}}')}"

    @contextmanager
    def counted(self, lo: str, hi: str, less: str = "slt") -> Iterator[str]:
        """A plain loop around what is emitted inside the `with`; gives the i64 that counts. `less` compares counts."""
        loop, done = self.label(), self.label()
        before = self._guard(lo, hi, loop, done, False, less)
        self.begin(loop)
        iteration, hole = self.name(), self.hole()
        yield iteration
        following = self.value(f"add{' nsw' if less == 'slt' else ''} i64 {iteration}, 1")
        more = self.value(f"icmp {less} i64 {following}, {hi}")
        self.fill(hole, f"{iteration} = phi i64 [ {lo}, %{before} ], [ {following}, %{self.block} ]")
        self.do(f"br i1 {more}, label %{loop}, label %{done}")
        self.begin(done)

    def while_(self, op: ir.While) -> None:
        types = [TYPES[v.type] for v in op.body.params]  # type: ignore[index]
        initial = [self.use(a) for a in op.initial]
        before, head, inside, done = self.block, self.label(), self.label(), self.label()
        self.do(f"br label %{head}")
        self.begin(head)
        values = [self.name() for _ in types]
        holes = [self.hole() for _ in types]
        for region in op.regions:
            self.env.update(zip(region.params, values, strict=True))
        outer = (self.groups, self.group_text, self.proved_text)
        self.groups, self.group_text, self.proved_text = (), "", ""
        (condition,) = self.region(op.condition)
        self.do(f"br i1 {condition}, label %{inside}, label %{done}")
        self.begin(inside)
        results = self.region(op.body)
        self._burn(str(self.loops.plans[op].cost), op.loc)
        self.groups, self.group_text, self.proved_text = outer
        latch = self.block
        self.do(f"br label %{head}")
        for at, name, ty, a, b in zip(holes, values, types, initial, results, strict=True):
            self.fill(at, f"{name} = phi {ty} [ {a}, %{before} ], [ {b}, %{latch} ]")
        self.begin(done)
        self.env.update(zip(op.outs, values, strict=True))

    def if_(self, op: ir.If) -> None:
        condition = self.use(op.condition)
        then, orelse, join = self.label(), self.label(), self.label()
        otherwise = orelse if op.orelse.body or op.outs else join
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")
        ends: list[tuple[list[str], str]] = []
        for label, region in ((then, op.then), (orelse, op.orelse)):
            if label is orelse and otherwise is join:
                break
            self.begin(label)
            yields = self.region(region)
            ends.append((yields, self.block))
            self.do(f"br label %{join}")
        self.begin(join)
        for k, out in enumerate(op.outs):
            (a, at), (b, bt) = ((yields[k], block) for yields, block in ends)
            self.env[out] = self.value(f"phi {TYPES[out.type]} [ {a}, %{at} ], [ {b}, %{bt} ]")  # type: ignore[index]

    # the stop word

    def _burn(self, work: str, loc: Span) -> None:
        """Account for work of the loop at `loc`; look at the stop word when enough has come together."""
        fuel = self.fuel()
        total = self.value(f"add nuw nsw i64 {self.value(f'load i64, ptr {fuel}')}, {work}")
        self.do(f"store i64 {total}, ptr {fuel}")
        poll, on = self.label(), self.label()
        little = self.value(f"icmp ult i64 {total}, {COST_BETWEEN_POLLS}")
        self.do(f"br i1 {little}, label %{on}, label %{poll}, !prof !{self.module.likely}")
        status, stop, stopped = self.name(), self.name(), self.label()
        self.cold_block(
            poll,
            f"store i64 0, ptr {fuel}",
            f"{status} = call i32 @tn_poll(ptr %block, i32 {self.module.loop_site(loc)})",
            f"{stop} = icmp eq i32 {status}, 0",
            f"br i1 {stop}, label %{on}, label %{stopped}, !prof !{self.module.likely}",
        )
        self.cold_block(stopped, f"ret i32 {status}")
        self.begin(on)

    def fuel(self) -> str:
        """Where work is counted."""
        if not self._fuel and isinstance(self.caller, TaskText):
            self._fuel = self.capture("ptr", self.caller.fuel())
        elif not self._fuel:
            self._fuel = self.first("alloca i64")
            self.head.append(f"store i64 0, ptr {self._fuel}")
        return self._fuel

    def finish(self) -> None:
        """Call once when the body is complete."""
        if self.room_bytes:
            self.head.insert(0, f"%room = alloca [{self.room_bytes} x i8], align 64")
        if self.words:
            self.head.insert(0, f"%words = alloca [{self.words} x i64]")


def _carried(body: ir.Region, lanes: int) -> tuple[ir.Var, ...]:
    """The parameters of a loop after its index, and its mask if it runs in lanes."""
    return body.params[2:] if lanes > 1 else body.params[1:]


_HANDLERS: dict[type[ir.Op], Callable[[TaskText, ir.Op], None]] = {
    ir.Prim: TaskText.prim,
    ir.Load: llvm_memory.load,
    ir.Store: llvm_memory.store,
    ir.Atomic: llvm_memory.atomic,
    ir.Extent: llvm_memory.extent,
    ir.For: TaskText.for_,
    ir.While: TaskText.while_,
    ir.If: TaskText.if_,
    ir.Local: lambda e, op: llvm_cells.local(e, e.stacks, op),  # pyright: ignore[reportArgumentType]
    ir.Get: llvm_cells.get,
    ir.Set: llvm_cells.set_,
    ir.NewStack: lambda e, op: e.stacks.new(op),  # pyright: ignore[reportArgumentType]
    ir.Push: lambda e, op: e.stacks.push(op),  # pyright: ignore[reportArgumentType]
    ir.Pop: lambda e, op: e.stacks.pop(op),  # pyright: ignore[reportArgumentType]
    ir.Check: llvm_faults.check,
    ir.Print: llvm_faults.print_,
    LoadTile: lambda e, op: load_tile(e, e.stacks, op),  # pyright: ignore[reportArgumentType]
    StoreTile: store_tile,
    MaskedLoad: llvm_lanes.masked_load,
    MaskedStore: llvm_lanes.masked_store,
    Broadcast: llvm_lanes.broadcast,
    Ramp: llvm_lanes.ramp,
    Reduce: llvm_lanes.reduce,
}  # type: ignore[assignment]
