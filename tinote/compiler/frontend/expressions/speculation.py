"""Speculation: which operations may run although their result may be unused."""

from __future__ import annotations

from collections.abc import Sequence

from tinote.compiler.frontend.emitter import Emitter
from tinote.ir import primitives as p
from tinote.ir.nodes import Extent, Get, Lit, Load, Op, Prim
from tinote.ir.types import element_type, is_float

#: Greatest number of speculated operations. Chosen, not measured.
_MAX_OPERATIONS = 12
#: Primitives that may overflow, which debug mode reports.
_OVERFLOWS = (p.add, p.sub, p.mul, p.neg, p.absolute, p.shl)


def safe_to_speculate(e: Emitter, ops: Sequence[Op]) -> bool:
    """Whether operations may run speculatively. In debug mode an integer overflow stops the launch."""
    if not _is_safe(ops):
        return False
    if not e.config.reports_overflow:
        return True
    return not any(isinstance(op, Prim) and op.prim in _OVERFLOWS and not is_float(op.out.type) for op in ops)


def _is_safe(ops: Sequence[Op]) -> bool:
    """Whether operations may run speculatively: few and cheap ones, without effects or possible faults."""
    if len(ops) > _MAX_OPERATIONS:
        return False
    for op in ops:
        if isinstance(op, Get) and all(isinstance(a, Lit) for a in op.args[1:]):
            continue
        if isinstance(op, Extent) or (
            isinstance(op, Load) and not op.buffer.rank and all(isinstance(a, Lit) for a in op.args)
        ):
            continue
        if not isinstance(op, Prim):
            return False
        if op.prim.cost > 5 or op.prim is p.extract:
            if op.prim is p.extract and all(isinstance(a, Lit) for a in op.args[1:]):
                continue
            if op.prim in (p.div,) and all(element_type(a.type).kind == "f" for a in op.args):
                continue
            return False
        if op.prim in (p.floordiv, p.mod, p.raw_div, p.raw_mod, p.random_bits):
            return False
    return True
