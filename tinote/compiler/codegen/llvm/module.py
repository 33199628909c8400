"""LLVM modules for functions in lowered form.

    func axpy(%n: i32):                        define internal i32 @task_0(ptr %block, i64 %lo, i64 %hi, i32 %tid) { … }
      task parallel %i in 0 .. 1024: …   ->    define i32 @entry(ptr %block) { … @tn_parallel_for(…, @task_0, …) … }

The text has no addresses and no names from user code: everything outside comes through the launch block (`layout.py`),
so that equal functions give equal text for any memory. Only debug locations name the user's file, and `Module.digest`
leaves them out.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.compiler.codegen.llvm import privates as llvm_privates
from tinote.compiler.codegen.llvm.control import loop
from tinote.compiler.codegen.llvm.cost import MIN_PARALLEL_COST
from tinote.compiler.codegen.llvm.function import TaskText
from tinote.compiler.codegen.llvm.handlers import HANDLERS
from tinote.compiler.codegen.llvm.layout import FIRST_BYTE, BlockLayout
from tinote.compiler.codegen.llvm.memory import access, load_cell
from tinote.compiler.codegen.llvm.parts import cut
from tinote.compiler.codegen.llvm.ranges import range_of
from tinote.compiler.codegen.llvm.shared import Options, Shared
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.compiler.codegen.llvm.work import is_uneven, iteration_work
from tinote.errors import CompilerBug
from tinote.ir.buffers import root_of
from tinote.ir.lanes import lanes_of
from tinote.ir.nodes import Atom, Function, Lit, Load, Region, Task
from tinote.ir.types import Scalar
from tinote.runtime.digest import digest
from tinote.runtime.sites import Site

_DEFAULT = Options()
#: Elements of a private copy that the calling thread merges alone; of larger copies, each thread takes this many at
#: once. Chosen, not measured.
_MAX_MERGED_BY_CALLER = 1 << 13
#: Pieces into which a loop is cut whose iterations differ in length. Chosen, not measured.
_PIECES_OF_UNEVEN = 256
_DECLARATIONS = """\
declare i32 @tn_parallel_for(ptr, ptr, i64, i64, i64) nounwind
declare i32 @tn_parallel_for_dynamic(ptr, ptr, i64, i64, i64) nounwind
declare i32 @tn_poll(ptr, i32) nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)
declare i32 @tn_fail(ptr, i32, i32, i32, ptr) nounwind cold
declare void @tn_print(ptr, i32, i32, ptr) nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)
declare ptr @tn_arena_alloc(ptr, i32, i64) nounwind
declare i64 @tn_arena_mark(ptr, i32) nounwind
declare void @tn_arena_release(ptr, i32, i64) nounwind
"""


class LlvmModule(NamedTuple):
    """`text` for `runtime.jit`; `layout` and `sites` for `runtime.launch`.

    `digest` identifies the machine code: the text without debug locations, and the options.
    """

    text: str
    layout: BlockLayout
    sites: tuple[Site, ...]
    digest: str
    #: the offset of each task's nanoseconds in the launch block, if measured
    clocks: tuple[int, ...] = ()


def generate(fn: Function, options: Options = _DEFAULT) -> LlvmModule:
    """The module of a lowered function. Raises `CompilerBug` naming an operation without machine code."""
    return _ModuleText(fn, options).finish()


#: Number of tasks from which on the entry function calls them instead of inlining them. LLVM's work grows with the
#: square of a function's length (measured, 100 loops that each add to one element: 7.5 s inlined, 1.9 s called).
_MIN_CALLED_TASKS = 9


class _ModuleText(Shared):
    """A module under construction."""

    def __init__(self, fn: Function, options: Options) -> None:
        super().__init__(fn, options, HANDLERS)
        self._attributes = "nounwind" + (
            f' "prefer-vector-width"="{options.vector_width}"' if options.vector_width else ""
        )
        self._has_many_tasks = len(fn.region.body) >= _MIN_CALLED_TASKS
        #: the attributes of a function that the entry function alone calls
        self._called = "noinline #0" if self._has_many_tasks else "#0"
        self._clearer = ""

    def finish(self) -> LlvmModule:
        entry = _Entry(self)
        for op in self.fn.region.body:
            entry.operation(op)
        entry.close(self.fn.region.yields)
        plain, located = self._assemble(False), self._assemble(True)
        code = digest(str(self.options.vector_width), plain)
        return LlvmModule(located, self.layout, tuple(self.sites), code, tuple(entry.clocks))

    def _assemble(self, with_debug: bool) -> str:
        lines: list[str] = []
        for header, function in self.functions:
            lines += function.assemble(header, with_debug)
            lines.append("")
        lines += self.helpers.values()
        lines.append(_DECLARATIONS)
        if self.options.profile:
            lines.append("declare i64 @tn_now() nounwind")
        lines.append(f"attributes #0 = {{ {self._attributes} }}")
        lines += self.metadata.lines()
        if with_debug:
            lines += self.debug.lines()
        return "\n".join(lines) + "\n"

    # tasks

    def serial(self, task: Task, number: int) -> str:
        """A serial task as a function; returns its name."""
        e = TaskText(self, task.body, "0", task.loc)
        e.parts = cut(task.body)
        e.loops.plan(task.body, 1, e.ranges)
        e.region(task.body)
        e.do("ret i32 0")
        e.finish()
        self.add(f"define internal i32 @task_{number}(ptr %block) {self._called}", e)
        return f"@task_{number}"

    def parallel(self, task: Task, number: int, places: llvm_privates.Slice) -> str:
        e = TaskText(self, task.body, "%tid", task.loc)
        e.parts = cut(task.body)
        index = task.body.params[0]
        lows, highs = range_of(e.ranges, task.args[0]), range_of(e.ranges, task.args[1])
        e.ranges[index] = (lows[0], max(highs[1] - 1, lows[0]))
        moves = llvm_privates.begin_copies(e, task, places)
        lanes = lanes_of(task)
        plan = e.loops.plan(task.body, lanes, e.ranges)
        options = {"vectorize": task.vectorize, "reverse": False, "runs": False}
        loop(e, task.body, "%lo", "%hi", [], plan, task.loc, **options, lanes=lanes)
        llvm_privates.end_copies(e, moves)
        e.do("ret i32 0")
        e.finish()
        # Internal, so that LLVM propagates literal bounds if the entry function is the only caller.
        self.add(f"define internal i32 @task_{number}(ptr %block, i64 %lo, i64 %hi, i32 %tid) noinline #0", e)
        return f"@task_{number}"

    def clear_flags(self, e: TaskText) -> None:
        """Before a task with private copies runs, in the entry function."""
        if not self._has_many_tasks:
            llvm_privates.clear_flags(e)
            return
        if not self._clearer:
            self._clearer = "@clear_flags"
            clearing = TaskText(self, Region((), ()), "0", self.fn.loc)
            llvm_privates.clear_flags(clearing)
            clearing.do("ret void")
            clearing.finish()
            self.add(f"define internal void {self._clearer}(ptr %block) {self._called}", clearing)
        e.do(f"call void {self._clearer}(ptr %block)")

    def merger(self, task: Task, number: int, which: int, offset: int) -> str:
        # At the kernel's own line, so that LLVM's remarks do not take it for a loop of the user.
        e = TaskText(self, Region((), ()), "%tid", self.fn.loc)
        llvm_privates.merge(e, task.privates[which], offset)
        self.add(
            f"define internal i32 @merge_{number}_{which}(ptr %block, i64 %lo, i64 %hi, i32 %tid) {self._called}", e
        )
        return f"@merge_{number}_{which}"


class _Entry:
    """The entry function: runs the tasks in order and returns at the first that fails."""

    def __init__(self, module: _ModuleText) -> None:
        self.module = module
        self.e = TaskText(module, Region((), ()), "0", module.fn.loc)
        self._count = 0
        self.clocks: list[int] = []
        if module.options.profile:
            for op in module.fn.region.body:
                if isinstance(op, Task):
                    self._take_clock()
        for buffer, offset in module.layout.temporaries.items():
            at = self.e.value(f"getelementptr i8, ptr %block, i64 {offset}")
            size = (llvm_privates.buffer_bytes(buffer) + 7) & ~7
            self.e.do(
                f"store i64 0, ptr {at}, align 8"
                if size == 8
                else f"call void @llvm.memset.p0.i64(ptr align 8 {at}, i8 0, i64 {size}, i1 false)"
            )

    def operation(self, op: object) -> None:
        e, module = self.e, self.module
        if isinstance(op, Load):
            # Not through `Emitter.load`: a temporary between tasks may have been written by the previous task.
            buffer = root_of(op.buffer)
            offset = module.layout.temporaries[buffer] + (int(op.index[0].value) if op.index else 0)  # type: ignore[union-attr]
            at = e.value(f"getelementptr i8, ptr %block, i64 {offset}")
            e.env[op.out] = load_cell(e, buffer.dtype, at, access(e, buffer))
            return
        if not isinstance(op, Task):
            raise CompilerBug("LLVM code", f"only tasks stand at the top of a lowered function, not {op!r}")
        number, self._count = self._count, self._count + 1
        e.mark = module.debug.location(op.loc, e.debug_scope)
        started = self._now() if module.options.profile else ""
        if op.parallel:
            self._parallel(op, number)
        else:
            name = module.serial(op, number)
            e.leave_if_failed(e.value(f"call i32 {name}(ptr %block)"))
        if module.options.profile:
            at = e.value(f"getelementptr i8, ptr %block, i64 {self.clocks[number]}")
            e.do(f"store i64 {e.value(f'sub i64 {self._now()}, {started}')}, ptr {at}, align 8")

    # measuring

    def _take_clock(self) -> None:
        """A slot for one task's time. A task that is not reached takes none."""
        layout = self.module.layout
        self.clocks.append(FIRST_BYTE + 8 * layout.slots)
        layout.slots += 1
        at = self.e.value(f"getelementptr i8, ptr %block, i64 {self.clocks[-1]}")
        self.e.do(f"store i64 0, ptr {at}, align 8")

    def _now(self) -> str:
        """The monotonic clock, in nanoseconds."""
        return self.e.value("call i64 @tn_now()")

    def _parallel(self, task: Task, number: int) -> None:
        e, module = self.e, self.module
        places = llvm_privates.place_copies(task)
        module.layout.scratch_bytes = max(module.layout.scratch_bytes, places.size)
        name = module.parallel(task, number, places)
        lo, hi = e.wide(task.args[0]), e.wide(task.args[1])
        order = "ult" if isinstance(task.args[0].type, Scalar) and task.args[0].type.kind == "u" else "slt"
        some, none = e.label(), e.label()
        e.do(f"br i1 {e.value(f'icmp {order} i64 {lo}, {hi}')}, label %{some}, label %{none}")
        e.begin(some)
        if task.privates:
            here, e.mark = e.mark, module.debug.location(module.fn.loc, e.debug_scope)  # as `merger`
            module.clear_flags(e)
            e.mark = here
        e.leave_if_failed(self._run(task, name, lo, hi))
        for which, (private, offset) in enumerate(zip(task.privates, places.offsets, strict=True)):
            merger = module.merger(task, number, which, offset)
            count = llvm_privates.merge_count(e, private)
            # A target whose shape is known only at launch is small (`passes/updates/privatise.py`).
            if private.is_flat or int(count) <= _MAX_MERGED_BY_CALLER:
                e.value(f"call i32 {merger}(ptr %block, i64 0, i64 {count}, i32 0)")
            else:
                run = f"ptr %block, ptr {merger}, i64 0, i64 {count}, i64 {_MAX_MERGED_BY_CALLER}"
                e.value(f"call i32 @tn_parallel_for({run})")
        e.do(f"br label %{none}")
        e.begin(none)

    def _run(self, task: Task, name: str, lo: str, hi: str) -> str:
        """Run a parallel task: on this thread when there is little to do, else on all. Returns its status."""
        e = self.e
        work = iteration_work(e, task, lo, hi)
        alone_call = f"call i32 {name}(ptr %block, i64 {lo}, i64 {hi}, i32 0)"
        if isinstance(work, int):
            grain = str(MIN_PARALLEL_COST // work)
            bounds = task.args
            if isinstance(bounds[0], Lit) and isinstance(bounds[1], Lit) and int(hi) - int(lo) <= int(grain):
                return e.value(alone_call)
        else:
            grain = e.value(f"udiv i64 {MIN_PARALLEL_COST}, {work}")
        trip_count = e.value(f"sub i64 {hi}, {lo}")
        alone, together, after = e.label(), e.label(), e.label()
        e.do(f"br i1 {e.value(f'icmp ule i64 {trip_count}, {grain}')}, label %{alone}, label %{together}")
        e.begin(alone)
        status_alone = e.value(alone_call)
        e.do(f"br label %{after}")
        e.begin(together)
        loop = "tn_parallel_for"
        if is_uneven(task):
            loop, part = "tn_parallel_for_dynamic", e.value(f"udiv i64 {trip_count}, {_PIECES_OF_UNEVEN}")
            is_larger = e.value(f"icmp ugt i64 {part}, {grain}")
            grain = e.value(f"select i1 {is_larger}, i64 {part}, i64 {grain}")
        status_together = e.value(f"call i32 @{loop}(ptr %block, ptr {name}, i64 {lo}, i64 {hi}, i64 {grain})")
        e.do(f"br label %{after}")
        e.begin(after)
        return e.value(f"phi i32 [ {status_alone}, %{alone} ], [ {status_together}, %{together} ]")

    def close(self, yields: tuple[Atom, ...]) -> None:
        e, module = self.e, self.module
        e.mark = module.debug.location(module.fn.loc, e.debug_scope)
        for y, offset in zip(yields, module.layout.results, strict=True):
            t = y.type
            assert isinstance(t, Scalar)
            at = e.value(f"getelementptr i8, ptr %block, i64 {offset}")
            # Integers fill their slot, so that it can be read as an i64.
            e.do(
                f"store {TYPES[t]} {e.use(y)}, ptr {at}, align 8"
                if t.kind == "f"
                else f"store i64 {e.wide(y)}, ptr {at}, align 8"
            )
        e.do("ret i32 0")
        e.finish()
        module.add("define i32 @entry(ptr %block) #0", e)
