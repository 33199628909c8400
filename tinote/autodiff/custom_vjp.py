"""Gradients that were told (`ir/custom_vjp.py`), where reverse mode meets them."""

from __future__ import annotations

from tinote.autodiff.iterations import Differentiator
from tinote.ir.custom_vjp import Replaced
from tinote.ir.nodes import Atom, Region, Var
from tinote.ir.query import walk
from tinote.ir.rewrite import clone_region

__all__ = ["backward_told"]


def backward_told(reverser: Differentiator, op: Replaced, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
    """The reverse part: the adjoints of the inputs, from those of the outs where there are any."""
    seeds = {v: adjoints.pop(v) for v in op.outs if v in adjoints}
    if not seeds:
        return
    given = [seeds[v] if v in seeds else reverser.zero_of(v) for v in op.outs]
    inside = {**env, **dict(zip(op.adjoint.params, given, strict=True))}
    told, _ = clone_region(Region((), op.adjoint.body, op.adjoint.yields), inside)
    for original, inner in zip(walk(op.adjoint), walk(told), strict=True):
        inner.origin = original
    for inner in told.body:
        reverser.builder.emit(inner)
    for source, g in zip(op.inputs, told.yields, strict=True):
        reverser.accumulate(adjoints, source, g)
