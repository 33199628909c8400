"""Operations of vectorised loops: several iterations of a parallel loop at once, one in each lane of a vector register.

    op  = MaskedLoad   v = buffer[a] where mask             a scalar offset: consecutive elements; lanes: each its own
        | MaskedStore  buffer[a] where mask = a
        | LoadTile     v = rows of buffer[a], a step and a width in bytes, where mask
        | StoreTile    the same rows = a
        | Broadcast    v = a in each lane
        | Ramp         v = a, a + step, a + 2 step, …
        | Reduce       v = all lanes of a, combined by a primitive

As text:

    for parallel %i: i32, %m: u1x16 in 0i32 .. %n:          16 iterations at once, from %i; %m: which of them are < %n
      %at: i64x16 = ramp %offset, 4i64                      %offset, %offset + 4, %offset + 8, ...
      %a: f32x16 = load @x.flat[%offset] where %m           consecutive elements
      %b: f32x16 = load @y.flat[%at] where %m               an element a lane
      store @z.flat[%offset] where %m, %b
      %t: f32x16 = broadcast 0.5f32                         the same number in each lane
      %s: f32 = reduce add %b                               one number of all lanes
      %u: tile f32x16 = load tile @a.flat[%row] by %s, 80i64 where %m
                                                            80 bytes for each lane, each %s bytes after the last one's
      %d: f32x16 = get %u[8i64]                             what lies 8 bytes into those of each lane
      set %u[8i64], %b
      store tile @a.flat[%row] by %s, 80i64 where %m, %u
      %v: tile f32x16 = local 80i64                         80 bytes for each lane, of its own

Primitives work lane by lane, as they do component by component on tensors, and scalars among their operands count for
every lane. Which lanes a piece of code runs for is a value of type `u1xN`, a mask; control flow asks scalars only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinote.ir.nodes import Atom, For, Load, Op, Store, Task, Var
from tinote.ir.types import Lanes
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.ir.primitives import Primitive


class _Masked:
    """The operands that accesses with a mask begin with: args = (offset, mask, ...)."""

    __slots__ = ()
    args: tuple[Atom, ...]

    @property
    def index(self) -> tuple[Atom, ...]:
        return self.args[:1]

    @property
    def mask(self) -> Atom:
        return self.args[1]


class MaskedLoad(_Masked, Load):
    """Read an element for each lane whose mask is set; the others get zero. args = (offset, mask). A scalar offset is
    that of the first lane, and the lanes read consecutive elements; with lanes of offsets each reads its own.
    """

    __slots__ = ()


class MaskedStore(_Masked, Store):
    """Write an element for each lane whose mask is set, one lane after the other. args = (offset, mask, value); offsets
    as in `MaskedLoad`.
    """

    __slots__ = ()


class _Rows:
    """The operands of an access to a row of consecutive numbers for each lane whose mask is set: the offset of the
    first lane's row, the bytes from there to the next one's, the bytes of a row, and the mask.
    """

    __slots__ = ()
    args: tuple[Atom, ...]

    @property
    def index(self) -> tuple[Atom, ...]:
        return self.args[:1]

    @property
    def step(self) -> Atom:
        return self.args[1]

    @property
    def width(self) -> Atom:
        return self.args[2]

    @property
    def mask(self) -> Atom:
        return self.args[3]


class LoadTile(_Rows, Load):
    """Read rows, transposed: `Get` and `Set` move the numbers at one place of all rows. args = (offset, step, width,
    mask).
    """

    __slots__ = ()


class StoreTile(_Rows, Store):
    """Write a tile back to the rows that it shows. args = (offset, step, width, mask, tile)."""

    __slots__ = ()


class Broadcast(Op):
    """The same number in each lane: args = (number,)."""

    __slots__ = ()


class Ramp(Op):
    """Numbers that grow from lane to lane: args = (the first lane's, step), integers that wrap."""

    __slots__ = ()


class Reduce(Op):
    """All lanes combined by `prim`, one of what an `Atomic` combines with, into one number: args = (lanes,)."""

    __slots__ = ("prim",)

    def __init__(
        self, prim: Primitive, lanes: Atom, outs: tuple[Var, ...], loc: Span = NOWHERE, origin: Op | None = None
    ) -> None:
        super().__init__((lanes,), outs, (), loc, origin)
        self.prim = prim


def lanes_of(loop: For | Task) -> int:
    """How many iterations of a loop run at once in lanes: 1 where each runs by itself."""
    mask = loop.regions[0].params[1:2] if loop.parallel else ()
    return mask[0].type.lanes if mask and isinstance(mask[0].type, Lanes) else 1
