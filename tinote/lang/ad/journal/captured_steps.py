"""A captured step (`ti.capture`) in a journal: one record, forwards and in reverse one native call each.

What the step does, and what its reverse sweep does, were recorded together (`step_capture.py`): one program, cut in two
where the function returns. What the second part reads of the first stays with the record: memory that the first part
has put aside, as the values that the step itself overwrites, and numbers. To the journal it is like a launch: it
overwrites elements that others need, and needs elements as it leaves them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.ir.buffers import Buffer
from tinote.lang.capture.plan import Plan
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.program import Captured
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions
from tinote.lang.kernels.arguments import Arguments
from tinote.runtime.memory import Memory
from tinote.source import Span


class StepFacts(NamedTuple):
    """What one way through a step does to memory. `launches`: each with what it was launched on; `loaded`, `written`:
    fields, whoever reads or writes them; `assigned`: those that Python writes to; `live_in`: what its gradient reads of
    the values that the step leaves; `overwritten`: the elements that it writes to; `disturbed`: those that its gradient
    changes meanwhile; `outputs`: of the numbers that it returns, whether each is differentiated.
    """

    launches: tuple[Arguments, ...]
    loaded: frozenset[Buffer]
    written: frozenset[Buffer]
    assigned: frozenset[Buffer]
    live_in: BufferRegions
    overwritten: BufferRegions
    disturbed: BufferRegions
    outputs: tuple[bool, ...]


class Way:
    """One way through a step, with its reverse sweep. `registers`: the numbers of the first part that the second reads,
    with those of its seeds behind; `blocks`: the memory that it reads, and where that begins in what a record keeps.
    """

    def __init__(
        self, facts: StepFacts, plan: Plan, registers: Sequence[int], seeds: Sequence[int], blocks: dict[int, int]
    ) -> None:
        self.facts = facts
        self.registers = tuple(registers)
        self.seeds = tuple(seeds)
        self.plan = plan
        self._blocks = blocks

    @property
    def live_in(self) -> BufferRegions:
        """What its gradient reads of the values that the step leaves."""
        return self.facts.live_in

    def use(self, forward: Captured, threads: int | None) -> None:
        """Run launches on at most this number of threads from now on."""
        tables = forward.tables
        self._prepared = Prepared(self.plan, tables.natives, tables.memories, threads)

    def reverse(self, kept: Memory | None, numbers: Sequence[int], seeds: Sequence[float]) -> list[float]:
        """Run the gradient of a record; gives the adjoints of its active arguments."""
        prepared = self._prepared
        if kept is not None:
            for block, offset in self._blocks.items():
                prepared.point(block, kept.address + offset)
        integers, floats = prepared.integers, prepared.floats
        for register, number in zip(self.registers, numbers, strict=True):
            integers[register] = number
        for register, seed in zip(self.seeds, seeds, strict=True):
            floats[register] = seed
        end = prepared.ends[prepared.run()]
        return [0.0 if end is None else prepared.number(part.parts[0]) for part in end.result.parts]


class StepUnderTape:
    """A captured step as tapes run it. `forward`: its first part; `ways`: by the ends of that. `blocks`: the memory
    that it puts aside, and where each begins in the `kept_bytes` of a record; `inputs`: of its arguments the positions
    of those that are active.

    `regions`: what it overwrites and needs; None where that depends on which way it takes. `written`: what it may
    overwrite.
    """

    def __init__(
        self,
        name: str,
        span: Span,
        forward: Captured,
        ways: Sequence[Way],
        blocks: dict[int, int],
        kept_bytes: int,
        inputs: Sequence[int],
        regions: AccessRegions | None,
    ) -> None:
        self.name = name
        self.span = span
        self.forward = forward
        self.ways = tuple(ways)
        self.kept_bytes = kept_bytes
        self.inputs = tuple(inputs)
        self.regions = regions
        self._blocks = blocks
        every = [way.facts for way in ways]
        self.written: BufferRegions = tuple(dict.fromkeys([one for facts in every for one in facts.overwritten]))
        self.assigned = frozenset().union(*[facts.assigned for facts in every])
        self._lock = threading.Lock()

    def use(self, threads: int | None) -> None:
        """Run launches on at most this number of threads from now on."""
        self.forward.use(threads)
        for way in self.ways:
            way.use(self.forward, threads)

    @property
    def scratch_bytes(self) -> int:
        """How many bytes its two parts need of their own."""
        plans = [self.forward.plan, *[way.plan for way in self.ways]]
        return sum([block.nbytes for plan in plans for block in plan.blocks if block.kind == "scratch"])

    def run(self, args: Sequence[Any], kept: Memory | None) -> tuple[Way, tuple[int, ...], Any]:
        """Run it: the way that it took, the numbers to remember, and what it returns."""
        forward = self.forward
        if kept is not None:
            for block, offset in self._blocks.items():
                forward.prepared.point(block, kept.address + offset)
        reached = forward.start(args)
        way = self.ways[reached]
        integers = forward.prepared.integers
        return way, tuple([integers[register] for register in way.registers]), forward.finish(reached)

    def reverse(self, event: CapturedStep, seeds: Sequence[float]) -> list[float]:
        """Run the gradient of one of its calls."""
        with self._lock:
            return event.way.reverse(event.kept, event.numbers, seeds)


class CapturedStep:
    """One call. `way`: that it took; `before` and `after`: how long the log of overwritten values was; `kept`: what it
    has put aside; `numbers`: what its gradient reads of its registers; `inputs`, `outputs`: the traced numbers that
    went in and came out.
    """

    __slots__ = ("after", "before", "inputs", "kept", "numbers", "outputs", "step", "way")

    way: Way

    def __init__(self, step: StepUnderTape, before: int, after: int) -> None:
        self.step = step
        self.before = before
        self.after = after
        self.kept: Memory | None = Memory(step.kept_bytes, clear=False) if step.kept_bytes else None
        self.numbers: tuple[int, ...] = ()
        self.inputs: tuple[int, ...] = ()
        self.outputs: tuple[int, ...] = ()

    def run(self, args: Sequence[Any]) -> Any:
        """Run it with plain arguments; gives what it returns."""
        self.way, self.numbers, returned = self.step.run(args, self.kept)
        return returned

    def release(self) -> None:
        """It will not be reversed any more."""
        self.kept = None

    @property
    def name(self) -> str:
        """The function's."""
        return self.step.name

    @property
    def span(self) -> Span:
        """Where it is defined."""
        return self.step.span

    @property
    def touched(self) -> frozenset[Buffer]:
        """All that it read or wrote."""
        return self.way.facts.loaded | self.way.facts.written

    @property
    def written(self) -> frozenset[Buffer]:
        """All that it wrote."""
        return self.way.facts.written

    @property
    def loaded(self) -> frozenset[Buffer]:
        """All that it read."""
        return self.way.facts.loaded

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of its gradient reads and writes."""
        return tuple([task for one in self.way.facts.launches for task in one.gradient_tasks])

    @property
    def gradients(self) -> set[Buffer]:
        """The gradients that its gradient reads or writes."""
        facts = self.way.facts
        found = {buffer for one in facts.launches for buffer in one.gradients}
        return found | {buffer.adjoint for buffer in facts.loaded | facts.written if buffer.adjoint is not None}
