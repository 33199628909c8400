"""The rules that programs must keep; a transformation is valid in, valid out.

Registers: each is set once on a path, before it is read; inputs are set from the beginning. Conditions are numbers.
Memory: views and pointers lie within their blocks; those of a copy are the same or have no byte in common; constants
are not written to; `fills` are blocks that the launch writes to; what is not used may be "unused", and is not used
then. Codes get an argument for each parameter. A path ends with an `End`, and nothing else does, or with a choice of
which at least one side is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

from tinote.ir.types import scalar_named
from tinote.program import operations as ops
from tinote.program.interpret import OPERATIONS, calls_function, places
from tinote.program.program import Path, Program
from tinote.source import NOWHERE, Span

_BLOCKS = {"field", "scratch", "data", "input", "unused"}
_KINDS = {"f", "i", "b", "s"}


def _overlap(a: ops.View, b: ops.View) -> bool:
    def bytes_of(view: ops.View) -> set[int]:
        return {at + k for at in places(view) for k in range(scalar_named(view.type).size)}

    return not bytes_of(a).isdisjoint(bytes_of(b))


class InvalidProgram(ValueError):
    """A program that breaks a rule. `span`: of the operation."""

    def __init__(self, message: str, span: Span = NOWHERE) -> None:
        super().__init__(f"{message} ({span!r})" if span != NOWHERE else message)
        self.message = message
        self.span = span


def verify(program: Program, *, whole: bool = True) -> None:
    """Raise `InvalidProgram` unless a program keeps the rules. `whole`: its paths must end."""
    _Verifier(program, whole).run()


class _Verifier:
    def __init__(self, program: Program, whole: bool) -> None:
        self.program = program
        self.whole = whole
        self.span = NOWHERE

    def fail(self, message: str) -> NoReturn:
        raise InvalidProgram(message, self.span)

    def run(self) -> None:
        for number, block in enumerate(self.program.blocks):
            if block.kind not in _BLOCKS or block.nbytes < 0:
                self.fail(f"block {number} is of no kind")
            if block.data and (block.kind != "data" or len(block.data) != block.nbytes):
                self.fail(f"block {number} has data that it cannot have")
        known: set[ops.Register] = set()
        for register in self.program.inputs:
            self.set(register, known)
        self.path(self.program.root, known)

    # ---- numbers

    def set(self, register: ops.Register, known: set[ops.Register]) -> None:
        if register.kind not in _KINDS or register.number < 0:
            self.fail(f"{register} is not a register")
        if any(one.number == register.number for one in known):
            self.fail(f"register {register.number} is set twice")
        known.add(register)

    def read(self, operands: Iterable[ops.Operand], known: set[ops.Register]) -> None:
        for operand in operands:
            if isinstance(operand, ops.Register):
                if operand not in known:
                    self.fail(f"register {operand.number} is read, and not set before")
            elif operand.kind not in "fi":
                self.fail(f"a constant of kind '{operand.kind}'")

    # ---- memory

    def block(self, number: int) -> ops.Block:
        if not 0 <= number < len(self.program.blocks):
            self.fail(f"there is no block {number}")
        found = self.program.blocks[number]
        if found.kind == "unused":
            self.fail(f"block {number} is unused, and used")
        return found

    def within(self, number: int, first: int, end: int) -> None:
        nbytes = self.block(number).nbytes
        if first < 0 or end > nbytes:
            self.fail(f"bytes {first} to {end} of block {number}, which has {nbytes}")

    def pointers(self, pointers: Iterable[tuple[int, int, int]]) -> None:
        for _, block, offset in pointers:
            if block >= 0:
                self.within(block, offset, offset)

    def view(self, view: ops.View) -> None:
        if len(view.shape) != len(view.strides) or any(extent < 0 for extent in view.shape):
            self.fail("a view has a stride for each extent")
        if 0 in view.shape:
            return
        reach = [stride * (extent - 1) for extent, stride in zip(view.shape, view.strides, strict=True)]
        first = view.offset + sum([one for one in reach if one < 0])
        last = view.offset + sum([one for one in reach if one > 0])
        self.within(view.block, first, last + scalar_named(view.type).size)

    # ---- operations

    def path(self, path: Path, known: set[ops.Register]) -> None:
        for at, step in enumerate(path.steps):
            self.span = step.span
            self.operation(step, known)
            if isinstance(step, ops.End) and (at + 1 < len(path.steps) or path.branch is not None):
                self.fail("something follows an end")
        if path.branch is not None:
            self.span = path.branch.span
            self.read([path.branch.register], known)
            if not path.sides.keys() <= {True, False} or (self.whole and not path.sides):
                self.fail("a choice has two sides")
            for side in path.sides.values():
                self.path(side, set(known))
        elif self.whole and not (path.steps and isinstance(path.steps[-1], ops.End)):
            self.fail("a path has no end")

    def operation(self, step: ops.Operation, known: set[ops.Register]) -> None:
        self.read(ops.read_by(step), known)
        match step:
            case ops.Launch():
                self.launch(step)
            case ops.Clear(block, offset, nbytes):
                self.within(block, offset, offset + nbytes)
            case ops.Copy(target, source):
                self.view(target)
                self.view(source)
                if target.shape != source.shape:
                    self.fail("the views of a copy have one shape")
                if target.block == source.block and target != source and _overlap(target, source):
                    self.fail("the views of a copy overlap")
                if target.type != source.type and not (target.type[0] == source.type[0] == "f"):
                    self.fail("a copy converts floats alone")
            case ops.Fill(target):
                self.view(target)
            case ops.LoadElement(_, source):
                self.view(source)
                if math.prod(source.shape) != 1:
                    self.fail("a load takes one element")
            case ops.Compute(operation, _, operands):
                if calls_function(operation):
                    if not 1 <= len(operands) <= 2:
                        self.fail(f"'{operation}' is a function of one or two numbers")
                elif operation not in OPERATIONS or len(operands) != OPERATIONS[operation].operands:
                    self.fail(f"'{operation}' of {len(operands)} numbers is not an operation")
            case ops.End(result):
                for view in ops.arrays_of(result):
                    self.view(view)
            case ops.Branch():
                self.fail("a decision stands at the end of a path")
            case ops.Seed():
                pass
        for block in ops.written_by(self.program.codes, step):
            if block >= 0 and self.block(block).kind == "data":
                self.fail(f"block {block} is constant, and written to")
        for register in ops.set_by(step):
            self.set(register, known)

    def launch(self, step: ops.Launch) -> None:
        if not 0 <= step.code < len(self.program.codes):
            self.fail(f"there is no code {step.code}")
        code = self.program.codes[step.code]
        self.pointers((*code.pointers, *step.pointers))
        slots = [slot for slot, _, _ in (*code.pointers, *step.pointers)]
        if len(set(slots)) != len(slots) or not code.written <= set(slots):
            self.fail("the slots of a launch's addresses are each filled once")
        if len(step.arguments) != len(code.parameters):
            self.fail(f"'{code.name}' takes {len(code.parameters)} numbers, not {len(step.arguments)}")
        if not set(step.fills) <= ops.written_by(self.program.codes, step):
            self.fail("a launch fills what it does not write to")
