"""The IR builder: applies type rules while operations are created, so that every variable has a type from the start.

b = Builder()
with b.region() as inside:
    y = b.prim(primitives.add, x, b.lit(1))
region = inside.close(y)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import Ref, Scalar, Tensor, Type, i32, u1
from tinote.source import NOWHERE, Span

DEFAULTS = Defaults()


class OpenRegion:
    """A region while its operations are still being added."""

    __slots__ = ("body", "params")

    def __init__(self, params: tuple[ir.Var, ...]) -> None:
        self.params = params
        self.body: list[ir.Op] = []

    def close(self, *yields: ir.Atom) -> ir.Region:
        """The finished region."""
        return ir.Region(self.params, tuple(self.body), yields)


class Builder:
    """Emits operations at the end of the innermost open region. `loc` and `origin` are stamped on every operation."""

    __slots__ = ("_open", "defaults", "loc", "origin")

    def __init__(self, defaults: Defaults = DEFAULTS, loc: Span = NOWHERE, origin: ir.Op | None = None) -> None:
        self.defaults = defaults
        self.loc = loc
        self.origin = origin
        self._open: list[OpenRegion] = []

    @contextmanager
    def region(self, *params: ir.Var) -> Generator[OpenRegion, None, None]:
        """Open a region; what is emitted inside the `with` lands in it."""
        with self.inside(OpenRegion(params)) as opened:
            yield opened

    @contextmanager
    def inside(self, opened: OpenRegion) -> Generator[OpenRegion, None, None]:
        """Go on with a region that was left and is not closed yet."""
        self._open.append(opened)
        try:
            yield opened
        finally:
            self._open.pop()

    @property
    def innermost(self) -> OpenRegion:
        """The region that operations land in."""
        return self._open[-1]

    def reached(self) -> list[tuple[OpenRegion, list[ir.Op]]]:
        """The open regions with what was emitted so far, for `go_back`."""
        return [(opened, opened.body.copy()) for opened in self._open]

    def go_back(self, reached: list[tuple[OpenRegion, list[ir.Op]]]) -> None:
        """Take away what was emitted since then."""
        for opened, body in reached:
            opened.body[:] = body

    def emit(self, op: ir.Op) -> ir.Op:
        """Add a finished operation."""
        self._open[-1].body.append(op)
        return op

    def lit(self, value: float, t: Scalar = i32) -> ir.Lit:
        return ir.Lit(value, t)

    def prim(self, prim: Primitive, *args: ir.Atom, type: Type | None = None, name: str = "") -> ir.Var:
        """Emit `prim` on `args`. The result type follows from the primitive's rule, or is `type`.

        Raises `TypeError` when the rule refuses the operands.
        """
        if type is None:
            if prim.rule is None:
                raise TypeError(f"{prim.name} needs its result type")
            type = prim.rule(tuple([a.type for a in args]), self.defaults)
        out = ir.Var(type, name)
        self._open[-1].body.append(ir.Prim(prim, args, (out,), self.loc, self.origin))
        return out

    def cast(self, value: ir.Atom, t: Scalar | Tensor) -> ir.Atom:
        """`value` as type `t`; itself when it has it, a literal when it is one."""
        if value.type == t:
            return value
        if isinstance(value, ir.Lit) and isinstance(t, Scalar):
            return ir.Lit(p.cast_number(t, value.value), t)
        return self.prim(p.cast, value, type=t)

    def pack(self, components: Sequence[ir.Atom], t: Tensor, name: str = "") -> ir.Var:
        return self.prim(p.pack, *components, type=t, name=name)

    def extract(self, tensor: ir.Atom, *indices: ir.Atom, name: str = "") -> ir.Var:
        assert isinstance(tensor.type, Tensor)
        return self.prim(p.extract, tensor, *indices, type=tensor.type.dtype, name=name)

    def insert(self, tensor: ir.Atom, indices: Sequence[ir.Atom], value: ir.Atom) -> ir.Var:
        return self.prim(p.insert, tensor, *indices, value, type=tensor.type)

    def load(self, buffer: ir.Buffer, index: Sequence[ir.Atom], name: str = "") -> ir.Var:
        out = ir.Var(buffer.loaded_type(len(index)), name)
        self.emit(ir.Load(buffer, tuple(index), (out,), self.loc, self.origin))
        return out

    def store(self, buffer: ir.Buffer, index: Sequence[ir.Atom], value: ir.Atom) -> None:
        self.emit(ir.Store(buffer, tuple(index), value, self.loc, self.origin))

    def atomic(
        self, prim: Primitive, buffer: ir.Buffer, index: Sequence[ir.Atom], value: ir.Atom, *, old: bool = False
    ) -> ir.Var | None:
        """`buffer[index] prim= value`; the old value when asked for."""
        outs = (ir.Var(buffer.loaded_type(len(index))),) if old else ()
        self.emit(ir.Atomic(prim, buffer, tuple(index), value, outs, self.loc, self.origin))
        return outs[0] if outs else None

    def extent(self, buffer: ir.Buffer, axis: int) -> ir.Atom:
        """The buffer's length along `axis`: a literal where it is known."""
        known = buffer.shape[axis]
        if known is not None:
            return ir.Lit(known, i32)
        out = ir.Var(i32)
        self.emit(ir.Extent(buffer, axis, (out,), self.loc))
        return out

    def local(self, t: Scalar | Tensor, initial: ir.Atom | None = None, name: str = "") -> ir.Var:
        out = ir.Var(Ref(t), name)
        self.emit(ir.Local(() if initial is None else (initial,), (out,), (), self.loc, self.origin))
        return out

    def get(self, ref: ir.Var, *index: ir.Atom, name: str = "") -> ir.Var:
        assert isinstance(ref.type, Ref)
        content = ref.type.content
        out = ir.Var(content.dtype if index and isinstance(content, Tensor) else content, name)
        self.emit(ir.Get((ref, *index), (out,), (), self.loc, self.origin))
        return out

    def set(self, ref: ir.Var, value: ir.Atom, *index: ir.Atom) -> None:
        self.emit(ir.Set((ref, *index, value), (), (), self.loc, self.origin))

    def if_(self, condition: ir.Atom, then: ir.Region, orelse: ir.Region | None = None) -> tuple[ir.Var, ...]:
        """Emit an `If` whose outs have the types of what `then` yields."""
        assert condition.type is u1
        outs = tuple(ir.Var(y.type) for y in then.yields)
        self.emit(ir.If(condition, then, orelse or ir.Region((), ()), outs, self.loc, self.origin))
        return outs
