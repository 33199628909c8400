"""Building IR: applies type rules as operations are made, so that every variable has its type from birth.

b = Builder()
with b.region() as inside:
    y = b.prim(primitives.add, x, b.lit(1))
region = inside.close(y)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Atomic, Buffer, Extent, Get, If, Lit, Load, Local, Op, Prim, Region, Set, Store, Var
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import Ref, Scalar, Tensor, Type, i32, u1
from tinote.source import NOWHERE, Span

DEFAULTS = Defaults()


class OpenRegion:
    """A region while its operations are still being added."""

    __slots__ = ("body", "params")

    def __init__(self, params: tuple[Var, ...]) -> None:
        self.params = params
        self.body: list[Op] = []

    def close(self, *yields: Atom) -> Region:
        """The finished region."""
        return Region(self.params, tuple(self.body), yields)


class Builder:
    """Emits operations at the end of the innermost open region. `loc` and `origin` are stamped on every operation."""

    __slots__ = ("_open", "defaults", "loc", "origin")

    def __init__(self, defaults: Defaults = DEFAULTS, loc: Span = NOWHERE, origin: Op | None = None) -> None:
        self.defaults = defaults
        self.loc = loc
        self.origin = origin
        self._open: list[OpenRegion] = []

    @contextmanager
    def region(self, *params: Var) -> Generator[OpenRegion, None, None]:
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

    def reached(self) -> list[tuple[OpenRegion, list[Op]]]:
        """The open regions with what was emitted so far, for `go_back`."""
        return [(opened, opened.body.copy()) for opened in self._open]

    def go_back(self, reached: list[tuple[OpenRegion, list[Op]]]) -> None:
        """Take away what was emitted since then."""
        for opened, body in reached:
            opened.body[:] = body

    def emit(self, op: Op) -> Op:
        """Add a finished operation."""
        self._open[-1].body.append(op)
        return op

    def lit(self, value: float, t: Scalar = i32) -> Lit:
        return Lit(value, t)

    def prim(self, prim: Primitive, *args: Atom, type: Type | None = None, name: str = "") -> Var:
        """Emit `prim` on `args`. The result type follows from the primitive's rule, or is `type`.

        Raises `TypeError` when the rule refuses the operands.
        """
        if type is None:
            if prim.rule is None:
                raise TypeError(f"{prim.name} needs its result type")
            type = prim.rule(tuple([a.type for a in args]), self.defaults)
        out = Var(type, name)
        self._open[-1].body.append(Prim(prim, args, (out,), self.loc, self.origin))
        return out

    def cast(self, value: Atom, t: Scalar | Tensor) -> Atom:
        """`value` as type `t`; itself when it has it, a literal when it is one."""
        if value.type == t:
            return value
        if isinstance(value, Lit) and isinstance(t, Scalar):
            return Lit(p.cast_number(t, value.value), t)
        return self.prim(p.cast, value, type=t)

    def pack(self, components: Sequence[Atom], t: Tensor, name: str = "") -> Var:
        return self.prim(p.pack, *components, type=t, name=name)

    def extract(self, tensor: Atom, *indices: Atom, name: str = "") -> Var:
        assert isinstance(tensor.type, Tensor)
        return self.prim(p.extract, tensor, *indices, type=tensor.type.dtype, name=name)

    def insert(self, tensor: Atom, indices: Sequence[Atom], value: Atom) -> Var:
        return self.prim(p.insert, tensor, *indices, value, type=tensor.type)

    def load(self, buffer: Buffer, index: Sequence[Atom], name: str = "") -> Var:
        out = Var(buffer.loaded_type(len(index)), name)
        self.emit(Load(buffer, tuple(index), (out,), self.loc, self.origin))
        return out

    def store(self, buffer: Buffer, index: Sequence[Atom], value: Atom) -> None:
        self.emit(Store(buffer, tuple(index), value, self.loc, self.origin))

    def atomic(
        self, prim: Primitive, buffer: Buffer, index: Sequence[Atom], value: Atom, *, old: bool = False
    ) -> Var | None:
        """`buffer[index] prim= value`; the old value when asked for."""
        outs = (Var(buffer.loaded_type(len(index))),) if old else ()
        self.emit(Atomic(prim, buffer, tuple(index), value, outs, self.loc, self.origin))
        return outs[0] if outs else None

    def extent(self, buffer: Buffer, axis: int) -> Atom:
        """The buffer's length along `axis`: a literal where it is known."""
        known = buffer.shape[axis]
        if known is not None:
            return Lit(known, i32)
        out = Var(i32)
        self.emit(Extent(buffer, axis, (out,), self.loc))
        return out

    def local(self, t: Scalar | Tensor, initial: Atom | None = None, name: str = "") -> Var:
        out = Var(Ref(t), name)
        self.emit(Local(() if initial is None else (initial,), (out,), (), self.loc, self.origin))
        return out

    def get(self, ref: Var, *index: Atom, name: str = "") -> Var:
        assert isinstance(ref.type, Ref)
        content = ref.type.content
        out = Var(content.dtype if index and isinstance(content, Tensor) else content, name)
        self.emit(Get((ref, *index), (out,), (), self.loc, self.origin))
        return out

    def set(self, ref: Var, value: Atom, *index: Atom) -> None:
        self.emit(Set((ref, *index, value), (), (), self.loc, self.origin))

    def if_(self, condition: Atom, then: Region, orelse: Region | None = None) -> tuple[Var, ...]:
        """Emit an `If` whose outs have the types of what `then` yields."""
        assert condition.type is u1
        outs = tuple(Var(y.type) for y in then.yields)
        self.emit(If(condition, then, orelse or Region((), ()), outs, self.loc, self.origin))
        return outs
