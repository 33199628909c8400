"""Lets a plan run launches again in place of saving what they have written.

    slope(k, y)                         slope(k, y)
    old = copy y                        old = copy y
    advance(y, k)                       advance(y, k)
    saved = copy k                      …
    slope(k, y)                         slope(k, y)
    …                            →      …
    k = copy saved                      y = copy old
    y = copy old                        slope(k, y)
    gradient of advance (y, k)          gradient of advance (y, k)

A derivative goes back through the values that its launches have overwritten. To compute one of them again takes less
than to write it to memory and to read it from there, where a launch does little for each of its elements
(`MOST_WORK`), and the memory that a long program touches shrinks to what it cannot compute. A launch runs again where
its result is needed for the first time, if all that it reads is there again as it was: other results may have to be
computed before. What cannot be is brought back as before.

A launch may run again if all that it writes is one block, to each element of which it stores for certain, and if it
finds the same numbers: no random ones, and no sums whose order is open. It then leaves the same bits.

Method: checkpoints of what is dear, and recomputation of the rest; Griewank and Walther, "Evaluating Derivatives", 2nd
ed., 2008, chapter 12.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinote.compiler.launch.native import Native
from tinote.ir.buffers import bytes_of
from tinote.ir.types import scalar_named
from tinote.lang.capture.plan import BlockView, ClearStep, CopyStep, FillStep, LaunchStep, Plan, PlanStep
from tinote.lang.index_regions import IndexRegion, whole_region
from tinote.lang.kernels.arguments import arguments_of

#: The most that a launch may compute for each element, in additions: about what writing it to memory and bringing it
#: back takes, in code for vectors.
MOST_WORK = 24.0
#: A copy of fewer bytes takes less than a launch.
LEAST_BYTES = 4096

Bytes = tuple[int, int]


class Rerun(NamedTuple):
    """What it takes to run a launch again. `reads`: the addresses that it reads at, by the slot that they stand at,
    with the first and the last byte (None: perhaps all). `fills`: the slot of what it writes, all of its `nbytes`.
    """

    reads: tuple[tuple[int, Bytes | None], ...]
    fills: int
    nbytes: int


#: What it takes to run a launch again; None where it may not run again.
Reruns = Callable[[LaunchStep], Rerun | None]


def rerun_of(instance: Any, native: Native, values: Sequence[Any]) -> Rerun | None:
    """The same of a launch of `native`, the primal code of a kernel's instance."""
    specialisation = instance.specialisation
    if native.prints or native.results or specialisation.uses_random:
        return None
    if specialisation.effects.work > MOST_WORK:
        return None
    arguments = arguments_of(instance, values)
    fixed = arguments.fixed_effects
    if fixed is None:
        return None
    effects, definite = fixed
    read: dict[Any, list[IndexRegion]] = defaultdict(list)
    for buffer, region in effects.live_in:
        read[buffer].append(region)
    filled = {buffer for buffer, region in definite if region == whole_region(buffer)} - read.keys()
    written = {arguments.actual(buffer) for task in native.tasks for buffer in task.accesses.written}
    if written != filled or len(filled) != 1:
        return None
    reads: list[tuple[int, Bytes | None]] = []
    fills: list[int] = []
    for slot, formal in native.addresses():
        buffer = arguments.actual(formal)
        if buffer in filled:
            fills.append(slot)
        else:
            reads.append((slot, _span(buffer, read.get(buffer))))
    (target,) = filled
    nbytes = bytes_of(target)
    return Rerun(tuple(reads), fills[0], nbytes) if len(fills) == 1 and nbytes is not None else None


def _span(buffer: Any, regions: list[IndexRegion] | None) -> Bytes | None:
    """The bytes of a row of numbers that lie in some regions; None where that cannot be told."""
    if not regions or buffer.rank != 1 or buffer.element:
        return None
    size = buffer.dtype.size
    return size * min([first for ((first, _),) in regions]), size * max([last for ((_, last),) in regions])


class HeardLaunches:
    """Which launches a recording has heard. As `Reruns` it tells what it takes to run one of them again."""

    def __init__(self) -> None:
        self._launched: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[Any, Native, tuple[Any, ...]]] = {}
        self._known: dict[tuple[int, tuple[tuple[int, int], ...]], Rerun | None] = {}

    def note(self, step: LaunchStep, instance: Any, native: Native, values: Sequence[Any]) -> None:
        """An instance has run its primal code."""
        self._launched.setdefault((step.code, step.extents), (instance, native, tuple(values)))

    def __call__(self, step: LaunchStep) -> Rerun | None:
        key = step.code, step.extents
        if key not in self._known:
            launched = self._launched.get(key)
            self._known[key] = None if launched is None else rerun_of(*launched)
        return self._known[key]


def rerunning(
    plan: Plan,
    steps: Sequence[PlanStep],
    reruns: Reruns,
    used: Callable[[PlanStep], set[int]],
    written: Callable[[LaunchStep], set[int]],
) -> list[PlanStep]:
    """The steps, with launches in place of copies that bring back what these left. `used`, `written`: the blocks that a
    step uses, and that a launch may write to. What saved is left for `simplify` to take out.
    """
    return _Rerunning(plan, list(steps), reruns, used, written).steps_with_launches()


class _Made(NamedTuple):
    """How a version of a block came into being: a launch, and the versions of what it reads, by block and bytes."""

    launch: LaunchStep
    inputs: tuple[tuple[int, int, Bytes], ...]


class _Held(NamedTuple):
    """What a block holds: a version, as far as these bytes."""

    version: int
    span: Bytes


class _Rerunning:
    """`held`: what the blocks hold; `kept`: the same of the blocks that something was saved in; `due`: copies that
    bring something back that nobody has read yet, by their targets, with the version.
    """

    def __init__(
        self,
        plan: Plan,
        steps: list[PlanStep],
        reruns: Reruns,
        used: Callable[[PlanStep], set[int]],
        written: Callable[[LaunchStep], set[int]],
    ) -> None:
        self.plan = plan
        self.steps = steps
        self.reruns = reruns
        self.used = used
        self.written = written
        self.out: list[PlanStep] = []
        self.held: dict[int, _Held] = {}
        self.kept: dict[int, _Held] = {}
        self.made: dict[int, _Made] = {}
        self.due: dict[int, tuple[CopyStep, int]] = {}
        self.rerun: set[int] = set()
        self.versions = 0
        self.saves, self.puts_back = self._copies_there_and_back()
        #: the blocks of which something may be computed again; only of what writes to them is more asked
        self.targets = {
            copy.target.block for copy in self.saves.values() if plan.blocks[copy.target.block].nbytes >= LEAST_BYTES
        }

    def steps_with_launches(self) -> list[PlanStep]:
        if not self.targets:
            return self.steps
        for step in self.steps:
            if isinstance(step, CopyStep) and self._is_due(step):
                continue
            for block in sorted(self.used(step) & self.due.keys()):
                if (
                    isinstance(step, CopyStep)
                    and step.target == self.due[block][0].target
                    and step.source.block != block
                ):
                    del self.due[block]  # nobody has read it
                elif block in self.due:
                    self._bring_back(block)
            self._note(step)
            self.out.append(step)
        for block in sorted(self.due):
            if block in self.due:
                self._bring_back(block)
        return self._with_whole_blocks() if self.rerun else self.steps

    def _copies_there_and_back(self) -> tuple[dict[int, CopyStep], dict[int, tuple[CopyStep, CopyStep]]]:
        """The scratch blocks in which a part of a block is saved to be brought back once, with the copy that brings it
        back; and the blocks that are put back in the end, with both copies, if nothing but copies writes to them
        between these.
        """
        uses, back = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        writes = defaultdict[int, list[int]](list)
        for at, step in enumerate(self.steps):
            for block in self.used(step):
                uses[block].append(at)
            if isinstance(step, CopyStep):
                if step.always:
                    back[step.target.block].append(at)
            elif isinstance(step, LaunchStep | ClearStep | FillStep):
                for block in self.written(step) if isinstance(step, LaunchStep) else self.used(step):
                    writes[block].append(at)
        saves: dict[int, CopyStep] = {}
        puts_back: dict[int, tuple[CopyStep, CopyStep]] = {}
        for block, places in uses.items():
            if self.plan.blocks[block].kind != "scratch" or len(places) != 2:
                continue
            save, restore = (self.steps[at] for at in places)
            if not (isinstance(save, CopyStep) and isinstance(restore, CopyStep) and not save.always):
                continue
            target = restore.target.block
            if (restore.target, restore.source) != (save.source, save.target) or save.target.block != block:
                continue
            if self._span(save.target) != (0, self.plan.blocks[block].nbytes) or self._span(save.source) is None:
                continue
            if not restore.always:
                saves[block] = restore
            elif back[target] == places[1:] and not any(places[0] < at < places[1] for at in writes[target]):
                puts_back[target] = save, restore
        return saves, puts_back

    def _is_due(self, step: CopyStep) -> bool:
        """Whether what a copy brings back may wait until somebody reads it."""
        source, target = step.source.block, step.target.block
        held = self.kept.get(source)
        if self.saves.get(source) is not step or held is None or held.version not in self.made:
            return False
        kind = self.plan.blocks[target].kind
        if target not in self.targets or not (kind == "scratch" or (kind == "field" and self._is_put_back(target))):
            return False
        if target in self.due:
            if self.due[target][0].target != step.target:
                self._bring_back(target)
            else:
                del self.due[target]
        self.due[target] = step, held.version
        return True

    def _is_put_back(self, block: int) -> bool:
        """Whether what a block holds now is saved already, to be put back in the end."""
        return block in self.puts_back and self.puts_back[block][0].target.block in self.kept

    def _bring_back(self, block: int) -> None:
        """Bring back what is due: by its launch, if that finds again what it has read."""
        copy, version = self.due.pop(block)
        launch, inputs = self.made[version]
        for other, wanted, _ in inputs:
            if other in self.due and self.due[other][1] == wanted:
                self._bring_back(other)
        if all(other not in self.due and self._has(other, wanted, span) for other, wanted, span in inputs):
            self.out.append(launch)
            self.rerun.add(block)
            self.held[block] = _Held(version, (0, self.plan.blocks[block].nbytes))
        else:
            self.out.append(copy)
            span = self._span(copy.target)
            assert span is not None
            self.held[block] = _Held(version, span)

    def _has(self, block: int, version: int, span: Bytes) -> bool:
        held = self._now(block)
        return held.version == version and held.span[0] <= span[0] and span[1] <= held.span[1]

    def _now(self, block: int) -> _Held:
        found = self.held.get(block)
        return self._change(block) if found is None else found

    def _change(self, block: int) -> _Held:
        """A block holds something new."""
        self.versions += 1
        found = self.held[block] = _Held(self.versions, (0, self.plan.blocks[block].nbytes))
        return found

    def _note(self, step: PlanStep) -> None:
        """What a step does to blocks."""
        if isinstance(step, CopyStep):
            self._note_copy(step)
        elif isinstance(step, LaunchStep):
            written = self.written(step)
            made = self._made_by(step) if len(written) == 1 and written <= self.targets else None
            for block in written:
                version = self._change(block).version
                if made is not None and made[0] == block:
                    self.made[version] = made[1]
        elif isinstance(step, ClearStep | FillStep):
            for block in self.used(step):
                self._change(block)

    def _note_copy(self, step: CopyStep) -> None:
        source, target = step.source.block, step.target.block
        span = self._span(step.source)
        if target in self.saves or any(save.target.block == target for save, _ in self.puts_back.values()):
            held = self._now(source)
            if span is not None and self._has(source, held.version, span):
                self.kept[target] = _Held(held.version, span)
        kept = self.kept.get(source)
        self._change(target)
        if self.saves.get(source) is step and kept is not None:
            self.held[target] = kept

    def _made_by(self, step: LaunchStep) -> tuple[int, _Made] | None:
        """The block that a launch fills, and how, if it may run again."""
        rerun = self.reruns(step)
        if rerun is None:
            return None
        places = {slot: (block, offset) for slot, block, offset in self._pointers(step)}
        target, begin = places[rerun.fills]
        if target < 0 or begin or self.plan.blocks[target].nbytes != rerun.nbytes or self.written(step) != {target}:
            return None
        inputs: list[tuple[int, int, Bytes]] = []
        for slot, part in rerun.reads:
            block, offset = places[slot]
            if block == target:
                return None
            if block >= 0:
                known = (0, self.plan.blocks[block].nbytes) if part is None else (offset + part[0], offset + part[1])
                held = self._now(block)
                if not self._has(block, held.version, known):
                    return None
                inputs.append((block, held.version, known))
        return target, _Made(step, tuple(inputs))

    def _pointers(self, step: LaunchStep) -> tuple[tuple[int, int, int], ...]:
        return (*self.plan.codes[step.code].pointers, *step.pointers)

    def _span(self, view: BlockView) -> Bytes | None:
        """The bytes of a view; None if they do not lie one after the other."""
        step = scalar_named(view.type).size
        for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
            if extent != 1 and stride != step:
                return None
            step *= extent
        return view.offset, view.offset + math.prod(view.shape) * scalar_named(view.type).size

    def _with_whole_blocks(self) -> list[PlanStep]:
        """Put back all of the blocks that launches have filled again: they write more than copies brought back."""
        replaced: dict[int, PlanStep] = {}
        for block in self.rerun & self.puts_back.keys():
            save, restore = self.puts_back[block]
            nbytes, number = self.plan.blocks[block].nbytes, save.target.block
            there, here = (BlockView(one, 0, "u8", (nbytes,), (1,)) for one in (number, block))
            self.plan.blocks[number] = self.plan.blocks[number]._replace(nbytes=nbytes)
            replaced[id(save)] = save._replace(target=there, source=here)
            replaced[id(restore)] = restore._replace(target=here, source=there)
        return [replaced.get(id(step), step) for step in self.out]
