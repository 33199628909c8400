"""A captured program: a plan in this process's memory, with its inputs and results in Python."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinote.errors import CaptureError
from tinote.lang.capture.guards import Guards
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.recording import Tables, kind_of
from tinote.lang.capture.targets import prepared
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.source import caller

#: The arguments that are numbers, which may differ at each call.
NUMBERS = (bool, int, float)
_NOTHING_FRESH: Mapping[int, int] = {}


def named_variable(holder: Any, key: Any) -> str:
    """A variable of a step, in words."""
    if isinstance(holder, list) or (isinstance(holder, dict) and not isinstance(key, str)):
        return f"element {key!r} of a {type(holder).__name__}"
    return f"'{key}'"


class Captured:
    """A program for one kind of arguments. `ready`: the paths that may be taken; by default all. `fresh`: blocks that
    get memory of their own in each run, which the result owns, with their sizes. `replays`: those that were counted.
    """

    replays = 0

    def __init__(
        self,
        function: Any,
        given: tuple[Any, ...],
        plan: Program,
        tables: Tables,
        variables: list[tuple[Any, Any]],
        guards: Guards,
        ready: Callable[[Path], bool] | None = None,
        fresh: Mapping[int, int] = _NOTHING_FRESH,
    ) -> None:
        self._ready = ready
        self._fresh = fresh
        self.plan = plan
        self.tables = tables
        self.guards = guards
        self.function = function
        self._variables = variables
        self._given = given  # arguments other than numbers stay alive with it
        self._types = tuple([type(value) for value in given])
        self._statics = [(k, value) for k, value in enumerate(given) if not isinstance(value, NUMBERS)]
        self.assigned = [named_variable(*one) for one in variables]
        self.use(None)

    def use(self, threads: int | None, length: int | None = None) -> None:
        """Run launches on at most this number of threads from now on, and only the first `length` steps."""
        tables, inputs = self.tables, self.plan.inputs
        ready = self.prepared = prepared(
            self.plan, tables.natives, tables.memories, threads, length, ready=self._ready, given=self._fresh
        )
        cells = [(r.number, ready.floats if r.kind == "f" else ready.integers) for r in inputs]
        numbers = [k for k, value in enumerate(self._given) if isinstance(value, NUMBERS)]
        self._inputs = [(k, *cell) for k, cell in zip(numbers, cells, strict=False)]
        kinds = [r.kind for r in inputs[len(numbers) :]]
        globals_ = zip(self._variables, kinds, cells[len(numbers) :], strict=True)
        self._globals = [(*place, kind, *cell) for place, kind, cell in globals_]
        #: runs the instructions with the inputs that were taken last
        self.go = self._draw if ready.draws else ready.run
        self._made: dict[int, Memory] = {}  # by block: the fresh memory of the present run
        #: by end: what the function returns there, after its effects in Python
        self._ends = [self._finisher(end, reader_of(end.result, ready, self._made)) for end in ready.ends]

    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether it is for these arguments."""
        if (*map(type, args),) != self._types:
            return False
        return not self._statics or all(args[k] is value for k, value in self._statics)

    @property
    def inputs(self) -> list[tuple[Any, str, Any]]:
        """The plan's inputs, arguments first: a key, which is equal for the same number in another program, a name, and
        the value; for arguments, the first one given.
        """
        names = inspect.signature(self.function).parameters
        given = [(name, value) for name, value in zip(names, self._given, strict=False) if isinstance(value, NUMBERS)]
        return [
            *[(("argument", name, type(value)), name, value) for name, value in given],
            *[((id(namespace), name), str(name), namespace[name]) for namespace, name in self._variables],
        ]

    def numbers(self, args: Sequence[Any]) -> list[Any]:
        """The plan's inputs in a call with these arguments."""
        return [*[args[k] for k, _, _ in self._inputs], *[holder[name] for holder, name in self._variables]]

    @property
    def argument_count(self) -> int:
        """The number of inputs that are arguments."""
        return len(self.plan.inputs) - len(self._variables)

    @property
    def instances(self) -> list[tuple[Any, Any, Any]]:
        """The kernels that it launches, each with its key and its instance."""
        return self.guards.instances

    def refuse_if_stale(self) -> None:
        """Raise `CaptureError` for a dependency that has changed since the capture."""
        what = self.guards.broken()
        if what is not None:
            name = getattr(self.function, "__qualname__", "the step")
            hint = "record it again with `ti.capture`"
            raise CaptureError(f"the captured step '{name}' is out of date: {what}", caller(), hint)

    def run(self, args: Sequence[Any]) -> Any:
        """Replay it."""
        if self._inputs or self._globals:
            self.take(args)
        return self._ends[self.go()]()

    def finish(self, reached: int) -> Any:
        """The effects in Python of a replay that reached this end: its result, and the numbers that the step
        assigns.
        """
        return self._ends[reached]()

    def _finisher(self, end: ops.End, read: Callable[[], Any]) -> Callable[[], Any]:
        """`finish` for this end. `read`: what reads its result."""
        if not end.updates and not end.seeds:
            return read
        number, variables, instances = self.prepared.number, self._variables, self.guards.instances

        def finish() -> Any:
            for place, operand in end.updates:
                namespace, name = variables[place]
                namespace[name] = number(operand)
            for which, operand in end.seeds:
                instances[which][2].last_seed = number(operand)
            return read()

        return finish

    def start(self, args: Sequence[Any]) -> int:
        """Run the instructions; returns the number of the end that was reached, or `NOWHERE_READY`."""
        if self._inputs or self._globals:
            self.take(args)
        return self.go()

    def take(self, args: Sequence[Any]) -> None:
        """Set the inputs: these arguments, and the present values of variables.

        Raises `CaptureError` for numbers of other kinds.
        """
        try:
            for k, number, cells in self._inputs:
                cells[number] = args[k]
            for namespace, name, kind, number, cells in self._globals:
                value = namespace[name]
                if kind_of(value) != kind:
                    what = named_variable(namespace, name)
                    raise CaptureError(f"{what} of a captured step was a number of another kind", caller())
                cells[number] = value
        except ValueError:
            raise CaptureError("a captured step has integers of 64 bits", caller()) from None

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Runs inside leave nothing: at the end, memory and numbers are what they were."""
        memories = self.tables.memories
        copies = MemoryCopies(memory for block in self.plan.written if (memory := memories[block]) is not None)
        values = [holder[name] for holder, name in self._variables]
        seeds, launches = [instance.last_seed for _, _, instance in self.guards.instances], session.launches
        try:
            yield
        finally:
            copies.put_back()
            session.launches = launches
            for (holder, name), value in zip(self._variables, values, strict=True):
                holder[name] = value
            for (_, _, instance), seed in zip(self.guards.instances, seeds, strict=True):
                instance.last_seed = seed

    def _draw(self) -> int:
        """Run instructions that draw random numbers: what has drawn some counts, also where the rest fails."""
        prepared = self.prepared
        first = session.launches
        prepared.set_counter()
        try:
            return prepared.run()
        finally:
            session.launches += prepared.counter - first


def reader_of(result: ops.Result, prepared: Prepared, made: dict[int, Memory]) -> Callable[[], Any]:
    """A function that reads a result after a run. `made`: by block, the memory that the result owns."""
    kind, parts = result
    if kind == "constant":
        return lambda: parts[0]
    if kind == "array":
        view, dtype = parts
        if view.block in prepared.given:
            return lambda: np.ndarray(view.shape, dtype, made.pop(view.block).view())
        return prepared.copier(view, dtype)
    if kind in ("number", "bool"):
        (operand,) = parts
        if kind == "number" and isinstance(operand, ops.Register) and operand.kind == "f":
            floats, at = prepared.floats, operand.number
            return lambda: floats[at]
        return (lambda: bool(prepared.number(operand))) if kind == "bool" else (lambda: prepared.number(operand))
    if kind in ("vector", "matrix"):
        shape, dtype, components = parts
        make, numbers = Vector if kind == "vector" else Matrix, None if dtype == "object" else dtype
        return lambda: make(np.array([prepared.number(one) for one in components], numbers).reshape(shape))
    if kind == "dict":
        items = [(key, reader_of(one, prepared, made)) for key, one in parts]
        return lambda: {key: read() for key, read in items}
    readers = [reader_of(one, prepared, made) for one in parts]
    if kind == "tuple" and len(readers) == 2:  # a derivative with its value, often
        first, second = readers
        return lambda: (first(), second())
    return (lambda: tuple([read() for read in readers])) if kind == "tuple" else (lambda: [read() for read in readers])
