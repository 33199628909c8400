"""Re-execution of a journal: launches, and Python's writes, reads and arithmetic, in the same order.

Its numbers become numbers of the present recorder: in a recording with tangents, the same program computes tangents,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import computed_inside
from tinote.lang.ad.functional.pushed_mode import base_of, lifts_of
from tinote.lang.ad.journal.events import Computed, Custom, Read, Write, outermost
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.memory.values import element_at, held_now, hold, store
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced, computed_again, objects
from tinote.lang.kernels.unwritable import launch_on_copies
from tinote.lang.session.state import Recorder, note_launch_outside, note_python_write, session
from tinote.source import Span


class Again:
    """Re-executes a journal that recorded all that this requires (`Journal.will_run_again`)."""

    def __init__(self, recorded: Journal) -> None:
        self._events = list(recorded.events)
        self._recorded = recorded
        #: the greatest depth of the blocks of pushforwards that recorded it (`Recorder.depth`)
        self.deepest = recorded.deepest
        #: gradients and duals that hold results of inner blocks
        self._shadows = {one: span for one, span in recorded.active.items() if one.primal is not None}
        for event in self._events:
            if isinstance(event, RecordedLaunch):
                event.drop_saved()

    def close(self) -> None:
        """Free its memory: it will not run again."""
        self._recorded.runs_again = False
        for event in self._events:
            if isinstance(event, Custom) and event.release is not None:
                event.release()
        self._events, self._recorded.used_arrays = [], {}

    def run(self, recorder: Recorder, given: Mapping[int, Any]) -> dict[int, Any]:
        """Re-execute under `recorder`, the present one, all but `initialise`. `given`: replacements for numbers, those
        from outside among them. Returns the numbers that it has computed, by those that they were.
        """
        known: dict[int, Any] = dict(given)
        base = base_of(recorder)
        if isinstance(base, Journal):
            base.deepest = max(base.deepest, self.deepest)
        if self._shadows:
            keep_gradients_apart(recorder)
            shadows_are_values(recorder, [*self._shadows], next(iter(self._shadows.values())))
        for event in outermost(self._events):
            if isinstance(event, RecordedLaunch):
                self._launch(event, recorder, known)
            elif isinstance(event, Read):
                value = element_at(event.buffer, event.position)
                known[event.number] = recorder.number_at(event.buffer, event.position, value)
            elif isinstance(event, Computed):
                known[event.number] = computed_again(event.rule, [_number(one, known) for one in event.operands])
            elif isinstance(event, Write):
                if event not in self._first_writes:
                    self._write(event, recorder, known)
            elif isinstance(event, Custom):
                assert event.again is not None
                known.update(event.again(recorder, lambda one: _number(one, known)))
        return known

    @cached_property
    def _first_writes(self) -> dict[Write, None]:
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
        for event in self._first_writes:
            self._write(event, recorder, {})

    @staticmethod
    def results(recorded: Sequence[Any], known: Mapping[int, Any]) -> list[Any]:
        """The numbers that these recorded results are in the run that has computed `known`, and fields."""
        return [_number(one, known) for one in recorded]

    @staticmethod
    def _launch(event: RecordedLaunch, recorder: Recorder, known: dict[int, Any]) -> None:
        instance, given = event.instance, event.replay_arguments(known)
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

    @staticmethod
    def _write(event: Write, recorder: Recorder, known: Mapping[int, Any]) -> None:
        with leaving_value(recorder, event.target) as target:
            if event.source is not None:
                note_python_write(event.target, event.position, None, event.source)
                hold(target, held_now(event.source))
                return
            value = event.values if event.numbers is None else _numbers(event, known)
            note_python_write(event.target, event.position, value)
            store(target, event.position, value)


def _number(one: Any, known: Mapping[int, Any]) -> Any:
    return known.get(one.number, one) if type(one) is Traced else one


def _numbers(event: Write, known: Mapping[int, Any]) -> Any:
    """The values of a write with traced numbers."""
    if isinstance(event.numbers, int):
        return known.get(event.numbers, event.values.item())
    assert event.numbers is not None
    pairs = zip(event.numbers.ravel().tolist(), event.values.ravel().tolist(), strict=True)
    return objects([known.get(number, value) for number, value in pairs], event.numbers.shape)


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
