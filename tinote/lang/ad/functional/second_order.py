"""Second order: a journal whose launches carry tangents, and whose reverse sweep gives the tangents of gradients. That
is forward mode over reverse mode.
"""

from __future__ import annotations

from typing import NoReturn

from tinote.compiler.requests import Derivative, Request
from tinote.errors import DifferentiationError
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.data.traced import Trace
from tinote.lang.session.state import Recorder, session


class SecondOrder(Journal):
    """Launches pushforwards and sweeps with the pushforwards of their pullbacks: the tangents of gradients are left
    in the duals of the gradients of fields, and in those of the adjoints of numbers.
    """

    derivative = Request(Derivative.FORWARD_OVER_REVERSE, arguments=True)
    saves_by = Request(Derivative.FORWARD, arguments=True, records=True)
    clears_duals = True

    def custom(self, custom: Custom) -> None:
        if custom.carries_tangents:
            super().custom(custom)
        else:
            refuse_custom(custom, self)


def give_gradients_duals() -> None:
    """Give every field that has a gradient a dual, if it has none, and its gradient too."""
    for field in list(session.fields):
        if field.buffer.primal is None and field.has_grad:
            for one in (field, field.grad):
                one.ensure_dual()


def refuse_custom(custom: Custom, outer: Recorder) -> NoReturn:
    """Raise for a block whose gradient has no known derivative, where that would be differentiated."""
    raise DifferentiationError(
        f"the gradient of '{custom.name}' cannot be differentiated",
        custom.span,
        hint="differentiate the gradient that ti.ad.grad gives by differences",
        notes=outer.opened_notes(),
    )


def inner_trace(outer: Recorder) -> Trace:
    """The trace of the numbers of an inner recording, which may leave it only as its results."""
    trace: Trace = outer.trace
    if trace.family is None:
        trace.family = object()
    return Trace(outer=trace, family=trace.family)
