"""Rematerialisation: lets a program run launches again instead of saving their results.

    slope(k, y)                         slope(k, y)
    old = copy y                        old = copy y
    advance(y, k)                       advance(y, k)
    saved = copy k                      …
    slope(k, y)                         slope(k, y)
    …                            →      …
    k = copy saved                      y = copy old
    y = copy old                        slope(k, y)
    gradient of advance (y, k)          gradient of advance (y, k)

A derivative goes back through the values that its launches have overwritten. Recomputing one of them takes less than to
write it to memory and to read it from there, where a launch does little for each of its elements
(`lang/capture/reruns.py`), and the memory that a long program touches shrinks to what it cannot compute. A launch runs
again where its result is needed for the first time, if all that it reads is there again as it was: other results may
have to be computed before. What cannot be is brought back as before.

A launch may run again if all that it writes is one block, to each element of which it stores for certain, and if it
finds the same numbers: no random ones, and no sums whose order is open. It then leaves the same bits.

Method: checkpoints of what is expensive, and recomputation of the rest; Griewank and Walther, "Evaluating Derivatives",
2nd ed., 2008, chapter 12.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tinote.program import operations as ops
from tinote.program.program import Program

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
Reruns = Callable[[ops.Launch], Rerun | None]


def rerunning(program: Program, steps: Sequence[ops.Operation], reruns: Reruns) -> list[ops.Operation]:
    """The steps, with launches in place of copies that bring back what these left. What saved is left for `simplify`
    to take out.
    """
    return _Rerunning(program, list(steps), reruns).steps_with_launches()


class _Made(NamedTuple):
    """How a version of a block came into being: a launch, and the versions of what it reads, by block and bytes."""

    launch: ops.Launch
    inputs: tuple[tuple[int, int, Bytes], ...]


class _Held(NamedTuple):
    """What a block holds: a version, as far as these bytes."""

    version: int
    span: Bytes


class _Rerunning:
    """`held`: what the blocks hold; `kept`: the same of the blocks that something was saved in; `due`: copies that
    bring something back that nobody has read yet, by their targets, with the version.
    """

    def __init__(self, program: Program, steps: list[ops.Operation], reruns: Reruns) -> None:
        self.program = program
        self.steps = steps
        self.reruns = reruns
        self.out: list[ops.Operation] = []
        self.held: dict[int, _Held] = {}
        self.kept: dict[int, _Held] = {}
        self.made: dict[int, _Made] = {}
        self.due: dict[int, tuple[ops.Copy, int]] = {}
        self.rerun: set[int] = set()
        self.versions = 0
        self.saves, self.puts_back = self._copies_there_and_back()
        #: the blocks of which something may be computed again; only of what writes to them is more asked
        self.targets = {
            copy.target.block for copy in self.saves.values() if program.blocks[copy.target.block].nbytes >= LEAST_BYTES
        }

    def steps_with_launches(self) -> list[ops.Operation]:
        if not self.targets:
            return self.steps
        for step in self.steps:
            if isinstance(step, ops.Copy) and self._is_due(step):
                continue
            for block in sorted(self._used(step) & self.due.keys()):
                if (
                    isinstance(step, ops.Copy)
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

    def _copies_there_and_back(self) -> tuple[dict[int, ops.Copy], dict[int, tuple[ops.Copy, ops.Copy]]]:
        """The scratch blocks in which a part of a block is saved to be brought back once, with the copy that brings it
        back; and the blocks that are put back in the end, with both copies, if nothing but copies writes to them
        between these.
        """
        uses, back = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        writes = defaultdict[int, list[int]](list)
        for at, step in enumerate(self.steps):
            for block in self._used(step):
                uses[block].append(at)
            if isinstance(step, ops.Copy):
                if step.always:
                    back[step.target.block].append(at)
            elif isinstance(step, ops.Launch | ops.Clear | ops.Fill):
                for block in self._written(step) if isinstance(step, ops.Launch) else self._used(step):
                    writes[block].append(at)
        saves: dict[int, ops.Copy] = {}
        puts_back: dict[int, tuple[ops.Copy, ops.Copy]] = {}
        for block, places in uses.items():
            if self.program.blocks[block].kind != "scratch" or len(places) != 2:
                continue
            save, restore = (self.steps[at] for at in places)
            if not (isinstance(save, ops.Copy) and isinstance(restore, ops.Copy) and not save.always):
                continue
            target = restore.target.block
            if (restore.target, restore.source) != (save.source, save.target) or save.target.block != block:
                continue
            if save.target.row != (0, self.program.blocks[block].nbytes) or save.source.row is None:
                continue
            if not restore.always:
                saves[block] = restore
            elif back[target] == places[1:] and not any(places[0] < at < places[1] for at in writes[target]):
                puts_back[target] = save, restore
        return saves, puts_back

    def _is_due(self, step: ops.Copy) -> bool:
        """Whether what a copy brings back may wait until it is read."""
        source, target = step.source.block, step.target.block
        held = self.kept.get(source)
        if self.saves.get(source) is not step or held is None or held.version not in self.made:
            return False
        kind = self.program.blocks[target].kind
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
            self.held[block] = _Held(version, (0, self.program.blocks[block].nbytes))
        else:
            self.out.append(copy)
            span = copy.target.row
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
        found = self.held[block] = _Held(self.versions, (0, self.program.blocks[block].nbytes))
        return found

    def _note(self, step: ops.Operation) -> None:
        """What a step does to blocks."""
        if isinstance(step, ops.Copy):
            self._note_copy(step)
        elif isinstance(step, ops.Launch):
            written = self._written(step)
            made = self._made_by(step) if len(written) == 1 and written <= self.targets else None
            for block in written:
                version = self._change(block).version
                if made is not None and made[0] == block:
                    self.made[version] = made[1]
        elif isinstance(step, ops.Clear | ops.Fill):
            for block in self._used(step):
                self._change(block)

    def _note_copy(self, step: ops.Copy) -> None:
        source, target = step.source.block, step.target.block
        span = step.source.row
        if target in self.saves or any(save.target.block == target for save, _ in self.puts_back.values()):
            held = self._now(source)
            if span is not None and self._has(source, held.version, span):
                self.kept[target] = _Held(held.version, span)
        kept = self.kept.get(source)
        self._change(target)
        if self.saves.get(source) is step and kept is not None:
            self.held[target] = kept

    def _made_by(self, step: ops.Launch) -> tuple[int, _Made] | None:
        """The block that a launch fills, and how, if it may run again."""
        rerun = self.reruns(step)
        if rerun is None:
            return None
        places = {slot: (block, offset) for slot, block, offset in self._pointers(step)}
        target, begin = places[rerun.fills]
        if target < 0 or begin or self.program.blocks[target].nbytes != rerun.nbytes or self._written(step) != {target}:
            return None
        inputs: list[tuple[int, int, Bytes]] = []
        for slot, part in rerun.reads:
            block, offset = places[slot]
            if block == target:
                return None
            if block >= 0:
                known = (0, self.program.blocks[block].nbytes) if part is None else (offset + part[0], offset + part[1])
                held = self._now(block)
                if not self._has(block, held.version, known):
                    return None
                inputs.append((block, held.version, known))
        return target, _Made(step, tuple(inputs))

    def _used(self, step: ops.Operation) -> set[int]:
        return ops.used_by(self.program.codes, step)

    def _written(self, step: ops.Operation) -> set[int]:
        return ops.written_by(self.program.codes, step)

    def _pointers(self, step: ops.Launch) -> tuple[tuple[int, int, int], ...]:
        return (*self.program.codes[step.code].pointers, *step.pointers)

    def _with_whole_blocks(self) -> list[ops.Operation]:
        """Put back all of the blocks that launches have filled again: they write more than copies brought back."""
        replaced: dict[int, ops.Operation] = {}
        for block in self.rerun & self.puts_back.keys():
            save, restore = self.puts_back[block]
            nbytes, number = self.program.blocks[block].nbytes, save.target.block
            there, here = (ops.View(one, 0, "u8", (nbytes,), (1,)) for one in (number, block))
            self.program.blocks[number] = self.program.blocks[number]._replace(nbytes=nbytes)
            replaced[id(save)] = save._replace(target=there, source=here)
            replaced[id(restore)] = restore._replace(target=here, source=there)
        return [replaced.get(id(step), step) for step in self.out]
