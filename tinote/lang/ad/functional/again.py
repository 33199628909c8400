"""Re-execution of a journal: launches, and Python's writes, reads and arithmetic, in the same order.

Its numbers become numbers of the present recorder: in a recording with tangents, the same program computes tangents,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import computed_inside
from tinote.lang.ad.functional.pushed_mode import base_of, lifts_of
from tinote.lang.ad.journal.events import Computed, Custom, Read, Write, outermost
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.memory.values import element_at, held_now, hold, plain_array, store
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, computed_again, traced
from tinote.lang.kernels.unwritable import launch_on_copies
from tinote.lang.session.state import Recorder, note_launch_outside, note_python_write, session
from tinote.source import Span

Array = np.ndarray[Any, Any]

NO_DIRECTIONS: Mapping[Buffer, Array] = {}
NO_TANGENTS: Mapping[int, float] = {}
NO_NUMBERS: Mapping[int, Traced] = {}


class Again:
    """Re-executes a journal that recorded all that this requires (`Journal.will_run_again`). `outer`: the trace of
    numbers from outside.
    """

    def __init__(self, recorded: Journal, outer: Trace) -> None:
        self._events = list(recorded.events)
        self._recorded = recorded
        #: the greatest depth of the blocks of pushforwards that recorded it (`Recorder.depth`)
        self.deepest = recorded.deepest
        self._outer = outer
        #: gradients and duals that hold results of inner blocks
        self._shadows = {one: span for one, span in recorded.active.items() if one.primal is not None}
        self._along: Mapping[int, float] = {}
        for event in self._events:
            if isinstance(event, RecordedLaunch):
                _require_duals(event)
                event.drop_saved()

    def close(self) -> None:
        """Free its memory: it will not run again."""
        self._recorded.runs_again = False
        for event in self._events:
            if isinstance(event, Custom) and event.release is not None:
                event.release()
        self._events, self._recorded.used_arrays = [], {}

    def run(
        self,
        recorder: Recorder,
        directions: Mapping[Buffer, Array] = NO_DIRECTIONS,
        along: Mapping[int, float] = NO_TANGENTS,
        given: Mapping[int, Traced] = NO_NUMBERS,
        *,
        initialises: bool = True,
    ) -> dict[int, Traced]:
        """Re-execute under `recorder`, the present one. `directions`: tangents of the fields' initial contents,
        including values that Python writes before any use. `along`: those of numbers from outside; `given`:
        replacements for numbers. `initialises`: whether Python writes the initial values of fields (`initialise`).
        Returns the numbers that it has computed, by those that they were.
        """
        known: dict[int, Traced] = dict(given)
        self._along = along
        base = base_of(recorder)
        if isinstance(base, Journal):
            base.deepest = max(base.deepest, self.deepest)
        if self._shadows:
            keep_gradients_apart(recorder)
            shadows_are_values(recorder, [*self._shadows], next(iter(self._shadows.values())))
        for event in outermost(self._events):
            if not initialises and event in self.first_writes:
                continue
            if isinstance(event, RecordedLaunch):
                self._launch(event, recorder, known)
            elif isinstance(event, Read):
                value = element_at(event.buffer, event.position)
                known[event.number] = recorder.number_at(event.buffer, event.position, value)
            elif isinstance(event, Computed):
                operands = [self._operand(one, known) if type(one) is Traced else one for one in event.operands]
                found = computed_again(event.rule, operands)
                if type(found) is Traced:
                    known[event.number] = found
            elif isinstance(event, Write):
                self._write(event, recorder, known)
                if event.initialises and event.target in directions and event.target.tangent is not None:
                    direction = directions[event.target]
                    store(event.target.tangent, event.position, direction[event.position])
            elif isinstance(event, Custom):
                assert event.again is not None
                known.update(event.again(recorder, lambda one: self._operand(one, known)))
        return known

    @cached_property
    def first_writes(self) -> dict[Write, None]:
        """The writes by Python that initialise differentiated fields: no event before them used the fields."""
        found: dict[Write, None] = {}
        used: set[Buffer] = set()
        for event in self._events:
            if isinstance(event, Write) and event.initialises and event.target.adjoint is not None:
                if event.target not in used:
                    found[event] = None
                    continue
            used.update(event.touched)
        return found

    def initialise(self, recorder: Recorder) -> None:
        """Repeat Python's writes of initial values of fields."""
        for event in self.first_writes:
            self._write(event, recorder, {})

    def results(self, recorded: Sequence[Any], known: Mapping[int, Traced]) -> list[Any]:
        """The numbers that these recorded results are in the run that has computed `known`, and fields."""
        return [self._operand(one, known) if type(one) is Traced else one for one in recorded]

    def _operand(self, one: Traced, known: Mapping[int, Traced]) -> Traced:
        if one.number in self._along:
            return self._number(one.number, one.value, known)
        return known.get(one.number, one)

    def _number(self, number: int, value: float, known: Mapping[int, Traced]) -> Traced:
        found = known.get(number)
        return traced(self._outer, value, self._along.get(number, 0.0), number) if found is None else found

    def _launch(self, event: RecordedLaunch, recorder: Recorder, known: dict[int, Traced]) -> None:
        instance, values = event.instance, list(event.replay_arguments())
        for at, number in event.places:
            values[at] = self._number(number, values[at], known)
        given = tuple(values)
        if session.watchers and session.watchers != [recorder]:
            note_launch_outside(instance, given)
        try:
            recorder.under_way = instance, given
            native = recorder.launching(instance, given) or instance.primal
            results = launch_on_copies(native.launch, given) if instance.writes_copies else native.launch(given)
            recorder.launched()
        finally:
            recorder.under_way = None
        if event.results:
            known.update(zip(event.results, [one for one in results if type(one) is Traced], strict=True))

    def _write(self, event: Write, recorder: Recorder, known: Mapping[int, Traced]) -> None:
        with leaving_value(recorder, event.target) as target:
            if event.source is not None:
                note_python_write(event.target, event.position, None, event.source)
                hold(target, held_now(event.source))
                return
            value = event.values if event.numbers is None else self._numbers(event, known)
            note_python_write(event.target, event.position, value)
            store(target, event.position, value)

    def _numbers(self, event: Write, known: Mapping[int, Traced]) -> Any:
        if isinstance(event.numbers, int):
            return self._number(event.numbers, event.values.item(), known)
        assert event.numbers is not None
        found = np.empty(event.numbers.shape, object)
        for at in np.ndindex(found.shape):
            value, number = event.values[at].item(), int(event.numbers[at])
            found[at] = self._number(number, value, known) if number else value
        return found


def keep_gradients_apart(recorder: Recorder) -> None:
    """A block inside the events of `recorder` is about to compute gradients of its own."""
    base = base_of(recorder)
    if isinstance(base, Journal):
        base.may_change_gradients()
        base.keep_gradients_apart()


def shadows_are_values(recorder: Recorder, shadows: Collection[Buffer], span: Span) -> None:
    """A block inside the events of `recorder`, opened at `span`, has computed these gradients or duals."""
    base = base_of(recorder)
    if isinstance(base, Journal):
        for buffer in shadows:
            base.has_values(buffer, span)
    for block in lifts_of(recorder):
        block.values.update(shadows)
    computed_inside(shadows)


@contextmanager
def leaving_value(recorder: Recorder, buffer: Buffer) -> Iterator[Buffer]:
    """A block in which a gradient or dual takes the result of an inner block of `recorder`; yields the place of the
    result. For other memory it has no effect.
    """
    base = base_of(recorder)
    if buffer.primal is None or not isinstance(base, Journal):
        yield buffer
        return
    with base.leaving_values():
        yield base.duals_apart.get(buffer, buffer)


def leave_value(recorder: Recorder, shadow: Buffer, value: Any) -> None:
    """Set a gradient or dual to this value, the result of an inner block of `recorder`: a number, or an array's
    contents.
    """
    with leaving_value(recorder, shadow) as held:
        if isinstance(value, Field):
            note_python_write(shadow, ..., None, value.buffer)
            hold(held, held_now(value.buffer))
        else:
            note_python_write(shadow, ..., value)
            hold(held, value)


def agree(again: Any, before: Any) -> bool:
    """Whether the results of two runs agree, up to rounding."""
    a, b = np.asarray(plain_array(again)), np.asarray(plain_array(before))
    epsilon = max(np.finfo(one.dtype).eps if one.dtype.kind == "f" else 0.0 for one in (a, b))
    tolerance = 10 * float(np.sqrt(epsilon))
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def refuse_other_again(name: str, span: Span) -> NoReturn:
    """Raise for a function that behaved differently when it ran again, or whose gradient did."""
    raise DifferentiationError(
        f"'{name}', or its gradient, did something else when it was run again: the derivative of that would not "
        "be right",
        span,
        hint="let both depend on their arguments and on fields alone",
    )


def _require_duals(event: RecordedLaunch) -> None:
    """Raise for a launch with an array that had no dual yet, or none of its gradient: it would be a constant in a run
    along a direction. Arrays that exist when a block begins have both.
    """
    for array in event.values[: len(event.instance.specialisation.arrays)]:
        buffer = array.buffer
        if buffer is not None and buffer.adjoint is not None and not (array.tangent and array.second):
            raise DifferentiationError(
                f"'{buffer.name}' was made inside of a block that is differentiated itself, and launched with there",
                event.span,
                hint="make it before the block",
            )
