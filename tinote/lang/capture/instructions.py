"""Assembles a plan into instructions for the replay (`runtime/native/replay.c`), for any memory."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tinote.ir.types import scalar_named
from tinote.lang.session.state import SEED_STEP, session
from tinote.program import operations as ops
from tinote.program.interpret import calls_function
from tinote.program.overflow import EXACT
from tinote.program.program import Path, Program
from tinote.runtime import layout
from tinote.source import Span

#: In place of the number of an end: the path is not ready, and nothing was executed.
NOWHERE_READY = -1

#: Kinds of registers with the types that hold the same word in memory.
_WORDS = {("f", "f64"), ("i", "i64")}
#: These have separate instructions for floats.
_COMMON = {"add", "subtract", "multiply", "scale"}
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}


class Instructions(ABC):
    """`words` are the instructions, `cells` the initial contents of registers and of the constants after them. `ends`:
    the ends of the step. By the word at which an instruction begins: `spans`, the place of one that may fail;
    `launches`, the launches; `computed`, arithmetic that may fail, with the places of its operands; `begins`, the step
    whose first instruction it is. `main`: the word at which the steps begin. `counter_register`: that of the number of
    launches so far that drew random numbers. `always`: copies that are made even after a failure, if the word was
    passed at which their source was filled: that word, and the start and end of the copy.

    `length`: stop after this number of steps. `ready`: the complete paths of a partial plan that may be taken. A run
    that is not known before its first step to take one of them does nothing.
    """

    def __init__(self, plan: Program, length: int | None = None, ready: Callable[[Path], bool] | None = None) -> None:
        self.plan = plan
        self.ends: list[ops.End] = []
        self.words: list[int] = []
        self.spans: dict[int, Span] = {}
        self.launches: dict[int, ops.Launch] = {}
        self.computed: dict[int, tuple[str, list[int]]] = {}
        self._length = length
        self._ready = ready
        self.main = 0
        self.begins: dict[int, ops.Operation] = {}
        self.always: list[tuple[int, int, int]] = []
        self._filled: dict[int, int] = {}  # the last word that filled each scratch block
        paths, steps = plan.root.all(), plan.operations
        self._constants = _shared_constants(steps)
        registers = [*plan.inputs, *[register for step in steps for register in ops.set_by(step)]]
        count = 1 + max([register.number for register in registers], default=-1)
        self.counter_register = count
        self.cells: list[int] = [0] * (count + 1)
        self._cell_of: dict[int, int] = {}
        #: the greatest number of cells
        self.most_cells = count + 1 + 4 * (len(paths) + sum([1 + len(ops.read_by(step)) for step in steps]))

    def assemble(self) -> None:
        """Make them."""
        if self._ready is not None:
            self._decide_first(self.plan.root, self._ready)
        self._path(self.plan.root)

    @property
    def draws(self) -> bool:
        """Whether launches draw random numbers."""
        return any(type(step) is ops.Seed for step in self.plan.operations)

    # ---- memory

    @abstractmethod
    def block_address(self, number: int) -> int:
        """The address of a block of the plan."""

    @abstractmethod
    def register_address(self, number: int) -> int:
        """The address of a register or a cell."""

    @abstractmethod
    def launch_block(self, step: ops.Launch) -> tuple[int, memoryview]:
        """The address of the launch block of a launch, and its slots; addresses and extents are in it. Launches of the
        same code with the same arrays share one.
        """

    def function_address(self, name: str, register: int, operands: Sequence[int]) -> int:
        """The address of what sets a register to a function of others."""
        raise AssertionError(f"'{name}' is a function of the process, where a program of its own does not run")

    def result_offsets(self, step: ops.Launch) -> list[int]:
        """The offsets of a launch's results from the start of its slots."""
        return [offset for offset, _, _ in step.results]

    # ---- instructions

    def _emit(self, span: Span | None, *words: int) -> None:
        """Emit an instruction; `span`: of one that may fail."""
        if span is not None:
            self.spans[len(self.words)] = span
        self.words += words

    def _end(self, end: ops.End) -> None:
        """Emit the end of the step."""
        self._emit(None, layout.REPLAY_END, len(self.ends))
        self.ends.append(end)

    def _steps(self, path: Path) -> bool:
        """Emit the steps of a path; returns whether its continuation is also needed."""
        for step in path.steps:
            if self._length is not None:
                if not self._length:
                    self._emit(None, layout.REPLAY_END, 0)
                    return False
                self._length -= 1
            self._step(step)
        return True

    def _path(self, path: Path) -> None:
        if not self._steps(path):
            return
        if path.branch is None or self._length == 0:
            if self._length is not None:
                self._emit(None, layout.REPLAY_END, 0)
            return
        remaining = None if self._length is None else self._length - 1
        at = len(self.words)
        self._emit(None, layout.REPLAY_BRANCH, path.branch.register.number, 0)
        filled = self._filled
        for taken in (True, False):
            if not taken:
                self.words[at + 2] = len(self.words)
            self._length, self._filled = remaining, dict(filled)
            if taken in path.sides:
                self._path(path.sides[taken])
            else:
                self._emit(None, layout.REPLAY_END, NOWHERE_READY)

    def _decide_first(self, root: Path, ready: Callable[[Path], bool]) -> None:
        """Before any step, decide which path the inputs lead to: one that is not ready, or a fault of arithmetic on
        inputs alone, ends the run.
        """
        jumps: list[int] = []
        always = self._cell(0)

        def decide(path: Path, known: frozenset[int]) -> None:
            for step in path.steps:
                if isinstance(step, ops.Compute) and all(
                    isinstance(one, ops.Constant) or one.number in known for one in step.operands
                ):
                    self._compute(step)
                    known |= {step.register.number}
            branch = path.branch
            if branch is not None and branch.register.number in known:
                at = len(self.words)
                self._emit(None, layout.REPLAY_BRANCH, branch.register.number, 0)
                for taken in (True, False):
                    if not taken:
                        self.words[at + 2] = len(self.words)
                    if taken in path.sides:
                        decide(path.sides[taken], known)
                    else:
                        self._emit(None, layout.REPLAY_END, NOWHERE_READY)
            elif _all_ready(path, ready):
                jumps.append(len(self.words))
                self._emit(None, layout.REPLAY_BRANCH, always, 0)
            else:
                self._emit(None, layout.REPLAY_END, NOWHERE_READY)

        decide(root, frozenset([register.number for register in self.plan.inputs]))
        self.main = len(self.words)
        for at in jumps:
            self.words[at + 2] = self.main

    def _step(self, step: ops.Operation) -> None:
        self.begins[len(self.words)] = step
        match step:
            case ops.Launch():
                self._launch_step(step)
            case ops.Clear(block, offset, nbytes):
                self._emit(None, layout.REPLAY_CLEAR, self.block_address(block) + offset, nbytes)
            case ops.Copy(target, source, _, always):
                begin = len(self.words)
                self._copy(target, source)
                if self.plan.blocks[target.block].kind == "scratch":
                    self._filled[target.block] = begin
                if always and source.block in self._filled:
                    self.always.append((self._filled[source.block], begin, len(self.words)))
            case ops.Fill(target, value, span):
                self._fill(target, value, span)
            case ops.LoadElement(register, source, span):
                self._load(source.type, register, self._address_of(source), span)
            case ops.Compute():
                self._compute(step)
            case ops.Seed(register):
                base = ops.signed(session.config.random_seed * SEED_STEP)
                self._emit(None, layout.REPLAY_SEED, register.number, self.counter_register, base)
            case ops.End():
                self._end(step)
            case ops.Branch():
                raise AssertionError("a decision is a branch")

    def _address_of(self, view: ops.View) -> int:
        return self.block_address(view.block) + view.offset

    def _launch_step(self, step: ops.Launch) -> None:
        address, given = self.launch_block(step)
        slots = address + layout.SLOTS
        shared = self._constants[launch_key(step)]
        moves: list[int] = []
        for k, (argument, (name, offset)) in enumerate(
            zip(step.arguments, self.plan.codes[step.code].parameters, strict=True)
        ):
            if isinstance(argument, ops.Constant):
                packed = struct.pack(f"<{layout.WORDS[name]}", self._plain(argument, name))
                if shared[k]:
                    given[offset : offset + 8] = packed
                else:
                    cell = self._cell(struct.unpack("<q", packed)[0])
                    moves += slots + offset, self.register_address(cell)
            elif argument.kind == "s" or (argument.kind, name) in _WORDS:
                moves += slots + offset, self.register_address(argument.number)
            else:
                self._store(name, argument, slots + offset, step.span)
        self._moves(moves)
        self.launches[len(self.words)] = step
        self._emit(None, layout.REPLAY_LAUNCH, address)
        moves = []
        for offset, (_, name, register) in zip(self.result_offsets(step), step.results, strict=True):
            if (register.kind, name) in _WORDS:
                moves += self.register_address(register.number), slots + offset
            else:
                self._load(name, register, slots + offset, step.span)
        self._moves(moves)

    def _moves(self, moves: list[int]) -> None:
        """Copy words: addresses, to and from in turn."""
        if moves:
            self._emit(None, layout.REPLAY_MOVES, len(moves) // 2, *moves)

    @staticmethod
    def _plain(argument: ops.Constant, name: str) -> Any:
        found = argument.value
        return float(found) if name.startswith("f") else found

    def _store(self, name: str, operand: ops.Operand, address: int, span: Span) -> None:
        number, real = self._operand(operand)
        self._emit(span, layout.REPLAY_STORE, _type(name), number, real, address)

    def _load(self, name: str, register: ops.Register, address: int, span: Span) -> None:
        self._emit(span, layout.REPLAY_LOAD, _type(name), register.number, address)

    def _fill(self, target: ops.View, value: ops.Operand, span: Span) -> None:
        address = self._address_of(target)
        size = scalar_named(target.type).size
        axes = axes_of(target)
        if isinstance(value, ops.Constant) and not value.bits and (not axes or axes == [(axes[0][0], size)]):
            self._emit(None, layout.REPLAY_CLEAR, address, size * (axes[0][0] if axes else 1))
            return
        if not axes:
            self._store(target.type, value, address, span)
            return
        number, real = self._operand(value)
        flat = [word for axis in axes for word in axis]
        self._emit(span, layout.REPLAY_FILL, _type(target.type), number, real, address, len(axes), *flat)

    def _copy(self, target: ops.View, source: ops.View) -> None:
        if 0 in target.shape:
            return
        if target.type != source.type:
            axes = merged_axes(target.shape, (target.strides, source.strides))
            to, origin = (_type(target.type), self._address_of(target)), (_type(source.type), self._address_of(source))
            flat = [word for axis in axes for word in axis]
            self._emit(None, layout.REPLAY_CONVERT, *to, *origin, len(axes), *flat)
            return
        size, axes = run_of(target, source)
        flat = [word for axis in axes for word in axis]
        to, origin = self._address_of(target), self._address_of(source)
        self._emit(None, layout.REPLAY_COPY, size, to, origin, len(axes), *flat)

    def _compute(self, step: ops.Compute) -> None:
        if calls_function(step.operation):
            places = [self._real(one, False, step.span) for one in step.operands]
            function = self.function_address(step.operation, step.register.number, places)
            self._emit(step.span, layout.REPLAY_CALL, function)
            return
        if step.operation == "select":
            self._emit(
                None, layout.REPLAY_SELECT, step.register.number, *[self._operand(one)[0] for one in step.operands]
            )
            return
        operation = getattr(layout, f"REPLAY_{step.operation.upper()}")
        whole = all(one.kind in "ib" for one in step.operands)
        exact = step.operation in _COMPARISONS
        numbers = [self._operand(one)[0] if whole else self._real(one, exact, step.span) for one in step.operands]
        numbers += [self._cell(0)] * (2 - len(numbers))
        if not whole and step.operation in _COMMON:
            self._emit(None, getattr(layout, f"REPLAY_{step.operation.upper()}_REALS"), step.register.number, *numbers)
            return
        kind = layout.REPLAY_INTEGERS if whole else layout.REPLAY_REALS
        self.computed[len(self.words)] = step.operation, numbers[: len(step.operands)]
        self._emit(step.span, kind, operation, step.register.number, *numbers)

    # ---- registers

    def _operand(self, operand: ops.Operand) -> tuple[int, int]:
        """The place of a number, and whether it is an f64."""
        if isinstance(operand, ops.Register):
            return operand.number, int(operand.kind == "f")
        return self._cell(ops.signed(operand.bits)), int(operand.kind == "f")

    def _real(self, operand: ops.Operand, exact: bool, span: Span) -> int:
        """The place of a number as an f64."""
        number, real = self._operand(operand)
        if real:
            return number
        if isinstance(operand, ops.Constant) and abs(operand.bits) <= EXACT:
            return self._cell(struct.unpack("<q", struct.pack("<d", float(operand.bits)))[0])
        made = self._new_cell(0)
        self._emit(span, layout.REPLAY_EXACT if exact else layout.REPLAY_REAL, made, number)
        return made

    def _cell(self, bits: int) -> int:
        known = self._cell_of.get(bits)
        if known is None:
            known = self._cell_of[bits] = self._new_cell(bits)
        return known

    def _new_cell(self, bits: int) -> int:
        self.cells.append(bits)
        assert len(self.cells) <= self.most_cells, "cells are counted beforehand"
        return len(self.cells) - 1


def launch_key(step: ops.Launch) -> Any:
    """The key of launches that share a block."""
    return step.code, step.pointers, step.extents


def _all_ready(path: Path, ready: Callable[[Path], bool]) -> bool:
    """Whether all continuations are ready."""
    if path.branch is None:
        return ready(path)
    return len(path.sides) == 2 and all(_all_ready(side, ready) for side in path.sides.values())


def _shared_constants(steps: Sequence[ops.Operation]) -> dict[Any, list[bool]]:
    """Of the launches that share a block, which arguments are one constant in all of them."""
    known: dict[Any, tuple[ops.Operand, ...]] = {}
    found: dict[Any, list[bool]] = {}
    for step in steps:
        if isinstance(step, ops.Launch):
            key = launch_key(step)
            first = known.setdefault(key, step.arguments)
            shared = found.setdefault(key, [True] * len(first))
            found[key] = [s and a == b for s, a, b in zip(shared, first, step.arguments, strict=True)]
    return found


def merged_axes(shape: tuple[int, ...], strides: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The axes of views of one shape, the outermost first, each with its extent and the stride in each; neighbours
    that follow one another are one, and those of a single index none.
    """
    found: list[tuple[int, ...]] = []
    for extent, *apart in zip(reversed(shape), *map(reversed, strides), strict=True):
        if extent == 1:
            continue
        if found and all(a == found[0][0] * b for a, b in zip(apart, found[0][1:], strict=True)):
            found[0] = (found[0][0] * extent, *found[0][1:])
        else:
            found.insert(0, (extent, *apart))
    return found


def run_of(target: ops.View, source: ops.View) -> tuple[int, list[tuple[int, ...]]]:
    """The length in bytes of runs that are contiguous in two views, and the axes along which they repeat."""
    size = scalar_named(target.type).size
    axes = merged_axes(target.shape, (target.strides, source.strides))
    if axes and axes[-1][1] == axes[-1][2] == size:
        size *= axes.pop()[0]
    return size, axes


def axes_of(view: ops.View) -> list[tuple[int, ...]]:
    """The axes of a view."""
    return merged_axes(view.shape, (view.strides,))


def _type(name: str) -> int:
    return getattr(layout, f"TYPE_{name.upper()}")  # type: ignore[no-any-return]
