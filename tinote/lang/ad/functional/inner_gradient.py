"""A gradient inside of another derivative, at any depth: one record of the recording around.

    def best(x):                                    # minimises over y by steps along a gradient
        y = 0.0
        for _ in range(20):
            y = y - 0.1 * ti.ad.grad(height, argnums=1)(x, y)
        return height(x, y)

    ti.ad.grad(best)(2.0)                           # differentiates these steps

Let F be the number that f gives, and g its gradient. The recording at the outside may be in reverse or in forward mode,
and carry tangents; around g there may be blocks of pushforwards (`pushed_mode.py`), whose numbers and fields have
several parts: x and x' for one, x, x', x* and x'* for two. The gradient has such parts too, and they are gradients of
the last part of F: with one block, dF'/dx' is the gradient of f, and dF'/dx its tangent along x'. So one sweep through
the pushforward of f, which starts at the last part, gives all of them: the adjoint of a part of x is the part of the
gradient with the other marks. Where the recording at the outside carries tangents, the sweep does so as well.

Where that recording is swept, let w be the adjoint of g. It is propagated as that of the number w · g, which is the
tangent of F along w, since the order of derivatives does not matter (Schwarz's theorem, for continuous second
derivatives). So f runs again along w as the direction, and a sweep through that gives the adjoints of the inputs. The
direction is in the duals of fields, if these are free, and the sweep carries tangents: it starts with the seed of g,
which has as tangent the adjoint of F. Otherwise it is that of one more block of pushforwards.

The levels are separate: numbers of the inner recording belong to their own trace, inner gradients replace the outer
ones in memory only during the inner sweep, and no launch has tangents of two levels.

Method: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 5.1; on keeping perturbations of
different derivatives apart: Siskind and Pearlmutter, "Nesting forward-mode AD in a functional framework", 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inner import (
    Inner,
    InnerStart,
    Inside,
    agree,
    changed_gradients_of,
    duals_apart,
    give_second_duals,
    refuse_nesting,
    refuse_other,
    refuse_written,
    swept_apart,
)
from tinote.lang.ad.functional.inputs import Array, Bound, number_or_array, shape_of
from tinote.lang.ad.functional.pushed_mode import (
    PushedMode,
    base_of,
    fields_of,
    lifts_of,
    next_depth,
    number_of,
    parts_of,
    tangent_fields_beyond,
)
from tinote.lang.ad.functional.runs import Run, recorded_from
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
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import living_buffers
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.touched_gradients import give_gradients_duals
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import accumulate, as_array, held_now, hold, items_of, plain_array
from tinote.lang.data.captured_arrays import single_number
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import stand_in
from tinote.lang.data.traced import Traced, arranged, constants, holds_traced, stored
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.session.state import Recorder, memory_of, session
from tinote.runtime.memory import Memory, MemoryCopies
from tinote.runtime.seam import unwinding

_ZERO = Dual(0.0)


class _Part:
    """A part of a result, an input or a seed in the recording at the outside, with its tangent: a number (`numbers` is
    its own, 0 for a constant), several of such (an array), or what is in a field.
    """

    def __init__(self, value: Any, tangent: Any = None, numbers: Any = 0, field: Field | None = None) -> None:
        self.value = value
        self.tangent = tangent
        self.numbers = numbers
        self.field = field

    @property
    def dual(self) -> Dual:
        """A number with its tangent."""
        return Dual(single_number(self.value), 0.0 if self.tangent is None else single_number(self.tangent))

    @property
    def is_differentiated(self) -> bool:
        """Whether it has a derivative of its own."""
        return self.field is not None or bool(np.any(self.numbers))

    def adjoint(self, sweep: CustomSweep, *, carries: bool) -> _Part:
        """Its adjoint, which becomes zero. `carries`: with the tangent of that."""
        if self.field is None:
            found = sweep.adjoints.pop(self.numbers, _ZERO)
            return _Part(found.value, found.tangent)
        gradient = self.field.grad
        found = _Part(held_now(gradient.buffer), held_now(gradient.dual.buffer) if carries else None)
        for one in (gradient, gradient.dual) if carries else (gradient,):
            memory_of(one.buffer).clear()
        return found

    def add_adjoint(self, sweep: CustomSweep, adjoint: _Part) -> None:
        """Accumulate its adjoint."""
        if self.field is not None:
            _accumulate(self.field.grad, adjoint)
        elif np.any(self.numbers):
            values = items_of(as_array(adjoint.value))
            tangents = [0.0] * len(values) if adjoint.tangent is None else items_of(as_array(adjoint.tangent))
            for number, value, tangent in zip(np.ravel(self.numbers).tolist(), values, tangents, strict=True):
                sweep.add(number, Dual(value, tangent))


def _accumulate(shadow: Field, amount: _Part) -> None:
    """Add to what a gradient holds, and its dual."""
    accumulate(shadow.buffer, as_array(amount.value))
    if amount.tangent is not None:
        accumulate(shadow.dual.buffer, as_array(amount.tangent))


def _start(sweep: Sweep, result: Any, adjoint: _Part) -> None:
    """Add to the adjoint of a part of the result."""
    if isinstance(result, Field):
        _accumulate(result.grad, adjoint)
    elif type(result) is Traced and result.number:
        sweep.add(result.number, adjoint.dual)


def _tangent_of(result: Any) -> Array:
    """That of the result of f."""
    return held_now(result.dual.buffer) if isinstance(result, Field) else as_array(result.tangent)


class _Sources(NamedTuple):
    """The dependencies of a gradient: inputs, of these shapes, numbers from outside, and fields."""

    inputs: list[tuple[int, ...]]
    numbers: dict[int, list[Traced]]
    fields: list[Buffer]


def gradient_within(
    outer: Recorder, inner: Inner, inside: Inside | None = None, *, is_part: bool = False
) -> tuple[Any, list[Any]]:
    """The value and the gradients of an inner derivative in reverse mode, as parts of the recording around it.
    `inside`: runs it in any recording; `is_part`: whether it is a part of a derivative that runs again as a whole.
    """
    has_duals = isinstance(outer, Journal) and not outer.derivative.has_tangents
    return (_AlongDuals if has_duals else _InnerGradient)(outer, inner, inside, is_part).run()


class _InnerGradient:
    """The gradient `inner` as a part of the recording `outer`. `lifts`: the blocks of pushforwards around it; `base`:
    the recording at the outside, which may carry tangents.
    """

    #: whether the duals of fields are free for the direction along which it is differentiated
    has_duals = False

    def __init__(self, outer: Recorder, inner: Inner, inside: Inside | None, is_part: bool) -> None:
        self.outer = outer
        self.inner = inner
        self._inside = inside
        self._is_part = is_part
        self.lifts = lifts_of(outer)
        self.base = base = base_of(outer)
        self.recording = base if isinstance(base, Journal) else None
        self.carries = base.derivative.has_tangents if isinstance(base, Journal) else isinstance(base, ForwardMode)
        if self.recording is not None:  # which differentiates it
            self.start = InnerStart(inner)
            self.effects = Effects(keeps=True, keeps_duals=not self.has_duals)

    def _number(self, one: Any) -> _Part:
        """A number of the recording at the outside, or a constant."""
        if type(one) is not Traced:
            return _Part(one)
        return _Part(constants((one,))[0], one.tangent, one.number if self.base.trace.is_active(one) else 0)

    def _several(self, items: Sequence[Any], shape: tuple[int, ...]) -> _Part:
        """The same for an array of numbers."""
        parts = [self._number(one) for one in items]
        duals = [part.dual for part in parts]
        value = arranged([one.value for one in duals], shape)
        tangent = arranged([one.tangent for one in duals], shape) if self.carries else None
        return _Part(value, tangent, np.array([part.numbers for part in parts], np.int64).reshape(shape))

    def _held(self, field: Field, held: Callable[[Field], Any] = number_or_array) -> _Part:
        """What is in a field, and its tangents."""
        return _Part(held(field), held(field.dual) if self.carries and field.has_dual else None)

    # ---- recording

    def run(self) -> tuple[Any, list[Any]]:
        """The value and the gradients, as parts of the recording around."""
        recording = self.recording
        with nullcontext() if recording is None else self.effects.listening():
            journal = self._journal()
            self.results, self.gradients, taken = self._first(journal)
        made: list[Field] = []
        value, *others = [self._result(parts, made) for parts in (self.results, *self.gradients)]
        if recording is not None:
            self._add(recording, journal, made, taken)
        return value, others

    def _add(self, outer: Journal, journal: Journal, made: list[Field], taken: set[int]) -> None:
        """Add it as a record of the outermost recording."""
        effects = self.effects
        effects.read_by_python(journal)
        if self.has_duals:
            outer.took(self.inner.name, [*self.signature, *self.taken])
        effects.loaded -= self.own
        effects.written -= self.own
        seeds = [one.field for one in self.seeds if one.field is not None]
        effects.loaded |= {one.buffer for one in seeds}
        for one in (*self.seeds, *[part for parts in self.numbers for part in parts]):
            taken.update(np.ravel(one.numbers).tolist())
        for one in [part for parts in (self.results, *self.gradients) for part in parts]:
            one.value = np.array(plain_array(one.value))  # to be compared
        buffers = {one.buffer for one in made}
        again = None if self.lifts else self._run_again
        outer.custom(
            Custom(
                self.inner.name,
                self.inner.span,
                self._pull,
                loaded=effects.loaded,
                written=effects.written | buffers,
                fully_overwritten=(effects.filled & effects.written) - self.own | buffers,
                gradient_tasks=tuple([task for event in journal.records for task in event.gradient_tasks]),
                release=self._release,
                sources=frozenset(taken - {0}),
                kept_bytes=effects.start.nbytes,
                made=frozenset(buffers),
                carries_tangents=not self.has_duals,
                gradients=(
                    frozenset([*self.touched, *[one.grad.buffer for one in (*made, *seeds)]])
                    if self.has_duals
                    else None
                ),
                again=self._refuse_again if self._is_part else again,
            )
        )

    def _refuse_again(self, journal: Journal, of: NumberOf) -> NoReturn:
        refuse_nesting(self.inner.task.what, journal, "a part of it cannot be run again")

    def _run_again(self, journal: Journal, of: NumberOf) -> dict[int, Any]:
        """Repeat it in another recording."""
        assert self._inside is not None
        places = [(int(part.numbers), part.field) for part, *_ in (self.results, *self.gradients)]
        return self.start.again(self._inside, places, journal, of)

    def _release(self) -> None:
        self.effects.start = MemoryCopies()
        assert self.recording is not None
        if not self.recording.runs_again:
            self.results, self.gradients = [], []  # which refer to each other, and to arrays

    def _result(self, parts: list[_Part], made: list[Field]) -> Any:
        """A result, as a number or an array of the recording around it, from its parts."""
        if not np.shape(parts[0].value):
            found = [self.base.trace.new(dual.value, dual.tangent) for dual in [one.dual for one in parts]]
            for one, number in zip(parts, found, strict=True):
                one.numbers = number.number
            given = number_of(found, self.lifts)
        else:
            outer = self.recording
            has_dual = not self.has_duals or (outer is not None and (outer.runs_again or outer.is_inner))
            given = stand_in(parts[0].value, needs_dual=has_dual)
            if has_dual and (outer is not None or self.lifts):
                given.grad.ensure_dual()
            for one, field in zip(parts, fields_of(given, self.lifts), strict=True):
                one.field = field
                if field is not given:
                    hold(field.buffer, one.value)
                if one.tangent is not None:
                    hold(field.dual.buffer, one.tangent)
                made.append(field)
        return given

    def _journal(self, *, again: bool = False) -> Journal:
        """A recording for it. `again`: for its own derivative."""
        base = self.base
        journal = Journal(trace=self.outer.trace.inner(), tangents=self.carries or (self.has_duals and again))
        journal.is_inner = True
        journal.takes_custom = self.has_duals or isinstance(base, ForwardMode)
        journal.opened_within = self.outer.opened_notes()
        if isinstance(base, ForwardMode):
            journal.take_tangents(base, base.nesting(), self.inner.span)
        elif self.has_duals:
            journal.from_python = []
        else:
            give_gradients_duals()
            if isinstance(base, Journal) and self.carries:
                journal.take_tangents(base, base.tangents or {}, self.inner.span)
        journal.starts_from(living_buffers())
        return journal

    def _blocks(self, journal: Journal) -> list[PushedMode]:
        """The same blocks of pushforwards, in this journal."""
        found: list[PushedMode] = []
        below: Recorder = journal
        for one in self.lifts:
            below = PushedMode(below, one.depth, one.opened or self.inner.span, one)
            found.append(below)
        return found

    def _bound(self, journal: Journal, blocks: Sequence[PushedMode], *, again: bool) -> Bound:
        """The inputs of a run of f. The numbers among them get parts in `journal`."""
        task, duals = self.inner.task, again or not self.has_duals
        args = self.start.args if again else self.inner.args
        bound = task.bound(args, (blocks[-1] if blocks else journal).trace, duals=duals, repeats=again)
        if duals:
            give_second_duals(bound)
        #: the proxies for NumPy arrays
        self.own = {one.stand_in.buffer for one in bound.inputs if one.stand_in is not None}
        if not again:
            given = [args[position] for position in task.argnums]
            self.numbers = [
                [] if one.number is None else [self._number(part) for part in parts_of(given[k], self.lifts)]
                for k, one in enumerate(bound.inputs)
            ]
        self.inputs: list[list[Traced]] = []
        for one, parts in zip(bound.inputs, self.numbers, strict=True):
            made = [journal.trace.new(dual.value, dual.tangent) for dual in [part.dual for part in parts]]
            self.inputs.append(made)
            if one.number is not None:
                self._give(one.number, made, blocks)
        return bound

    def _give(self, number: Traced, made: Sequence[Traced], blocks: Sequence[PushedMode]) -> None:
        own = blocks[: len(self.lifts)]
        if not blocks:
            number.number, number.tangent = made[0].number, made[0].tangent
        elif len(blocks) == len(own):  # else its tangent is that of the further block
            half = len(made) // 2
            blocks[-1].give(number, number_of(made[:half], own[:-1]), number_of(made[half:], own[:-1]))

    def _run(self, journal: Journal, bound: Bound, blocks: Sequence[PushedMode]) -> Run:
        """Run f. The results are parts of its result: numbers and plain floats, or fields."""
        for one in bound.inputs:
            if one.field is not None:
                journal.starts_from([part.buffer for part in fields_of(one.field, blocks)])

        def parts(result: Any) -> list[Any]:
            return fields_of(result, blocks) if isinstance(result, Field) else parts_of(result, blocks)

        top = blocks[-1] if blocks else None
        run = recorded_from(self.inner.task, bound, journal, self.inner.kwargs, top=top, parts=parts)
        refuse_written(bound, self.inner)
        return run

    def _first(self, journal: Journal) -> tuple[list[_Part], list[list[_Part]], set[int]]:
        blocks = self._blocks(journal)
        self.seeds = self._seeds()
        with ShadowsBefore() as before:
            journal.leave_shadows(before)
            try:
                run = self._run(journal, self._bound(journal, blocks, again=False), blocks)
                taken = set(journal.trace.taken_in)
                values = [self._value(one) for one in run.results]
                touched = self._gradients_touched(run, blocks)
                journal.begin_sweep(touched)
                sweep = journal.sweep()
                for result, seed in zip(run.results, reversed(self.seeds), strict=True):
                    _start(sweep, result, seed)
                sweep.run()
                gradients = [self._gradient(k, run.bound, sweep, blocks) for k in range(len(run.bound.inputs))]
                if self.recording is not None:  # which differentiates it
                    self.signature, self.taken = self._signature(journal), journal.from_python or []
                    self.touched = touched | journal.shadows
            finally:
                for block in blocks:
                    block.forget()
                journal.forget()
        return values, gradients, taken

    def _gradients_touched(self, run: Run, blocks: Sequence[PushedMode]) -> set[Buffer]:
        """The gradients that a sweep touches."""
        inputs = [one.field for one in run.bound.inputs if one.field is not None]
        fields = [part for field in inputs for part in fields_of(field, blocks)]
        return changed_gradients_of(run.journal, [*fields, *[one for one in run.results if isinstance(one, Field)]])

    def _value(self, one: Any) -> _Part:
        """A part of the value."""
        if not isinstance(one, Field):
            return _Part(constants((one,))[0], one.tangent if type(one) is Traced else 0.0)
        found = self._held(one)
        if self.inner.seed is None and isinstance(found.value, np.ndarray):  # of a single number
            found.value = found.value.reshape(())
            found.tangent = None if found.tangent is None else found.tangent.reshape(())
        return found

    def _gradient(self, position: int, bound: Bound, sweep: Sweep, blocks: Sequence[PushedMode]) -> list[_Part]:
        """The parts of the gradient of an input: the adjoints of its parts, the last first."""
        one = bound.inputs[position]
        if one.field is None:
            adjoints = [sweep.adjoint(part) for part in self.inputs[position]]
            found = [_Part(adjoint.value, adjoint.tangent) for adjoint in adjoints]
        else:
            shadows = [part.grad for part in fields_of(one.field, blocks)]
            found = [self._held(grad, one.held) for grad in shadows]
        return found[::-1]

    def _seeds(self) -> list[_Part]:
        """The parts of the seed."""
        task, given = self.inner.task, self.inner.seed
        shape = () if task.loss is None else shape_of(task.loss)

        def checked(seed: Any) -> Array:
            return seed_array(seed, shape, "", "the result")

        if isinstance(given, Field):
            if not given.has_grad:
                raise DifferentiationError(
                    f"the seed '{given.name}' has no gradient", self.inner.span, hint="make it with needs_grad=True"
                )
            fields = fields_of(given, self.lifts)
            found = [self._held(field, lambda one: checked(number_or_array(one))) for field in fields]
            for one, field in zip(found, fields, strict=True):
                one.field = field
            return found
        if holds_traced(given):
            items = as_array(given) if type(given) is Traced else np.asarray(given, object)
            several = zip(*[parts_of(one, self.lifts) for one in items.ravel().tolist()], strict=True)
            found = [self._several(parts, items.shape) for parts in several]
            for one in found:
                one.value = checked(one.value[()])
            return found
        first = np.ones(shape) if given is None else checked(given)
        return [_Part(first), *[_Part(np.zeros(shape)) for _ in range((1 << len(self.lifts)) - 1)]]

    # ---- its own derivative

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record: that of the number that is its gradient times the adjoints of that."""
        outer, effects = self.recording, self.effects
        assert outer is not None
        if self.has_duals and sweep.gradients.has_tangents:
            refuse_nesting(self.inner.task.what, self.outer, "third derivatives are not computed")
        temporary = [b for b in outer.tangents or () if b in effects.loaded | effects.written]
        if temporary:
            refuse_nesting(self.inner.task.what, outer, f"'{temporary[0].name}', which it uses, has no gradient")
        adjoints = [
            [one.adjoint(sweep, carries=self.carries) for one in parts] for parts in (self.results, *self.gradients)
        ]
        give_gradients_duals()
        for buffer in effects.written:
            sweep.overwriting(buffer)
        self._pull_along(sweep, adjoints[0], adjoints[1:])

    @contextmanager
    def _again(
        self, journal: Journal, blocks: Sequence[PushedMode], apart: AbstractContextManager[None]
    ) -> Iterator[tuple[Bound, Callable[[], Run]]]:
        """A block in which f runs again; yields its inputs and the runner. `apart`: a block in which the memory for its
        direction is free.
        """
        launches = session.launches

        def runs() -> Run:
            with self.start.cells.again():
                run = self._run(journal, bound, blocks)
            self._require_same(run)
            return run

        try:
            with apart:
                self.effects.start.put_back()
                session.launches = self.start.launches  # the same draws
                bound = self._bound(journal, blocks, again=True)
                yield bound, runs
        finally:
            for block in blocks:
                block.forget()
            journal.forget()
            session.launches = launches

    def _signature(self, journal: Journal) -> list[Any]:
        """What a run has done, and must do again. One more block of pushforwards computes with further numbers."""
        if self.has_duals:
            return _signature(journal)
        return [event.instance.kernel_name for event in journal.records if isinstance(event, RecordedLaunch)]

    def _require_same(self, run: Run) -> None:
        """Raise unless a run has done the same as the first one."""
        taken = run.journal.from_python or []
        if self._signature(run.journal) != self.signature or len(taken) != len(self.taken):
            refuse_other(self.inner)
        if not all(now.agrees(before) for now, before in zip(taken, self.taken, strict=True)):
            refuse_other(self.inner)
        for result, part in zip(run.results, self.results, strict=False):
            self._compare(self._value(result).value, part)

    def _compare(self, again: Any, before: _Part) -> None:
        if not agree(np.reshape(plain_array(again), np.shape(before.value)), before.value):
            refuse_other(self.inner)

    def _pull_along(self, outer: CustomSweep, value_adjoints: list[_Part], adjoints: list[list[_Part]]) -> None:
        journal, depth = self._journal(again=True), next_depth(self.outer)
        blocks = self._blocks(journal)
        top = PushedMode(blocks[-1] if blocks else journal, depth, self.inner.span)
        blocks.append(top)
        with self._again(journal, blocks, _tangent_fields_apart(depth, self.effects.written)) as (bound, runs):
            self._point(bound, journal, blocks, adjoints)
            run = runs()
            half = len(run.results) // 2
            sweep = journal.sweep()
            for result, adjoint in zip(run.results, [*value_adjoints, *reversed(self.seeds)], strict=True):
                _start(sweep, result, adjoint)
            products = [self._value(one) for one in run.results[half:]]
            sweep.run()
            for made, parts in zip(self.inputs, self.numbers, strict=True):
                for number, part in zip(made, parts, strict=True):
                    outer.add(int(part.numbers), sweep.adjoint(number))
            for number in journal.trace.taken_in:
                if (found := sweep.adjoints.pop(number, None)) is not None:
                    outer.add(number, found)
            for part, product in zip(reversed(self.seeds), products, strict=True):
                part.add_adjoint(outer, product)

    def _point(self, bound: Bound, journal: Journal, blocks: list[PushedMode], adjoints: list[list[_Part]]) -> None:
        """The tangents of the last block are the adjoints of the gradient, the last first."""
        top = blocks[-1]
        for one, made, given in zip(bound.inputs, self.inputs, adjoints, strict=True):
            directions = given[::-1]
            if one.number is not None:
                along = [journal.trace.new(part.dual.value, part.dual.tangent) for part in directions]
                top.give(one.number, number_of(made, blocks[:-1]), number_of(along, blocks[:-1]))
                continue
            assert one.field is not None
            tangents = top.tangent_field(one.field)
            assert tangents is not None
            for own, part in zip(fields_of(tangents, blocks[:-1]), directions, strict=True):
                hold(own.buffer, part.value)
                if part.tangent is not None:
                    hold(own.dual.buffer, part.tangent)


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


@contextmanager
def _tangent_fields_apart(depth: int, written: Iterable[Buffer]) -> Iterator[None]:
    """A block with tangents of this depth, and of greater ones, of its own, initially zero, and with the duals of what
    it has written.
    """
    kept = MemoryCopies([memory_of(one.tangent) for one in written if one.tangent is not None])

    def memories() -> list[Memory]:
        fields = tangent_fields_beyond(depth - 1)
        return [one.memory for field in fields for one in (field, field.dual, field.grad, field.grad.dual)]

    for memory in memories():
        kept.add(memory)
        memory.clear()
    try:
        yield
    finally:
        for memory in memories():
            memory.clear()
        unwinding(kept.put_back)


class _AlongDuals(_InnerGradient):
    """The same directly inside of a recording without tangents: the duals of fields are free for the direction along
    which it is differentiated.
    """

    has_duals = True

    def _pull_along(self, outer: CustomSweep, value_adjoints: list[_Part], adjoints: list[list[_Part]]) -> None:
        directions = [as_array(one.value) for (one,) in adjoints]
        symmetry: Symmetry | None = None
        sources: _Sources | None = None
        with self._again_along_duals() as (bound, runs):
            bound.point(directions)
            run = runs()
            tangent = _tangent_of(run.results[0])
            customs = custom_calls(run.journal.events)
            if is_to_be_tried(customs, directions):
                symmetry = Symmetry(customs, directions)
                sources = self._look(symmetry, run)
            self._sweep(outer, run, value_adjoints[0].value, tangent)
        if symmetry is not None and sources is not None:
            self._require(symmetry, sources)

    def _again_along_duals(self) -> AbstractContextManager[tuple[Bound, Callable[[], Run]]]:
        return self._again(self._journal(again=True), (), duals_apart(self.effects.loaded | self.effects.written))

    def _sweep(self, outer: CustomSweep, run: Run, value_adjoint: Array, tangent: Array) -> None:
        """Through the run, with adjoints of later operations as tangents of adjoints; and to the seed."""
        before = {one for one in self.touched if one.tangent is not None}  # else of an array that the first run made
        touched = self._gradients_touched(run, ()) | before
        for gradient in touched:
            if gradient.tangent is None:
                refuse_nesting(self.inner.task.what, self.outer, f"'{gradient.name}' has no dual")
            hold(gradient.tangent, held_now(gradient))
            memory_of(gradient).clear()
        second = run.journal.sweep()
        (result,) = run.results
        (seed,) = self.seeds
        _start(second, result, _Part(seed.value, value_adjoint))
        second.run()
        for one, (before,) in zip(run.bound.inputs, self.gradients, strict=True):
            self._compare(as_array(one.gradient(second)), before)
        for gradient in touched:
            assert gradient.tangent is not None
            hold(gradient, held_now(gradient.tangent))
        for one, parts in zip(run.bound.inputs, self.numbers, strict=True):
            for part in parts:
                outer.add(int(part.numbers), Dual(one.second(second)))
        for number in run.journal.trace.taken_in:
            outer.add(number, Dual(second.adjoints.pop(number, _ZERO).tangent))
        seed.add_adjoint(outer, _Part(tangent))

    # ---- where functions have gradients of their own

    def _look(self, symmetry: Symmetry, run: Run) -> _Sources:
        """Check the result of a sweep through the run along the weights.

        Returns the gradient's dependencies besides the inputs.
        """
        (seed,) = self.seeds
        inputs = {one.field.buffer for one in run.bound.inputs if one.field is not None}
        fields = have_gradients(self.effects.loaded - inputs)
        sources = {int(part.numbers) for parts in self.numbers for part in parts}
        outside = run.journal.trace.taken_in.keys() - sources
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
        with self._swept_apart(run, _Part(seed.value)) as sweep:
            found = [one.second(sweep) for one in run.bound.inputs]
            found += [sweep.adjoints.get(number, _ZERO).tangent for number in known]
            if seed.is_differentiated:
                found.append(_tangent_of(run.results[0]))
            found += tangents_of_gradients(fields)
        symmetry.found = found
        return _Sources([one.shape for one in run.bound.inputs], known, fields)

    def _require(self, symmetry: Symmetry, sources: _Sources) -> None:
        """Run along another direction, and compare."""
        (seed,) = self.seeds
        directions = [symmetry.direction(np.zeros(shape)) for shape in sources.inputs]
        moves = {number: symmetry.direction(0.0).item() for number in sources.numbers}
        along = symmetry.direction(seed.value) if seed.is_differentiated else None
        moved_numbers = [one for those in sources.numbers.values() for one in those]
        with self._again_along_duals() as (bound, runs), _moving(moved_numbers, moves):
            for buffer in sources.fields:
                assert buffer.tangent is not None
                numbers(buffer.tangent)[...] = symmetry.direction(numbers(buffer))
            bound.point(directions)
            run = runs()
            with self._swept_apart(run, _Part(seed.value, along)) as sweep:
                moved = [one.second(sweep) for one in run.bound.inputs]
        symmetry.require(moved, Note("this is the inner derivative", self.inner.span), self.outer.opened_notes())

    def _swept_apart(self, run: Run, seed: _Part) -> AbstractContextManager[Sweep]:
        """A sweep from the result."""
        touched = self._gradients_touched(run, ())
        return swept_apart(run.journal, touched, lambda sweep: _start(sweep, run.results[0], seed))
