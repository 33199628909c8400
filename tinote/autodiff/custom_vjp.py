"""Custom VJPs (`ir/custom_vjp.py`) in reverse and forward mode.

A custom VJP gives the adjoints of the inputs from those of the results: g ↦ Jᵀ g, a linear function of g.

Reverse mode inlines it where adjoints are propagated. What it computes without them are primal values like all others,
which `lift_values` puts where the primal function stands:

    %y = custom_vjp %r, %x adjoint %g:           %s = load @scale[%i]
      %s = load @scale[%i]                  ->   %y = custom_vjp %r, %x adjoint %g:
      %d = mul %g, %s                              %d = mul %g, %s
      yield %d                                     yield %d

Forward mode needs tangents of the results from those of the inputs: J, the transpose of g ↦ Jᵀ g, which is the
derivative of that in reverse mode with respect to g. So a tangent costs a small multiple of the custom VJP.

Method: a Jacobian-vector product as the transpose of a vector-Jacobian product, by differentiating twice in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.autodiff.reverse import Reverser
from tinote.autodiff.storage import store
from tinote.errors import DifferentiationError, Note
from tinote.ir.build import Builder
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Atom, Function, Load, Op, Region, Var
from tinote.ir.prune import prune
from tinote.ir.query import free_variables, has_effect, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter, clone_region
from tinote.ir.types import is_float


def lift_values(fn: Function) -> Function:
    """`fn` with all that its custom VJPs compute without adjoints from what they load before them, so that it is
    computed from memory as the primal function finds it.
    """
    return _Lift().run(fn)


class _Lift(Rewriter):
    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, CustomVJP) or not any(isinstance(inner, Load) for inner in walk(op.adjoint)):
            return KEEP
        dependent: set[Var] = set(op.adjoint.params)
        rest: list[Op] = []
        for inner in op.adjoint.body:
            if has_effect(inner) or not dependent.isdisjoint(free_variables(Region((), (inner,)))):
                dependent.update(inner.outs)
                rest.append(inner)
            else:
                self.emit(inner)
        self.emit(op.rebuilt(op.args, (Region(op.adjoint.params, tuple(rest), op.adjoint.yields),)))
        return op.outs


def transposed_vjp(builder: Builder, op: CustomVJP, directions: Sequence[Atom]) -> tuple[Atom, ...]:
    """The tangents of the outs, emitted. `directions`: those of the floats among the inputs. Raises a
    `DifferentiationError` for a gradient that is not linear in the adjoints of the results.
    """
    yields = tuple([y for source, y in zip(op.inputs, op.adjoint.yields, strict=True) if is_float(source.type)])
    custom = Function("custom_vjp", Region(op.adjoint.params, op.adjoint.body, yields), op.loc)
    adjoint = Reverser(custom, builder.defaults, arguments=True).adjoint()
    transposed = store(custom, adjoint, defaults=builder.defaults)
    seeds, given = transposed.params[: len(op.outs)], transposed.params[len(op.outs) :]
    body = prune(Region((), transposed.body, transposed.yields))
    if used := set(seeds).intersection(free_variables(body)):
        span = next((inner.loc for inner in walk(body) if used.intersection(inner.args)), op.loc)
        raise DifferentiationError(
            "forward mode cannot pass through this function: its custom gradient does more to the "
            "adjoints than scale and add them",
            op.loc,
            hint="let the gradient be linear in the adjoints, or use reverse mode",
            notes=[Note("in the gradient", span)],
        )
    copy, _ = clone_region(body, dict(zip(given, directions, strict=True)))
    for inner in copy.body:
        builder.emit(inner)
    return copy.yields
