"""What a launch does to memory, with the arrays that it was launched with in place of the parameters.

To the compiler an array argument is the same buffer in every launch. Recorders follow memory from one launch to the
next, so they ask here: a field or ndarray is known by its own buffer, and memory that others manage (NumPy's) by an
`ExternalArray`, which is made for one launch. Anybody may write to such memory between launches, unnoticed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from tinote.compiler.driver import BoundArray, Specialisation
from tinote.compiler.launch.access_summary import AccessSummary, TaskSummary
from tinote.compiler.launch.metadata import BrokenPath, GradientFacts
from tinote.compiler.requests import GRADIENT, PRIMAL, Request
from tinote.errors import DifferentiationError, Note, TinoteError, broken_gradient_path
from tinote.ir.nodes import Buffer, BufferKind
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions, RegionEvaluator, united
from tinote.lang.kernels.stand_ins import stand_ins, viewed_field
from tinote.lang.session.state import memory_of
from tinote.source import Span

__all__ = ["Arguments", "ExternalArray", "arguments_of", "lendable", "lending", "own", "span_in"]


#: The most pairs of regions, with temporary gradients and without, that are remembered where they depend on arguments.
_MOST_UNIONS = 4096


class ExternalArray(Buffer):
    """An array that others manage, as one launch saw it: the bytes from `first` up to `last`."""

    __slots__ = ("bound", "first", "last")

    def __init__(self, name: str, formal: Buffer, bound: BoundArray) -> None:
        super().__init__(name, formal.dtype, bound.shape, formal.element, BufferKind.ARRAY)
        self.bound = bound  # keeps the memory alive, so that nothing else comes to lie there
        self.first = bound.address
        self.last = bound.address + bound.nbytes

    def meets(self, first: int, last: int) -> bool:
        """Whether a stretch of bytes has some in common with it."""
        return max(first, self.first) < min(last, self.last)


class Arguments:
    """A launch: a specialisation and the values that it is launched with. `request`: which gradient is meant.
    `tangents`: the temporary duals of memory that is to have one.

    With temporary gradients, `plain` is the same launch without, whose gradient may run in place of this one's. What
    stands for memory with a temporary gradient is `lent`. `refused`: why the gradient cannot pass through memory that
    has none of its own.
    """

    plain: Arguments | None = None
    refused: TinoteError | None = None

    def __init__(
        self,
        specialisation: Specialisation,
        values: Sequence[Any],
        request: Request = GRADIENT,
        tangents: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        self.specialisation = specialisation
        self.values = tuple(values)
        self.request = request
        self._actual: dict[Buffer, Buffer] = {}
        for formal, bound in zip(specialisation.arrays, self.values, strict=False):
            own_buffer = bound.buffer
            if own_buffer is None:
                self._actual[formal] = ExternalArray(formal.name, formal, bound)
                continue
            self._actual[formal] = own_buffer
            pairs = [(formal.adjoint, own_buffer.adjoint), (formal.tangent, own_buffer.tangent)]
            if formal.adjoint is not None and own_buffer.adjoint is not None:
                pairs.append((formal.adjoint.tangent, own_buffer.adjoint.tangent))
            for mine, its in pairs:
                if mine is not None and its is not None:
                    self._actual[mine] = its
        self._lent: set[Buffer] = set()  # companions that are no memory yet
        self._unions: dict[tuple[int, int], AccessRegions] = {}
        for formal, twin in specialisation.twins(request).items():
            self._lend(formal, twin, tangents or {})

    def _lend(self, formal: Buffer, twin: Buffer, tangents: Mapping[Buffer, Buffer]) -> None:
        actual = self._actual[twin] = self.actual(formal)
        if twin.tangent is not None and twin.tangent is not formal.tangent:
            self._lent.add(twin.tangent)
            if actual in tangents:
                self._actual[twin.tangent] = tangents[actual]
        if twin.adjoint is not None and twin.adjoint is not formal.adjoint:
            self._lent.add(twin.adjoint)
            if twin.adjoint.tangent is not None:
                self._lent.add(twin.adjoint.tangent)

    @property
    def lent(self) -> frozenset[Buffer]:
        """The memory with temporary companions."""
        return frozenset(map(self.actual, self.request.temporaries))

    def actual(self, buffer: Buffer) -> Buffer:
        """The memory that a buffer of the code stands for."""
        return self._actual.get(buffer, buffer)

    @property
    def arrays(self) -> list[tuple[Buffer, BoundArray]]:
        """The array arguments: what each is known by, and where it is."""
        return [(self._actual[formal], self.values[k]) for k, formal in enumerate(self.specialisation.arrays)]

    @cached_property
    def external_arrays(self) -> tuple[ExternalArray, ...]:
        """The arguments whose memory others manage."""
        return tuple([b for b in self._actual.values() if isinstance(b, ExternalArray)])

    # ---- what the code does, told of memory

    @cached_property
    def accesses(self) -> AccessSummary:
        return self._over_memory(self.specialisation.accesses())

    @property
    def tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of the primal does."""
        return self._tasks(self.specialisation.code(PRIMAL).tasks)

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """What each task of the gradient does."""
        return self._tasks(self.specialisation.code(self.request).tasks)

    @cached_property
    def gradient_facts(self) -> GradientFacts:
        """What the gradient asks of memory. Raises `DifferentiationError`, also for a kernel that computes values to be
        differentiated from gradients, even if nothing comes back through it.
        """
        found = self.specialisation.gradient_facts(self.request)
        touched = self.specialisation.accesses()
        reads = any(b.primal is not None for b in touched.loaded)
        if reads and any(b.adjoint is not None for b in touched.written):
            self.specialisation.refuse_gradient_access(self.request)
        return found.with_memory(self.actual) if self._actual else found

    @cached_property
    def broken_paths(self) -> tuple[BrokenPath, ...]:
        """Where a value that is differentiated is stored into memory without a gradient (a dual, in forward mode). What
        the user says is constant breaks no path.
        """
        found = self.specialisation.broken_paths(self.request)
        there = [path._replace(buffer=self.actual(path.buffer)) for path in found]
        reverses = self.request.reverses
        return tuple([path for path in there if not (path.buffer.no_adjoint if reverses else path.buffer.no_tangent)])

    def refuse_broken_paths(self) -> None:
        """Raise `DifferentiationError` for a gradient path that breaks within the kernel."""
        for path in self.broken_paths:
            if path.at is not None:
                needed = path.needed
                text = "this kernel returns them" if needed is None else f"they reach '{self.actual(needed).name}'"
                notes = [Note(f"from there {text}", path.at)]
                raise broken_gradient_path(
                    path.buffer.name,
                    path.span,
                    notes,
                    tangents=not self.request.reverses,
                    external=isinstance(path.buffer, ExternalArray),
                )

    @cached_property
    def stores_to_none(self) -> bool:
        """Whether a value that is differentiated is stored into memory without a gradient."""
        return bool(self.specialisation.broken_paths(self.request))

    @property
    def has_old_values(self) -> bool:
        """Whether the launch has to save old values for its gradient."""
        return bool(self.specialisation.gradient_facts(self.request).old_values)

    @cached_property
    def asks(self) -> bool:
        """Whether the gradient reads values of fields or ndarrays."""
        regions = self.specialisation.gradient_facts(self.request).regions
        return bool(regions.live_in_before or regions.live_in) or (self.plain is not None and self.plain.asks)

    @cached_property
    def _regions(self) -> RegionEvaluator:
        regions = self.specialisation.gradient_facts(self.request).regions
        return RegionEvaluator(regions, self.actual, _outlives_a_launch)

    @cached_property
    def fixed_regions(self) -> AccessRegions | None:
        """Those of every launch, if they are the same in all."""
        own = self._regions.fixed
        other = None if self.plain is None else self.plain.fixed_regions
        return own if self.plain is None or own is None else None if other is None else self._with(own, other)

    def regions(self, values: Sequence[Any]) -> AccessRegions:
        """Which elements of fields and ndarrays a launch with these values writes and its gradient reads, with
        temporary gradients or without. Raises `DifferentiationError`.
        """
        own = self.own_regions(values)
        return own if self.plain is None else self._with(own, self.plain.regions(values))

    def _with(self, own: AccessRegions, other: AccessRegions) -> AccessRegions:
        """What is read with temporary gradients or without."""
        key = own.number, other.number
        found = self._unions.get(key)
        if found is None:
            if len(self._unions) == _MOST_UNIONS:
                self._unions.clear()
            found = self._unions[key] = united(own, other)
        return found

    def own_regions(self, values: Sequence[Any]) -> AccessRegions:
        """The same of the gradient of just this request."""
        return self._regions.of(values[len(self.specialisation.arrays) :] if self.values else values)

    def effects(self, values: Sequence[Any]) -> AccessRegions:
        """Which elements of fields and ndarrays a launch with these values reads as it finds them (`live_in`), and
        which it may write to (`written`). Does not ask for its gradient.
        """
        return self._effects[0].of(values[len(self.specialisation.arrays) :])

    def definite_stores(self, values: Sequence[Any]) -> BufferRegions:
        """Elements of fields and ndarrays to which a launch with these values stores for certain."""
        return self._effects[1].of(values[len(self.specialisation.arrays) :]).written

    @cached_property
    def _effects(self) -> tuple[RegionEvaluator, RegionEvaluator]:
        effects = self.specialisation.effects
        touched, definite = [RegionEvaluator(regions, self.actual, _outlives_a_launch) for regions in effects]
        return touched, definite

    def pairs(self, formals: Iterable[Buffer]) -> Iterable[tuple[Buffer, Buffer]]:
        """Buffers of the code with the memory that they stand for."""
        return [(formal, self.actual(formal)) for formal in formals]

    def follow_broken_paths(self, lost: Mapping[Buffer, Span]) -> list[tuple[Buffer, Span]]:
        """Where active values in memory without gradient (`lost`) are carried on to. Raises
        `DifferentiationError` where they are differentiated.
        """
        found: list[tuple[Buffer, Span]] = []
        for formal, actual in self.pairs(self.specialisation.accesses().loaded):
            span = span_in(lost, actual)
            if span is not None:
                request = self.request if self.plain is None else self.plain.request
                carried, needed = self.specialisation.carried_on(formal, request)
                if needed is not None:
                    external = isinstance(actual, ExternalArray)
                    raise broken_gradient_path(formal.name, span, [needed], external=external)
                found += [(self.actual(further), write) for further, write in carried]
        return [(further, write) for further, write in found if not further.no_adjoint]

    def refuse_shared(self) -> None:
        """Raise `DifferentiationError` when arguments share memory in a way that a gradient does not know of."""
        if not self._actual:
            return
        self.refuse_other_names()
        written = self.accesses.written
        span = self.specialisation.source.span
        met: list[tuple[str, Buffer, int, int]] = []
        touched = self.specialisation.accesses()
        for buffer in touched.loaded | touched.written:
            if buffer.kind is BufferKind.FIELD and buffer.primal is None:
                memory = memory_of(buffer)
                met.append((buffer.name, buffer, memory.address, memory.address + memory.nbytes))
        for formal, (actual, bound) in zip(self.specialisation.arrays, self.arrays, strict=True):
            first, last = bound.address, bound.address + bound.nbytes
            for name, other, begin, end in met:
                if max(first, begin) < min(last, end) and (actual in written or other in written):
                    raise DifferentiationError(
                        f"arguments '{name}' and '{formal.name}' share memory that the kernel writes to, and its "
                        "gradient would not know that",
                        span,
                        hint="pass arrays that do not overlap",
                    )
            met.append((formal.name, actual, first, last))
            if isinstance(actual, ExternalArray):
                self._refuse_view(formal, actual, span)

    @staticmethod
    def _refuse_view(formal: Buffer, actual: ExternalArray, span: Span) -> None:
        name = viewed_field(actual.first, actual.last)
        if name is not None:
            raise DifferentiationError(
                f"argument '{formal.name}' is a view of '{name}', and a gradient would take it for a constant",
                span,
                hint=f"pass '{name}' itself, or a copy of the view",
            )

    def refuse_other_names(self) -> None:
        """Raise `DifferentiationError` when an array is written that the function which is being differentiated uses
        under another name too.
        """
        standing = stand_ins.get() if self._actual else None
        if standing is not None:
            standing.launching(self.arrays, self.accesses.written, self.specialisation.source.span)

    def _set(self, buffers: frozenset[Buffer]) -> frozenset[Buffer]:
        return frozenset([self.actual(b) for b in buffers if b not in self._lent]) if self._actual else buffers

    def _over_memory(self, accesses: AccessSummary) -> AccessSummary:
        return AccessSummary(*[self._set(part) for part in accesses]) if self._actual else accesses

    def _tasks(self, tasks: tuple[TaskSummary, ...]) -> tuple[TaskSummary, ...]:
        if not self._actual:
            return tasks
        return tuple([task._replace(accesses=self._over_memory(task.accesses)) for task in tasks])


def lendable(buffer: Buffer, *, tangents: bool = False) -> bool:
    """Whether memory may get a temporary gradient (dual, for `tangents`): floats of a field or an ndarray of which the
    user has not said that it has none. Arrays that others manage get none: anybody may write to them at any time.
    """
    if buffer.dtype.kind != "f" or buffer.primal is not None or not _outlives_a_launch(buffer):
        return False
    own, never = (buffer.tangent, buffer.no_tangent) if tangents else (buffer.adjoint, buffer.no_adjoint)
    return own is None and not never


def lending(arguments: Arguments, active: Container[Buffer]) -> Request:
    """The request of a launch with temporary companions for all memory without one that values which vary go through:
    what holds such values before (`active`), and what the launch leaves some in. Raises `DifferentiationError`.
    """
    specialisation, request = arguments.specialisation, arguments.request
    touched, forwards = specialisation.accesses(), not request.reverses
    lent = frozenset([b for b in touched.loaded | touched.written if arguments.actual(b) in active])
    while True:
        request = request.lending(lent)
        paths = specialisation.broken_paths(request)
        further = {path.buffer for path in paths if lendable(arguments.actual(path.buffer), tangents=forwards)}
        if further <= lent:
            return request
        lent |= further


def arguments_of(instance: Any, values: Sequence[Any], request: Request = GRADIENT) -> Arguments:
    """The launch of an instance with these values. Without array arguments all launches do the same to memory: they
    share one answer.
    """
    known: Arguments | None = instance.arguments
    if known is None or known.request is not request:
        specialisation = instance.specialisation
        if specialisation.arrays:
            return Arguments(specialisation, values, request)
        known = instance.arguments = Arguments(specialisation, (), request)
    return known


def _outlives_a_launch(buffer: Buffer) -> bool:
    """Whether memory is a field's or an ndarray's: not what a launch only has while it runs."""
    return buffer.kind in (BufferKind.FIELD, BufferKind.ARRAY) and not isinstance(buffer, ExternalArray)


def own(buffers: Iterable[Buffer]) -> list[Buffer]:
    """Those that are fields or ndarrays."""
    return [b for b in buffers if not isinstance(b, ExternalArray)]


def span_in(spans: Mapping[Buffer, Span], buffer: Buffer) -> Span | None:
    """What is noted about the memory of `buffer`, if anything."""
    found = spans.get(buffer)
    if found is None and isinstance(buffer, ExternalArray):
        for other, span in spans.items():
            if isinstance(other, ExternalArray) and other.meets(buffer.first, buffer.last):
                return span
    return found
