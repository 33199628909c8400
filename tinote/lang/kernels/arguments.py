"""The memory effects of a launch, with its arrays in place of the parameters.

To the compiler an array argument is the same buffer in every launch. Recorders follow memory from one launch to the
next, so they ask here: a field or ndarray is known by its own buffer, and memory that others manage (NumPy's) by an
`ExternalArray`, which is made for one launch. Anybody may write to such memory between launches, unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.access_summary import AccessSummary, TaskSummary
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import GRADIENT, PRIMAL, Request
from tinote.errors import DifferentiationError, Note, TinoteError, broken_gradient_path
from tinote.ir.nodes import Buffer, BufferKind
from tinote.lang.data.layout import array_over
from tinote.lang.data.traced import Traced
from tinote.lang.index_regions import whole_region
from tinote.lang.kernels.access_region import AccessRegions, BufferRegions, RegionEvaluator, united, whole_regions
from tinote.lang.kernels.stand_ins import stand_ins, viewed_field
from tinote.lang.session.state import memory_of, session
from tinote.source import Span, caller

if TYPE_CHECKING:
    from tinote.compiler.launch.memory_facts import BrokenPath, GradientFacts
    from tinote.ir.launch_values import SymbolicRegions

#: The most pairs of regions, with temporary gradients and without, that are remembered where they depend on arguments.
_MOST_UNIONS = 4096

#: How many combinations of ndarrays one instance remembers.
_MOST_KNOWN = 256
#: How many places of others' arrays it remembers for each of them.
_MOST_PLACES = 16


#: The regions that launches on the same memory touch, and those of their definite stores.
Effects = tuple[RegionEvaluator, RegionEvaluator]


class ExternalArray(Buffer):
    """An array that others manage, as one launch saw it: the bytes from `first` up to `last`."""

    __slots__ = ("bound", "first", "last")

    def __init__(self, name: str, formal: Buffer, bound: BoundArray) -> None:
        super().__init__(name, formal.dtype, bound.shape, formal.element, BufferKind.ARRAY)
        self.bound = bound  # keeps the memory alive, so that nothing else comes to lie there
        self.first = bound.address
        self.last = bound.address + bound.nbytes

    def let_go(self) -> None:
        """The memory lives as long as its owner: the launches on it keep it alive."""
        self.bound = self.bound._replace(owner=None)

    def meets(self, first: int, last: int) -> bool:
        """Whether a range of bytes overlaps it."""
        return max(first, self.first) < min(last, self.last)


class OthersArrays(NamedTuple):
    """What is remembered of launches with others' arrays of the same shapes: the regions, and by where the arrays lie
    the last launches.
    """

    regions: RegionEvaluator
    launches: dict[tuple[tuple[int, bool], ...], Arguments]


class RecordingNeeds:
    """What a recording asks of a launch each time it is launched. `old_values`: whether its gradient needs some that
    the launch returns; `in_order`: whether it is that of one order of iterations; `reads`: whether it reads values of
    fields or ndarrays; `reads_before`: some from before the launch; `regions`: `fixed_regions`; `copies`: whether it
    needs memory for copies of arrays. The arrays and shadows as in `Arguments`. `code` runs the gradient of `request`;
    None: duals that fields get may change it. Raises as its `gradient_facts`.
    """

    __slots__ = (
        "code",
        "copies",
        "external_arrays",
        "in_order",
        "old_values",
        "reads",
        "reads_before",
        "regions",
        "request",
        "shadows_as_values",
    )

    def __init__(self, arguments: Arguments) -> None:
        facts = arguments.gradient_facts
        self.request = arguments.request
        self.code = None if self.request.has_tangents else arguments.specialisation.code(self.request)
        self.old_values = bool(facts.old_values)
        self.in_order = facts.in_order
        self.reads = arguments.asks
        self.reads_before = bool(facts.live_in_before)
        self.regions = arguments.fixed_regions
        self.copies = bool(facts.copied)
        self.external_arrays = arguments.external_arrays
        self.shadows_as_values = arguments.shadows_as_values


class Arguments:
    """A launch: a specialisation and the arrays that it is launched with, `values`. `request`: which gradient is meant.
    `tangents`: the temporary duals of memory that is to have one.

    With temporary gradients, `plain` is the same launch without, whose gradient may run in place of this one's. What
    stands for memory with a temporary gradient is `temporaries`. `refused`: why the gradient cannot pass through memory
    that has none of its own.
    """

    plain: Arguments | None = None
    refused: TinoteError | None = None
    is_remembered = False
    is_usual = False  # remembered, and recorded for nothing but its gradient

    def __init__(
        self,
        specialisation: Specialisation,
        values: Sequence[Any],
        request: Request = GRADIENT,
        tangents: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        self.specialisation = specialisation
        self.values: tuple[BoundArray, ...] = tuple(values[: len(specialisation.arrays)])
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
        self._shadows: set[Buffer] = set()  # shadows that are no memory yet
        self._unions: dict[tuple[int, int], AccessRegions] = {}
        self._is_unshared = False  # known to share no memory
        for formal, clone in specialisation.clones(request).items():
            self._add_clone(formal, clone, tangents or {})

    def _add_clone(self, formal: Buffer, clone: Buffer, tangents: Mapping[Buffer, Buffer]) -> None:
        actual = self._actual[clone] = self.actual(formal)
        if clone.tangent is not None and clone.tangent is not formal.tangent:
            self._shadows.add(clone.tangent)
            if actual in tangents:
                self._actual[clone.tangent] = tangents[actual]
        if clone.adjoint is not None and clone.adjoint is not formal.adjoint:
            self._shadows.update((clone.adjoint, *clone.adjoint.planes))
            if clone.adjoint.tangent is not None:
                self._shadows.add(clone.adjoint.tangent)

    def with_values(self, values: Sequence[Any]) -> Arguments:
        """A launch with the same memory, or with other memory for the same arrays."""
        made = object.__new__(Arguments)
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("unshared", None)
        made.values = tuple(values[: len(self.specialisation.arrays)])
        if self.plain is not None:
            made.plain = self.plain.with_values(values)
        return made

    def look_up(self) -> None:
        """Find out all that a recording asks, so that `with_values` hands it on. Raises `DifferentiationError`."""
        _ = self.accesses, self.needs, self.gradients, self.writes_shadows, self.broken_paths, self.stores_to_none

    @cached_property
    def unshared(self) -> Arguments:
        """The same launch with a gradient that shares no values with it."""
        made = Arguments(self.specialisation, self.values, self.request.unshared)
        if self.plain is not None:
            made.plain = self.plain.unshared
        return made

    @cached_property
    def temporaries(self) -> frozenset[Buffer]:
        """The memory with temporary shadows."""
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

    @property
    def may_meet_views(self) -> bool:
        """Whether arguments whose memory others manage may be views of fields by now."""
        return session.has_views and bool(self.external_arrays)

    # ---- what the code does to memory

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
    def needs(self) -> RecordingNeeds:
        """What a recording asks of it. Raises as `gradient_facts`."""
        return RecordingNeeds(self)

    @cached_property
    def broken_paths(self) -> tuple[BrokenPath, ...]:
        """Where a value that is differentiated is stored into memory without a gradient (a dual, in forward mode)."""
        found = self.specialisation.broken_paths(self.request)
        return tuple([path._replace(buffer=self.actual(path.buffer)) for path in found])

    @cached_property
    def only_arrays(self) -> bool:
        """Whether the launch touches nothing but its array arguments."""
        touched = self.specialisation.accesses()
        return all(buffer.kind is BufferKind.ARRAY for buffer in touched.loaded | touched.written)

    @cached_property
    def writes_shadows(self) -> bool:
        """Whether the launch itself writes to gradients or duals."""
        return any(buffer.primal is not None for buffer in self.accesses.written)

    def touches_shadows(self, active: Container[Buffer]) -> bool:
        """Whether the launch reads or writes gradients or duals that are among these."""
        return any(map(active.__contains__, self._shadows_touched))

    @cached_property
    def _shadows_touched(self) -> tuple[Buffer, ...]:
        touched = self.accesses.loaded | self.accesses.written
        return tuple([buffer for buffer in touched if buffer.primal is not None])

    @property
    def duals(self) -> list[Buffer]:
        """The duals of fields and ndarrays that the launch uses in forward mode, as far as they are there."""
        touched = self.accesses.loaded | self.accesses.written
        own = [one for one in touched if one.primal is not None and one.primal.tangent is one]
        return [*own, *[buffer.tangent for buffer in touched if buffer.tangent is not None]]

    @cached_property
    def shadows_as_values(self) -> tuple[Buffer, ...]:
        """The gradients and duals that the launch reads as values: they are given temporary shadows of their own."""
        return tuple([buffer for buffer in self.temporaries if buffer.primal is not None])

    @cached_property
    def gradients(self) -> frozenset[Buffer]:
        """The gradients of fields and ndarrays that the gradient reads or writes, with temporary ones or without."""
        touched = {b for task in self.gradient_tasks for part in task.accesses for b in part}
        found = frozenset([b for b in touched if b.primal is not None and b.primal.adjoint is b])
        return found if self.plain is None else found | self.plain.gradients

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
                    declared=declared_constant(path.buffer, tangents=not self.request.reverses),
                )

    @cached_property
    def stores_to_none(self) -> bool:
        """Whether a value that is differentiated is stored into memory without a gradient."""
        return bool(self.specialisation.broken_paths(self.request))

    @cached_property
    def asks(self) -> bool:
        """Whether the gradient reads values of fields or ndarrays."""
        regions = self.specialisation.gradient_facts(self.request).regions
        return bool(regions.live_in_before or regions.live_in) or (self.plain is not None and self.plain.asks)

    @cached_property
    def _regions(self) -> RegionEvaluator:
        regions = self.specialisation.gradient_facts(self.request).regions
        return _evaluator(regions, self._actual)

    @cached_property
    def fixed_regions(self) -> AccessRegions | None:
        """Those of every launch, if they are the same in all."""
        own = self._regions.fixed
        other = None if self.plain is None else self.plain.fixed_regions
        return own if self.plain is None or own is None else None if other is None else self._with(own, other)

    @cached_property
    def moving(self) -> frozenset[Buffer]:
        """The memory whose `regions` are other elements for other values."""
        own = self._regions.moving
        return own if self.plain is None else own | self.plain.moving

    @cached_property
    def asked(self) -> frozenset[int]:
        """The positions among the values of the numbers that `regions` depend on."""
        first = len(self.specialisation.arrays) if self.values else 0
        own = frozenset([first + k for k in self._regions.asked])
        return own if self.plain is None else own | self.plain.asked

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

    def written(self, values: Sequence[Any]) -> BufferRegions:
        """Which elements of fields and ndarrays a launch with these values may write to: all of a field, where that
        depends on a number of a step that is being captured.
        """
        effects, first = self._effects[0], len(self.specialisation.arrays)
        if any(type(values[first + k]) is Traced for k in effects.asked):
            return whole_regions(own(self.accesses.written))
        return effects.of(values[first:]).written

    def definite_stores(self, values: Sequence[Any]) -> BufferRegions:
        """Elements of fields and ndarrays to which a launch with these values stores for certain."""
        return self._effects[1].of(values[len(self.specialisation.arrays) :]).written

    @property
    def filled(self) -> list[Buffer]:
        """Fields and ndarrays, if each launch with these shapes stores to all of their elements for certain."""
        fixed = self._effects[1].fixed
        return [] if fixed is None else [b for b, region in fixed.written if region == whole_region(b)]

    @property
    def fixed_effects(self) -> tuple[AccessRegions, BufferRegions] | None:
        """`effects` and `definite_stores` of every launch with these shapes, if they do not depend on its numbers."""
        effects, definite = (one.fixed for one in self._effects)
        return None if effects is None or definite is None else (effects, definite.written)

    @cached_property
    def _effects(self) -> Effects:
        return self._effects_of(self._actual)

    def _effects_of(self, actual: Mapping[Buffer, Buffer]) -> Effects:
        effects = self.specialisation.effects
        return _evaluator(effects.touched, actual), _evaluator(effects.definite, actual)

    def take_regions(self, regions: RegionEvaluator) -> None:
        """Evaluate the regions by what another launch with the same fields and shapes has found out."""
        self.__dict__["_regions"] = regions

    def regions_by_shape(self) -> RegionEvaluator:
        """What `take_regions` takes: of others' arrays, it holds the shapes."""
        return _evaluator(self.specialisation.gradient_facts(self.request).regions, self._shapes)

    def take_effects(self, effects: Effects) -> None:
        """The same of the regions of `effects` and `definite_stores`."""
        self.__dict__["_effects"] = effects

    def effects_by_shape(self) -> Effects:
        """What `take_effects` takes: of others' arrays, it holds the shapes."""
        return self._effects_of(self._shapes)

    @property
    def _shapes(self) -> dict[Buffer, Buffer]:
        """The memory, but of others' arrays the shapes alone."""
        return {
            formal: ExternalArray(actual.name, actual, actual.bound._replace(owner=None))
            if isinstance(actual, ExternalArray)
            else actual
            for formal, actual in self._actual.items()
        }

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
                    raise broken_gradient_path(
                        formal.name, span, [needed], external=external, declared=declared_constant(actual)
                    )
                found += [(self.actual(further), write) for further, write in carried]
        return found

    def refuse_shared(self) -> None:
        """Raise `DifferentiationError` when arguments share memory in a way that a gradient does not know of."""
        if not self._actual:
            return
        self.refuse_other_names()
        if self._is_unshared and not self.may_meet_views:
            return
        written = self.accesses.written
        span = self.specialisation.source.span
        met: list[tuple[str, Buffer, int, int]] = []
        touched = self.specialisation.accesses()
        self._refuse_shadows(touched.loaded | touched.written, span)
        for buffer in touched.loaded | touched.written:
            if buffer.kind is BufferKind.FIELD and buffer.primal is None:
                memory = memory_of(buffer)
                met.append((buffer.name, buffer, memory.begin, memory.begin + memory.nbytes))
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
        self._is_unshared = True  # in launches on the same memory as well

    def _refuse_shadows(self, touched: Set[Buffer], span: Span) -> None:
        """Raise for an argument that is a gradient which the reverse sweep adds to, or a dual that is computed."""
        request = self.request
        there = [self.actual(buffer) for buffer in touched]
        computed = {b.adjoint for b in there if request.reverses} | {b.tangent for b in there if request.has_tangents}
        for formal, (actual, _) in zip(self.specialisation.arrays, self.arrays, strict=True):
            if actual in computed:
                raise DifferentiationError(
                    f"argument '{formal.name}' is '{actual.name}', which the derivative of this launch changes",
                    span,
                    hint="pass a copy of it",
                )

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
            names = [formal.name for formal in self.specialisation.arrays]
            standing.launching(self.arrays, names, self.accesses.written, self.specialisation.source.span)

    def _set(self, buffers: frozenset[Buffer]) -> frozenset[Buffer]:
        return frozenset([self.actual(b) for b in buffers if b not in self._shadows]) if self._actual else buffers

    def _over_memory(self, accesses: AccessSummary) -> AccessSummary:
        return AccessSummary(*[self._set(part) for part in accesses]) if self._actual else accesses

    def _tasks(self, tasks: tuple[TaskSummary, ...]) -> tuple[TaskSummary, ...]:
        if not self._actual:
            return tasks
        return tuple([task._replace(accesses=self._over_memory(task.accesses)) for task in tasks])


def _evaluator(regions: SymbolicRegions, actual: Mapping[Buffer, Buffer]) -> RegionEvaluator:
    """The evaluator holds the memory, and not the launch, which holds the evaluator."""
    return RegionEvaluator(regions, lambda buffer: actual.get(buffer, buffer), _outlives_a_launch)


def declared_constant(buffer: Buffer, *, tangents: bool = False) -> bool:
    """Whether the user has said that memory has no gradient (dual, for `tangents`)."""
    return buffer.no_tangent if tangents else buffer.no_adjoint


def may_have_temporary(buffer: Buffer, *, tangents: bool = False, directions: int = 1) -> bool:
    """Whether memory may get a temporary gradient (dual, for `tangents`): floats of a field or an ndarray of which the
    user has not said that it has none. Arrays that others manage get none: anybody may write to them at any time.
    Along several `directions` no dual is memory's own.
    """
    if buffer.dtype.kind != "f" or buffer.primal is not None or not _outlives_a_launch(buffer):
        return False
    own = buffer.tangent if tangents else buffer.adjoint
    return (own is None or directions > 1) and not declared_constant(buffer, tangents=tangents)


def request_with_temporaries(arguments: Arguments, active: Container[Buffer]) -> Request:
    """The request of a launch with temporary shadows for all memory without one that values which vary go through:
    what holds such values before (`active`), and what the launch leaves some in. Raises `DifferentiationError`.
    """
    specialisation, request = arguments.specialisation, arguments.request
    touched = specialisation.accesses()

    def may_have(buffer: Buffer) -> bool:
        tangents, directions = not request.reverses, request.directions
        return may_have_temporary(arguments.actual(buffer), tangents=tangents, directions=directions)

    temporaries = frozenset([b for b in touched.loaded | touched.written if arguments.actual(b) in active])
    if request.directions > 1:  # at once, not found out by compiling again and again
        temporaries |= {b for b in touched.written if may_have(b)}
    while True:
        request = request.with_temporaries(temporaries)
        paths = specialisation.broken_paths(request)
        further = {b for b in (specialisation.original(path.buffer) for path in paths) if may_have(b)}
        if further <= temporaries:
            return request
        temporaries |= further


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


def memory_at_launch(
    arguments: Arguments, arrays: Sequence[BoundArray]
) -> tuple[Callable[[Buffer, tuple[int, ...]], Any], Callable[[Buffer, int], int | None]]:
    """What a launch with these arrays finds in memory: the element of a buffer at an index, or None where that is not
    known, and the length of a buffer along an axis.
    """
    specialisation = arguments.specialisation
    shapes = {array: bound.shape for array, bound in zip(specialisation.arrays, arrays, strict=True)}

    def read(buffer: Buffer, index: tuple[int, ...]) -> Any:
        actual = arguments.actual(buffer)
        if isinstance(actual, ExternalArray) or actual.primal is not None:
            return None
        held = array_over(actual, memory_of(actual))
        inside = len(index) == held.ndim and all(0 <= i < n for i, n in zip(index, held.shape, strict=True))
        return held[index].item() if inside else None

    def length(buffer: Buffer, axis: int) -> int | None:
        return shapes.get(specialisation.original(buffer), buffer.shape)[axis]

    return read, length


def observed_arguments(instance: Any, values: Sequence[Any]) -> Arguments:
    """The same of a launch whose touched elements are asked for (`Arguments.effects`)."""
    made = arguments_of(instance, values)
    if made.specialisation.arrays:
        key = _memory_key("effects", made.values)
        known = instance.by_memory.get(key)
        if known is None:
            known = made.effects_by_shape()
            _keep(instance, made.values, key, known)
        made.take_effects(known)
    return made


def recorded_arguments(instance: Any, values: Sequence[Any], request: Request) -> Arguments:
    """The same of a launch that is recorded: what was remembered of one on the same memory, if it was."""
    known = remembered(instance, values, request)
    if known is not None:
        return known
    made = arguments_of(instance, values, request)
    if made.external_arrays:
        others = instance.by_memory.get(_memory_key(request, made.values))
        if others is not None:
            made.take_regions(others.regions)
    return made


def remembered(instance: Any, values: Sequence[Any], request: Request) -> Arguments | None:
    """What was remembered of a launch on the same memory, for one with these values."""
    known = _remembered(instance, values, request)
    return None if known is None else known.with_values(values)


def usual_arguments(instance: Any, values: Sequence[Any], request: Request) -> Arguments | None:
    """The same, if nothing else is to be asked before the launch is recorded."""
    known = None if stand_ins.get() is not None else _remembered(instance, values, request)
    return known.with_values(values) if known is not None and known.is_usual and not known.may_meet_views else None


def _remembered(instance: Any, values: Sequence[Any], request: Request) -> Arguments | None:
    """What holds no memory of it."""
    count = len(instance.specialisation.arrays)
    if not count:
        return None
    arrays = values[:count]
    known: Arguments | OthersArrays | None = instance.by_memory.get(_memory_key(request, arrays))
    return known.launches.get(_places(arrays)) if isinstance(known, OthersArrays) else known


def remember(instance: Any, arguments: Arguments) -> None:
    """Remember what a recording asks of a launch, as long as the fields and ndarrays are there. Where others' arrays
    lie elsewhere each time, only the regions are the same, which depend on their shapes; and whether fields have duals
    is looked up anew in each launch, since they may get some later. Raises `DifferentiationError`.
    """
    request = arguments.request
    if arguments.is_remembered or (request.has_tangents and not arguments.only_arrays):
        return
    arrays, external = arguments.values, arguments.external_arrays
    key = _memory_key(request, arrays)
    others: OthersArrays | None = None
    if external:
        others = instance.by_memory.get(key)
        if others is None:
            others = OthersArrays(arguments.regions_by_shape(), {})
            _keep(instance, arrays, key, others)
        if request.has_tangents or any(isinstance(path.buffer, ExternalArray) for path in arguments.broken_paths):
            return  # values that are lost in others' memory are followed longer than the launch is there
    arguments.refuse_shared()
    arguments.look_up()
    kept = arguments.with_values(())  # which holds no memory
    kept.is_remembered = True
    kept.is_usual = not (request.has_tangents or kept.stores_to_none or kept.writes_shadows or instance.returns_floats)
    if others is None:
        _keep(instance, arrays, key, kept)
        return
    for one in (*external, *(() if kept.plain is None else kept.plain.external_arrays)):
        one.let_go()
    if len(others.launches) >= _MOST_PLACES:
        others.launches.clear()
    others.launches[_places(arrays)] = kept


def _keep(instance: Any, arrays: Sequence[BoundArray], key: tuple[Any, ...], found: Any) -> None:
    """Remember something of launches on the same memory, as long as the fields and ndarrays are there."""
    known = instance.by_memory
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[key] = found
    session.keep_for([bound.buffer for bound in arrays if bound.buffer is not None], known, key)


def refuse_shared_memory(under_way: tuple[Any, tuple[Any, ...]], launch: tuple[Any, tuple[Any, ...]]) -> None:
    """Raise `DifferentiationError` where one of two launches writes what the other one uses, since one interrupts the
    other while that is being recorded.
    """
    first, second = (arguments_of(*one).accesses for one in (under_way, launch))
    for buffer in (*first.written, *second.written):
        if buffer in first.loaded | first.written and buffer in second.loaded | second.written:
            names = [one[0].kernel_name for one in (under_way, launch)]
            raise DifferentiationError(
                f"'{names[1]}' is launched by what interrupts '{names[0]}' (a signal handler), which is being recorded "
                f"for derivatives, and both use '{buffer.name}'",
                caller(),
                hint="let the handler set a flag that the program looks at between two launches",
            )


def _memory_key(what: Request | str, arrays: Sequence[BoundArray]) -> tuple[Any, ...]:
    """The fields and ndarrays, and the shapes of others' arrays."""
    return (what, *[bound.shape if bound.buffer is None else id(bound.buffer) for bound in arrays])


def _places(arrays: Sequence[BoundArray]) -> tuple[tuple[int, bool], ...]:
    """Where arrays lie, and whether they may be written to."""
    return tuple([(bound.address, bound.writable) for bound in arrays])


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
