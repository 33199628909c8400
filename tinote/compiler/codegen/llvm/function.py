"""The code of one task: the walk over its operations."""

from __future__ import annotations

from tinote.compiler.codegen.llvm import lanes as llvm_lanes
from tinote.compiler.codegen.llvm import memory as llvm_memory
from tinote.compiler.codegen.llvm.cost import Loops
from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.offsets import offset_arithmetic
from tinote.compiler.codegen.llvm.parts import Part, Parts
from tinote.compiler.codegen.llvm.primitives import emit_prim
from tinote.compiler.codegen.llvm.ranges import result_range
from tinote.compiler.codegen.llvm.shared import Shared
from tinote.compiler.codegen.llvm.stacks import Stacks
from tinote.compiler.codegen.llvm.sums import steps_of_sums
from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.affine import Interval, span_of_type
from tinote.ir.float_ranges import as_integer
from tinote.ir.types import Lanes, Scalar, i64
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
            handler = self.module.handlers.get(type(op))
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
        """The emitter of a part, with the facts known here."""
        part = TaskText(self.module, ir.Region((), ()), "%tid", loc)
        part.caller, part.root, part.stacks = self, self.root, Stacks(part, self.stacks)
        part.ranges, part.definitions, part.magnitudes = self.ranges, self.definitions, self.magnitudes
        part.written, part.tiles, part.one_lane = self.written, self.tiles, self.one_lane
        part.parts, part.loops, part._offsets, part._sums = self.parts, self.loops, self._offsets, self._sums
        part.groups, part.group_text, part.proved_text = self.groups, self.group_text, self.proved_text
        part._stack_left = self._stack_left
        return part

    def leave_if_failed(self, status: str) -> None:
        """Continue only if the call returned 0."""
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
        """The range of an integer before it is wrapped, if known."""
        made_of = op.args[0].type
        if op.prim is p.cast and isinstance(made_of, Scalar) and made_of.kind == "f":
            return as_integer(self.float_range(op.args[0]), span_of_type(t))
        return result_range(self.ranges, op, t)

    def fuel(self) -> str:
        """The counter of work."""
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
