"""Reading the text form of programs back; `text` has the grammar.

`parse(show(program))` is the program again, up to the names of blocks and codes and to places in the source: operations
are located at their lines in the text. Only the form is checked, not the rules: `verify` does that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tinote.ir.buffers import row_major
from tinote.ir.tokens import SourceLine, TextReader
from tinote.ir.types import scalar_named
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.program.text import literal_of

T = TypeVar("T")

_LITERAL = re.compile(r"(-?[\w.+-]*?)_?(f64|i64)")
_REGISTER = re.compile(r"%([fibs])(\d+)")
_NULL = -1


def parse(text: str, objects: Sequence[Any] = (), file: str = "<program>") -> Program:
    """The program that `text` shows. `objects`: those that it names by numbers. Raises `ParseError`."""
    return _Parser(text, objects, file).program()


class _Parser(TextReader):
    def __init__(self, text: str, objects: Sequence[Any], file: str) -> None:
        super().__init__(text, file)
        self.objects = objects
        self.blocks: dict[str, int] = {}
        self.codes: dict[str, int] = {}
        self.made = Program()

    def program(self) -> Program:
        while self.advance().take("block"):
            self.block()
        while self.line.take("code"):
            self.code()
            self.advance()
        self.line.expect("program")
        self.made.inputs = self.listed(self.register)
        self.colon()
        self.made.root = self.path(self.line)
        self.end()
        return self.made

    def block(self) -> None:
        line = self.line
        name = line.kind("buffer", "the name of a block")[1:]
        line.expect(":")
        kind = line.kind("word", "the kind of a block")
        line.expect("(")
        nbytes = line.integer()
        line.expect(")")
        data = bytes.fromhex(json.loads(line.next().text)) if line.peek().kind == "text" else b""
        line.done()
        self.blocks[name] = len(self.made.blocks)
        self.made.blocks.append(ops.Block(kind, name, nbytes, data))

    def code(self) -> None:
        line = self.line
        name = line.kind("word", "the name of a code")
        line.expect(":")
        digest = self.text()
        pointers = self.places("fixed")
        parameters = [(name, slot) for slot, name in self.pairs(self.type)] if line.take("takes") else []
        written = self.listed(line.integer) if line.take("writes") else []
        may_fail = not line.take("silent")
        line.done()
        self.codes[name] = len(self.made.codes)
        self.made.codes.append(ops.Code(name, digest, tuple(pointers), tuple(parameters), frozenset(written), may_fail))

    def path(self, head: SourceLine) -> Path:
        """The lines that are indented deeper than `head`."""
        found = Path()
        for line in self.deeper(head):
            if found.branch is not None:
                raise line.error("nothing may follow a branch", line.indent)
            if line.take("pass"):
                line.done()
            elif line.take("if"):
                self.branch(found, line)
            else:
                found.steps.append(self.operation())
                line.done()
        return found

    def branch(self, path: Path, head: SourceLine) -> None:
        register = self.register()
        self.colon()
        path.branch = ops.Branch(register, True, head.span())
        self.side(path, True, head)
        line = self.advance()
        if line.indent != head.indent:
            raise line.error("expected 'else'", line.indent)
        line.expect("else")
        self.colon()
        self.side(path, False, line)

    def side(self, path: Path, taken: bool, head: SourceLine) -> None:
        if not self.is_at_end and self.lines[self.at].take("unmet"):
            self.advance().done()
        else:
            path.sides[taken] = self.path(head)

    # ---- operations

    def operation(self) -> ops.Operation:
        line, span = self.line, self.line.span()
        if line.peek().kind == "variable":
            register = self.register()
            line.expect("=")
            if line.take("load"):
                return ops.LoadElement(register, self.view(), span)
            if line.take("seed"):
                return ops.Seed(register, span)
            return ops.Compute(line.kind("word", "an operation"), register, tuple(self.listed(self.operand)), span)
        if line.take("launch"):
            return self.launch()
        if line.take("clear"):
            block, offset = self.place()
            (nbytes,) = self.listed(line.integer)
            return ops.Clear(block, offset, nbytes, span)
        if line.take("copy"):
            target = self.view()
            line.expect("=")
            return ops.Copy(target, self.view(), span, line.take("always"))
        if line.take("fill"):
            target = self.view()
            line.expect("=")
            return ops.Fill(target, self.operand(), span)
        if line.take("end"):
            result = self.result()
            updates = self.pairs(self.operand) if line.take("updates") else []
            seeds = self.pairs(self.operand) if line.take("seeds") else []
            return ops.End(result, tuple(updates), tuple(seeds), span)
        raise line.error("expected an operation")

    def launch(self) -> ops.Launch:
        line = self.line
        column = line.peek().column
        name = line.kind("word", "the name of a code")
        if name not in self.codes:
            raise line.error(f"there is no code '{name}'", column)
        arguments = self.listed(self.operand)
        pointers = self.places("at")
        extents = self.pairs(line.integer) if line.take("lengths") else []
        results = self.pairs(lambda: (self.type(), self.register())) if line.take("gives") else []
        fills = self.listed(self.block_name) if line.take("fills") else []
        return ops.Launch(
            self.codes[name],
            tuple(pointers),
            tuple(extents),
            tuple(arguments),
            tuple([(slot, *one) for slot, one in results]),
            line.span(),
            tuple(fills),
        )

    def result(self) -> ops.Result:
        line = self.line
        if line.peek().text in ("constant", "object"):
            return ops.Result("constant", (self.constant(),))
        kind = line.kind("word", "a result")
        match kind:
            case "none":
                return ops.Result("constant", (None,))
            case "number" | "bool":
                return ops.Result(kind, tuple(self.listed(self.operand)))
            case "tuple" | "list":
                return ops.Result(kind, tuple(self.listed(self.result)))
            case "dict":
                return ops.Result(kind, tuple(self.listed(lambda: self.pair(self.constant, self.result))))
            case "array":
                return ops.Result(kind, (self.view(), self.text()))
            case "vector" | "matrix":
                shape = tuple(self.listed(line.integer))
                return ops.Result(kind, (shape, self.text(), tuple(self.listed(self.operand))))
            case _:
                raise line.error("expected a result")

    # ---- parts

    def listed(self, item: Callable[[], T]) -> list[T]:
        self.line.expect("(")
        return self.line.separated(item, ")")

    def pair(self, first: Callable[[], Any], second: Callable[[], T]) -> tuple[Any, T]:
        found = first()
        self.line.expect(":")
        return found, second()

    def pairs(self, second: Callable[[], T]) -> list[tuple[int, T]]:
        return self.listed(lambda: self.pair(self.line.integer, second))

    def places(self, word: str) -> list[tuple[int, int, int]]:
        return [(slot, *place) for slot, place in self.pairs(self.place)] if self.line.take(word) else []

    def place(self) -> tuple[int, int]:
        if self.line.take("null"):
            return _NULL, 0
        block = self.block_name()
        self.line.expect("[")
        offset = self.line.integer()
        self.line.expect("]")
        return block, offset

    def block_name(self) -> int:
        column = self.line.peek().column
        name = self.line.kind("buffer", "a block")[1:]
        if name not in self.blocks:
            raise self.line.error(f"there is no block '@{name}'", column)
        return self.blocks[name]

    def view(self) -> ops.View:
        block, offset = self.place()
        name = self.type()
        axes = self.listed(lambda: (self.line.integer(), self.stride() if self.line.take(":") else None))
        shape = tuple([extent for extent, _ in axes])
        strides = [stride for _, stride in axes if stride is not None]
        return ops.View(
            block,
            offset,
            name,
            shape,
            tuple(strides) if len(strides) == len(shape) else row_major(shape, scalar_named(name).size),
        )

    def stride(self) -> int:
        return int(self.line.kind("number", "a stride"))

    def type(self) -> str:
        return self.line.kind("word", "a type")

    def text(self) -> str:
        return str(json.loads(self.line.kind("text", "a text")))

    def register(self) -> ops.Register:
        column = self.line.peek().column
        found = _REGISTER.fullmatch(self.line.kind("variable", "a register"))
        if found is None:
            raise self.line.error("a register is %f, %i, %b or %s with a number", column)
        return ops.Register(found[1], int(found[2]))

    def operand(self) -> ops.Operand:
        line = self.line
        if line.peek().kind == "variable":
            return self.register()
        if line.take("f64"):
            return ops.Constant("f", ops.signed(int(self.text(), 16)))
        column = line.peek().column
        found = _LITERAL.fullmatch(line.kind("number", "a number"))
        if found is None:
            raise line.error("a number is an i64 or an f64", column)
        if found[2] == "i64":
            return ops.Constant("i", int(found[1]))
        return ops.Constant.of_float(float(found[1]))

    def constant(self) -> Any:
        line = self.line
        if line.take("object"):
            column = line.peek().column
            number = line.integer()
            if number >= len(self.objects):
                raise line.error(f"there is no object {number}", column)
            return self.objects[number]
        line.expect("constant")
        return literal_of(self.text())
