"""The emitter: the state of lowering one kernel, and the functions that turn values into IR.

Every part of the front end, and every built-in, is a function of the emitter: it evaluates syntax by `evaluate` and
`reference`, emits operations by `prim` and similar methods, and reports errors by `error`. The handlers of each class
of syntax nodes are in tables (`Handlers`), which `handlers` builds from the modules of functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tinote.compiler.captures import Capture
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.literals import Literals
from tinote.compiler.frontend.scopes import Anchor, Completion, ConstantBinding, FunctionFrame, ParallelNest, Scope
from tinote.compiler.frontend.sparse_elements import SparsityState
from tinote.compiler.frontend.values import (
    POISON,
    Declaration,
    GeneratorCall,
    Place,
    Poison,
    StaticTensor,
    StructValue,
    Value,
    is_number,
)
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import buffer_of, constant_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.compiler.signature import Warned
from tinote.config import Config
from tinote.errors import (
    CompilationError,
    FieldError,
    KernelSyntaxError,
    KernelTypeError,
    NotAvailableError,
    Note,
    TinoteError,
    shown,
)
from tinote.ir import primitives as p
from tinote.ir.build import Builder, OpenRegion
from tinote.ir.nodes import Atom, Buffer, Lit, Var, literal_indices
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import (
    Scalar,
    Tensor,
    Type,
    element_type,
    indices_of,
    scalar_named,
    shape_of,
    strengthen,
    u1,
    weak_float,
    weak_int,
    with_element,
)
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.ir.units import Unit


class Silenced(Exception):
    """Abandons a statement whose cause has been reported already."""


class Handlers(NamedTuple):
    """The handlers of each class of syntax nodes: functions of the emitter and the node.

    `control`: statements after which control may go elsewhere. They also get the statements that follow, and whether
    nothing of the loop's iteration (or the function) follows these; they say how control ends, or `None` when it goes
    on with what follows.
    """

    expressions: Expressions
    statements: Statements
    control: Control


#: Bytes that one local vector or matrix may take. Chosen, not measured.
MAX_ARRAY_BYTES = 64 << 10
#: A chain such as `a + b + … + z`, which is as deep as it is long, is evaluated from its innermost expression outwards
#: when it has more terms than this, so that Python's recursion limit does not count them. Chosen, not measured.
_MAX_NESTED_SPINE = 16
#: The part of an expression that is evaluated first and unconditionally, by class of node.
_FIRST = {
    ast.BinOp: "left",
    ast.Compare: "left",
    ast.UnaryOp: "operand",
    ast.Attribute: "value",
    ast.Subscript: "value",
    ast.Call: "func",
}
#: Classes of nodes that evaluate their first part as a reference, not as a value.
_REFERRING = (ast.Attribute, ast.Subscript, ast.Call)


class Emitter:
    """Emits the IR of one kernel. See the module's docstring."""

    def __init__(self, config: Config, handlers: Handlers) -> None:
        self.config = config
        self.handlers = handlers
        self.fp: Scalar = scalar_named(config.default_fp)
        self.ip: Scalar = scalar_named(config.default_ip)
        self.defaults = Defaults(self.fp, self.ip)
        self.b = Builder(self.defaults)
        self.literals = Literals(self.b, self.fp, self.ip, self.error)
        self.frame: FunctionFrame
        self.scope: Scope
        self.errors: list[TinoteError] = []
        #: the last error of a captured object that was given a place in the kernel
        self.placed: TinoteError | None = None
        #: error count, including repeats where code is lowered again
        self.failures = 0
        self.warnings: list[Warned] = []
        #: the units of parameters and of annotated values
        self.units: dict[Var, Unit] = {}
        self.captures: dict[tuple[CaptureKind, int, Any], Capture] = {}
        #: run-time regions open around the code at hand; 0 is the kernel's outermost level
        self.depth = 0
        self.nest: ParallelNest | None = None
        self.nests = 0
        self.top: Anchor
        self.launch_seed: Var | None = None
        self.top_draws: tuple[Atom, Var] | None = None
        #: what is known of sparse fields
        self.sparse = SparsityState()
        #: fields of floats through which no derivative flows until the block ends
        self.stopped: frozenset[Buffer] = frozenset()
        #: whether the value of the current call is used
        self.wanted = True
        #: the start of the current statement, and the number of run-time regions open there
        self.statement: tuple[Anchor, int]
        #: the number of loop iterations unrolled so far
        self.unrolled = 0
        #: inside `static(...)`: calls of plain Python functions are made at compile time
        self.in_static = 0
        #: the components of the tensors made here
        self.packed: dict[Var, tuple[Atom, ...]] = {}
        #: the values of evaluated annotations, by the identity of their nodes, which the functions' trees keep alive
        self.annotations: dict[int, Any] = {}
        #: the options that `loop_config` set for the next loop
        self.loop_options: dict[str, Any] = {}
        #: whether equal captures always give the same function: no Python function of the user ran
        self.reproducible = True
        #: the sources of plain functions, kept alive since the identities of their nodes and captures are in use
        self.sources: dict[int, FunctionSource] = {}
        #: the recursion that is being lowered
        self.recursion: Any = None
        #: the functions known to be recursive
        self.recursive: set[Any] = set()
        #: errors in plain functions that explain why Python cannot call them
        self.explained: list[TinoteError] = []
        #: an expression evaluated ahead of time, and its value
        self._ready: tuple[ast.expr, Any] | None = None

    # syntax

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; never a `Place`."""
        if self._ready is not None and self._ready[0] is node:
            return self._take()
        saved, self.b.loc = self.b.loc, self.span(node)
        try:
            return self.force(self._handle(node))
        except TinoteError as error:
            raise self.placed_here(error) from None
        finally:
            self.b.loc = saved

    def reference(self, node: ast.expr) -> Any:
        """The value of an expression, or the `Place` it denotes."""
        if self._ready is not None and self._ready[0] is node:
            return self._take()
        saved, self.b.loc = self.b.loc, self.span(node)
        try:
            found = self._handle(node)
            return self.force(found) if found is POISON else found
        except TinoteError as error:
            raise self.placed_here(error) from None
        finally:
            self.b.loc = saved

    def _handle(self, node: ast.expr) -> Any:
        handler = self.handlers.expressions.get(type(node))
        if handler is None:
            self.unsupported(f"this expression ({type(node).__name__})")
        spine = _left_spine(node, None if self._ready is None else self._ready[0])
        if len(spine) <= _MAX_NESTED_SPINE:
            return handler(self, node)
        wanted, self.wanted = self.wanted, True
        try:
            for above, below in zip(spine[-2::-1], spine[:0:-1], strict=True):
                find = self.reference if isinstance(above, _REFERRING) else self.evaluate
                self._ready = below, find(below)
            self.wanted = wanted
            return handler(self, node)
        finally:
            self.wanted, self._ready = wanted, None

    def _take(self) -> Any:
        """The value that `_handle` computed for an expression ahead of the one that contains it."""
        assert self._ready is not None
        found, self._ready = self._ready[1], None
        return found

    # errors

    def span(self, node: ast.AST) -> Span:
        """The source location of a node; for a function of the language, that of its call."""
        frame = self.frame
        if frame.builtin:
            assert frame.inlined_at is not None
            return frame.inlined_at
        return Span(
            frame.source.file,
            node.lineno,  # type: ignore[attr-defined]
            node.col_offset,  # type: ignore[attr-defined]
            node.end_lineno,  # type: ignore[attr-defined]
            node.end_col_offset,  # type: ignore[attr-defined]
            frame.inlined_at,
        )

    def error(
        self,
        message: str,
        hint: str = "",
        node: ast.AST | None = None,
        kind: type[CompilationError] = KernelTypeError,
        notes: Sequence[Note] = (),
    ) -> NoReturn:
        """Raise a located error about `node` or the current expression."""
        raise kind(message, self.b.loc if node is None else self.span(node), hint, notes)

    def unsupported(self, what: str, hint: str = "", node: ast.AST | None = None) -> NoReturn:
        """Raise an error: the kernel language does not have this."""
        self.error(f"{what} cannot be used in a kernel", hint, node, KernelSyntaxError)

    def warn(self, message: str, hint: str = "") -> None:
        """Warn about the current expression: it compiles, but may surprise. Once per place."""
        found = Warned(message, self.b.loc, hint)
        if found not in self.warnings:
            self.warnings.append(found)

    def report(self, error: TinoteError) -> None:
        """Record an error, to be raised at the end."""
        self.failures += 1
        if not any(e.message == error.message and e.span == error.span for e in self.errors):
            self.errors.append(error)

    def placed_here(self, error: TinoteError) -> TinoteError:
        """An exception of a captured object, as an error about the current expression. The place where the object was
        made becomes a note, unless there is one. Errors about the kernel stay what they are.
        """
        about_the_kernel = isinstance(error, CompilationError) and not isinstance(error, FieldError)
        if about_the_kernel or error is self.placed:
            return error
        known = error.span.line > 0 and not error.notes and not isinstance(error, NotAvailableError)
        made = [Note("it is made here", error.span)] if known else []
        self.placed = type(error)(error.message, self.b.loc, error.hint, [*made, *error.notes])
        return self.placed

    def at(self, node: ast.AST) -> AbstractContextManager[None]:
        """Operations emitted and errors raised within refer to `node`."""
        return self.at_span(self.span(node))

    @contextmanager
    def at_span(self, span: Span) -> Iterator[None]:
        """Operations emitted and errors raised within refer to this span."""
        saved, self.b.loc = self.b.loc, span
        try:
            yield
        finally:
            self.b.loc = saved

    # regions and scopes

    @contextmanager
    def region(self, *params: Var) -> Iterator[OpenRegion]:
        """A region that runs under a run-time decision, with a scope of its own."""
        self.depth += 1
        try:
            with self.b.region(*params) as opened:
                yield opened
        finally:
            self.depth -= 1

    @contextmanager
    def block(self, what: str) -> Iterator[Scope]:
        """A scope; the names assigned in it end with it."""
        outer, stopped = self.scope, self.stopped
        self.scope = Scope(outer)
        try:
            yield self.scope
        finally:
            for name, binding in self.scope.names.items():
                self.frame.ended.setdefault(name, Declaration(what, binding.span))
            self.scope, self.stopped = outer, stopped

    def here(self) -> Anchor:
        """The present end of the innermost open region."""
        return Anchor(self.b.innermost)

    def splice(self, opened: OpenRegion) -> None:
        """Put the operations of a region that has just been closed into the current one."""
        for op in opened.body:
            self.b.emit(op)

    def cell(self, t: Scalar | Tensor, initial: Atom | None = None, name: str = "") -> Var:
        return self.b.local(t, initial, name)

    def bind(self, name: str, value: Any, what: str = "") -> None:
        """Bind a name to a value in the current scope."""
        self.scope.names[name] = ConstantBinding(name, value, self.b.loc, what, self.depth)
        self.show(name, value)

    def show(self, name: str, value: Any) -> None:
        """In plain Python, make a value a local variable here, so that debuggers can stop and show it, even where the
        code needs no variable.
        """
        if self.config.arch == "python" and isinstance(value, Value) and not self.frame.builtin:
            if isinstance(value.atom, Lit) or value.atom.name != name:
                self.b.local(value.type, value.atom, name)

    # values

    def force(self, front: Any) -> Any:
        """The value of a place; any other value unchanged."""
        if type(front) is Value:
            return front
        if isinstance(front, Place):
            t = front.type
            if isinstance(t, Tensor):
                check_size(self, t.shape, t.dtype)
            return front.load(self.b)
        if isinstance(front, Poison):
            raise Silenced
        if isinstance(front, StructValue):
            return front.map(self.force)
        if isinstance(front, tuple | list) and type(front) in (tuple, list) and not self.is_static(front):
            return type(front)(self.force(item) for item in front)
        return front

    def static_tensor(self, front: Any) -> StaticTensor | None:
        """A vector or matrix known at compile time, or `None`."""
        if isinstance(front, StaticTensor):
            return front
        constant = constant_of(front)
        return None if constant is None else StaticTensor.nested(constant)

    def is_static(self, front: Any) -> bool:
        """Whether a value is wholly known at compile time."""
        if isinstance(front, tuple | list):
            return all(self.is_static(item) for item in front)
        if isinstance(front, dict):
            return all(self.is_static(key) for key in front)
        return not isinstance(front, Value | Place | Poison | StructValue | GeneratorCall)

    def is_value(self, front: Any) -> bool:
        """Whether `as_value` accepts it."""
        if isinstance(front, tuple | list):
            return bool(front) and all(self.is_value(item) for item in front)
        return isinstance(front, Value | Place | StaticTensor) or is_number(front) or constant_of(front) is not None

    def as_value(self, front: Any, like: Scalar | None = None) -> Value:
        """A value as a run-time value. `like`: the type of the other operand of a constant vector, so that it is not
        rounded on the way.
        """
        if isinstance(front, Value):
            return front
        if isinstance(front, bool):
            return Value(Lit(front, u1))
        if isinstance(front, int):
            if front.bit_length() > 1023:
                self.error(f"{shown(front)} fits no number type")
            return Value(Lit(front, weak_int))
        if isinstance(front, float):
            return Value(Lit(front, weak_float))
        if isinstance(front, Place | Poison):
            return self.as_value(self.force(front), like)
        tensor = self.static_tensor(front)
        if tensor is not None:
            return self.pack(tensor.components, tensor.shape, like=like)
        if isinstance(front, tuple | list):
            return self.tensor_of(front, like=like)
        buffer = buffer_of(front)
        if buffer is not None:
            index = ", ".join("ijklmnpqrstu"[: buffer.rank]) or "None"
            self.error(f"field `{buffer.name}` is used as a number", f"read one element: `{buffer.name}[{index}]`")
        if isinstance(front, str):
            self.error("text cannot be used as a number", "kernels take text in `print`, `assert` and f-strings only")
        way = "loop over it: `for item in generator(…)`" if isinstance(front, GeneratorCall) else ""
        self.error(
            f"{describe(front)} cannot be used as a value",
            way or "numbers, vectors and matrices have values in a kernel",
        )

    def tensor_of(self, rows: Sequence[Any], dtype: Scalar | None = None, like: Scalar | None = None) -> Value:
        """A vector from numbers, or a matrix from rows."""
        items = [self.force(r) for r in rows]
        if not items:
            self.error("an empty list is not a vector")
        if all(
            isinstance(r, tuple | list | StaticTensor)
            or (isinstance(r, Value) and r.shape)
            or constant_of(r) is not None
            for r in items
        ):
            parts = [self.components(r) for r in items]
            if len({len(r) for r in parts}) > 1:
                self.error(f"the rows of a matrix have different lengths: {', '.join(str(len(r)) for r in parts)}")
            return self.pack([c for r in parts for c in r], (len(parts), len(parts[0])), dtype, like)
        return self.pack(items, (len(items),), dtype, like)

    def pack(
        self, components: Sequence[Any], shape: tuple[int, ...], dtype: Scalar | None = None, like: Scalar | None = None
    ) -> Value:
        """A tensor of `shape` from its components in row-major order. Its type is `dtype`, or what the components
        promote to.
        """
        check_size(self, shape, dtype)
        values = [self.as_value(c) for c in components]
        for v in values:
            if v.shape:
                self.error(
                    f"{describe(v)} stands where one number is expected",
                    "every component of a vector or matrix is one number",
                )
        t = dtype or self.literals.promoted([v.dtype for v in values], like)
        check_size(self, shape, t)
        atoms = [self.literals.fitting(v.atom, t) if isinstance(v.atom, Lit) else v.atom for v in values]
        packed = self.b.pack(atoms, Tensor(t, shape))
        if all(atom.type is t for atom in atoms):
            self.packed[packed] = tuple(atoms)
        return Value(packed)

    def components(self, front: Any) -> list[Any]:
        """The components of a vector or matrix in row-major order; items of a list or tuple."""
        front = self.force(front)
        if isinstance(front, tuple | list):
            return [self.force(item) for item in front]
        tensor = self.static_tensor(front)
        if tensor is not None:
            return list(tensor.components)
        value = self.as_value(front)
        if not value.shape:
            self.error(f"{describe(value)} has no components")
        return [self.component(value, index) for index in indices_of(value.shape)]

    def component(self, value: Value, index: tuple[int, ...]) -> Value:
        """One component of a tensor."""
        packed = self.packed.get(value.atom)  # type: ignore[arg-type]
        if packed is not None:
            return Value(packed[sum(k * prod(value.shape[axis + 1 :]) for axis, k in enumerate(index))])
        return Value(self.b.extract(value.atom, *literal_indices(index)))

    def shape(self, front: Any) -> tuple[int, ...]:
        """The shape of a value: `()` for a number."""
        if isinstance(front, Value | StaticTensor):
            return front.shape
        if isinstance(front, Place):
            return shape_of(front.type)
        if is_number(front):
            return ()
        tensor = self.static_tensor(front)
        return tensor.shape if tensor is not None else self.as_value(front).shape

    # operations

    def prim(self, prim: Primitive, *operands: Any, type: Scalar | Tensor | None = None, name: str = "") -> Value:
        """Emit a primitive; types promote, scalars broadcast. Located errors for shapes and types
        that do not fit.
        """
        operands = tuple([self.force(o) for o in operands])
        strong = [o.dtype for o in operands if isinstance(o, Value) and o.dtype.bits]
        like = self.literals.promoted(strong) if strong else None
        values = [self.as_value(o, like) for o in operands]
        types: tuple[Type, ...] = tuple([v.type for v in values])
        if type is None:
            assert prim.rule is not None, prim
            try:
                found = prim.rule(types, self.defaults)
            except TypeError as error:
                _mismatch(self, values, str(error))
            assert isinstance(found, Scalar | Tensor)
            type = with_element(found, strengthen(element_type(found), self.fp, self.ip))
            self.literals.check_operands(prim, types, [v.atom for v in values], type, self.defaults)
        return Value(self.b.prim(prim, *[v.atom for v in values], type=type, name=name))

    def cast(self, front: Any, t: Scalar) -> Value:
        """A number, or every component of a tensor, converted to `t` as by a call of the type's name: an integer
        constant must fit.
        """
        value = self.as_value(front, t)
        if isinstance(value.atom, Lit):
            return Value(self.literals.fitting(value.atom, t))
        return Value(self.b.cast(value.atom, with_element(value.type, t)))

    def measured(self, front: Any, unit: Unit | None) -> Any:
        """A number or tensor that is annotated with a unit, if there is one: machine code has no units."""
        if unit is None or not self.is_value(front):
            return front
        value = self.as_value(front, self.fp)
        noted = self.b.prim(p.cast, value.atom, type=value.type)
        self.units[noted] = unit
        return Value(noted)


def check_size(e: Emitter, shape: tuple[int, ...], dtype: Scalar | None = None) -> None:
    """Refuse a local vector or matrix that is too large for a thread to keep."""
    size = prod(shape) * (1 if dtype is None else dtype.size)
    if size > MAX_ARRAY_BYTES:
        of = f" {dtype}" if dtype is not None else " numbers"
        e.error(
            f"a local array of {' by '.join(f'{n:,}' for n in shape)}{of} is larger than 64 kB",
            "large arrays are fields: `ti.field(…)`",
        )


def _mismatch(e: Emitter, values: Sequence[Value], reason: str) -> NoReturn:
    shaped = [v for v in values if v.shape]
    if len({v.shape for v in shaped}) > 1:
        both = " and ".join(describe(v) for v in shaped)
        e.error(
            f"the shapes of {both} do not fit",
            "vectors and matrices are combined component by component; `@` is the matrix product",
        )
    e.error(reason[:1].lower() + reason[1:], "convert with `ti.cast` or `int(…)` first" if "integers" in reason else "")


def _left_spine(node: ast.expr, ready: ast.expr | None) -> list[ast.expr]:
    """The left spine of an expression: the part that it evaluates first, the first part of that, … until one that is
    `ready`.
    """
    found = [node]
    while True:
        first = _FIRST.get(type(node))
        if first is None or node is ready:
            return found
        node = getattr(node, first)
        if isinstance(node, ast.BoolOp):
            return found  # some of these use only the truth value
        found.append(node)


Expressions = dict[type[ast.expr], Callable[[Emitter, Any], Any]]
Statements = dict[type[ast.stmt], Callable[[Emitter, Any], None]]
Control = dict[type[ast.AST], Callable[[Emitter, Any, list[ast.stmt], bool], Completion | None]]
