"""Gives each thread its own copy of a small buffer that all threads accumulate into.

    task parallel %i: i32 in 0i32 .. %n:            task parallel %i: i32 in 0i32 .. %n:
      %a: f32 = load @x[%i]                           private add @U.private of @U
      atomic add @U[], %a                     ->      %a: f32 = load @x[%i]
                                                      atomic add @U.private[], %a

A copy starts at the neutral element and is merged into its buffer when the task ends. That needs a buffer that the task
touches in no other way, and it pays only if there are many more updates than elements; a buffer of which each iteration
updates its own elements needs no copy at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, buffers_may_meet
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Buffer,
    BufferKind,
    For,
    Function,
    Lit,
    Op,
    Private,
    Region,
    Task,
    While,
    row_major,
)
from tinote.ir.primitives import Primitive
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import u1

__all__ = ["privatise"]

#: How much memory the copies of one task may take, in bytes for each thread.
_LIMIT = 64 * 1024
#: Merging must be cheap beside the updates: how many there must be for each element, counted over all threads.
_UPDATES_PER_ELEMENT = 8


def privatise(fn: Function) -> Function:
    """`fn` with private copies of the buffers that threads would fight for."""
    accesses = Accesses(fn)
    body = [_with_copies(op, accesses) if isinstance(op, Task) and op.parallel else op for op in fn.region.body]
    if all(new is old for new, old in zip(body, fn.region.body, strict=True)):
        return fn
    return fn.with_region(Region(fn.region.params, tuple(body), fn.region.yields))


def _with_copies(task: Task, accesses: Accesses) -> Task:
    """`task` with the private copies that pay, smallest first as long as there is room."""
    trips = _trips(task)
    room = _LIMIT - sum([_Candidate(private.copy, private.prim, []).size for private in task.privates])
    chosen: list[Private] = []
    for c in sorted(_candidates(task, accesses), key=lambda c: c.size):
        updates = sum([trips[op] for op in c.updates])
        if c.size <= room and updates >= _UPDATES_PER_ELEMENT * c.elements:
            room -= c.size
            chosen.append(Private(c.target, _copy_of(c.target), c.prim))
    if not chosen:
        return task
    body = _Redirection({private.target: private.copy for private in chosen}).region(task.body)
    new = task.rebuilt(task.args, (body,))
    assert isinstance(new, Task)
    new.privates = (*task.privates, *chosen)
    return new


def _copy_of(target: Buffer) -> Buffer:
    """A copy keeps each component by itself, so that loops over elements update consecutive numbers."""
    size = target.dtype.size
    strides = row_major(tuple([n or 0 for n in target.shape]), size)
    apart = row_major(target.element, size * math.prod([n or 0 for n in target.shape]))
    return Buffer(
        f"{target.name}.private", target.dtype, target.shape, target.element, BufferKind.PRIVATE, strides, apart
    )


class _Candidate:
    """A buffer that a task only accumulates into, by `prim`; `size` in bytes."""

    def __init__(self, target: Buffer, prim: Primitive, updates: list[Atomic]) -> None:
        self.target = target
        self.prim = prim
        self.updates = updates
        self.elements = math.prod([n or 0 for n in target.shape]) * math.prod(target.element)
        self.size = self.elements * target.dtype.size


def _candidates(task: Task, accesses: Accesses) -> Iterator[_Candidate]:
    loop = accesses.loops[task]
    found: dict[Buffer, list[Access]] = {}
    for access in accesses.within(loop):
        found.setdefault(access.buffer, []).append(access)
    for buffer, all_of_it in found.items():
        updates = [access.op for access in all_of_it if isinstance(access.op, Atomic) and not access.op.outs]
        prim = updates[0].prim if updates else p.add
        if len(updates) < len(all_of_it) or any(op.prim is not prim for op in updates):
            continue
        if buffer.kind is BufferKind.PRIVATE or None in buffer.shape:
            continue
        if any(other is not buffer and buffers_may_meet(other, buffer) for other in found):
            continue
        if not _mergeable(buffer, prim, task):
            continue
        # Updates with the same index meet in the same cases.
        distinct = list({access.op.args[:-1]: access for access in all_of_it}.values())
        if any(accesses.may_meet_across(a, b, loop) for k, a in enumerate(distinct) for b in distinct[k:]):
            yield _Candidate(buffer, prim, updates)


def _mergeable(buffer: Buffer, prim: Primitive, task: Task) -> bool:
    """Whether merging a copy does what its updates would have done."""
    if buffer.dtype is u1:
        return prim in (p.and_, p.or_, p.xor)
    if buffer.dtype.kind == "f" and prim in (p.minimum, p.maximum):
        # Merging the neutral element would forget a NaN: every thread that takes part must have updated every element.
        always = [op for op in task.body.body if isinstance(op, Atomic) and op.buffer is buffer]
        return math.prod([n or 0 for n in buffer.shape]) * math.prod(buffer.element) == 1 and len(always) > 0
    return True


def _trips(task: Task) -> dict[Op, float]:
    """How often each operation of a task runs, in all threads together; what is not known is infinite."""
    found: dict[Op, float] = {}

    def visit(region: Region, trips: float) -> None:
        for op in region.body:
            found[op] = trips
            inner = trips
            if isinstance(op, For):
                inner *= _length(op.lo, op.hi)
            elif isinstance(op, While):
                inner = math.inf
            for r in op.regions:
                visit(r, inner)

    visit(task.body, _length(*task.args))
    return found


def _length(lo: Atom, hi: Atom) -> float:
    if isinstance(lo, Lit) and isinstance(hi, Lit):
        # Not zero: an empty loop inside of an endless one would give no number.
        return max(int(hi.value) - int(lo.value), 1)
    return math.inf


class _Redirection(Rewriter):
    """Sends updates to the copies."""

    def __init__(self, copies: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self.copies = copies

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        copy = self.copies.get(op.buffer) if isinstance(op, Atomic) else None
        if copy is None:
            return KEEP
        assert isinstance(op, Atomic)
        new = op.rebuilt(op.args)
        assert isinstance(new, Atomic)
        new.buffer = copy
        self.emit(new)
        return DROP
