"""Puts a check before every access that is not proved in range, and before every division that may be by zero.

    for %i: i32 in 0i32 .. 64i32:                   for %i: i32 in 0i32 .. 64i32:
      %j: i32 = add %i, 1i32                          %j: i32 = add %i, 1i32
      %a: i32 = load @x[%i]                           %a: i32 = load @x[%i]
      %b: i32 = load @x[%j]                   ->      %1: u1 = lt %j, 64i32
      %c: i32 = floordiv %a, %b                       check bounds "x" %1, %j, 64i32
      store @x[%i], %c                                %b: i32 = load @x[%j]
                                                      %2: u1 = ne %b, 0i32
                                                      check division "//" %2, %a
                                                      %c: i32 = floordiv %a, %b
                                                      store @x[%i], %c

Only the side that is not proved is tested (`tinote.ir.access` does the proofs). What was tested is not tested again
where the test is in scope. A local array's run-time index is checked like a buffer's.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.access import Accesses
from tinote.ir.affine import constant
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Buffer,
    Check,
    Extent,
    FaultKind,
    Function,
    Lit,
    Load,
    Op,
    Prim,
    Region,
    Store,
    Var,
    false,
)
from tinote.ir.primitives import Primitive
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, Tensor, i32, is_integer, u1

__all__ = ["check_bounds"]

#: Stands among what was tested for a check that always fails.
_NEVER_REACHED = "never reached"


def check_bounds(fn: Function) -> Function:
    """`fn` in the CHECKED form."""
    return _Checker(fn).run(fn)


class _Checker(Rewriter):
    """Nothing is renamed, so operations are analysed as they were."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.accesses = Accesses(fn)
        #: what was tested or proved in the open regions: an index against an extent, or a divisor
        self.tested: set[object] = set()
        self.extents: dict[tuple[Buffer, int], Var] = {}
        self.scopes: list[tuple[set[object], dict[tuple[Buffer, int], Var]]] = []

    def enter(self, region: Region) -> None:
        self.scopes.append((set(self.tested), dict(self.extents)))

    def leave(self, region: Region) -> None:
        self.tested, self.extents = self.scopes.pop()

    def first_time(self, key: object) -> bool:
        """Whether nothing in scope has tested this; from now on something has."""
        if key in self.tested:
            return False
        self.tested.add(key)
        return True

    def visit(self, op: Op) -> None:
        if isinstance(op, Load | Store | Atomic):
            self.access(op)
        elif isinstance(op, Prim):
            if op.prim in p.DIVISIONS:
                self.division(op)
            elif op.prim is p.extract or op.prim is p.insert:
                self.component(op)
        elif isinstance(op, Check) and op.args[0] == false:
            self.tested.add(_NEVER_REACHED)
        super().visit(op)

    def apply(self, prim: Primitive, op: Op, *args: Atom) -> Var:
        out = Var(u1)
        self.emit(Prim(prim, args, (out,), op.loc, op.origin))
        return out

    def access(self, op: Load | Store | Atomic) -> None:
        access = self.accesses.of(op)
        buffer = op.buffer
        extents = (*buffer.shape, *buffer.element)
        for axis, index in enumerate(op.index):
            known = extents[axis]
            if not self.first_time((index, known if known is not None else (buffer, axis))):
                continue
            sides = self.accesses.in_range(access, axis)
            if sides != (True, True):
                first = buffer.offset[axis] if axis < len(buffer.offset) else 0
                self.test(op, index, sides, self.extent(op, buffer, axis, index), buffer.name, axis, first)

    def extent(self, op: Op, buffer: Buffer, axis: int, index: Atom) -> Atom:
        """The extent along an axis, in the type of the index."""
        assert isinstance(index.type, Scalar)
        known = (*buffer.shape, *buffer.element)[axis]
        if known is not None:
            return Lit(known, index.type)
        extent = self.extents.get((buffer, axis))
        if extent is None:
            out = Var(i32)
            self.emit(Extent(buffer, axis, (out,), op.loc))
            self.extents[buffer, axis] = extent = out
        if index.type is i32:
            return extent
        wide = Var(index.type)
        self.emit(Prim(p.cast, (extent,), (wide,), op.loc, op.origin))
        return wide

    def test(
        self, op: Op, index: Atom, sides: tuple[bool, bool], extent: Atom, name: str, axis: int, first: int = 0
    ) -> None:
        """Emit the check of an index for the sides that are not proved. `first`: what the user counts from."""
        assert isinstance(index.type, Scalar)
        condition: Atom | None = None
        if not sides[0]:
            condition = self.apply(p.ge, op, index, Lit(0, index.type))
        if not sides[1]:
            below = self.apply(p.lt, op, index, extent)
            condition = below if condition is None else self.apply(p.and_, op, condition, below)
        assert condition is not None
        shown = (index, extent, Lit(first, index.type)) if first else (index, extent)
        self.emit(Check(FaultKind.BOUNDS, (condition, *shown), name, axis, op.loc))

    def component(self, op: Prim) -> None:
        """The run-time indices of a local vector, matrix or array."""
        tensor = op.args[0]
        assert isinstance(tensor, Var) and isinstance(tensor.type, Tensor)
        known = self.accesses.known_before(op)
        indices = op.args[1:] if op.prim is p.extract else op.args[1:-1]
        name = tensor.name or (op.out.name if op.prim is p.insert else "") or "local array"
        for axis, (index, extent) in enumerate(zip(indices, tensor.type.shape, strict=True)):
            sides = self.accesses.between(self.accesses.affine(index), constant(extent), known)
            if sides != (True, True) and self.first_time((index, extent)):
                assert isinstance(index.type, Scalar)
                self.test(op, index, sides, Lit(extent, index.type), name, axis)

    def division(self, op: Prim) -> None:
        divisor = op.args[1]
        if not is_integer(op.out.type) or not isinstance(divisor.type, Scalar):
            return
        sign = "//" if op.prim in (p.floordiv, p.raw_div) else "%"
        if isinstance(divisor, Lit):
            if divisor.value == 0 and self.first_time(_NEVER_REACHED):
                self.emit(Check(FaultKind.DIVISION, (false, op.args[0]), sign, loc=op.loc))
            return
        if self.accesses.surely_not_zero(divisor, self.accesses.known_before(op)):
            return
        if self.first_time(divisor):
            condition = self.apply(p.ne, op, divisor, Lit(0, divisor.type))
            self.emit(Check(FaultKind.DIVISION, (condition, op.args[0]), sign, loc=op.loc))
