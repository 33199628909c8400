"""Results of the passes that launches need, in terms of memory and spans instead of operations."""

from __future__ import annotations

from tinote.autodiff.gradient import Gradient
from tinote.compiler.context import Context
from tinote.compiler.launch.memory_facts import BrokenPath, Facts, GradientFacts, LocatedBuffer, OverwrittenInput
from tinote.compiler.requests import Request
from tinote.ir.access_region import regions_of
from tinote.ir.buffers import Buffer
from tinote.ir.launch_values import SymbolicRegion


def facts_of(context: Context, request: Request, arrays: tuple[Buffer, ...], temporaries: tuple[Buffer, ...]) -> Facts:
    """What the passes that compiled a request have left. `arrays`: the kernel's own array arguments; `temporaries`:
    fields whose shadows come with each launch.
    """
    gradient, checks = context.gradient, context.checks
    saved = None if context.old_values is None else context.old_values.shapes
    further: list[Buffer] = []
    if gradient is not None:
        further += [value.buffer for value in gradient.old_values.values]
        further += [copy for copy, _ in gradient.copies]
    if saved is not None:
        further += saved.buffers
    if checks is not None:
        further += [*[shadow for _, shadow in checks.shadows], checks.ledger]
    found = None if gradient is None else _gradient_facts(gradient, tangents=request.has_tangents)
    broken = tuple([BrokenPath(*one) for one in context.broken_paths])
    return Facts((*arrays, *further, *temporaries), found, saved, checks, broken, context.filled)


def _gradient_facts(gradient: Gradient, *, tangents: bool) -> GradientFacts:
    """`tangents`: those of what is read are read too."""
    live_in, before = frozenset([op.buffer for op in gradient.live_in_loads]), gradient.live_in_before
    regions = regions_of(gradient.primal, gradient.live_in_loads, gradient.live_in_before)
    if tangents:
        live_in, before = _with_tangents(live_in), _with_tangents(before)
        regions = regions._replace(
            live_in=_regions_with_tangents(regions.live_in),
            live_in_before=_regions_with_tangents(regions.live_in_before),
        )
    return GradientFacts(
        live_in,
        before,
        tuple([OverwrittenInput(h.load.buffer, h.load.loc, h.write.loc) for h in gradient.overwrites]),
        tuple([LocatedBuffer(value.source, value.op.loc) for value in gradient.old_values.values]),
        tuple([array for _, array in gradient.copies]),
        regions,
        gradient.in_order,
    )


def _with_tangents(buffers: frozenset[Buffer]) -> frozenset[Buffer]:
    return buffers | {b.tangent for b in buffers if b.tangent is not None}


def _regions_with_tangents(regions: tuple[SymbolicRegion, ...]) -> tuple[SymbolicRegion, ...]:
    tangents = [region._replace(buffer=b) for region in regions if (b := region.buffer.tangent) is not None]
    return (*regions, *tangents)
