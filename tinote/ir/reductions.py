"""Reducible updates: those that a GPU's workgroup can combine into one for all its invocations."""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.nodes import Atomic
from tinote.ir.types import u1

_OF_FLOATS = (p.add, p.minimum, p.maximum)
_OF_INTEGERS = (*_OF_FLOATS, p.and_, p.or_, p.xor)


def can_be_reduced(op: Atomic) -> bool:
    """Whether updates of one element like this one can be put together in any order, and take the place of one word."""
    t = op.buffer.dtype
    fits = t.bits == 32 and t is not u1 and op.prim in (_OF_INTEGERS if t.kind in "iu" else _OF_FLOATS)
    return fits and not op.plain and not op.outs
