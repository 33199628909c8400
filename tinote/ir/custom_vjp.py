"""A computation with a custom VJP: its derivative is given, not derived."""

from __future__ import annotations

from tinote.ir.nodes import Atom, Op, Region, Var
from tinote.source import NOWHERE, Span


class CustomVJP(Op):
    """`results`, which were computed from `inputs`, with a vector-Jacobian product of their own; `outs` are their
    values.

    args = (*results, *inputs), as many results as outs. regions[0] computes the adjoints of the inputs, its yields,
    from those of the results, its parameters, and whatever is in scope. It writes no memory. Only functions that are to
    be differentiated hold such operations; elsewhere the results take the place of the outs.
    """

    __slots__ = ()

    def __init__(
        self,
        results: tuple[Atom, ...],
        inputs: tuple[Atom, ...],
        adjoint: Region,
        outs: tuple[Var, ...],
        loc: Span = NOWHERE,
    ) -> None:
        super().__init__((*results, *inputs), outs, (adjoint,), loc)

    @property
    def results(self) -> tuple[Atom, ...]:
        return self.args[: len(self.outs)]

    @property
    def inputs(self) -> tuple[Atom, ...]:
        return self.args[len(self.outs) :]

    @property
    def adjoint(self) -> Region:
        return self.regions[0]
