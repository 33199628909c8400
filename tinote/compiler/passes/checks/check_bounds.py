"""Inserts checks before every access that is not proved in range and before every division that may be by zero.

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

Only the side that is not proved is tested (`tinote.ir.access` does the proofs). A test is not repeated where an equal
one is in scope. A local array's run-time index is checked like a buffer's.

Simplification requests the checks of operations that it is about to drop (`only`): a fault is an effect, and stays
although the value is unused.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Accesses, accesses_of
from tinote.ir.affine import constant
from tinote.ir.buffers import family_of
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar, Tensor, i32, is_integer, u1

#: The entry among the tested conditions for a check that always fails.
_NEVER_REACHED = "never reached"


def check_bounds(fn: ir.Function, only: AbstractSet[ir.Op] | None = None) -> ir.Function:
    """`fn` in the CHECKED form.

    With `only`, just the checks of these operations; none for an operation if another one with the same index, in the
    same region or around it, has the check.
    """
    return _Checker(fn, only).run(fn)


def may_fault(op: ir.Op) -> bool:
    """Whether an operation stops the launch for some operands: it has an index, or is an integer division."""
    if isinstance(op, ir.Load | ir.Store | ir.Atomic):
        return bool(op.index)
    if not isinstance(op, ir.Prim):
        return False
    if op.prim in p.DIVISIONS:
        return is_integer(op.out.type)
    return op.prim is p.extract or op.prim is p.insert


class AccessRewriter(Rewriter):
    """Base of rewriters that test indices. Nothing is renamed, so operations are analysed as they were."""

    def __init__(self, fn: ir.Function) -> None:
        super().__init__()
        self.fn = fn
        #: extents that are read in the open regions
        self.extents: dict[tuple[ir.Buffer, int], ir.Var] = {}
        self._extents_around: list[dict[tuple[ir.Buffer, int], ir.Var]] = []

    @cached_property
    def accesses(self) -> Accesses:
        return accesses_of(self.fn)

    def enter(self, region: ir.Region) -> None:
        self._extents_around.append(dict(self.extents))

    def leave(self, region: ir.Region) -> None:
        self.extents = self._extents_around.pop()

    def extent(self, op: ir.Op, buffer: ir.Buffer, axis: int, index: ir.Atom) -> ir.Atom:
        """The extent along an axis, in the type of the index."""
        assert isinstance(index.type, Scalar)
        known = (*buffer.shape, *buffer.element)[axis]
        if known is not None:
            return ir.Lit(known, index.type)
        extent = self.extents.get((buffer, axis))
        if extent is None:
            out = ir.Var(i32)
            self.emit(ir.Extent(buffer, axis, (out,), op.loc))
            self.extents[buffer, axis] = extent = out
        return extent if index.type is i32 else self.apply(p.cast, index.type, op, extent)

    def in_range(self, op: ir.Op, index: ir.Atom, sides: tuple[bool, bool], extent: ir.Atom) -> ir.Atom:
        """The condition that an index is in range on the sides that are not proved, one at least."""
        assert isinstance(index.type, Scalar)
        condition: ir.Atom | None = None
        if not sides[0]:
            condition = self.apply(p.ge, u1, op, index, ir.Lit(0, index.type))
        if not sides[1]:
            below = self.apply(p.lt, u1, op, index, extent)
            condition = below if condition is None else self.apply(p.and_, u1, op, condition, below)
        assert condition is not None
        return condition


class _Checker(AccessRewriter):
    def __init__(self, fn: ir.Function, only: AbstractSet[ir.Op] | None) -> None:
        super().__init__(fn)
        self.only = only
        #: conditions tested or proved in the open regions: an index against an extent, or a divisor
        self.tested: set[object] = set()
        self._tested_around: list[set[object]] = []

    def enter(self, region: ir.Region) -> None:
        super().enter(region)
        self._tested_around.append(set(self.tested))
        if self.only is not None:
            for op in region.body:
                if op not in self.only and may_fault(op):
                    self.tested.update(_tests(op))

    def leave(self, region: ir.Region) -> None:
        super().leave(region)
        self.tested = self._tested_around.pop()

    def first_time(self, key: object) -> bool:
        """Whether no test in scope covers this; records it as tested."""
        if key in self.tested:
            return False
        self.tested.add(key)
        return True

    def visit(self, op: ir.Op) -> None:
        if self.only is not None and op not in self.only:
            pass
        elif isinstance(op, ir.Load | ir.Store | ir.Atomic):
            self.access(op)
        elif isinstance(op, ir.Prim):
            if op.prim in p.DIVISIONS:
                self.division(op)
            elif op.prim is p.extract or op.prim is p.insert:
                self.component(op)
        elif isinstance(op, ir.Check) and op.args[0] == ir.false:
            self.tested.add(_NEVER_REACHED)
        super().visit(op)

    def access(self, op: ir.Load | ir.Store | ir.Atomic) -> None:
        buffer = op.buffer
        sparsity = family_of(buffer).sparsity
        # The places in a sparse field come from indices that the front end has checked.
        known, shown = (0, 0) if sparsity is None else (buffer.rank, len(sparsity.shape) - buffer.rank)
        for axis, (index, test) in enumerate(zip(op.index, _tests(op), strict=True)):
            if axis < known or not self.first_time(test):
                continue
            sides = self.accesses.in_range(self.accesses.of(op), axis)
            if sides != (True, True):
                first = buffer.offset[axis] if axis < len(buffer.offset) else 0
                self.test(op, index, sides, self.extent(op, buffer, axis, index), buffer.name, axis + shown, first)

    def test(
        self, op: ir.Op, index: ir.Atom, sides: tuple[bool, bool], extent: ir.Atom, name: str, axis: int, first: int = 0
    ) -> None:
        """Emit the check of an index for the sides that are not proved. `first`: the first index as the user counts."""
        assert isinstance(index.type, Scalar)
        condition = self.in_range(op, index, sides, extent)
        shown = (index, extent, ir.Lit(first, index.type)) if first else (index, extent)
        self.emit(ir.Check(ir.FaultKind.BOUNDS, (condition, *shown), name, axis, op.loc))

    def component(self, op: ir.Prim) -> None:
        """The run-time indices of a local vector, matrix or array."""
        tensor = op.args[0]
        assert isinstance(tensor, ir.Var) and isinstance(tensor.type, Tensor)
        name = tensor.name or (op.out.name if op.prim is p.insert else "") or "local array"
        for axis, test in enumerate(_tests(op)):
            index, extent = test
            if isinstance(index, ir.Lit) and 0 <= index.value < extent:
                continue
            known = self.accesses.known_before(op)
            sides = self.accesses.between(self.accesses.affine(index), constant(extent), known)
            if sides != (True, True) and self.first_time(test):
                assert isinstance(index.type, Scalar)
                self.test(op, index, sides, ir.Lit(extent, index.type), name, axis)

    def division(self, op: ir.Prim) -> None:
        divisor = op.args[1]
        if not is_integer(op.out.type) or not isinstance(divisor.type, Scalar):
            return
        sign = "//" if op.prim in (p.floordiv, p.raw_div) else "%"
        if isinstance(divisor, ir.Lit):
            if divisor.value == 0 and self.first_time(_NEVER_REACHED):
                self.emit(ir.Check(ir.FaultKind.DIVISION, (ir.false, op.args[0]), sign, loc=op.loc))
            return
        if divisor in self.tested or self.accesses.surely_not_zero(divisor, self.accesses.known_before(op)):
            return
        if self.first_time(divisor):
            condition = self.apply(p.ne, u1, op, divisor, ir.Lit(0, divisor.type))
            self.emit(ir.Check(ir.FaultKind.DIVISION, (condition, op.args[0]), sign, loc=op.loc))


def _tests(op: ir.Op) -> list[Any]:
    """The operands of an operation's checks.

    For each index: the index and the extent, or the buffer and the axis if the extent is not known. For a division: the
    divisor.
    """
    if isinstance(op, ir.Load | ir.Store | ir.Atomic):
        buffer = op.buffer
        extents = (*buffer.shape, *buffer.element)
        return [
            (index, extents[axis] if extents[axis] is not None else (buffer, axis))
            for axis, index in enumerate(op.index)
        ]
    if isinstance(op, ir.Prim) and op.prim in p.DIVISIONS:
        return [op.args[1]]
    tensor = op.args[0].type
    assert isinstance(op, ir.Prim) and isinstance(tensor, Tensor)
    return list(zip(op.args[1:] if op.prim is p.extract else op.args[1:-1], tensor.shape, strict=True))
