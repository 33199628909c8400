"""Values of kernel expressions at compile time.

An expression evaluates to any Python object. Plain objects (numbers, strings, fields, functions, tuples and lists of
values) are compile-time values and stand for themselves; the classes here represent run-time values, places that can be
written, and iteration domains. `Any` in a signature means such a value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import AddsAt, StructInfo, is_ours
from tinote.compiler.pysource.origins import is_known_by_name
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Buffer, Lit, Var, literal_indices
from tinote.ir.primitives import Primitive, surrogate
from tinote.ir.sparsity import Sparsity
from tinote.ir.types import Ref, Scalar, Tensor, indices_of, shape_of
from tinote.source import Span


class Value:
    """A number, vector or matrix that exists at run time."""

    __slots__ = ("atom",)

    def __init__(self, atom: Atom) -> None:
        self.atom = atom

    @property
    def type(self) -> Scalar | Tensor:
        t = self.atom.type
        assert isinstance(t, Scalar | Tensor)
        return t

    @property
    def dtype(self) -> Scalar:
        t = self.type
        return t.dtype if isinstance(t, Tensor) else t

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.atom.type)

    def __repr__(self) -> str:
        return f"<{self.type!r}>"


class StaticTensor:
    """A vector or matrix of Python numbers, known at compile time; `components` in row-major order."""

    __slots__ = ("components", "shape")

    def __init__(self, components: Sequence[float], shape: tuple[int, ...]) -> None:
        assert len(components) == prod(shape)
        self.components = tuple(components)
        self.shape = shape

    @staticmethod
    def nested(rows: Any) -> StaticTensor:
        """From nested tuples of one or two levels."""
        if rows and isinstance(rows[0], tuple):
            return StaticTensor([x for row in rows for x in row], (len(rows), len(rows[0])))
        return StaticTensor(rows, (len(rows),))

    def map(self, f: Callable[..., Any], *others: StaticTensor | float) -> StaticTensor:
        """`f` on every component and the corresponding ones of `others`; plain numbers are repeated."""
        columns = [o.components if isinstance(o, StaticTensor) else (o,) * len(self.components) for o in others]
        return StaticTensor([f(*row) for row in zip(self.components, *columns, strict=True)], self.shape)

    def __repr__(self) -> str:
        return repr(list(self.components))


class Poison:
    """The value of a name after an error in its definition: using it causes no further errors."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unknown after an error>"


POISON = Poison()


class ArrayValue:
    """An array parameter inside the kernel: memory known only at launch. `clamps`: an index out of range means the
    nearest one in range.
    """

    __slots__ = ("buffer", "clamps")

    def __init__(self, buffer: Buffer, clamps: bool = False) -> None:
        self.buffer = buffer
        self.clamps = clamps

    def __tinote_buffer__(self) -> Buffer:
        return self.buffer


class StructValue:
    """A struct: a value for each member, or, where it can be assigned, a place. `info`: its type, if it has
    one with a name.
    """

    __slots__ = ("info", "members")

    def __init__(self, members: dict[str, Any], info: StructInfo | None = None) -> None:
        self.members = members
        self.info = info

    def map(self, f: Callable[[Any], Any]) -> StructValue:
        """`f` of every member."""
        return StructValue({name: f(member) for name, member in self.members.items()}, self.info)

    def shown(self, spec: str) -> list[Any]:
        """The parts of a message that shows the struct, each number with a format."""
        parts = [x for name, m in self.members.items() for x in (", ", f"{name}: ", Formatted(m, spec))]
        return ["{", *parts[1:], "}"]

    def is_place(self) -> bool:
        """Whether the struct can be assigned."""
        return any(m.is_place() if isinstance(m, StructValue) else isinstance(m, Place) for m in self.members.values())


class ObjectValue(StructValue):
    """An object that a kernel makes, while `__init__` runs: an assignment to an attribute makes a member."""

    __slots__ = ()


class PackValue(StructValue):
    """An argument pack: each member as an argument of the kernel. It is passed on unchanged. `adds_at`: the functions
    that add entries to it, if it collects entries.
    """

    __slots__ = ("adds_at",)

    def __init__(self, members: dict[str, Any], adds_at: AddsAt | None = None) -> None:
        super().__init__(members)
        self.adds_at = adds_at

    def map(self, f: Callable[[Any], Any]) -> PackValue:
        """`f` of every member."""
        return PackValue({name: f(member) for name, member in self.members.items()}, self.adds_at)


class BoundMethod(NamedTuple):
    """A method of a vector, matrix or number, looked up and not yet called."""

    owner: Any
    name: str


class UnboundMethod(NamedTuple):
    """A method of vectors and matrices, looked up in their class `owner`: the first argument is the vector."""

    owner: str
    name: str


class Place:
    """Something that can be assigned: a local cell, an element of a field, a component of either."""

    __slots__ = ()
    #: whether other iterations may reach it, so that `+=` must be atomic
    shared = False

    @property
    def type(self) -> Scalar | Tensor:
        raise NotImplementedError

    def load(self, b: Builder) -> Value:
        """Load its present value."""
        raise NotImplementedError

    def store(self, b: Builder, value: Atom) -> None:
        raise NotImplementedError

    def component(self, indices: tuple[Atom, ...]) -> Place:
        """One component of a vector or matrix that is held here."""
        raise NotImplementedError

    def combine(self, b: Builder, prim: Primitive, value: Value, old: bool) -> Value | None:
        """`place = prim(place, value)`, atomically where others may reach it; the value it held before when `old`."""
        before = self.load(b)
        self.store(b, b.prim(prim, before.atom, value.atom))
        return before if old else None


class CellPlace(Place):
    """A local variable, or one component of it. `owner` is the variable's record in its scope."""

    __slots__ = ("index", "owner", "ref")

    def __init__(self, ref: Var, index: tuple[Atom, ...] = (), owner: Any = None) -> None:
        self.ref = ref
        self.index = index
        self.owner = owner

    @property
    def type(self) -> Scalar | Tensor:
        assert isinstance(self.ref.type, Ref)
        content = self.ref.type.content
        return content.dtype if self.index and isinstance(content, Tensor) else content

    def load(self, b: Builder) -> Value:
        return Value(b.get(self.ref, *self.index, name="" if self.index else self.ref.name))

    def store(self, b: Builder, value: Atom) -> None:
        b.set(self.ref, value, *self.index)

    def component(self, indices: tuple[Atom, ...]) -> CellPlace:
        return CellPlace(self.ref, indices, self.owner)


class MemoryPlace(Place):
    """An element of a buffer, or one component of it. `constant`: no derivative flows through values read from it."""

    __slots__ = ("buffer", "components", "constant", "index")
    shared = True

    def __init__(
        self, buffer: Buffer, index: tuple[Atom, ...], components: tuple[Atom, ...] = (), constant: bool = False
    ) -> None:
        self.buffer = buffer
        self.index = index
        self.components = components
        self.constant = constant

    @property
    def type(self) -> Scalar | Tensor:
        return self.buffer.dtype if self.components else self.buffer.element_type

    def load(self, b: Builder) -> Value:
        value = b.load(self.buffer, (*self.index, *self.components))
        return Value(b.prim(surrogate, value, Lit(0.0, self.buffer.dtype)) if self.constant else value)

    def store(self, b: Builder, value: Atom) -> None:
        b.store(self.buffer, (*self.index, *self.components), value)

    def component(self, indices: tuple[Atom, ...]) -> MemoryPlace:
        return MemoryPlace(self.buffer, self.index, indices, self.constant)

    def combine(self, b: Builder, prim: Primitive, value: Value, old: bool) -> Value | None:
        before = b.atomic(prim, self.buffer, (*self.index, *self.components), value.atom, old=old)
        return None if before is None else Value(before)


class PartPlace(Place):
    """Several components of a vector or matrix that are read and written together: `v.xz`, `v[1:3]`, `m[:, 0]`.
    `positions` are their indices in row-major order of `shape`; where `base` is itself such a part, known ones.
    """

    __slots__ = ("base", "positions", "shape")

    def __init__(self, base: Place, positions: Sequence[tuple[Atom, ...]], shape: tuple[int, ...]) -> None:
        assert len(positions) == prod(shape)
        self.base = base
        self.positions = tuple(positions)
        self.shape = shape

    @property
    def shared(self) -> bool:  # type: ignore[override]
        return self.base.shared

    @property
    def type(self) -> Tensor:
        base = self.base.type
        return Tensor(base.dtype if isinstance(base, Tensor) else base, self.shape)

    def parts(self) -> list[Place]:
        return [self.base.component(position) for position in self.positions]

    def load(self, b: Builder) -> Value:
        return Value(b.pack([part.load(b).atom for part in self.parts()], self.type))

    def store(self, b: Builder, value: Atom) -> None:
        for index, part in zip(indices_of(self.shape), self.parts(), strict=True):
            part.store(b, b.extract(value, *literal_indices(index)))

    def component(self, indices: tuple[Atom, ...]) -> Place:
        flat = 0
        for index, extent in zip(indices, self.shape, strict=True):
            assert isinstance(index, Lit), "a run-time index into a part is refused before"
            flat = flat * extent + int(index.value)
        return self.base.component(self.positions[flat])

    def combine(self, b: Builder, prim: Primitive, value: Value, old: bool) -> Value | None:
        found: list[Atom] = []
        for index, part in zip(indices_of(self.shape), self.parts(), strict=True):
            component = Value(b.extract(value.atom, *literal_indices(index))) if value.shape else value
            before = part.combine(b, prim, component, old)
            if before is not None:
                found.append(before.atom)
        return Value(b.pack(found, self.type)) if old else None


class IndexRange(NamedTuple):
    """`range(lo, hi, step)` with bounds that may be known only at run time."""

    lo: Any
    hi: Any
    step: Any = 1


class NdRange(NamedTuple):
    """The product of several ranges, the last one fastest."""

    axes: tuple[tuple[Any, Any], ...]


class FieldDomain(NamedTuple):
    """All indices of a field or array."""

    buffer: Buffer


class SparseDomain(NamedTuple):
    """The active cells of a sparse field or level."""

    sparsity: Sparsity


class Grouped(NamedTuple):
    """A domain whose index is one vector."""

    domain: NdRange | FieldDomain | SparseDomain | StaticSequence


class GeneratorCall:
    """A call of a generator, which a loop inlines. `scope`: that of a function defined in a kernel."""

    __slots__ = ("arguments", "scope", "source")

    def __init__(self, source: FunctionSource, arguments: dict[str, Any], scope: Any) -> None:
        self.source = source
        self.arguments = arguments
        self.scope = scope


class StaticSequence(NamedTuple):
    """An iterable in `static(...)`: the loop over it is unrolled."""

    items: tuple[Any, ...]


class Text(NamedTuple):
    """An f-string: literal texts and values, in order."""

    parts: tuple[Any, ...]


class Formatted(NamedTuple):
    """A value in a `Text`, with a format specification."""

    value: Any
    spec: str


def is_fixed(callee: Any) -> bool:
    """Whether a call of one of Python's own functions gives equal results for equal numbers and strings."""
    if isinstance(getattr(callee, "__self__", None), str):
        return True
    return callee is not id and getattr(callee, "__module__", None) in ("builtins", "math", "_operator")


def is_plain(front: Any) -> bool:
    """Whether a compile-time value is numbers, texts, types of these, and containers of such."""
    if isinstance(front, dict):
        return is_plain(list(front)) and is_plain(list(front.values()))
    if isinstance(front, tuple | list | set):
        return all(is_plain(item) for item in front)
    return front is None or type(front) in (bool, int, float, str, range) or is_fixed(front)


def is_known_by_class(callee: Any, args: Sequence[Any]) -> bool:
    """Whether `isinstance` asks something of this package's or Python's own, for such classes."""
    if callee is not isinstance or len(args) != 2:
        return False
    classes = args[1] if isinstance(args[1], tuple) else getattr(args[1], "__args__", (args[1],))
    return all(isinstance(one, type) and is_known_by_name(one) for one in (type(args[0]), *classes))


#: Operations that Python decides by an object's class alone, or by methods that few classes have.
_ASK_THE_CLASS = frozenset(
    [
        *(operator.eq, operator.lt, operator.le, operator.gt, operator.ge, operator.contains),
        *(bool, iter, format, str, repr, ascii, isinstance, issubclass, type, id),
    ]
)
_ANSWERS = frozenset(
    f"__{name}__"
    for name in (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "contains",
        "bool",
        "len",
        "iter",
        "getitem",
        "str",
        "repr",
        "format",
    )
)


def is_settled(function: Callable[..., Any], constants: Sequence[Any]) -> bool:
    """Whether a function of these constants always gives the same result."""
    if not is_fixed(function) and function is not id:
        return False
    by_class = function in _ASK_THE_CLASS or isinstance(getattr(function, "__self__", None), str)
    return all(_has_no_answers(c) if by_class else is_plain(c) for c in constants)


def _has_no_answers(front: Any) -> bool:
    """Whether an object's class does not override comparison, truth and text, or is one of ours."""
    if isinstance(front, dict):
        return _has_no_answers(list(front)) and _has_no_answers(list(front.values()))
    if isinstance(front, tuple | list | set | frozenset):
        return all(_has_no_answers(item) for item in front)
    if is_plain(front) or isinstance(front, type | ModuleType | FunctionType | MethodType):
        return True
    return all(
        base.__module__.partition(".")[0] in ("builtins", "enum", "numpy", "tinote") or _ANSWERS.isdisjoint(vars(base))
        for base in type(front).__mro__
    )


def with_items(sequence: Any, items: Iterable[Any]) -> Any:
    """A list, tuple or named tuple of the same kind with other items."""
    kind = type(sequence)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def has_getitem(candidate: Any) -> bool:
    """Whether an object is indexed through a `__getitem__` written in Python."""
    kind = type(candidate)
    return isinstance(getattr(kind, "__getitem__", None), FunctionType) and not is_ours(kind)


def is_number(candidate: Any) -> bool:
    """Whether a value is a Python number, truth values included."""
    return isinstance(candidate, int | float)


class Declaration(NamedTuple):
    """The origin of a name, for messages."""

    what: str
    span: Span
