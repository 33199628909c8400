"""Replaces the first additions to cleared gradients in a plan by stores.

    clear g                                     gradient of k, into g (w, g)
    gradient of k (w, g)              →         gradient of k (v, g)
    gradient of k (v, g)

A launch that finds zeros in a block runs code that was compiled for that (`passes/updates/store_first.py`), and where
its stores fill the block for certain, it need not be cleared. This is decidable since a plan has the same arguments and
shapes in each run.

The block must be the plan's own, and the launch must access it only as one contiguous gradient, or as the planes of
one. Code is compiled only for blocks of some size (`LEAST_BYTES`), and for single launches: with several launches most
of the work is addition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import Native
from tinote.compiler.requests import Derivative, Request
from tinote.ir.affine import Interval
from tinote.ir.buffers import Buffer, row_major
from tinote.ir.launch_values import SymbolicRegions
from tinote.lang.index_regions import IndexRegion, difference
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.runtime.layout import SLOTS

#: Least size of a block in bytes: clearing fewer bytes costs less than a compilation.
LEAST_BYTES = 32 << 10
#: Greatest number of launches of a plan for which code is compiled.
MOST_CODES = 4
#: Greatest number of unfilled pieces of a gradient that are tracked.
_MOST_PIECES = 64

#: The kernel and the request that code was compiled for; None if unknown.
Origin = Callable[[Native], tuple[Specialisation, Request] | None]


def storing_first(
    plan: Program, steps: Sequence[ops.Operation], natives: list[Native], origin: Origin
) -> tuple[list[ops.Operation], dict[Native, Native]]:
    """The steps, without clears of blocks that a launch fills; and the codes that replace others. `natives`: the plan's
    codes, to which these are appended.
    """
    storing = _Storing(plan, natives, origin)
    return storing.run(steps), storing.instead


class _Gradient(NamedTuple):
    """A buffer of the code as a part of a block; `shape`: that of its index."""

    block: int
    buffer: Buffer
    shape: tuple[int, ...]


class _Storing:
    """`cleared`: the blocks that hold zeros, with the position of the step that cleared them; `read`: those that have
    been read since.
    """

    def __init__(self, plan: Program, natives: list[Native], origin: Origin) -> None:
        self.plan = plan
        self.natives = natives
        self.origin = origin
        self.cleared: dict[int, int] = {}
        self.read: set[int] = set()
        self.launches = Counter[int]()
        self.compiled = 0
        self.instead: dict[Native, Native] = {}

    def run(self, steps: Sequence[ops.Operation]) -> list[ops.Operation]:
        found: list[ops.Operation | None] = []
        self.launches.update([step.code for step in steps if isinstance(step, ops.Launch)])
        for step in steps:
            if isinstance(step, ops.Launch) and self.cleared and self.launches[step.code] == 1:
                step = self._launch(step)
                for block in step.fills:
                    found[self.cleared[block]] = None
            for block in ops.written_by(self.plan.codes, step):
                self.cleared.pop(block, None)
            self.read |= ops.used_by(self.plan.codes, step)
            if isinstance(step, ops.Clear) and self._is_whole(step):
                self.cleared[step.block] = len(found)
                self.read.discard(step.block)
            found.append(step)
        return [step for step in found if step is not None]

    def _is_whole(self, step: ops.Clear) -> bool:
        kind, _, nbytes, _ = self.plan.blocks[step.block]
        return kind == "scratch" and nbytes >= LEAST_BYTES and (step.offset, step.nbytes) == (0, nbytes)

    def _launch(self, step: ops.Launch) -> ops.Launch:
        """A launch, with code that stores first if it then fills a cleared block."""
        native = self.natives[step.code]
        if not isinstance(native, Native):  # a GPU has no other code
            return step
        written = ops.written_by(self.plan.codes, step)
        blocks = [block for block in self.cleared if block in written and block not in self.read]
        gradients = [one for block in blocks for one in self._gradients(step, block)]
        known = self.origin(native) if gradients else None
        if known is None:
            return step
        specialisation, request = known
        names = [buffer.name for buffer, _ in native.metadata.pointers]
        zeroed = frozenset([one.buffer for one in gradients if names.count(one.buffer.name) == 1])
        if request.derivative is not Derivative.REVERSE or request.zeroed or not zeroed:
            return step
        if self.compiled == MOST_CODES:
            return step
        self.compiled += 1
        code, facts = specialisation.compiled(request.into(zeroed))
        assert isinstance(code, Native) and facts is not None and facts.filled is not None
        if _layout(code) != _layout(native):
            return step
        filled = _filled(facts.filled, step, code)
        left = {one.block for one in gradients if not _covers(filled.get(one.buffer, ()), one.shape)}
        fills = tuple([block for block in dict.fromkeys([one.block for one in gradients]) if block not in left])
        if not fills:
            return step
        self.instead[native] = code
        self.natives.append(code)
        self.plan.codes.append(
            self.plan.codes[step.code]._replace(digest=code.metadata.code, written=frozenset(code.written_addresses()))
        )
        return step._replace(code=len(self.natives) - 1, fills=fills)

    def _gradients(self, step: ops.Launch, block: int) -> list[_Gradient]:
        """The one gradient, or the planes of one, that a launch has in a block; empty if it has anything else there."""
        metadata = self.natives[step.code].metadata
        buffers = {offset - SLOTS: buffer for buffer, offset in metadata.pointers}
        pointers = (*self.plan.codes[step.code].pointers, *step.pointers)
        places = sorted([(offset, slot) for slot, number, offset in pointers if number == block])
        nbytes = self.plan.blocks[block].nbytes // len(places)
        found: list[_Gradient] = []
        for k, (offset, slot) in enumerate(places):
            buffer = buffers[slot]
            shape = _shape(step, self.natives[step.code], buffer, nbytes)
            if buffer.primal is None or offset != k * nbytes or shape is None:
                return []
            found.append(_Gradient(block, buffer, shape))
        return found if len({one.buffer.primal for one in found}) == 1 else []


def _shape(step: ops.Launch, native: Native, buffer: Buffer, nbytes: int) -> tuple[int, ...] | None:
    """The shape of a buffer that takes this many bytes, row by row; None if it does not."""
    size = math.prod(buffer.element) * buffer.dtype.size
    shape = [n if n is not None else _extent(step, native, buffer, axis) for axis, n in enumerate(buffer.shape)]
    if shape.count(None) == 1:
        rest = math.prod([n for n in shape if n is not None]) * size
        shape = [nbytes // rest if n is None and rest else n for n in shape]
    found = tuple([n for n in shape if n is not None])
    in_rows = buffer.strides is None or (
        buffer.element_strides == row_major(buffer.element, buffer.dtype.size)
        and buffer.strides == row_major(found, size)
    )
    return found if in_rows and len(found) == buffer.rank and math.prod(found) * size == nbytes else None


def _extent(step: ops.Launch, native: Native, buffer: Buffer, axis: int) -> int | None:
    """The extent of a buffer along an axis in a launch, or that of its primal."""
    slots = {
        offset - SLOTS
        for known, along, offset in native.metadata.extents
        if along == axis and known in (buffer, buffer.primal)
    }
    return next((length for slot, length in step.extents if slot in slots), None)


def _filled(regions: SymbolicRegions, step: ops.Launch, native: Native) -> Mapping[Buffer, Sequence[IndexRegion]]:
    """The regions that a launch fills, as far as they are the same in each run."""
    lengths = [_extent(step, native, buffer, axis) for buffer, axis in regions.lengths]
    arguments: list[Any] = [one.value if isinstance(one, ops.Constant) else None for one in step.arguments]
    if None in lengths or any(arguments[k] is None for k in regions.arguments().values()):
        return {}
    intervals: list[Interval] = []
    for node in regions.nodes:
        intervals.append(node.interval(arguments, [n or 0 for n in lengths], intervals))
    found: dict[Buffer, list[IndexRegion]] = {}
    for buffer, axes in regions.written:
        spans = [intervals[node] for node in axes]
        if all(low <= high for low, high in spans):
            found.setdefault(buffer, []).append(tuple([(low, high + 1) for low, high in spans]))
    return found


def _layout(native: Native) -> tuple[object, ...]:
    """The contents of a launch's slots."""
    metadata = native.metadata
    fixed = tuple([(slot, name) for slot, name, _ in native.fixed_addresses()])
    return (
        fixed, native.array_slots(), native.extent_slots(), metadata.parameters, metadata.results, metadata.slots
    )  # fmt: skip


def _covers(regions: Sequence[IndexRegion], shape: Sequence[int]) -> bool:
    """Whether regions together cover all elements."""
    left: list[IndexRegion] = [tuple([(0, n) for n in shape])]
    for region in regions:
        left = [piece for one in left for piece in difference(one, region)]
        if len(left) > _MOST_PIECES:
            return False
    return not left
