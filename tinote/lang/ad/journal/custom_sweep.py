"""The part of a reverse sweep that a custom VJP runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tinote.compiler.requests import GRADIENT, Request
from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import root_of
from tinote.ir.nodes import Atomic, Buffer, Load, Store
from tinote.ir.query import walk
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints, tangent_of
from tinote.lang.ad.memory.region_copies import RegionCopies
from tinote.lang.index_regions import IndexRegion, IndexRegions, intersection, is_element, region_at, whole_region
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.kernels.arguments import Arguments, arguments_of, observed_arguments, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder
from tinote.source import Span, caller


class InCustom(Recorder):
    """The recorder in a function with a custom gradient, or in that gradient: nothing is recorded."""

    lets_record = True
    gradients: Request = GRADIENT

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        self.using_gradient(arguments_of(instance, values, self.gradients), values)
        return super().launching_gradient(instance, values)

    def using_gradient(self, arguments: Arguments, values: Sequence[Any]) -> None:
        """The gradient of a kernel is about to be launched."""
        raise NotImplementedError


class CustomSweep(InCustom):
    """The recorder while a custom VJP runs: nothing is recorded, and overwritten values are restored. `gradients`:
    those that `kernel.grad` runs, the same as in the whole reverse sweep, and `adjoints`: those of that. `name` and
    `span`: of the call whose gradient it is. `stale`: elements whose values from its end are lost, and which must not
    be read before they are written.
    """

    #: whether it notes what `carried` says
    keeps_writes = False
    #: for a VJP that sweeps through operations of its own: the elements of a field that are needed after it
    needed_around: Callable[[Buffer], Sequence[IndexRegion]] | None = None

    def __init__(
        self,
        gradients: Request,
        name: str,
        span: Span,
        stale: Mapping[Buffer, IndexRegions],
        adjoints: SweepAdjoints,
    ) -> None:
        self.gradients: Request = gradients.unshared  # a separate launch has saved nothing for it
        self.adjoints = adjoints
        self._name = name
        self._span = self.opened = span
        self._stale = {buffer: IndexRegions(*regions) for buffer, regions in stale.items()}
        self._before = RegionCopies()
        #: fields that Python has read
        self.read: set[Buffer] = set()
        #: overwritten elements whose new values are made of the old ones, or may be
        self.carried: dict[Buffer, IndexRegions] = {}
        self._written_at: dict[Buffer, Arguments | Span] = {}

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        arguments = observed_arguments(instance, values)
        if self._stale:
            self._refuse_stale(arguments.effects(values).live_in, arguments)
            for buffer, region in arguments.definite_stores(values):
                self._refresh(buffer, region)
        for buffer, region in arguments.written(values):
            for part in self._overwrite(buffer, region):
                if self.keeps_writes:
                    self._written_at.setdefault(buffer, arguments)
                    self._carry(buffer, _carried(buffer, part, arguments, values))
        self.adjoints.use(arguments.accesses.loaded | arguments.accesses.written)

    def using_gradient(self, arguments: Arguments, values: Sequence[Any]) -> None:
        if self._stale:
            regions = arguments.regions(values)
            self._refuse_stale((*regions.live_in_before, *regions.live_in), arguments)
        self.adjoints.use(arguments.gradients, (arguments, values))

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if source is not None and (whole := whole_region(source)) is not None:
            self._refuse_stale([(source, whole)])
        region = region_at(buffer, position)
        is_definite = position is ... or (isinstance(position, tuple) and is_element(buffer, position))
        if is_definite:
            self._refresh(buffer, region)
        parts = self._overwrite(buffer, region)
        if parts and self.keeps_writes:
            self._written_at.setdefault(buffer, caller())
            if buffer in self.read or not is_definite:
                self._carry(buffer, parts)
        self.adjoints.use([buffer] if source is None else [buffer, source])

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        region = region_at(buffer, position)
        self.read.add(buffer)
        self.adjoints.use([buffer])
        if region is not None:
            self._refuse_stale([(buffer, region)])
        return value

    def taking(self, buffer: Buffer) -> None:
        self.read.add(buffer)
        self.adjoints.use([buffer])
        region = whole_region(buffer)
        if region is not None:
            self._refuse_stale([(buffer, region)])

    def sharing(self, buffer: Buffer) -> None:
        self.overwriting(buffer)
        self.adjoints.use([buffer])

    def overwriting(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Note that elements of a field, by default all, are about to be written. Gradients may be."""
        parts = self._overwrite(buffer, region)
        if parts and self.keeps_writes:
            self._written_at.setdefault(buffer, caller())
            self._carry(buffer, parts)

    def _overwrite(self, buffer: Buffer, region: IndexRegion | None) -> Sequence[IndexRegion]:
        """The same; gives the elements that are overwritten for the first time."""
        if buffer.primal is not None:
            return ()
        parts = self._before.add(buffer, region)
        tangent = tangent_of(buffer, self.adjoints.tangents) if self.gradients.has_tangents else None
        if tangent is not None:
            self._before.add(tangent, region)
        return parts

    def _carry(self, buffer: Buffer, parts: Iterable[IndexRegion]) -> None:
        for part in parts:
            self.carried.setdefault(buffer, IndexRegions()).add(part)

    def overwriting_independently(self, buffer: Buffer) -> None:
        self.overwriting(buffer)

    def ran_independently(self, loaded: Collection[Buffer], written: Collection[Buffer]) -> None:
        for buffer in own(loaded) if self._stale else ():
            self.taking(buffer)

    def bring_back(self) -> None:
        """Restore the values of all fields."""
        self._before.put_back()

    @property
    def overwritten(self) -> BufferRegions:
        """The elements that were overwritten, and perhaps some around them."""
        return self._before.regions

    def put_back(self, stays: Mapping[Buffer, Sequence[IndexRegion]]) -> list[Buffer]:
        """Restore the values of all fields, except the elements in `stays`. Gives the fields that could not keep
        theirs.
        """
        return self._before.put_back_but(stays)

    def written_at(self, buffer: Buffer) -> Span:
        """Where a field was overwritten first."""
        place = self._written_at[buffer]
        return _place_in(place, buffer, Store | Atomic) if isinstance(place, Arguments) else place

    def _refresh(self, buffer: Buffer, region: IndexRegion | None) -> None:
        stale = self._stale.get(buffer)
        if stale is not None and region is not None:
            stale.remove(region)

    def _refuse_stale(self, read: Iterable[tuple[Buffer, IndexRegion]], arguments: Arguments | None = None) -> None:
        """Raise `DifferentiationError` for stale elements; `arguments`: of the launch that reads them."""
        for buffer, region in read:
            stale = self._stale.get(buffer)
            if stale is None or not stale.intersections(region):
                continue
            raise DifferentiationError(
                f"'{buffer.name}' is read here in the gradient of '{self._name}', but what it held then was "
                "overwritten, and more was overwritten than is kept for custom gradients",
                caller() if arguments is None else _place_in(arguments, buffer, Load | Atomic),
                hint="give it new values first, keep each step in a slice of its own, or raise "
                "ti.init(memory_limit=...)",
                notes=[Note(f"'{self._name}' was called", self._span)],
            )


def _carried(buffer: Buffer, part: IndexRegion, arguments: Arguments, values: Sequence[Any]) -> Sequence[IndexRegion]:
    """The elements of a part that a launch overwrites whose new values are made of the old ones, or may be."""
    if buffer in arguments.accesses.accumulated:
        return [part]
    loaded = [region for other, region in arguments.effects(values).live_in if other is buffer]
    return [common for region in loaded if (common := intersection(part, region)) is not None]


def _place_in(arguments: Arguments, buffer: Buffer, kinds: Any) -> Span:
    """The first operation of these kinds that a kernel has on a field."""
    specialisation = arguments.specialisation
    for op in walk(specialisation.lowered.function.region):
        if isinstance(op, Load | Store | Atomic) and isinstance(op, kinds):
            if arguments.actual(root_of(op.buffer)) is buffer:
                return op.loc
    return specialisation.source.span
