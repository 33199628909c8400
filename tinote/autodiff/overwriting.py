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
    """The top-level operations around the hazards, and the buffers that must begin as they were before the launch.

    One parallel loop can keep its effects, and so can any number of serial operations at the top of the kernel. Two
    loops that overwrite each other's values cannot be told apart after the launch: that is refused with a
    `DifferentiationError` that names the lines.
    """
    top = {inner: op for op in fn.region.body for inner in walk(Region((), (op,)))}
    buffers = frozenset(hazard.load.buffer for hazard in hazards)
    touching: dict[Buffer, dict[Op, None]] = {b: {} for b in buffers}
    for inner, op in top.items():
        if isinstance(inner, Memory) and inner.buffer in buffers:
            touching[inner.buffer][op] = None
    kept: set[Op] = set()
    for hazard in hazards:
        group = touching[hazard.load.buffer]
        parallel = [op for op in group if isinstance(op, For) and op.parallel]
        if parallel and len(group) > 1:
            refuse(
                hazard,
                hint="put the loops into kernels of their own: a tape keeps what is overwritten between launches",
            )
        if any(_writes_temporary(op) for op in parallel):
            refuse(hazard, hint="compute the sum in a kernel of its own")
        kept.update(group)
    return Keeping(frozenset(kept), buffers)


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
