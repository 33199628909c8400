"""Takes out of a plan without conditions what changes nothing.

    saved = copy x              saved = copy x
    clear x               →     k(y)                →     k(y)
    k(y)                        x = copy saved
    x = copy saved

Derivatives put back gradients, duals and fields that they may have changed; in a plan it is known what launches write.
Where they do write one, they write to a scratch block in its place:

    saved = copy x              clear own
    clear x               →     k(own)
    k(x)                        result = own
    result = copy x
    x = copy saved

Blocks are looked at as wholes. What fails on the way leaves what it left before: a write to a field is taken out only
where a copy that is made whatever happens puts something else there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from tinote.compiler.launch.native import Native
from tinote.ir.types import scalar_named
from tinote.lang.capture.numbers import needed_numbers
from tinote.lang.capture.plan import (
    BlockView,
    ClearStep,
    CopyStep,
    EndStep,
    FillStep,
    LaunchStep,
    LoadStep,
    Plan,
    PlanBlock,
    PlanConstant,
    PlanStep,
    Result,
    leaves_of,
    with_leaves,
)
from tinote.lang.capture.rerun import Reruns, rerunning
from tinote.runtime.pool import WARM_FROM


def simplified(
    plan: Plan,
    steps: Sequence[PlanStep],
    natives: Sequence[Native],
    reruns: Reruns | None = None,
    *,
    moves_fields: bool = True,
) -> list[PlanStep]:
    """The steps that matter. `natives`: the plan's codes; `reruns`: which launches may run again in place of copies
    that bring back what they wrote. Blocks that no step uses any more are empty afterwards. `moves_fields`: whether
    codes may find other memory where they use a field by its name.
    """
    found = list(steps)
    for number, block in enumerate(plan.blocks):
        if moves_fields and block.kind == "field":
            found = _in_scratch(plan, found, number)
    found = _without_waste(plan, found, natives)
    if reruns is not None:
        again = rerunning(
            plan,
            found,
            reruns,
            lambda step: blocks_used(plan, step),
            lambda launch: blocks_written(plan, launch, natives),
        )
        found = _without_waste(plan, again, natives)
    found = needed_numbers(found, natives)
    used = set().union(*[blocks_used(plan, step) for step in found])
    for number, block in enumerate(plan.blocks):
        if number not in used:
            plan.blocks[number] = PlanBlock("unused", block.name, 0)
    return found


def _without_waste(plan: Plan, steps: Sequence[PlanStep], natives: Sequence[Native]) -> list[PlanStep]:
    """Without copies and writes that change nothing."""
    found, left = list(steps), len(steps) + 1
    while len(found) < left:
        left = len(found)
        found = _without_idle_copies(plan, found, natives)
        found = _without_dead_writes(plan, _reading_originals(plan, found, natives))
    return found


def _without_idle_copies(plan: Plan, steps: Sequence[PlanStep], natives: Sequence[Native]) -> list[PlanStep]:
    """Leave out copies to where the same numbers are already."""
    found: list[PlanStep] = []
    version = defaultdict[int, int](int)  # how often a block was written
    equal: dict[
        BlockView, tuple[BlockView, int, int]
    ] = {}  # what a view was copied from, and the versions of both then
    for step in steps:
        match step:
            case CopyStep(target, source):
                if any(_is_still(equal, version, a, b) for a, b in ((source, target), (target, source))):
                    continue
                # What is saved may be there already, since it was put back from there.
                before = equal.get(source)
                if before is not None and target.type == source.type == before[0].type:
                    if _is_still(equal, version, source, before[0]) and target.block != before[0].block:
                        step = step._replace(source=before[0])
                        source = before[0]
                version[target.block] += 1
                if target.block != source.block:
                    equal[target] = source, version[target.block], version[source.block]
            case ClearStep(block):
                version[block] += 1
            case FillStep(target):
                version[target.block] += 1
            case LaunchStep():
                for block in blocks_written(plan, step, natives):
                    version[block] += 1
        found.append(step)
    return found


def _is_still(
    equal: dict[BlockView, tuple[BlockView, int, int]], version: dict[int, int], copy: BlockView, origin: BlockView
) -> bool:
    """Whether a view is a copy of another one as that is now."""
    known = equal.get(copy)
    return known == (origin, version[copy.block], version[origin.block])


def _in_scratch(plan: Plan, steps: list[PlanStep], block: int) -> list[PlanStep]:
    """Where a field's memory is saved, cleared, used and put back, let the steps use a block of the plan's own instead.
    What fails on the way leaves the field as it is, as does putting it back.
    """
    uses = [at for at, step in enumerate(steps) if block in blocks_used(plan, step)]
    if len(uses) < 3:
        return steps
    save, clear, last = (steps[at] for at in (uses[0], uses[1], uses[-1]))
    if not (type(save) is CopyStep and type(clear) is ClearStep and type(last) is CopyStep and last.always):
        return steps
    saved = save.target.block
    is_saved = (
        save.source.block == block
        and plan.blocks[saved].kind == "scratch"
        and (last.target, last.source) == (save.source, save.target)
        and _is_whole(plan, save.source)
        and [at for at, step in enumerate(steps) if saved in blocks_used(plan, step)] == [uses[0], uses[-1]]
    )
    if not is_saved or clear != ClearStep(block, 0, plan.blocks[block].nbytes, clear.span):
        return steps
    renamed = {at: _renamed(plan, steps[at], block, saved, writes=True) for at in uses[1:-1]}
    if None in renamed.values():
        return steps
    for code in {step.code for step in renamed.values() if isinstance(step, LaunchStep)}:
        # What a code uses by its name, it uses in each of its launches: these are all.
        own = plan.codes[code]
        plan.codes[code] = own._replace(pointers=_pointing(own.pointers, block, saved))
    return [renamed.get(at) or step for at, step in enumerate(steps) if at not in (uses[0], uses[-1])]


def _pointing(pointers: tuple[tuple[int, int, int], ...], block: int, to: int) -> tuple[tuple[int, int, int], ...]:
    return tuple([(slot, to if one == block else one, offset) for slot, one, offset in pointers])


def _reading_originals(plan: Plan, steps: Sequence[PlanStep], natives: Sequence[Native]) -> list[PlanStep]:
    """Let steps read what a scratch block was copied from, where neither is written as long as the copy is read. The
    copy, which nobody reads then, is a dead write.
    """
    found = list(steps)
    writes, uses = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for at, step in enumerate(steps):
        for block in blocks_written(plan, step, natives):
            writes[block].append(at)
        for block in blocks_used(plan, step):
            uses[block].append(at)
    for at, step in enumerate(steps):
        if not (type(step) is CopyStep and step.target.type == step.source.type and not step.always):
            continue
        copy, origin = step.target.block, found[at].source.block  # type: ignore[union-attr]
        if plan.blocks[copy].kind != "scratch" or not (_is_whole(plan, step.target) and _is_whole(plan, step.source)):
            continue
        if writes[copy] != [at] or uses[copy][0] != at or any(at < k <= uses[copy][-1] for k in writes[origin]):
            continue
        readers = uses[copy][1:]
        renamed = [_renamed(plan, found[k], copy, origin) for k in readers]
        if readers and None not in renamed:
            for k, one in zip(readers, renamed, strict=True):
                assert one is not None
                found[k] = one
                uses[origin].append(k)
            uses[origin].sort()
            uses[copy] = [at]
    return found


def _renamed(plan: Plan, step: PlanStep, block: int, to: int, *, writes: bool = False) -> PlanStep | None:
    """A step that reads another block in place of `block`, and writes to it if it `writes`; None where it cannot."""

    def moved(view: BlockView) -> BlockView:
        return view._replace(block=to) if view.block == block else view

    match step:
        case CopyStep(target, source, _, always):
            if not always:
                return step._replace(source=moved(source), target=moved(target) if writes else target)
            # Where it fails before, it is put back as soon as that was saved.
            if not writes and plan.blocks[to].kind == "scratch":
                return step._replace(source=moved(source))
        case LoadStep(_, source):
            return step._replace(source=moved(source))
        case LaunchStep(code, pointers):
            # What a code uses by its name is for its launches together.
            if writes or all(one != block for _, one, _ in plan.codes[code].pointers):
                return step._replace(pointers=_pointing(pointers, block, to))
        case EndStep(result) if plan.blocks[to].kind == "scratch":
            return step._replace(
                result=with_leaves(
                    result, lambda kind, parts: (moved(parts[0]), *parts[1:]) if kind == "array" else parts
                )
            )
        case ClearStep() if writes:
            return step._replace(block=to)
        case FillStep(target) if writes:
            return step._replace(target=moved(target))
    return None


def blocks_written(plan: Plan, step: PlanStep, natives: Sequence[Native]) -> set[int]:
    """The blocks that a step may write to."""
    match step:
        case CopyStep(target) | FillStep(target):
            return {target.block}
        case ClearStep(block):
            return {block}
        case LaunchStep(code, pointers):
            slots = natives[code].written_addresses()
            return {block for slot, block, _ in (*plan.codes[code].pointers, *pointers) if slot in slots}
    return set()


def _without_dead_writes(plan: Plan, steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Leave out what is written and not looked at before something else is there."""
    found: list[PlanStep] = []
    #: from where fields are put back later, whatever happens: what they hold until then is no matter
    put_back: dict[int, int] = {}
    live = {number for number, block in enumerate(plan.blocks) if block.kind in ("field", "input")}
    for step in reversed(steps):
        match step:
            case CopyStep(target, source, _, always):
                if target.block not in live:
                    continue
                is_own = plan.blocks[target.block].kind == "scratch" or target.block in put_back
                if _is_whole(plan, target) and (always or is_own):
                    live.discard(target.block)
                    if always and plan.blocks[source.block].kind == "scratch":
                        put_back[target.block] = source.block
                put_back = _without_saved(put_back, target.block)
                live.add(source.block)
            case ClearStep(block, offset, nbytes):
                if block not in live:
                    continue
                put_back = _without_saved(put_back, block)
                is_own = plan.blocks[block].kind == "scratch" or block in put_back
                if is_own and (offset, nbytes) == (0, plan.blocks[block].nbytes):
                    live.discard(block)
            case FillStep(target, value):
                if target.block not in live and isinstance(value, PlanConstant):
                    continue
            case _:
                live |= blocks_used(plan, step)
        found.append(step)
    return found[::-1]


def _without_saved(put_back: dict[int, int], written: int) -> dict[int, int]:
    """Before this block was written, nothing is put back from it."""
    if written not in put_back.values():
        return put_back
    return {block: saved for block, saved in put_back.items() if saved != written}


def blocks_used(plan: Plan, step: PlanStep) -> set[int]:
    """All that a step uses."""
    match step:
        case CopyStep(target, source):
            return {target.block, source.block}
        case ClearStep(block):
            return {block}
        case FillStep(target):
            return {target.block}
        case LoadStep(_, source):
            return {source.block}
        case LaunchStep(code, pointers):
            return {block for _, block, _ in (*plan.codes[code].pointers, *pointers) if block >= 0}
        case EndStep(result):
            return {view.block for view in _views(result)}
    return set()


def blocks_to_give(plan: Plan) -> dict[int, int]:
    """The blocks, with their sizes in bytes, that are an array of the result each, and of which all is set before they
    are used: every run can have memory of its own for them, and give it away with its result, which need not be copied.
    """
    end = plan.root.steps[-1]
    assert isinstance(end, EndStep)
    found: dict[int, int] = {}
    parts = _views(end.result)
    for view in parts:
        kind, _, nbytes, _ = plan.blocks[view.block]
        is_alone = [one.block for one in parts].count(view.block) == 1
        if kind == "scratch" and nbytes >= WARM_FROM and is_alone and _is_whole(plan, view):
            first = next(step for step in plan.root.steps if view.block in blocks_used(plan, step))
            if _sets_all(plan, first, view.block):
                found[view.block] = nbytes
    return found


def _sets_all(plan: Plan, step: PlanStep, block: int) -> bool:
    """Whether a step gives all of a block other contents, whatever they were."""
    match step:
        case ClearStep(_, offset, nbytes):
            return (offset, nbytes) == (0, plan.blocks[block].nbytes)
        case CopyStep(target, source):
            return target.block == block != source.block and _is_whole(plan, target)
        case LaunchStep():
            return block in step.fills
    return False


def _views(result: Result) -> list[BlockView]:
    """The arrays of a result."""
    return [parts[0] for kind, parts in leaves_of(result) if kind == "array"]


def _is_whole(plan: Plan, view: BlockView) -> bool:
    """Whether a view is all of its block, as it lies there."""
    step = scalar_named(view.type).size
    if view.offset or math.prod(view.shape) * step != plan.blocks[view.block].nbytes:
        return False
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True
