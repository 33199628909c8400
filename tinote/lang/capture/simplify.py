"""Takes out of a plan without conditions what changes nothing.

    saved = copy x              saved = copy x
    clear x               →     k(y)                →     k(y)
    k(y)                        x = copy saved
    x = copy saved

Derivatives put back gradients, duals and fields that they may have changed; in a plan it is known what launches write.
Blocks are looked at as wholes. What fails on the way leaves what it left before: a write to a field is taken out only
where a copy that is made whatever happens puts something else there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from tinote.compiler.launch.native import Native
from tinote.ir.types import scalar_named
from tinote.lang.capture.plan import Block, Clear, Constant, Copy, End, Fill, Launch, Load, Plan, Result, Step, View
from tinote.runtime.layout import SLOTS


def simplified(plan: Plan, steps: Sequence[Step], natives: Sequence[Native]) -> list[Step]:
    """The steps that matter. `natives`: the plan's codes. Blocks that no step uses any more are empty afterwards."""
    found, left = list(steps), len(steps) + 1
    while len(found) < left:
        left = len(found)
        found = _without_dead_writes(plan, _without_idle_copies(plan, found, natives))
    used = set().union(*[_blocks(plan, step) for step in found])
    for number, block in enumerate(plan.blocks):
        if number not in used:
            plan.blocks[number] = Block("unused", block.name, 0)
    return found


def _without_idle_copies(plan: Plan, steps: Sequence[Step], natives: Sequence[Native]) -> list[Step]:
    """Leave out copies to where the same numbers are already."""
    found: list[Step] = []
    version = defaultdict[int, int](int)  # how often a block was written
    equal: dict[View, tuple[View, int, int]] = {}  # what a view was copied from, and the versions of both then
    for step in steps:
        match step:
            case Copy(target, source):
                if any(_is_still(equal, version, a, b) for a, b in ((source, target), (target, source))):
                    continue
                version[target.block] += 1
                if target.block != source.block:
                    equal[target] = source, version[target.block], version[source.block]
            case Clear(block):
                version[block] += 1
            case Fill(target):
                version[target.block] += 1
            case Launch():
                for block in _written(plan, step, natives):
                    version[block] += 1
        found.append(step)
    return found


def _is_still(equal: dict[View, tuple[View, int, int]], version: dict[int, int], copy: View, origin: View) -> bool:
    """Whether a view is a copy of another one as that is now."""
    known = equal.get(copy)
    return known == (origin, version[copy.block], version[origin.block])


def _without_dead_writes(plan: Plan, steps: Sequence[Step]) -> list[Step]:
    """Leave out what is written and not looked at before something else is there."""
    found: list[Step] = []
    live = {number for number, block in enumerate(plan.blocks) if block.kind in ("field", "input")}
    for step in reversed(steps):
        match step:
            case Copy(target, source, _, always):
                if target.block not in live:
                    continue
                if _is_whole(plan, target) and (always or plan.blocks[target.block].kind == "scratch"):
                    live.discard(target.block)
                live.add(source.block)
            case Clear(block, offset, nbytes):
                if block not in live:
                    continue
                if plan.blocks[block].kind == "scratch" and (offset, nbytes) == (0, plan.blocks[block].nbytes):
                    live.discard(block)
            case Fill(target, value):
                if target.block not in live and isinstance(value, Constant):
                    continue
            case _:
                live |= _blocks(plan, step)
        found.append(step)
    return found[::-1]


def _blocks(plan: Plan, step: Step) -> set[int]:
    """All that a step uses."""
    match step:
        case Copy(target, source):
            return {target.block, source.block}
        case Clear(block):
            return {block}
        case Fill(target):
            return {target.block}
        case Load(_, source):
            return {source.block}
        case Launch(code, pointers):
            return {block for _, block, _ in (*plan.codes[code].pointers, *pointers) if block >= 0}
        case End(result):
            return set(_views(result))
    return set()


def _written(plan: Plan, launch: Launch, natives: Sequence[Native]) -> set[int]:
    """The blocks that a launch may write to."""
    native = natives[launch.code]
    written = {buffer for task in native.tasks for buffer in task.accesses.written}
    slots = {offset - SLOTS for buffer, offset in native.metadata.pointers if buffer in written}
    pointers = (*plan.codes[launch.code].pointers, *launch.pointers)
    return {block for slot, block, _ in pointers if slot in slots}


def _views(result: Result) -> list[int]:
    """The blocks of the arrays of a result."""
    if result.kind == "array":
        return [result.parts[0].block]
    if result.kind in ("tuple", "list"):
        return [block for one in result.parts for block in _views(one)]
    return []


def _is_whole(plan: Plan, view: View) -> bool:
    """Whether a view is all of its block, as it lies there."""
    step = scalar_named(view.type).size
    if view.offset or math.prod(view.shape) * step != plan.blocks[view.block].nbytes:
        return False
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
