"""Forgets gradients that were told, where nothing is differentiated in reverse.

%r: f64 = sqrt %x                               %r: f64 = sqrt %x
%y: f64 = replaced %r, %x adjoint %g: f64:      store @y[], %r
  yield %g
store @y[], %y                            ->
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.nodes import Atom, Function, Op
from tinote.ir.replaced import Replaced
from tinote.ir.rewrite import KEEP, Decision, Rewriter

__all__ = ["drop_adjoints"]


def drop_adjoints(fn: Function) -> Function:
    """`fn` with the results themselves in place of results with a replaced gradient."""
    return _Drop().run(fn)


class _Drop(Rewriter):
    def on(self, op: Op) -> Decision | Sequence[Atom]:
        return op.results if isinstance(op, Replaced) else KEEP
