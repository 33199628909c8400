"""Private copies: a thread accumulates into its own copy of a small buffer, and the copies are merged in the order
of the threads.

A thread's copies lie in its slice of the scratch memory, after a word that says whether the thread took part. Small
copies are kept in registers while the task runs and written to the slice at its end. Merging in a fixed order makes
sums the same every time for the same number of threads.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from tinote.compiler.codegen.llvm import memory as llvm_memory
from tinote.compiler.codegen.llvm.control import counted
from tinote.compiler.codegen.llvm.function import TaskText
from tinote.compiler.codegen.llvm.lanes import combined
from tinote.compiler.codegen.llvm.layout import buffer_bytes
from tinote.compiler.codegen.llvm.primitives import combine
from tinote.compiler.codegen.llvm.types import MEMORY_TYPES, number
from tinote.ir import primitives as p
from tinote.ir.nodes import Buffer, Private, Task
from tinote.ir.types import Lanes, u1
from tinote.runtime import layout as block

#: Bytes before a thread's copies, for its flag: a cache line.
_FLAG_BYTES = 64
#: Greatest size of a copy that is a local variable of its task, in bytes. Chosen, not measured.
_MAX_BYTES_IN_REGISTERS = 256
#: Greatest number of components for which a copy is merged run by run. Chosen, not measured.
_MAX_RUNS = 16


class Slice(NamedTuple):
    """Offsets of a task's private copies in a thread's slice, and the size of the slice."""

    offsets: tuple[int, ...]
    size: int


def place_copies(task: Task) -> Slice:
    offsets: list[int] = []
    at = _FLAG_BYTES
    for private in task.privates:
        offsets.append(at)
        at += (buffer_bytes(private.copy) + 63) & ~63
    return Slice(tuple(offsets), at if offsets else 0)


def _slice_of(e: TaskText, tid: str) -> str:
    """The address of a thread's slice."""
    base_at = e.value(f"getelementptr i8, ptr %block, i64 {block.SCRATCH}")
    base = e.value(f"load ptr, ptr {base_at}, align 8, !invariant.load !0")
    stride_at = e.value(f"getelementptr i8, ptr %block, i64 {block.SCRATCH_STRIDE}")
    stride = e.value(f"load i64, ptr {stride_at}, align 8, !invariant.load !0")
    number_of = e.value(f"zext i32 {tid} to i64") if tid != "0" else "0"
    return e.value(f"getelementptr i8, ptr {base}, i64 {e.value(f'mul i64 {number_of}, {stride}')}")


def begin_copies(e: TaskText, task: Task, slots: Slice) -> list[tuple[str, str, int]]:
    """Before the loop of a task: mark the slice as used and set the copies to their neutral elements.

    Returns the argument of `end_copies`.
    """
    if not task.privates:
        return []
    base = _slice_of(e, e.tid)
    e.do(f"store i64 1, ptr {base}, align 8")
    moves: list[tuple[str, str, int]] = []
    for private, offset in zip(task.privates, slots.offsets, strict=True):
        size = buffer_bytes(private.copy)
        home = e.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        address = home
        if private.is_flat:
            e.assign_pointer(private.copy, address)
            count = merge_count(e, private)
            lanes = private.lanes
            _fill(e, private, address, count if lanes == 1 else e.value(f"mul nuw nsw i64 {count}, {lanes}"))
            continue
        if size <= _MAX_BYTES_IN_REGISTERS:
            address = e.first(f"alloca [{size} x i8], align 64")
            moves.append((home, address, size))
        e.assign_pointer(private.copy, address)
        _fill(e, private, address, str(size // private.copy.dtype.size))
    return moves


def _fill(e: TaskText, private: Private, address: str, count: str) -> None:
    """Set `count` numbers of a copy to the neutral element."""
    t = private.copy.dtype
    start = p.neutral(private.prim, t)
    if start == 0 and not (t.kind == "f" and math.copysign(1.0, start) < 0):
        if count == "1":
            e.do(f"store {MEMORY_TYPES[t]} {'0' if t is u1 else number(t, 0)}, ptr {address}, align {t.alignment}")
        else:
            size = str(int(count) * t.size) if count.isdigit() else e.value(f"mul nuw nsw i64 {count}, {t.size}")
            e.do(f"call void @llvm.memset.p0.i64(ptr align 64 {address}, i8 0, i64 {size}, i1 false)")
        return
    text = str(int(start)) if t is u1 else number(t, start)
    with counted(e, "0", count) as iteration:
        at = e.value(f"getelementptr inbounds {MEMORY_TYPES[t]}, ptr {address}, i64 {iteration}")
        e.do(f"store {MEMORY_TYPES[t]} {text}, ptr {at}, align {t.alignment}")


def end_copies(e: TaskText, moves: list[tuple[str, str, int]]) -> None:
    """After the loop of a task: copies that were kept in registers go to the slice."""
    for home, address, size in moves:
        e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 64 {home}, ptr align 64 {address}, i64 {size}, i1 false)")


def clear_flags(e: TaskText) -> None:
    """Before a task runs: no thread has taken part."""
    with counted(e, "0", _threads(e)) as iteration:
        e.do(f"store i64 0, ptr {_slice_of(e, e.value(f'trunc nsw i64 {iteration} to i32'))}, align 8")


def _threads(e: TaskText) -> str:
    at = e.value(f"getelementptr i8, ptr %block, i64 {block.NUM_THREADS}")
    return e.value(f"zext i32 {e.value(f'load i32, ptr {at}, align 8, !invariant.load !0')} to i64")


class _Run(NamedTuple):
    """Elements at equal distances: where they begin and how far apart they are, in the copy and in the target."""

    copy_start: int
    target_start: int
    copy_step: int
    target_step: int


def _one_column(private: Private) -> Buffer:
    """The copy as if it had a single column."""
    copy, lanes = private.copy, private.lanes
    if lanes == 1:
        return copy
    strides = tuple([stride // lanes for stride in copy.strides or ()][:-1])
    apart = tuple([stride // lanes for stride in copy.element_strides])
    return Buffer(copy.name, copy.dtype, copy.shape[:-1], copy.element, copy.kind, strides, apart)


def _total(private: Private) -> int:
    return math.prod(n for n in private.target.shape if n is not None) * math.prod(private.target.element)


def _step(buffer: Buffer) -> int | None:
    """The distance of consecutive elements, if it is the same from one row to the next."""
    shape, strides = buffer.shape, buffer.strides or ()
    step = strides[-1] if strides else buffer.dtype.size
    wanted = step
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != wanted:
            return None
        wanted *= extent or 0
    return step


def _runs(private: Private) -> list[_Run]:
    """The copy and its target as runs of equal length, if they are few; else none."""
    copy, target = _one_column(private), private.target
    size = copy.dtype.size
    if private.is_flat:
        return [_Run(0, 0, size, size)]
    same = copy.strides == target.strides and copy.element_strides == target.element_strides
    if same and buffer_bytes(copy) == _total(private) * size:
        # All of the memory, in any order.
        return [_Run(0, 0, size, size)]
    steps = _step(copy), _step(target)
    if steps[0] is None or steps[1] is None or math.prod(copy.element) > _MAX_RUNS:
        return []
    found: list[_Run] = []
    for index in itertools.product(*map(range, copy.element)):
        starts = [sum(i * s for i, s in zip(index, b.element_strides, strict=True)) for b in (copy, target)]
        found.append(_Run(starts[0], starts[1], steps[0], steps[1]))
    return found


def merge_count(e: TaskText, private: Private) -> str:
    """The end of a merging function's range."""
    if not private.is_flat:
        return str(_total(private) // max(1, len(_runs(private))))
    target = private.target
    count = str(math.prod(target.element))
    for axis in range(target.rank):
        count = e.value(f"mul nuw nsw i64 {count}, {e.wide_extent(target, axis)}")
    return count


def merge(e: TaskText, private: Private, offset: int) -> None:
    """The body of a function that merges elements [%lo, %hi) of all threads' copies into the target, thread by
    thread.
    """
    into = e.pointer(private.target)
    with counted(e, "0", _threads(e)) as thread:
        base = _slice_of(e, e.value(f"trunc nsw i64 {thread} to i32"))
        used = e.value(f"icmp ne i64 {e.value(f'load i64, ptr {base}, align 8')}, 0")
        take, skip = e.label(), e.label()
        e.do(f"br i1 {used}, label %{take}, label %{skip}")
        e.begin(take)
        home = e.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        runs = _runs(private)
        for run in runs:
            with counted(e, "%lo", "%hi") as iteration:
                here = e.value(f"mul nuw nsw i64 {iteration}, {run.copy_step}")
                there = e.value(f"mul nsw i64 {iteration}, {run.target_step}")
                if run.copy_start or run.target_start:
                    here = e.value(f"add nuw nsw i64 {here}, {run.copy_start}")
                    there = e.value(f"add nsw i64 {there}, {run.target_start}")
                _combine_at(e, private, home, into, here, there)
        if not runs:
            with counted(e, "%lo", "%hi") as iteration:
                _combine_at(e, private, home, into, *_element_offsets(e, private, iteration))
        e.do(f"br label %{skip}")
        e.begin(skip)
    e.do("ret i32 0")


def _combine_at(e: TaskText, private: Private, home: str, into: str, here: str, there: str) -> None:
    """Combine the number at offset `here` of a copy into the one at `there` of the target."""
    t = private.copy.dtype
    address = e.value(f"getelementptr inbounds i8, ptr {into}, i64 {there}")
    lanes = private.lanes
    if lanes > 1:
        here = e.value(f"mul nuw nsw i64 {here}, {lanes}")
    mine_at = e.value(f"getelementptr inbounds i8, ptr {home}, i64 {here}")
    target_metadata = llvm_memory.access(e, private.target)
    old = llvm_memory.load_cell(e, t, address, target_metadata)
    metadata = llvm_memory.access(e, private.copy)
    mine = llvm_memory.load_cell(e, t if lanes == 1 else Lanes(t, lanes), mine_at, metadata)
    if lanes > 1:
        mine = combined(e, private.prim, Lanes(t, lanes), mine)
    llvm_memory.store_cell(e, t, combine(e, private.prim, t, old, mine), address, target_metadata)


def _element_offsets(e: TaskText, private: Private, element: str) -> tuple[str, str]:
    """Byte offsets of an element, counted in row-major order, in the copy and in the target."""
    copy, target = _one_column(private), private.target
    extents = (*copy.shape, *copy.element)
    in_copy = (*(copy.strides or ()), *copy.element_strides)
    in_target = (*(target.strides or ()), *target.element_strides)
    here = there = "0"
    left = element
    for extent, a, b in reversed(list(zip(extents, in_copy, in_target, strict=True))):
        index = e.value(f"urem i64 {left}, {extent}")
        left = e.value(f"udiv i64 {left}, {extent}")
        here = e.value(f"add nuw nsw i64 {here}, {e.value(f'mul nuw nsw i64 {index}, {a}')}")
        there = e.value(f"add nsw i64 {there}, {e.value(f'mul nsw i64 {index}, {b}')}")
    return here, there
