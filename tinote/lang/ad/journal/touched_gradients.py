"""Which elements of large gradients a reverse sweep reads or writes: those of the elements that the launches touch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.events import Event
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.temporary_adjoints import Launched
from tinote.lang.data.fields import Field
from tinote.lang.index_regions import IndexRegions, whole_region
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.kernels.arguments import Arguments
from tinote.lang.session.owners import own_gradients
from tinote.lang.session.state import memory_of, session

#: To copy, clear and give back so many bytes takes 5 µs, as long as to find out which elements two launches touch.
_LARGE = 1 << 16


def changed_gradients(events: Iterable[Event], *, perhaps: bool = True) -> set[Buffer]:
    """The gradients that a reverse sweep through these events reads or writes. `perhaps`: also those that it announces
    later (`Custom.tells_gradients`).
    """
    found: set[Buffer] = set()
    for event in events:
        if event.gradients is not None:
            found.update(event.gradients)
        elif perhaps or not event.tells_gradients:
            found.update(own_gradients())
    return found


def touched_gradients(
    events: Sequence[Event], gradients: Iterable[Buffer], results: Collection[Buffer] | None
) -> Mapping[Buffer, IndexRegions]:
    """The elements that a sweep touches of those large gradients whose touched elements are known before it runs.
    `results`: gradients that anything else reads or writes; None: all may be.
    """
    large = large_gradients(set() if results is None else set(gradients).difference(results))
    if not large:
        return {}
    found: dict[Buffer, IndexRegions] = {}
    seen: set[int] = set()
    for event in events:
        if event.gradients is None:
            if event.tells_gradients:
                continue
            return {}
        touched = large.intersection(event.gradients)
        if not touched:
            continue
        if not isinstance(event, RecordedLaunch):
            large -= touched
            continue
        effects = event.arguments.effects(event.values)
        if effects.number in seen:
            continue
        seen.add(effects.number)
        regions = gradient_regions(event.arguments, event.values, touched)
        large -= touched.difference([gradient for gradient, _ in regions])
        for gradient, region in regions:
            found.setdefault(gradient, IndexRegions()).add(region)
    parts = {one: regions for one, regions in found.items() if one in large and not _covers(regions, one)}
    return _with_same_duals(parts)


def touched_by(launch: Launched | None, gradients: Iterable[Buffer]) -> Mapping[Buffer, IndexRegions]:
    """The same of the gradient of a single launch, if it is one."""
    if launch is None or not (large := large_gradients(gradients)):
        return {}
    found: dict[Buffer, IndexRegions] = {}
    for gradient, region in gradient_regions(*launch, large):
        found.setdefault(gradient, IndexRegions()).add(region)
    return _with_same_duals(found)


def with_duals(gradients: Iterable[Buffer]) -> list[Buffer]:
    """Gradients and their duals."""
    return [one for gradient in gradients for one in (gradient, gradient.tangent) if one is not None]


def fields_with_gradients() -> list[Field]:
    """All fields that have a gradient; gradients and duals themselves are none."""
    return [field for field in list(session.fields) if field.buffer.primal is None and field.has_grad]


def give_gradients_duals() -> None:
    """Give every field that has a gradient a dual, if it has none, and its gradient too."""
    for field in fields_with_gradients():
        for one in (field, field.grad):
            one.ensure_dual()


def _with_same_duals(touched: Mapping[Buffer, IndexRegions]) -> Mapping[Buffer, IndexRegions]:
    """The same elements of the duals of gradients, which count only where there are tangents."""
    return {one: regions for gradient, regions in touched.items() for one in with_duals([gradient])}


def _covers(regions: IndexRegions, gradient: Buffer) -> bool:
    whole = whole_region(gradient)
    return whole is not None and whole in regions


def large_gradients(gradients: Iterable[Buffer]) -> set[Buffer]:
    """The gradients that are so large that it pays to touch only the used elements."""
    return {one for one in gradients if (memory := memory_of(one)).nbytes >= _LARGE and not memory.is_resident}


def gradient_regions(arguments: Arguments, values: Sequence[Any], gradients: Iterable[Buffer]) -> BufferRegions:
    """The elements of these gradients that the gradient of a launch touches; none of one of which it is not known."""
    if any(buffer.primal is not None for buffer in arguments.accesses.loaded | arguments.accesses.written):
        return ()
    effects = arguments.effects(values)
    touched = [(buffer.adjoint, region) for buffer, region in (*effects.live_in, *effects.written)]
    return tuple([(gradient, region) for gradient, region in touched if gradient is not None and gradient in gradients])
