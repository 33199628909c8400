"""The values that one iteration of a kernel computes: any stage of it, run by the interpreter on a copy of memory.

Each parallel loop runs the chosen iteration alone, and serial loops run whole. Fields are read when the values are
requested; writes of the iteration are visible only to itself.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tinote.errors import TinoteError
from tinote.ir.interpret import StepLimitError, interpret
from tinote.ir.memory import Index, Number
from tinote.ir.nodes import Atomic, Buffer, For, Function, Op, Push, Region, Set, Store, Task, Var, While
from tinote.ir.primitives import Defaults
from tinote.ir.types import Lanes, Scalar

#: The indices of the loops around an operation.
LoopIndices = tuple[int, ...]


class Seen(NamedTuple):
    """The values of an operation: those that it defined or wrote in its last execution, its number of executions, and
    the indices of the loops around it, outermost first, in that last iteration; None inside of a `while`.
    """

    values: tuple[Any, ...]
    times: int
    indices: LoopIndices | None = None


class Observed(NamedTuple):
    """The observed values of each operation that ran. `first_nan`: the first operation with a NaN result. `ranges`: the
    iterations of the executed parallel loops, outermost first. `stopped`: why the run ended early or left something
    out, or "". `nan_run`: the number of executions of the first NaN's operation until then.
    """

    seen: dict[Op, Seen]
    first_nan: Op | None
    ranges: tuple[range, ...]
    stopped: str
    nan_run: int = 0


def observe(
    fn: Function,
    arguments: Sequence[Number],
    memory: CopiedMemory,
    iteration: Sequence[int],
    defaults: Defaults,
    step_limit: int = 300_000,
) -> Observed:
    """Run `fn` and watch. `iteration`: an index for each parallel loop, outermost first; 0 for those that have none."""
    iterations = Iterations(iteration)
    watch = _Watch(iterations, IterationTracker(fn))
    stopped = ""
    try:
        interpret(
            fn,
            arguments,
            memory,
            defaults=defaults,
            step_limit=step_limit,
            order=iterations.choose,
            observe=watch.ran,
            one_lane=True,
        )
    except StepLimitError:
        stopped = f"stopped after {step_limit:,} operations"
    except TinoteError as error:
        stopped = error.message
    ranges = tuple(iterations.ranges)
    return Observed(watch.seen, watch.first_nan, ranges, stopped or iterations.outside, watch.nan_run)


class IterationTracker:
    """Tracks the iteration of the loops around each operation while a function runs."""

    def __init__(self, fn: Function) -> None:
        self._indices: dict[Op, tuple[Var, ...]] = {}
        self._look(fn.region, ())

    def _look(self, region: Region, indices: tuple[Var, ...]) -> None:
        for op in region.body:
            if isinstance(op, While):
                continue  # its iterations have no index
            self._indices[op] = indices
            is_loop = isinstance(op, For) or (isinstance(op, Task) and op.regions[0].params)
            for inner in op.regions:
                self._look(inner, (*indices, inner.params[0]) if is_loop else indices)

    def of(self, op: Op, values: Mapping[Var, Any]) -> LoopIndices | None:
        """The iteration in which `op` has just run; None inside of a `while`."""
        indices = self._indices.get(op)
        return None if indices is None else tuple([int(values[v]) for v in indices])


class Iterations:
    """Chooses an iteration of each parallel loop. The current nesting follows from the loops that have begun and ended.

    `ranges`: the executed loops, outermost first; `outside`: a message if one of them has no such iteration, or "".
    """

    def __init__(self, wanted: Sequence[int]) -> None:
        self._wanted = wanted
        self._depth = 0
        self.ranges: list[range] = []
        self.outside = ""

    def choose(self, iterations: range) -> Iterable[int]:
        depth, self._depth = self._depth, self._depth + 1
        each = range(iterations.start, iterations.stop)
        if depth == len(self.ranges):
            self.ranges.append(each)
        wanted = self._wanted[depth] if depth < len(self._wanted) else iterations.start
        if wanted in each:
            return [wanted]
        if iterations:
            self.outside = f"there is no iteration {wanted} in {iterations.start} … {iterations.stop - 1}"
        return []

    def ran(self, op: Op) -> None:
        """Record an operation that has run."""
        if isinstance(op, For | Task) and op.parallel:
            self._depth -= 1


class _Watch:
    """Records the values of operations."""

    def __init__(self, iterations: Iterations, tracker: IterationTracker) -> None:
        self._iterations = iterations
        self._tracker = tracker
        self.seen: dict[Op, Seen] = {}
        self.first_nan: Op | None = None
        self.nan_run = 0

    def ran(self, op: Op, values: Mapping[Var, Any]) -> None:
        """Record the values of an operation; for one with regions, its results and its last index."""
        self._iterations.ran(op)
        atoms = (*op.outs, *((op.args[-1],) if isinstance(op, Store | Atomic | Set | Push) else ()))
        if isinstance(op, For | Task) and op.regions[0].params and op.regions[0].params[0] in values:
            atoms = (*atoms, op.regions[0].params[0])
        found = tuple([_of_one_lane(a, values) if isinstance(a, Var) else a.value for a in atoms])
        earlier = self.seen.get(op)
        self.seen[op] = Seen(found, earlier.times + 1 if earlier else 1, self._tracker.of(op, values))
        if self.first_nan is None and not op.regions and any(map(_is_nan, found)):
            self.first_nan, self.nan_run = op, self.seen[op].times


def _of_one_lane(variable: Var, values: Mapping[Var, Any]) -> Any:
    """The value of a variable in the current iteration, which is the first lane of a vectorised loop."""
    value = values.get(variable)
    return value[0] if isinstance(variable.type, Lanes) and value is not None else value


def _is_nan(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_nan, value))
    return isinstance(value, float) and math.isnan(value)


class AddressedMemory(Protocol):
    """Memory at an address."""

    @property
    def address(self) -> int: ...


class CopiedMemory:
    """Copy-on-write memory of fields for the interpreter: reads come from the fields, writes stay private. `instead`:
    values at some addresses that replace those in memory.
    """

    def __init__(
        self, memory_of: Callable[[Buffer], AddressedMemory], instead: Mapping[int, Number] | None = None
    ) -> None:
        self._memory_of = memory_of
        self._instead = instead or {}
        self._written: dict[tuple[Buffer, Index], Number] = {}

    def load(self, buffer: Buffer, index: Index) -> Number:
        written = self._written.get((buffer, index))
        if written is not None:
            return written
        assert buffer.strides is not None
        steps = (*buffer.strides, *buffer.element_strides)
        at = self._memory_of(buffer).address + sum(i * step for i, step in zip(index, steps, strict=True))
        if at in self._instead:
            return self._instead[at]
        (found,) = struct.unpack(_format(buffer.dtype), ctypes.string_at(at, buffer.dtype.size))
        return found

    def store(self, buffer: Buffer, index: Index, value: Number) -> None:
        self._written[buffer, index] = value

    def shape(self, buffer: Buffer) -> Index:
        raise TinoteError(f"'{buffer.name}' is an argument that has its memory only during a launch")


def _format(dtype: Scalar) -> str:
    if dtype.kind == "f":
        return {2: "e", 4: "f", 8: "d"}[dtype.size]
    code = {1: "b", 2: "h", 4: "i", 8: "q"}[dtype.size]
    return code if dtype.kind == "i" else code.upper()
