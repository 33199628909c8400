"""The schedule of a launch, task by task: serial or parallel, iterations, private copies, and remaining atomics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tinote.compiler.codegen.llvm.parts import cut
from tinote.compiler.inspect.vectorisation_remarks import LoopVerdict
from tinote.compiler.launch.access_summary import summarise
from tinote.config import Config
from tinote.ir.buffers import Buffer, bytes_of, root_of
from tinote.ir.nodes import Atomic, Check, For, Function, Region, Task, While
from tinote.ir.query import trip_count, walk
from tinote.lazy import lazy
from tinote.remarks import Remark
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.compiler.inspect.stages import Stages
    from tinote.compiler.launch import gpu_launch
else:
    gpu_launch = lazy("tinote.compiler.launch.gpu_launch")


#: The steps whose remarks are on loops that might be parallel but run in order, and whether the step did something.
_SERIAL = {("order_iterations", False), ("watch_conflicts", True)}


class PrivateCopy(NamedTuple):
    """A private copy for each thread in place of atomics: `nbytes` for one thread, None if known only at launch."""

    target: str
    combine: str
    nbytes: int | None


class AtomicUse(NamedTuple):
    """An accumulation into memory in a task. `plain`: proved not to conflict with other threads, so that it is an
    ordinary addition; `nested`: inside a loop of the task's iteration.
    """

    target: str
    combine: str
    plain: bool
    nested: bool
    span: Span


class Workgroups(NamedTuple):
    """The workgroups of a task on a GPU: their number and their size in invocations (one for a task that cannot be
    divided). If the number of iterations is known only at launch, `count` is the maximum.
    """

    size: int
    count: int

    def __str__(self) -> str:
        return f"{self.count:,} of {self.size}"


class TaskPlan(NamedTuple):
    """One task. `iterations`: those that may run at once, None if known only at launch, 1 for a serial task.
    `loops`: which of its loops are vectorised, its own first. `atomics`: accumulations outside of
    private copies. `checks`: the number of checks that can stop it. `because`: why a loop that might have been parallel
    runs in order. `workgroups`: on a GPU. `functions`: the number of functions in its machine code, several where it is
    so long that LLVM would otherwise take seconds.
    """

    name: str
    parallel: bool
    iterations: int | None
    privates: tuple[PrivateCopy, ...]
    atomics: tuple[AtomicUse, ...]
    loops: tuple[LoopVerdict, ...]
    checks: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    operations: int
    span: Span
    because: str = ""
    workgroups: Workgroups | None = None
    functions: int = 1

    @property
    def schedule(self) -> str:
        """How it runs, in words: whether in parallel, and which of its loops are vectorised."""
        parts = ["parallel" if self.parallel else f"serial: {self.because}" if self.because else "serial"]
        for loop in self.loops:
            if self.is_head(loop):
                parts.append(loop.summary)
            elif loop.width > 1:
                parts.append(f"line {loop.line} {loop.summary}")
        if self.functions > 1 and self.workgroups is None:
            parts.append(f"long: in {self.functions} functions")
        return ", ".join(parts)

    def is_head(self, loop: LoopVerdict) -> bool:
        """Whether a loop is the one whose iterations are divided among threads."""
        return self.parallel and loop[:3] == (self.span.file, self.span.line, self.span.column)


def plan_tasks(
    fn: Function,
    config: Config | None = None,
    remarks: Iterable[Remark] = (),
    verdicts: Sequence[LoopVerdict] = (),
) -> tuple[TaskPlan, ...]:
    """The tasks of an offloaded function, in the order in which they run; none before offloading. With workgroups, if
    it is one for a GPU. `remarks`: those of its passes; `verdicts`: those on its loops.
    """
    serial = {one.loc: one.text for one in remarks if (one.step, one.done) in _SERIAL}
    judged = {verdict[:3]: verdict for verdict in verdicts}
    plans = tuple([_plan(op, serial, judged) for op in fn.region.body if isinstance(op, Task)])
    if config is None or config.arch != "gpu" or not plans:
        return plans
    groups = gpu_launch.workgroups_of(fn, config)
    return tuple([plan._replace(workgroups=Workgroups(*g)) for plan, g in zip(plans, groups, strict=True)])


def tasks_of(stages: Stages) -> tuple[TaskPlan, ...]:
    """Those of a kernel, or of its gradient, at its last step."""
    if stages.last is None:
        return ()
    return plan_tasks(stages.last, stages.config, stages.remarks, stages.verdicts)


def _plan(task: Task, serial: Mapping[Span, str], judged: Mapping[tuple[str, int, int], LoopVerdict]) -> TaskPlan:
    operations = list(walk(task.body))
    touched = summarise(task.body)
    copies = {private.copy for private in task.privates}
    privates = tuple([PrivateCopy(p.target.name, p.prim.name, bytes_of(p.target)) for p in task.privates])
    loops = [op for op in operations if isinstance(op, For)]
    places = dict.fromkeys([(op.loc.file, op.loc.line, op.loc.column) for op in (task, *operations)])
    written = {b.name for b in touched.written} | {p.target.name for p in task.privates}
    return TaskPlan(
        name=task.name,
        parallel=task.parallel,
        iterations=trip_count(*task.args) if task.parallel else 1,
        privates=privates,
        atomics=tuple(_atomics(task.body, copies)),
        loops=tuple([judged[place] for place in places if place in judged]),
        checks=sum(isinstance(op, Check) for op in operations),
        reads=tuple(sorted({b.name for b in touched.loaded})),
        writes=tuple(sorted(written)),
        operations=len(operations),
        span=_span_of(task),
        functions=1 + sum(map(len, cut(task.body).values())),
        because=next((serial[op.loc] for op in loops if not op.parallel and op.loc in serial), ""),
    )


def _span_of(task: Task) -> Span:
    """The start of a task in the source; a serial one has the start of its operations."""
    return task.loc if task.loc.line else next((op.loc for op in task.body.body if op.loc.line), task.loc)


def _atomics(region: Region, copies: set[Buffer], nested: bool = False) -> Iterator[AtomicUse]:
    for op in region.body:
        if isinstance(op, Atomic) and (target := root_of(op.buffer)) not in copies:
            yield AtomicUse(target.name, op.prim.name, op.plain, nested, op.loc)
        for inner in op.regions:
            yield from _atomics(inner, copies, nested or isinstance(op, For | While))
