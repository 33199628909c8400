"""Resolves `in_reverse`: selects the requested form of values that have another form for reverse mode.

%s: f64 = in_reverse %x, %y         store @s[], %x          for values, and for forward mode
store @s[], %s                 ->
                                    store @s[], %y          for a reverse sweep
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.nodes import Atom, Function, Op, Prim
from tinote.ir.primitives import in_reverse
from tinote.ir.rewrite import KEEP, Decision, Rewriter


def select_reverse_form(fn: Function, *, reverse: bool) -> Function:
    """`fn` without `in_reverse`. `reverse`: it will be differentiated in reverse mode, as the last derivative."""
    return _Choose(reverse).run(fn)


class _Choose(Rewriter):
    def __init__(self, reverse: bool) -> None:
        super().__init__()
        self.which = 1 if reverse else 0

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        return op.args[self.which : self.which + 1] if isinstance(op, Prim) and op.prim is in_reverse else KEEP
