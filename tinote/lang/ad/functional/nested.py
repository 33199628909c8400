"""Nested derivatives: `ti.ad.grad` and similar functions inside a function that is differentiated itself.

    def best(x):                                    # minimises over y by steps along a gradient
        y = 0.0
        for _ in range(20):
            y = y - 0.1 * ti.ad.grad(height, argnums=1)(x, y)
        return height(x, y)

    ti.ad.grad(best)(2.0)                           # differentiates these steps

For the outer recording, an inner gradient is one record. Let g be the gradient of f that the call returns. If the outer
mode is reverse, the adjoint w of g is propagated as that of the number w · g, whose gradient is the tangent of g along
w, since second derivatives are symmetric: f runs again along w as the direction, and its reverse sweep carries tangents
(`second_order.py`). The adjoints from later operations are tangents of those that this sweep starts with, so that the
same sweep differentiates the results of f in fields. If the outer mode is forward, f runs in this way at once, along
the present tangents.

The two levels are separate: numbers of the inner recording belong to their own trace, inner gradients replace the outer
ones in memory only during the inner sweep, and no launch has tangents of two levels. If the outer recording carries
tangents itself, more than one level is needed (`higher_order.py`).

Method: forward over reverse mode; Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 5.1. That the
order of differentiation does not matter: Schwarz's theorem, which holds where second derivatives are continuous.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inputs import Array, Bound, DifferentiatedFunction, shape_of
from tinote.lang.ad.functional.runs import Run, recorded_from
from tinote.lang.ad.functional.second_order import SecondOrder, give_gradients_duals, inner_trace
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.functional.symmetry import (
    Symmetry,
    custom_calls,
    have_gradients,
    is_to_be_tried,
    tangents_of_gradients,
)
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import (
    Computed,
    Custom,
    InnerEvents,
    NumberOf,
    RecordedLaunch,
    outermost,
    with_inner,
)
from tinote.lang.ad.journal.from_python import Taken
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import (
    accumulate,
    as_array,
    held_now,
    hold,
    items_of,
    plain_array,
)
from tinote.lang.data.captured_arrays import single_number, taken_copy
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import StandIn, stand_in
from tinote.lang.data.nests import map_leaves
from tinote.lang.data.traced import Trace, Traced, arranged, constants, holds_traced, objects, stored
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.session.owners import claim, give_back, own_duals
from tinote.lang.session.state import Recorder, independent_recordings, memory_of, note_python_write, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import unwinding
from tinote.source import caller

_ZERO = Dual(0.0)


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

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"ti.ad.{self.task.what} of '{getattr(self.task.f, '__name__', 'a function')}'"


def refuse_nesting(what: str, outer: Recorder, why: str) -> NoReturn:
    """Raise for a block inside of another, with the lines of both."""
    raise DifferentiationError(
        f"ti.ad.{what} cannot run inside of this block: {why}", caller(), notes=outer.opened_notes()
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


# ---- results


class _Result:
    """A number or an array that an inner derivative returns, as a part of the outer recording: `given`."""

    def __init__(self, found: Any, trace: Trace, tangent: Any = None, *, runs_again: bool = False) -> None:
        self.number: int | None = None
        self.field: StandIn | None = None
        if np.shape(found):
            self.field = made = stand_in(found, needs_dual=tangent is not None or runs_again)
            if runs_again:
                made.grad.ensure_dual()
            if tangent is not None:
                hold(made.dual.buffer, tangent)
            self.given: Any = made
        else:
            self.given = trace.new(single_number(found), 0.0 if tangent is None else single_number(tangent))
            self.number = self.given.number

    def adjoint(self, sweep: CustomSweep) -> Array:
        """Its adjoint, which becomes zero."""
        if self.field is None:
            assert self.number is not None
            return as_array(sweep.adjoints.pop(self.number, _ZERO).value)
        gradient = self.field.grad.buffer
        found = held_now(gradient)
        memory_of(gradient).clear()
        return found


class _Given:
    """A seed or direction that the user has given, an `array`, perhaps with a derivative of its own: that of a number,
    of an array of numbers, or of an ndarray.
    """

    def __init__(self, given: Any, shape: tuple[int, ...], trace: Trace, whose: str) -> None:
        self.numbers: Array | None = None
        self.buffer: Buffer | None = None
        if isinstance(given, Field):
            if not given.has_grad:
                raise DifferentiationError(
                    f"the seed '{given.name}' has no gradient", caller(), hint="make it with needs_grad=True"
                )
            self.buffer = given.buffer
            given = taken_copy(numbers(given.buffer))
        elif holds_traced(given):
            items = as_array(given) if type(given) is Traced else np.asarray(given, object)
            of = [one.number if type(one) is Traced and trace.is_active(one) else 0 for one in items.ravel().tolist()]
            self.numbers = np.array(of, np.int64).reshape(items.shape)
            self.tangents = arranged(
                [one.tangent if type(one) is Traced else 0.0 for one in items.ravel().tolist()], items.shape
            )
            given = arranged(constants(items.ravel().tolist()), items.shape)[()]
        self.array = seed_array(given, shape, "", whose)

    @property
    def is_differentiated(self) -> bool:
        """Whether it has a derivative of its own."""
        return self.numbers is not None or self.buffer is not None

    @property
    def tangent(self) -> Array:
        """Along the direction of forward mode."""
        if self.numbers is not None:
            return self.tangents
        if self.buffer is not None and self.buffer.tangent is not None:
            return held_now(self.buffer.tangent)
        return np.zeros(self.array.shape)

    def add(self, sweep: CustomSweep, adjoint: Any) -> None:
        """Accumulate its adjoint."""
        if self.buffer is not None:
            assert self.buffer.adjoint is not None
            accumulate(self.buffer.adjoint, adjoint)
        elif self.numbers is not None:
            for number, amount in zip(self.numbers.ravel().tolist(), items_of(adjoint), strict=True):
                add_adjoint(sweep, number, amount)


def add_adjoint(sweep: CustomSweep, number: int, amount: float) -> None:
    """Accumulate the adjoint of a traced number from outside."""
    add_dual(sweep, number, Dual(amount))


def add_dual(sweep: CustomSweep, number: int, amount: Dual) -> None:
    """The same with the tangent of the adjoint."""
    if number:
        known = sweep.adjoints.get(number)
        sweep.adjoints[number] = amount if known is None else known + amount


def _result_shape(task: DifferentiatedFunction) -> tuple[int, ...]:
    return () if task.loss is None else shape_of(task.loss)


def _seed(inner: Inner, trace: Trace) -> _Given:
    """Of the result, in reverse mode."""
    shape = _result_shape(inner.task)
    return _Given(np.ones(shape) if inner.seed is None else inner.seed, shape, trace, "the result")


def _written_at_last(result: Field | Traced) -> Any:
    """The results and their tangents."""
    if isinstance(result, Field):
        return _now(result), held_now(result.dual.buffer)
    return _now(result), as_array(result.tangent)


def _now(result: Field | Traced) -> Array:
    """The present value of a result."""
    return taken_copy(numbers(result.buffer)) if isinstance(result, Field) else as_array(constants((result,))[0])


def _with_numbers(given: Any, of: NumberOf) -> Any:
    """A seed, or directions, with other numbers."""

    def renumbered(one: Any) -> Any:
        if isinstance(one, np.ndarray) and one.dtype == object:
            return objects(map_leaves(renumbered, one.ravel().tolist()), one.shape)
        return of(one) if type(one) is Traced else one

    return map_leaves(renumbered, given)


def _single(inner: Inner, value: Any) -> Any:
    """A value, which is a number where the gradient is taken of one."""
    return value if inner.is_forward or inner.seed is not None else value.reshape(())


def _gradients(run: Run) -> set[Buffer]:
    """The gradients that a sweep touches."""
    fields = [one.field for one in run.bound.inputs if one.field is not None]
    fields += [one for one in run.results if isinstance(one, Field)]
    return changed_gradients_of(run.journal, fields)


def changed_gradients_of(journal: Journal, fields: Iterable[Field]) -> set[Buffer]:
    """The gradients that a sweep through a journal touches that begins and ends at these fields."""
    return journal.changed_gradients() | {field.grad.buffer for field in fields}


def _start(run: Run, sweep: Sweep, value: Array, tangent: Array) -> None:
    """Seed the result of a second-order sweep: add to its adjoint and to the tangent of that."""
    (result,) = run.results
    if isinstance(result, Field):
        accumulate(result.grad.buffer, value)
        accumulate(result.grad.dual.buffer, tangent)
    else:
        sweep.adjoints[result.number] = Dual(value.item(), tangent.item())


def _signature(journal: Journal) -> list[Any]:
    """The signature of a run: its operations and plain numbers, which must be the same when it runs again."""
    found: list[Any] = []
    for event in outermost(with_inner(journal.events, journal.inner_events)):
        if isinstance(event, RecordedLaunch):
            found += [event.instance.kernel_name, *map(stored, _plain_numbers(event))]
        elif isinstance(event, Computed):
            found += [event.rule.name, *[stored(one) for one in event.operands if not _is_active(one)]]
        elif isinstance(event, Custom | InnerEvents):
            found.append(event.name)
    return found


def _is_active(operand: Traced | float) -> bool:
    return type(operand) is Traced and operand.number != 0


def _plain_numbers(launch: RecordedLaunch) -> list[Any]:
    traced = {at for at, _ in launch.places}
    return [launch.values[k] for k in range(len(launch.arguments.arrays), len(launch.values)) if k not in traced]


def agree(again: Any, before: Any) -> bool:
    """Whether the results of two runs agree, up to rounding."""
    a, b = np.asarray(plain_array(again)), np.asarray(plain_array(before))
    epsilon = max(np.finfo(one.dtype).eps if one.dtype.kind == "f" else 0.0 for one in (a, b))
    tolerance = 10 * float(np.sqrt(epsilon))
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def refuse_other(inner: Inner) -> NoReturn:
    """Raise for a function that behaved differently when it ran again."""
    raise DifferentiationError(
        f"{inner.name} did something else when it was run again, so its gradient would not be right",
        inner.span,
        hint="let it depend on its arguments, on fields and on local variables alone; pass what changes from call "
        "to call as an argument",
    )


def refuse_written(bound: Bound, inner: Inner) -> None:
    """Raise for a caller's array that was written: its contents would be constants in the outer recording."""
    for one in bound.inputs:
        if one.stand_in is not None and one.stand_in.before is not None:
            raise DifferentiationError(
                f"{inner.name} writes to an array that it is given: the derivative around it would not know",
                inner.span,
                hint="give it a ti.ndarray with needs_grad=True",
            )


class Cells:
    """The values of the outer functions' variables (closure cells) that `f`, and functions among these, use: the next
    iteration of a loop may change them.
    """

    def __init__(self, f: Any) -> None:
        self._held: dict[int, tuple[Any, Any]] = {}  # by identity
        self._take(f)

    def _take(self, f: Any) -> None:
        for cell in getattr(f, "__closure__", None) or ():
            if id(cell) not in self._held:
                try:
                    held = cell.cell_contents
                except ValueError:  # not assigned yet
                    continue
                self._held[id(cell)] = cell, held
                if callable(held):
                    self._take(held)

    @property
    def numbers(self) -> list[Traced]:
        """The traced numbers among these."""
        return [held for _, held in self._held.values() if type(held) is Traced]

    @contextmanager
    def again(self, of: NumberOf | None = None) -> Iterator[None]:
        """A block in which the variables have these values, with numbers mapped to another recording by `of`."""
        now = [(cell, cell.cell_contents) for cell, _ in self._held.values()]
        try:
            for cell, held in self._held.values():
                cell.cell_contents = of(held) if of is not None and type(held) is Traced else held
            yield
        finally:
            for cell, held in now:
                cell.cell_contents = held


#: Returns the value of an inner derivative, and its result for each input, in a recording (`nesting.inside`).
Inside = Callable[[Journal, Inner], tuple[Any, list[Any]]]


class InnerStart:
    """The initial state of an inner derivative, saved to compute it again: its arguments, the numbers in Python that
    its function refers to, and the state of its random numbers.
    """

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        self.args = tuple([a.copy() if isinstance(a, np.ndarray) else a for a in inner.args])
        self.cells = Cells(inner.task.f)
        self.launches = session.launches

    def again(
        self, inside: Inside, places: Sequence[tuple[int, Field | None]], journal: Journal, of: NumberOf
    ) -> dict[int, Any]:
        """Compute it in another recording, by `inside`. `places`: the numbers or arrays of its results. Returns the
        numbers that correspond to those; the arrays get the new results.
        """
        again = copy.copy(self.inner)
        again.args = tuple([of(one) if type(one) is Traced else one for one in self.args])
        again.seed, again.directions = _with_numbers(again.seed, of), _with_numbers(again.directions, of)
        before, session.launches = session.launches, self.launches
        try:
            with self.cells.again(of):
                value, others = inside(journal, again)
        finally:
            session.launches = before
        found: dict[int, Any] = {}
        for (number, field), now in zip(places, (value, *others), strict=True):
            if number:
                found[number] = now
            elif field is not None:
                note_python_write(field.buffer, ..., None, now.buffer)
                hold(field.buffer, held_now(now.buffer))
        return found


@contextmanager
def _moving(these: Sequence[Traced], along: Mapping[int, float]) -> Iterator[None]:
    """A block in which numbers have these tangents."""
    before = [(one, one.tangent) for one in these]
    try:
        for one in these:
            one.tangent = along[one.number]
        yield
    finally:
        for one, tangent in before:
            one.tangent = tangent


# ---- reverse mode around


class _Sources(NamedTuple):
    """The dependencies of a gradient: inputs, of these shapes, numbers from outside, and fields."""

    inputs: list[tuple[int, ...]]
    numbers: dict[int, list[Traced]]
    fields: list[Buffer]


class Recorded:
    """An inner gradient in a journal, and its gradient. `inside` runs one in any recording."""

    def __init__(self, outer: Journal, inner: Inner, inside: Inside) -> None:
        self.inner = inner
        self._inside = inside
        self.outer = outer
        self.trace: Trace = outer.trace
        self.family: object = None
        self.start = InnerStart(inner)
        self.kwargs = inner.kwargs
        self.effects = Effects(keeps=True)
        self.results: list[_Result] = []
        self.signature: list[Any] = []
        self.taken: list[Taken] = []
        self.found: list[Any] = []

    def run(self) -> tuple[Any, list[Any]]:
        inner, outer = self.inner, self.outer
        trace = inner_trace(outer)
        self.family = trace.family
        with self.effects.listening():
            value, found, journal, taken = self._first(trace)
        self.signature, self.taken = _signature(journal), journal.from_python or []
        outer.took(inner.name, [*self.signature, *self.taken])
        effects = self.effects
        effects.read_by_python(journal)
        own = {field.buffer for field in self.own}
        runs_again = outer.runs_again or outer.is_inner
        self.results = [_Result(one, self.trace, runs_again=runs_again) for one in (value, *found)]
        self.found = [np.array(plain_array(one)) for one in (value, *found)]
        made = {one.field.buffer for one in self.results if one.field is not None}
        effects.loaded -= own
        effects.written -= own
        given = self.given
        others = made if given.buffer is None else {*made, given.buffer}
        effects.loaded |= others - made
        if given.numbers is not None:
            taken.update(given.numbers.ravel().tolist())
        custom = Custom(
            inner.name,
            inner.span,
            self._pull,
            loaded=effects.loaded,
            written=effects.written | made,
            fully_overwritten=(effects.filled & effects.written) - own | made,
            gradient_tasks=tuple([task for event in journal.records for task in event.gradient_tasks]),
            release=self._release,
            sources=frozenset(taken - {0}),
            kept_bytes=effects.start.nbytes,
            made=frozenset(made),
            again=self._run_again,
            gradients=frozenset([*self.gradients, *[one.adjoint for one in others if one.adjoint is not None]]),
        )
        outer.custom(custom)
        value_given, *others = [one.given for one in self.results]
        return value_given, others

    def _first(self, trace: Trace) -> tuple[Any, list[Any], Journal, set[int]]:
        inner, task = self.inner, self.inner.task
        self.given = _seed(inner, self.trace)
        journal = Journal(trace=trace)
        journal.is_inner = True
        journal.opened_within = self.outer.opened_notes()
        journal.from_python = []
        with ShadowsBefore() as before:
            journal.leave_shadows(before)
            try:
                bound = self._bound(journal, duals=False)
                run = recorded_from(task, bound, journal, self.kwargs)
                taken = set(trace.taken_in)
                (result,) = run.results
                refuse_written(bound, inner)
                value = _single(inner, _now(result))
                journal.begin_sweep(_gradients(run))
                sweep = journal.sweep()
                seed = self.given.array
                if isinstance(result, Field):
                    accumulate(result.grad.buffer, seed)
                else:
                    sweep.seed(result, seed.item())
                sweep.run()
                found = [one.gradient(sweep) for one in bound.inputs]
                self.gradients = _gradients(run) | journal.shadows
            finally:
                journal.forget()
        return value, found, journal, taken | self.sources

    def _bound(self, journal: Journal, *, duals: bool, repeats: bool = False) -> Bound:
        journal.starts_as_used()
        args = self.start.args if repeats else self.inner.args
        bound = self.inner.task.bound(args, journal.trace, duals=duals, repeats=repeats)
        #: the proxies for NumPy arrays
        self.own = [one.stand_in for one in bound.inputs if one.stand_in is not None]
        chosen = [args[k] for k in self.inner.task.argnums]
        self._numbers = [
            (one, value.number)
            for one, value in zip(bound.inputs, chosen, strict=False)
            if type(value) is Traced and self.trace.is_active(value)
        ]
        self.sources = {number for _, number in self._numbers}
        return bound

    def _release(self) -> None:
        self.effects.start = MemoryCopies()
        if not self.outer.runs_again:
            self.results = []  # which refer to each other, and to arrays

    def _run_again(self, journal: Journal, of: NumberOf) -> dict[int, Any]:
        """Repeat it in another recording."""
        places = [(one.number or 0, one.field) for one in self.results]
        return self.start.again(self._inside, places, journal, of)

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record."""
        if sweep.gradients.has_tangents:
            refuse_nesting(self.inner.task.what, self.outer, "third derivatives are not computed")
        value_adjoint, *adjoints = [one.adjoint(sweep) for one in self.results]
        give_gradients_duals()
        for buffer in self.effects.written:
            sweep.overwriting(buffer)
        symmetry: Symmetry | None = None
        sources: _Sources | None = None
        with self._again() as (bound, runs):
            bound.point(adjoints)
            run = runs()
            value, tangent = _written_at_last(run.results[0])
            self._compare(value, 0)
            customs = custom_calls(run.journal.events)
            if is_to_be_tried(customs, adjoints):
                symmetry = Symmetry(customs, adjoints)
                sources = self._look(symmetry, run)
            self._sweep(sweep, run, value_adjoint, tangent)
        if symmetry is not None and sources is not None:
            self._require(symmetry, sources)

    @contextmanager
    def _again(self) -> Iterator[tuple[Bound, Callable[[], Run]]]:
        """A block in which f runs again; yields its inputs and the runner."""
        effects = self.effects
        effects.start.put_back()
        launches = session.launches
        journal = SecondOrder(trace=Trace(outer=self.trace, family=self.family))
        journal.opened_within = self.outer.opened_notes()
        journal.from_python = []

        def runs() -> Run:
            with self.start.cells.again():
                run = recorded_from(self.inner.task, bound, journal, self.kwargs)
            if _signature(journal) != self.signature or not self._takes_the_same(journal.from_python or []):
                refuse_other(self.inner)
            return run

        try:
            session.launches = self.start.launches  # the same draws
            with duals_apart(effects.loaded | effects.written):
                bound = self._bound(journal, duals=True, repeats=True)
                yield bound, runs
        finally:
            journal.forget()
            session.launches = launches

    # ---- where functions have gradients of their own

    def _look(self, symmetry: Symmetry, run: Run) -> _Sources:
        """Check the result of a sweep through the run along the weights.

        Returns the gradient's dependencies besides the inputs.
        """
        given = self.given
        inputs = {one.field.buffer for one in run.bound.inputs if one.field is not None}
        fields = have_gradients(self.effects.loaded - inputs)
        outside = run.journal.trace.taken_in.keys() - self.sources
        known: dict[int, list[Traced]] = {number: [] for number in sorted(outside)}
        for one in [*[one for one in self.start.args if type(one) is Traced], *self.start.cells.numbers]:
            if one.number in known:
                known[one.number].append(one)
        if not all(known.values()):
            first = symmetry.customs[0]
            raise DifferentiationError(
                f"{self.inner.name} calls '{first.name}', which has a custom gradient, and uses a number from outside "
                "that is differentiated and is neither an argument nor a local variable around",
                self.inner.span,
                hint="pass the number as an argument",
                notes=[Note(f"'{first.name}' is called", first.span), *self.outer.opened_notes()],
            )
        with self._swept_apart(run, given.array, np.zeros(given.array.shape)) as sweep:
            found = [one.second(sweep) for one in run.bound.inputs]
            found += [sweep.adjoints.get(number, _ZERO).tangent for number in known]
            if given.is_differentiated:
                found.append(_written_at_last(run.results[0])[1])
            found += tangents_of_gradients(fields)
        symmetry.found = found
        return _Sources([one.shape for one in run.bound.inputs], known, fields)

    def _require(self, symmetry: Symmetry, sources: _Sources) -> None:
        """Run along another direction, and compare."""
        given = self.given
        directions = [symmetry.direction(np.zeros(shape)) for shape in sources.inputs]
        moves = {number: symmetry.direction(0.0).item() for number in sources.numbers}
        along = symmetry.direction(given.array) if given.is_differentiated else np.zeros(given.array.shape)
        moved_numbers = [one for those in sources.numbers.values() for one in those]
        with self._again() as (bound, runs), _moving(moved_numbers, moves):
            for buffer in sources.fields:
                assert buffer.tangent is not None
                numbers(buffer.tangent)[...] = symmetry.direction(numbers(buffer))
            bound.point(directions)
            run = runs()
            with self._swept_apart(run, given.array, along) as sweep:
                moved = [one.second(sweep) for one in run.bound.inputs]
        symmetry.require(moved, Note("this is the inner derivative", self.inner.span), self.outer.opened_notes())

    @contextmanager
    def _swept_apart(self, run: Run, seed: Array, tangent: Array) -> Iterator[Sweep]:
        """A block with the gradients and tangents that a sweep leaves."""
        touched = _gradients(run)
        kept = MemoryCopies(
            [memory_of(one) for gradient in touched for one in (gradient, gradient.tangent) if one is not None]
        )
        launches = session.launches
        try:
            yield _swept(run, touched, seed, tangent)
        finally:
            session.launches = launches
            unwinding(kept.put_back)

    def _takes_the_same(self, again: list[Taken]) -> bool:
        return len(again) == len(self.taken) and all(a.agrees(b) for a, b in zip(again, self.taken, strict=True))

    def _compare(self, again: Any, position: int) -> None:
        before = self.found[position]
        if not agree(np.reshape(plain_array(again), before.shape), before):
            refuse_other(self.inner)

    def _sweep(self, outer: CustomSweep, run: Run, value_adjoint: Array, tangent: Array) -> None:
        """Through the run, with adjoints of later operations as tangents of adjoints; and to the seed."""
        touched = _gradients(run) | self.gradients
        for gradient in touched:
            if gradient.tangent is None:
                refuse_nesting(self.inner.task.what, self.outer, f"'{gradient.name}' has no dual")
            hold(gradient.tangent, held_now(gradient))
            memory_of(gradient).clear()
        second = run.journal.sweep()
        _start(run, second, self.given.array, value_adjoint)
        second.run()
        values = [as_array(one.gradient(second)) for one in run.bound.inputs]
        for k, one in enumerate(values):
            self._compare(one, k + 1)
        for gradient in touched:
            assert gradient.tangent is not None
            hold(gradient, held_now(gradient.tangent))
        for one, number in self._numbers:
            add_adjoint(outer, number, one.second(second))
        for number in run.journal.trace.taken_in:
            add_adjoint(outer, number, second.adjoints.pop(number, _ZERO).tangent)
        self.given.add(outer, tangent)


@contextmanager
def duals_apart(buffers: Iterable[Buffer] | None) -> Iterator[None]:
    """A block with its own duals, initially zero: those of these buffers, by default of all fields, and of their
    gradients.
    """
    duals = list(own_duals()) if buffers is None else duals_of(buffers)
    owners = claim(duals)
    kept = MemoryCopies(map(memory_of, duals))
    for dual in duals:
        memory_of(dual).clear()
    try:
        yield
    finally:
        unwinding(kept.put_back)
        if owners:
            give_back(owners)


def duals_of(buffers: Iterable[Buffer]) -> list[Buffer]:
    """The duals of these buffers and of their gradients."""
    found = [one for b in buffers for one in (b.tangent, None if b.adjoint is None else b.adjoint.tangent)]
    return [one for one in found if one is not None]


# ---- forward mode around


def pushed_within(outer: ForwardMode, inner: Inner) -> tuple[Any, list[Any]]:
    """An inner gradient with its tangents along the direction of the block around it."""
    task = inner.task
    temporary_duals = outer.nesting()
    journal = SecondOrder(trace=inner_trace(outer))
    journal.opened_within = outer.opened_notes()
    journal.take_tangents(outer, temporary_duals, inner.span)
    journal.starts_as_used()
    bound = task.bound(inner.args, journal.trace, duals=True)
    for position, one in zip(task.argnums, bound.inputs, strict=False):
        given = inner.args[position]
        if one.number is not None and type(given) is Traced and outer.trace.is_active(given):
            one.number.tangent = given.tangent
    with ShadowsBefore() as before:
        journal.leave_shadows(before)
        try:
            run = recorded_from(task, bound, journal, inner.kwargs)
            refuse_written(bound, inner)
            value, tangent = [_single(inner, one) for one in _written_at_last(run.results[0])]
            touched = _gradients(run)
            seed = _seed(inner, outer.trace)
            sweep = _swept(run, touched, seed.array, seed.tangent)
            found = [(one.gradient(sweep), one.second(sweep)) for one in bound.inputs]
        finally:
            journal.forget()
    given, *others = [_Result(a, outer.trace, b).given for a, b in ((value, tangent), *found)]
    return given, others


def _swept(run: Run, touched: Iterable[Buffer], seed: Array, tangent: Array) -> Sweep:
    """A second-order sweep from this seed."""
    run.journal.begin_sweep(touched)
    sweep = run.journal.sweep()
    _start(run, sweep, seed, tangent)
    sweep.run()
    return sweep
