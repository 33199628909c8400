"""What a journal has recorded, done again: launches, what Python wrote, read and computed, in the same order.

The numbers that came of it are other ones then, as whoever records now sees it: in a recording with tangents, the same
program gives tangents too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.events import Computed, Custom, InnerEvents, Launch, Read, Write
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.operation import Operation, outermost
from tinote.lang.ad.memory.values import element_at, held_now, hold, store
from tinote.lang.data.traced import Trace, Traced, computed_again
from tinote.lang.kernels.unwritable import launch_on_copies
from tinote.lang.session.state import note_launch_outside, note_python_write, session
from tinote.source import Span

Array = np.ndarray[Any, Any]


def can_run_again(custom: Custom) -> bool:
    """Whether a stretch with a gradient of its own can be run again."""
    return custom.again is not None or (isinstance(custom, Operation) and custom.computation is not None)


class Again:
    """What a journal has recorded that noted all that it takes (`Journal.runs_again`). `outer`: what the numbers belong
    to that came from outside.
    """

    def __init__(self, recorded: Journal, outer: Trace) -> None:
        self._events = list(recorded.events)
        self._inner = [one for one in recorded.inner_events if one.again is not None]
        self._outer = outer
        self._along: Mapping[int, float] = {}
        for event in self._parts():
            if isinstance(event, Launch):
                _require_duals(event)

    def close(self) -> None:
        """Nobody runs it any more."""
        for event in self._events:
            if isinstance(event, Custom) and event.release is not None:
                event.release()

    def run(self, journal: Journal, directions: Mapping[Buffer, Array], along: Mapping[int, float]) -> None:
        """Do it again under `journal`, which is recording. `directions`: tangents of what fields hold at the start; of
        what Python gives them before anything uses them, these are the tangents. `along`: those of numbers from
        outside.
        """
        known: dict[int, Traced] = {}
        self._along = along
        for event in outermost(self._parts()):
            if isinstance(event, Launch):
                self._launch(event, journal, known)
            elif isinstance(event, Read):
                value = element_at(event.buffer, event.position)
                known[event.number] = journal.number_at(event.buffer, event.position, value)
            elif isinstance(event, Computed):
                operands = [self._operand(one, known) if type(one) is Traced else one for one in event.operands]
                found = computed_again(event.rule, operands)
                if type(found) is Traced:
                    known[event.number] = found
            elif isinstance(event, Write):
                self._write(event, known)
                if event.initialises and event.target in directions and event.target.tangent is not None:
                    given = directions[event.target]
                    store(event.target.tangent, event.position, given[event.position])
            elif isinstance(event, Operation) and event.computation is not None:
                journal.computing(event.computation)
            elif isinstance(event, InnerEvents | Custom):
                assert event.again is not None
                known.update(event.again(journal, lambda one: self._operand(one, known)))

    def _parts(self) -> Iterator[Any]:
        """The events, with derivatives inside in the place of theirs."""
        end = 0
        for inner in self._inner:
            yield from self._events[end : inner.events.start]
            yield inner
            end = inner.events.stop
        yield from self._events[end:]

    def _operand(self, one: Traced, known: Mapping[int, Traced]) -> Traced:
        if one.number in self._along:
            return self._number(one.number, one.value, known)
        return known.get(one.number, one)

    def _number(self, number: int, value: float, known: Mapping[int, Traced]) -> Traced:
        found = known.get(number)
        return Traced(self._outer, value, self._along.get(number, 0.0), number) if found is None else found

    def _launch(self, event: Launch, journal: Journal, known: dict[int, Traced]) -> None:
        instance, values = event.instance, list(event.values)
        flow = event.flow
        if flow is not None:
            count = len(instance.specialisation.arrays)
            kinds = [t.kind for t in instance.primal.parameters]
            floats = [count + k for k, kind in enumerate(kinds) if kind == "f"]
            for k, number, _ in flow.inputs:
                values[floats[k]] = self._number(number, values[floats[k]], known)
        given = tuple(values)
        if session.watchers and session.watchers != [journal]:
            note_launch_outside(instance, given)
        native = journal.launching(instance, given) or instance.primal
        results = launch_on_copies(native.launch, given) if instance.writes_copies else native.launch(given)
        journal.launched()
        if flow is not None:
            found = [one for one in results if type(one) is Traced]
            known.update(zip(flow.outputs, found, strict=True))

    def _write(self, event: Write, known: Mapping[int, Traced]) -> None:
        if event.source is not None:
            note_python_write(event.target, event.position, None, event.source)
            hold(event.target, held_now(event.source))
            return
        value = event.values if event.numbers is None else self._numbers(event, known)
        note_python_write(event.target, event.position, value)
        store(event.target, event.position, value)

    def _numbers(self, event: Write, known: Mapping[int, Traced]) -> Any:
        if isinstance(event.numbers, int):
            return self._number(event.numbers, event.values.item(), known)
        assert event.numbers is not None
        found = np.empty(event.numbers.shape, object)
        for at in np.ndindex(found.shape):
            value, number = event.values[at].item(), int(event.numbers[at])
            found[at] = self._number(number, value, known) if number else value
        return found


def refuse_other_again(name: str, span: Span) -> NoReturn:
    """Raise for a function that has not done the same again, or whose gradient has not."""
    raise DifferentiationError(
        f"'{name}', or its gradient, did something else when it was run again: the derivative of that would not "
        "be right",
        span,
        hint="let both depend on their arguments and on fields alone",
    )


def _require_duals(event: Launch) -> None:
    """Raise for a launch with an array that had no dual yet, or none of its gradient: it would be a constant in a run
    along a direction. Arrays that are there when a block begins have both.
    """
    for array in event.values[: len(event.instance.specialisation.arrays)]:
        buffer = array.buffer
        if buffer is not None and buffer.adjoint is not None and not (array.tangent and array.second):
            raise DifferentiationError(
                f"'{buffer.name}' was made inside of a block that is differentiated itself, and launched with there",
                event.span,
                hint="make it before the block",
            )
