"""The steps of the pipeline that differentiate a function, save what its gradient needs, or check its accesses. Each
leaves in the `Context` what launches must know.
"""

from __future__ import annotations

from tinote.autodiff.atomic_old_values import plan_old_values, record
from tinote.autodiff.forward import forward
from tinote.autodiff.gradient import reverse
from tinote.autodiff.instrument import instrument
from tinote.autodiff.keep_order import keep_order
from tinote.autodiff.sequential_reverse import make_sequential
from tinote.autodiff.shared_values import record_shared, share
from tinote.autodiff.zero_adjoints import skip_zero_adjoints
from tinote.compiler.context import Context
from tinote.ir.nodes import Function

__all__ = ["add_checks", "keep_order", "record_old_values", "skip_zero_adjoints", "take_forward", "take_reverse"]


def take_reverse(fn: Function, context: Context, *, arguments: bool, shares: bool, directions: int) -> Function:
    """The gradient of `fn`, along a number of directions; with `arguments` its pullback. `shares`: the launch has saved
    what both compute.
    """
    context.gradient = reverse(fn, context.defaults, arguments=arguments, shares=shares, directions=directions)
    context.broken_paths += context.gradient.broken
    return context.gradient.function


def take_forward(fn: Function, context: Context, *, arguments: bool, directions: int) -> Function:
    """`fn` with tangents next to its values, along a number of directions; with `arguments` its pushforward."""
    found = forward(fn, context.defaults, arguments=arguments, directions=directions)
    context.broken_paths += found.broken
    return found.function


def add_checks(fn: Function, context: Context) -> Function:
    """`fn` with checks of the access rules."""
    instrumented, context.checks = instrument(fn)
    return instrumented


def record_old_values(fn: Function, context: Context, *, shares: bool) -> Function:
    """`fn`, saving the old values of atomic operations that its gradient reads, or, where it `shares` its work with
    that, what both compute; with the iterations in order that are so in its gradient.
    """
    if shares:
        found, shared = share(fn, context.defaults, context.report)
        if shared.values:
            context.old_values = shared
            return record_shared(found, shared)
    context.old_values = plan_old_values(fn)
    return make_sequential(record(fn, context.old_values)).function
