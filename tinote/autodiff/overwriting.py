"""What to do about a kernel that overwrites a value which its own gradient needs: which operations must keep their
effects in the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinote.autodiff.overwritten_inputs import Overwrite
from tinote.autodiff.storage import StoragePlan
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Atom, Atomic, For, Function, If, Lit, Load, Memory, Op, Region, Store, Var, While
from tinote.ir.query import walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["begins_anew", "executed_loads", "plan_storage", "with_temporaries"]


def plan_storage(fn: Function, overwrites: Sequence[Overwrite]) -> StoragePlan:
    """The top-level operations that touch what is overwritten, and the buffers that must begin as they were before the
    launch.

    A parallel loop runs again in the reverse part, on the buffers as they were when it ran first: where other
    operations follow that depend on it, or it fills a temporary, a copy of these buffers is taken before. The last one
    needs none. So does a serial loop, `while` or branch beside parallel loops: what it saves would otherwise have to
    last from one task of the launch to another.
    """
    buffers = frozenset(overwrite.load.buffer for overwrite in overwrites)
    touched: dict[Op, dict[Buffer, None]] = {}
    for op in fn.region.body:
        for inner in walk(Region((), (op,))):
            if isinstance(inner, Memory) and inner.buffer in buffers:
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
    """Memory for a copy. Where the shape is known at launch only, the launch has to provide it."""
    name = f"{buffer.name}.before.{number}"
    if None not in buffer.shape:
        return Buffer(name, buffer.dtype, buffer.shape, buffer.element, BufferKind.SAVED)
    copy = Buffer(name, buffer.dtype, buffer.shape, buffer.element, BufferKind.ARRAY)
    if buffer.tangent is not None:
        copy.tangent = Buffer(f"{name}.dual", buffer.dtype, buffer.shape, buffer.element, BufferKind.ARRAY)
    return copy


def _writes_temporary(op: Op) -> bool:
    return any(
        isinstance(inner, Store | Atomic) and inner.buffer.kind is BufferKind.TEMPORARY
        for inner in walk(Region((), (op,)))
    )


def begins_anew(fn: Function, buffer: Buffer) -> bool:
    """Whether what a launch does first to `buffer` is to give each of its elements a value: what it held before does
    not matter.
    """
    for op in fn.region.body:
        found = [i for i in walk(Region((), (op,))) if isinstance(i, Memory) and i.buffer is buffer]
        if found:
            return len(found) == 1 and not buffer.element and _fills(op, found[0], ())
    return False


def _fills(op: Op, store: Memory, indices: tuple[Var, ...]) -> bool:
    """Whether `op`, in the turns that loops with these indices take, stores to all elements."""
    if op is store:
        return isinstance(op, Store) and op.index == indices
    axis = len(indices)
    if not isinstance(op, For) or axis == store.buffer.rank or not isinstance(op.lo, Lit) or op.lo.value != 0:
        return False
    if not isinstance(op.hi, Lit) or op.hi.value != store.buffer.shape[axis]:
        return False
    return any(_fills(inner, store, (*indices, op.index)) for inner in op.body.body)


def executed_loads(fn: Function, plan: StoragePlan, overwrites: Sequence[Overwrite]) -> set[Load]:
    """The loads that find their values in any case, because what they read is as it was.

    Those of custom VJPs are executed along with adjoints: behind all of the operation that they are part of, which is
    executed right before them if it is fused, and may overwrite what they read itself.
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
    """`fn` with a temporary in place of each of `buffers`, so that it leaves them alone."""
    stand_ins = {b: Buffer(b.name, b.dtype, b.shape, b.element, BufferKind.TEMPORARY) for b in buffers}
    return _Redirect(stand_ins).run(fn) if stand_ins else fn


class _Redirect(Rewriter):
    def __init__(self, stand_ins: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self.stand_ins = stand_ins

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Memory) or op.buffer not in self.stand_ins:
            return KEEP
        redirected = op.rebuilt(op.args)
        assert isinstance(redirected, Memory)
        redirected.buffer = self.stand_ins[op.buffer]
        self.emit(redirected)
        return op.outs
