"""The storage plan of a kernel that overwrites values which its own gradient uses: which operations must keep their
effects in the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinote.autodiff.overwritten_inputs import Overwrite
from tinote.autodiff.storage import StoragePlan
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Atomic, For, Function, If, Lit, Load, MemoryOp, Op, Region, Store, Var, While
from tinote.ir.query import walk
from tinote.ir.redirect import redirected


def plan_storage(fn: Function, overwrites: Sequence[Overwrite]) -> StoragePlan:
    """The plan for overwritten inputs: all top-level operations that touch an overwritten buffer keep their effects.

    A parallel loop runs again in the reverse part, on the buffers as they were when it first ran. If other operations
    that depend on it follow, or it fills a temporary, these buffers are copied before it runs; the last one needs no
    copy. Besides parallel loops, the same goes for serial loops, `while` loops and branches: otherwise what they push
    would have to outlive a task of the launch.
    """
    buffers = frozenset(overwrite.load.buffer for overwrite in overwrites)
    touched: dict[Op, dict[Buffer, None]] = {}
    for op in fn.region.body:
        for inner in walk(Region((), (op,))):
            if isinstance(inner, MemoryOp) and inner.buffer in buffers:
                touched.setdefault(op, {})[inner.buffer] = None
    tasks = any(isinstance(op, For) and op.parallel for op in fn.region.body)
    fused = frozenset([op for op in touched if tasks and isinstance(op, For | While | If)])
    copies: dict[Op, tuple[tuple[Buffer, Buffer], ...]] = {}
    last = list(touched)[-1]
    for number, (op, found) in enumerate(touched.items()):
        if op in fused and (op is not last or op.outs or _writes_temporary(op)):
            copies[op] = tuple([(_copy_of(buffer, number), buffer) for buffer in found])
    return StoragePlan(frozenset(touched), buffers, fused, copies)


def _copy_of(buffer: Buffer, number: int) -> Buffer:
    """Memory for a copy. Where the shape is known only at launch, the launch has to provide it."""
    name = f"{buffer.name}.before.{number}"
    if None not in buffer.shape:
        return Buffer(name, buffer.dtype, buffer.shape, buffer.element, BufferKind.SAVED)
    copy = Buffer(name, buffer.dtype, buffer.shape, buffer.element, BufferKind.ARRAY, noalias=True)
    if buffer.tangent is not None:
        kind = BufferKind.ARRAY
        copy.tangent = Buffer(f"{name}.dual", buffer.dtype, buffer.shape, buffer.element, kind, noalias=True)
    return copy


def _writes_temporary(op: Op) -> bool:
    return any(
        isinstance(inner, Store | Atomic) and inner.buffer.kind is BufferKind.TEMPORARY
        for inner in walk(Region((), (op,)))
    )


def begins_anew(fn: Function, buffer: Buffer) -> bool:
    """Whether the first thing a launch does to `buffer` is to store to each of its elements, so that its previous
    contents do not matter.
    """
    for op in fn.region.body:
        found = [i for i in walk(Region((), (op,))) if isinstance(i, MemoryOp) and i.buffer is buffer]
        if found:
            return len(found) == 1 and not buffer.element and _fills(op, found[0], ())
    return False


def _fills(op: Op, store: MemoryOp, indices: tuple[Var, ...]) -> bool:
    """Whether `op`, inside loops with these indices, stores to all elements."""
    if op is store:
        return isinstance(op, Store) and op.index == indices
    axis = len(indices)
    if not isinstance(op, For) or axis == store.buffer.rank or not isinstance(op.lo, Lit) or op.lo.value != 0:
        return False
    if not isinstance(op.hi, Lit) or op.hi.value != store.buffer.shape[axis]:
        return False
    return any(_fills(inner, store, (*indices, op.index)) for inner in op.body.body)


def executed_loads(plan: StoragePlan, overwrites: Sequence[Overwrite]) -> set[Load]:
    """The loads that find the primal values in any case, because they are executed along with the effects.

    Those of custom VJPs are executed along with adjoints instead: after the whole top-level operation that they are
    part of. This is executed right before them if it is fused, and may itself overwrite what they read.
    """
    found: set[Load] = set()
    for op in plan.executed:
        inside = set(walk(Region((), (op,))))
        late = {load for inner in inside if isinstance(inner, CustomVJP) for load in walk(inner.adjoint)}
        lost = {overwrite.load for overwrite in overwrites if overwrite.write in inside or op not in plan.fused}
        for inner in inside:
            if isinstance(inner, Load) and inner.buffer in plan.buffers and not (inner in late and inner in lost):
                found.add(inner)
    return found


def with_temporaries(fn: Function, buffers: Iterable[Buffer]) -> Function:
    """`fn` with a temporary in place of each of `buffers`, so that it does not touch them."""
    stand_ins = {b: Buffer(b.name, b.dtype, b.shape, b.element, BufferKind.TEMPORARY) for b in buffers}
    return redirected(fn, stand_ins)
