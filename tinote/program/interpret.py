"""The interpreter of programs in plain Python: the oracle for targets and transformations.

Memory is bytes, a block each. What is not the program's own business is asked for: `launch` runs a code, `seed` gives
the next seed of the session, `function` a function of the process's.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.ir.types import scalar_named
from tinote.program import operations as ops
from tinote.program.program import Path, Program

Number = int | float | bool


class ArithmeticOperation(NamedTuple):
    """An operation on numbers: how many it takes, and what it gives. `is_float`: also of integers."""

    operands: int
    value: Callable[..., Any]
    is_float: bool = False


def _scale(a: float, b: float) -> float:
    return b if b == 0 else a * b


def _divide(a: float, b: float) -> float:
    return a / b


def _divide_by_zero_too(a: float, b: float) -> float:
    if b or a != a or b != b:
        return a / b
    return math.copysign(math.inf, a) * math.copysign(1.0, b) if a else math.nan


def _floor_divide(a: float, b: float) -> float:
    return a // b


def _select(condition: bool, a: Number, b: Number) -> Number:
    return a if condition else b


def _sqrt(a: float) -> float:
    return math.nan if a < 0 else math.sqrt(a)


def _power(a: float, b: float) -> float:
    found = a**b
    if isinstance(found, complex):
        raise OverflowError("a power that is not a real number")
    return found


#: Of integers the results are integers of 64 bits, as Python has them; comparisons are exact.
OPERATIONS: Mapping[str, ArithmeticOperation] = {
    "add": ArithmeticOperation(2, operator.add),
    "subtract": ArithmeticOperation(2, operator.sub),
    "multiply": ArithmeticOperation(2, operator.mul),
    "true_divide": ArithmeticOperation(2, _divide, True),
    "divide": ArithmeticOperation(2, _divide_by_zero_too, True),
    "floor_divide": ArithmeticOperation(2, _floor_divide),
    "remainder": ArithmeticOperation(2, operator.mod),
    "float_power": ArithmeticOperation(2, _power, True),
    "negative": ArithmeticOperation(1, operator.neg),
    "absolute": ArithmeticOperation(1, operator.abs),
    "sqrt": ArithmeticOperation(1, _sqrt, True),
    "select": ArithmeticOperation(3, _select),
    "scale": ArithmeticOperation(2, _scale, True),
    "lt": ArithmeticOperation(2, operator.lt),
    "le": ArithmeticOperation(2, operator.le),
    "gt": ArithmeticOperation(2, operator.gt),
    "ge": ArithmeticOperation(2, operator.ge),
    "eq": ArithmeticOperation(2, operator.eq),
    "ne": ArithmeticOperation(2, operator.ne),
}

_FORMATS = {
    "f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H",
    "u32": "I", "u64": "Q", "u1": "?",
}  # fmt: skip


class Ended(NamedTuple):
    """How a run has ended: with this `end`, and these values of registers."""

    end: ops.End
    registers: dict[ops.Register, Number]

    def number(self, operand: ops.Operand) -> Number:
        """What an operand is."""
        return self.registers[operand] if isinstance(operand, ops.Register) else operand.value


#: Runs a code with these arguments, and gives its results in their order.
Launcher = Callable[[ops.Launch, list[Number]], Sequence[Number]]


def calls_function(operation: str) -> bool:
    """Whether an operation is a function of the process's, "numpy.sin", or one without warnings, "quiet.sin"."""
    return "." in operation


def interpret(
    program: Program,
    memory: Sequence[bytearray | memoryview],
    inputs: Sequence[Number],
    launch: Launcher,
    seed: Callable[[], int] = lambda: 0,
    function: Callable[[str], Callable[..., float]] | None = None,
) -> Ended:
    """Run a program whose blocks are in `memory`. `inputs`: the values of its inputs. Raises `ZeroDivisionError` and
    `OverflowError` where a replay would stop, and `LookupError` for a side of a choice that is not known.
    """
    return _Interpreter(memory, dict(zip(program.inputs, inputs, strict=True)), launch, seed, function).path(
        program.root
    )


class _Interpreter:
    def __init__(
        self,
        memory: Sequence[bytearray | memoryview],
        registers: dict[ops.Register, Number],
        launch: Launcher,
        seed: Callable[[], int],
        function: Callable[[str], Callable[..., float]] | None,
    ) -> None:
        self.memory = memory
        self.registers = registers
        self.launch = launch
        self.seed = seed
        self.function = function
        self.filled: set[int] = set()  # the blocks that a copy has filled

    def path(self, path: Path) -> Ended:
        while True:
            for at, step in enumerate(path.steps):
                if isinstance(step, ops.End):
                    return Ended(step, self.registers)
                try:
                    self.run(step)
                except BaseException:
                    self.unwind(path.steps[at + 1 :])
                    raise
            if path.branch is None:
                raise LookupError("a path without an end")
            path = path.sides[bool(self.registers[path.branch.register])]

    def unwind(self, left: Sequence[ops.Operation]) -> None:
        """An operation has failed: of those that are left, these are done in any case."""
        for step in left:
            if isinstance(step, ops.Copy) and step.always and step.source.block in self.filled:
                self.run(step)

    def value(self, operand: ops.Operand) -> Number:
        return self.registers[operand] if isinstance(operand, ops.Register) else operand.value

    def set(self, register: ops.Register, value: Number) -> None:
        self.registers[register] = float(value) if register.kind == "f" else value

    def run(self, step: ops.Operation) -> None:
        match step:
            case ops.Launch(arguments=arguments, results=results):
                found = self.launch(step, [self.value(one) for one in arguments])
                for (_, _, register), value in zip(results, found, strict=True):
                    self.set(register, value)
            case ops.Clear(block, offset, nbytes):
                self.memory[block][offset : offset + nbytes] = bytes(nbytes)
            case ops.Copy(target, source):
                values = [self.load(source, at) for at in places(source)]
                for at, value in zip(places(target), values, strict=True):
                    self.store(target, at, value, rounds=target.type != source.type)
                self.filled.add(target.block)
            case ops.Fill(target, operand):
                for at in places(target):
                    self.store(target, at, self.value(operand))
            case ops.LoadElement(register, source):
                (at,) = places(source)
                self.set(register, self.load(source, at))
            case ops.Compute(operation, register, operands):
                self.set(register, self.computed(operation, [self.value(one) for one in operands]))
            case ops.Seed(register):
                self.set(register, self.seed())
            case ops.Branch() | ops.End():
                raise AssertionError("these end a path")

    def computed(self, operation: str, operands: list[Number]) -> Number:
        if calls_function(operation):
            assert self.function is not None
            return float(self.function(operation)(*map(float, operands)))
        known = OPERATIONS[operation]
        if known.is_float:
            operands = [float(one) for one in operands]
        found = known.value(*operands)
        if isinstance(found, int) and not isinstance(found, bool):
            _in_range(found, -(1 << 63), (1 << 63) - 1)
        return found

    def load(self, view: ops.View, at: int) -> Number:
        form = _FORMATS[view.type]
        return struct.unpack_from(f"<{form}", self.memory[view.block], at)[0]

    def store(self, view: ops.View, at: int, value: Number, *, rounds: bool = False) -> None:
        """`rounds`: what is too large for a type of floats is infinite."""
        t = scalar_named(view.type)
        if t.kind == "f":
            value = float(value)
            try:
                struct.pack(_FORMATS[view.type], value)
            except OverflowError:
                if not rounds:
                    raise
                value = math.copysign(math.inf, value)
        else:
            value = bool(value) if t.kind == "b" else _in_range(int(value), t.lowest, t.highest)
        struct.pack_into(f"<{_FORMATS[view.type]}", self.memory[view.block], at, value)


def places(view: ops.View) -> Iterator[int]:
    """The byte at which each number of a view begins, row by row."""
    axes = [range(0, extent * stride, stride) if stride else [0] * extent
            for extent, stride in zip(view.shape, view.strides, strict=True)]  # fmt: skip
    for offsets in itertools.product(*axes):
        yield view.offset + sum(offsets)


def _in_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise OverflowError("an integer that does not fit its type")
    return value
