"""Separates the checks in a loop's iteration from its work.

    %a: i32 = load @p[%i]                   alone:                        the rest:
    %b: f32 = load @x[%i]                     %a: i32 = load @p[%i]         %a: i32 = load @p[%i]
    %c: u1 = lt %a, 64i32             ->      %c: u1 = lt %a, 64i32         %b: f32 = load @x[%i]
    check bounds "y" %c, %a, 64i32            check bounds "y" …            %c: u1 = lt %a, 64i32
    store @y[%a], %b                                                        store @y[%a], %b

Both bind the same variables, so they cannot stand in one function together.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.nodes import Atom, Check, Op, Region
from tinote.ir.prune import prune
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter


def checks_alone(region: Region) -> Region:
    """The checks of `region` and what they are computed from, yielding nothing. An operation with another effect is
    kept only if a check uses its result.
    """
    return prune(Region(region.params, region.body, ()), effect=lambda op: isinstance(op, Check))


def without_checks(region: Region) -> Region:
    """`region` with all checks left out."""
    return _Remover().region(region)


class _Remover(Rewriter):
    def on(self, op: Op) -> Decision | Sequence[Atom]:
        return DROP if isinstance(op, Check) else KEEP
