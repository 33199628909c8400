"""Access rules: what programs under a tape must observe where overwritten values are not saved, and how accesses count.

1. An element that was read is not changed afterwards.
2. From the second write on, an element only takes `+=`.

They hold for each element (each component, where elements are vectors or matrices). Memory without a gradient has no
old value that a derivative could need, except as an index, bound or condition: there only rule 1 holds, and only for
the reads on which differentiated writes depend (`control_dependence.py`). An atomic operation that is not an addition,
or whose old value is used, reads the element and changes it at once. The rules do not concern gradients and duals.
"""

from __future__ import annotations

from tinote.autodiff.control_dependence import controlling_reads
from tinote.ir import primitives as p
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.checked_accesses import Kind
from tinote.ir.nodes import Atom, Atomic, Function, Load, Op, Store, component_indices
from tinote.ir.query import uses


class RuleAccesses:
    """The accesses of a function (before anything is simplified), as the rules see them."""

    def __init__(self, fn: Function) -> None:
        self._controlling = controlling_reads(fn)
        self._uses = uses(fn.region)

    def kind(self, op: Op) -> Kind | None:
        """What an operation means to the rules; None if they do not concern it."""
        if not isinstance(op, Load | Store | Atomic) or not _is_followed(op.buffer):
            return None
        matters = op.buffer.adjoint is not None or op in self._controlling
        if isinstance(op, Load):
            return Kind.READ if matters else None
        if isinstance(op, Store):
            return Kind.STORE
        if op.prim is p.add:
            return Kind.TAKE if matters and any(v in self._uses for v in op.outs) else Kind.ADD
        return Kind.COMBINE if matters else Kind.STORE


def _is_followed(buffer: Buffer) -> bool:
    """Whether the rules apply to a buffer: the user's own, neither a gradient nor a dual, or what says which cells of a
    sparse field are active, but not what repeats it.
    """
    if buffer.kind not in (BufferKind.FIELD, BufferKind.ARRAY) or buffer.primal is not None:
        return False
    sparsity = buffer.sparsity
    return sparsity is None or not sparsity.is_activity(buffer) or is_activation(buffer)


def is_activation(buffer: Buffer) -> bool:
    """Whether a buffer says which cells of the last level of a sparse field are active."""
    last = None if buffer.sparsity is None else buffer.sparsity.groups[-1].activity
    return last is not None and buffer is last.buffer


def numbers_at(buffer: Buffer, index: tuple[Atom, ...]) -> list[tuple[Atom, ...]]:
    """The indices of the numbers that an access touches: one, or each component of a whole vector or matrix."""
    if len(index) > buffer.rank or not buffer.element:
        return [index]
    return [(*index, *component) for component in component_indices(buffer.element)]
