"""Proxies for the caller's arrays while a function is differentiated, and other users of the arrays' memory.

`ti.ad.grad` and its like call a function with ndarrays of their own in place of the arrays that it is differentiated
with respect to. What a kernel writes through one name of such an array is not seen through another: where one array is
passed twice, where slices overlap, where the function knows the array from elsewhere. Memory that is only read may have
several names, and the derivatives are the partial ones, by each name. Memory that is written has one name only, or a
`DifferentiationError` says where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from tinote.compiler.launch.native import BoundArray
from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.data.ndarrays import StandIn
from tinote.lang.session.state import is_viewed, memory_of, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import active_listener
from tinote.source import Span

Array = np.ndarray[Any, Any]

#: How hard NumPy tries to find out whether two arrays that lie among each other have elements in common. Where it gives
#: up they count as overlapping.
_EFFORT = 10_000


class _StandIn:
    """`field` stands in for `array`, argument number `position`."""

    def __init__(self, field: StandIn, array: Array, position: int) -> None:
        self.field = field
        self.array = array
        self.position = position
        self.others: list[tuple[str, Span]] = []  # further names under which this memory is used, and where
        self.written = False


class StandIns:
    """The arrays that stand in for others in one run of a function that is differentiated at `span`. `keeps`: hold on
    to what arrays of the caller's held before kernels wrote to them, for `take_back`.
    """

    def __init__(self, span: Span, *, keeps: bool = False) -> None:
        self._span = span
        self._all: dict[Buffer, _StandIn] = {}
        self._keeps = keeps
        self._before = MemoryCopies()
        self._around = stand_ins.get()  # those of a function that is differentiated around this one

    def add(self, made: StandIn, array: Array, position: int) -> None:
        """`made` stands in for `array`, the argument at `position`. Raises `DifferentiationError` for a field's own
        memory.
        """
        name = f"argument {position}"
        first, last = np.lib.array_utils.byte_bounds(array)
        viewed = viewed_field(first, last)
        if viewed is not None:
            raise DifferentiationError(
                f"{name} is a view of '{viewed}': what kernels do to one of them would be lost on the other",
                self._span,
                hint=f"pass '{viewed}' itself, or a copy of the view",
            )
        found = _StandIn(made, array, position)
        for other in self._all.values():
            if _overlap(array, other.array):
                found.others.append((f"argument {other.position}", self._span))
                other.others.append((name, self._span))
        self._all[made.buffer] = found

    def has(self, buffer: Buffer) -> bool:
        """Whether it stands in for an array, here or in a function around."""
        return buffer in self._all or (self._around is not None and self._around.has(buffer))

    def launching(
        self, arrays: list[tuple[Buffer, BoundArray]], names: Sequence[str], written: Set[Buffer], span: Span
    ) -> None:
        """A kernel at `span` is about to be launched with these arrays for its parameters of these names. Raises
        `DifferentiationError` where it writes to memory that the function uses under several names.
        """
        if self._around is not None:
            self._around.launching(arrays, names, written, span)
        met: list[_StandIn] = []
        named: dict[Buffer, str] = {}
        for (buffer, bound), name in zip(arrays, names, strict=True):
            known = self._all.get(buffer)
            if known is not None:
                named.setdefault(buffer, f"'{name}'")
                if buffer in written:
                    known.written = True
                    known.field.about_to_change()
                    met.append(known)
            elif bound.buffer is None and bound.nbytes:
                array = _bytes_at(bound)
                under = [s for s in self._all.values() if _overlap(s.array, array)]
                for one in under:
                    one.others.append((f"'{name}'", span))
                    one.written = one.written or buffer in written
                met += [one for one in under if one.written]
                if self._keeps and buffer in written:
                    self._before.add(bound.memory)
        for one in met:
            if one.others:
                self._refuse_names(one, span, named.get(one.field.buffer))
            if not one.array.flags.writeable:
                self._refuse_read_only(one, span)

    def put_back(self) -> None:
        """The run has ended: give what was written to stand-ins to the caller's arrays. Raises `DifferentiationError`
        where that is not what a run without derivatives would have left.
        """
        for one in self._all.values():
            before = one.field.before
            if not _same(one.array, one.field.held() if before is None else before):
                raise DifferentiationError(
                    f"the array of argument {one.position} is written under another name while the function runs, but "
                    "an array of its own stands in for it there",
                    self._span,
                    hint="write to the argument itself",
                )
        for one in self._all.values():
            if one.field.before is None:
                continue
            now = one.field.held()
            # A step that is captured writes what is the same now, and need not be elsewhere.
            if active_listener() is None and _same(now, one.field.before):
                continue
            if one.others:
                self._refuse_names(one, self._span)
            if not one.array.flags.writeable:
                self._refuse_read_only(one, self._span)
            if overlaps_itself(one.array):
                raise DifferentiationError(
                    f"elements of argument {one.position}, which is written, share memory with each other",
                    self._span,
                    hint="pass a copy",
                )
            one.array[...] = now

    def take_back(self) -> None:
        """In place of `put_back`: the caller's arrays hold what they held before the run."""
        self._before.put_back()

    def _refuse_names(self, one: _StandIn, span: Span, parameter: str | None = None) -> NoReturn:
        """`parameter`: what the kernel at `span` calls it, if it gets it."""
        other, there = one.others[0]
        # Where one kernel gets both, both are named as it calls them.
        own = parameter if parameter is not None and there == span else f"argument {one.position}"
        names = sorted((own, other), key=lambda name: (name.startswith("'"), name))
        raise DifferentiationError(
            f"{' and '.join(names)} share memory that is written, but while the function is "
            "differentiated each is an array of its own",
            span,
            hint="pass arrays that do not overlap",
            notes=[Note("used here", where) for where in dict.fromkeys((there, self._span)) if where != span],
        )

    def _refuse_read_only(self, one: _StandIn, span: Span) -> NoReturn:
        raise DifferentiationError(
            f"argument {one.position} is written, and the array is read-only",
            span,
            hint="pass a copy of it",
            notes=[] if span == self._span else [Note("differentiated here", self._span)],
        )


#: What stands in for arrays in the function that is being differentiated in this context, if any is.
stand_ins: ContextVar[StandIns | None] = ContextVar("tinote_stand_ins", default=None)


def viewed_field(first: int, last: int) -> str | None:
    """The name of a field that has memory in common with the bytes from `first` up to `last`, if others have a view of
    it.
    """
    for buffer in list(session.views) if session.has_views else ():
        memory = memory_of(buffer) if is_viewed(buffer) else None
        if memory is not None and max(first, memory.begin) < min(last, memory.begin + memory.nbytes):
            return next((f.name for f in list(session.fields) if f.buffer is buffer), buffer.name)
    return None


def _bytes_at(bound: BoundArray) -> Array:
    """The memory of an array argument."""
    return np.frombuffer(bound.memory.view(), np.uint8)


def _overlap(a: Array, b: Array) -> bool:
    """Whether two arrays have elements in common."""
    try:
        return np.shares_memory(a, b, max_work=_EFFORT)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def overlaps_itself(array: Array) -> bool:
    """Whether elements of one array perhaps share memory, as those of a broadcast one do."""
    reach = array.itemsize
    for stride, extent in sorted([(abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]):
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays of floats hold the same numbers, bit by bit."""
    bits = np.dtype(f"u{b.itemsize}")
    return bool((np.asarray(a, b.dtype).view(bits) == b.view(bits)).all())
