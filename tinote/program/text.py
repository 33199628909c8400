"""The text form of programs: what people read, tests compare, and `parse` reads back.

    block @x: field (256)
    block @saved: scratch (256)
    code advance: "1f0c…" fixed (8: @x[0]) takes (16: f64) writes (8)
    program (%f0):
      %f1 = multiply (%f0, 0.5f64)
      copy @saved[0] f32 (64) = @x[0] f32 (64)
      launch advance (%f1)
      %f2 = load @x[4] f32 ()
      %b3 = lt (%f2, 1.0f64)
      if %b3:
        clear @x[0] (256)
        end none
      else:
        end number (%f2)

Grammar; `…*` are items with commas between them:

    text     = block… code… "program" "(" register* ")" ":" path
    block    = "block" @name ":" kind "(" bytes ")" [text]                      the text: the data of a "data" block
    code     = "code" name ":" digest ["fixed" places] ["takes" types] ["writes" "(" slot* ")"] ["silent"]
    path     = operation… ["if" register ":" side "else" ":" side]              indented; a side no run took: "unmet"
    operation = "launch" name "(" operand* ")" ["at" places] ["lengths" "(" (slot ":" length)* ")"]
                                 ["gives" "(" (slot ":" type register)* ")"] ["fills" "(" @name* ")"]
             | "clear" place "(" bytes ")"  |  "copy" view "=" view ["always"]  |  "fill" view "=" operand
             | register "=" "load" view     |  register "=" word "(" operand* ")"  |  register "=" "seed"
             | "end" result ["updates" "(" (place ":" operand)* ")"] ["seeds" "(" (instance ":" operand)* ")"]
    places   = "(" (slot ":" place)* ")"         place = @name "[" byte "]" | "null"
    view     = place type "(" (extent [":" stride])* ")"                        strides are left out of rows in order
    operand  = register | literal                register: %f3 a float, %i3 an integer, %b3 a truth value, %s3 a seed
    result   = "none" | "constant" text | "object" number | "number" "(" operand ")" | "bool" "(" operand ")"
             | "tuple" "(" result* ")" | "list" "(" result* ")" | "dict" "(" (constant ":" result)* ")"
             | ("vector" | "matrix") "(" extent* ")" text "(" operand* ")" | "array" view text

Objects of Python's that a program returns as they are stand in a list of their own. Places in the source are left out.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from tinote.ir.buffers import row_major
from tinote.ir.types import scalar_named
from tinote.program import operations as ops
from tinote.program.program import Path, Program

#: What a line shows.
Shown = ops.Block | ops.Code | ops.Operation | None


def show(program: Program, objects: list[Any] | None = None) -> str:
    """`program` as text, ending in a line break. What has no text of its own is added to `objects`."""
    return "".join(f"{line}\n" for line, _ in _Printer(program, objects).lines())


def show_lines(program: Program) -> list[tuple[str, Shown]]:
    """The same line by line, each with what it shows; None for heads and for what is missing."""
    return _Printer(program, None).lines()


def names_of(names: Iterable[str]) -> list[str]:
    """Names for the text form, each once."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_.]", "_", name.replace(" ", "_")) or "_"
        base = f"_{base}" if base[0].isdigit() or base[0] == "." else base
        made, count = base, 0
        while made in taken:
            count += 1
            made = f"{base}.{count}"
        taken.add(made)
        found.append(made)
    return found


def _listed(items: Iterable[str]) -> str:
    return f"({', '.join(items)})"


class _Printer:
    def __init__(self, program: Program, objects: list[Any] | None) -> None:
        self.program = program
        self.blocks = names_of(block.name for block in program.blocks)
        self.codes = names_of(code.name for code in program.codes)
        self.objects = [] if objects is None else objects

    def lines(self) -> list[tuple[str, Shown]]:
        program = self.program
        found: list[tuple[str, Shown]] = [(self.block(number, one), one) for number, one in enumerate(program.blocks)]
        found += [(self.code(number, one), one) for number, one in enumerate(program.codes)]
        found.append((f"program {_listed(map(self.register, program.inputs))}:", None))
        return found + self.path(program.root, "  ")

    def block(self, number: int, block: ops.Block) -> str:
        data = f' "{block.data.hex()}"' if block.data else ""
        return f"block @{self.blocks[number]}: {block.kind} ({block.nbytes}){data}"

    def code(self, number: int, code: ops.Code) -> str:
        found = f"code {self.codes[number]}: {json.dumps(code.digest)}"
        found += self.places("fixed", code.pointers)
        if code.parameters:
            found += f" takes {_listed(f'{slot}: {name}' for name, slot in code.parameters)}"
        if code.written:
            found += f" writes {_listed(map(str, sorted(code.written)))}"
        return found if code.may_fail else f"{found} silent"

    def places(self, word: str, pointers: Sequence[tuple[int, int, int]]) -> str:
        found = [f"{slot}: {self.place(block, offset)}" for slot, block, offset in pointers]
        return f" {word} {_listed(found)}" if found else ""

    def place(self, block: int, offset: int) -> str:
        return f"@{self.blocks[block]}[{offset}]" if block >= 0 else "null"

    def view(self, view: ops.View) -> str:
        extents = map(str, view.shape)
        if view.strides != row_major(view.shape, scalar_named(view.type).size):
            extents = (f"{extent}: {stride}" for extent, stride in zip(view.shape, view.strides, strict=True))
        return f"{self.place(view.block, view.offset)} {view.type} {_listed(extents)}"

    def register(self, register: ops.Register) -> str:
        return f"%{register.kind}{register.number}"

    def operand(self, operand: ops.Operand) -> str:
        if isinstance(operand, ops.Register):
            return self.register(operand)
        if operand.kind == "i":
            return f"{operand.bits}i64"
        value = operand.value
        if math.isnan(value):
            return f'f64 "{operand.bits & 0xFFFFFFFFFFFFFFFF:016x}"'
        return f"{'-' if value < 0 else ''}inf_f64" if math.isinf(value) else f"{value!r}f64"

    def operands(self, operands: Sequence[ops.Operand]) -> str:
        return _listed(map(self.operand, operands))

    def path(self, path: Path, indent: str) -> list[tuple[str, Shown]]:
        found: list[tuple[str, Shown]] = [(indent + self.operation(step), step) for step in path.steps]
        if path.branch is not None:
            for taken, head in ((True, f"if {self.register(path.branch.register)}:"), (False, "else:")):
                side = path.sides.get(taken)
                found.append((indent + head, path.branch))
                found += [(f"{indent}  unmet", None)] if side is None else self.path(side, f"{indent}  ")
        return found or [(f"{indent}pass", None)]

    def operation(self, step: ops.Operation) -> str:
        match step:
            case ops.Launch():
                return self.launch(step)
            case ops.Clear(block, offset, nbytes):
                return f"clear {self.place(block, offset)} ({nbytes})"
            case ops.Copy(target, source, _, always):
                return f"copy {self.view(target)} = {self.view(source)}{' always' if always else ''}"
            case ops.Fill(target, value):
                return f"fill {self.view(target)} = {self.operand(value)}"
            case ops.LoadElement(register, source):
                return f"{self.register(register)} = load {self.view(source)}"
            case ops.Compute(operation, register, operands):
                return f"{self.register(register)} = {operation} {self.operands(operands)}"
            case ops.Seed(register):
                return f"{self.register(register)} = seed"
            case ops.End(result, updates, seeds):
                found = f"end {self.result(result)}"
                for word, numbers in (("updates", updates), ("seeds", seeds)):
                    if numbers:
                        found += f" {word} {_listed(f'{k}: {self.operand(one)}' for k, one in numbers)}"
                return found
            case ops.Branch(register, taken):
                return f"took {self.register(register)} {'true' if taken else 'false'}"

    def launch(self, step: ops.Launch) -> str:
        found = f"launch {self.codes[step.code]} {self.operands(step.arguments)}{self.places('at', step.pointers)}"
        if step.extents:
            found += f" lengths {_listed(f'{slot}: {length}' for slot, length in step.extents)}"
        if step.results:
            found += f" gives {_listed(f'{slot}: {name} {self.register(r)}' for slot, name, r in step.results)}"
        return found + (f" fills {_listed(f'@{self.blocks[block]}' for block in step.fills)}" if step.fills else "")

    def result(self, result: ops.Result) -> str:
        kind, parts = result
        match kind:
            case "constant":
                return "none" if parts == (None,) else self.constant(parts[0])
            case "number" | "bool":
                return f"{kind} {self.operands(parts)}"
            case "tuple" | "list":
                return f"{kind} {_listed(map(self.result, parts))}"
            case "dict":
                return f"dict {_listed(f'{self.constant(key)}: {self.result(one)}' for key, one in parts)}"
            case "array":
                return f"array {self.view(parts[0])} {json.dumps(parts[1])}"
            case _:
                shape, dtype, numbers = parts
                return f"{kind} {_listed(map(str, shape))} {json.dumps(dtype)} {self.operands(numbers)}"

    def constant(self, value: Any) -> str:
        if is_literal(value):
            return f"constant {json.dumps(repr(value))}"
        self.objects.append(value)
        return f"object {len(self.objects) - 1}"


def is_literal(value: Any) -> bool:
    """Whether Python's text of a value gives the same value."""
    if type(value) is tuple:
        return all(map(is_literal, cast("tuple[Any, ...]", value)))
    return type(value) in (bool, int, str, bytes, type(None)) or (type(value) is float and math.isfinite(value))


def literal_of(text: str) -> Any:
    """The value of a text that `is_literal` allows."""
    return ast.literal_eval(text)
