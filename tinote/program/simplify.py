"""Removes no-op steps from straight-line programs.

    saved = copy x              saved = copy x
    clear x               →     k(y)                →     k(y)
    k(y)                        x = copy saved
    x = copy saved

Derivatives put back gradients, duals and fields that they may have changed; in a program it is known what launches
write. Where they do write one, they write to a scratch block in its place:

    saved = copy x              clear own
    clear x               →     k(own)
    k(x)                        result = own
    result = copy x
    x = copy saved

Blocks are looked at as wholes. What fails on the way leaves what it left before: a write to a field is taken out only
where a copy that is made whatever happens puts something else there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tinote.program import operations as ops
from tinote.program.needed_numbers import needed_numbers
from tinote.program.program import Program
from tinote.program.rerun import Reruns, rerunning


def simplified(
    program: Program,
    steps: Sequence[ops.Operation],
    reruns: Reruns | None = None,
    *,
    moves_fields: bool = True,
) -> list[ops.Operation]:
    """The steps that matter. `reruns`: which launches may run again in place of copies
    that bring back what they wrote. Blocks that no step uses any more are empty afterwards. `moves_fields`: whether
    codes may find other memory where they use a field by its name.
    """
    found = list(steps)
    for number, block in enumerate(program.blocks):
        if moves_fields and block.kind == "field":
            found = _in_scratch(program, found, number)
    found = _without_waste(program, found)
    if reruns is not None:
        again = rerunning(program, found, reruns)
        found = _without_waste(program, again)
    found = needed_numbers(found, program.codes)
    used = set[int]().union(*[ops.used_by(program.codes, step) for step in found])
    for number, block in enumerate(program.blocks):
        if number not in used:
            program.blocks[number] = ops.Block("unused", block.name, 0)
    return found


def _without_waste(program: Program, steps: Sequence[ops.Operation]) -> list[ops.Operation]:
    """Without copies and writes that change nothing."""
    found, left = list(steps), len(steps) + 1
    while len(found) < left:
        left = len(found)
        found = _without_idle_copies(program, found)
        found = _without_dead_writes(program, _reading_originals(program, found))
    return found


def _without_idle_copies(program: Program, steps: Sequence[ops.Operation]) -> list[ops.Operation]:
    """Leave out copies to where the same numbers are already."""
    found: list[ops.Operation] = []
    version = defaultdict[int, int](int)  # how often a block was written
    equal: dict[ops.View, tuple[ops.View, int, int]] = {}  # what a view was copied from, and the versions of both then
    for step in steps:
        match step:
            case ops.Copy(target, source):
                if any(_is_still(equal, version, a, b) for a, b in ((source, target), (target, source))):
                    continue
                # What is saved may be there already, since it was put back from there.
                before = equal.get(source)
                moves = not step.always or (before is not None and program.blocks[before[0].block].kind == "scratch")
                if before is not None and moves and target.type == source.type == before[0].type:
                    if _is_still(equal, version, source, before[0]) and target.block != before[0].block:
                        step = step._replace(source=before[0])
                        source = before[0]
                version[target.block] += 1
                if target.block != source.block:
                    equal[target] = source, version[target.block], version[source.block]
            case _:
                for block in ops.written_by(program.codes, step):
                    version[block] += 1
        found.append(step)
    return found


def _is_still(
    equal: dict[ops.View, tuple[ops.View, int, int]], version: dict[int, int], copy: ops.View, origin: ops.View
) -> bool:
    """Whether a view is a copy of another one as that is now."""
    known = equal.get(copy)
    return known == (origin, version[copy.block], version[origin.block])


def _in_scratch(program: Program, steps: list[ops.Operation], block: int) -> list[ops.Operation]:
    """Where a field's memory is saved, cleared, used and put back, let the steps use a block of the program's own
    instead. What fails on the way leaves the field as it is, as does putting it back.
    """
    uses = [at for at, step in enumerate(steps) if block in ops.used_by(program.codes, step)]
    if len(uses) < 3:
        return steps
    save, clear, last = (steps[at] for at in (uses[0], uses[1], uses[-1]))
    if not (type(save) is ops.Copy and type(clear) is ops.Clear and type(last) is ops.Copy and last.always):
        return steps
    saved = save.target.block
    is_saved = (
        save.source.block == block
        and program.blocks[saved].kind == "scratch"
        and (last.target, last.source) == (save.source, save.target)
        and _is_whole(program, save.source)
        and [at for at, step in enumerate(steps) if saved in ops.used_by(program.codes, step)] == [uses[0], uses[-1]]
    )
    if not is_saved or clear != ops.Clear(block, 0, program.blocks[block].nbytes, clear.span):
        return steps
    renamed = {at: _renamed(program, steps[at], block, saved, writes=True) for at in uses[1:-1]}
    if None in renamed.values():
        return steps
    for code in {step.code for step in renamed.values() if isinstance(step, ops.Launch)}:
        # What a code uses by its name, it uses in each of its launches: these are all.
        own = program.codes[code]
        program.codes[code] = own._replace(pointers=_pointing(own.pointers, block, saved))
    return [renamed.get(at) or step for at, step in enumerate(steps) if at not in (uses[0], uses[-1])]


def _pointing(pointers: tuple[tuple[int, int, int], ...], block: int, to: int) -> tuple[tuple[int, int, int], ...]:
    return tuple([(slot, to if one == block else one, offset) for slot, one, offset in pointers])


def _reading_originals(program: Program, steps: Sequence[ops.Operation]) -> list[ops.Operation]:
    """Let steps read what a scratch block was copied from, where neither is written as long as the copy is read. The
    copy, which nobody reads then, is a dead write.
    """
    found = list(steps)
    writes, uses = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for at, step in enumerate(steps):
        for block in ops.written_by(program.codes, step):
            writes[block].append(at)
        for block in ops.used_by(program.codes, step):
            uses[block].append(at)
    for at, step in enumerate(steps):
        if not (type(step) is ops.Copy and step.target.type == step.source.type and not step.always):
            continue
        now = found[at]
        assert isinstance(now, ops.Copy)
        copy, origin = step.target.block, now.source.block
        if program.blocks[copy].kind != "scratch" or not (
            _is_whole(program, step.target) and _is_whole(program, step.source)
        ):
            continue
        if writes[copy] != [at] or uses[copy][0] != at or any(at < k <= uses[copy][-1] for k in writes[origin]):
            continue
        readers = uses[copy][1:]
        renamed = [_renamed(program, found[k], copy, origin) for k in readers]
        if readers and None not in renamed:
            for k, one in zip(readers, renamed, strict=True):
                assert one is not None
                found[k] = one
                uses[origin].append(k)
            uses[origin].sort()
            uses[copy] = [at]
    return found


def _renamed(
    program: Program, step: ops.Operation, block: int, to: int, *, writes: bool = False
) -> ops.Operation | None:
    """A step that reads another block in place of `block`, and writes to it if it `writes`; None where it cannot."""

    def moved(view: ops.View) -> ops.View:
        return view._replace(block=to) if view.block == block else view

    match step:
        case ops.Copy(target, source, _, always):
            if not always:
                return step._replace(source=moved(source), target=moved(target) if writes else target)
            # Where it fails before, it is put back as soon as that was saved.
            if not writes and program.blocks[to].kind == "scratch":
                return step._replace(source=moved(source))
        case ops.LoadElement(_, source):
            return step._replace(source=moved(source))
        case ops.Launch(code, pointers):
            # What a code uses by its name is for its launches together.
            if writes or all(one != block for _, one, _ in program.codes[code].pointers):
                return step._replace(pointers=_pointing(pointers, block, to))
        case ops.End(result) if program.blocks[to].kind == "scratch":
            return step._replace(
                result=ops.with_leaves(
                    result, lambda kind, parts: (moved(parts[0]), *parts[1:]) if kind == "array" else parts
                )
            )
        case ops.Clear() if writes:
            return step._replace(block=to)
        case ops.Fill(target) if writes:
            return step._replace(target=moved(target))
        case _:
            pass
    return None


def _without_dead_writes(program: Program, steps: Sequence[ops.Operation]) -> list[ops.Operation]:
    """Leave out what is written and not looked at before something else is there."""
    found: list[ops.Operation] = []
    #: from where fields are put back later, whatever happens: what they hold until then is no matter
    put_back: dict[int, int] = {}
    live = {number for number, block in enumerate(program.blocks) if block.kind in ("field", "input")}
    for step in reversed(steps):
        match step:
            case ops.Copy(target, source, _, always):
                if target.block not in live:
                    continue
                is_own = program.blocks[target.block].kind == "scratch" or target.block in put_back
                if _is_whole(program, target) and (always or is_own):
                    live.discard(target.block)
                    if always and program.blocks[source.block].kind == "scratch":
                        put_back[target.block] = source.block
                put_back = _without_saved(put_back, target.block)
                live.add(source.block)
            case ops.Clear(block, offset, nbytes):
                if block not in live:
                    continue
                put_back = _without_saved(put_back, block)
                is_own = program.blocks[block].kind == "scratch" or block in put_back
                if is_own and (offset, nbytes) == (0, program.blocks[block].nbytes):
                    live.discard(block)
            case ops.Fill(target, value):
                if target.block not in live and isinstance(value, ops.Constant):
                    continue
            case _:
                live |= ops.used_by(program.codes, step)
        found.append(step)
    return found[::-1]


def _without_saved(put_back: dict[int, int], written: int) -> dict[int, int]:
    """Before this block was written, nothing is put back from it."""
    if written not in put_back.values():
        return put_back
    return {block: saved for block, saved in put_back.items() if saved != written}


def blocks_to_give(program: Program, least: int) -> dict[int, int]:
    """The blocks of `least` bytes and more, with their sizes, that are an array of the result each, and are set
    entirely before they are used. Every run can have memory of its own for such a block, and give it away with its
    result, which need not be copied.
    """
    end = program.root.steps[-1]
    assert isinstance(end, ops.End)
    found: dict[int, int] = {}
    parts = ops.arrays_of(end.result)
    for view in parts:
        kind, _, nbytes, _ = program.blocks[view.block]
        is_alone = [one.block for one in parts].count(view.block) == 1
        if kind == "scratch" and nbytes >= least and is_alone and _is_whole(program, view):
            first = next(step for step in program.root.steps if view.block in ops.used_by(program.codes, step))
            if view.block in ops.filled_by(program.blocks, first):
                found[view.block] = nbytes
    return found


def _is_whole(program: Program, view: ops.View) -> bool:
    return view.is_all_of(program.blocks[view.block])
