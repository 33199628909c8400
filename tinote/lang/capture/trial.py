"""Validation of a captured program: it and its function run from the same states, and all effects must agree bit for
bit.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from tinote.errors import CaptureError, TinoteError
from tinote.lang.capture.agreement import Agreement
from tinote.lang.capture.captured import NUMBERS, Captured
from tinote.lang.capture.dependencies import Dependencies, place_of
from tinote.lang.capture.recording import Listening, Recording, Spans, blocks_of, kind_of
from tinote.lang.capture.watching import ended_after
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.fields import Field
from tinote.lang.data.layout import array_over
from tinote.lang.session.owners import is_only_owner
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.runtime.launch import prints_to
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.reserved import ReservedMemory
from tinote.runtime.seam import listened
from tinote.source import NOWHERE, Span, caller

#: Number of consecutive calls in a validation; each starts from the state that the previous one left.
CALLS = 3
#: Factors for floats among the arguments and in fields, and offsets for integers among the arguments, in a validation.
VARIATIONS = ((1.0, 0), (0.75, 1), (1.25, -1))
#: Seconds, including compilation, after which an automatically captured function is stopped; and seconds of a later
#: call from which on it is not captured, since validation takes some twenty calls.
_LONGEST_FIRST_CALL, _LONGEST_WARY_CALL = 10.0, 0.05


def _numbers_of(field: Field) -> Iterable[np.ndarray[Any, Any]]:
    """Arrays over all of a field that may be other than 0."""
    whole, memory = array_over(field.buffer, field.memory), field.memory
    if not isinstance(memory, ReservedMemory):
        return [whole]
    return [np.frombuffer(memory.view()[first:last], whole.dtype) for first, last in memory.pieces()]


class Left(NamedTuple):
    """The effects of a call: its result, variables, the number of launches that drew random numbers, memory, and
    prints.
    """

    returned: Any
    values: list[Any]
    launches: int
    memory: list[Any]
    printed: str


class Trial:
    """Runs a function and its program from the same states. As a context manager it restores memory, variables and the
    session's counters, and captures the output of kernels.
    """

    def __init__(
        self,
        function: Any,
        given: tuple[Any, ...],
        variables: list[tuple[Any, Any]],
        arrays: Sequence[CapturedArray],
    ) -> None:
        self._function = function
        self.given = given
        self._arrays = [array.view(np.ndarray) for array in arrays]
        #: their memory
        self.arguments = [
            (ExternalMemory(a.__array_interface__["data"][0], a.nbytes, a), f"argument array {k}")
            for k, a in enumerate(self._arrays)
        ]
        self.is_open = True  # not when everything is restored at the end
        self._printed: list[str] = []
        self._printing = contextlib.ExitStack()
        self.variables = variables
        self._values = [namespace[name] for namespace, name in variables]
        #: for the recorded call: its arguments, and the variables before it
        self.inputs: list[ops.Register] = []

    def __enter__(self) -> Self:
        self._printing.enter_context(prints_to(self._printed.append))
        self._launches = session.launches
        self._fields = list(session.fields)  # keeps them alive
        self._names = Spans[tuple[Memory, str]]()
        for memory, name in blocks_of(self._fields):
            self._names.add(memory.begin, memory.nbytes, (memory, name))
        #: the memory known to be used, and its contents before
        self._memories: list[tuple[Memory, str]] = []
        self._copies: list[Memory] = []
        self._touched: set[int] = set()
        self._changed: set[int] = set()
        #: the fields in it whose values vary, once known
        self.varied: list[Field] = []
        for memory, name in self.arguments:
            self._add(memory, name)
        return self

    # ---- the memory that is used

    def meet(self, memory: Memory) -> None:
        """Note memory that a recorded call uses, perhaps as the first one, and may change."""
        if id(memory) not in self._touched:
            self.touch_address(memory.begin)

    def touch_address(self, address: int, *, changes: bool = True) -> None:
        """Note memory that is about to be used; `changes`: perhaps written."""
        found = self._names.holding(address)
        if found is None:
            return
        if id(found[0]) not in self._touched:
            self._add(*found, changes=changes)
        elif changes:
            self._changed.add(id(found[0]))

    def _add(self, memory: Memory, name: str, *, changes: bool = True) -> None:
        self._touched.add(id(memory))
        if changes:
            self._changed.add(id(memory))
        self._memories.append((memory, name))
        self._copies.append(memory.copy())

    def settle(self, program: Captured, gradients: Collection[Memory] = ()) -> None:
        """End the recording: from now on the values of all used memory vary. If other threads may read memory that the
        function only reads, then only the values of written memory and of these `gradients` vary.
        """
        memories, plan = program.tables.memories, program.plan
        written = {id(memories[block]) for block in plan.written}
        varies_all = is_only_owner()
        for memory in (*memories, *gradients):
            if memory is not None:
                self.touch_address(memory.begin, changes=varies_all or id(memory) in written or memory in gradients)
        varied = self._touched if varies_all else written | {id(memory.whole) for memory in gradients}
        self.varied = [field for field in self._fields if id(field.memory.whole) in varied]

    def listening(self) -> Listening:
        """The listener for a call."""
        return _Touching(self)

    def __exit__(self, *error: object) -> None:
        self._printing.close()
        self.is_open = False
        self.begin()

    def begin(self, variation: tuple[float, int] = VARIATIONS[0]) -> None:
        """The state from before, with other values of arguments, variables and fields."""
        for (memory, _), copy in zip(self._memories, self._copies, strict=True):
            if id(memory) in self._changed:
                memory.restore(copy)
        if variation != VARIATIONS[0]:
            with np.errstate(all="ignore"):
                for field in self.varied:
                    if field.dtype.kind == "f":
                        for numbers in _numbers_of(field):
                            numbers[...] = numbers * numbers.dtype.type(variation[0])
                for array in self._arrays:
                    vary(array, variation)
        session.launches = self._launches
        for (namespace, name), value in zip(self.variables, self._values, strict=True):
            namespace[name] = varied(value, variation)
        self._arguments = [varied(value, variation) for value in self.given]

    def call(self, listener: Any) -> Any:
        """Call the function under a listener."""
        return listened(listener, self._function, *self._arguments)

    def forget_prints(self) -> None:
        """Discard the output so far."""
        self._printed.clear()

    def call_warily(self) -> None:
        """Call an automatically captured function for the first time: stop it where it prints or takes long."""
        fields = len(session.fields)
        with ended_after(_LONGEST_FIRST_CALL):
            self.call(_TouchingWarily(self))
        if len(session.fields) != fields:
            raise CaptureError("this cannot be captured: it makes fields", place_of_function(self._function))

    def refuse_slow_calls(self) -> None:
        """Raise `CaptureError` if it takes long again."""
        quickest = float("inf")
        for _ in range(3):  # the machine may have been busy
            self.begin()
            begin = time.perf_counter()
            self.call(_TouchingWarily(self))
            quickest = min(quickest, time.perf_counter() - begin)
            if quickest <= _LONGEST_WARY_CALL:
                return
        raise CaptureError(
            f"this is not captured automatically: it takes {1000 * quickest:.0f} ms", place_of_function(self._function)
        )

    def refuse_changes(self, dependencies: Dependencies) -> None:
        """Raise `CaptureError` if calls have changed something in Python that a replay would not change."""
        dependencies.refuse_changes(place_of_function(self._function))

    def refuse_known(self, returned: Any, dependencies: Dependencies) -> None:
        """Raise `CaptureError` if a call returns an object that existed before it: a replay would return a copy."""
        parts = [returned]
        for one in parts:
            if dependencies.holds(one):
                raise CaptureError(
                    f"this cannot be captured: it returns a {type(one).__name__} that is there before the call",
                    place_of_function(self._function),
                    hint="return a copy of it",
                )
            if type(one) in (tuple, list, dict):
                parts += one.values() if type(one) is dict else one

    def record(self, recording: Recording, plan: Program) -> Any:
        """Call it, record its effects, and restore the variables. Returns its result."""
        arguments: list[Any] = []
        inputs = []
        for value in self._arguments:
            if isinstance(value, NUMBERS):
                register = recording.register(kind_of(value))
                inputs.append(register)
                value = recording.number(register, value)
            arguments.append(value)
        plan.inputs = self.inputs = [*inputs, *recording.take_in(self.variables)]
        try:
            returned = recording.run(lambda: self._function(*arguments))
            recording.end(returned, self.updates(recording))
        except CaptureError:
            raise
        except Exception as error:
            if recording.refused is not None:
                raise recording.refused from None
            if any(type(step) is ops.Branch for step in recording.steps):
                last = [step for step in recording.steps if type(step) is ops.Branch][-1]
                raise CaptureError(
                    f"this cannot be captured: under this condition, one side raises {type(error).__name__}: {error}",
                    last.span,
                    hint="decide it in a kernel",
                ) from None
            raise
        return returned

    def updates(self, recording: Recording) -> tuple[tuple[int, ops.Operand], ...]:
        """The variables changed by the call, by place, with their new values."""
        return recording.updates(self.variables, self.inputs[len(self.inputs) - len(self.variables) :])

    def prove(self, program: Captured, gradients: Collection[Memory] = ()) -> None:
        """Raise `CaptureError` unless the program has the effects of the function, from several states. `gradients`:
        those that vary besides.
        """
        dependencies = program.guards.dependencies
        self.refuse_changes(dependencies)
        self.settle(program, gradients)
        program.use(1)
        agreement = self.agreement(program)
        for variation in VARIATIONS:
            self.begin(variation)
            self.forget_prints()
            try:
                wanted = self.by_function()
            except (TinoteError, ArithmeticError, ValueError):
                if variation == VARIATIONS[0]:
                    raise
                continue  # the function has no value there
            self.refuse_changes(dependencies)
            self.begin(variation)
            self.forget_prints()
            for at, (a, b) in enumerate(zip(wanted, self.by_program(program), strict=True)):
                if not self.agree(agreement, a, b):
                    raise self.difference(program, variation, at, a, b)

    def by_function(self) -> list[Left]:
        """The effects of consecutive calls of the function."""
        return [self.left(self.call(self.listening())) for _ in range(CALLS)]

    def by_program(self, program: Captured) -> Iterable[Left]:
        """The same of the program."""
        for _ in range(CALLS):
            try:
                yield self.left(program.run(tuple(self._arguments)))
            except TinoteError as error:
                what = f"this cannot be captured: replayed, it raises {type(error).__name__}: {error.message}"
                raise _unproved(CaptureError(what, error.span)) from None

    def agreement(self, program: Captured) -> Agreement:
        """The comparison of the program with its function."""
        return Agreement(program.tables.natives, self._fields)

    def agree(self, agreement: Agreement, a: Left, b: Left) -> bool:
        """Whether two calls had the same effects."""
        return (
            agreement.of_values(a[:3], b[:3])
            and a.printed == b.printed
            and all(
                agreement.of_memory(memory, one, other)
                for (memory, _), one, other in zip(self._memories, *map(self._all_of, (a, b)), strict=True)
            )
        )

    def _all_of(self, left: Left) -> list[Any]:
        """The contents of all memory at that time, including memory not used before."""
        return [*left.memory, *[copy.contents() for copy in self._copies[len(left.memory) :]]]

    def left(self, returned: Any) -> Left:
        """The effects of a call."""
        values = [namespace[name] for namespace, name in self.variables]
        printed = "".join(self._printed)
        self._printed.clear()
        memory = [memory.contents() for memory, _ in self._memories]
        return Left(returned, values, session.launches, memory, printed)

    def difference(
        self, program: Captured, variation: tuple[float, int], at: int, wanted: Left, found: Left
    ) -> CaptureError:
        """The error of the call `at`, which names the first step after which memory differs."""
        agrees = self.agreement(program).of_memory
        states_of = zip(self._memories, self._all_of(wanted), self._all_of(found), strict=True)
        names = [name for (memory, name), a, b in states_of if not agrees(memory, a, b)]
        printed = wanted.printed != found.printed
        what = "what it returns, or a global," if not printed else "what its kernels print"
        what = f"'{names[0]}' differs" if names else f"{what} differs"

        def start() -> None:
            self.begin(variation)
            for _ in range(at):
                self.call(self.listening())

        start()
        states = _States(program, [memory for memory, _ in self._memories], self.arguments)
        with contextlib.suppress(Exception):  # the capture did the same launches; this only serves to name a step
            states.run(lambda: self._function(*self._arguments))
        states.close()
        low, high = 0, len(states.seen)
        while low < high:
            middle = (low + high) // 2
            start()
            program.use(1, middle + 1)
            program.start(tuple(self._arguments))
            memories = [memory for memory, _ in self._memories]
            if all(
                agrees(one, bytes(one.view()), seen) for one, seen in zip(memories, states.seen[middle], strict=True)
            ):
                low = middle + 1
            else:
                high = middle
        step = states.steps[low] if low < len(states.steps) else None
        span = getattr(step, "span", NOWHERE)
        error = CaptureError(
            f"this cannot be captured: replayed, {what}, first after {_in_words(step)}",
            span if span != NOWHERE else place_of_function(self._function),
            hint="something changes memory, or decides what is done, that a capture does not see",
        )
        return _unproved(error)


def _unproved(error: CaptureError) -> CaptureError:
    """On a GPU the function itself may depend on the order in which iterations run."""
    error.is_unproved = session.config.arch == "gpu"
    return error


def varied(value: Any, variation: tuple[float, int]) -> Any:
    """A number with another value; integers, which may be indices, only where these are checked."""
    if type(value) is float:
        return value * variation[0]
    if type(value) is int and session.config.bounds_check:
        return value + variation[1]
    return value


def vary(array: np.ndarray[Any, Any], variation: tuple[float, int]) -> None:
    """The same of an argument's numbers; also of those that are zero, and not the same for all of them."""
    if array.dtype.kind == "f":
        steps = np.arange(1, array.size + 1).reshape(array.shape) % 5
        array[...] = array * array.dtype.type(variation[0]) + steps.astype(array.dtype) * array.dtype.type(2**-7)
    elif array.dtype.kind == "i" and session.config.bounds_check:
        array += array.dtype.type(variation[1])


def place_of_function(function: Any) -> Span:
    """The source location of a function's definition."""
    while hasattr(function, "__tinote_calls__"):
        function = function.__tinote_calls__
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return NOWHERE if code is None else place_of(code)


def _in_words(step: ops.Operation | None) -> str:
    match step:
        case None:
            return "all its steps"
        case ops.Launch():
            return "this launch"
        case ops.Clear():
            return "a clear"
        case ops.Copy():
            return "a copy"
        case ops.Fill():
            return "this write"
    return "this"


class _Touching(Listening):
    """Reports to a trial the memory that a call is about to use."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self._touch = trial.touch_address

    def launch(self, code: Any, values: Any) -> Any:
        written = code.written_addresses()
        for slot, address, _ in code.bound_addresses(values[: code.arrays]):
            self._touch(address, changes=slot in written)
        for slot, _, memory in code.fixed_addresses():
            self._touch(memory.begin, changes=slot in written)
        return super().launch(code, values)

    def clearing(self, memory: Any) -> None:
        self._touch(memory.begin)

    def copying(self, target: Any, source: Any) -> None:
        for one in (source, target):
            address = one.begin if isinstance(one, Memory) else one.__array_interface__["data"][0]
            self._touch(address, changes=one is target)

    def assigning(self, array: Any, position: Any, numbers: Any, value: Any) -> None:
        self._touch(array.__array_interface__["data"][0])

    def sharing(self, memory: Any, name: str) -> None:
        self._touch(memory.begin)

    def reading(self, array: Any, position: Any, value: Any) -> Any:
        self._touch(array.__array_interface__["data"][0], changes=False)
        return value


class _TouchingWarily(_Touching):
    """The same for a function that is captured automatically: kernels that print are refused before they run."""

    def launch(self, code: Any, values: Any) -> Any:
        if code.prints:
            raise CaptureError("this cannot be captured: a kernel that prints", caller())
        return super().launch(code, values)


class _States(Recording):
    """Records a call, and the contents of memory after each step except the last."""

    def __init__(self, program: Captured, memories: list[Memory], arguments: Sequence[tuple[Memory, str]]) -> None:
        super().__init__(program.tables, (), arguments, prints=True)
        self.seen: list[list[bytes]] = []
        self._memories = memories

    def add(self, step: ops.Operation) -> None:
        if self.steps:
            self.seen.append([bytes(memory.view()) for memory in self._memories])
        super().add(step)
