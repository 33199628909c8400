"""Calls that become plans automatically: for derivatives of small kernels, Python's overhead exceeds the computation.

    gradient = Planned(run, potential, ...)
    gradient(x)         # the first two calls with arguments of one signature just run
    gradient(x)         # the third is recorded (`recording.py`)
    gradient(x)         # the fourth is compared with the plan: memory and results must agree bit for bit
    gradient(x)         # from now on the plan runs, in one native call

A signature is the invariant part of the arguments: types and shapes of NumPy arrays, identities of fields, values of
integers. Contents and addresses of arrays, and floats, may differ in each call. Other dependencies are compared before
each call (`MemoryPlan.is_current`); where anything differs, or might, the call just runs. Gradients of large arrays
come from code of the plan's own (`first_stores.py`), which fast maths permits to round sums otherwise. The user's
function must be known to do nothing but launch kernels (`straight.py`); else the call just runs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, c_char
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.launch.native import Native
from tinote.errors import CaptureError, TinoteError, at_users_frames, users_trace
from tinote.ir.buffers import Buffer
from tinote.ir.types import scalar_named
from tinote.lang.capture.agreement import Agreement
from tinote.lang.capture.attempts import CANNOT, Attempts, runs_plainly
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.explore import capturing
from tinote.lang.capture.first_stores import storing_first
from tinote.lang.capture.guards import Guards
from tinote.lang.capture.recording import Following, Listening, Recording, Symbol, Tables
from tinote.lang.capture.rehearsal import Rehearsal
from tinote.lang.capture.reruns import RecordedLaunches
from tinote.lang.capture.straight import StraightDependencies
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.nests import map_leaves
from tinote.lang.data.traced import Traced
from tinote.lang.kernels.stand_ins import stand_ins
from tinote.lang.session.owners import Replay
from tinote.lang.session.state import BufferCache, are_viewed, recorder, session
from tinote.program import operations as ops
from tinote.program.program import Program
from tinote.program.simplify import blocks_to_give, simplified
from tinote.runtime.memory import Memory, readable_size
from tinote.runtime.pool import WARM_FROM
from tinote.runtime.seam import listened, listeners, silently
from tinote.source import caller

Array = np.ndarray[Any, Any]

#: Number of calls of a signature that just run.
PLAIN_CALLS = 2
#: Greatest number of signatures of one function.
_MOST_SIGNATURES = 64
#: Greatest number of plans of one function; the oldest is dropped for a new signature.
_MOST_PLANS = 8
#: Longer calls are dominated by their own work.
_MOST_STEPS = 4096
#: The most bytes of their own that the plans of one function have together.
_MOST_BYTES = 64 << 20
#: Operators of Python on floats that a plan has, with their errors.
_OPERATORS = {
    "add", "subtract", "multiply", "negative", "absolute", "scale", "positive", "true_divide", "floor_divide",
    "remainder", "float_power",
}  # fmt: skip
#: NumPy functions that IEEE 754 determines, as operations; the others are called.
_DETERMINED = {np.divide: "divide", np.sqrt: "sqrt"}
_NO_CODES: Mapping[Native, Native] = {}


class CallSignature(NamedTuple):
    """The arguments of a call: `key`, the invariant part, and the variable parts in order."""

    key: tuple[Any, ...]
    arrays: list[Array]
    numbers: list[float]
    fields: list[Field]


def _signature(args: tuple[Any, ...]) -> CallSignature | None:
    """The signature of a call; None for arguments that plans do not support."""
    arrays: list[Array] = []
    numbers: list[float] = []
    fields: list[Field] = []
    key = _kinds(args, arrays, numbers, fields)
    return None if key is None else CallSignature(key, arrays, numbers, fields)


def _kinds(
    values: tuple[Any, ...], arrays: list[Array], numbers: list[float], fields: list[Field]
) -> tuple[Any, ...] | None:
    """The key of these values; variable parts are added to the lists."""
    key: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            # Contiguous, aligned and writable, as kernels take it without a copy. An array of a single number may be
            # treated as a number.
            if not value.ndim or not value.size or not value.flags.carray:
                return None
            arrays.append(value)
            key.append((value.shape, value.dtype))
        elif kind is float:
            numbers.append(value)
            key.append(float)
        elif kind is int or kind is bool or value is None:
            key.append((kind, value))
        elif isinstance(value, Field):
            fields.append(value)
            key.append((Field, id(value)))
        elif kind is tuple:
            inner = _kinds(value, arrays, numbers, fields)
            if inner is None:
                return None
            key.append((tuple, inner))
        else:
            return None
    return tuple(key)


def _with(values: tuple[Any, ...], arrays: Any, numbers: Any) -> tuple[Any, ...]:
    """Arguments with these arrays and floats substituted."""
    return tuple(
        [
            next(arrays)
            if type(value) is np.ndarray
            else next(numbers)
            if type(value) is float
            else _with(value, arrays, numbers)
            if type(value) is tuple
            else value
            for value in values
        ]
    )


def _addresses(arrays: Sequence[Array]) -> list[int] | None:
    """The addresses of arrays; None if one is not contiguous or not writable."""
    try:
        return [addressof(c_char.from_buffer(array)) for array in arrays]  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, BufferError):
        return None


def _are_apart(arrays: Sequence[Array], addresses: Sequence[int]) -> bool:
    """Whether arrays at these addresses are as kernels take them, and share no memory."""
    if not all(array.flags.carray for array in arrays):
        return False
    spans = sorted(zip(addresses, [array.nbytes for array in arrays], strict=True))
    ends = [address + nbytes for address, nbytes in spans]
    return not any(end > address for end, (address, _) in zip(ends, spans[1:], strict=False))


class Planned:
    """`run`, by plans. `function`: the user's function that it calls, with arguments of its own. `fields`: those that
    it knows besides its arguments. `makes_arrays`: whether arrays that `run` itself hands to fields depend on the
    signature alone. `attaches`: called first where fields have received gradients or duals. `seeds`: the number of
    arguments before those of `function`.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        function: Callable[..., Any],
        fields: Sequence[Field],
        *,
        makes_arrays: bool = False,
        attaches: Callable[[], object] | None = None,
        seeds: int = 0,
    ) -> None:
        self._run = run
        self._function = function
        self._fields = tuple(fields)
        self._makes_arrays = makes_arrays
        self._attaches = attaches
        self._seeds = seeds
        self._known = BufferCache()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """In another process it makes plans of its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_known", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _known=BufferCache(), _lock=threading.Lock())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs or listeners or recorder.get() is not None:
            return self._run(*args, **kwargs)
        signature = _signature(args)
        if signature is None:
            return self._run(*args)
        entry = self._known.get(signature.key)
        if entry is None:
            entry = self._enter(signature)
        plan: MemoryPlan | None = entry.program
        if plan is not None and plan.is_proved and self._lock.acquire(False):
            try:
                if plan.is_current() and plan.point(signature):
                    if not plan.memories:
                        return plan.run(signature.numbers)
                    try:
                        if plan.replay.begin():
                            return plan.run(signature.numbers)
                    finally:
                        plan.replay.end()
            except TinoteError as error:
                raise error.with_traceback(users_trace(error)) from None
            except KeyboardInterrupt as interrupt:
                raise at_users_frames(interrupt) from None
            finally:
                self._lock.release()
        if not entry.may_try() or runs_plainly() or (session.has_views and are_viewed()):
            return self._run(*args)
        return self._tried(entry, signature, args)

    def _enter(self, signature: CallSignature) -> _Entry:
        """Add a new signature."""
        known = self._known
        plans = [key for key, entry in list(known.items()) if entry.program is not None]
        if len(known) >= _MOST_SIGNATURES:
            known.clear()
        elif len(plans) >= _MOST_PLANS:
            known.pop(plans[0], None)  # another thread may have done so
        entry = known[signature.key] = _Entry(PLAIN_CALLS)
        session.keep_for([field.buffer for field in signature.fields if field.is_placed], known, signature.key)
        return entry

    def _makes_room(self, nbytes: int) -> bool:
        """Whether there may be a plan with `nbytes` bytes of its own.

        The oldest ones are dropped where there are too many.
        """
        if nbytes > _MOST_BYTES:
            return False
        for entry in list(self._known.values()):
            nbytes += 0 if entry.program is None else entry.program.nbytes
        for key, entry in list(self._known.items()):
            if nbytes <= _MOST_BYTES:
                break
            if entry.program is not None:
                nbytes -= entry.program.nbytes
                self._known.pop(key, None)
        return True

    def _tried(self, entry: _Entry, signature: CallSignature, args: tuple[Any, ...]) -> Any:
        """A call that is recorded, or compared with its plan."""
        if not capturing.acquire(False):
            return self._run(*args)
        try:
            plan: MemoryPlan | None = entry.program
            if plan is not None and not plan.is_current():
                entry.change()
                plan = None
            if plan is None and entry.waits <= 0:
                return self._recorded(entry, signature, args)
            if plan is not None and not plan.is_proved and plan.point(signature):
                return self._proved(entry, plan, signature, args)
        finally:
            capturing.release()
        return self._run(*args)

    def _recorded(self, entry: _Entry, signature: CallSignature, args: tuple[Any, ...]) -> Any:
        dependencies = StraightDependencies()
        try:
            dependencies.scan(self._function, self._integers(args))
            dependencies.settle()
        except CaptureError as error:
            entry.refuse(error)
            return self._run(*args)
        inputs = [*signature.arrays, *dependencies.arrays]
        addresses = _addresses(inputs)
        if addresses is None or not _are_apart(inputs, addresses):
            return self._run(*args)
        attempt = Attempt(Tables(Program()), inputs, self._makes_arrays)
        registers = [attempt.register("f") for _ in signature.numbers]
        numbers = [attempt.number(r, value) for r, value in zip(registers, signature.numbers, strict=True)]
        captured = [array.view(CapturedArray) for array in signature.arrays]
        given = _with(args, iter(captured), iter(numbers))
        try:
            returned = attempt.run(lambda: self._run(*given))
            attempt.finish(returned)
            found = _without_traces(returned)
        finally:
            attempt.close()
        attempt.tables.plan.inputs = registers
        try:  # the call has done its work, and returns
            plan = self._planned(attempt, dependencies, signature, stores_first=entry.may_store_first)
        except CaptureError as error:
            entry.refuse(error)
            return found
        entry.found(plan)
        buffers = [*plan.buffers, *[field.buffer for field in self._fields if field.is_placed]]
        session.keep_for(buffers, self._known, signature.key)
        return found

    def _integers(self, args: tuple[Any, ...]) -> dict[str, int]:
        """The parameters of the function that are integers, which the signature holds, and their values."""
        code = getattr(self._function, "__code__", None)
        names = () if code is None else code.co_varnames[: code.co_argcount]
        return {
            name: value for name, value in zip(names, args[self._seeds :], strict=False) if type(value) in (int, bool)
        }

    def _planned(
        self, attempt: Attempt, dependencies: StraightDependencies, signature: CallSignature, *, stores_first: bool
    ) -> MemoryPlan:
        """The plan of a recorded call. Raises `CaptureError` where there is none."""
        if attempt.refused is not None:
            raise attempt.refused
        if len(attempt.steps) > _MOST_STEPS:
            raise CaptureError(f"{CANNOT}it is long, so that a plan would save little")
        tables, plan = attempt.tables, attempt.tables.plan
        instead: Mapping[Native, Native] = _NO_CODES
        steps = simplified(plan, attempt.steps, attempt.launched)
        if stores_first:
            steps, instead = silently(storing_first, plan, steps, tables.natives, tables.origin)
        plan.root.steps = steps
        if not self._makes_room(plan.own_bytes):
            raise CaptureError(f"{CANNOT}a plan of it would take {readable_size(plan.own_bytes)}")
        return MemoryPlan(self._run, plan, attempt, dependencies, signature, self._attaches, instead)

    def _proved(self, entry: _Entry, plan: MemoryPlan, signature: CallSignature, args: tuple[Any, ...]) -> Any:
        """Validate a plan by a call; both use the same codes if these may round differently from those of others."""
        rehearsal = Rehearsal(plan.plan, plan.tables)
        rehearsal.take()
        arrays = [*signature.arrays, *plan.held]
        copies = [array.copy() for array in arrays]
        launching = _Launching(plan.instead if session.config.fast_math else _NO_CODES)
        wanted = _without_traces(listened(launching, self._run, *args))

        def is_same(end: ops.End) -> bool:
            return Agreement().of_values([rehearsal.result(end), arrays], [wanted, copies])

        places = zip(plan.input_blocks, _addresses(copies) or (), strict=True)
        with np.errstate(all="ignore"):  # the call itself has warned
            difference = rehearsal.difference(signature.numbers, is_same, places)
        plan.is_proved = difference is None
        if difference is not None and plan.instead:
            entry.program, entry.may_store_first = None, False
        elif difference is not None:
            entry.refuse(CaptureError(f"{CANNOT}{difference}"))
        return wanted


class _Launching(Listening):
    """`instead`: codes that are launched in the place of others."""

    def __init__(self, instead: Mapping[Native, Native]) -> None:
        super().__init__()
        self._instead = instead

    def launch(self, code: Any, values: Any) -> Any:
        return super().launch(self._instead.get(code, code), values)


class _Entry(Attempts[Any]):
    """The attempts for one signature. `may_store_first`: whether its plan may have launches that store what they add
    first.
    """

    may_store_first = True


class Attempt(Following):
    """Records a call that becomes a plan unless something is `refused`: conditions on numbers, or arrays other than its
    `inputs`.
    """

    def __init__(self, tables: Tables, inputs: Sequence[Array], makes_arrays: bool) -> None:
        super().__init__(tables, inputs=inputs, prints=False)
        self._makes_arrays = makes_arrays
        self.launched = RecordedLaunches()

    def finish(self, returned: Any) -> None:
        """The call has returned."""
        if self.refused is None:
            try:
                self.end(returned, ())
            except CaptureError as error:
                self.give_up(error)
                return
            end = self.steps[-1]
            assert isinstance(end, ops.End)
            if not all(self._is_made_anew(kind, parts[0]) for kind, parts in ops.leaves_of(end.result)):
                self.refuse("a result that is not a number or an array of its own")
            if any(type(step) is ops.Branch for step in self.steps):
                self.refuse("a condition on a number")

    def _is_made_anew(self, kind: str, part: Any) -> bool:
        """Whether a result is a computed number or a new array."""
        if kind == "array":
            return self.tables.plan.blocks[part.block].kind == "scratch"
        return kind == "number" and isinstance(part, ops.Register) and part.kind == "f"

    def run_code(self, code: Native, values: Sequence[Any]) -> tuple[Any, ...]:
        return silently(code.launch, values)  # type: ignore[no-any-return]

    def launch(self, code: Any, values: Any) -> Any:
        found = super().launch(code, values)
        if self.refused is None:
            self._note_launch(code, values)
        return found

    def _note_launch(self, code: Any, values: Any) -> None:
        """Record whether a launch is of primal code, which might run again."""
        step = self.steps[-1]
        assert isinstance(step, ops.Launch)
        for _, _, instance in self.instances.values():
            if instance.primal is code:
                plain = [value.value if type(value) is Traced else value for value in values]
                self.launched.note(step, instance, code, plain)

    def decided(self, operation: str, a: Any, b: Any, found: bool) -> bool:
        self.refuse("a condition on a number")
        return found

    def computed(self, operation: str, operands: Sequence[Any], value: Any, function: np.ufunc | None) -> Symbol:
        if function is not None:
            return self._called(function, operands)
        if operation not in _OPERATORS or type(value) is not float or not any(map(_is_float, operands)):
            self.refuse("what Python computes of numbers")
        if operation == "float_power" and not _has_real_power(*operands):
            self.refuse("a power that may be a complex number")
        return super().computed(operation, operands, value, None)

    def _called(self, function: np.ufunc, operands: Sequence[Any]) -> Symbol:
        """Record a function of NumPy. Derivatives and `ti` compute without its warnings."""
        is_quiet = set(np.geterr().values()) == {"ignore"}
        name = _DETERMINED.get(function) if is_quiet else None
        if not any(map(_is_float, operands)) or not all(isinstance(one, int | float) for one in operands):
            self.refuse(f"np.{function.__name__} of other numbers than floats")
        register = self.register("f")
        operation = name or f"{'quiet' if is_quiet else 'numpy'}.{function.__name__}"
        self.add(ops.Compute(operation, register, tuple(map(self._word, operands)), caller("numpy")))
        return Symbol(self, register)

    def condition(self, operation: str, operands: Sequence[Any]) -> Symbol:
        if operation == "or":
            return self.selected(operands[0], True, operands[1])
        a, b = (*operands, *operands)[:2]
        register = self.register("b")
        compare = "ne" if operation == "isnan" else operation
        self.add(ops.Compute(compare, register, (self._word(a), self._word(b)), caller("numpy")))
        return Symbol(self, register)

    def asked_for_literal(self) -> None:
        self.refuse("a derivative that is rounded otherwise where a number is constant")

    def copied(self, array: Any, what: str) -> Any:
        return Recording.copied(self, array, what)

    def assigning(self, array: Any, position: Any, numbers: Any, value: Any) -> None:
        if isinstance(numbers, np.ndarray) and numbers.ndim and not self.knows(numbers):
            if not self._makes_arrays or stand_ins.get() is not None:
                self.refuse("numbers of an array that Python has made")
        super().assigning(array, position, numbers, value)

    def _place_of(self, code: Native, arrays: Sequence[Any], at: int, address: int) -> tuple[int, int]:
        owner = arrays[at].owner
        if isinstance(owner, np.ndarray) and not self._is_known(address):
            raise self._refusal("an array that is not known")
        return super()._place_of(code, arrays, at, address)


def _is_float(number: Any) -> bool:
    """Whether a number, which may be traced, is a Python float."""
    return isinstance(number.value if type(number) is Traced else number, float)


def _has_real_power(base: Any, exponent: Any) -> bool:
    """Whether Python's power is a real number, whatever the traced numbers are."""
    if type(exponent) is not Traced and float(exponent).is_integer():
        return True
    return base.is_sum_of_squares if type(base) is Traced else base >= 0


class MemoryPlan(Captured):
    """A plan in memory. `memories`: the session's memory that it uses; `buffers`: the part that kernels use; `held`:
    the arrays that the function knows, whose blocks follow those of the arguments in `input_blocks`; `instead`: codes
    with first stores, by those that they replace.
    """

    def __init__(
        self,
        function: Any,
        plan: Program,
        attempt: Attempt,
        dependencies: StraightDependencies,
        signature: CallSignature,
        attaches: Callable[[], object] | None,
        instead: Mapping[Native, Native] = _NO_CODES,
    ) -> None:
        tables = attempt.tables
        tables.memories = [
            memory if block.kind == "field" else None
            for block, memory in zip(plan.blocks, tables.memories, strict=True)
        ]
        instances = list(attempt.instances.values())
        guards = Guards(plan, dependencies, instances, tables.memories, clears=False, owns=False)
        fresh = blocks_to_give(plan, WARM_FROM)
        super().__init__(function, tuple(signature.numbers), plan, tables, [], guards, fresh=fresh)
        self.prepared.raises_as_python = True
        self.memories = guards.memories
        written = [tables.memories[block] for block in plan.written]
        self.replay = Replay(self.memories, [one for one in written if one is not None])
        self.nbytes = plan.own_bytes
        self.is_proved = False
        self.instead = instead
        self.held = dependencies.arrays
        self._held_as = [(array.shape, array.dtype) for array in self.held]
        sizes = [array.nbytes for array in (*signature.arrays, *self.held)]
        self.input_blocks = [tables.input(k, nbytes) for k, nbytes in enumerate(sizes)]
        self.buffers = _buffers(instances, signature.fields)
        self._counts = attempt.calls
        self._attaches = attaches
        self._attached = session.attached
        self._shadows = [_shadows(buffer) for buffer in self.buffers]
        self._addresses: list[int] = []
        self._largest = _largest_number(plan)

    def is_current(self) -> bool:
        """Whether its dependencies are unchanged, and there is no observer."""
        if session.has_views and are_viewed():
            return False
        if session.attached != self._attached and session.generation == self.guards.generation:
            if self._attaches is not None:
                self._attaches()
            attached = session.attached
            if [_shadows(buffer) for buffer in self.buffers] != self._shadows:
                return False
            self._attached = attached
        if self.held and [(array.shape, array.dtype) for array in self.held] != self._held_as:
            return False
        return self.guards.hold()

    def point(self, signature: CallSignature) -> bool:
        """Point the plan to these arrays. Returns whether they, and the floats, are suitable."""
        if signature.numbers and any(self._largest < abs(one) < math.inf for one in signature.numbers):
            return False  # kernels refuse it
        arrays = [*signature.arrays, *self.held] if self.held else signature.arrays
        addresses = _addresses(arrays)
        if addresses == self._addresses:
            return True  # Their shapes and types are those of the signature, so nothing else can have changed.
        if addresses is None or not _are_apart(arrays, addresses):
            return False
        for block, address in zip(self.input_blocks, addresses, strict=True):
            self.prepared.point(block, address)
        self._addresses = addresses
        return True

    def run(self, args: Sequence[float]) -> Any:
        """Replay it with these floats."""
        for block, nbytes in self._fresh.items():
            memory = self._made[block] = Memory(nbytes, clear=False)
            self.prepared.point(block, memory.address)
        self.replays += 1
        for instance, count in self._counts:
            instance.calls += count
        if args:
            self.take(args)
        return self._ends[self.go()]()


def _largest_number(plan: Program) -> float:
    """The largest input that fits its destination."""
    names = {
        name
        for step in plan.root.steps
        if isinstance(step, ops.Launch)
        for argument, (name, _) in zip(step.arguments, plan.codes[step.code].parameters, strict=False)
        if isinstance(argument, ops.Register) and name.startswith("f")
    }
    for step in plan.root.steps:
        if isinstance(step, ops.Fill) and isinstance(step.value, ops.Register):
            names.add(step.target.type)
    return min([float(np.finfo(numpy_type(scalar_named(name))).max) for name in names], default=math.inf)


def _buffers(instances: Sequence[tuple[Any, Any, Any]], fields: Sequence[Field]) -> list[Buffer]:
    """The fields and ndarrays that kernels use by name, and those among the arguments."""
    found: dict[Buffer, None] = {field.buffer: None for field in fields}
    for _, _, instance in instances:
        touched = instance.specialisation.accesses()
        found.update(dict.fromkeys([b for b in touched.loaded | touched.written if b in session.memories]))
    return list(found)


def _shadows(buffer: Buffer) -> tuple[Buffer | None, ...]:
    """The gradient and the duals of a field."""
    return buffer.adjoint, buffer.tangent, None if buffer.adjoint is None else buffer.adjoint.tangent


def _without_traces(value: Any) -> Any:
    """A result with plain floats and arrays."""

    def plain(one: Any) -> Any:
        if type(one) is Traced:
            return one.value
        return one.view(np.ndarray) if isinstance(one, CapturedArray) else one

    return map_leaves(plain, value)
