"""The text form of the IR: what people read in the explorer, tests compare, and `parse` reads back.

    buffer @x: f32[2] field (64) adjoint @x.grad
    buffer @x.grad: f32[2] field (64)
    buffer @U: f32 field ()
    func energy(%n: i32):
      for parallel %i: i32 in 0i32 .. %n:
        %a: f32 = load @x[%i][0i32]
        %b: f32 = mul %a, 0.5f32
        atomic add @U[], %b

Variables keep the user's names, made unique (`%a`, `%a.1`); nameless ones are numbered in the order in which they are
bound. Component indices stand in brackets of their own. Literals carry their type (`1i32`, `0.5f32`, `inf_f32`); weak
ones do not (`1`, `0.5`); truth values are `true` and `false`. Floats print with as many digits as give back the same
bits (not the payload of a NaN). The text is ASCII, whatever the user's names are, and the same every time.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile
from tinote.ir.query import walk
from tinote.ir.types import Scalar, u1

#: Operations whose text is a word and their operands.
PLAIN_WORDS: dict[type[ir.Op], str] = {
    Broadcast: "broadcast",
    Ramp: "ramp",
    ir.Local: "local",
    ir.NewStack: "stack",
    ir.Push: "push",
    ir.Pop: "pop",
}


class Line(NamedTuple):
    """One printed line and the operation it belongs to (None for headers and the `yield` at the end of a region)."""

    text: str
    op: ir.Op | None


def show(fn: ir.Function) -> str:
    """`fn` as text, ending in a line break."""
    return "".join(f"{line.text}\n" for line in show_lines(fn))


def show_lines(fn: ir.Function, naming: Naming | None = None) -> list[Line]:
    """`fn` as lines without their breaks, each with the operation that it shows. Functions that share a `naming` line
    up: a variable that occurs in several has one name in all of them.
    """
    return _Printer(naming=naming).function(fn)


def show_op(op: ir.Op) -> str:
    """The first line of one operation, for messages. Names are not made unique against the rest of its function."""
    printer = _Printer()
    printer.op(op, "")
    return printer.lines[0].text


def equal(a: ir.Function, b: ir.Function) -> bool:
    """Whether two functions are the same up to source locations and the names of variables, buffers, tasks, functions.

    Buffers correspond by order of first use. Which buffers are adjoints of which does not count: it says nothing about
    what the functions compute.
    """
    return a is b or _canonical(a) == _canonical(b)


def _canonical(fn: ir.Function) -> str:
    return "\n".join(line.text for line in _Printer(anonymous=True).function(fn))


def literal(lit: ir.Lit) -> str:
    """A literal as text; bits are preserved except for the payload of a NaN."""
    t = lit.type
    if t is u1:
        return "true" if lit.value else "false"
    suffix = t.name if t.bits else ""
    if t.kind != "f":
        return f"{int(lit.value)}{suffix}"
    if not math.isfinite(lit.value):
        sign = "-" if lit.value < 0 else ""
        word = "nan" if math.isnan(lit.value) else "inf"
        return f"{sign}{word}_{suffix}" if suffix else f"{sign}{word}"
    return f"{_digits(lit.value, t)}{suffix}"


def _digits(value: float, t: Scalar) -> str:
    """The shortest decimal that reads back as `value` in type `t`."""
    if t.bits in (16, 32):
        for precision in range(1, 10):
            text = f"{value:.{precision}g}"
            if t.round(float(text)) == value:
                # Through `repr` once more, so that all widths are written in the same style.
                return repr(float(text))
    return repr(value)


def _plain_name(name: str) -> str:
    """A name in ASCII letters, digits, `_` and `.`: Greek letters become their names."""
    if not name.isascii():
        name = "".join(c if c.isascii() else unicodedata.name(c, "x").split()[-1].lower() for c in name)
    return re.sub(r"[^A-Za-z0-9_.]", "_", name).strip(".")


def _wish(thing: ir.Var | ir.Buffer) -> str:
    name = _plain_name(thing.name)
    if isinstance(thing, ir.Buffer) and thing.flat is not None and thing.name == thing.flat.name:
        return f"{name}.flat"
    return name


def _function_name(name: str) -> str:
    name = _plain_name(name)
    return f"_{name}" if name[:1].isdigit() else name


class _Names:
    """Unique names for variables (or for buffers), given out in order of first appearance."""

    def __init__(self, anonymous: bool) -> None:
        self._names: dict[ir.Var | ir.Buffer, str] = {}
        self._taken: dict[str, int] = {}
        self._anonymous = anonymous
        self._numbered = 0

    def __call__(self, thing: ir.Var | ir.Buffer) -> str:
        found = self._names.get(thing)
        if found is None:
            found = self._names[thing] = self._fresh("" if self._anonymous else _wish(thing))
        return found

    def _fresh(self, wish: str) -> str:
        if not wish or wish.isdigit():
            while str(self._numbered) in self._taken:
                self._numbered += 1
            name = str(self._numbered)
        else:
            name = wish
            while name in self._taken:
                name = f"{wish}.{self._taken[wish]}"
                self._taken[wish] += 1
        self._taken[name] = 1
        return name


def _related(buffers: list[ir.Buffer]) -> list[ir.Buffer]:
    """`buffers` and all that they refer to, in order of discovery."""
    found = dict.fromkeys(buffers)
    queue = list(found)
    for buffer in queue:
        for other in (buffer.flat, buffer.adjoint, buffer.tangent, buffer.primal):
            if other is not None and other not in found:
                found[other] = None
                queue.append(other)
    return queue


def _touched(fn: ir.Function) -> list[ir.Buffer]:
    """The buffers that operations name, in order; a flat view comes after what it is the view of."""
    found: dict[ir.Buffer, None] = {}

    def add(buffer: ir.Buffer) -> None:
        if buffer.flat is not None:
            add(buffer.flat)
        found[buffer] = None

    for op in walk(fn.region):
        if isinstance(op, ir.MemoryOp):
            add(op.buffer)
        elif isinstance(op, ir.Task):
            for private in op.privates:
                add(private.target)
                add(private.copy)
    return list(found)


def _tuple(values: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("?" if v is None else str(v) for v in values) + ")"


class Naming:
    """Which name each variable and each buffer has, in order of first appearance."""

    def __init__(self, anonymous: bool = False) -> None:
        self.variable = _Names(anonymous)
        self.buffer = _Names(anonymous)


class _Printer:
    """Collects the lines of a function. `anonymous`: without names that say nothing about the meaning, to compare."""

    def __init__(self, anonymous: bool = False, naming: Naming | None = None) -> None:
        self.lines: list[Line] = []
        naming = naming or Naming(anonymous)
        self.variable = naming.variable
        self.buffer = naming.buffer
        self.anonymous = anonymous

    def function(self, fn: ir.Function) -> list[Line]:
        touched = _touched(fn)
        for buffer in touched if self.anonymous else _related(touched):
            self.buffer(buffer)
            self.lines.append(Line(self.declaration(buffer), None))
        name = "" if self.anonymous else _function_name(fn.name)
        self.lines.append(Line(f"func {name}({self.bindings(fn.region.params)}):", None))
        self.block(fn.region, "  ", "return")
        return self.lines

    def declaration(self, buffer: ir.Buffer) -> str:
        parts = [f"buffer @{self.buffer(buffer)}: {buffer.element_type!r} {buffer.kind.value} {_tuple(buffer.shape)}"]
        if buffer.noalias:
            parts.append("noalias")
        natural = ir.Buffer("", buffer.dtype, buffer.shape, buffer.element, flat=buffer.flat)
        if buffer.strides is not None and buffer.strides != natural.strides:
            parts.append(f"strides {_tuple(buffer.strides)}")
        if buffer.element_strides != ir.row_major(buffer.element, buffer.dtype.size):
            parts.append(f"element_strides {_tuple(buffer.element_strides)}")
        if buffer.flat is not None:
            parts.append(f"flat @{self.buffer(buffer.flat)}")
        if not self.anonymous:
            if buffer.adjoint is not None:
                parts.append(f"adjoint @{self.buffer(buffer.adjoint)}")
            if buffer.tangent is not None:
                parts.append(f"tangent @{self.buffer(buffer.tangent)}")
        return " ".join(parts)

    # operands

    def atom(self, atom: ir.Atom) -> str:
        return f"%{self.variable(atom)}" if isinstance(atom, ir.Var) else literal(atom)

    def atoms(self, atoms: tuple[ir.Atom, ...]) -> str:
        return ", ".join([self.atom(a) for a in atoms])

    def binding(self, var: ir.Var) -> str:
        return f"%{self.variable(var)}: {var.type!r}"

    def bindings(self, variables: tuple[ir.Var, ...]) -> str:
        return ", ".join([self.binding(v) for v in variables])

    def element(self, buffer: ir.Buffer, index: tuple[ir.Atom, ...]) -> str:
        """`@x[%i]`, or `@x[%i][0i32]` with component indices."""
        text = f"@{self.buffer(buffer)}[{self.atoms(index[: buffer.rank])}]"
        return f"{text}[{self.atoms(index[buffer.rank :])}]" if len(index) > buffer.rank else text

    def cell(self, args: tuple[ir.Atom, ...]) -> str:
        """`%r`, or `%r[0i32]` with component indices."""
        index = f"[{self.atoms(args[1:])}]" if len(args) > 1 else ""
        return self.atoms(args[:1]) + index

    def carrying(self, variables: tuple[ir.Var, ...], initial: tuple[ir.Atom, ...]) -> str:
        if not variables:
            return ""
        if len(variables) != len(initial):  # invalid, but messages want to show it
            return f" carrying ({self.bindings(variables)}) = ({self.atoms(initial)})"
        pairs = [f"{self.binding(v)} = {self.atom(a)}" for v, a in zip(variables, initial, strict=True)]
        return f" carrying {', '.join(pairs)}"

    # operations

    def block(self, region: ir.Region, indent: str, leave: str = "yield") -> None:
        start = len(self.lines)
        for op in region.body:
            self.op(op, indent)
        if region.yields:
            self.lines.append(Line(f"{indent}{leave} {self.atoms(region.yields)}", None))
        if len(self.lines) == start:
            self.lines.append(Line(f"{indent}pass", None))

    def op(self, op: ir.Op, indent: str) -> None:
        """Append the lines of one operation."""
        start = f"{indent}{self.bindings(op.outs)} = " if op.outs else indent
        inner = indent + "  "
        if isinstance(op, ir.For):
            self.lines.append(Line(start + self.for_head(op), op))
            self.block(op.body, inner)
        elif isinstance(op, ir.While):
            carried = op.condition.params
            self.lines.append(Line(f"{start}while{self.carrying(carried, op.initial)}:", op))
            self.block(op.condition, inner)
            names = self.bindings(op.body.params)
            self.lines.append(Line(f"{indent}do {names}:" if names else f"{indent}do:", op))
            self.block(op.body, inner)
        elif isinstance(op, ir.If):
            word = "if likely" if op.likely else "if"
            self.lines.append(Line(f"{start}{word} {self.atom(op.condition)}:", op))
            self.block(op.then, inner)
            if op.orelse.body or op.orelse.yields:
                self.lines.append(Line(f"{indent}else:", op))
                self.block(op.orelse, inner)
        elif isinstance(op, CustomVJP):
            head = f"custom_vjp {self.atoms(op.args)} adjoint {self.bindings(op.adjoint.params)}:"
            self.lines.append(Line(start + head, op))
            self.block(op.adjoint, inner)
        elif isinstance(op, ir.Task):
            self.lines.append(Line(start + self.task_head(op), op))
            for private in op.privates:
                copy, target = self.buffer(private.copy), self.buffer(private.target)
                self.lines.append(Line(f"{inner}private {private.prim.name} @{copy} of @{target}", op))
            self.block(op.body, inner)
        else:
            self.lines.append(Line(start + self.plain(op), op))

    def for_head(self, op: ir.For) -> str:
        words = [w for w in ("parallel", "ordered", "reverse", "vectorize") if getattr(op, w)]
        mask = op.body.params[1:] if op.parallel else ()
        bounds = f"{self.bindings((op.index, *mask))} in {self.atom(op.lo)} .. {self.atom(op.hi)}"
        return " ".join(["for", *words, bounds]) + self.carrying(op.carried, op.initial) + ":"

    def task_head(self, op: ir.Task) -> str:
        words = ["parallel" if op.parallel else "serial"]
        if not self.anonymous and op.name:
            words.append(json.dumps(op.name))
        words += [w for w in ("ordered", "vectorize") if getattr(op, w)]
        if op.body.params:
            words.append(f"{self.bindings(op.body.params)} in {' .. '.join([self.atom(a) for a in op.args])}")
        return f"task {' '.join(words)}:"

    def plain(self, op: ir.Op) -> str:
        """The text of an operation without regions, after its outs."""
        word = op.prim.name if isinstance(op, ir.Prim) else PLAIN_WORDS.get(type(op))
        if word is not None:
            return f"{word} {self.atoms(op.args)}".rstrip()
        if isinstance(op, LoadTile | StoreTile):
            rows = f"tile {self.element(op.buffer, op.index)} by {self.atoms(op.args[1:3])}{self.where(op)}"
            return f"load {rows}" if isinstance(op, LoadTile) else f"store {rows}, {self.atom(op.value)}"
        if isinstance(op, ir.Load):
            return f"load {self.element(op.buffer, op.index)}{self.where(op)}"
        if isinstance(op, ir.Store):
            return f"store {self.element(op.buffer, op.index)}{self.where(op)}, {self.atom(op.value)}"
        if isinstance(op, ir.Atomic):
            how = "atomic plain" if op.plain else "atomic"
            return f"{how} {op.prim.name} {self.element(op.buffer, op.index)}, {self.atom(op.value)}"
        if isinstance(op, ir.Extent):
            return f"extent @{self.buffer(op.buffer)}, {op.axis}"
        if isinstance(op, ir.Get):
            return f"get {self.cell(op.args)}"
        if isinstance(op, ir.Set):
            return f"set {self.cell(op.args[:-1])}, {self.atom(op.args[-1])}"
        if isinstance(op, Reduce):
            return f"reduce {op.prim.name} {self.atoms(op.args)}"
        if isinstance(op, ir.Check):
            text = "" if self.anonymous and op.kind is ir.FaultKind.BOUNDS else op.text
            parts = [f"check {op.kind.name.lower()}"]
            parts += [json.dumps(text)] if text else []
            parts += [f"axis {op.axis}"] if op.axis else []
            return f"{' '.join(parts)} {self.atoms(op.args)}".rstrip()
        if isinstance(op, ir.Print):
            rest = iter(zip(op.args, op.specs, strict=True))
            parts = [self.printed(*next(rest)) if part is None else json.dumps(part) for part in op.parts]
            return f"print {', '.join(parts)}".rstrip()
        raise TypeError(f"no text form for {type(op).__name__}")

    def where(self, op: ir.Op) -> str:
        """The mask of an access by lanes."""
        return f" where {self.atom(op.mask)}" if isinstance(op, MaskedLoad | MaskedStore | LoadTile | StoreTile) else ""

    def printed(self, atom: ir.Atom, spec: str) -> str:
        """An argument of `print`, with its format."""
        return f"{self.atom(atom)} as {json.dumps(spec)}" if spec else self.atom(atom)
