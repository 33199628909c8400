"""The nodes of the IR: variables, literals, memory, operations, regions, functions. Hierarchical, typed, static single assignment.

    atom      = Var | Lit
    region    = (params) { op* } yields atom*
    function  = name, region                               its parameters are scalars; its yields are what the kernel returns
    op        = Prim      v = primitive a…                  arithmetic, comparison, select, maths, cast, pack, extract, insert, random
              | Load      v = buffer[a…]                    one element, or one component when component indices follow
              | Store     buffer[a…] = a
              | Atomic    v? = buffer[a…] primitive= a      the old value
              | Extent    v = shape of buffer along an axis
              | For       v… = for i in lo..hi carrying a…  region(i, carried…) yields carried…
              | While     v… = while carrying a…            condition(carried…) yields truth; body(carried…) yields carried…
              | If        v… = if a: region yields v… else region yields v…
              | Local     ref = cell [initial a]            | Get v = ref[a…]   | Set ref[a…] = a
              | NewStack  stack = up to a values            | Push stack, a     | Pop v = stack
              | Check     stop with a located fault unless a
              | Print     text and a…
              | Task      serial or parallel piece of a launch (after offloading)

An operation *binds* variables (`outs`) and is not its own value, so that a body is edited without its users changing identity and the same `Var` lines up across
stages. Nodes are compared by identity and never mutated once they are part of a region. All operands stand in `args` and all nested code in `regions`, whatever the
operation: a pass that has nothing to say about a kind of operation need not know it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from tinote.ir.types import Scalar, Tensor, Type, u1
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.ir.primitives import Primitive

__all__ = [
    "Atom", "Atomic", "Buffer", "BufferKind", "Check", "Extent", "FaultKind", "For", "Function", "Get", "If", "Lit", "Load", "Local",
    "Memory", "NewStack", "Op", "Pop", "Prim", "Print", "Private", "Push", "Region", "Set", "Store", "Task", "Var", "While", "false", "true",
]  # fmt: skip


class Var:
    """A variable, bound once; `name` is a wish for the printer (the user's own name where there is one)."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type!r}"


class Lit:
    """A literal number. Two are equal when their types and bits are: 0.0 and -0.0 differ, a NaN equals itself."""

    __slots__ = ("type", "value")

    def __init__(self, value: float, type: Scalar) -> None:
        self.value: float = (type.round(float(value)) if type.bits else float(value)) if type.kind == "f" else (int(value) if type is not u1 else int(bool(value)))
        self.type = type

    def bits(self) -> bytes | int:
        return struct.pack("<d", self.value) if self.type.kind == "f" else int(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lit) and self.type is other.type and self.bits() == other.bits()

    def __hash__(self) -> int:
        return hash((self.type.name, self.value))

    def __repr__(self) -> str:
        return f"{self.value}{self.type!r}"


Atom = Var | Lit
true, false = Lit(1, u1), Lit(0, u1)


class BufferKind(Enum):
    """Where a buffer's memory comes from, and so what may alias: two fields never do; an array may alias anything but temporaries and private copies."""

    FIELD = "field"
    ARRAY = "array"
    TEMPORARY = "temporary"  # lives for one launch; zero at its start
    PRIVATE = "private"  # one copy a thread, of one task


class Buffer:
    """Memory that a kernel loads from and stores to: what a field or an array is to the IR.

    `shape`: index dimensions (None: known at launch only). `element`: shape of one element's components, () for scalars. `strides` and `element_strides`: in bytes,
    one per dimension of each; None for `strides` means row-major, computed at launch. `flat` names the buffer that this one is the linear view of, after access
    lowering: it has a single index, a byte offset. `adjoint` and `tangent`: the buffers of its gradient and dual, if any; `primal`: what this one is the gradient
    or dual of.
    Identity is the buffer's identity while compiling; machine code sees only the order of a function's buffers.
    """

    __slots__ = ("__weakref__", "adjoint", "dtype", "element", "element_strides", "flat", "kind", "name", "primal", "shape", "strides", "tangent")

    def __init__(
        self,
        name: str,
        dtype: Scalar,
        shape: tuple[int | None, ...] = (),
        element: tuple[int, ...] = (),
        kind: BufferKind = BufferKind.FIELD,
        strides: tuple[int, ...] | None = None,
        element_strides: tuple[int, ...] | None = None,
        flat: Buffer | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.element = element
        self.kind = kind
        self.element_strides = row_major(element, dtype.size) if element_strides is None else element_strides
        if strides is None and flat is None and None not in shape:
            size = dtype.size
            for extent in element:
                size *= extent
            strides = row_major(shape, size)  # type: ignore[arg-type]
        self.strides = strides
        self.flat = flat
        self.adjoint: Buffer | None = None
        self.tangent: Buffer | None = None
        self.primal: Buffer | None = None

    @property
    def rank(self) -> int:
        """Number of index dimensions."""
        return len(self.shape)

    @property
    def element_type(self) -> Scalar | Tensor:
        """The type of one element."""
        return Tensor(self.dtype, self.element) if self.element else self.dtype

    def loaded_type(self, indices: int) -> Scalar | Tensor:
        """The type that a load with so many indices gives."""
        return self.element_type if indices == self.rank else self.dtype

    def __repr__(self) -> str:
        return f"@{self.name}: {self.element_type!r} {self.shape}"


def row_major(shape: Iterable[int], size: int) -> tuple[int, ...]:
    """Byte strides of a row-major array of `shape` whose elements take `size` bytes."""
    strides: list[int] = []
    for extent in reversed(tuple(shape)):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


class Region:
    """A piece of code with parameters and results. Control flow stays structured: a region is entered at its top and left at its end."""

    __slots__ = ("body", "params", "yields")

    def __init__(self, params: tuple[Var, ...], body: tuple[Op, ...], yields: tuple[Atom, ...] = ()) -> None:
        self.params = params
        self.body = body
        self.yields = yields

    def __repr__(self) -> str:
        return f"<region of {len(self.body)} operations>"


class Op:
    """An operation: binds `outs`, reads `args`, owns `regions`. `loc` is the user's source; `origin` the primal operation, if differentiation emitted this one."""

    __slots__ = ("args", "loc", "origin", "outs", "regions")
    statics: ClassVar[tuple[str, ...]] = ()  # the slots of a subclass
    #: what the operation does beside binding its outs: reads memory, writes memory (or has another effect that must stay, once and in order)
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False

    def __init__(self, args: tuple[Atom, ...], outs: tuple[Var, ...] = (), regions: tuple[Region, ...] = (), loc: Span = NOWHERE, origin: Op | None = None) -> None:
        self.args = args
        self.outs = outs
        self.regions = regions
        self.loc = loc
        self.origin = origin

    def rebuilt(self, args: tuple[Atom, ...], regions: tuple[Region, ...] = (), outs: tuple[Var, ...] | None = None) -> Op:
        """A copy with other operands and regions, everything else the same. `outs` are kept unless given."""
        new = object.__new__(type(self))
        new.args = args
        new.regions = regions
        new.outs = self.outs if outs is None else outs
        new.loc = self.loc
        new.origin = self.origin
        for name in self.statics:
            setattr(new, name, getattr(self, name))
        return new

    @property
    def out(self) -> Var:
        """The single variable that this operation binds."""
        (only,) = self.outs
        return only

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(map(repr, self.args))} -> {', '.join(map(repr, self.outs))}>"


class Prim(Op):
    """Apply a primitive to `args`. Pure: same operands, same result."""

    __slots__ = ("prim",)
    statics = ("prim",)
    prim: Primitive

    def __init__(self, prim: Primitive, args: tuple[Atom, ...], outs: tuple[Var, ...], loc: Span = NOWHERE, origin: Op | None = None) -> None:
        super().__init__(args, outs, (), loc, origin)
        self.prim = prim


class Memory(Op):
    """An operation on one buffer. `index` is all index operands: one per dimension, then possibly one per component dimension."""

    __slots__ = ("buffer",)
    statics: ClassVar[tuple[str, ...]] = ("buffer",)
    buffer: Buffer

    @property
    def index(self) -> tuple[Atom, ...]:
        return self.args


class Load(Memory):
    """Read an element (a tensor for vector and matrix buffers), or one component when component indices are given."""

    __slots__ = ()
    reads = True

    def __init__(self, buffer: Buffer, index: tuple[Atom, ...], outs: tuple[Var, ...], loc: Span = NOWHERE, origin: Op | None = None) -> None:
        super().__init__(index, outs, (), loc, origin)
        self.buffer = buffer


class _Write(Memory):
    __slots__ = ()
    writes = True

    @property
    def index(self) -> tuple[Atom, ...]:
        return self.args[:-1]

    @property
    def value(self) -> Atom:
        return self.args[-1]


class Store(_Write):
    """Write an element or one component."""

    __slots__ = ()

    def __init__(self, buffer: Buffer, index: tuple[Atom, ...], value: Atom, loc: Span = NOWHERE, origin: Op | None = None) -> None:
        super().__init__((*index, value), (), (), loc, origin)
        self.buffer = buffer


class Atomic(_Write):
    """Combine an element with a value by `prim` (add, mul, min, max, and_, or_, xor), indivisibly. `outs` is the old value, or empty when nobody asks.

    `plain` says that no other thread can meet this element, so that an ordinary read-modify-write does (set by demotion).
    """

    __slots__ = ("plain", "prim")
    statics = ("buffer", "prim", "plain")
    reads = True
    prim: Primitive
    plain: bool

    def __init__(self, prim: Primitive, buffer: Buffer, index: tuple[Atom, ...], value: Atom, outs: tuple[Var, ...] = (), loc: Span = NOWHERE, origin: Op | None = None, plain: bool = False) -> None:
        super().__init__((*index, value), outs, (), loc, origin)
        self.buffer = buffer
        self.prim = prim
        self.plain = plain


class Extent(Memory):
    """The length of a buffer along `axis`, an i32. For shapes that are known only at launch."""

    __slots__ = ("axis",)
    statics = ("buffer", "axis")
    axis: int

    def __init__(self, buffer: Buffer, axis: int, outs: tuple[Var, ...], loc: Span = NOWHERE) -> None:
        super().__init__((), outs, (), loc)
        self.buffer = buffer
        self.axis = axis


class For(Op):
    """`for index in lo..hi` (half-open, step one; empty when hi <= lo) carrying values. args = (lo, hi, *initial); region params = (index, *carried).

    `parallel`: iterations may run in any order or at once (then nothing is carried). `reverse`: from hi-1 down to lo. `vectorize`: set by the vectorisation pass.
    Index, lo and hi have the same integer type.
    """

    __slots__ = ("parallel", "reverse", "vectorize")
    statics = ("parallel", "reverse", "vectorize")
    parallel: bool
    reverse: bool
    vectorize: bool

    def __init__(self, lo: Atom, hi: Atom, initial: tuple[Atom, ...], body: Region, outs: tuple[Var, ...] = (), loc: Span = NOWHERE, *, parallel: bool = False, reverse: bool = False, vectorize: bool = False, origin: Op | None = None) -> None:
        super().__init__((lo, hi, *initial), outs, (body,), loc, origin)
        self.parallel = parallel
        self.reverse = reverse
        self.vectorize = vectorize

    @property
    def lo(self) -> Atom:
        return self.args[0]

    @property
    def hi(self) -> Atom:
        return self.args[1]

    @property
    def initial(self) -> tuple[Atom, ...]:
        return self.args[2:]

    @property
    def body(self) -> Region:
        return self.regions[0]

    @property
    def index(self) -> Var:
        return self.regions[0].params[0]

    @property
    def carried(self) -> tuple[Var, ...]:
        return self.regions[0].params[1:]


class While(Op):
    """Repeat while the condition holds. args = initial; regions = (condition, body), both with the carried values as parameters."""

    __slots__ = ()

    def __init__(self, initial: tuple[Atom, ...], condition: Region, body: Region, outs: tuple[Var, ...] = (), loc: Span = NOWHERE, origin: Op | None = None) -> None:
        super().__init__(initial, outs, (condition, body), loc, origin)

    @property
    def initial(self) -> tuple[Atom, ...]:
        return self.args

    @property
    def condition(self) -> Region:
        return self.regions[0]

    @property
    def body(self) -> Region:
        return self.regions[1]


class If(Op):
    """One of two regions without parameters; both yield as many values as there are outs."""

    __slots__ = ()

    def __init__(self, condition: Atom, then: Region, orelse: Region, outs: tuple[Var, ...] = (), loc: Span = NOWHERE, origin: Op | None = None) -> None:
        super().__init__((condition,), outs, (then, orelse), loc, origin)

    @property
    def condition(self) -> Atom:
        return self.args[0]

    @property
    def then(self) -> Region:
        return self.regions[0]

    @property
    def orelse(self) -> Region:
        return self.regions[1]


class Local(Op):
    """A local cell, bound to a variable of type `Ref`; starts at `args[0]`, or at zero when there is none."""

    __slots__ = ()


class Get(Op):
    """Read a cell: args = (ref, *component indices)."""

    __slots__ = ()
    reads = True


class Set(Op):
    """Write a cell: args = (ref, *component indices, value)."""

    __slots__ = ()
    writes = True


class NewStack(Op):
    """A stack for saved values: args = (capacity,), an upper bound of the number of pushes (i64), or () when it is not known and the stack must grow."""

    __slots__ = ()


class Push(Op):
    """args = (stack, value)."""

    __slots__ = ()
    writes = True


class Pop(Op):
    """args = (stack,); binds the value that was pushed last and removes it."""

    __slots__ = ()
    reads = True
    writes = True


class FaultKind(Enum):
    """Why a launch stopped."""

    BOUNDS = 2
    DIVISION = 3
    ASSERT = 4
    MEMORY = 5
    OVERFLOW = 6


class Check(Op):
    """Stop the launch with a located fault unless args[0] holds; args[1:] are shown in the message.

    BOUNDS: args = (condition, index, extent), `text` = the buffer's name, `axis` the dimension. ASSERT: `text` is a format string with one `{}` per further argument.
    """

    __slots__ = ("axis", "kind", "text")
    statics = ("kind", "text", "axis")
    writes = True
    kind: FaultKind
    text: str
    axis: int

    def __init__(self, kind: FaultKind, args: tuple[Atom, ...], text: str = "", axis: int = 0, loc: Span = NOWHERE) -> None:
        super().__init__(args, (), (), loc)
        self.kind = kind
        self.text = text
        self.axis = axis


class Print(Op):
    """Print: `parts` are literal texts and None for the next of `args` (scalars; a tensor argument prints as nested lists)."""

    __slots__ = ("parts",)
    statics = ("parts",)
    writes = True
    parts: tuple[str | None, ...]

    def __init__(self, parts: tuple[str | None, ...], args: tuple[Atom, ...], loc: Span = NOWHERE) -> None:
        super().__init__(args, (), (), loc)
        self.parts = parts


class Private:
    """One thread's own copy of `target` during a task: starts at the neutral element of `prim`, and is combined into `target` when the task ends."""

    __slots__ = ("copy", "prim", "target")

    def __init__(self, target: Buffer, copy: Buffer, prim: Primitive) -> None:
        self.target = target
        self.copy = copy
        self.prim = prim

    def __repr__(self) -> str:
        return f"private {self.copy!r} of {self.target!r}"


class Task(Op):
    """A piece of a launch, run after the pieces before it. Serial: regions[0] has no parameters. Parallel: args = (lo, hi), regions[0].params = (index,)."""

    __slots__ = ("name", "parallel", "privates", "vectorize")
    statics = ("name", "parallel", "privates", "vectorize")
    writes = True
    name: str
    parallel: bool
    privates: tuple[Private, ...]
    vectorize: bool

    def __init__(self, name: str, args: tuple[Atom, ...], body: Region, *, parallel: bool, privates: tuple[Private, ...] = (), vectorize: bool = False, loc: Span = NOWHERE) -> None:
        super().__init__(args, (), (body,), loc)
        self.name = name
        self.parallel = parallel
        self.privates = privates
        self.vectorize = vectorize

    @property
    def body(self) -> Region:
        return self.regions[0]


class Function:
    """A kernel as IR. `region.params` are its scalar arguments in order; `region.yields` what it returns. `loc` is its `def` line."""

    __slots__ = ("loc", "name", "region")

    def __init__(self, name: str, region: Region, loc: Span = NOWHERE) -> None:
        self.name = name
        self.region = region
        self.loc = loc

    def with_region(self, region: Region, name: str = "") -> Function:
        """This function with another body; itself when the body is the same object."""
        return self if region is self.region and not name else Function(name or self.name, region, self.loc)

    def __repr__(self) -> str:
        return f"<function {self.name}>"
