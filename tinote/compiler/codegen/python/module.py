"""Plain Python from IR: what `ti.init(arch=ti.python)` runs, and what `kernel.python()` shows.

    def step(rt, dt):                                   @ti.kernel
        for i in rt.iterations(0, 8):                        def step(dt: ti.f32):
            y = rt.f32(rt.v[i] * 2.0)                       for i in v:
            rt.x[i] = rt.f32(rt.f32(dt * y) + rt.x[i])          y = v[i] * 2
                                                                x[i] = dt * y + x[i]

The function is made from the first typed IR, as a syntax tree whose nodes stand where the user's own code stands: it is
compiled under the name of the user's file or cell, so breakpoints, steps and tracebacks name the user's lines, and the
user's variables are Python's local variables, with the user's names. The code of a device function runs in the
kernel's frame. If it is in the same file or cell it has its own lines, and a breakpoint there stops as well; a code
object has only one file, so what comes from another one has the line of the call that brought it in.

Derivatives are written in the same way: their operations stand where the primal ones do. `order.py` makes expressions
and statements of operations, `names.py` finds the names; what generated code calls is in `support.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinote.compiler.codegen.python.names import identifier
from tinote.compiler.codegen.python.order import Order, Ordering, PendingTerm
from tinote.compiler.codegen.python.support import NUMBERS, PythonLaunch, python_name
from tinote.compiler.codegen.python.terms import RUNTIME, applied, attribute, call, constant, method, read, write
from tinote.compiler.codegen.sites import bounds_site, fault_site, first_index, print_site, shown_by
from tinote.errors import CompilerBug
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.affine import constant as always
from tinote.ir.buffers import root_of
from tinote.ir.overflow import may_overflow, overflow_text
from tinote.ir.query import buffers_of
from tinote.ir.types import Ref, Stack, Tensor, element_type, is_integer, shape_of
from tinote.runtime.sites import Site, SiteKind
from tinote.source import Span


class PythonModule(NamedTuple):
    """Generated code. `tree` defines one function, `name`, of a launch, the addresses of `arrays` and the scalar
    arguments. The launch has the `memories` of fields as attributes and makes the `temporaries`, both by name; `sites`
    is what numbers in the code mean.
    """

    tree: ast.Module
    name: str
    sites: tuple[Site, ...]
    arrays: dict[str, ir.Buffer]
    memories: dict[str, ir.Buffer]
    temporaries: dict[str, ir.Buffer]


def generate(fn: ir.Function, reports_overflow: bool = False, checks_division: bool = True) -> PythonModule:
    """Python code of a function in any form before offloading. Indices are always checked: nothing that a kernel does
    may reach other memory.
    """
    return _Writer(fn, reports_overflow, checks_division).module()


class _Writer(Order):
    """Writes one function, operation by operation."""

    def __init__(self, fn: ir.Function, reports_overflow: bool, checks_division: bool) -> None:
        self.reports_overflow = reports_overflow
        self.checks_division = checks_division
        self.accesses = Accesses(fn)
        super().__init__(fn, self.may_fail)
        self.buffers = buffers_of(fn)
        self.sites: list[Site] = []
        self.references: dict[ir.Buffer, ast.expr] = {}
        self.arrays: dict[str, ir.Buffer] = {}
        self.memories: dict[str, ir.Buffer] = {}
        self.temporaries: dict[str, ir.Buffer] = {}

    def module(self) -> PythonModule:
        for buffer in self.buffers:
            self.memory(buffer)
        fn = self.fn
        params = fn.region.params
        for v in params:
            self.env[v] = self.names.take(v.name, 0, self.uses.last[v])
        for name in self.temporaries:
            made = call(attribute("temporary"), ast.Constant(name))
            self.emit(ast.Assign([write(name)], made))
        self.ops(fn.region)
        self.emit(ast.Return(ast.Tuple([t.code for t in self.take(fn.region.yields)], ast.Load())))
        given = [ast.arg(name) for name in (RUNTIME, *self.arrays, *[self.env[v] for v in params])]
        name = identifier(fn.name)
        definition = ast.FunctionDef(name, ast.arguments([], given, None, [], [], None, []), self.out, [])
        if "type_params" in definition._fields:  # since Python 3.12
            definition.type_params = []  # type: ignore[attr-defined]
        self.locate(definition, fn.loc)
        return PythonModule(
            ast.Module([definition], []),
            name,
            tuple(self.sites),
            self.arrays,
            self.memories,
            self.temporaries,
        )

    def memory(self, buffer: ir.Buffer) -> None:
        """Decide how a buffer is reached: fields through the launch, arrays and temporaries as variables."""
        if buffer.kind is ir.BufferKind.PRIVATE or buffer.flat is not None:
            raise CompilerBug("Python code", f"{buffer!r} belongs to a later form")
        if buffer.kind in (ir.BufferKind.ARRAY, ir.BufferKind.TEMPORARY):
            name = self.names.whole(buffer.name or "shared")
            known = self.arrays if buffer.kind is ir.BufferKind.ARRAY else self.temporaries
            self.references[buffer] = read(name)
        else:
            base = name = identifier(buffer.name) or "field"
            known = self.memories
            number = 0
            while name in known or name in NUMBERS or hasattr(PythonLaunch, name) or name in ("nan", "inf", "stopped"):
                number += 1
                name = f"{base}_{number}"
            self.references[buffer] = attribute(name)
        known[name] = buffer

    def site(self, site: Site) -> int:
        """The number of a site."""
        self.sites.append(site)
        return len(self.sites) - 1

    # operations

    def ops(self, region: ir.Region) -> None:
        for op in region.body:
            if op in self.uses.dropped:
                continue
            if op.loc.line > 0:
                self.loc = op.loc
            writer = WRITERS.get(type(op))
            if writer is None:
                raise CompilerBug("Python code", f"{op!r} belongs to a later form")
            writer(self, op)

    def prim(self, op: ir.Prim) -> None:
        prim, result = op.prim, op.out.type
        if prim in (p.surrogate, p.stop_gradient_once, p.in_reverse):
            (term,) = self.take(op.args[:1])
            self.give(op, term.code, [term], shared=term.shared)
            return
        terms = self.take(op.args)
        args = [t.code for t in terms]
        if prim is p.pack:
            self.give(op, ast.Tuple(args, ast.Load()), terms)
        elif prim is p.extract:
            position, safe = self.component(op, op.args[0], op.args[1:], args[1:])
            self.give(op, ast.Subscript(args[0], position, ast.Load()), terms, _checked(not safe))
        elif prim is p.insert:
            position, safe = self.component(op, op.args[0], op.args[1:-1], args[1:-1])
            self.give(op, call(attribute("replaced"), args[0], position, args[-1]), terms, _checked(not safe))
        elif prim in p.DIVISIONS and is_integer(result):
            checked = self.divisor(op, args)
            self.give(op, self.arithmetic(op, args), terms, _checked(checked or self.may_overflow(op)))
        else:
            self.give(op, self.arithmetic(op, args), terms, _checked(self.may_overflow(op)))

    def arithmetic(self, op: ir.Prim, args: Sequence[ast.expr]) -> ast.expr:
        result = op.out.type
        if self.may_overflow(op):
            meaning = (ast.Constant(op.prim.name), attribute(element_type(result).name))
            return call(attribute("exact"), *meaning, *args, at=self.overflow(op))
        return applied(op.prim, result, [a.type for a in op.args], args)

    def may_fail(self, op: ir.Op) -> bool:
        """Whether an operation may stop the launch."""
        if isinstance(op, ir.Load):
            return not self.accesses.surely_in_range(self.accesses.of(op))
        if isinstance(op, ir.Get):
            return not self.within(op, op.args[0], op.args[1:])
        if not isinstance(op, ir.Prim):
            return False
        if op.prim is p.extract or op.prim is p.insert:
            return not self.within(op, op.args[0], op.args[1:] if op.prim is p.extract else op.args[1:-1])
        if op.prim in p.DIVISIONS and is_integer(op.out.type) and not self.surely_divides(op):
            return True
        return self.may_overflow(op)

    def may_overflow(self, op: ir.Prim | ir.Atomic) -> bool:
        """Whether overflow of this operation is to be reported."""
        return self.reports_overflow and may_overflow(op) and not all(isinstance(a, ir.Lit) for a in op.args)

    def overflow(self, op: ir.Prim | ir.Atomic) -> int:
        t = op.buffer.dtype if isinstance(op, ir.Atomic) else element_type(op.out.type)
        shown = tuple([ir.Var(t) for _ in range(op.prim.arity or 0)])
        text = overflow_text(op.prim, t)
        return self.site(fault_site(ir.Check(ir.FaultKind.OVERFLOW, (ir.false, *shown), text, 0, op.loc)))

    def divisor(self, op: ir.Prim, args: list[ast.expr]) -> bool:
        """Check the divisor, in place, if it may be zero; whether that was needed."""
        if self.surely_divides(op):
            return False
        sign = "//" if op.prim in (p.floordiv, p.raw_div) else "%"
        args[1] = call(attribute("nonzero"), args[1], at=self.site(Site(SiteKind.DIVISION, op.loc, sign)))
        return True

    def surely_divides(self, op: ir.Prim) -> bool:
        """Whether the divisor is not zero for certain, or nobody asks."""
        divisor = op.args[1]
        if not self.checks_division:
            return True
        if isinstance(divisor, ir.Lit):
            return divisor.value != 0
        if isinstance(divisor.type, Tensor):
            return False
        return self.accesses.surely_not_zero(divisor, self.accesses.known_before(op))

    # indices

    def within(self, op: ir.Op, tensor: ir.Atom, index: Sequence[ir.Atom]) -> bool:
        """Whether the indices of a component are in range for certain."""
        shape = shape_of(tensor.type.content if isinstance(tensor.type, Ref) else tensor.type)
        return all(self.sides(op, atom, n) == (True, True) for atom, n in zip(index, shape, strict=False))

    def sides(self, op: ir.Op, index: ir.Atom, extent: int) -> tuple[bool, bool]:
        """Whether an index is certainly not negative, and certainly below the extent."""
        if isinstance(index, ir.Lit) and 0 <= index.value < extent:
            return True, True
        return self.accesses.between(self.accesses.affine(index), always(extent), self.accesses.known_before(op))

    def component(
        self, op: ir.Op, tensor: ir.Atom, index: Sequence[ir.Atom], codes: Sequence[ast.expr]
    ) -> tuple[ast.expr, bool]:
        """The position of a component in the flat tuple, and whether it is certainly in range."""
        t = tensor.type.content if isinstance(tensor.type, Ref) else tensor.type
        name = tensor.name if isinstance(tensor, ir.Var) else ""
        if not name and isinstance(op, ir.Prim) and op.prim is p.insert:
            name = op.out.name
        position: ast.expr | None = None
        literal, safe = 0, True
        size = 1
        for axis in reversed(range(len(index))):
            atom, extent = index[axis], shape_of(t)[axis]
            if isinstance(atom, ir.Lit) and 0 <= atom.value < extent:
                literal += int(atom.value) * size
            else:
                code = codes[axis]
                if self.sides(op, atom, extent) != (True, True):
                    safe = False
                    code = self.checked(code, name or "local array", axis, extent, op.loc)
                part = code if size == 1 else ast.BinOp(code, ast.Mult(), ast.Constant(size))
                position = part if position is None else ast.BinOp(part, ast.Add(), position)
            size *= extent
        if position is None:
            return ast.Constant(literal), safe
        return (ast.BinOp(position, ast.Add(), ast.Constant(literal)) if literal else position), safe

    def checked(
        self, code: ast.expr, name: str, axis: int, extent: int | ast.expr, loc: Span, first: int = 0
    ) -> ast.expr:
        """An index of what `name` stands for, once it is known to be in range."""
        known = extent if isinstance(extent, int) else None
        at = self.site(bounds_site(self.buffers, name, axis, known, loc, first))
        limit = ast.Constant(extent) if isinstance(extent, int) else extent
        return call(attribute("inside"), code, limit, at=at)

    def index(self, op: ir.Load | ir.Store | ir.Atomic, codes: Sequence[ast.expr]) -> ast.expr:
        """What stands between the brackets of an access."""
        buffer = op.buffer
        access = self.accesses.of(op)
        found: list[ast.expr] = []
        for axis, code in enumerate(codes):
            if self.accesses.in_range(access, axis) != (True, True):
                extent: int | ast.expr | None = (*buffer.shape, *buffer.element)[axis]
                if extent is None:
                    extent = self.extent_of(buffer, axis)
                first = buffer.offset[axis] if axis < len(buffer.offset) else 0
                code = self.checked(code, buffer.name, axis, extent, op.loc, first)
            found.append(code)
        if not found:
            return ast.Constant(None)
        return found[0] if len(found) == 1 else ast.Tuple(found, ast.Load())

    def extent_of(self, buffer: ir.Buffer, axis: int) -> ast.expr:
        shape = ast.Attribute(self.references[buffer], "shape", ast.Load())
        return ast.Subscript(shape, ast.Constant(axis), ast.Load())

    # memory

    def load(self, op: ir.Load) -> None:
        terms = self.take(op.index)
        index = self.index(op, [t.code for t in terms])
        safe = self.accesses.surely_in_range(self.accesses.of(op))
        code = ast.Subscript(self.references[op.buffer], index, ast.Load())
        self.give(op, code, terms, Ordering.READS if safe else Ordering.FAILS)

    def store(self, op: ir.Store) -> None:
        value, *index = [t.code for t in self.take((op.value, *op.index))]
        target = ast.Subscript(self.references[op.buffer], self.index(op, index), ast.Store())
        self.settle()
        self.emit(ast.Assign([target], value))

    def atomic(self, op: ir.Atomic) -> None:
        *index, value = [t.code for t in self.take(op.args)]
        array = self.references[op.buffer]
        if self.may_overflow(op):
            told = (array, ast.Constant(op.prim.name), self.index(op, index), value)
            code = call(attribute("exactly"), *told, at=self.overflow(op))
        else:
            code = method(array, python_name(op.prim), self.index(op, index), value)
        if op.outs and self.uses.count[op.out]:
            self.settle()
            self.bind(op, PendingTerm(code))
        else:
            self.do(code)

    def extent(self, op: ir.Extent) -> None:
        self.give(op, self.extent_of(root_of(op.buffer), op.axis), [])

    # cells and stacks

    def local(self, op: ir.Local) -> None:
        cell = op.out
        assert isinstance(cell.type, Ref)
        content = cell.type.content
        if op.args:
            (term,) = self.take(op.args)
            value = _as_list(term.code) if isinstance(content, Tensor) else term.code
        else:
            zero = constant(ir.Lit(0, element_type(content)))
            value = zero
            if isinstance(content, Tensor):
                value = ast.BinOp(ast.List([zero], ast.Load()), ast.Mult(), ast.Constant(content.count))
        self.settle()
        name = self.env[cell] = self.name(cell.name, self.uses.start[op], cell)
        self.emit(ast.Assign([write(name)], value))

    def get(self, op: ir.Get) -> None:
        cell, *index = op.args
        assert isinstance(cell, ir.Var)
        terms = self.take(index)
        name = self.env[cell]
        code, ordering, shared = read(name), Ordering.READS, isinstance(op.out.type, Tensor)
        if index:
            position, safe = self.component(op, cell, index, [t.code for t in terms])
            code, ordering = ast.Subscript(code, position, ast.Load()), Ordering.READS if safe else Ordering.FAILS
        self.give(op, code, [*terms, PendingTerm(code, ordering, frozenset([name]))], ordering, shared)

    def set(self, op: ir.Set) -> None:
        cell, *index = op.args[:-1]
        assert isinstance(cell, ir.Var)
        value, *indices = [t.code for t in self.take((op.args[-1], *index))]
        name = self.env[cell]
        target = write(name)
        if index:
            target = ast.Subscript(read(name), self.component(op, cell, index, indices)[0], ast.Store())
        elif isinstance(op.args[-1].type, Tensor):
            value = _as_list(value)
        self.settle()
        self.emit(ast.Assign([target], value))

    def new_stack(self, op: ir.NewStack) -> None:
        t = op.out.type
        assert isinstance(t, Stack)
        self.take(op.args)
        name = self.env[op.out] = self.name(op.out.name, self.uses.start[op], op.out)
        self.emit(ast.Assign([write(name)], call(attribute("stack"), ast.Constant(element_type(t).name))))

    def push(self, op: ir.Push) -> None:
        stack, value = self.take(op.args)
        self.do(method(stack.code, "push", value.kept, at=self.site(Site(SiteKind.MEMORY, op.loc))))

    def pop(self, op: ir.Pop) -> None:
        (stack,) = self.take(op.args)
        code = method(stack.code, "pop")
        if self.uses.count[op.out]:
            self.give(op, code, [stack], Ordering.FAILS)
        else:
            self.do(code)

    # control

    def inner(self, region: ir.Region, names: Sequence[str]) -> list[ast.stmt]:
        """The statements of a region, which leaves what it yields in these variables."""
        saved = self.enter()
        self.ops(region)
        terms = self.take(region.yields)
        self.settle()
        self.assign(names, terms)
        return self.leave(saved)

    def carried(self, op: ir.For | ir.While, params: Sequence[ir.Var]) -> list[str]:
        """Names for the values that a loop carries, which hold its results in the end."""
        end = self.uses.end[op]
        found: list[str] = []
        for k, (out, param) in enumerate(zip(op.outs, params, strict=True)):
            same = [out, *([op.body.params[k]] if isinstance(op, ir.While) else [])]
            name = self.name(out.name or param.name, self.uses.start[op], *same, last=end)
            for v in (out, param, *same):
                self.env[v] = name
            found.append(name)
        return found

    def for_(self, op: ir.For) -> None:
        lo, hi, *initial = self.take(op.args)
        self.settle(Ordering.NONE)
        if initial and (lo.ordering or hi.ordering):
            lo, hi = self.keep(lo), self.keep(hi)
        names = self.carried(op, op.carried)
        if not (lo.names | hi.names).isdisjoint(names):
            lo, hi = self.keep(lo), self.keep(hi)
        self.assign(names, initial)
        index = self.env[op.index] = self.name(op.index.name, self.uses.start[op], op.index, last=self.uses.end[op])
        iterations = call(attribute("iterations_back" if op.reverse else "iterations"), lo.code, hi.code)
        body = self.inner(op.body, names)
        self.emit(ast.For(write(index), iterations, body or [ast.Pass()], []))

    def while_(self, op: ir.While) -> None:
        initial = self.take(op.args)
        self.settle(Ordering.NONE)
        names = self.carried(op, op.condition.params)
        self.assign(names, initial)
        saved = self.enter()
        self.ops(op.condition)
        (condition,) = self.take(op.condition.yields)
        self.settle()
        before = self.leave(saved)
        body = self.inner(op.body, names)
        test = call(attribute("goes_on"))
        if before:
            stop: ast.stmt = ast.If(ast.UnaryOp(ast.Not(), condition.code), [ast.Break()], [])
            body = [*before, stop, *body]
        else:
            test = ast.BoolOp(ast.And(), [test, condition.code])
        self.emit(ast.While(test, body or [ast.Pass()], []))

    def if_(self, op: ir.If) -> None:
        (condition,) = self.take(op.args)
        self.settle(Ordering.NONE)
        names = [self.name(out.name, self.uses.end[op], out) for out in op.outs]
        self.env.update(zip(op.outs, names, strict=True))
        then, orelse = self.inner(op.then, names), self.inner(op.orelse, names)
        if then or not orelse:
            self.emit(ast.If(condition.code, then or [ast.Pass()], orelse))
        else:
            self.emit(ast.If(ast.UnaryOp(ast.Not(), condition.code), orelse, []))

    # messages

    def check(self, op: ir.Check) -> None:
        terms = self.take(op.args)
        if op.kind is ir.FaultKind.BOUNDS:
            extent = op.args[2]
            known = int(extent.value) if isinstance(extent, ir.Lit) else terms[2].code
            self.do(self.checked(terms[1].code, op.text, op.axis, known, op.loc, first_index(op)))
            return
        shown = [t.code for t in terms[1 : 1 + len(shown_by(op))]]
        at = ast.Constant(self.site(fault_site(op)))
        if op.args[0] == ir.false:
            self.do(call(attribute("fail"), at, *shown))
        else:
            self.do(call(attribute("check"), terms[0].code, at, *shown))

    def print(self, op: ir.Print) -> None:
        shown = [t.code for t in self.take(op.args)]
        self.do(call(attribute("print"), ast.Constant(self.site(print_site(op))), *shown))


def _checked(may_fail: bool) -> Ordering:
    return Ordering.FAILS if may_fail else Ordering.NONE


def _as_list(code: ast.expr) -> ast.expr:
    """A tuple of components as a list, which can be assigned one by one."""
    return ast.List(code.elts if isinstance(code, ast.Tuple) else [ast.Starred(code, ast.Load())], ast.Load())


WRITERS: dict[type[ir.Op], Any] = {
    ir.Prim: _Writer.prim,
    ir.Load: _Writer.load,
    ir.Store: _Writer.store,
    ir.Atomic: _Writer.atomic,
    ir.Extent: _Writer.extent,
    ir.For: _Writer.for_,
    ir.While: _Writer.while_,
    ir.If: _Writer.if_,
    ir.Local: _Writer.local,
    ir.Get: _Writer.get,
    ir.Set: _Writer.set,
    ir.NewStack: _Writer.new_stack,
    ir.Push: _Writer.push,
    ir.Pop: _Writer.pop,
    ir.Check: _Writer.check,
    ir.Print: _Writer.print,
}
