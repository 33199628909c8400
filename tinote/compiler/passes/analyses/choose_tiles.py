"""Finds strided accesses of vectorised loops that are better served by transposed tiles: lanes are whole rows apart.

    for parallel %i: i32 in 0i32 .. %n:              %e = extent @x, 1
      for %k: i32 in 0i32 .. %m:
        for %r: i32 in 0i32 .. %e:
          … load @x.flat[(%i * %e + %r) * 8] …       lane after lane, a row of %e * 8 bytes further

Lanes that read such elements would gather them one by one at each access. Instead the rows of all lanes are read once
at the start of the iterations and transposed (`LoadTile`), so that one column of all rows is contiguous. Rows that the
iterations change are written back at the end (`StoreTile`).

A row begins where the first index of its array is the loop's own. Either an inner loop walks the whole row, or the
accessed columns lie close together, so that no more memory is touched than before. An iteration may write an array only
in its own row, and may read other rows only of arrays that are not written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import buffers_may_meet
from tinote.ir.buffers import root_of
from tinote.ir.divergence import Divergence, Stride
from tinote.ir.query import walk
from tinote.ir.types import i64

#: Greatest length of a row, in numbers: longer rows of all lanes together would not stay in the level-1 cache. Chosen,
#: not measured.
_MAX_ROW = 1024
#: Columns of a tile for each column that is accessed, at most. Chosen, not measured.
_MAX_PLACES_PER_ACCESS = 2


class RowTile(NamedTuple):
    """A tile: the same part of a row of a buffer for each lane. `start`, the bytes before it, and `width`, its bytes
    (None: the whole row, whose length is known at launch).
    """

    buffer: ir.Buffer
    start: int
    width: int | None
    written: bool

    @property
    def whole(self) -> bool:
        """Whether the tile covers whole rows."""
        known, axes = row_of(self.buffer)
        return self.width == (None if axes else known)

    @property
    def columns(self) -> int | None:
        """The number of columns, if known."""
        return None if self.width is None else self.width // self.buffer.dtype.size


def row_of(buffer: ir.Buffer) -> tuple[int, list[int]]:
    """The stride of a buffer's first axis, in bytes: a number, times the extents of these axes."""
    root = root_of(buffer)
    inner = root.shape[1:]
    known = math.prod([root.dtype.size, *root.element, *[n for n in inner if n is not None]])
    return known, [axis for axis, n in enumerate(inner, 1) if n is None]


class _Access(NamedTuple):
    """An access of each lane to the same column of its row; `rest`: the terms of the column's offset besides a
    constant.
    """

    op: ir.MemoryOp
    rest: dict[ir.Var, int]
    constant: int
    #: the loops of the body around it
    loops: tuple[ir.For, ...]
    #: whether every iteration executes it
    certain: bool


def choose_tiles(
    loop: ir.For | ir.Task, divergence: Divergence, definitions: Mapping[ir.Var, ir.Op]
) -> dict[ir.Op, RowTile]:
    """The tile for each access of the loop that uses one."""
    finder = _Finder(loop, divergence, definitions)
    finder.region(loop.regions[0], (), True)
    found: dict[ir.Op, RowTile] = {}
    for root, accesses in finder.accesses.items():
        tile = finder.tile(root, accesses)
        if tile is not None:
            found.update(dict.fromkeys([one.op for one in accesses if _shows(tile, one)], tile))
    return found


def _shows(tile: RowTile, access: _Access) -> bool:
    """Whether a tile contains an access."""
    if tile.whole:
        return True
    return not access.rest and tile.width is not None and 0 <= access.constant - tile.start < tile.width


class _Finder:
    def __init__(self, loop: ir.For | ir.Task, divergence: Divergence, definitions: Mapping[ir.Var, ir.Op]) -> None:
        self.index = loop.regions[0].params[0]
        self.divergence = divergence
        self.definitions = definitions
        #: Within a parallel loop, others may write to the same row.
        self.may_write = isinstance(loop, ir.Task)
        #: how many accesses there are of each buffer, and whether one of them writes
        self.touched: dict[ir.Buffer, tuple[int, bool]] = {}
        for op in walk(loop.regions[0]):
            if isinstance(op, ir.Load | ir.Store | ir.Atomic):
                count, written = self.touched.get(root_of(op.buffer), (0, False))
                self.touched[root_of(op.buffer)] = count + 1, written or not isinstance(op, ir.Load)
        self.accesses: dict[ir.Buffer, list[_Access]] = {}
        #: the least and the greatest value of each loop index
        self.ranges: dict[ir.Atom, tuple[int, int]] = {}

    def region(self, region: ir.Region, loops: tuple[ir.For, ...], certain: bool) -> None:
        for op in region.body:
            if isinstance(op, ir.Load | ir.Store | ir.Atomic):
                self.access(op, loops, certain)
            elif isinstance(op, ir.For):
                lo, hi = self.range(op.lo), self.range(op.hi)
                if lo is not None and hi is not None:
                    self.ranges[op.index] = lo[0], hi[1] - 1
                self.region(op.body, (*loops, op), certain and op not in self.divergence.divergent)
            else:
                for inner in op.regions:
                    self.region(inner, loops, False)

    def range(self, atom: ir.Atom) -> tuple[int, int] | None:
        return (int(atom.value), int(atom.value)) if isinstance(atom, ir.Lit) else self.ranges.get(atom)

    def access(self, op: ir.Load | ir.Store | ir.Atomic, loops: tuple[ir.For, ...], certain: bool) -> None:
        root, (offset,) = root_of(op.buffer), op.index
        step = self.divergence.step(offset)
        size = root.dtype.size
        if not step or step == size or size not in (4, 8) or not self.is_row(root, step):
            return
        if isinstance(op, ir.Atomic) and (op.outs or not op.plain):
            return
        terms, constant = self.terms(offset)
        lanes = [v for v in terms if self.divergence.step(v) != 0]
        rest = {v: k for v, k in terms.items() if v not in lanes or self.has_inner_index(v)}
        if len(lanes) == 1 and self.begins_rows(lanes[0], step) and self.within(rest, constant, step):
            self.accesses.setdefault(root, []).append(_Access(op, rest, constant, loops, certain))

    # decomposition of offsets

    def terms(self, atom: ir.Atom) -> tuple[dict[ir.Var, int], int]:
        """An offset as a linear form: multiples of variables, plus a constant."""
        if isinstance(atom, ir.Lit):
            return {}, int(atom.value)
        op = self.definitions.get(atom)  # type: ignore[arg-type]
        if isinstance(op, ir.Prim) and op.out.type is i64:
            if op.prim is p.cast:
                return self.terms(op.args[0]) if isinstance(op.args[0], ir.Lit) else ({op.args[0]: 1}, 0)
            if op.prim in (p.add, p.sub):
                (terms, constant), (others, further) = self.terms(op.args[0]), self.terms(op.args[1])
                sign = 1 if op.prim is p.add else -1
                for v, factor in others.items():
                    terms[v] = terms.get(v, 0) + sign * factor
                return {v: factor for v, factor in terms.items() if factor}, constant + sign * further
            if op.prim is p.mul and isinstance(op.args[1], ir.Lit):
                factor = int(op.args[1].value)
                terms, constant = self.terms(op.args[0])
                return {v: k * factor for v, k in terms.items()}, constant * factor
        assert isinstance(atom, ir.Var)
        return {atom: 1}, 0

    def is_row(self, root: ir.Buffer, step: int | Stride) -> bool:
        """Whether a stride is that of an array's first axis."""
        if root.kind not in (ir.BufferKind.FIELD, ir.BufferKind.ARRAY) or not root.shape:
            return False
        if root.element_strides != ir.row_major(root.element, root.dtype.size):
            return False
        known, axes = row_of(root)
        if isinstance(step, Stride):
            return step.factor == known and sorted([self.axis(v, root) for v in step.by]) == axes
        inner = [n for n in root.shape[1:] if n is not None]
        dense = root.strides in (None, ir.row_major((1, *inner), root.dtype.size * math.prod(root.element)))
        return dense and not axes and step == known

    def axis(self, v: ir.Atom, root: ir.Buffer) -> int:
        """The axis of `root` whose extent a number is; 0 if there is none, except perhaps the first."""
        op = self.definitions.get(v)  # type: ignore[arg-type]
        while isinstance(op, ir.Prim) and op.prim is p.cast:
            op = self.definitions.get(op.args[0])  # type: ignore[arg-type]
        return op.axis if isinstance(op, ir.Extent) and root_of(op.buffer) is root else 0

    def begins_rows(self, v: ir.Var, step: int | Stride) -> bool:
        """Whether `v` is the loop's index, or an element number whose first index is the loop's."""
        if isinstance(step, int) or v is self.index:
            return v is self.index
        op = self.definitions.get(v)
        if not isinstance(op, ir.Prim) or op.prim not in (p.cast, p.add, p.mul):
            return False
        first = [a for a in op.args if self.divergence.step(a) != 0]
        if len(first) != 1 or not isinstance(first[0], ir.Var):
            return False
        if op.prim is p.add:
            # Adding the second index stays in the row; adding to the first index leads to another row.
            made = self.definitions.get(first[0])
            if not isinstance(made, ir.Prim) or made.prim is not p.mul:
                return False
        return self.begins_rows(first[0], step)

    def has_inner_index(self, v: ir.Var) -> bool:
        """Whether `v`, which depends on the lane, has further indices added to the first one."""
        op = self.definitions.get(v)
        if v is self.index or not isinstance(op, ir.Prim):
            return False
        first = [a for a in op.args if isinstance(a, ir.Var) and self.divergence.step(a) != 0]
        return op.prim is p.add or any(self.has_inner_index(a) for a in first)

    def within(self, rest: dict[ir.Var, int], constant: int, step: int | Stride) -> bool:
        """Whether a place is in the row.

        Where extents are known only at launch, each index is separate and in range.
        """
        if isinstance(step, Stride):
            return True
        least = greatest = constant
        for v, factor in rest.items():
            found = self.ranges.get(v)
            if found is None:
                return False
            ends = sorted([found[0] * factor, found[1] * factor])
            least, greatest = least + ends[0], greatest + ends[1]
        return least >= 0 and greatest < step

    # profitability

    def tile(self, root: ir.Buffer, accesses: list[_Access]) -> RowTile | None:
        """The tile of a buffer whose rows the iterations access completely or nearly so."""
        count, written = self.touched[root]
        if written and (not self.may_write or count != len(accesses)):
            return None
        for other, (_, changes) in self.touched.items():
            if other is not root and (written or changes) and buffers_may_meet(root, other):
                return None
        known, axes = row_of(root)
        size, buffer = root.dtype.size, accesses[0].op.buffer
        if any(self.walks(one, root) for one in accesses if one.certain):
            whole = axes or known <= _MAX_ROW * size
            return RowTile(buffer, 0, None if axes else known, written) if whole else None
        places = sorted({one.constant for one in accesses if one.certain and not one.rest})
        if not places:
            return None
        start, width = places[0], places[-1] - places[0] + size
        if len(places) == 1 or width > _MAX_PLACES_PER_ACCESS * len(places) * size:
            return None
        tile = RowTile(buffer, start, width, written)
        return tile if not written or all(not one.rest and _shows(tile, one) for one in accesses) else None

    def walks(self, access: _Access, root: ir.Buffer) -> bool:
        """Whether the loops around an access walk over all columns of a row."""
        around = {loop.index: loop for loop in access.loops}
        if not access.rest or access.constant or any(v not in around for v in access.rest):
            return False
        ends: list[ir.Atom] = []
        for v in access.rest:
            end: ir.Atom = v
            # A loop that ends at an outer index reaches that loop's end, except for the last column.
            while isinstance(end, ir.Var) and end in around:
                lo, end = around[end].args[:2]
                if not isinstance(lo, ir.Lit) or lo.value != 0:
                    return False
            ends.append(end)
        known, axes = row_of(root)
        if not axes:
            counts = [int(end.value) for end in ends if isinstance(end, ir.Lit)]
            return len(counts) == len(ends) and math.prod(counts) * root.dtype.size == known
        return not root.element and len(root.shape) == 2 and [self.axis(end, root) for end in ends] == [1]
