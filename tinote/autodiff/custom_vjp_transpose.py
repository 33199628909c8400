"""Gradients that were told (`ir/custom_vjp.py`), where forward mode meets them.

What is told gives the adjoints of the inputs from those of the results: g ↦ Jᵀ g, a linear function of g. The
derivative of that with respect to g, in reverse mode, is its transpose: J, which gives tangents of the results from
those of the inputs. So a tangent costs a small multiple of the gradient that was told.

Method: a Jacobian-vector product as the transpose of a vector-Jacobian product, by differentiating twice in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.autodiff.reverse import Reverser
from tinote.errors import DifferentiationError, Note
from tinote.ir.build import Builder
from tinote.ir.custom_vjp import Replaced
from tinote.ir.nodes import Atom, Function, Region
from tinote.ir.prune import prune
from tinote.ir.query import free_variables, walk
from tinote.ir.rewrite import clone_region
from tinote.ir.types import is_float

__all__ = ["forward_told"]


def forward_told(builder: Builder, op: Replaced, directions: Sequence[Atom]) -> tuple[Atom, ...]:
    """The tangents of the outs, emitted. `directions`: those of the floats among the inputs. Raises a
    `DifferentiationError` for a gradient that is not linear in the adjoints of the results.
    """
    yields = tuple([y for source, y in zip(op.inputs, op.adjoint.yields, strict=True) if is_float(source.type)])
    told = Function("told", Region(op.adjoint.params, op.adjoint.body, yields), op.loc)
    transposed = Reverser(told, builder.defaults, arguments=True).function_region()
    seeds, given = transposed.params[: len(op.outs)], transposed.params[len(op.outs) :]
    body = prune(Region((), transposed.body, transposed.yields))
    if used := set(seeds).intersection(free_variables(body)):
        place = next((inner.loc for inner in walk(body) if used.intersection(inner.args)), op.loc)
        raise DifferentiationError(
            "forward mode cannot pass through this function: the gradient that was told for it does more to the "
            "adjoints than scale and add them",
            op.loc,
            hint="let the gradient be linear in the adjoints, or use reverse mode",
            notes=[Note("in the gradient", place)],
        )
    copy, _ = clone_region(body, dict(zip(given, directions, strict=True)))
    for inner in copy.body:
        builder.emit(inner)
    return copy.yields
