"""Activity analysis: which memory without a gradient holds differentiated values, and needs a temporary adjoint.

    rest_volume()           # writes a field without needs_grad from x, which has a gradient
    energy()                # reads it

While a journal is recorded, memory that holds differentiated values is marked as *active* (`Activity`). A launch that
accesses active memory is recorded with a gradient that has adjoints for it. A backward pass over the events then finds
the adjoints that are needed: those of memory that is read later on a path to a gradient. These exist during the reverse
sweep; a launch without any of them runs its ordinary gradient.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple

from tinote.compiler.requests import Request
from tinote.errors import TinoteError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.events import Custom, Event
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.temporary_adjoints import temporary_shadow
from tinote.lang.kernels.arguments import (
    Arguments,
    may_have_temporary,
    recorded_arguments,
    remember,
    remembered,
    request_with_temporaries,
    usual_arguments,
)
from tinote.lang.kernels.kernel import Instance
from tinote.source import Span

_NOTHING_ACTIVE: dict[Buffer, Span] = {}
_NONE_ON_ARRAYS: dict[Instance, Arguments] = {}
_NOTHING_KNOWN: dict[tuple[Instance, Request], tuple[int, Arguments]] = {}


class Activity:
    """The active memory of a recording. `spans`: where differentiated values were first written to each. `usual`: the
    gradient of most launches, as long as no memory is active; None: each launch is analysed.
    """

    __slots__ = ("_known", "_on_arrays", "spans", "tangents", "usual")

    def __init__(self, usual: Request | None) -> None:
        self.usual = usual
        self.spans = _NOTHING_ACTIVE
        #: temporary duals of active memory, if launches carry tangents
        self.tangents: dict[Buffer, Buffer] | None = None
        #: the last launch of each kernel, for others on the same arrays
        self._on_arrays = _NONE_ON_ARRAYS
        #: launches without arrays that have temporary gradients, and the size of active memory then
        self._known = _NOTHING_KNOWN

    # ---- memory

    def hold(self, spans: dict[Buffer, Span]) -> None:
        """This memory is active, and what is added to it."""
        self.spans = spans
        if spans:
            self.usual = None

    def carry_tangents(self, temporary: dict[Buffer, Buffer]) -> None:
        """Launches carry tangents: these are the temporary ones."""
        self.tangents, self.usual = temporary, None

    def activate(self, buffer: Buffer, span: Span) -> None:
        """Mark memory without a gradient as active; the values were written at `span`."""
        if self.spans is _NOTHING_ACTIVE:
            self.spans = {}
        self.spans[buffer] = span
        self.usual = None
        if self.tangents is not None and buffer.tangent is None:
            self.tangents[buffer] = temporary_shadow(buffer, "dual")

    def gets_active(self, buffer: Buffer, span: Span) -> None:
        """Differentiated values are written to memory at `span`: it is active if it may have a temporary adjoint."""
        if buffer not in self.spans and may_have_temporary(buffer):
            self.activate(buffer, span)

    def follows(self, buffer: Buffer) -> bool:
        """Whether the values in memory have an adjoint, their own or a temporary one."""
        return buffer.adjoint is not None or buffer in self.spans

    def note_in(self, custom: Custom) -> None:
        """Note active memory that a block with a custom VJP uses, whose temporary adjoints the VJP does not see."""
        if self.spans and custom.reads_active is None:
            custom.active = {b: span for b, span in self.spans.items() if b in custom.touched}

    def temporaries(self, events: Sequence[Event]) -> frozenset[Buffer]:
        """The memory without a gradient that would have a temporary adjoint in a reverse sweep now."""
        try:
            return needed_adjoints(events, self.spans, ()).buffers
        except TinoteError:  # one that is refused
            return frozenset(self.spans)

    def use_shadow(self, buffer: Buffer) -> None:
        """Note that a gradient or dual is about to be used as a value.

        Raises `DifferentiationError` where it cannot be.
        """

    # ---- launches

    def known_on_arrays(self, instance: Instance, values: tuple[Any, ...], usual: Request) -> Arguments | None:
        """What is known of a launch on the same arrays."""
        known = self._on_arrays.get(instance)
        if known is None or not all(map(is_, known.values, values)):
            known = usual_arguments(instance, values, usual)
            if known is not None:
                self._keep_on_arrays(instance, known)
        return known

    def _keep_on_arrays(self, instance: Instance, known: Arguments) -> None:
        if self._on_arrays is _NONE_ON_ARRAYS:
            self._on_arrays = {}
        self._on_arrays[instance] = known

    def arguments(
        self, instance: Instance, values: tuple[Any, ...], derivative: Request, *, has_numbers: bool
    ) -> Arguments:
        """The memory effects of a launch, with temporary gradients where differentiated values pass through memory
        without one. `has_numbers`: traced numbers go in or out. Raises `DifferentiationError`.
        """
        if has_numbers:
            derivative = derivative.with_arguments
        known = self._known.get((instance, derivative))
        if known is not None and known[0] == len(self.spans):
            return known[1]
        found = recorded_arguments(instance, values, derivative)
        if self.spans and found.touches_shadows(self.spans):
            return self._taking_shadows(found)
        if self.spans or found.stores_to_none:
            return self._known_with_temporaries(instance, found)
        if found.values:
            remember(instance, found)
            if not has_numbers and not found.writes_shadows:
                self._keep_on_arrays(instance, found)
        elif not has_numbers and not found.writes_shadows:
            instance.taped = found
        return found

    def _taking_shadows(self, plain: Arguments) -> Arguments:
        """Handle a launch on gradients or duals that an inner block has computed: they are values."""
        for buffer in plain.accesses.loaded | plain.accesses.written:
            self.use_shadow(buffer)
        request = request_with_temporaries(plain, self.spans)
        found = Arguments(plain.specialisation, plain.values, request.unshared, self.tangents)
        for buffer in found.temporaries:
            self.gets_active(buffer, found.specialisation.source.span)
        found.refuse_broken_paths()
        return found

    def _known_with_temporaries(self, instance: Instance, plain: Arguments) -> Arguments:
        found = self._with_temporaries(instance, plain)
        if not plain.values:
            if self._known is _NOTHING_KNOWN:
                self._known = {}
            self._known[instance, plain.request] = len(self.spans), found
        return found

    def _with_temporaries(self, instance: Instance, plain: Arguments) -> Arguments:
        """The launch with temporary gradients.

        If it then has no gradient, it is refused at the end, if the gradient is needed.
        """
        specialisation = instance.specialisation
        try:
            request = request_with_temporaries(plain, self.spans)
            if not request.temporaries:
                plain.refuse_broken_paths()
                return plain
            if request.shares:
                plain, request = plain.unshared, request.unshared
            self._stored_to(map(plain.actual, request.temporaries), plain)
            if not plain.values:
                found = instance.with_temporaries.get(request)
            else:
                found = remembered(instance, plain.values, request) if self.tangents is None else None
            if found is None:
                found = Arguments(specialisation, plain.values, request, self.tangents)
                found.plain = plain
                if not plain.values and self.tangents is None:
                    instance.with_temporaries[request] = found
            found.refuse_broken_paths()
        except TinoteError as error:
            if any(path.at is not None for path in plain.broken_paths):
                raise
            found = Arguments(specialisation, plain.values, plain.request)
            found.refused = error
            self._stored_to(plain.accesses.written, plain)
        else:
            if found.values and self.tangents is None:
                remember(instance, found)
        return found

    def _stored_to(self, buffers: Iterable[Buffer], arguments: Arguments) -> None:
        places = {path.buffer: path.span for path in arguments.broken_paths}
        for buffer in buffers:
            self.gets_active(buffer, places.get(buffer, arguments.specialisation.source.span))


class Needed(NamedTuple):
    """The `events` of a journal, each launch with the gradient that is to run, and the memory that needs a temporary
    adjoint.
    """

    events: Sequence[Event]
    buffers: frozenset[Buffer]


def needed_adjoints(
    events: Sequence[Event], active: Collection[Buffer], results: Iterable[int], wanted: Iterable[Buffer] = ()
) -> Needed:
    """The adjoints that a reverse sweep through `events` needs. `active`: the memory without a gradient that holds
    differentiated values; `results`: traced numbers whose adjoints are not zero; `wanted`: active memory whose adjoints
    are not zero. Raises the error of a refused launch whose gradient is needed.
    """
    if not active:
        return Needed(events, frozenset())
    found = list(events)
    used, needed, reached = set(results), set[Buffer](), set(wanted)

    def has_adjoint(buffer: Buffer) -> bool:
        return buffer.adjoint is not None or buffer in reached

    for position in range(len(found) - 1, -1, -1):
        event = found[position]
        goes_on = event.passes_on(used, has_adjoint)
        if isinstance(event, RecordedLaunch):
            runs = goes_on and needs_temporaries(event.arguments, reached, active)
            if event.arguments.plain is not None:
                found[position] = event = event.chosen(needs_temporaries=runs)
            needed |= event.arguments.temporaries
        if goes_on:
            used.update(event.sources)
            reached.update(event.through(active, reached))
    return Needed(found, frozenset(needed | reached))


def reaches(arguments: Arguments, reached: Collection[Buffer]) -> bool:
    """Whether a launch writes to memory whose adjoint may not be zero."""
    return any(buffer.adjoint is not None or buffer in reached for buffer in arguments.accesses.written)


def needs_temporaries(arguments: Arguments, reached: Collection[Buffer], active: Collection[Buffer]) -> bool:
    """Whether a nonzero adjoint passes through active memory in a launch on a needed path. If so, raises the error of a
    refused gradient.
    """
    touched = arguments.accesses
    if arguments.refused is not None:
        if any(b in active and (b in reached or b in touched.loaded) for b in touched.loaded | touched.written):
            raise arguments.refused
        return False
    return any(buffer in reached or buffer in touched.loaded for buffer in arguments.temporaries)
