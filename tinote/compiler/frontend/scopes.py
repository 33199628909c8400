"""Scopes: names, variables, and the functions and loops around the current statement."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from tinote.compiler.frontend.values import Declaration, Place
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import StructInfo
from tinote.ir.build import OpenRegion
from tinote.ir.nodes import Atom, Op, Var
from tinote.ir.types import Scalar, Tensor
from tinote.source import Span


class Anchor:
    """A point in an open region at which operations can still be inserted later."""

    __slots__ = ("after", "region")

    def __init__(self, region: OpenRegion) -> None:
        self.region = region
        self.after: Op | None = region.body[-1] if region.body else None

    def insert(self, *ops: Op) -> None:
        """Put operations at this point, after those inserted before."""
        body = self.region.body
        position = next(k for k, op in enumerate(body) if op is self.after) + 1 if self.after is not None else 0
        body[position:position] = ops
        if ops:
            self.after = ops[-1]


class ParallelNest:
    """The parallel loops around the current statement: `axes` are (index, first, end) from the outermost inwards,
    `start` is the top of the innermost body.
    """

    __slots__ = ("axes", "draws", "number", "start")

    def __init__(self, axes: tuple[tuple[Var, Atom, Atom], ...], start: Anchor, number: int) -> None:
        self.axes = axes
        self.start = start
        self.number = number
        #: (iteration, cell that counts draws) once `random` was used in here
        self.draws: tuple[Atom, Var] | None = None


class Variable:
    """A name bound to a place. `nest`: the parallel loops it was declared in, if any."""

    __slots__ = ("name", "nest", "place", "span")

    def __init__(self, name: str, place: Place | None, span: Span, nest: ParallelNest | None) -> None:
        self.name = name
        self.place = place
        self.span = span
        self.nest = nest


class ConstantBinding:
    """A name bound to one value. `what` describes it in the error for an assignment; empty if assignment is allowed.

    `depth`: the number of run-time regions open where it was bound.
    """

    __slots__ = ("depth", "name", "span", "value", "what")

    def __init__(self, name: str, value: Any, span: Span, what: str = "", depth: int = 0) -> None:
        self.name = name
        self.value = value
        self.span = span
        self.what = what
        self.depth = depth


Binding = Variable | ConstantBinding


class Scope:
    """The names of one block, inside the scope of the block around it. `own`: the local names of a function defined in
    a kernel, which hide outer ones.
    """

    __slots__ = ("names", "own", "parent")

    def __init__(self, parent: Scope | None = None, own: frozenset[str] = frozenset()) -> None:
        self.parent = parent
        self.own = own
        self.names: dict[str, Binding] = {}

    def find(self, name: str) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None or name in scope.own:
                return found
            scope = scope.parent
        return None

    def constants(self) -> list[tuple[str, Any]]:
        """The names bound to one value each, those of inner blocks last."""
        around = [] if self.parent is None else [(n, v) for n, v in self.parent.constants() if n not in self.own]
        return [*around, *[(name, b.value) for name, b in self.names.items() if isinstance(b, ConstantBinding)]]

    def all_names(self) -> list[str]:
        found: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            found += scope.names
            scope = scope.parent
        return found


class Completion(IntEnum):
    """How control certainly ends a list of statements."""

    FALLS_THROUGH = 0  # it may reach the end
    CONTINUES = 1  # to the next iteration
    LEAVES = 2  # the loop or the function


class LoweredLoop:
    """A loop whose body is being lowered. The flags are cells of truth values, present if the body needs them; `breaks`
    counts the places that set `broken`.
    """

    __slots__ = ("breaks", "broken", "continued", "parallel", "start")

    def __init__(self, parallel: bool = False) -> None:
        self.parallel = parallel
        self.broken: Var | None = None
        self.breaks = 0
        self.continued: Var | None = None
        self.start: Anchor | None = None


class Annotated(NamedTuple):
    """The annotated result of a function: each part of the annotation with its type (`None` if it is not a type of the
    language), and whether the parts form a tuple.
    """

    parts: tuple[Any, ...]
    types: tuple[Scalar | Tensor | StructInfo | None, ...]
    is_tuple: bool


class Results:
    """The result of a function: the value itself if there is a single `return`, at the end; otherwise cells shaped like
    the first `return`.
    """

    __slots__ = ("anchor", "cells", "direct", "returned", "seen", "sets", "span")

    def __init__(self, anchor: Anchor) -> None:
        self.anchor = anchor
        self.direct: Any = None
        #: the returned value's structure with a `CellPlace` for each number
        self.cells: Any = None
        self.returned: Var | None = None
        self.seen = False
        #: the number of `return`s that set the flag
        self.sets = 0
        self.span: Span | None = None


class Consumer(NamedTuple):
    """The loop over a generator: what lowers its body for an item, the flag that it was left (`None` if it never is),
    and the options of the generator's first loop.
    """

    body: Callable[[Any], Completion]
    left: Var | None
    options: dict[str, Any]


class FunctionFrame:
    """One function that is being lowered: the kernel, or a device function at one of its calls."""

    def __init__(
        self,
        source: FunctionSource,
        parent: FunctionFrame | None,
        inlined_at: Span | None,
        results: Results,
        depth: int = 0,
        builtin: bool = False,
        key: Any = None,
        is_routine: bool = False,
        consumer: Consumer | None = None,
    ) -> None:
        self.source = source
        self.parent = parent
        self.inlined_at = inlined_at
        self.results = results
        #: whether this is a function of the language, whose operations have the location of its call
        self.builtin = builtin
        #: the key of a `real_func` while it is inlined
        self.key = key
        #: whether it is lowered as a routine of a recursion: the frames around it are those of its first call
        self.is_routine = is_routine
        #: of a generator, the loop over it
        self.consumer = consumer
        #: the annotated result
        self.annotated: Annotated | None = None
        #: run-time regions open around the function's body
        self.depth = depth
        self.scope = Scope()
        self.loops: list[LoweredLoop] = []
        #: number of assignments of each name: more than one means that it needs a cell
        self.assigned: dict[str, int] = {}
        #: names assigned by the iterations of outermost loops: a variable declared outside of these is shared memory
        self.shared: set[str] = set()
        #: names that ended with their block
        self.ended: dict[str, Declaration] = {}

    def chain(self) -> list[FunctionFrame]:
        """This frame and those that called it, innermost first."""
        found: list[FunctionFrame] = []
        frame: FunctionFrame | None = self
        while frame is not None:
            found.append(frame)
            frame = frame.parent
        return found


class LocalFunction:
    """A function that is defined in a kernel, in `scope`; `own` are the names that it assigns."""

    __tinote_self__ = None

    def __init__(self, source: FunctionSource, scope: Scope, own: frozenset[str]) -> None:
        self.__tinote_function__ = source
        self.__name__ = source.name
        self.scope = scope
        self.own = own

    def inner_scope(self) -> Scope:
        """The scope of one call."""
        return Scope(self.scope, self.own)
