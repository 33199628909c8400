"""A recorded run of a differentiated function, the reverse sweep through it, and its emission to another recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, NamedTuple

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import note_values
from tinote.lang.ad.functional.inputs import Array, Bound, DifferentiatedFunction, number_in, number_or_array
from tinote.lang.ad.functional.seeds import store_seed
from tinote.lang.ad.journal.events import Custom, Event, Write, outermost
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.touched_gradients import changed_gradients
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, constants, number_now
from tinote.lang.session.owners import open_recording, own_gradients, refuse_same_values
from tinote.lang.session.state import Recorder, recorder, recording_as
from tinote.source import Span, caller


class Run(NamedTuple):
    """A recorded run of a differentiated function, and its results: a traced number, or fields."""

    journal: Journal
    bound: Bound
    results: Sequence[Traced | Field]

    def clear_gradients(self) -> None:
        """Set the gradients that a sweep touches to zero."""
        before = self.journal.gradients_before
        if before is None:
            for memory in own_gradients().values():
                memory.clear()
            for one in self.bound.inputs:
                if one.stand_in is not None:
                    one.stand_in.grad.fill(0)
            return
        fields = [one.field for one in self.bound.inputs if one.field is not None and one.stand_in is None]
        fields += [one for one in self.results if isinstance(one, Field) and not one.stands_in]
        fresh = {one.stand_in.grad.buffer for one in self.bound.inputs if one.stand_in is not None}
        results = {field.grad.buffer for field in fields}
        changed = changed_gradients(self.journal.events, perhaps=False) | results
        self.journal.begin_sweep(changed - fresh, results, fresh)

    @property
    def values(self) -> list[Any]:
        """The results."""
        return [number_or_array(one) if isinstance(one, Field) else constants((one,))[0] for one in self.results]

    @property
    def value(self) -> Any:
        """The result of a function with a single result."""
        return self.values[0]

    @property
    def number(self) -> Any:
        """The result as a single number."""
        (result,) = self.results
        return number_in(result) if isinstance(result, Field) else constants((result,))[0]

    def gradients(self, sweep: Sweep) -> list[Any]:
        """The results of a sweep, for each input."""
        return [one.gradient(sweep) for one in self.bound.inputs]


class Emission:
    """The program of a journal that recorded all that its repetition requires (`Journal.will_run_again`), to be emitted
    to other recorders: in a recording with tangents, the same operations compute tangents, too.
    """

    def __init__(self, recorded: Journal) -> None:
        self._events = list(recorded.events)
        self._recorded = recorded
        #: the greatest depth of the blocks of pushforwards that recorded it (`Recorder.depth`)
        self.deepest = recorded.deepest
        #: gradients and duals that hold results of inner blocks
        self._shadows = {one: span for one, span in recorded.activity.spans.items() if one.primal is not None}
        for event in self._events:
            if isinstance(event, RecordedLaunch):
                event.drop_saved()

    def close(self) -> None:
        """Free its memory: it will not be emitted again."""
        self._recorded.runs_again = False
        for event in self._events:
            if isinstance(event, Custom) and event.release is not None:
                event.release()
        self._events, self._recorded.used_arrays = [], {}

    def run(self, recorder: Recorder, given: Mapping[int, Any]) -> dict[int, Any]:
        """Emit all but `initialise` to `recorder`, the present one. `given`: replacements for numbers, those from
        outside among them. Returns the numbers that it has computed, by those that they were.
        """
        known: dict[int, Any] = dict(given)
        recorder.root.deepest = max(recorder.root.deepest, self.deepest)
        if self._shadows:
            recorder.keep_gradients_apart()
            note_values(recorder, self._shadows, next(iter(self._shadows.values())))
        for event in outermost(self._events):
            if event not in self._first_writes:
                event.emit(recorder, known)
        return known

    @cached_property
    def _first_writes(self) -> dict[Event, None]:
        """The writes by Python that initialise differentiated fields: no event before them used the fields."""
        found: dict[Event, None] = {}
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
            event.emit(recorder, {})

    @staticmethod
    def results(recorded: Sequence[Any], known: Mapping[int, Any]) -> list[Any]:
        """The numbers that these recorded results are in the run that has computed `known`, and fields."""
        return [number_now(one, known) for one in recorded]


def refuse_open_recorder(what: str) -> None:
    """Raise inside of a tape or a forward-mode block."""
    if (outer := recorder.get()) is not None:
        raise DifferentiationError(
            f"ti.ad.{what} cannot run inside of a tape or another block",
            caller(),
            notes=outer.opened_notes(),
        )


def recorded(
    task: DifferentiatedFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    before: ShadowsBefore | None = None,
    *,
    shares: bool = False,
    zero: bool = False,
) -> Run:
    """Run `f` under a recording. `before`: gets the gradients that it and its sweep will change. `shares`: there is one
    sweep, and launches save values that it would recompute. `zero`: the loss begins at zero.
    """
    journal = Journal(shares=shares)
    if before is not None:
        journal.leave_shadows(before)
        journal.opened = task.span
        if task.loss is not None and zero:
            journal.begin_loss(task.loss)
    return recorded_from(task, task.bound(args, journal.trace), journal, kwargs)


def begin_along(journal: Journal, bound: Bound, directions: Sequence[Array]) -> None:
    """Begin a recording with these tangents of its inputs; duals are restored at its end."""
    open_recording(journal)
    journal.begins_duals = True
    journal.begin_duals([one.field.dual.buffer for one in bound.inputs if one.field is not None])
    bound.point(directions)


def recorded_from(
    task: DifferentiatedFunction,
    bound: Bound,
    journal: Journal,
    kwargs: dict[str, Any],
    results: Sequence[Field] = (),
    *,
    top: Recorder | None = None,
    parts: Callable[[Any], Sequence[Any]] | None = None,
) -> Run:
    """Run `f` from these inputs under a journal. `results`: the fields with its results, instead of the returned value
    or the loss of `task`. `top`: a recorder of `f` that records in the journal; `parts`: maps the returned value to the
    results in the journal.
    """

    def run() -> Any:
        with nullcontext() if top is None else recording_as(top), bound.running():
            return task.f(*bound.args, **kwargs)

    def found(returned: Any) -> Sequence[Any]:
        return results or [result_of(task, returned, journal.trace)]

    fields = [one.field.buffer for one in bound.inputs if one.field is not None]
    return Run(journal, bound, record(journal, task.span, fields, run, parts or found))


def record(
    journal: Journal,
    span: Span,
    inputs: Iterable[Buffer],
    run: Callable[[], Any],
    results: Callable[[Any], Sequence[Any]],
) -> Sequence[Any]:
    """Record a run of a function of these fields that is differentiated at `span`. `results`: maps the value that `run`
    returns to its results in the journal, which are returned.
    """
    journal.opened = span
    journal.is_swept = True
    journal.memory.starts_from(inputs)
    try:
        with journal.recording():
            returned = run()
        found = results(returned)
        lost = journal.lost_values()
        for result in found:
            if isinstance(result, Traced):
                lost.refuse_number(result.number, Note("from there the function returns them", span))
        journal.take_gradients_back()
        if journal.gradients_before is None:
            journal.claim(clear=True)
        else:
            refuse_same_values(journal)
    except BaseException:
        journal.forget()
        raise
    return found


def result_of(task: DifferentiatedFunction, returned: Any, trace: Trace) -> Traced | Field:
    """The result of a function that has returned this. Raises `DifferentiationError` where there is none."""
    if task.loss is not None:
        return task.loss
    if type(returned) is Traced and returned.trace is trace:
        return returned
    what = "nothing" if returned is None else f"{returned!r}, to which no kernel and no input leads"
    raise DifferentiationError(
        f"ti.ad.{task.what} differentiates what the function returns, and that is {what}",
        task.span,
        hint="return a number that a kernel returns, or name the 0-D field with the result in output=",
    )


def pull_back(run: Run, *seeds: Array, keep: bool = False) -> Sweep:
    """Sweep with a seed for each result: the seeds times the Jacobian are left in the gradients of fields and in the
    adjoints of the sweep. The gradients of all fields are overwritten.
    """
    sweep = run.journal.sweep()
    try:
        run.clear_gradients()
        for result, seed in zip(run.results, seeds, strict=True):
            if isinstance(result, Field):
                # A loss of a single number may have shape (1,).
                store_seed(result.grad, seed)
            else:
                sweep.seed(result, seed.item())
        sweep.run()
        refuse_same_values(run.journal)
        return sweep
    finally:
        if not keep:
            run.journal.forget()
