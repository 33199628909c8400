"""Stale inputs: changes between a launch and `kernel.grad()`, which computes with the present memory.

    square()                # y = x², at x = 3
    x[0] = 100.0
    square.grad()           # by the chain rule with x = 100, and a warning with both lines

Launches of kernels that touch memory with a gradient, and what other kernels and Python write to fields that these
read, have an order: `session.order` counts the launches, and each write of Python has the count at its time. Other
launches count nothing.
"""

from __future__ import annotations

import warnings
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from tinote.compiler.driver import Specialisation
from tinote.compiler.signature import TemplateArgument
from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer, BufferKind
from tinote.lang.data.fields import Field
from tinote.lang.index_regions import IndexRegion, intersection, region_at
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.kernels.arguments import Arguments, arguments_of
from tinote.lang.session.state import session
from tinote.source import caller

#: How many gradients of an instance are looked at.
_MOST_CHECKS = 64
#: How many constants a message names.
_MOST_NAMED = 6
_NAMED = (int, float, Field)
#: The instances that write to a field.
_writers: WeakKeyDictionary[Buffer, WeakSet[Any]] = WeakKeyDictionary()
#: What those instances read that touch memory with a gradient.
_read: WeakSet[Buffer] = WeakSet()
#: The changes that were warned of, by instance.
_warned: WeakKeyDictionary[Any, set[tuple[str, Note]]] = WeakKeyDictionary()


def take_part(instance: Any) -> bool:
    """Whether the launches of a new instance have an order: it touches memory with a gradient, or writes to what such
    an instance reads. What it reads is noted from now on when Python or another kernel writes to it.
    """
    touched = instance.specialisation.accesses()
    written = [buffer for buffer in touched.written if buffer.kind is BufferKind.FIELD]
    for buffer in written:
        _writers.setdefault(buffer, WeakSet()).add(instance)
    if all(buffer.adjoint is None for buffer in (*touched.loaded, *touched.written)):
        return any(buffer in _read for buffer in written)
    for buffer in touched.loaded:
        if buffer.kind is BufferKind.FIELD:
            _read.add(buffer)
            for writer in _writers.get(buffer, ()):
                writer.notes = True
    for field in list(session.fields):
        if field.noted is None and field.is_placed and field.buffer in touched.loaded:
            field.noted = -1
    return True


def warn_of_changes(kernel: Any, instance: Any, arguments: Arguments, values: tuple[Any, ...]) -> None:
    """Warn, once for each place, where the gradient of an instance needs what has changed since its last launch."""
    if instance.checks >= _MOST_CHECKS:
        return
    instance.checks += 1
    found = _change(instance, arguments, values) if instance.last else _other_constants(kernel, instance)
    if found is not None and found not in _warned.get(instance, ()):
        what, note = found
        _warned.setdefault(instance, set()).add(found)
        warning = DifferentiationError(
            f"{what} since '{instance.kernel_name}' was launched, and this gradient is that of the present values",
            caller(),
            hint="launch the kernel again before its gradient, or in a tape, which keeps what is overwritten",
            notes=[note],
        )
        warnings.warn_explicit(str(warning), UserWarning, warning.span.file, warning.span.line)


def _change(instance: Any, arguments: Arguments, values: tuple[Any, ...]) -> tuple[str, Note] | None:
    """What of the memory that the gradient needs has changed, and where."""
    facts, last = arguments.gradient_facts, instance.last
    if last < session.replayed or (session.order == last and session.changed < last):
        return None
    needed: BufferRegions | None = None
    for buffer in facts.live_in | facts.live_in_before:
        writes = [write for write in session.changes.get(buffer, ()) if write.order >= last]
        changes = [(region_at(buffer, write.position), Note("changed here", write.span)) for write in writes]
        for writer in _writers.get(buffer, ()):
            if writer.last > last:
                note = Note("changed by this kernel", writer.specialisation.source.span)
                changes += [(region, note) for region in _written(writer, buffer)]
        if changes and needed is None:
            regions = arguments.regions(values)
            needed = (*regions.live_in, *regions.live_in_before)
        for region, note in changes:
            parts = [own for other, own in needed or () if other is buffer]
            if region is not None and any(intersection(own, region) is not None for own in parts):
                return f"'{buffer.name}' has changed", note
    return None


def _written(writer: Any, buffer: Buffer) -> list[IndexRegion]:
    """The elements of a field that each launch of an instance writes; none if they depend on its arguments."""
    fixed = None if writer.specialisation.arrays else arguments_of(writer, ()).fixed_effects
    return [] if fixed is None else [region for other, region in fixed[0].written if other is buffer]


def _other_constants(kernel: Any, instance: Any) -> tuple[str, Note] | None:
    """Whether it was launched when it was compiled with other constants."""
    before = getattr(kernel, "kernel", kernel).launched_before(instance)
    if before is None:
        return None
    now, then = compiled_constants(instance.specialisation), compiled_constants(before.specialisation)
    text = f", {now}, which was {then}," if now != then else ""
    note = Note("the kernel", instance.specialisation.source.span)
    return f"what this kernel takes from outside{text} has changed", note


def compiled_constants(specialisation: Specialisation) -> str:
    """The numbers and fields that a kernel was compiled with, in words."""
    found = [f"{one.key} = {one.value!r}" for one in specialisation.captures if isinstance(one.value, int | float)]
    templates = [one.value for one in specialisation.arguments if isinstance(one, TemplateArgument)]
    found += [one.name if isinstance(one, Field) else repr(one) for one in templates if isinstance(one, _NAMED)]
    return ", ".join(found[:_MOST_NAMED])
