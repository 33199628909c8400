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

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import Access, Accesses, buffers_may_meet
from tinote.ir.buffers import bytes_of
from tinote.ir.primitives import Primitive
from tinote.ir.ranges import Loop
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter
from tinote.ir.types import u1

#: How much memory the copies of one task may take, in bytes for each thread: about what a core's own cache holds.
_LIMIT = 1024 * 1024
#: The same where it is not known how many updates there are, so that copies cost little if there are few.
_LIMIT_WITHOUT_COUNT = 64 * 1024
#: Merging must be cheap beside the updates: how many there must be for each element, counted over all threads. An
#: element is set, read and added by each thread, at once with the others: about 1 ns, however many threads there are.
#: An atomic update takes 5 to 15 ns, divided by the number of threads. On two threads a quarter is enough; 2 is
#: for many.
_UPDATES_PER_ELEMENT = 2


def privatise(fn: ir.Function) -> ir.Function:
    """`fn` with private copies of the buffers that threads would fight for."""
    accesses = Accesses(fn)
    body = [_with_copies(op, accesses) if isinstance(op, ir.Task) and op.parallel else op for op in fn.region.body]
    if all(new is old for new, old in zip(body, fn.region.body, strict=True)):
        return fn
    return fn.with_region(ir.Region(fn.region.params, tuple(body), fn.region.yields))


def _with_copies(task: ir.Task, accesses: Accesses) -> ir.Task:
    """`task` with the private copies that pay, smallest first as long as there is room."""
    trips = _trips(task)
    used = sum([bytes_of(private.copy) or 0 for private in task.privates])
    chosen: list[ir.Private] = []
    for c in sorted(_candidates(task, accesses), key=lambda c: c.size):
        updates = sum([trips[access.op] for access in c.updates])
        limit = _LIMIT if updates < math.inf else _LIMIT_WITHOUT_COUNT
        if used + c.size <= limit and updates >= _UPDATES_PER_ELEMENT * c.elements:
            used += c.size
            chosen.append(ir.Private(c.target, _copy_of(c, accesses.loops[task]), c.prim))
    if not chosen:
        return task
    body = _Redirection({private.target: private.copy for private in chosen}).region(task.body)
    new = task.rebuilt(task.args, (body,))
    assert isinstance(new, ir.Task)
    new.privates = (*task.privates, *chosen)
    return new


class _Candidate:
    """A buffer that a task only accumulates into, by `prim`; `size` in bytes."""

    def __init__(self, target: ir.Buffer, prim: Primitive, updates: list[Access]) -> None:
        self.target = target
        self.prim = prim
        self.updates = updates
        self.elements = math.prod([n or 0 for n in target.shape]) * math.prod(target.element)
        self.size = bytes_of(target) or 0

    def walked(self, loop: Loop) -> bool:
        """Whether a loop inside of `loop` updates one element after the other."""
        last = len(self.target.shape) - 1
        return last >= 0 and any(
            inner is not loop and inner.index is not None and abs(access.forms[last].coefficient(inner.index)) == 1
            for access in self.updates
            for inner in access.loops
        )


def _copy_of(c: _Candidate, loop: Loop) -> ir.Buffer:
    """The copy keeps each component by itself if a loop walks over the elements, so that it updates consecutive
    numbers; else the components of an element together, as they are updated.
    """
    target = c.target
    shape, size = tuple([n or 0 for n in target.shape]), target.dtype.size
    if c.walked(loop):
        strides, apart = ir.row_major(shape, size), ir.row_major(target.element, size * math.prod(shape))
    else:
        strides, apart = ir.row_major(shape, size * math.prod(target.element)), ir.row_major(target.element, size)
    return ir.Buffer(
        f"{target.name}.private", target.dtype, target.shape, target.element, ir.BufferKind.PRIVATE, strides, apart
    )


def _candidates(task: ir.Task, accesses: Accesses) -> Iterator[_Candidate]:
    loop = accesses.loops[task]
    found: dict[ir.Buffer, list[Access]] = {}
    for access in accesses.within(loop):
        found.setdefault(access.buffer, []).append(access)
    for buffer, updates in found.items():
        prim = _only_updates(updates)
        if prim is None or buffer.kind is ir.BufferKind.PRIVATE or None in buffer.shape:
            continue
        if any(other is not buffer and buffers_may_meet(other, buffer) for other in found):
            continue
        if buffer.dtype is u1 and prim not in (p.and_, p.or_, p.xor):
            continue
        # Updates with the same index meet in the same cases.
        distinct = list({access.op.args[:-1]: access for access in updates}.values())
        if any(accesses.may_meet_across(a, b, loop) for k, a in enumerate(distinct) for b in distinct[k:]):
            yield _Candidate(buffer, prim, updates)


def _only_updates(accesses: list[Access]) -> Primitive | None:
    """The operation, if the accesses are nothing but updates by it whose old values nobody asks for."""
    prims = [access.op.prim if isinstance(access.op, ir.Atomic) and not access.op.outs else None for access in accesses]
    return prims[0] if all(prim is prims[0] for prim in prims) else None


def _trips(task: ir.Task) -> dict[ir.Op, float]:
    """How often each operation of a task runs, in all threads together; what is not known is infinite."""
    found: dict[ir.Op, float] = {}

    def visit(region: ir.Region, trips: float) -> None:
        for op in region.body:
            found[op] = trips
            inner = trips
            if isinstance(op, ir.For):
                inner *= _length(op.lo, op.hi)
            elif isinstance(op, ir.While):
                inner = math.inf
            for r in op.regions:
                visit(r, inner)

    visit(task.body, _length(*task.args))
    return found


def _length(lo: ir.Atom, hi: ir.Atom) -> float:
    if isinstance(lo, ir.Lit) and isinstance(hi, ir.Lit):
        # Not zero: an empty loop inside of an endless one would give no number.
        return max(int(hi.value) - int(lo.value), 1)
    return math.inf


class _Redirection(Rewriter):
    """Sends updates to the copies."""

    def __init__(self, copies: dict[ir.Buffer, ir.Buffer]) -> None:
        super().__init__()
        self.copies = copies

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        copy = self.copies.get(op.buffer) if isinstance(op, ir.Atomic) else None
        if copy is None:
            return KEEP
        assert isinstance(op, ir.Atomic)
        new = op.rebuilt(op.args)
        assert isinstance(new, ir.Atomic)
        new.buffer = copy
        self.emit(new)
        return DROP
