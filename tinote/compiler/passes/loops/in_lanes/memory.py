"""Memory in lanes: masked, gathered and scattered elements, tiles of rows, local arrays, updates of one element."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tinote.compiler.passes.analyses.choose_lanes import Columns, are_apart
from tinote.compiler.passes.analyses.choose_tiles import RowTile, row_of
from tinote.compiler.passes.loops.in_lanes.loop import LoopInLanes, zero_of
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.atoms import true
from tinote.ir.buffers import root_of
from tinote.ir.lanes import LoadTile, MaskedLoad, MaskedStore, Ramp
from tinote.ir.types import Lanes, Ref, Tile, element_type, i32, i64, shape_of, u1


def offset_of(e: LoopInLanes, op: ir.MemoryOp) -> ir.Atom:
    """The offsets of the lanes' elements: that of the first lane if they are consecutive, else one for each lane."""
    (offset,) = op.index
    step = e.divergence.step(offset)
    if step == op.buffer.dtype.size:
        return offset
    if not step:
        return e.spread(offset)
    out = ir.Var(e.type(i64))
    e.emit(Ramp((offset, e.step(offset)), (out,), (), op.loc))
    return out


def load_tile(e: LoopInLanes, tile: RowTile) -> None:
    """Load the rows of all lanes, at the start of the iterations."""
    known, axes = row_of(tile.buffer)
    step: ir.Atom = ir.Lit(known, i64)
    for axis in axes:
        extent = ir.Var(i32)
        e.emit(ir.Extent(root_of(tile.buffer), axis, (extent,), e.op.loc))
        step = e.prim(p.mul, e.widened(extent), step, t=i64)
    index = e.widened(e.loop.regions[0].params[0])
    first: ir.Atom = e.prim(p.mul, index, step, t=i64)
    if tile.start:
        first = e.prim(p.add, first, ir.Lit(tile.start, i64), t=i64)
    where = (first, step, step if tile.width is None else ir.Lit(tile.width, i64), e.mask)
    rows = ir.Var(Tile(e.type(tile.buffer.dtype)), root_of(tile.buffer).name)
    e.emit(LoadTile(tile.buffer, where, (rows,), e.op.loc))
    e.loaded[tile] = rows, where


def update_tile(e: LoopInLanes, op: ir.Load | ir.Store | ir.Atomic, tile: RowTile) -> None:
    """An access to one column of the tile."""
    rows, (first, *_) = e.loaded[tile]
    place = e.prim(p.sub, op.index[0], first, t=i64)
    t = e.type(op.buffer.dtype)
    # The rows of lanes without an iteration are not written back.
    everywhere = e.mask is e.loop_mask
    held = e.lanes_for(op.out) if isinstance(op, ir.Load) else ir.Var(t)
    if not isinstance(op, ir.Store) or not everywhere:
        e.emit(ir.Get((rows, place), (held,), (), op.loc, op.origin))
    if isinstance(op, ir.Load):
        return
    value = e.spread(op.value)
    new = e.prim(op.prim, held, value, t=t) if isinstance(op, ir.Atomic) else value
    kept = new if everywhere else e.chosen(e.mask, new, held)
    e.emit(ir.Set((rows, place, kept), (), (), op.loc, op.origin))


def cell(e: LoopInLanes, op: ir.Local | ir.Get | ir.Set) -> None:
    """A local cell or array: one for each lane, interleaved so that one element of all lanes is contiguous."""
    cell = op.out if isinstance(op, ir.Local) else op.args[0]
    assert isinstance(cell, ir.Var) and isinstance(cell.type, Ref)
    dtype = element_type(cell.type)
    if isinstance(op, ir.Local):
        count = math.prod(shape_of(cell.type.content))
        memory = e.cells[cell] = ir.Var(Tile(e.type(dtype)), cell.name)
        e.emit(ir.Local((ir.Lit(count * dtype.size, i64),), (memory,), (), op.loc, op.origin))
        for initial in op.args:
            e.emit(ir.Set((memory, ir.Lit(0, i64), e.spread(initial)), (), (), op.loc, op.origin))
        return
    if cell not in e.cells:
        e.emit(op)  # the index is the same in all iterations
        return
    memory = e.cells[cell]
    indices = op.args[1:] if isinstance(op, ir.Get) else op.args[1:-1]
    place = place_of(e, cell, indices)
    everywhere = e.mask is e.loop_mask
    held = e.lanes_for(op.out) if isinstance(op, ir.Get) else ir.Var(e.type(dtype))
    if isinstance(op, ir.Get) or not everywhere:
        e.emit(ir.Get((memory, place), (held,), (), op.loc, op.origin))
    if isinstance(op, ir.Set):
        value = e.spread(op.args[-1])
        kept = value if everywhere else e.chosen(e.mask, value, held)
        e.emit(ir.Set((memory, place, kept), (), (), op.loc, op.origin))


def place_of(e: LoopInLanes, cell: ir.Var, indices: Sequence[ir.Atom]) -> ir.Atom:
    """The byte offset of an element in an array. Inactive lanes may have any index."""
    assert isinstance(cell.type, Ref)
    total: ir.Atom = ir.Lit(0, i64)
    for index, extent in zip(indices, shape_of(cell.type.content), strict=True):
        wide = e.widened(e.each(index))
        if isinstance(wide, ir.Lit):
            wide = ir.Lit(min(max(int(wide.value), 0), extent - 1), i64)
        else:
            t = wide.type
            wide = e.prim(p.minimum, e.prim(p.maximum, wide, ir.Lit(0, i64), t=t), ir.Lit(extent - 1, i64), t=t)
        total = sum_of(e, product_of(e, total, extent), wide)
    return product_of(e, total, element_type(cell.type).size)


def sum_of(e: LoopInLanes, a: ir.Atom, b: ir.Atom) -> ir.Atom:
    if isinstance(a, ir.Lit) and isinstance(b, ir.Lit):
        return ir.Lit(int(a.value) + int(b.value), i64)
    if isinstance(a, ir.Lit) and a.value == 0:
        return b
    return e.prim(p.add, a, b, t=a.type if isinstance(a.type, Lanes) else b.type)


def product_of(e: LoopInLanes, a: ir.Atom, factor: int) -> ir.Atom:
    if isinstance(a, ir.Lit):
        return ir.Lit(int(a.value) * factor, i64)
    return e.prim(p.mul, a, ir.Lit(factor, i64), t=a.type)


def load(e: LoopInLanes, op: ir.Load) -> None:
    offset = offset_of(e, op)
    e.emit(MaskedLoad(op.buffer, (offset, e.mask), (e.lanes_for(op.out),), op.loc, op.origin))


def store(e: LoopInLanes, op: ir.Store) -> None:
    e.emit(MaskedStore(op.buffer, (offset_of(e, op), e.mask), e.spread(op.value), op.loc, op.origin))


def update_column(e: LoopInLanes, op: ir.Atomic, columns: Columns) -> None:
    """An update of a private copy: each lane has its own column."""
    value, (offset,) = e.spread(op.value), op.index
    size, t = op.buffer.dtype.size, e.type(i64)
    if e.divergence.step(offset) == 0:
        # All lanes have the same row, and inactive lanes change nothing.
        value = e.chosen(e.mask, value, ir.Lit(_start(op), op.buffer.dtype))
        at, mask = e.prim(p.mul, offset, ir.Lit(e.lanes, i64), t=i64), e.spread(true)
    else:
        at, mask = e.prim(p.mul, e.spread(offset), ir.Lit(e.lanes, i64), t=t), e.mask
        lane = ir.Var(t)
        e.emit(Ramp((ir.Lit(0, i64), ir.Lit(size, i64)), (lane,), (), op.loc))
        at = e.prim(p.add, at, lane, t=t)
    old = ir.Var(e.type(op.buffer.dtype))
    e.emit(MaskedLoad(columns.view, (at, mask), (old,), op.loc, op.origin))
    new = e.prim(op.prim, old, value, t=old.type)
    e.emit(MaskedStore(columns.view, (at, mask), new, op.loc, op.origin))


def atomic(e: LoopInLanes, op: ir.Atomic) -> None:
    columns = e.columns.get(root_of(op.buffer))
    if columns is not None:
        update_column(e, op, columns)
        return
    if e.divergence.uniform(*op.index) and not op.outs:
        t = op.buffer.dtype
        value = e.spread(op.value)
        total = e.reduce(op.prim, e.chosen(e.mask, value, ir.Lit(_start(op), t)))
        e.emit(op.rebuilt((*op.index, total)))
        return
    if not are_apart(op, e.divergence):
        one_by_one(e, op)
        return
    value, offset = e.spread(op.value), offset_of(e, op)
    old = e.lanes_for(op.out) if op.outs else ir.Var(value.type)
    e.emit(MaskedLoad(op.buffer, (offset, e.mask), (old,), op.loc, op.origin))
    new = e.prim(op.prim, old, value, t=value.type)
    e.emit(MaskedStore(op.buffer, (offset, e.mask), new, op.loc, op.origin))


def one_by_one(e: LoopInLanes, op: ir.Atomic) -> None:
    """An update made lane by lane, since two lanes may update one element."""
    mask, operands = e.mask, [e.each(a) for a in op.args]
    lane = ir.Var(i32, "lane")

    def of_lane(a: ir.Atom) -> ir.Atom:
        return e.prim(p.extract, a, lane, t=a.type.dtype) if isinstance(a.type, Lanes) else a

    # The old value that each lane found, if it is used, is inserted lane by lane.
    carried = tuple([ir.Var(e.type(v.type), v.name) for v in op.outs])
    zeros = tuple([e.spread(zero_of(v.type)) for v in op.outs])

    def update() -> tuple[ir.Atom, ...]:
        outs = tuple([ir.Var(v.type) for v in op.outs])
        e.emit(op.rebuilt(tuple([of_lane(a) for a in operands]), (), outs))
        return outs

    def each() -> tuple[ir.Atom, ...]:
        found = tuple([ir.Var(v.type) for v in op.outs])
        idle = ir.Region((), (), tuple([zero_of(v.type) for v in op.outs]))
        e.emit(ir.If(of_lane(mask), e.region(None, update), idle, found, op.loc, op.origin))
        if not found:
            return ()
        numbers = ir.Var(e.type(i32))
        e.emit(Ramp((ir.Lit(0, i32), ir.Lit(1, i32)), (numbers,), (), op.loc))
        this = e.prim(p.eq, numbers, lane, t=e.type(u1))
        return tuple([e.chosen(this, e.spread(a), old) for a, old in zip(found, carried, strict=True)])

    body = e.region(None, each, lambda: (lane, *carried))
    outs = tuple([e.lanes_for(v) for v in op.outs])
    e.emit(ir.For(ir.Lit(0, i32), ir.Lit(e.lanes, i32), zeros, body, outs, op.loc, origin=op.origin))


def _start(op: ir.Atomic) -> float:
    """The neutral element; -0.0 for sums, which preserves a sum of negative zeros."""
    t = op.buffer.dtype
    return -0.0 if op.prim is p.add and t.kind == "f" else p.neutral(op.prim, t)
