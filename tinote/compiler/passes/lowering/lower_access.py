"""Turns the indices of every load, store and atomic into one byte offset in a flat view of its buffer.

    %v: f32 = load @x[%i][1i32]          %a: i64 = cast %i
                                   ->    %b: i64 = mul %a, 8i64
                                         %c: i64 = add %b, 4i64
                                         %v: f32 = load @x.flat[%c]

Known strides are literals; those of an array whose shape is known only at launch are computed from its extents. The
sums and products serve only as offsets, and every access is in range, so machine code may assume that they do not wrap.
For the same reason a constant added to an index becomes part of the constant offset: x[i + 1] and x[i] share the offset
computed from i. Loads of temporaries between tasks stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinote.ir import primitives as p
from tinote.ir.access import MAX_SUMMAND, base_and_offset
from tinote.ir.nodes import Atom, Atomic, Buffer, Extent, Function, Lit, Load, MemoryOp, Op, Region, Store, Var
from tinote.ir.query import definitions
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import i32, i64


def lower_access(fn: Function) -> Function:
    """Lower every access inside of tasks."""
    return _Lowering(fn).run(fn)


class _Lowering(Rewriter):
    """Lowers accesses. Nothing is renamed, so old definitions stay valid."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self._made = definitions(fn.region)
        self._views: dict[Buffer, Buffer] = {}
        self._depth = 0

    def enter(self, region: Region) -> None:
        self._depth += 1

    def leave(self, region: Region) -> None:
        self._depth -= 1

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        between_tasks = self._depth == 1
        if not isinstance(op, MemoryOp) or isinstance(op, Extent) or op.buffer.flat is not None or between_tasks:
            return KEEP
        view, offset = self._view(op.buffer), self._offset(op)
        if isinstance(op, Load):
            self.emit(Load(view, (offset,), op.outs, op.loc, op.origin))
        elif isinstance(op, Store):
            self.emit(Store(view, (offset,), op.value, op.loc, op.origin))
        elif isinstance(op, Atomic):
            self.emit(Atomic(op.prim, view, (offset,), op.value, op.outs, op.loc, op.origin, op.plain))
        return DROP

    def _view(self, buffer: Buffer) -> Buffer:
        found = self._views.get(buffer)
        if found is None:
            found = Buffer(buffer.name, buffer.dtype, (None,), kind=buffer.kind, flat=buffer)
            self._views[buffer] = found
        return found

    def _offset(self, op: MemoryOp) -> Atom:
        buffer = op.buffer
        ranks, components = op.index[: buffer.rank], op.index[buffer.rank :]
        terms: list[tuple[Atom, int]] = []
        constant = 0
        if buffer.strides is not None:
            for index, stride, extent in zip(ranks, buffer.strides, buffer.shape, strict=True):
                base, added = self._split(index, extent)
                terms.append((base, stride))
                constant += added * stride
        elif ranks:
            size = buffer.dtype.size * math.prod(buffer.element)
            terms.append((self._row_major(op, ranks), size))
        terms += zip(components, buffer.element_strides, strict=True)
        constant += sum(int(a.value) * stride for a, stride in terms if isinstance(a, Lit))
        total: Atom | None = None
        for atom, stride in terms:
            if not isinstance(atom, Lit):
                term = self.apply(p.mul, i64, op, self._wide(op, atom), Lit(stride, i64))
                total = term if total is None else self.apply(p.add, i64, op, total, term)
        if total is None:
            return Lit(constant, i64)
        return self.apply(p.add, i64, op, total, Lit(constant, i64)) if constant else total

    def _split(self, index: Atom, extent: int | None) -> tuple[Atom, int]:
        """An index as another one plus a constant, if their sum does not wrap."""
        t = index.type
        if t in (i32, i64) and extent is not None and extent < MAX_SUMMAND:
            base, added = base_and_offset(index, self._made)
            added = int(t.wrap(added))
            if base is not None and base.type is t and abs(added) < MAX_SUMMAND:
                return base, added
        return index, 0

    def _row_major(self, op: MemoryOp, indices: tuple[Atom, ...]) -> Atom:
        """The row-major number of an element in an array whose extents are known only at launch."""
        linear = self._wide(op, indices[0])
        for axis in range(1, len(indices)):
            known = op.buffer.shape[axis]
            if known is None:
                length = Var(i32)
                self.emit(Extent(op.buffer, axis, (length,), op.loc))
                extent = self._wide(op, length)
            else:
                extent = Lit(known, i64)
            scaled = self.apply(p.mul, i64, op, linear, extent)
            linear = self.apply(p.add, i64, op, scaled, self._wide(op, indices[axis]))
        return linear

    def _wide(self, op: Op, atom: Atom) -> Atom:
        if isinstance(atom, Lit):
            return Lit(int(atom.value), i64)
        return atom if atom.type is i64 else self.apply(p.cast, i64, op, atom)
