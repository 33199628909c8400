"""What a launch needs to know of machine code: where arguments, addresses and results go, and what its sites mean.

A recipe is made once by code generation. As plain data (`to_data`) it outlives the process: memory is then told by its
number, and places in the source by the function they stand in, so that the code serves a kernel of the same text on
other fields and on other lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinote.compiler.cache.lookup import Recalled
from tinote.compiler.launch.summary import TaskSummary, Touched
from tinote.compiler.protocol import FunctionSource, Warned
from tinote.compiler.requests import Request
from tinote.ir.access_region import Reach, Reaches, step_of_data, step_to_data
from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar, Tensor, scalar_named
from tinote.runtime.profile import Clock
from tinote.runtime.sites import Bounds, Part, Site, SiteKind, Value
from tinote.runtime.store import Store, digest
from tinote.source import NOWHERE, Span

__all__ = ["Answer", "Codec", "Recipe", "Signature", "Unsaid", "read_answer", "write_answer"]


class Unsaid(Exception):
    """Something that has no number: it cannot outlive the process."""


class Recipe(NamedTuple):
    """`code` identifies the machine code. Offsets are bytes in the launch block; `parameters` are the scalar arguments
    in the order of their slots.
    """

    code: str
    slots: int
    scratch_bytes: int
    parameters: tuple[Scalar, ...]
    pointers: tuple[tuple[Buffer, int], ...]
    extents: tuple[tuple[Buffer, int, int], ...]
    results: tuple[tuple[int, Scalar], ...]
    sites: tuple[Site, ...]
    tasks: tuple[TaskSummary, ...]
    clocks: tuple[Clock, ...] = ()


class Signature(NamedTuple):
    """What a caller needs to know of a kernel: what it gives back, whether the last argument is the launch seed, what
    it does to memory, and what compiling it warned of.
    """

    returns: tuple[Scalar | Tensor, ...] | None
    returns_tuple: bool
    uses_random: bool
    touched: Touched
    warnings: tuple[Warned, ...]


class Codec:
    """Recipes to plain data and back, with the memory and the functions that numbers stand for."""

    def __init__(self, buffers: Sequence[Buffer], sources: Sequence[FunctionSource]) -> None:
        self._buffers = buffers
        self._numbers = {buffer: number for number, buffer in enumerate(buffers)}
        self._sources = sources

    # ---- recipes

    def recipe_to_data(self, recipe: Recipe) -> list[Any]:
        """Raises `Unsaid`."""
        return [
            recipe.code,
            recipe.slots,
            recipe.scratch_bytes,
            [t.name for t in recipe.parameters],
            [[self._number(buffer), offset] for buffer, offset in recipe.pointers],
            [[self._number(buffer), axis, offset] for buffer, axis, offset in recipe.extents],
            [[offset, t.name] for offset, t in recipe.results],
            [self._site_to_data(site) for site in recipe.sites],
            [[task.name, task.parallel, self._touched_to_data(task.touched)] for task in recipe.tasks],
            [[clock.slot, clock.kernel, clock.task, self._span_to_data(clock.place)] for clock in recipe.clocks],
        ]

    def recipe_of_data(self, data: list[Any]) -> Recipe:
        code, slots, scratch, parameters, pointers, extents, results, sites, tasks, clocks = data
        return Recipe(
            code,
            slots,
            scratch,
            tuple([scalar_named(name) for name in parameters]),
            tuple([(self._buffers[number], offset) for number, offset in pointers]),
            tuple([(self._buffers[number], axis, offset) for number, axis, offset in extents]),
            tuple([(offset, scalar_named(name)) for offset, name in results]),
            tuple([self._site_of_data(*site) for site in sites]),
            tuple([TaskSummary(name, parallel, self._touched_of_data(touched)) for name, parallel, touched in tasks]),
            tuple([Clock(slot, kernel, task, self._span_of_data(place)) for slot, kernel, task, place in clocks]),
        )

    # ---- signatures

    def signature_to_data(self, signature: Signature) -> list[Any]:
        """Raises `Unsaid`."""
        returns = signature.returns
        return [
            None if returns is None else [self._type_to_data(t) for t in returns],
            signature.returns_tuple,
            signature.uses_random,
            self._touched_to_data(signature.touched),
            [[warned.message, self._span_to_data(warned.span)] for warned in signature.warnings],
        ]

    def signature_of_data(self, data: list[Any]) -> Signature:
        returns, returns_tuple, uses_random, touched, warnings = data
        return Signature(
            None if returns is None else tuple([self._type_of_data(t) for t in returns]),
            returns_tuple,
            uses_random,
            self._touched_of_data(touched),
            tuple([Warned(message, self._span_of_data(span)) for message, span in warnings]),
        )

    # ---- gradients

    def needs_to_data(self, needs: Needs) -> list[Any]:
        """Raises `Unsaid`."""
        loaded, severed, restored, _, old_values, copied, reaches = needs
        if restored or old_values or copied:
            raise Unsaid("a gradient that needs what its kernel overwrites")
        places = [[self._number(buffer), self._span_to_data(place)] for buffer, place in severed]
        return [self._buffers_to_data(loaded), places, self._reaches_to_data(reaches)]

    def needs_of_data(self, data: list[Any]) -> Needs:
        loaded, severed, reaches = data
        places = tuple([(self._buffers[number], self._span_of_data(place)) for number, place in severed])
        return self._buffers_of_data(loaded), places, frozenset(), (), (), (), self._reaches_of_data(reaches)

    def _reaches_to_data(self, reaches: Reaches) -> list[Any]:
        parts = reaches.needed, reaches.restored, reaches.written
        return [
            [step_to_data(step) for step in reaches.steps],
            [[self._number(buffer), axis] for buffer, axis in reaches.lengths],
            *[[[self._number(reach.buffer), reach.axes] for reach in part] for part in parts],
        ]

    def _reaches_of_data(self, data: list[Any]) -> Reaches:
        steps, lengths, *parts = data
        return Reaches(
            tuple([step_of_data(step) for step in steps]),
            tuple([(self._buffers[number], axis) for number, axis in lengths]),
            *[tuple([Reach(self._buffers[number], tuple(axes)) for number, axes in part]) for part in parts],
        )

    # ---- parts

    def _buffers_to_data(self, buffers: frozenset[Buffer]) -> list[int]:
        return sorted(self._number(buffer) for buffer in buffers)

    def _buffers_of_data(self, numbers: list[int]) -> frozenset[Buffer]:
        return frozenset([self._buffers[number] for number in numbers])

    def _number(self, buffer: Buffer) -> int:
        number = self._numbers.get(buffer)
        if number is None:
            raise Unsaid(f"{buffer!r}")
        return number

    def _touched_to_data(self, touched: Touched) -> list[list[int]]:
        return [self._buffers_to_data(part) for part in touched]

    def _touched_of_data(self, data: list[list[int]]) -> Touched:
        return Touched(*[self._buffers_of_data(part) for part in data])

    @staticmethod
    def _type_to_data(t: Scalar | Tensor) -> list[Any]:
        return [t.name] if isinstance(t, Scalar) else [t.dtype.name, *t.shape]

    @staticmethod
    def _type_of_data(data: list[Any]) -> Scalar | Tensor:
        name, *shape = data
        return Tensor(scalar_named(name), tuple(shape)) if shape else scalar_named(name)

    def _site_to_data(self, site: Site) -> list[Any]:
        arguments = site.arguments
        if isinstance(arguments, Bounds):
            told = ["bounds", arguments.shape, arguments.indices, arguments.extents, arguments.axis, arguments.first]
        else:
            told = ["parts", *[part if isinstance(part, str) else [part.type, part.spec] for part in arguments]]
        return [int(site.kind), self._span_to_data(site.loc), site.text, told]

    def _site_of_data(self, kind: int, span: Any, text: str, told: list[Any]) -> Site:
        how, *rest = told
        arguments: Bounds | tuple[Part, ...]
        if how == "bounds":
            shape, indices, extents, axis, first = rest
            arguments = Bounds(None if shape is None else tuple(shape), tuple(indices), tuple(extents), axis, first)
        else:
            arguments = tuple([part if isinstance(part, str) else Value(*part) for part in rest])
        return Site(SiteKind(kind), self._span_of_data(span), text, arguments)

    def _span_to_data(self, span: Span) -> list[Any] | None:
        if span == NOWHERE:
            return None
        for number, source in enumerate(self._sources):
            first = _first_line(source)
            if span.file == source.file and first <= span.line < first + source.text.count("\n") + 1:
                end = span.end_line - first if span.end_line else None
                outer = None if span.inlined_at is None else self._span_to_data(span.inlined_at)
                return [number, span.line - first, span.column, end, span.end_column, outer]
        raise Unsaid(f"{span!r}")

    def _span_of_data(self, data: list[Any] | None) -> Span:
        if data is None:
            return NOWHERE
        number, line, column, end, end_column, outer = data
        source = self._sources[number]
        first = _first_line(source)
        inlined_at = None if outer is None else self._span_of_data(outer)
        return Span(source.file, first + line, column, 0 if end is None else first + end, end_column, inlined_at)


# ---- on disk


#: What a gradient needs, item by item (`driver.GradientNeeds`).
Needs = tuple[
    frozenset[Buffer],
    tuple[tuple[Buffer, Span], ...],
    frozenset[Buffer],
    tuple[tuple[Buffer, Span, Span], ...],
    tuple[tuple[Buffer, Span], ...],
    tuple[Buffer, ...],
    Reaches,
]


#: What an earlier process left about one mode of a kernel: the signature comes with the primal, needs with a gradient.
Answer = tuple[Recipe, Signature | None, Needs | None]


def write_answer(
    store: Store,
    recalled: Recalled,
    request: Request,
    recipe: Recipe,
    signature: Signature | None,
    needs: Needs | None,
) -> None:
    """Leave it for later processes; what cannot be told by numbers is not left."""
    codec = Codec(recalled.buffers, recalled.sources)
    try:
        data = [
            codec.recipe_to_data(recipe),
            None if signature is None else codec.signature_to_data(signature),
            None if needs is None else codec.needs_to_data(needs),
        ]
    except Unsaid:
        return
    store.put(digest("mode", recalled.key, request.name), json.dumps(data).encode())


def read_answer(store: Store, recalled: Recalled, request: Request) -> Answer | None:
    """What an earlier process left, if it did."""
    data = store.get(digest("mode", recalled.key, request.name))
    if data is None:
        return None
    codec = Codec(recalled.buffers, recalled.sources)
    try:
        recipe, signature, needs = json.loads(data)
        return (
            codec.recipe_of_data(recipe),
            None if signature is None else codec.signature_of_data(signature),
            None if needs is None else codec.needs_of_data(needs),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        # Well sealed, and not what this version writes.
        return None


def _first_line(source: FunctionSource) -> int:
    tree = source.tree
    return min([tree.lineno, *(decorator.lineno for decorator in tree.decorator_list)])
