"""Rematerialisation: launches of a recording that may run again instead of saving their results
(`program/rerun.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tinote.compiler.launch.native import Native
from tinote.ir.buffers import bytes_of
from tinote.lang.index_regions import IndexRegion, whole_region
from tinote.lang.kernels.arguments import arguments_of
from tinote.program import operations as ops
from tinote.program.rerun import Bytes, Rerun

#: Greatest cost of a launch per element, in additions: about the cost of storing and reloading it, in vector code.
MOST_WORK = 24.0


def rerun_of(instance: Any, native: Native, values: Sequence[Any]) -> Rerun | None:
    """The data to run a launch of `native`, a kernel's primal code, again; None where that is not allowed."""
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
    """The byte range of a row of numbers in some regions; None if unknown."""
    if not regions or buffer.rank != 1 or buffer.element:
        return None
    size = buffer.dtype.size
    return size * min([first for ((first, _),) in regions]), size * max([last for ((_, last),) in regions])


class RecordedLaunches:
    """The launches of a recording. As `Reruns` it gives the data to run one of them again."""

    def __init__(self) -> None:
        self._launched: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[Any, Native, tuple[Any, ...]]] = {}
        self._known: dict[tuple[int, tuple[tuple[int, int], ...]], Rerun | None] = {}

    def note(self, step: ops.Launch, instance: Any, native: Native, values: Sequence[Any]) -> None:
        """Record that an instance has run its primal code."""
        self._launched.setdefault((step.code, step.extents), (instance, native, tuple(values)))

    def __call__(self, step: ops.Launch) -> Rerun | None:
        key = step.code, step.extents
        if key not in self._known:
            launched = self._launched.get(key)
            self._known[key] = None if launched is None else rerun_of(*launched)
        return self._known[key]
