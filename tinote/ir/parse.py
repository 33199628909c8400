"""Reading the text form of the IR back; `text` describes the form.

`parse(show(fn))` equals `fn` up to names and source locations: operations are located at their lines in the text.
Blank lines and comments from `#` to the end of a line are allowed. Only the form is checked, not the rules: `verify`
does that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tinote.ir import nodes as ir
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.lanes import LoadTile, MaskedLoad, MaskedStore, Reduce, StoreTile
from tinote.ir.primitives import PRIMITIVES, Primitive
from tinote.ir.text import PLAIN_WORDS
from tinote.ir.tokens import NUMBER, SourceLine, TextReader
from tinote.ir.types import Lanes, Ref, Scalar, Stack, Tensor, Tile, Type, scalar_named, u1, weak_float, weak_int

_PLAIN = {word: kind for kind, word in PLAIN_WORDS.items()}
_LITERAL = re.compile(rf"({NUMBER})_?(.*)")


def parse(text: str, file: str = "<ir>") -> ir.Function:
    """The function that `text` shows. Raises `ParseError`."""
    return _Parser(text, file).function()


class _Parser(TextReader):
    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.variables: dict[str, ir.Var] = {}
        self.buffers: dict[str, ir.Buffer] = {}

    def function(self) -> ir.Function:
        self.declarations()
        if self.at == len(self.lines):
            raise self.line.error("expected a function")
        line = self.advance()
        line.expect("func")
        name = line.kind("word", "the function's name") if line.peek().kind == "word" else ""
        line.expect("(")
        params = tuple(line.separated(self.binding, ")"))
        self.colon()
        region = self.block(line, params, "return")
        self.end()
        return ir.Function(name, region, line.span())

    def block(self, head: SourceLine, params: tuple[ir.Var, ...] = (), leave: str = "yield") -> ir.Region:
        """The lines that are indented deeper than `head`."""
        body: list[ir.Op] = []
        yields: tuple[ir.Atom, ...] = ()
        for line in self.deeper(head):
            if yields:
                raise line.error(f"nothing may follow '{leave}'", line.indent)
            if line.take("pass"):
                line.done()
            elif line.take(leave):
                yields = self.atoms()
            else:
                body.append(self.operation())
        return ir.Region(params, tuple(body), yields)

    # buffers

    def declarations(self) -> None:
        declared: dict[str, tuple[SourceLine, Callable[[ir.Buffer | None], ir.Buffer], dict[str, str]]] = {}
        while self.at < len(self.lines) and self.lines[self.at].take("buffer"):
            line = self.advance()
            name = line.kind("buffer", "a buffer's name")
            if name in declared:
                raise line.error(f"{name} is declared twice", line.tokens[1].column)
            declared[name] = (line, *self.declaration(name[1:]))

        def made(name: str) -> ir.Buffer:
            if name not in self.buffers:
                line, make, links = declared[name]
                for target in links.values():
                    if target not in declared:
                        raise line.error(f"{target} is not declared")
                self.buffers[name] = make(made(links["flat"]) if "flat" in links else None)
            return self.buffers[name]

        for name, (_, _, links) in declared.items():
            buffer = made(name)
            if "adjoint" in links:
                buffer.adjoint = made(links["adjoint"])
                buffer.adjoint.primal = buffer
            if "tangent" in links:
                buffer.tangent = made(links["tangent"])
                buffer.tangent.primal = buffer

    def declaration(self, name: str) -> tuple[Callable[[ir.Buffer | None], ir.Buffer], dict[str, str]]:
        """The rest of a declaration: how to make the buffer, and the names that it refers to."""
        line = self.line
        line.expect(":")
        t = self.type()
        if not isinstance(t, Scalar | Tensor):
            raise line.error("a buffer holds scalars or tensors")
        dtype, element = (t, ()) if isinstance(t, Scalar) else (t.dtype, t.shape)
        word = line.kind("word", "the kind of the buffer")
        kinds = {kind.value: kind for kind in ir.BufferKind}
        if word not in kinds:
            raise line.error(f"expected one of {', '.join(kinds)}", line.tokens[line.at - 1].column)
        shape = self.shape()
        noalias = line.take("noalias")
        strides = self.known(self.shape()) if line.take("strides") else None
        element_strides = self.known(self.shape()) if line.take("element_strides") else None
        links: dict[str, str] = {}
        while line.peek().text in ("flat", "adjoint", "tangent"):
            relation = line.next().text
            links[relation] = line.kind("buffer", "a buffer's name")
        line.done()

        def make(flat: ir.Buffer | None) -> ir.Buffer:
            return ir.Buffer(name, dtype, shape, element, kinds[word], strides, element_strides, flat, noalias=noalias)

        return make, links

    def shape(self) -> tuple[int | None, ...]:
        self.line.expect("(")
        return tuple(self.line.separated(lambda: None if self.line.take("?") else self.line.integer(), ")"))

    def known(self, shape: tuple[int | None, ...]) -> tuple[int, ...]:
        known = tuple([n for n in shape if n is not None])
        if len(known) != len(shape):
            raise self.line.error("strides are known")
        return known

    # operands

    def type(self) -> Type:
        line = self.line
        word = line.kind("word", "a type")
        if word in ("ref", "stack", "tile"):
            content = self.type()
            if word == "tile" and isinstance(content, Lanes):
                return Tile(content)
            if word == "stack" and isinstance(content, Scalar | Tensor | Lanes):
                return Stack(content)
            if not isinstance(content, Scalar | Tensor):
                raise line.error("expected a scalar or tensor type")
            return Ref(content)
        try:
            name, _, lanes = word.rpartition("x")
            if name and lanes.isdigit():
                return Lanes(scalar_named(name), int(lanes))
            dtype = scalar_named(word)
        except KeyError:
            raise line.error(f"no type is called {word}", line.tokens[line.at - 1].column) from None
        return Tensor(dtype, tuple(line.separated(line.integer, "]"))) if line.take("[") else dtype

    def binding(self) -> ir.Var:
        """`%a: f32`, a new variable."""
        name = self.line.kind("variable", "a variable")
        if name in self.variables:
            raise self.line.error(f"{name} is bound twice", self.line.tokens[self.line.at - 1].column)
        self.line.expect(":")
        var = self.variables[name] = ir.Var(self.type(), name[1:])
        return var

    def buffer(self) -> ir.Buffer:
        name = self.line.kind("buffer", "a buffer")
        if name not in self.buffers:
            raise self.line.error(f"{name} is not declared", self.line.tokens[self.line.at - 1].column)
        return self.buffers[name]

    def primitive(self) -> Primitive:
        name = self.line.kind("word", "a primitive")
        if name not in PRIMITIVES:
            raise self.line.error(f"no operation is called {name}", self.line.tokens[self.line.at - 1].column)
        return PRIMITIVES[name]

    def atom(self) -> ir.Atom:
        token = self.line.peek()
        if token.kind == "variable":
            if token.text not in self.variables:
                raise self.line.error(f"{token.text} is not bound")
            self.line.next()
            return self.variables[token.text]
        if self.line.take("true") or self.line.take("false"):
            return ir.Lit(token.text == "true", u1)
        if token.kind != "number":
            raise self.line.error("expected a variable or a literal")
        return self.literal(token.text)

    def literal(self, text: str) -> ir.Lit:
        match = _LITERAL.fullmatch(text)
        assert match is not None
        digits, suffix = match.groups()
        integral = digits.removeprefix("-").isdigit()
        t = scalar_named(suffix) if suffix else weak_int if integral else weak_float
        if t is u1 or (t.kind != "f" and not integral):
            raise self.line.error(f"{text} is not a literal")
        self.line.next()
        return ir.Lit(float(digits) if t.kind == "f" else int(digits), t)

    def atoms(self) -> tuple[ir.Atom, ...]:
        """The atoms up to the end of the line."""
        return tuple(self.line.separated(self.atom))

    def brackets(self) -> tuple[ir.Atom, ...]:
        """Indices in any number of brackets."""
        found: list[ir.Atom] = []
        while self.line.take("["):
            found += self.line.separated(self.atom, "]")
        return tuple(found)

    def element(self) -> tuple[ir.Buffer, tuple[ir.Atom, ...]]:
        """`@x[%i][0i32]`."""
        buffer = self.buffer()
        if self.line.peek().text != "[":
            raise self.line.error("expected '['")
        return buffer, self.brackets()

    def offset(self, index: tuple[ir.Atom, ...]) -> ir.Atom:
        """The index of an access by lanes."""
        if len(index) != 1:
            raise self.line.error("an access by lanes has one index, a byte offset")
        return index[0]

    def assigned(self) -> ir.Atom:
        """`, %v`, at the end of the line."""
        self.line.expect(",")
        return self.atom()

    def carrying(self) -> tuple[tuple[ir.Var, ...], tuple[ir.Atom, ...]]:
        def pair() -> tuple[ir.Var, ir.Atom]:
            var = self.binding()
            self.line.expect("=")
            return var, self.atom()

        if not self.line.take("carrying"):
            self.colon()
            return (), ()
        pairs = self.line.separated(pair, ":")
        self.line.done()
        return tuple([v for v, _ in pairs]), tuple([a for _, a in pairs])

    # operations

    def operation(self) -> ir.Op:
        line = self.line
        outs: tuple[ir.Var, ...] = ()
        if line.peek().kind == "variable":
            outs = tuple(line.separated(self.binding, "="))
        word = line.kind("word", "an operation")
        structured = {
            "for": self.for_,
            "while": self.while_,
            "if": self.if_,
            "task": self.task,
            "custom_vjp": self.custom_vjp,
        }
        if word in structured:
            op = structured[word](outs)
        else:
            op = self.plain(word, outs)
            line.done()
        if op.outs != outs:
            raise line.error(f"'{word}' binds no variables", line.indent)
        return op

    def plain(self, word: str, outs: tuple[ir.Var, ...]) -> ir.Op:
        """An operation without regions, after its first word."""
        line, loc = self.line, self.line.span()
        if word in ("load", "store") and line.take("tile"):
            buffer, index = self.element()
            line.expect("by")
            step, width = self.atom(), self.assigned()
            line.expect("where")
            rows = self.offset(index), step, width, self.atom()
            return (
                LoadTile(buffer, rows, outs, loc) if word == "load" else StoreTile(buffer, rows, self.assigned(), loc)
            )
        if word in ("load", "store"):
            buffer, index = self.element()
            in_lanes = line.take("where")
            if in_lanes:
                index = self.offset(index), self.atom()
            if word == "load":
                return (MaskedLoad if in_lanes else ir.Load)(buffer, index, outs, loc)
            return (MaskedStore if in_lanes else ir.Store)(buffer, index, self.assigned(), loc)
        if word in _PLAIN:
            return _PLAIN[word](self.atoms(), () if word == "push" else outs, (), loc)
        if word == "reduce":
            return Reduce(self.primitive(), self.atom(), outs, loc)
        if word == "atomic":
            plain = line.take("plain")
            return ir.Atomic(self.primitive(), *self.element(), self.assigned(), outs, loc, plain=plain)
        if word == "extent":
            buffer = self.buffer()
            line.expect(",")
            return ir.Extent(buffer, line.integer(), outs, loc)
        if word == "get":
            return ir.Get((self.atom(), *self.brackets()), outs, (), loc)
        if word == "set":
            return ir.Set((self.atom(), *self.brackets(), self.assigned()), (), (), loc)
        if word == "check":
            return self.check()
        if word == "print":
            return self.print()
        line.at -= 1
        return ir.Prim(self.primitive(), self.atoms(), outs, loc)

    def check(self) -> ir.Op:
        line = self.line
        word = line.kind("word", "the kind of the check")
        kinds = {kind.name.lower(): kind for kind in ir.FaultKind}
        if word not in kinds:
            raise line.error(f"expected one of {', '.join(kinds)}", line.tokens[line.at - 1].column)
        text = json.loads(line.next().text) if line.peek().kind == "text" else ""
        axis = line.integer() if line.take("axis") else 0
        return ir.Check(kinds[word], self.atoms(), text, axis, line.span())

    def print(self) -> ir.Op:
        line = self.line

        specs: list[str] = []

        def item() -> str | ir.Atom:
            if line.peek().kind == "text":
                return json.loads(line.next().text)
            atom = self.atom()
            specs.append(json.loads(line.kind("text", "the format")) if line.take("as") else "")
            return atom

        items = line.separated(item)
        parts = tuple([i if isinstance(i, str) else None for i in items])
        return ir.Print(parts, tuple([i for i in items if not isinstance(i, str)]), line.span(), tuple(specs))

    def for_(self, outs: tuple[ir.Var, ...]) -> ir.Op:
        line = self.line
        parallel, ordered = line.take("parallel"), line.take("ordered")
        reverse, vectorize = line.take("reverse"), line.take("vectorize")
        params, lo, hi = self.loop()
        carried, initial = self.carrying()
        body = self.block(line, (*params, *carried))
        loop = ir.For(lo, hi, initial, body, outs, line.span(), parallel=parallel, reverse=reverse, vectorize=vectorize)
        loop.ordered = ordered
        return loop

    def loop(self) -> tuple[tuple[ir.Var, ...], ir.Atom, ir.Atom]:
        """`%i: i32 in 0i32 .. %n`, with a mask after the index where it runs in lanes."""
        params = [self.binding()]
        if self.line.take(","):
            params.append(self.binding())
        self.line.expect("in")
        lo = self.atom()
        self.line.expect("..")
        return tuple(params), lo, self.atom()

    def while_(self, outs: tuple[ir.Var, ...]) -> ir.Op:
        line = self.line
        carried, initial = self.carrying()
        condition = self.block(line, carried)
        if self.at == len(self.lines) or self.lines[self.at].indent != line.indent:
            raise line.error("expected a 'do' block after the condition", line.indent)
        second = self.advance()
        second.expect("do")
        params = tuple(second.separated(self.binding, ":"))
        second.done()
        return ir.While(initial, condition, self.block(second, params), outs, line.span())

    def if_(self, outs: tuple[ir.Var, ...]) -> ir.Op:
        line = self.line
        likely = line.take("likely")
        condition = self.atom()
        self.colon()
        then = self.block(line)
        orelse = ir.Region((), ())
        if self.at < len(self.lines) and self.lines[self.at].indent == line.indent:
            if self.lines[self.at].take("else"):
                second = self.advance()
                self.colon()
                orelse = self.block(second)
        return ir.If(condition, then, orelse, outs, line.span(), likely=likely)

    def custom_vjp(self, outs: tuple[ir.Var, ...]) -> ir.Op:
        line = self.line
        args = tuple(line.separated(self.atom, "adjoint"))
        seeds = tuple(line.separated(self.binding, ":"))
        line.done()
        count = len(outs)
        return CustomVJP(args[:count], args[count:], self.block(line, seeds), outs, line.span())

    def task(self, outs: tuple[ir.Var, ...]) -> ir.Op:
        line = self.line
        parallel = line.take("parallel")
        if not parallel:
            line.expect("serial")
        name = json.loads(line.next().text) if line.peek().kind == "text" else ""
        ordered, vectorize = line.take("ordered"), line.take("vectorize")
        params: tuple[ir.Var, ...] = ()
        args: tuple[ir.Atom, ...] = ()
        if line.peek().kind == "variable":
            params, lo, hi = self.loop()
            args = (lo, hi)
        self.colon()
        privates: list[ir.Private] = []
        while self.at < len(self.lines) and self.lines[self.at].take("private"):
            second = self.advance()
            prim, copy = self.primitive(), self.buffer()
            second.expect("of")
            privates.append(ir.Private(self.buffer(), copy, prim))
            second.done()
        body = self.block(line, params)
        task = ir.Task(name, args, body, parallel=parallel, ordered=ordered, vectorize=vectorize, loc=line.span())
        task.privates = tuple(privates)
        return task
