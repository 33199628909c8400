"""Buffer substitution in a function: by a temporary, or by a counterpart with temporary shadows.

    %a = load @x[%i]        @x with @x.grad              %a = load @x[%i]
    store @y[%i], %a        @y                    ->     store @y+[%i], %a        @y+ with @y.grad

What the passes make of memory depends on its shadows. So a derivative that is to pass through a field without a
gradient is compiled of a copy of the function, in which a *clone* stands for the field (`buffers.py`). It has the
field's layout, stands for the same memory, and has shadows, whose memory a launch brings along. The field itself
stays as it is, for all other code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinote.ir.buffers import Buffer
from tinote.ir.nodes import Atom, Function, MemoryOp, Op
from tinote.ir.rewrite import KEEP, Decision, Rewriter


def redirected(fn: Function, stand_ins: Mapping[Buffer, Buffer]) -> Function:
    """`fn` with other buffers in place of some."""
    return _Redirect(stand_ins).run(fn) if stand_ins else fn


class _Redirect(Rewriter):
    def __init__(self, stand_ins: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.stand_ins = stand_ins

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, MemoryOp) or op.buffer not in self.stand_ins:
            return KEEP
        self.emit(op.elsewhere(self.stand_ins[op.buffer]))
        return op.outs
