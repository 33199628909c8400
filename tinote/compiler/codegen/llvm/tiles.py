"""Tiles: rows of memory of several lanes, transposed so that each column is contiguous; and local arrays of lanes, with
the same layout.
"""

from __future__ import annotations

from tinote.compiler.codegen.llvm.emitter import FunctionEmitter
from tinote.compiler.codegen.llvm.expressions import Body
from tinote.compiler.codegen.llvm.memory import from_memory, load_cell, store_cell, to_memory
from tinote.compiler.codegen.llvm.stacks import Stacks
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES
from tinote.ir.buffers import root_of
from tinote.ir.lanes import LoadTile, StoreTile
from tinote.ir.nodes import Lit, Local, Op
from tinote.ir.types import Lanes, Tile
from tinote.runtime import library

#: Bytes of a tile on the machine's stack, at most, while there is room; larger ones are in the arena. Chosen, not
#: measured.
_MAX_BYTES_ON_STACK = 16 << 10


def load_tile(e: FunctionEmitter, stacks: Stacks, op: LoadTile) -> None:
    tile, width = op.out.type, op.width
    assert isinstance(tile, Tile)
    t, size = tile.content, tile.content.dtype.size
    square = _square(e, t)
    if isinstance(width, Lit):
        # Whole squares are written.
        rows = -(-int(width.value) // (size * square)) * square
        room = str(rows * size * t.lanes)
    else:
        columns = e.value(f"sdiv exact i64 {e.use(width)}, {size}")
        rows = e.value(f"and i64 {e.value(f'add nuw nsw i64 {columns}, {square - 1}')}, {-square}")
        room = e.value(f"mul nuw nsw i64 {rows}, {size * t.lanes}")
    if isinstance(width, Lit) and int(room) <= _MAX_BYTES_ON_STACK and e.fits_stack(int(room)):
        address = e.first(f"alloca [{room} x i8], align 64")
    else:
        address = stacks.allocate(room, op.loc)
    e.env[op.out] = address
    e.tiles[op.out] = e.module.aliasing.of(op)
    _move(e, op, t, address)


def local_tile(e: FunctionEmitter, stacks: Stacks, op: Local) -> None:
    """A local array of each lane, of zeros."""
    tile, (size,) = op.out.type, op.args
    assert isinstance(tile, Tile) and isinstance(size, Lit)
    room = int(size.value) * tile.content.lanes
    if room <= _MAX_BYTES_ON_STACK and e.fits_stack(room):
        address = e.first(f"alloca [{room} x i8], align 64")
    else:
        address = stacks.allocate(str(room), op.loc, "a local array")
    e.env[op.out] = address
    e.tiles[op.out] = ""
    e.do(f"call void @llvm.memset.p0.i64(ptr align 8 {address}, i8 0, i64 {room}, i1 false)")


def store_tile(e: FunctionEmitter, op: StoreTile) -> None:
    tile = op.value.type
    assert isinstance(tile, Tile)
    _move(e, op, tile.content, e.use(op.value))


def _move(e: FunctionEmitter, op: LoadTile | StoreTile, t: Lanes, address: str) -> None:
    """Move all rows between the tile and memory, beginning with the address of the first one. A library function does
    it; its arguments are the stride of rows, their length, the number of lanes and the number of lanes with a row.
    """
    size = t.dtype.size
    start = e.value(f"getelementptr i8, ptr {e.pointer(root_of(op.buffer))}, i64 {e.use(op.index[0])}")
    # The lanes that have a row are the first ones.
    on = e.value(f"zext <{t.lanes} x i1> {e.use(op.mask)} to <{t.lanes} x i8>")
    few = e.value(f"call i8 @llvm.vector.reduce.add.v{t.lanes}i8(<{t.lanes} x i8> {on})")
    count = e.value(f"zext i8 {few} to i64")
    width = op.width
    columns = int(width.value) // size if isinstance(width, Lit) else e.value(f"sdiv exact i64 {e.use(width)}, {size}")
    square, loads = _square(e, t), isinstance(op, LoadTile)
    name = f"{library.PREFIX}{'load' if loads else 'store'}_tile.v{square}i{8 * size}"
    if name not in e.helpers:
        e.helpers[name] = f"declare void @{name}({_PARAMETERS}) nounwind memory(argmem: readwrite)\n"
        library.define(name, _mover(name, size, square, e.module.options.vector_width, loads=loads))
    sizes = f"i64 {e.use(op.step)}, i64 {columns}, i64 {t.lanes}, i64 {count}"
    e.do(f"call void @{name}(ptr {address}, ptr {start}, {sizes})")


def get_of_tile(e: FunctionEmitter, op: Op) -> None:
    if not isinstance(op.args[1].type, Lanes):
        e.env[op.out] = load_cell(e, *_place(e, op))
        return
    t, suffix, pointers, mask = _places(e, op)
    memory = MEMORY_TYPES[t]
    value = e.value(f"call {memory} @llvm.masked.gather.{suffix}({pointers}, {mask}, {memory} poison)")
    e.env[op.out] = from_memory(e, t, value)


def set_of_tile(e: FunctionEmitter, op: Op) -> None:
    if not isinstance(op.args[1].type, Lanes):
        t, address, metadata = _place(e, op)
        store_cell(e, t, e.use(op.args[2]), address, metadata)
        return
    t, suffix, pointers, mask = _places(e, op)
    value = to_memory(e, t, e.use(op.args[2]))
    e.do(f"call void @llvm.masked.scatter.{suffix}({MEMORY_TYPES[t]} {value}, {pointers}, {mask})")


def _places(e: FunctionEmitter, op: Op) -> tuple[Lanes, str, str, str]:
    """Separate addresses for each lane: the type there; for an intrinsic, the suffix, the addresses and the mask."""
    rows, places = op.args[:2]
    tile = rows.type
    assert isinstance(tile, Tile)
    t, size = tile.content, tile.content.dtype.size
    n = t.lanes
    scaled = e.value(f"mul nuw nsw <{n} x i64> {e.use(places)}, splat (i64 {n})")
    columns = ", ".join([f"i64 {lane * size}" for lane in range(n)])
    offsets = e.value(f"add nuw nsw <{n} x i64> {scaled}, <{columns}>")
    addresses = e.value(f"getelementptr i8, ptr {e.use(rows)}, <{n} x i64> {offsets}")
    suffix = f"v{n}{'f' if t.dtype.kind == 'f' else 'i'}{size * 8}.v{n}p0"
    return t, suffix, f"<{n} x ptr> align {size} {addresses}", f"<{n} x i1> splat (i1 true)"


def _place(e: FunctionEmitter, op: Op) -> tuple[Lanes, str, str]:
    """One column of all rows: its type, its address and its alias metadata."""
    rows, place = op.args[:2]
    tile = rows.type
    assert isinstance(tile, Tile)
    offset = e.value(f"mul nuw nsw i64 {e.use(place)}, {tile.content.lanes}")
    address = e.value(f"getelementptr inbounds i8, ptr {e.use(rows)}, i64 {offset}")
    return tile.content, address, e.tiles[rows]  # type: ignore[index]


def _square(e: FunctionEmitter, t: Lanes) -> int:
    """The number of lanes transposed at once, which fill a vector register."""
    bits = e.module.options.vector_width or 256
    return min(t.lanes, max(2, bits // (8 * t.dtype.size)))


_PARAMETERS = (
    "ptr noalias captures(none) %tile, ptr noalias captures(none) %rows, "
    "i64 %step, i64 %columns, i64 %lanes, i64 %count"
)


def _mover(name: str, size: int, n: int, vector_width: int, *, loads: bool) -> str:
    """The function that moves the rows of a tile of numbers of `size` bytes: `n` lanes after the other, and `n` numbers
    of their rows at once.
    """
    ty = f"i{8 * size}"
    vector, mask, suffix = f"<{n} x {ty}>", f"<{n} x i1>", f"v{n}{ty}.p0"
    f = Body()
    last = f.value("sub i64 %count, 1")
    pitch = f.value(f"mul i64 %lanes, {size}")
    none = f.value("icmp eq i64 %columns, 0")
    f.lines += [f"  br i1 {none}, label %done, label %group", "group:"]
    f.lines.append("  %lane = phi i64 [ 0, %entry ], [ %after, %next ]")
    lanes = [f.value(f"add nuw nsw i64 %lane, {k}") for k in range(n)]
    # Lanes without a row read the last one's, and write nothing.
    read = [f.value(f"call i64 @llvm.umin.i64(i64 {lane}, i64 {last})") for lane in lanes]
    rows = [f.value(f"getelementptr i8, ptr %rows, i64 {f.value(f'mul i64 {row}, %step')}") for row in read]
    on = [f.value(f"icmp ult i64 {lane}, %count") for lane in lanes] if not loads else []
    f.lines += ["  br label %loop", "loop:", "  %column = phi i64 [ 0, %group ], [ %following, %loop ]"]
    few = f.value(f"call i64 @llvm.umin.i64(i64 {f.value('sub i64 %columns, %column')}, i64 {n})")
    first = f.value(f"insertelement <{n} x i32> poison, i32 {f.value(f'trunc i64 {few} to i32')}, i64 0")
    every = f.value(f"shufflevector <{n} x i32> {first}, <{n} x i32> poison, <{n} x i32> zeroinitializer")
    counts = ", ".join([f"i32 {k}" for k in range(n)])
    inside = f.value(f"icmp ugt <{n} x i32> {every}, <{counts}>")
    here = f.value(f"mul nuw nsw i64 %column, {size}")
    there = f.value(f"mul nuw nsw i64 %column, {pitch}")
    start = f.value(f"add nuw nsw i64 {there}, {f.value(f'mul nuw nsw i64 %lane, {size}')}")
    offsets = [f.value(f"add nuw nsw i64 {start}, {f.value(f'mul nuw nsw i64 {pitch}, {k}')}") for k in range(n)]
    places = [f.value(f"getelementptr i8, ptr %tile, i64 {offset}") for offset in offsets]
    parts = [f.value(f"getelementptr i8, ptr {row}, i64 {here}") for row in rows]
    if loads:
        load = f"call {vector} @llvm.masked.load.{suffix}(ptr align {size} {{}}, {mask} {inside}, {vector} poison)"
        moved = _transposed(f, [f.value(load.format(part)) for part in parts], ty)
        f.lines += [f"  store {vector} {v}, ptr {at}, align {size * n}" for v, at in zip(moved, places, strict=True)]
    else:
        moved = _transposed(f, [f.value(f"load {vector}, ptr {at}, align {size * n}") for at in places], ty)
        for v, part, writes in zip(moved, parts, on, strict=True):
            which = f.value(f"select i1 {writes}, {mask} {inside}, {mask} zeroinitializer")
            f.lines.append(
                f"  call void @llvm.masked.store.{suffix}({vector} {v}, ptr align {size} {part}, {mask} {which})"
            )
    f.lines.append(f"  %following = add nuw nsw i64 %column, {n}")
    more = f.value("icmp slt i64 %following, %columns")
    f.lines += [f"  br i1 {more}, label %loop, label %next", "next:", f"  %after = add nuw nsw i64 %lane, {n}"]
    more = f.value("icmp ult i64 %after, %count")
    f.lines += [f"  br i1 {more}, label %group, label %done", "done:", "  ret void"]
    width = f' "prefer-vector-width"="{vector_width}"' if vector_width else ""
    return f"define void @{name}({_PARAMETERS}) nounwind{width} {{\nentry:\n" + f"{f.text}}}\n"


def _transposed(f: Body, rows: list[str], ty: str) -> list[str]:
    """A square of vectors, transposed by exchanging pairs of ever larger blocks."""
    n = len(rows)
    block = 1
    while block < n:
        new = list(rows)
        for k in range(n):
            if k & block:
                continue
            a, b = rows[k], rows[k | block]
            lower = [j if not j & block else n + (j ^ block) for j in range(n)]
            upper = [j | block if not j & block else n + j for j in range(n)]
            for to, chosen in ((k, lower), (k | block, upper)):
                text = ", ".join([f"i32 {j}" for j in chosen])
                new[to] = f.value(f"shufflevector <{n} x {ty}> {a}, <{n} x {ty}> {b}, <{n} x i32> <{text}>")
        rows = new
        block *= 2
    return rows
