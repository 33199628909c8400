"""A captured step (`ti.capture`) in a journal: one record, with one native call each for the step and its gradient.

The step and its reverse sweep were recorded together (`step_capture.py`): one program, cut in two where the function
returns. The record keeps the results of the first part that the second reads: saved memory, such as the values that the
step overwrites, and numbers. To the journal it is like a launch: it overwrites elements that others need, and needs
elements as it leaves them. Where these depend on the arguments (`x[t + 1, i]`), they are computed before each call,
which is then one record only if the step does not overwrite elements that its own gradient needs. The sweep provides
temporary adjoints of memory without a gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.compiler.launch.access_summary import TaskSummary
from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints, temporary_shadow
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.targets import prepared
from tinote.lang.index_regions import IndexRegion, IndexRegions
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions, of_several
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.session.state import memory_of, session
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import Memory
from tinote.source import Span

#: Greatest number of cached sets of argument values of a step, each with its accessed elements.
_MOST_KNOWN = 4096

#: A function that computes a number from the inputs of a call.
Choice = Callable[[Sequence[Any]], Any]


class Touching(NamedTuple):
    """The memory effects of one event of a step whose accessed elements depend on the call: those of `arguments` of a
    launch with `values`, some replaced by `choices`; or `written`, for all arguments.
    """

    arguments: Arguments | None
    values: tuple[Any, ...]
    choices: tuple[tuple[int, Choice], ...]
    written: BufferRegions = ()

    def at(self, inputs: Sequence[Any]) -> tuple[BufferRegions, BufferRegions, BufferRegions]:
        """The elements that its gradient reads from before and from after the event, and the written elements."""
        if self.arguments is None:
            return (), (), self.written
        values = list(self.values)
        for k, choice in self.choices:
            values[k] = choice(inputs)
        regions = self.arguments.regions(values)
        return regions.live_in_before, regions.live_in, regions.written


class StepFacts(NamedTuple):
    """The memory effects of one control-flow path through a step. `launches`: each with its arguments; `loaded`,
    `written`: fields read and written by kernels or Python; `assigned`: those that Python writes to; `live_in`: the
    elements that its gradient reads after the step; `overwritten`: the elements that it writes to; `disturbed`: those
    that its gradient changes temporarily; `outputs`: for each returned number, whether it is differentiated. `moving`:
    memory whose accessed elements depend on the call, as given by `touching`, in order: these are not in the regions
    here. `temporaries`: memory without a gradient whose temporary adjoint its gradient needs; `activated`: memory into
    which differentiated values are written.
    """

    launches: tuple[Arguments, ...]
    loaded: frozenset[Buffer]
    written: frozenset[Buffer]
    assigned: frozenset[Buffer]
    live_in: BufferRegions
    overwritten: BufferRegions
    disturbed: BufferRegions
    outputs: tuple[bool, ...]
    moving: frozenset[Buffer]
    touching: tuple[Touching, ...]
    temporaries: frozenset[Buffer]
    activated: Mapping[Buffer, Span]

    @property
    def gradients(self) -> set[Buffer]:
        """The gradients that its gradient reads or writes."""
        found = {buffer for one in self.launches for buffer in one.gradients}
        return found | {buffer.adjoint for buffer in self.loaded | self.written if buffer.adjoint is not None}

    def regions(self, inputs: Sequence[Any]) -> tuple[BufferRegions, BufferRegions] | None:
        """`live_in` and `overwritten` of a call with these inputs; None where it overwrites elements that its own
        gradient needs.
        """
        if not self.moving:
            return self.live_in, self.overwritten
        needed: dict[Buffer, IndexRegions] = {}
        written: dict[tuple[Buffer, IndexRegion], None] = {}
        for one in self.touching:
            before, after, stores = one.at(inputs)
            if any(buffer in self.moving for buffer, _ in before):
                return None
            for buffer, region in stores:
                if buffer in self.moving:
                    if buffer in needed and needed[buffer].intersections(region):
                        return None
                    written[buffer, region] = None
            for buffer, region in after:
                if buffer in self.moving:
                    needed.setdefault(buffer, IndexRegions()).add(region)
        found = [(buffer, region) for buffer, regions in needed.items() for region in regions]
        return (*self.live_in, *found), (*self.overwritten, *written)


class StepRegions(NamedTuple):
    """The memory effects of a call. `ways`: for each path, the elements that its gradient reads after the step;
    `written`: the elements that any path may write. `regions`: both, where there is a single path.
    """

    ways: tuple[BufferRegions, ...]
    written: BufferRegions
    regions: AccessRegions | None


class Way:
    """One control-flow path through a step, with its reverse sweep. `registers`: the numbers of the first part that the
    second reads, followed by those of its seeds; `blocks`: the memory that it reads, with offsets in the saved bytes of
    a record; `temporaries`: its temporary adjoints, by their blocks. `number`: the index of the path.
    """

    number = 0

    def __init__(
        self,
        facts: StepFacts,
        plan: Program,
        registers: Sequence[int],
        seeds: Sequence[int],
        blocks: dict[int, int],
        temporaries: dict[int, Buffer],
    ) -> None:
        self.facts = facts
        self.registers = tuple(registers)
        self.seeds = tuple(seeds)
        self.plan = plan
        self._blocks = blocks
        self._temporaries = temporaries
        ends = [step for step in plan.operations if isinstance(step, ops.End)]
        self._has_adjoints = any(end.result.parts for end in ends)

    def use(self, forward: Captured, threads: int | None) -> None:
        """Run launches on at most this number of threads from now on."""
        tables = forward.tables
        self._prepared = prepared(self.plan, tables.natives, tables.memories, threads)

    def reverse(self, record: CapturedStep, seeds: Sequence[float], adjoints: SweepAdjoints) -> list[float]:
        """Run the gradient of a record from these adjoints of its results; returns those of its active arguments."""
        ready, kept, numbers = self._prepared, record.kept, record.numbers
        held: list[Buffer] = []  # while it runs: where nothing else needs an adjoint, it is zero
        with record.step.lock:
            # Each step asks; a loop over nothing takes longer than the question whether there is anything.
            if self._temporaries:
                for block, buffer in self._temporaries.items():
                    adjoint = adjoints.of(buffer) or temporary_shadow(buffer, "grad")
                    held.append(adjoint)
                    ready.point(block, memory_of(adjoint).begin)
            if kept is not None:
                for block, offset in self._blocks.items():
                    ready.point(block, kept.begin + offset)
            if numbers:
                integers = ready.integers
                for register, number in zip(self.registers, numbers, strict=True):
                    integers[register] = number
            if seeds:
                floats = ready.floats
                for register, seed in zip(self.seeds, seeds, strict=True):
                    floats[register] = seed
            end = ready.ends[ready.run()]
            return [ready.number(part.parts[0]) for part in end.result.parts] if self._has_adjoints else []


class StepUnderTape:
    """A captured step as tapes run it. `forward`: its first part; `ways`: its paths, by the ends of that. `blocks`: the
    memory that it saves, with offsets in the `kept_bytes` of a record; `shared_bytes` of these could be recomputed by
    its gradient. `inputs`: the positions of active arguments. `active`: the memory without a gradient that holds
    differentiated values before. `lock`: held while a gradient of it runs. `replays`: how often it has run.
    """

    replays = 0

    def __init__(
        self,
        name: str,
        span: Span,
        forward: Captured,
        ways: Sequence[Way],
        blocks: dict[int, int],
        kept_bytes: int,
        shared_bytes: int,
        inputs: Sequence[int],
        active: frozenset[Buffer],
    ) -> None:
        self.name = name
        self.span = span
        self.forward = forward
        self.ways = tuple(ways)
        self.kept_bytes = kept_bytes
        self.shared_bytes = shared_bytes
        self.inputs = tuple(inputs)
        self.active = active
        self._blocks = blocks
        every = [way.facts for way in ways]
        for number, way in enumerate(ways):
            way.number = number
        self.assigned = frozenset().union(*[facts.assigned for facts in every])
        self._choices = tuple([c for facts in every for one in facts.touching for _, c in one.choices])
        #: the memory effects of every call, if they are the same in all
        self.fixed = None if any(facts.moving for facts in every) else self._worked_out(())
        self._known: dict[Any, StepRegions | None] = {}
        self.lock = threading.Lock()

    def regions(self, args: Sequence[Any]) -> StepRegions | None:
        """The memory effects of a call; None where it has to be recorded launch by launch."""
        if self.fixed is not None:
            return self.fixed
        inputs = self.forward.numbers(args)
        try:
            key = tuple([choice(inputs) for choice in self._choices])
            if key not in self._known:
                if len(self._known) == _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = self._worked_out(inputs)
        except (ArithmeticError, TypeError):  # the function says so
            return None
        return self._known[key]

    def _worked_out(self, inputs: Sequence[Any]) -> StepRegions | None:
        found: list[tuple[BufferRegions, BufferRegions]] = []
        for way in self.ways:
            of_way = way.facts.regions(inputs)
            if of_way is None:
                return None
            found.append(of_way)
        written = tuple(dict.fromkeys([one for _, stores in found for one in stores]))
        regions = of_several(*found[0]) if len(found) == 1 else None
        return StepRegions(tuple([live_in for live_in, _ in found]), written, regions)

    def use(self, threads: int | None) -> None:
        """Run launches on at most this number of threads from now on."""
        self.forward.use(threads)
        for way in self.ways:
            way.use(self.forward, threads)

    @property
    def gradients(self) -> set[Buffer]:
        """Those that its gradient reads or writes, on any path."""
        return {buffer for way in self.ways for buffer in way.facts.gradients}

    @property
    def nbytes(self) -> int:
        """The bytes of its own memory, with those of one record."""
        plans = [self.forward.plan, *[way.plan for way in self.ways]]
        return self.kept_bytes + sum([plan.own_bytes for plan in plans])

    def run(self, args: Sequence[Any], kept: Memory | None) -> tuple[Way, tuple[int, ...], Any]:
        """Run it; returns its path, the numbers to save, and its result."""
        forward = self.forward
        if kept is not None:
            for block, offset in self._blocks.items():
                forward.prepared.point(block, kept.begin + offset)
        reached = forward.start(args)
        self.replays += 1
        way = self.ways[reached]
        integers = forward.prepared.integers
        numbers = tuple([integers[register] for register in way.registers]) if way.registers else ()
        return way, numbers, forward.finish(reached)


class CapturedStep(RecordedOperation):
    """One call. `regions`: its memory effects; `way`: its path; `before` and `after`: the length of the log of
    overwritten values; `kept`: the saved bytes; `numbers`: the registers that its gradient reads; `sources`, `results`:
    the traced numbers that went in and came out.
    """

    __slots__ = ("after", "before", "kept", "numbers", "regions", "results", "sources", "step", "way")

    way: Way

    def __init__(self, step: StepUnderTape, regions: StepRegions, before: int, after: int) -> None:
        self.step = step
        self.regions = regions
        self.before = before
        self.after = after
        self.kept: Memory | None = session.new_memory(step.kept_bytes, clear=False) if step.kept_bytes else None
        self.numbers: tuple[int, ...] = ()
        self.sources: tuple[int, ...] = ()
        self.results: tuple[int, ...] = ()

    @property
    def always(self) -> bool:
        """Its gradient always runs."""
        return True

    def run(self, args: Sequence[Any]) -> Any:
        """Run it with plain arguments; returns its result."""
        self.way, self.numbers, returned = self.step.run(args, self.kept)
        return returned

    @property
    def live_in(self) -> BufferRegions:
        """The elements that its gradient reads after the step."""
        return self.regions.ways[self.way.number]

    def need(self, saved: Any) -> None:
        saved.log.need(self.live_in)

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
    def written(self) -> frozenset[Buffer]:
        return self.way.facts.written

    @property
    def loaded(self) -> frozenset[Buffer]:
        return self.way.facts.loaded

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """The reads and writes of each task of its gradient."""
        return tuple([task for one in self.way.facts.launches for task in one.gradient_tasks])

    @property
    def gradients(self) -> set[Buffer]:
        return self.way.facts.gradients

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        return self.way.facts.temporaries
