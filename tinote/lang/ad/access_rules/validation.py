"""Checks of the access rules under a tape: each launch runs the version of its kernel that keeps account of every
element (`autodiff/instrument.py`), and what Python does between launches is entered into the same shadows.

What Python reads it has, whatever happens to the field afterwards, and counts for nothing; what it writes counts as a
store. Arrays that others may write to at any time are compared with what they held after the last launch that used
them. A function with a custom VJP, or without any gradient, is exempt: what it launches is not under the tape.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.launch.native import BoundArray, BoundCode
from tinote.compiler.requests import Checks, Request
from tinote.errors import DifferentiationError
from tinote.ir.buffers import family_of
from tinote.ir.checked_accesses import AccessSite, CheckedAccesses, Kind, Ledger, Word
from tinote.ir.nodes import Buffer
from tinote.lang.ad.access_rules.shadows import Array, Shadows, bound_over
from tinote.lang.ad.access_rules.violations import ProgramAccess, Violation
from tinote.lang.ad.journal.events import Custom, Write
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.data.layout import array_over
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.sparse.active import active_places, indices_at
from tinote.lang.index_regions import IndexRegion
from tinote.lang.kernels.arguments import Arguments, ExternalArray
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import is_viewed, memory_of
from tinote.source import caller

_MOST_CODES = 2**32 - 1


class _Event(NamedTuple):
    """A launch, or something that Python did, and the codes of its accesses: from `first_code` on, one a site.
    `begins` and `ends`: how many launches there had been before it and after it.
    """

    first_code: int
    sites: tuple[AccessSite, ...]
    kernel: str
    begins: int
    ends: int
    outside: bool = False


class _Seen(NamedTuple):
    """What memory that others may write to held after a launch. `known` is false for elements that Python itself has
    written since.
    """

    buffer: Buffer
    numbers: Array
    copy: Array
    known: Array


class CheckedLaunch:
    """The machine code of one launch that checks itself. `ledger`: what it will have counted."""

    def __init__(self, native: BoundCode, arrays: int, checks: Sequence[BoundArray], ledger: Array) -> None:
        self._native = native
        self._arrays = arrays
        self._checks = checks
        self.ledger = ledger

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with the values that the launch of the kernel itself gets."""
        return self._native.launch((*values[: self._arrays], *self._checks, *values[self._arrays :]))


class AccessRules(Observer):
    """The account of one tape. `violations`: what was found so far; `raises`: whether the first is raised as an
    `AccessRuleError`.
    """

    checks_before_refusal = True

    def __init__(self, *, raises: bool) -> None:
        self.violations: list[Violation] = []
        self._raises = raises
        self._shadows = Shadows()
        self._events: list[_Event] = []
        self._next_code = 1
        self._launches: list[str] = []
        self._pending: tuple[CheckedLaunch, Arguments, CheckedAccesses] | None = None
        self._seen: dict[object, _Seen] = {}

    # ---- launches

    def launching(self, instance: Instance, arguments: Arguments) -> CheckedLaunch:
        """A kernel is about to be launched with `arguments`; gives what is to be launched in its place."""
        self.look_outside()
        native, facts = instance.specialisation.compiled(Request(checks=Checks.ACCESS_RULES))
        assert facts is not None and facts.checks is not None
        checks = facts.checks
        ledger = np.zeros(len(Ledger), np.uint32)
        self._launches.append(instance.kernel_name)
        ledger[Ledger.FIRST_CODE] = self._enter(checks.sites, instance.kernel_name, launches=True)
        bound: list[BoundArray] = []
        for buffer, _ in checks.shadows:
            shadow = self._shadows.of(arguments.actual(buffer))
            bound.append(bound_over(shadow, shadow.shape[: buffer.rank]))
        bound.append(bound_over(ledger, ledger.shape))
        launch = CheckedLaunch(native, len(instance.specialisation.arrays), bound, ledger)
        self._pending = launch, arguments, checks
        return launch

    def launched(self) -> None:
        """The launch that was announced has completed. Raises `AccessRuleError`."""
        assert self._pending is not None
        launch, arguments, checks = self._pending
        self._pending = None
        touched = {arguments.actual(buffer): None for buffer, _ in checks.shadows}
        for buffer in touched:
            self._see(buffer)
        if launch.ledger[Ledger.VIOLATIONS]:
            self._collect(list(touched))

    def _enter(
        self, sites: tuple[AccessSite, ...], kernel: str, *, launches: bool = False, outside: bool = False
    ) -> int:
        """Give the accesses of an event their codes; the first of them."""
        first = self._next_code
        self._next_code += len(sites)
        if self._next_code > _MOST_CODES:
            raise DifferentiationError("this tape has too many launches to validate", caller())
        ends = len(self._launches)
        self._events.append(_Event(first, sites, kernel, ends - launches, ends, outside))
        return first

    # ---- Python

    def writing(self, write: Write, *, exempt: bool) -> None:
        """Raises `AccessRuleError`."""
        buffer, position = write.target, write.position
        if exempt or _is_active_already(buffer, position):
            return
        if buffer.primal is None:
            self.look_outside()
            self._store(buffer, position)
            seen = self._seen.get(_key(buffer))
            if seen is not None:
                seen.known[position] = False
        if write.source is not None:
            self._copied(write.source, buffer)

    def overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool) -> None:
        if exempt:
            self.forget(buffer)

    def custom(self, custom: Custom) -> None:
        for buffer in custom.written:
            self.forget(buffer)

    def _copied(self, source: Buffer, target: Buffer) -> None:
        """Python copies all of a field into another: that reads it, where a gradient takes the same way."""
        if source.primal is None and (source.adjoint is not None or target.adjoint is not None):
            read = self._shadows.of(source)[..., Word.READ]
            read[read == 0] = self._enter((AccessSite(Kind.READ, source, caller()),), "")

    def _store(self, buffer: Buffer, position: Any, *, outside: bool = False) -> None:
        code = self._enter((AccessSite(Kind.STORE, buffer, caller()),), "", outside=outside)
        sparsity = family_of(buffer).sparsity
        if position is ... and sparsity is not None:
            position = active_places(sparsity)[: buffer.rank]
        words = self._shadows.of(buffer)
        read, written = words[..., Word.READ], words[..., Word.WRITE]
        earlier = np.array(read[position])
        if buffer.adjoint is not None:
            earlier = np.where(earlier != 0, earlier, written[position])
        words[..., Word.LATER][position] = np.where(earlier != 0, code, 0)
        words[..., Word.EARLIER][position] = earlier
        read[position] = 0
        written[position] = code
        words[..., Word.ITERATION][position] = 0
        if np.any(earlier):
            self._collect([buffer])

    # ---- memory that others may write to

    def _see(self, buffer: Buffer) -> None:
        """Remember what such memory holds now."""
        if isinstance(buffer, ExternalArray):
            shape = (*buffer.bound.shape, *buffer.element)
            held = np.ndarray(shape, numpy_type(buffer.dtype), buffer=buffer.bound.memory.view())
        elif is_viewed(buffer):
            held = array_over(buffer, memory_of(buffer))
        else:
            self._seen.pop(buffer, None)
            return
        self._seen[_key(buffer)] = _Seen(buffer, held, held.copy(), np.ones(held.shape, bool))

    def look_outside(self) -> None:
        """Find what was written through arrays that share memory with what launches have used. Raises
        `AccessRuleError`.
        """
        if self._pending is not None:  # it did not end well, and may have written anything
            for buffer, _ in self._pending[2].shadows:
                self.forget(self._pending[1].actual(buffer))
            self._pending = None
        for key, (buffer, held, copy, known) in list(self._seen.items()):
            changed = known & _differs(held, copy)
            if changed.any():
                self._seen[key] = _Seen(buffer, held, held.copy(), known)
                self._store(buffer, changed, outside=True)

    def forget(self, buffer: Buffer) -> None:
        """Memory was perhaps written by what is exempt."""
        self._seen.pop(_key(buffer), None)

    def release(self) -> None:
        """Nothing will happen any more: let go of everything but the violations."""
        self._shadows, self._events, self._pending = Shadows(), [], None
        self._seen.clear()

    # ---- what is found

    def _collect(self, buffers: Sequence[Buffer]) -> None:
        """Take the violations out of the shadows of `buffers`."""
        found: list[tuple[int, int, Violation]] = []
        for buffer in buffers:
            places, pairs = self._shadows.broken(buffer)
            if not len(places):
                continue
            elements, pairs = _in_order(_as_counted(buffer, places), pairs)
            for later, earlier in np.unique(pairs, axis=0).tolist():
                concerned = elements[(pairs == (later, earlier)).all(axis=1)]
                found.append((later, earlier, self._violation(buffer, concerned, earlier, later)))
        found.sort(key=lambda one: one[:2])
        self.violations += [violation for _, _, violation in found]
        if self._raises and found:
            error = found[0][2].error()
            error.violations = tuple(self.violations)
            raise error

    def _violation(self, buffer: Buffer, elements: Array, earlier: int, later: int) -> Violation:
        first, event_before = self._decoded(earlier)
        second, event = self._decoded(later)
        rule = (
            2 if first.kind is not Kind.READ and second.kind in (Kind.STORE, Kind.COMBINE) and earlier != later else 1
        )
        between = tuple(self._launches[event_before.ends : event.begins])
        sparsity = family_of(buffer).sparsity
        shape = tuple([n or 0 for n in buffer.shape])
        nbytes = prod((*shape, *buffer.element)) * buffer.dtype.size if sparsity is None else memory_of(buffer).taken
        return Violation(
            rule=rule,
            field=buffer.name,
            shape=shape if sparsity is None else sparsity.shape,
            elements=elements,
            earlier=first,
            later=second,
            between=between,
            offset=tuple(buffer.offset) if sparsity is None else sparsity.offset,
            nbytes=nbytes,
            external=isinstance(buffer, ExternalArray),
        )

    def _decoded(self, code: int) -> tuple[ProgramAccess, _Event]:
        """The access that a code stands for."""
        event = self._events[bisect_right(self._events, code, key=lambda event: event.first_code) - 1]
        site = event.sites[code - event.first_code]
        launch = event.ends if event.ends > event.begins else None
        return ProgramAccess(site.kind, site.span, launch, event.kernel, event.outside), event


def _is_active_already(buffer: Buffer, position: Any) -> bool:
    """Whether Python activates what is active: that is no change."""
    last = None if buffer.sparsity is None else buffer.sparsity.groups[-1].activity
    if last is None or buffer is not last.buffer or last.is_list or position is ...:
        return False
    return bool(array_over(buffer, memory_of(buffer))[position])


def _as_counted(buffer: Buffer, places: Array) -> Array:
    """Places in memory, one a row, as the indices that users count."""
    sparsity = family_of(buffer).sparsity
    if sparsity is None:
        places[:, : len(buffer.offset)] += np.array(buffer.offset, np.int64)
        return places
    return np.hstack([indices_at(sparsity, list(places.T[: buffer.rank])), places[:, buffer.rank :]])


def _in_order(elements: Array, pairs: Array) -> tuple[Array, Array]:
    """Both by the indices of the elements."""
    order = np.lexsort(elements.T[::-1]) if elements.shape[1] else slice(None)
    return elements[order], pairs[order]


def _key(buffer: Buffer) -> object:
    """What memory is known by from one launch to the next."""
    return (buffer.first, buffer.last, buffer.dtype.size) if isinstance(buffer, ExternalArray) else buffer


def _differs(a: Array, b: Array) -> Array:
    """Where two arrays of one type hold other bits: a NaN is the same as itself."""
    bits = np.dtype(f"u{a.itemsize}")
    return a.view(bits) != b.view(bits)
