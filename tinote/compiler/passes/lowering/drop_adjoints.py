"""Removes operations that only matter for derivatives from code that is not differentiated.

These are custom gradients of functions and substituted derivatives of values (`surrogate`, `stop_gradient_once`).

%r: f64 = sqrt %x                               %r: f64 = sqrt %x
%y: f64 = custom_vjp %r, %x adjoint %g: f64:      store @y[], %r
  yield %g                                ->
%s: f64 = surrogate %y, %z                      store @y[], %r
store @y[], %s
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Atom, Function, Op, Prim
from tinote.ir.primitives import stop_gradient_once, surrogate
from tinote.ir.rewrite import KEEP, Decision, Rewriter


def drop_adjoints(fn: Function) -> Function:
    """`fn` with the values themselves in place of values with a derivative of their own."""
    return _Drop().run(fn)


class _Drop(Rewriter):
    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if isinstance(op, CustomVJP):
            return op.results
        return op.args[:1] if isinstance(op, Prim) and op.prim in (surrogate, stop_gradient_once) else KEEP
