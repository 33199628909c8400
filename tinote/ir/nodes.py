"""The nodes of the IR: variables, literals, memory, operations, regions, functions. Hierarchical, typed, static single
assignment.

    atom      = Var | Lit
    region    = (params) { op* } yields atom*
    function  = name, region                     its parameters are scalars; its yields are what the kernel returns
    op        = Prim      v = primitive a…                  arithmetic, comparison, maths, cast, pack, extract, …
              | Load      v = buffer[a…]                    one element, or one component when component indices follow
              | Store     buffer[a…] = a
              | Atomic    v? = buffer[a…] primitive= a      the old value
              | Extent    v = shape of buffer along an axis
              | For       v… = for i in lo..hi carrying a…  region(i, carried…) yields carried…
              | While     v… = while carrying a…            condition(carried…) yields truth; body as in For
              | If        v… = if a: region yields v… else region yields v…
              | CustomVJP v… = results a…, of inputs a…     region(adjoints of v…) yields adjoints of the inputs
              | Local     ref = cell [initial a]
              | Get       v = ref[a…]
              | Set       ref[a…] = a
              | NewStack  stack = up to a values
              | Push      stack, a
              | Pop       v = stack
              | Check     stop with a located fault unless a
              | Print     text and a…
              | Task      serial or parallel piece of a launch (after offloading)

An operation *binds* variables (`outs`) and is not its own value, so that a body is edited without its users changing
identity and the same `Var` lines up across stages. Nodes are compared by identity and never mutated once they are part
of a region. All operands stand in `args` and all nested code in `regions`, whatever the operation: a pass can handle
operations that it does not know. `CustomVJP` lives in `custom_vjp.py`.

Two modules have operations of their own, each with its grammar at its top:

    ir/lanes.py              in loops whose iterations run in lanes: MaskedLoad, MaskedStore, LoadTile, StoreTile,
                             Broadcast, Ramp, Reduce
    functions/activations.py of recursive functions, until the front end has made loops of them: RoutineCall, _Goto,
                             _Suspend, _Return
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tinote.ir.atoms import Atom, Lit, Var, component_indices, false, literal_indices, true
from tinote.ir.buffers import Buffer, BufferKind, Private, row_major
from tinote.ir.messages import FaultKind
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.ir.primitives import Primitive

__all__ = [
    "Atom", "Atomic", "Buffer", "BufferKind", "Check", "Extent", "FaultKind", "For", "Function", "Get", "If", "Lit",
    "Load", "Local", "MemoryOp", "NewStack", "Op", "Pop", "Prim", "Print", "Private", "Push", "Region", "Set", "Store",
    "Task", "Var", "While", "component_indices", "false", "literal_indices", "row_major", "true",
]  # fmt: skip


class Region:
    """A piece of code with parameters and results. Control flow stays structured: a region is entered at its top and
    left at its end.
    """

    __slots__ = ("body", "params", "yields")

    def __init__(self, params: tuple[Var, ...], body: tuple[Op, ...], yields: tuple[Atom, ...] = ()) -> None:
        self.params = params
        self.body = body
        self.yields = yields

    def __repr__(self) -> str:
        return f"<region of {len(self.body)} operations>"


class Op:
    """An operation: binds `outs`, reads `args`, owns `regions`. `loc` is the user's source; `origin` the primal
    operation, if differentiation emitted this one.
    """

    __slots__ = ("args", "loc", "origin", "outs", "regions")
    statics: ClassVar[tuple[str, ...]] = ()  # the slots of a subclass
    #: what the operation does besides binding its outs: reads memory, writes memory (or has another effect that must
    #: stay, once and in order)
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.statics = (*cls.statics, *cls.__slots__)

    def __init__(
        self,
        args: tuple[Atom, ...],
        outs: tuple[Var, ...] = (),
        regions: tuple[Region, ...] = (),
        loc: Span = NOWHERE,
        origin: Op | None = None,
    ) -> None:
        self.args = args
        self.outs = outs
        self.regions = regions
        self.loc = loc
        self.origin = origin

    def rebuilt(
        self, args: tuple[Atom, ...], regions: tuple[Region, ...] = (), outs: tuple[Var, ...] | None = None
    ) -> Op:
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

    def __init__(
        self,
        prim: Primitive,
        args: tuple[Atom, ...],
        outs: tuple[Var, ...],
        loc: Span = NOWHERE,
        origin: Op | None = None,
    ) -> None:
        super().__init__(args, outs, (), loc, origin)
        self.prim = prim


class MemoryOp(Op):
    """An operation on one buffer. `index` is all index operands: one per dimension, then possibly one per component
    dimension.
    """

    __slots__ = ("buffer",)

    def __init__(
        self,
        buffer: Buffer,
        args: tuple[Atom, ...],
        outs: tuple[Var, ...] = (),
        loc: Span = NOWHERE,
        origin: Op | None = None,
    ) -> None:
        super().__init__(args, outs, (), loc, origin)
        self.buffer = buffer

    @property
    def index(self) -> tuple[Atom, ...]:
        return self.args

    def elsewhere(self, buffer: Buffer, args: tuple[Atom, ...] | None = None) -> MemoryOp:
        """The same access to another buffer, perhaps with other operands."""
        new = self.rebuilt(self.args if args is None else args)
        assert isinstance(new, MemoryOp)
        new.buffer = buffer
        return new


class Load(MemoryOp):
    """Read an element (a tensor for vector and matrix buffers), or one component when component indices are given."""

    __slots__ = ()
    reads = True


class _Write(MemoryOp):
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

    def __init__(
        self, buffer: Buffer, index: tuple[Atom, ...], value: Atom, loc: Span = NOWHERE, origin: Op | None = None
    ) -> None:
        super().__init__(buffer, (*index, value), (), loc, origin)


class Atomic(_Write):
    """Combine an element with a value by `prim` (add, mul, min, max, and_, or_, xor), atomically. `outs` is the old
    value, or empty when it is not used.

    `plain` says that no other thread can meet this element, so that an ordinary read-modify-write does (set by
    demotion).
    """

    __slots__ = ("plain", "prim")
    reads = True

    def __init__(
        self,
        prim: Primitive,
        buffer: Buffer,
        index: tuple[Atom, ...],
        value: Atom,
        outs: tuple[Var, ...] = (),
        loc: Span = NOWHERE,
        origin: Op | None = None,
        plain: bool = False,
    ) -> None:
        super().__init__(buffer, (*index, value), outs, loc, origin)
        self.prim = prim
        self.plain = plain


class Extent(MemoryOp):
    """The length of a buffer along `axis`, an i32. For shapes that are known only at launch."""

    __slots__ = ("axis",)

    def __init__(self, buffer: Buffer, axis: int, outs: tuple[Var, ...], loc: Span = NOWHERE) -> None:
        super().__init__(buffer, (), outs, loc)
        self.axis = axis


class For(Op):
    """`for index in lo..hi` (half-open, step one; empty when hi <= lo) carrying values. args = (lo, hi, *initial);
    region params = (index, *carried).

    `parallel`: iterations may run in any order or at once (then nothing is carried). `reverse`: from hi-1 down to lo.
    `vectorize`: its iterations may run at once (`mark_vector_loops`). `ordered`: those of a parallel loop that one
    thread runs keep their order (`keep_order`). Index, lo and hi have the same integer type. A parallel loop with a
    second parameter runs in lanes: the region stands for as many iterations at once as the parameter, a mask, has
    lanes, the first of which is index; the mask tells which of them are below hi.
    """

    __slots__ = ("ordered", "parallel", "reverse", "vectorize")

    def __init__(
        self,
        lo: Atom,
        hi: Atom,
        initial: tuple[Atom, ...],
        body: Region,
        outs: tuple[Var, ...] = (),
        loc: Span = NOWHERE,
        *,
        parallel: bool = False,
        ordered: bool = False,
        reverse: bool = False,
        vectorize: bool = False,
        origin: Op | None = None,
    ) -> None:
        super().__init__((lo, hi, *initial), outs, (body,), loc, origin)
        self.ordered = ordered
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
        return () if self.parallel else self.regions[0].params[1:]


class While(Op):
    """Repeat while the condition holds. args = initial; regions = (condition, body), both with the carried values as
    parameters.
    """

    __slots__ = ()

    def __init__(
        self,
        initial: tuple[Atom, ...],
        condition: Region,
        body: Region,
        outs: tuple[Var, ...] = (),
        loc: Span = NOWHERE,
        origin: Op | None = None,
    ) -> None:
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
    """One of two regions without parameters; both yield as many values as there are outs.

    `likely` says that the condition nearly always holds, so that the other region is kept out of the way.
    """

    __slots__ = ("likely",)

    def __init__(
        self,
        condition: Atom,
        then: Region,
        orelse: Region,
        outs: tuple[Var, ...] = (),
        loc: Span = NOWHERE,
        origin: Op | None = None,
        *,
        likely: bool = False,
    ) -> None:
        super().__init__((condition,), outs, (then, orelse), loc, origin)
        self.likely = likely

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
    """A stack for saved values: args = (capacity,), an upper bound of the number of pushes (i64), or () when it is not
    known and the stack must grow.
    """

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


class Check(Op):
    """Stop the launch with a located fault unless args[0] holds; args[1:] are shown in the message.

    BOUNDS: args = (condition, index, extent), the index counted from 0, and a fourth where the user counts from another
    number: that number; `text` = the buffer's name, `axis` the dimension. ASSERT, OVERFLOW and FINITE: `text` is a
    format string (see `messages`) with one hole per further argument. RECURSION: `text` is the message.
    """

    __slots__ = ("axis", "kind", "text")
    writes = True

    def __init__(
        self, kind: FaultKind, args: tuple[Atom, ...], text: str = "", axis: int = 0, loc: Span = NOWHERE
    ) -> None:
        super().__init__(args, (), (), loc)
        self.kind = kind
        self.text = text
        self.axis = axis


class Print(Op):
    """Print: `parts` are literal texts and None for the next of `args` (scalars; a tensor argument prints as nested
    lists). `specs`: a format specification for each argument, as in an f-string; empty ones when none are given.
    `about`: what a warning is about, once for all that have the same; empty for what the program prints.
    """

    __slots__ = ("about", "parts", "specs")
    writes = True
    about: str
    specs: tuple[str, ...]

    def __init__(
        self,
        parts: tuple[str | None, ...],
        args: tuple[Atom, ...],
        loc: Span = NOWHERE,
        specs: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(args, (), (), loc)
        self.parts = parts
        self.specs = ("",) * len(args) if specs is None else specs
        self.about = ""


class Task(Op):
    """A piece of a launch, run after the pieces before it. Serial: regions[0] has no parameters. Parallel: args = (lo,
    hi), regions[0].params = (index,), or (index, mask) as in a `For` that runs in lanes; `ordered` as there.
    """

    __slots__ = ("name", "ordered", "parallel", "privates", "vectorize")
    writes = True

    def __init__(
        self,
        name: str,
        args: tuple[Atom, ...],
        body: Region,
        *,
        parallel: bool,
        ordered: bool = False,
        privates: tuple[Private, ...] = (),
        vectorize: bool = False,
        loc: Span = NOWHERE,
    ) -> None:
        super().__init__(args, (), (body,), loc)
        self.name = name
        self.ordered = ordered
        self.parallel = parallel
        self.privates = privates
        self.vectorize = vectorize

    @property
    def body(self) -> Region:
        return self.regions[0]


class Function:
    """A kernel as IR. `region.params` are its scalar arguments in order; `region.yields` what it returns. `loc` is its
    `def` line.
    """

    __slots__ = ("loc", "name", "region")

    def __init__(self, name: str, region: Region, loc: Span = NOWHERE) -> None:
        self.name = name
        self.region = region
        self.loc = loc

    def with_region(self, region: Region) -> Function:
        """This function with another body; itself when the body is the same object."""
        return self if region is self.region else Function(self.name, region, self.loc)

    def __repr__(self) -> str:
        return f"<function {self.name}>"
