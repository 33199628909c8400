"""The recorder of one call of a step: its memory effects, as reported by the hooks of `runtime/seam.py`.

Numbers that depend on an argument, or on memory, are traced numbers (`lang/data/traced.py`) with a symbol: arithmetic
on them is recorded, a comparison is a decision, and uses that need the number itself are refused at the user's line.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import BoundArray, Native
from tinote.compiler.requests import Request
from tinote.errors import CaptureError
from tinote.ir.types import Scalar, i64
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.fields import Field
from tinote.lang.data.layout import MemoryPart
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.ndarrays import CopiedArray
from tinote.lang.data.traced import Trace, Traced, holds_traced, objects, traced, traced_array
from tinote.lang.session.state import session
from tinote.program import operations as ops
from tinote.program.interpret import OPERATIONS
from tinote.program.program import Program
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.seam import Listener, listened
from tinote.source import caller

Array = np.ndarray[Any, Any]
T = TypeVar("T")

#: Operations that exist only for floats.
_FLOATS_ONLY = {"float_power", "sqrt", "scale"}

#: Greatest number of conditions per call: each doubles the number of paths.
_MOST_DECISIONS = 24

_TYPES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bool": "u1",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip

_NULL = -1  # a block that is not there


def kind_of(value: Any) -> str:
    """The kind of register that holds a Python number."""
    return "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"


def blocks_of(fields: Iterable[Field]) -> list[tuple[Memory, str]]:
    """The blocks of memory of fields and ndarrays, each with the name of one that it holds."""
    found = {id(field.memory.whole): (field.memory.whole, field.name) for field in fields}
    return list(found.values())


class Tables:
    """State shared by all calls of one capture: the plan's blocks and codes, with their objects in this process.
    `touch` is called with a block of the session before its first use.
    """

    def __init__(self, plan: Program, touch: Callable[[Memory], None] | None = None) -> None:
        self.plan = plan
        self._touch = touch
        self.natives: list[Native] = []
        #: by block: the session's memory, if it is that
        self.memories: list[Memory | None] = []
        #: the kernels that any call has prepared, with their keys and instances; an end knows them by their place here
        self.instances: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._codes: dict[Native, int] = {}
        self._blocks: dict[int, int] = {}
        self._scratch: dict[tuple[int, int], int] = {}
        self._data: dict[bytes, int] = {}
        self._inputs: dict[int, int] = {}
        #: by owner: blocks whose address differs each time
        self.borrowed_blocks: dict[Any, int] = {}

    def code(self, native: Native, place: Any) -> int:
        """The number of machine code."""
        known = self._codes.get(native)
        if known is None:
            pointers = tuple([(slot, *place(memory, name)) for slot, name, memory in native.fixed_addresses()])
            known = self._codes[native] = len(self.natives)
            self.natives.append(native)
            self.plan.codes.append(
                ops.Code(
                    native.name,
                    native.digest,
                    pointers,
                    native.parameter_places,
                    frozenset(native.written_addresses()),
                    bool(native.checks or native.prints),
                )
            )
        return known

    def field(self, memory: Memory, name: str) -> int:
        """The number of a block of the session's memory."""
        known = self._blocks.get(id(memory))
        if known is None:
            if self._touch is not None:
                self._touch(memory)
            known = self._blocks[id(memory)] = self._add(ops.Block("field", name, memory.nbytes), memory)
        return known

    def scratch(self, number: int, nbytes: int) -> int:
        """The number of the block that a call makes as its `number`th."""
        known = self._scratch.get((number, nbytes))
        if known is None:
            known = self._scratch[number, nbytes] = self._add(ops.Block("scratch", f"scratch {number}", nbytes), None)
        return known

    def data(self, data: bytes) -> int:
        """The number of a block of constants."""
        known = self._data.get(data)
        if known is None:
            known = self._data[data] = self._add(ops.Block("data", "data", len(data), data), None)
        return known

    def borrowed(self, whose: Any, name: str, nbytes: int) -> int:
        """The number of the external block of `whose`."""
        known = self.borrowed_blocks.get(whose)
        if known is None:
            known = self.borrowed_blocks[whose] = self._add(ops.Block("input", name, nbytes), None)
        return known

    def input(self, number: int, nbytes: int) -> int:
        """The number of the block that is the input array `number`."""
        known = self._inputs.get(number)
        if known is None:
            known = self._inputs[number] = self._add(ops.Block("input", f"input {number}", nbytes), None)
        return known

    def origin(self, code: Native) -> tuple[Specialisation, Request] | None:
        """The kernel of machine code, and the request; None if unknown."""
        for _, _, instance in self.instances.values():
            found: tuple[Specialisation, Request] | None = instance.origin_of(code)
            if found is not None:
                return found
        return None

    def _add(self, block: ops.Block, memory: Memory | None) -> int:
        self.plan.blocks.append(block)
        self.memories.append(memory)
        return len(self.memories) - 1


class Symbol:
    """A number in the recorded step: the contents of `register`."""

    __slots__ = ("is_component", "recording", "register")

    def __init__(self, recording: Recording, register: ops.Register, is_component: bool = False) -> None:
        self.recording = recording
        self.register = register
        self.is_component = is_component

    @property
    def is_open(self) -> bool:
        # In other threads, which may look at it meanwhile, it is a plain number.
        return self.recording.is_open and self.recording.is_active

    def in_vector(self, inside: bool) -> Symbol:
        return Symbol(self.recording, self.register, inside)

    def computed(self, operation: str, operands: Sequence[Any], value: Any, function: np.ufunc | None) -> Symbol:
        return self.recording.computed(operation, operands, value, function)

    def compared(self, operation: str, a: Any, b: Any, found: bool) -> bool:
        return self.recording.decided(operation, a, b, bool(found))

    def condition(self, operation: str, operands: Sequence[Any]) -> Symbol | None:
        return self.recording.condition(operation, operands)

    def selected(self, condition: Any, a: Any, b: Any) -> Symbol:
        return self.recording.selected(condition, a, b)

    def as_literal(self) -> None:
        self.recording.asked_for_literal()

    def refuse(self, how: str) -> None:
        self.recording.refuse(f"a number that the step reads, or is called with, is needed itself: {how}")


class Listening(Listener):
    """Listener for a function that is compared with its captured step: its launches use one thread, so that sums of
    floats have a fixed order.
    """

    def copied(self, array: Any, what: str) -> Any:
        return array.view(CapturedArray)

    def launch(self, code: Any, values: Any) -> Any:
        return code.launch_in_order(values)


class Spans(Generic[T]):
    """An interval map: disjoint pieces of memory, each with a value."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._known: list[tuple[int, int, T]] = []  # in the same order: begin, end, and that

    def add(self, begin: int, nbytes: int, known: T) -> None:
        """Add a piece. One that began there before is removed."""
        at = bisect_left(self._begins, begin)
        if at < len(self._begins) and self._begins[at] == begin:
            self._known[at] = begin, begin + nbytes, known
        else:
            self._begins.insert(at, begin)
            self._known.insert(at, (begin, begin + nbytes, known))

    def at(self, address: int, nbytes: int = 1) -> tuple[int, T] | None:
        """The start of the piece that contains these bytes, and its value."""
        place = bisect_right(self._begins, address) - 1
        if place < 0:
            return None
        begin, end, known = self._known[place]
        return (begin, known) if address + nbytes <= end else None

    def holding(self, address: int, nbytes: int = 1) -> T | None:
        """The value of the piece that contains these bytes."""
        found = self.at(address, nbytes)
        return None if found is None else found[1]


class Recording(Listener):
    """`decisions`: the outcomes of the first conditions; later ones are evaluated. `arguments`: memory that the step is
    called with, and its names. `inputs`: arrays that it is called with, which are disjoint, with addresses that differ
    in each call. `prints`: whether kernels may print, since each replay prints again.
    """

    def __init__(
        self,
        tables: Tables,
        decisions: Sequence[bool] = (),
        arguments: Sequence[tuple[Memory, str]] = (),
        inputs: Sequence[Array] = (),
        *,
        prints: bool = False,
    ) -> None:
        super().__init__()
        self._prints = prints
        self.steps: list[ops.Operation] = []
        self.refused: CaptureError | None = None
        self.is_open = True
        #: whether other elements may be accessed for other arguments: the caller then handles it
        self.may_choose = False
        self.trace = Trace()
        #: kernels that were prepared, with their keys and instances
        self.instances: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self.tables = tables
        self._decisions = decisions
        self._decided = 0
        self._registers = 0
        self._scratch = 0
        #: for registers loaded from memory: the NumPy type there
        self._types: dict[int, str] = {}
        known = [*blocks_of(list(session.fields)), *arguments]
        self._wholes = Spans[tuple[Memory, str]]()
        for memory, name in known:
            self._wholes.add(memory.begin, memory.nbytes, (memory, name))
        #: new memory that was used: its block, and its owner
        self._made = Spans[tuple[int, Any]]()
        for k, one in enumerate(inputs):
            self._made.add(address_of(one), one.nbytes, (tables.input(k, one.nbytes), one))
        #: new memory, and whether it was zeroed
        self._born = Spans[tuple[Memory, bool]]()

    def add(self, step: ops.Operation) -> None:
        """Record a step that the call is about to do."""
        self.steps.append(step)

    # ---- the call

    def register(self, kind: str) -> ops.Register:
        """A new register."""
        self._registers += 1
        return ops.Register(kind, self._registers - 1)

    def number(self, register: ops.Register, value: Any) -> Traced:
        """The Python number for a register with the present `value`."""
        return traced(self.trace, value, 0.0, 0, Symbol(self, register))

    def take_in(self, variables: Sequence[tuple[Any, Any]]) -> list[ops.Register]:
        """Let variables, each with its holder and its key there, be numbers of the program; gives their registers."""
        found = [self.register(kind_of(holder[key])) for holder, key in variables]
        for (holder, key), register in zip(variables, found, strict=True):
            holder[key] = self.number(register, holder[key])
        return found

    def updates(
        self, variables: Sequence[tuple[Any, Any]], before: Sequence[ops.Register]
    ) -> tuple[tuple[int, ops.Operand], ...]:
        """What the call has made of variables that were these registers: those that have changed, by their place."""
        now = [self.variable(holder[key], key) for holder, key in variables]
        return tuple([(k, a) for k, (a, b) in enumerate(zip(now, before, strict=True)) if a != b])

    def variable(self, value: Any, key: Any) -> ops.Operand:
        """What a variable is now."""
        return self.operand(value)

    def run(self, function: Any) -> Any:
        """Call a function and record it. Raises `CaptureError`."""
        returned = listened(self, function)
        if self.refused is not None:
            raise self.refused
        return returned

    def end(self, returned: Any, updates: tuple[tuple[int, ops.Operand], ...]) -> None:
        """The call has returned."""
        seeds: list[tuple[int, ops.Operand]] = []
        for number, (_, _, instance) in enumerate(self.tables.instances.values()):
            if type(instance.last_seed) is Traced:
                seeds.append((number, self.operand(instance.last_seed)))
                instance.last_seed = instance.last_seed.value
        self.add(ops.End(self._result(returned), updates, tuple(seeds)))

    def close(self) -> None:
        """End the recording: numbers are plain from now on."""
        self.is_open = False
        self.trace.close()
        for _, _, instance in self.instances.values():
            if type(instance.last_seed) is Traced:
                instance.last_seed = instance.last_seed.value

    def _result(self, returned: Any) -> ops.Result:
        if returned is None or type(returned) in (str, bytes):
            return ops.Result("constant", (returned,))
        if isinstance(returned, Matrix):
            parts = [self.operand(one) for one in returned.values.ravel().tolist()]
            kind = "vector" if len(returned.shape) == 1 else "matrix"
            types = {self._types.get(one.number, "") if isinstance(one, ops.Register) else "" for one in parts}
            dtype = types.pop() if len(types) == 1 and returned.values.dtype == object else ""
            return ops.Result(kind, (returned.values.shape, dtype or str(returned.values.dtype), tuple(parts)))
        if type(returned) in (tuple, list):
            return ops.Result(type(returned).__name__, tuple([self._result(one) for one in returned]))
        if type(returned) is dict:
            return ops.Result("dict", tuple([(key, self._result(one)) for key, one in returned.items()]))
        if isinstance(returned, np.ndarray) and self._is_known(address_of(returned)):
            view = self._view(returned)
            if not returned.flags.c_contiguous:
                view, apart = self._view(np.ascontiguousarray(returned), fresh=True), view
                self._copy(view, apart)
            return ops.Result("array", (view, returned.dtype.str))
        if type(returned) is Traced or isinstance(returned, bool | int | float):
            kind = "bool" if isinstance(returned, bool) else "number"
            return ops.Result(kind, (self.operand(returned),))
        raise self._refusal(f"it returns {type(returned).__name__}", "return numbers, vectors, or tuples of them")

    # ---- refusing

    def refuse(self, what: str) -> None:
        """Raise `CaptureError` at the user's line, and remember it."""
        raise self._refusal(what)

    def _refusal(self, what: str, hint: str = "") -> CaptureError:
        hint = hint or "compute it in a kernel, or leave it out of the step"
        found = CaptureError(f"this cannot be captured: {what}", caller("numpy"), hint)
        self.refused = self.refused or found
        return found

    # ---- numbers

    def operand(self, value: Any) -> ops.Operand:
        """A number of the program's."""
        if type(value) is Traced:
            symbol = value.symbol
            if isinstance(symbol, Symbol) and symbol.recording is self:
                return symbol.register
            value = value.value
        if isinstance(value, bool | np.bool_ | int | np.integer):
            return ops.Constant("i", int(value))
        if isinstance(value, float | np.floating):
            return ops.Constant.of_float(float(value))
        raise self._refusal(f"{type(value).__name__} among numbers")

    def _word(self, value: Any) -> ops.Operand:
        found = self.operand(value)
        self._check_word(found)
        return found

    def _check_word(self, operand: ops.Operand) -> None:
        if isinstance(operand, ops.Constant) and operand.kind == "i" and not i64.lowest <= operand.bits <= i64.highest:
            raise self._refusal("an integer of more than 64 bits with its sign")

    def computed(self, operation: str, operands: Sequence[Any], value: Any, function: np.ufunc | None) -> Symbol:
        """Record arithmetic on numbers."""
        if operation == "positive" and type(operands[0]) is Traced and value == operands[0].value:
            found = self.operand(operands[0])
            if isinstance(found, ops.Register):
                return Symbol(self, found)
        self._refuse_whole_vectors(operands)
        narrow = any(isinstance(one, np.floating) and not isinstance(one, float) for one in operands)
        given = tuple([self._word(one) for one in operands])
        whole = all(one.kind in "ib" for one in given)
        if operation not in OPERATIONS or narrow or (whole and operation in _FLOATS_ONLY):
            raise self._refusal(f"'{operation}' of numbers in Python")
        kind = "f" if not whole or operation == "true_divide" else "i"
        register = self.register(kind)
        self.add(ops.Compute(operation, register, given, caller("numpy")))
        return Symbol(self, register)

    def condition(self, operation: str, operands: Sequence[Any]) -> Symbol | None:
        """Record a condition of a derivative's that selects numbers; None where it is a branch, as here."""
        return None

    def asked_for_literal(self) -> None:
        """A rule differentiates otherwise with respect to a constant: its result is verified with others here."""

    def selected(self, condition: Any, a: Any, b: Any) -> Symbol:
        """Record which of two numbers a condition selects."""
        given = tuple([self._word(one) for one in (condition, a, b)])
        register = self.register("f" if given[1].kind == "f" else "b")
        self.add(ops.Compute("select", register, given, caller("numpy")))
        return Symbol(self, register)

    def decided(self, operation: str, a: Any, b: Any, found: bool) -> bool:
        """Record a condition. Returns the side with which the program continues."""
        span = caller("numpy")
        self._refuse_whole_vectors((a, b))
        register = self.register("b")
        self.add(ops.Compute(operation, register, (self._word(a), self._word(b)), span))
        if self._decided == _MOST_DECISIONS:
            raise self._refusal(f"the step decides more than {_MOST_DECISIONS} conditions on numbers that it reads")
        taken = self._decisions[self._decided] if self._decided < len(self._decisions) else found
        self._decided += 1
        self.add(ops.Branch(register, taken, span))
        return taken

    def _refuse_whole_vectors(self, operands: Sequence[Any]) -> None:
        for one in operands:
            if type(one) is Traced and isinstance(one.symbol, Symbol) and one.symbol.is_component:
                raise self._refusal(
                    "arithmetic on whole vectors in Python", "compute with components (`p.x`, `p[0]`), or in a kernel"
                )

    # ---- hooks

    def prepared(self, kernel: Any, key: Any, instance: Any) -> None:
        self.instances[id(kernel), key] = self.tables.instances[id(kernel), key] = kernel, key, instance

    def launch(self, code: Any, values: Any) -> Any:
        if code.prints and not self._prints:
            raise self._refusal("a kernel that prints")
        arrays, numbers = values[: code.arrays], values[code.arrays :]
        number = self.tables.code(code, self._fixed_place)
        pointers = tuple(
            [(slot, *self._place_of(code, arrays, at, address)) for slot, address, at in code.bound_addresses(arrays)]
        )
        arguments = tuple([self.operand(value) for value in numbers])
        span = caller()
        for (name, _), argument in zip(self.tables.plan.codes[number].parameters, arguments, strict=False):
            if argument.kind == "f" and not name.startswith("f") and isinstance(argument, ops.Register):
                raise self._refusal(f"a float goes to an argument of type {name}")
        results = [(offset, t.name, self.register(_register_kind(t))) for offset, t in code.metadata_results()]
        extents = tuple(code.bound_extents(arrays))
        self.add(ops.Launch(number, pointers, extents, arguments, tuple(results), span))
        plain = [value.value if type(value) is Traced else value for value in numbers]
        found = self.run_code(code, (*arrays, *plain))
        return tuple([self.number(register, value) for (_, _, register), value in zip(results, found, strict=True)])

    def run_code(self, code: Native, values: Sequence[Any]) -> tuple[Any, ...]:
        """Launch."""
        return code.launch_in_order(values)

    def making(self, memory: Any, cleared: bool) -> None:
        self._born.add(memory.begin, memory.nbytes, (memory, cleared))

    def clearing(self, memory: Any) -> None:
        if not memory.is_whole:
            return  # it is recorded as such
        block, offset = self._place(memory.begin, memory.nbytes, memory)
        self.add(ops.Clear(block, offset, memory.nbytes))

    def copying(self, target: Any, source: Any) -> None:
        if isinstance(target, MemoryPart) or isinstance(source, MemoryPart):
            return  # so are its copies
        if isinstance(source, ExternalMemory) and not self._is_known(source.begin):
            block = self.tables.data(bytes(source.view()))
            given = ops.View(block, 0, "u8", (source.nbytes,), (1,))
        else:
            given = self._view(source)
        self._copy(self._view(target, fresh=True), given)

    def _copy(self, target: ops.View, source: ops.View) -> None:
        types = {target.type, source.type}
        if target.shape != source.shape or not (len(types) == 1 or types <= {"f16", "f32", "f64"}):
            raise self._refusal("a copy from one type of numbers to another")
        self.add(ops.Copy(target, source, caller("numpy"), self.unwinds))

    def assigning(self, array: Any, position: Any, numbers: Any, value: Any) -> None:
        place = position if isinstance(position, tuple) else (position,)
        target = array[place if Ellipsis in place else (*place, ...)]
        if not np.may_share_memory(target, array) and target.size:
            raise self._refusal("elements that are chosen by a list")
        for given in (value, numbers):
            if isinstance(given, np.ndarray) and given.size and self._is_known(address_of(given)):
                source = given.view(np.ndarray).reshape(np.shape(numbers))
                self._copy(self._view(target), self._view(np.broadcast_to(source, target.shape)))
                return
        if holds_traced(value):
            given = traced_array(value).reshape(np.shape(numbers))
            for index in np.ndindex(given.shape):
                self._fill(target[(..., *index)], self.operand(given[index]))
            return
        with np.errstate(all="ignore"):
            data = np.asarray(numbers).astype(array.dtype)
        if data.ndim == 0 or (data.size <= 16 and data.ndim < target.ndim):
            for index in np.ndindex(data.shape):
                self._fill(target[(..., *index)], self.operand(data[index].item()))
            return
        whole = np.ascontiguousarray(np.broadcast_to(data, target.shape))
        block = self.tables.data(whole.tobytes())
        to = self._view(target)
        self.add(ops.Copy(to, ops.View(block, 0, to.type, whole.shape, whole.strides), caller("numpy")))

    def reading(self, array: Any, position: Any, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return self._load(array[(*position, ...)], value)
        items = [self._load(array[(*position, *index, ...)], value[index].item()) for index in np.ndindex(value.shape)]
        return objects(items, value.shape)

    def copied(self, array: Any, what: str) -> Any:
        return array.view(CapturedArray)

    def seed(self, value: int) -> Any:
        register = self.register("s")
        self.add(ops.Seed(register))
        return self.number(register, value)

    def choosing(self, numbers: Any, what: str) -> Any:
        if not self.may_choose:
            self.refuse(what)
        return [one.value if type(one) is Traced else one for one in numbers]

    def taking(self, what: str) -> None:
        self.refuse(what)

    def _fill(self, target: Array, value: ops.Operand) -> None:
        if not target.size:
            return
        view = self._view(target)
        self._check_word(value)
        if value.kind == "f" and not view.type.startswith("f") and isinstance(value, ops.Register):
            raise self._refusal(f"a float is written to numbers of type {view.type}")
        self.add(ops.Fill(view, value, caller("numpy")))

    def _load(self, source: Array, value: Any) -> Traced:
        register = self.register(kind_of(value))
        self._types[register.number] = source.dtype.name
        self.add(ops.LoadElement(register, self._view(source), caller("numpy")))
        return self.number(register, value)

    # ---- where memory is

    def _view(self, held: Any, *, fresh: bool = False) -> ops.View:
        """The view of an array or a block; `fresh`: it may be new."""
        if isinstance(held, Memory):
            block, offset = self._place(held.begin, held.nbytes, held if fresh else None)
            return ops.View(block, offset, "u8", (held.nbytes,), (1,))
        address = address_of(held)
        block, offset = self._place(address, held.itemsize, held if fresh else None, held.nbytes)
        return ops.View(block, offset, _TYPES[held.dtype.name], held.shape, held.strides)

    def _place(self, address: int, nbytes: int = 1, fresh: Any = None, size: int | None = None) -> tuple[int, int]:
        """The block of an address, and the byte in it. `fresh`: the memory there, `size` bytes, if it may be new in
        this call.
        """
        if not address:
            return _NULL, 0
        whole = self._wholes.holding(address, nbytes)
        if whole is not None:
            return self.tables.field(*whole), address - whole[0].begin
        made = self._made.at(address, nbytes)
        if made is not None:
            return made[1][0], address - made[0]
        if fresh is not None:
            return self._make(address, nbytes if size is None else size, fresh), 0
        born = self._born.holding(address, nbytes)
        if born is not None:
            memory, cleared = born
            block = self._make(memory.begin, memory.nbytes, memory)
            if cleared:
                self.add(ops.Clear(block, 0, memory.nbytes))
            return block, address - memory.begin
        raise self._refusal("an array that tinote does not own", "use a field or a ti.ndarray")

    def _fixed_place(self, memory: Memory, name: str) -> tuple[int, int]:
        """The place of memory fixed in the code: memory outside fields is the kernel's own."""
        if self._is_known(memory.begin):
            return self._place(memory.begin)
        return self.tables.field(memory.whole, name), memory.begin - memory.whole.begin

    def _place_of(self, code: Native, arrays: Sequence[BoundArray], at: int, address: int) -> tuple[int, int]:
        """The place of an array argument's address. External memory is data."""
        bound = arrays[at]
        if isinstance(bound, CopiedArray) and isinstance(bound.original, CapturedArray):
            raise self._refusal("an array whose elements do not lie one after the other", "pass a copy: `a.copy()`")
        if isinstance(bound.owner, np.ndarray) and address == bound.address and not self._is_known(address):
            if code.writes_array(at):
                raise self._refusal(
                    "a kernel writes to an array that tinote does not own", "use a field or a ti.ndarray"
                )
            return self.tables.data(bytes(bound.memory.view())), 0
        return self._place(address)

    def borrow(self, held: Memory | Array, name: str, whose: Any) -> None:
        """Register external memory of `whose`, whose address differs each time."""
        begin = held.begin if isinstance(held, Memory) else address_of(held)
        self._made.add(begin, held.nbytes, (self.tables.borrowed(whose, name, held.nbytes), held))

    def knows(self, value: Any) -> bool:
        """Whether the step knows an array's memory."""
        return isinstance(value, np.ndarray) and value.size > 0 and self._is_known(address_of(value))

    def _is_known(self, address: int) -> bool:
        return self._wholes.holding(address) is not None or self._made.holding(address) is not None

    def _make(self, address: int, nbytes: int, held: Any) -> int:
        block = self.tables.scratch(self._scratch, nbytes)
        self._scratch += 1
        self._made.add(address, nbytes, (block, held))
        return block


def address_of(array: Array) -> int:
    """The address of its first byte."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _register_kind(t: Scalar) -> str:
    return "b" if t.kind == "b" else "f" if t.kind == "f" else "i"


def _while_recorded(hook: Callable[..., Any], otherwise: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
    """A hook of `Recording`, as `Following` has it: without an effect where the call cannot be captured, or not any
    more; then it gives what `otherwise` does.
    """

    @functools.wraps(hook)
    def wrapped(recording: Following, *given: Any) -> Any:
        found = None
        if recording.refused is None:
            try:
                found = hook(recording, *given)
            except CaptureError as error:
                recording.give_up(error)
        return otherwise(recording, *given) if found is None else found

    return wrapped


class Following(Recording):
    """Records a call that counts: it is not undone, and an operation that cannot be captured does not end it. That is
    recorded as `refused`, and from there on numbers are plain and nothing is recorded. `marks`: the values of
    `variables`, each with its holder and its key there, before each step.
    """

    def __init__(
        self,
        tables: Tables,
        variables: Sequence[tuple[Any, Any]] = (),
        inputs: Sequence[Array] = (),
        *,
        prints: bool = True,
    ) -> None:
        super().__init__(tables, inputs=inputs, prints=prints)
        self._calls: dict[Any, int] = {}
        self.marks: list[tuple[ops.Operand, ...]] = []
        self._variables = variables

    def add(self, step: ops.Operation) -> None:
        super().add(step)
        self.marks.append(tuple([self.variable(holder[key], key) for holder, key in self._variables]))

    def variable(self, value: Any, key: Any) -> ops.Operand:
        if type(value) is Traced:
            is_number = isinstance(value.symbol, Symbol) and value.symbol.recording is self
        else:
            is_number = type(value) is int or type(value) is float
        if not is_number:
            raise self._refusal(f"'{key}' is no longer a number")
        return self.operand(value)

    def run(self, function: Any) -> Any:
        return listened(self, function)

    def give_up(self, error: CaptureError) -> None:
        """Give up the recording: the call cannot be captured."""
        self.refused = self.refused or error
        self.is_open = False

    def refuse(self, what: str) -> None:
        self._refusal(what)

    def _refusal(self, what: str, hint: str = "") -> CaptureError:
        found = super()._refusal(what, hint)
        self.is_open = False
        return found

    def prepared(self, kernel: Any, key: Any, instance: Any) -> None:
        super().prepared(kernel, key, instance)
        self._calls.setdefault(instance, instance.calls)

    @property
    def calls(self) -> list[tuple[Any, int]]:
        """How often each instance was launched."""
        return [(instance, instance.calls - before) for instance, before in self._calls.items()]

    def _launch_plainly(self, code: Any, values: Any) -> Any:
        return self.run_code(code, [value.value if type(value) is Traced else value for value in values])

    updates = _while_recorded(Recording.updates, lambda *_: ())
    launch = _while_recorded(Recording.launch, _launch_plainly)
    making = _while_recorded(Recording.making)
    clearing = _while_recorded(Recording.clearing)
    copying = _while_recorded(Recording.copying)
    assigning = _while_recorded(Recording.assigning)
    reading = _while_recorded(Recording.reading, lambda _, array, position, value: value)
    seed = _while_recorded(Recording.seed, lambda _, value: value)
    computed = _while_recorded(Recording.computed, lambda self, *_: Symbol(self, ops.Register("f", _NULL)))

    def copied(self, array: Any, what: str) -> Any:
        # Writes by NumPy cannot be observed, and would need a validation run.
        self.refuse(what)
        return array

    def decided(self, operation: str, a: Any, b: Any, found: bool) -> bool:
        self._decided_so(operation, a, b, found)
        return found

    _decided_so = _while_recorded(Recording.decided)
