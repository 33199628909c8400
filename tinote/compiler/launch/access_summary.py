"""Access summaries: the memory that a launch reads and writes, task by task."""

from typing import NamedTuple

from tinote.ir.buffers import Buffer, BufferKind, root_of
from tinote.ir.nodes import Atomic, Function, Load, MemoryOp, Region, Store, Task
from tinote.ir.query import walk

#: Memory that is there before and after a launch.
_OUTSIDE = (BufferKind.FIELD, BufferKind.ARRAY)


class AccessSummary(NamedTuple):
    """The fields and arrays that a piece of code loads from, stores to, and accumulates into."""

    loaded: frozenset[Buffer]
    stored: frozenset[Buffer]
    accumulated: frozenset[Buffer]

    @property
    def written(self) -> frozenset[Buffer]:
        return self.stored | self.accumulated


class TaskSummary(NamedTuple):
    """One task of a launch, in the order in which they run."""

    name: str
    parallel: bool
    accesses: AccessSummary


def summarise(region: Region) -> AccessSummary:
    """What the code in `region` does to fields and arrays. An atomic operation whose old value is used loads too."""
    loaded: set[Buffer] = set()
    stored: set[Buffer] = set()
    accumulated: set[Buffer] = set()
    for op in walk(region):
        if not isinstance(op, MemoryOp):
            continue
        buffer = root_of(op.buffer)
        if buffer.kind not in _OUTSIDE:
            continue
        if isinstance(op, Store):
            stored.add(buffer)
        elif isinstance(op, Atomic):
            accumulated.add(buffer)
        if isinstance(op, Load) or op.outs:
            loaded.add(buffer)
    return AccessSummary(frozenset(loaded), frozenset(stored), frozenset(accumulated))


def summarise_tasks(fn: Function) -> tuple[TaskSummary, ...]:
    """The tasks of an offloaded function. A private copy counts as an accumulation into its target."""
    found: list[TaskSummary] = []
    for op in fn.region.body:
        if isinstance(op, Task):
            accesses = summarise(op.body)
            targets = {root_of(private.target) for private in op.privates}
            accumulated = accesses.accumulated | {target for target in targets if target.kind in _OUTSIDE}
            found.append(TaskSummary(op.name, op.parallel, accesses._replace(accumulated=accumulated)))
    return tuple(found)
