"""What to do about a kernel that overwrites a value which its own gradient needs: which operations must keep their
effects in the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.autodiff.hazards import Hazard, refuse
from tinote.autodiff.keeping import Keeping
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.nodes import Atomic, For, Function, Load, Memory, Op, Region, Store
from tinote.ir.query import walk

__all__ = ["plan_keeping"]


def plan_keeping(fn: Function, hazards: Sequence[Hazard]) -> Keeping:
    """The top-level operations that touch what is overwritten, and the buffers that must begin as they were before the
    launch.

    A parallel loop runs again in the reverse part, on the buffers as they were when it ran first: where other
    operations follow that depend on it, or it fills a temporary, a copy of these buffers is taken before. The last one
    needs none. So does a serial loop, `while` or branch beside parallel loops: what it saves would otherwise have to
    last from one task of the launch to another. Raises `DifferentiationError` for an array whose shape is not known.
    """
    buffers = frozenset(hazard.load.buffer for hazard in hazards)
    touched: dict[Op, dict[Buffer, None]] = {}
    for op in fn.region.body:
        for inner in walk(Region((), (op,))):
            if isinstance(inner, Memory) and inner.buffer in buffers:
                touched.setdefault(op, {})[inner.buffer] = None
    tasks = any(isinstance(op, For) and op.parallel for op in fn.region.body)
    fused = frozenset([op for op in touched if tasks and op.regions])
    saved: dict[Op, tuple[tuple[Buffer, Buffer], ...]] = {}
    last = list(touched)[-1]
    for number, (op, found) in enumerate(touched.items()):
        if op in fused and (op is not last or op.outs or _writes_temporary(op)):
            saved[op] = tuple([(_copy_of(buffer, number, hazards), buffer) for buffer in found])
    return Keeping(frozenset(touched), buffers, fused, saved)


def _copy_of(buffer: Buffer, number: int, hazards: Sequence[Hazard]) -> Buffer:
    if None in buffer.shape:
        refuse(
            next(h for h in hazards if h.load.buffer is buffer),
            hint="put the loops into kernels of their own: a tape keeps what is overwritten between launches",
        )
    return Buffer(f"{buffer.name}.before.{number}", buffer.dtype, buffer.shape, buffer.element, BufferKind.SAVED)


def _writes_temporary(op: Op) -> bool:
    return any(
        isinstance(inner, Store | Atomic) and inner.buffer.kind is BufferKind.TEMPORARY
        for inner in walk(Region((), (op,)))
    )


def kept_loads(fn: Function, keeping: Keeping) -> set[Load]:
    """The loads that find their values in any case, because what they read is as it was."""
    return {
        inner
        for op in fn.region.body
        if op in keeping.ops
        for inner in walk(Region((), (op,)))
        if isinstance(inner, Load) and inner.buffer in keeping.buffers
    }
