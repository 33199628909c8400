"""Requests for nested derivatives (`inner_derivative.py`), and the blocks in which they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.inputs import Bound, DifferentiatedFunction, shape_of
from tinote.lang.ad.functional.runs import result_of
from tinote.lang.ad.journal.events import Computed, Custom, Write, outermost
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.step_log import arrays_of_others
from tinote.lang.data.traced import Trace, Traced, stored
from tinote.lang.session.state import Recorder, independent_recordings
from tinote.source import Span, caller


class Inner:
    """The request of an inner derivative: of `task`, with these arguments. `seed`: of the result, in reverse mode; None
    for 1; `directions`: of the inputs, in forward mode.
    """

    def __init__(
        self,
        task: DifferentiatedFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        seed: Any = None,
        directions: Any = None,
    ) -> None:
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self.seed = seed
        self.is_forward = directions is not None
        self.directions = directions
        self.span = caller()
        #: whether the result is a single number, even in an array
        self.gives_number = seed is None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"ti.ad.{self.task.what} of '{getattr(self.task.f, '__name__', 'a function')}'"

    @property
    def seeds(self) -> list[tuple[Any, tuple[int, ...]]]:
        """The seed of each result, with its shape."""
        return [(self.seed, () if self.task.loss is None else shape_of(self.task.loss))]

    def results(self, returned: Any, trace: Trace) -> Sequence[Any]:
        """The results of a function that has returned this."""
        return [result_of(self.task, returned, trace)]


def refuse_nesting(what: str, outer: Recorder, why: str, span: Span | None = None) -> NoReturn:
    """Raise for a block inside of another, with the lines of both; `span`: where it is asked for, if not here."""
    raise DifferentiationError(
        f"ti.ad.{what} cannot run inside of this block: {why}", span or caller(), notes=outer.opened_notes()
    )


@contextmanager
def alone(outer: Recorder) -> Iterator[None]:
    """A block outside the recording, inside a function with or without a custom gradient, or inside such a gradient: it
    records and differentiates independently, and listeners are notified of its effects.
    """
    effects = Effects(outer.overwriting_independently)
    with independent_recordings(), effects.listening():
        yield
    outer.ran_independently(effects.loaded, effects.written)


@contextmanager
def noted(base: Recorder) -> Iterator[None]:
    """A block of pushforwards in a function with a custom gradient, or in such a gradient: `base`, where nothing is
    recorded, is notified of its effects.
    """
    effects = Effects(base.sharing)
    with effects.listening():
        yield
    base.ran_independently(effects.loaded, effects.written)


def refuse_written(bound: Bound, inner: Inner) -> None:
    """Raise for a caller's array that was written: its contents would be constants in the outer recording."""
    for one in bound.inputs:
        if one.stand_in is not None and one.stand_in.before is not None:
            raise DifferentiationError(
                f"{inner.name} writes to an array that it is given: the derivative around it would not know",
                inner.span,
                hint="give it a ti.ndarray with needs_grad=True",
            )


def done_by(journal: Journal) -> Iterator[Any]:
    """The operations of a recording, with the plain numbers and arrays from Python: a step that is run again must do
    the same.
    """
    for event in outermost(journal.events):
        if isinstance(event, RecordedLaunch):
            yield event.instance.specialisation
            traced = {at for at, _ in event.places}
            count = len(event.arguments.arrays)
            yield from [stored(event.values[k]) for k in range(count, len(event.values)) if k not in traced]
            yield from [held for _, held in arrays_of_others(event.instance.specialisation.arrays, event.values)]
        elif isinstance(event, Computed):
            yield event.rule.name
            yield from [stored(one) for one in event.operands if type(one) is not Traced or not one.number]
        elif isinstance(event, Custom):
            yield event.name
        elif isinstance(event, Write) and event.values is not None:
            yield np.asarray(stored(event.values))


def give_second_duals(bound: Bound) -> None:
    """The gradients of what is differentiated have duals."""
    for one in bound.inputs:
        if one.field is not None and one.field.has_grad:
            one.field.grad.ensure_dual()
