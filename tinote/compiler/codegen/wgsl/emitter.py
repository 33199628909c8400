"""An entry point under construction: variables as WGSL text, and the walk over its operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tinote.compiler.codegen.wgsl.features import Unsupported, refusal
from tinote.compiler.codegen.wgsl.primitives import expression
from tinote.compiler.codegen.wgsl.shared import SharedState
from tinote.compiler.codegen.wgsl.task_facts import sums_of
from tinote.compiler.codegen.wgsl.types import WIDE, literal, type_name, words_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.primitives import Primitive
from tinote.ir.query import walk
from tinote.ir.types import Scalar, Tangents, element_type, f32, shape_of, u1, u32
from tinote.source import NOWHERE, Span


class OpenStack(NamedTuple):
    """`slot`: the places of a value's words (`raw`) or of itself. `chain`: the piece of one without a bound."""

    t: Scalar
    top: str
    slot: Callable[[], list[str]]
    raw: bool
    chain: str = ""


class TaskEmitter:
    """One entry point under construction."""

    def __init__(self, module: SharedState, name: str, task: ir.Task | None) -> None:
        self.m = module
        self.name = name
        self.task = task
        self.env: dict[ir.Var, str] = {}
        #: the head: variables of the whole function, values from between the tasks
        self.head: list[tuple[str, Span]] = []
        self.lines: list[tuple[str, Span]] = []
        self.loc = NOWHERE
        self.indent = 1
        #: for each open loop, whether something in it may fail; whether anything in a loop may
        self.loops: list[bool] = []
        self.fails = False
        self.count = 0
        self.local_words = 0
        self.stacks: dict[ir.Var, OpenStack] = {}
        ops = list(walk(task.body)) if task else []
        memory = [
            op for op in ops if isinstance(op, ir.Store | ir.Atomic) and op.buffer.kind is not ir.BufferKind.TEMPORARY
        ]
        updates = [op for op in ops if isinstance(op, ir.Atomic) and not op.plain]
        self.shared = any(op in updates or op.buffer.dtype.bits < 32 for op in memory)
        # All of a task's memory is of one type, which words are not: numbers of others are not taken for floats.
        loaded = [op for op in ops if isinstance(op, ir.Load) and op.buffer.kind is not ir.BufferKind.TEMPORARY]
        only_floats = all(op.buffer.dtype is f32 for op in (*memory, *loaded))
        adds = all(op.prim is p.add for op in updates if op.buffer.kind is not ir.BufferKind.TEMPORARY)
        self.floats = module.features.float_atomics and self.shared and only_floats and adds
        #: arrays in scratch memory: the invocation's word at which each begins, and its number of values
        self.arrays: dict[ir.Var, tuple[int, int]] = {}
        self.array_words = 0
        self.saves = any(isinstance(op, ir.NewStack) or (isinstance(op, ir.Local) and self.is_large(op)) for op in ops)
        #: totals private to each invocation, and one of the updates that each replaces
        self.sums: dict[tuple[ir.Buffer, tuple[ir.Atom, ...]], tuple[str, ir.Atomic]] = {}
        self.summed = sums_of(task.body) if task is not None and task.parallel else frozenset()
        # No atomic operation has 64 bits. Where iterations conflict in differentiated memory, gradients are those of
        # serial order (`autodiff/keep_order.py`). Such a task runs in one invocation.
        self.alone = any(op.buffer.dtype.bits == 64 for op in updates) or (task is not None and task.ordered)

    # text

    def do(self, line: str) -> None:
        self.lines.append(("  " * self.indent + line, self.loc))

    def name_for(self, what: str = "v") -> str:
        self.count += 1
        return f"{what}{self.count}"

    def value(self, text: str) -> str:
        """A name for the value of an expression."""
        name = self.name_for()
        self.do(f"let {name} = {text};")
        return name

    @contextmanager
    def nested(self, opening: str) -> Iterator[None]:
        self.do(opening)
        self.indent += 1
        if self.indent > self.m.features.nested:
            raise refusal(f"code in more than {self.m.features.nested} nested branches and loops", self.loc)
        yield
        self.indent -= 1
        self.do("}")

    @contextmanager
    def loop(self, opening: str) -> Iterator[None]:
        """A loop that a fault leaves, along with the loops around it."""
        self.loops.append(False)
        with self.nested(opening):
            yield
        if self.loops.pop():
            self.do("if (failed) { break; }" if self.loops else "if (failed) { return; }")
            if self.loops:
                self.loops[-1] = True

    def declare(self, line: str) -> None:
        """A variable of the whole function."""
        self.head.append(("  " + line, self.loc))

    def param(self, at: int, t: Scalar = u32) -> str:
        return self.from_words(t, [f"params[{k // 4}][{k % 4}]" for k in range(at, at + words_of(t))])

    def from_words(self, t: Scalar, words: Sequence[str]) -> str:
        ty = type_name(t)
        if isinstance(t, Tangents):
            size = words_of(t.scalar)
            each = [self.from_words(t.scalar, words[k : k + size]) for k in range(0, len(words), size)]
            return f"{ty}({', '.join(each)})"
        if ty == WIDE:
            self.m.helpers.provide("wide")
            return f"Wide({', '.join(words)})"
        if ty == "f64":
            self.m.helpers.provide("bits_f64")
            return f"f64_from(Wide({', '.join(words)}))"
        (word,) = words
        if t is u1:
            return f"({word} != 0u)"
        if t.kind == "f" and t.bits == 16:
            return f"unpack2x16float({word}).x"
        if t.bits < 32:
            return self.sign_extended(t, word)
        return word if ty == "u32" else f"bitcast<{ty}>({word})"

    def sign_extended(self, t: Scalar, word: str) -> str:
        wrapped = f"bitcast<{type_name(t)}>({word})"
        return f"{self.m.helpers.provide(f'wrap_{t.name}')}({wrapped})"

    def to_words(self, t: Scalar, value: str) -> list[str]:
        ty = type_name(t)
        if isinstance(t, Tangents):
            return [word for d in range(t.count) for word in self.to_words(t.scalar, f"{value}[{d}]")]
        if ty == "f64":
            self.m.helpers.provide("bits_f64")
            value, ty = self.value(f"f64_words({value})"), WIDE
        if ty == WIDE:
            return [f"{value}.x", f"{value}.y"]
        if t.kind == "f" and t.bits == 16:
            self.m.helpers.provide("wrap_f16")
            return [f"f16_bits({value})"]
        return [f"u32({value})" if t is u1 else value if ty == "u32" else f"bitcast<u32>({value})"]

    def use(self, a: ir.Atom) -> str:
        if isinstance(a, ir.Lit):
            if type_name(a.type) == WIDE:
                self.m.helpers.provide("wide")
            return literal(a)
        if a not in self.env:  # a parameter, or made between the tasks: cheap arithmetic, the load of a temporary
            outer = self.lines, self.indent, self.loc
            self.lines, self.indent = self.head, 1
            if a in self.m.parameters:
                self.env[a] = self.value(self.param(self.m.parameters[a], element_type(a.type)))
            else:
                self.op(self.made(a))
            self.lines, self.indent, self.loc = outer
        return self.env[a]

    def made(self, v: ir.Var) -> ir.Op:
        """A value computed between the tasks.

        Its loads can be repeated here, since the memory is not written in between.
        """
        op = self.m.made[v]
        if isinstance(op, ir.Load):
            body = self.m.fn.region.body
            since = body[body.index(op) :]
            until = since[: since.index(self.task)] if self.task is not None else since
            for task in until:
                for inner in [inner for r in task.regions for inner in walk(r)]:
                    if isinstance(inner, ir.Store | ir.Atomic) and inner.buffer is op.buffer:
                        what = f"a task that writes '{op.buffer.name}', which a later one uses as it was,"
                        raise refusal(what, op.loc)
        return op

    # regions and operations

    def region(self, region: ir.Region) -> list[str]:
        """The code of a region. Its scratch memory is freed at its end."""
        makes = any(isinstance(op, ir.NewStack) for op in region.body)
        mark = self.value("sp") if makes and not self.grows_outer(region) else ""
        for op in region.body:
            self.op(op)
        found = [self.use(y) for y in region.yields]
        if mark:
            self.do(f"sp = {mark};")
        return found

    def grows_outer(self, region: ir.Region) -> bool:
        inner = {op.out for op in walk(region) if isinstance(op, ir.NewStack)}
        pushes = [op for op in walk(region) if isinstance(op, ir.Push) and op.args[0] not in inner]
        return any(self.stacks[op.args[0]].chain for op in pushes)  # type: ignore[index]

    def op(self, op: ir.Op) -> None:
        handler = self.m.handlers.get(type(op))
        if handler is None:
            raise refusal(f"'{type(op).__name__}'", op.loc)
        outer, self.loc = self.loc, op.loc
        try:
            handler(self, op)
        except Unsupported as error:
            raise refusal(str(error), op.loc) from None
        self.loc = outer

    def prim(self, op: ir.Prim) -> None:
        operands = [self.use(a) for a in op.args]
        if all(isinstance(a, ir.Lit) for a in op.args):
            # A constant expression that wraps or divides by zero would be an error of the shader: these are none.
            operands = [self.hidden(element_type(a.type), x) for a, x in zip(op.args, operands, strict=True)]
        self.env[op.out] = self.value(self.prim_text(op.prim, element_type(op.out.type), op.args, operands))

    def hidden(self, t: Scalar, value: str) -> str:
        """The same value as a non-constant expression."""
        name = self.name_for("c")
        self.do(f"var {name}: {type_name(t)} = {value};")
        return name

    def prim_text(self, prim: Primitive, t: Scalar, atoms: tuple[ir.Atom, ...], operands: list[str]) -> str:
        return expression(self.m.helpers, prim, t, atoms, operands)

    def is_large(self, op: ir.Local) -> bool:
        """Whether an array is kept in scratch memory."""
        return math.prod(shape_of(op.out.type.content)) > self.m.features.indexed  # type: ignore[union-attr]
