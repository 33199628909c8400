"""Nested reverse mode: a gradient inside another derivative, at any depth, is one record of the enclosing recording.

    def best(x):                                    # minimises over y by steps along a gradient
        y = 0.0
        for _ in range(20):
            y = y - 0.1 * ti.ad.grad(height, argnums=1)(x, y)
        return height(x, y)

    ti.ad.grad(best)(2.0)                           # differentiates these steps

Let F be the number that f gives, and g its gradient. The recording at the outside may be in reverse or in forward mode,
and carry tangents; around g there may be forward layers (`forward.py`), whose numbers and fields have
several parts: x and x' for one, x, x', x* and x'* for two. The gradient has such parts too, and they are gradients of
the last part of F: with one block, dF'/dx' is the gradient of f, and dF'/dx its tangent along x'. So one sweep through
the pushforward of f, which starts at the last part, gives all of them: the adjoint of a part of x is the part of the
gradient with the other marks. Where the recording at the outside carries tangents, the sweep does so as well.

Where that recording is swept, let w be the adjoint of g. It is propagated as that of the number w · g, which is the
tangent of F along w, since the order of derivatives does not matter (Schwarz's theorem, for continuous second
derivatives). So what f has recorded is done once more in one more block of pushforwards, with w as the direction, and a
sweep through that gives the adjoints of the inputs. The code of f itself runs once: the recorded operations have all
parts of numbers and fields already (`runs.py`), and a recording in which they are done once more differentiates them
like any others.

The levels are separate: numbers of the inner recording belong to their own trace, inner gradients replace the outer
ones in memory only during the inner sweep, and no launch has tangents of two levels.

Method: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 5.1; on keeping perturbations of
different derivatives apart: Siskind and Pearlmutter, "Nesting forward-mode AD in a functional framework", 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward import Forward, fields_of, number_of, parts_of
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inner import (
    Inner,
    done_by,
    give_second_duals,
    refuse_nesting,
    refuse_written,
)
from tinote.lang.ad.functional.inputs import Array, Bound, DifferentiatedFunction, number_or_array
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.functional.runs import Emission, record, recorded_from
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.functional.tangent_fields import TangentFields
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, NumberOf
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.saved_values import living_buffers
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.touched_gradients import changed_gradients, give_gradients_duals
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.values import accumulate, as_array, held_now, hold, items_of
from tinote.lang.data.captured_arrays import single_number
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import stand_in
from tinote.lang.data.nests import map_leaves
from tinote.lang.data.traced import Trace, Traced, arranged, constants, holds_traced, objects
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.session.state import Recorder, memory_of, note_python_write, recorder, recording_as, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import unwinding
from tinote.source import Span


class GradientPart:
    """A part of a result, an input or a seed in the recording at the outside, with its tangent: a number (`numbers` is
    its own, 0 for a constant), several of such (an array), or what is in a field. `given`: what the program has for it.
    """

    def __init__(
        self, value: Any, tangent: Any = None, numbers: Any = 0, field: Field | None = None, given: Any = None
    ) -> None:
        self.value = value
        self.tangent = tangent
        self.numbers = numbers
        self.field = field
        self.given: Any = given if field is None else field

    @property
    def dual(self) -> Dual:
        """A number with its tangent."""
        return Dual(single_number(self.value), 0.0 if self.tangent is None else single_number(self.tangent))

    @property
    def is_differentiated(self) -> bool:
        """Whether it has a derivative of its own."""
        return self.field is not None or bool(np.any(self.numbers))

    def adjoint(self, sweep: CustomSweep, *, carries: bool) -> GradientPart:
        """Its adjoint, which becomes zero. `carries`: with the tangent of that."""
        if self.field is None:
            found = sweep.adjoints.take(self.numbers)
            return GradientPart(found.value, found.tangent)
        gradient = self.field.grad
        found = GradientPart(held_now(gradient.buffer), held_now(gradient.dual.buffer) if carries else None)
        for one in (gradient, gradient.dual) if carries else (gradient,):
            memory_of(one.buffer).clear()
        return found

    def add_adjoint(self, sweep: CustomSweep, adjoint: GradientPart) -> None:
        """Accumulate its adjoint."""
        if self.field is not None:
            _accumulate(self.field.grad, adjoint)
        elif np.any(self.numbers):
            values = items_of(as_array(adjoint.value))
            tangents = [0.0] * len(values) if adjoint.tangent is None else items_of(as_array(adjoint.tangent))
            for number, value, tangent in zip(np.ravel(self.numbers).tolist(), values, tangents, strict=True):
                sweep.adjoints.add(number, Dual(value, tangent))


def _accumulate(shadow: Field, amount: GradientPart) -> None:
    """Add to what a gradient holds, and its dual."""
    accumulate(shadow.buffer, as_array(amount.value))
    if amount.tangent is not None and shadow.has_dual:  # numbers always have tangents
        accumulate(shadow.dual.buffer, as_array(amount.tangent))


def _start(sweep: Sweep, result: Any, adjoint: GradientPart) -> None:
    """Add to the adjoint of a part of the result."""
    if isinstance(result, Field):
        _accumulate(result.grad, adjoint)
    elif type(result) is Traced and result.number:
        sweep.adjoints.add(result.number, adjoint.dual)


def gradient_within(outer: Recorder, inner: Inner) -> tuple[Any, list[Any]]:
    """The value and the gradients of an inner derivative in reverse mode, as parts of the recording around it."""
    values, gradients = InnerGradient(outer, inner).run()
    return values[0], gradients


class InnerGradient:
    """The gradient `inner` as a part of the recording `outer`. `lifts`: the blocks of pushforwards around it; `base`:
    the recording at the outside, which may carry tangents.
    """

    def __init__(self, outer: Recorder, inner: Inner) -> None:
        self.outer = outer
        self.inner = inner
        self.lifts = outer.lifts
        self.base = base = outer.root
        self.recording = base if isinstance(base, Journal) else None
        self.carries = base.derivative.has_tangents if isinstance(base, Journal) else isinstance(base, ForwardMode)
        if self.recording is not None:  # which differentiates it
            self._effects = Effects(keeps=True, keeps_duals=self.carries)

    def _number(self, one: Any) -> GradientPart:
        """A number of the recording at the outside, or a constant."""
        if type(one) is not Traced:
            return GradientPart(one, given=one)
        number = one.number if self.base.trace.is_active(one) else 0
        return GradientPart(constants((one,))[0], one.tangent, number, given=one)

    def _several(self, items: Sequence[Any], shape: tuple[int, ...]) -> GradientPart:
        """The same for an array of numbers."""
        parts = [self._number(one) for one in items]
        duals = [part.dual for part in parts]
        value = arranged([one.value for one in duals], shape)
        tangent = arranged([one.tangent for one in duals], shape) if self.carries else None
        several = np.array([part.numbers for part in parts], np.int64).reshape(shape)
        return GradientPart(value, tangent, several, given=objects(items, shape))

    def _held(self, field: Field, held: Callable[[Field], Any] = number_or_array) -> GradientPart:
        """What is in a field, and its tangents."""
        return GradientPart(held(field), held(field.dual) if self.carries and field.has_dual else None)

    # ---- recording

    def run(self) -> tuple[list[Any], list[Any]]:
        """The values and the gradients, as parts of the recording around."""
        recording = self.recording
        with nullcontext() if recording is None else self._effects.listening():
            journal = self._journal(self.outer.trace)
            if recording is not None:
                if self.carries:
                    give_gradients_duals()  # arrays are launched with them
                journal.will_run_again()
            values, gradients = self._first(journal)
        made: list[Field] = []
        found = [self._result(parts, made) for parts in (*values, *gradients)]
        if recording is not None:
            self._add(recording, journal, [part for parts in values for part in parts], gradients, made)
        return found[: len(values)], found[len(values) :]

    def _first(self, journal: Journal) -> tuple[list[list[GradientPart]], list[list[GradientPart]]]:
        """Run f, and sweep through that. Returns the parts of values and gradients."""
        task, blocks = self.inner.task, _blocks_in(journal, self.lifts, self.inner.span)
        seeds = [self._seed(*one) for one in self.inner.seeds]
        #: those of the parts of results, in order
        self._starts = [part for parts in seeds for part in reversed(parts)]
        with ShadowsBefore() as before:
            journal.leave_shadows(before)
            try:
                top = blocks[-1] if blocks else journal
                bound = task.bound(self.inner.args, top.trace, duals=True)
                give_second_duals(bound)
                inputs = self._inputs_of(bound, journal, blocks)

                def parts_in_journal(returned: Any) -> list[Any]:
                    found = self.inner.results(returned, top.trace)
                    return [part for one in found for part in _parts_in(one, blocks)]

                journal.memory.starts_from([one.buffer for one in self._inputs if isinstance(one, Field)])
                run = recorded_from(task, bound, journal, self.inner.kwargs, top=top, parts=parts_in_journal)
                self._launches = session.launches
                refuse_written(bound, self.inner)
                self._results = [*run.results]
                values = [self._value(one) for one in self._results]
                #: the gradients that its sweep touches
                self._touched = self._gradients_touched(journal)
                journal.begin_sweep(self._touched)
                sweep = journal.sweep()
                for result, start in zip(self._results, self._starts, strict=True):
                    _start(sweep, result, start)
                sweep.run()
                gradients = [[self._gradient(part, sweep) for part in reversed(parts)] for parts in inputs]
                self._touched |= journal.shadows
                self._taken = dict(journal.trace.taken_in)
                #: the proxies for NumPy arrays
                self._own = {one.stand_in.buffer for one in bound.inputs if one.stand_in is not None}
            finally:
                for block in blocks:
                    block.forget()
                journal.forget()
        count = 1 << len(self.lifts)
        return [values[k : k + count] for k in range(0, len(values), count)], gradients

    def _add(
        self,
        outer: Journal,
        journal: Journal,
        values: list[GradientPart],
        gradients: list[list[GradientPart]],
        made: list[Field],
    ) -> None:
        """Add it as a record of the outermost recording."""
        effects = self._effects
        effects.read_by_python(journal)
        if not (self.carries or self.lifts):
            outer.took(self.inner.name, done_by(journal))
        self._program = Emission(journal)
        outer.deepest = max(outer.deepest, journal.deepest)
        #: of the parts of results and inputs, in order
        self._values, self._gradients = values, [part for parts in gradients for part in reversed(parts)]
        effects.loaded -= self._own
        effects.written -= self._own
        seeds = [one.field for one in self._starts if one.field is not None]
        effects.loaded |= {one.buffer for one in seeds}
        taken = set(self._taken)
        for one in (*self._starts, *self._given):
            taken.update(np.ravel(one.numbers).tolist())
        buffers = {one.buffer for one in made}
        outer.custom(
            Custom(
                self.inner.name,
                self.inner.span,
                self._pull,
                BlockEffects(
                    effects.loaded, effects.written | buffers, (effects.filled & effects.written) - self._own | buffers
                ),
                gradient_tasks=tuple([task for event in journal.records for task in event.gradient_tasks]),
                release=self._release,
                sources=frozenset(taken - {0}),
                kept_bytes=effects.start.nbytes,
                made=frozenset(buffers),
                gradients=frozenset([*self._touched, *[one.grad.buffer for one in (*made, *seeds)]]),
                again=self._again_in,
            )
        )

    def _release(self) -> None:
        self._effects.start = MemoryCopies()
        assert self.recording is not None
        if not self.recording.runs_again:
            self._program.close()
            self._values, self._gradients, self._inputs = [], [], []  # which refer to each other, and to arrays

    def _again_in(self, present: Recorder, of: NumberOf) -> dict[int, Any]:
        """Repeat it in another recording. Returns the numbers that its results are there; arrays get the new ones."""
        with recording_as(present):
            values, gradients = InnerGradient(present, _Again(self, of)).run()
            order = sorted(range(len(self._inputs)), key=lambda k: isinstance(self._inputs[k], Field))
            now = [*values, *[gradients[order.index(k)] for k in range(len(order))]]
            found: dict[int, Any] = {}
            for part, one in zip((*self._values, *self._gradients), now, strict=True):
                if part.field is not None:
                    note_python_write(part.field.buffer, ..., None, one.buffer)
                    hold(part.field.buffer, held_now(one.buffer))
                else:
                    found[int(part.numbers)] = one
        return found

    def _result(self, parts: list[GradientPart], made: list[Field]) -> Any:
        """A result, as a number or an array of the recording around it, from its parts."""
        if not np.shape(parts[0].value):
            found = [self.base.trace.new(dual.value, dual.tangent) for dual in [one.dual for one in parts]]
            for one, number in zip(parts, found, strict=True):
                one.numbers = number.number
            given = number_of(found, self.lifts)
        else:
            outer = self.recording
            has_dual = self.carries or bool(self.lifts) or (outer is not None and (outer.runs_again or outer.is_inner))
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

    def _journal(self, outer: Trace) -> Journal:
        """A recording for it, inside of the trace `outer`, in which the values of fields at the start are inputs, even
        if Python writes others at first.
        """
        base = self.base
        journal = Journal(trace=outer.inner(), tangents=self.carries)
        journal.is_inner = True
        journal.opened_within = self.outer.opened_notes()
        if isinstance(base, ForwardMode):
            journal.take_tangents(base, base.nesting(), self.inner.span)
        elif isinstance(base, Journal) and self.carries:
            journal.take_tangents(base, base.activity.tangents or {}, self.inner.span)
        journal.memory.starts_from(living_buffers())
        return journal

    def _inputs_of(self, bound: Bound, journal: Journal, blocks: Sequence[Forward]) -> list[list[Any]]:
        """The parts of the inputs in the journal: numbers, and fields."""
        task = self.inner.task
        found: list[list[Any]] = []
        #: the parts of inputs, in order; what the recording at the outside has for them
        self._inputs: list[Any] = []
        self._given: list[GradientPart] = []
        made: list[Any]
        for k, one in enumerate(bound.inputs):
            if one.number is None:
                assert one.field is not None
                fields = fields_of(one.field, blocks)
                given, made = [GradientPart(None, field=field) for field in fields], [*fields]
            else:
                parts = parts_of(self.inner.args[task.argnums[k]], self.lifts)
                given = [self._number(part) for part in parts]
                made = [journal.trace.new(part.given, part.dual.tangent) for part in given]
                _give(one.number, made, blocks)
            found.append(made)
            self._inputs += made
            self._given += given
        return found

    def _gradients_touched(self, journal: Journal) -> set[Buffer]:
        """The gradients that a sweep touches."""
        fields = [one for one in (*self._inputs, *self._results) if isinstance(one, Field)]
        return changed_gradients(journal.events) | {one.grad.buffer for one in fields}

    def _value(self, one: Any) -> GradientPart:
        """A part of a value."""
        if not isinstance(one, Field):
            return GradientPart(constants((one,))[0], one.tangent if type(one) is Traced else 0.0)
        found = self._held(one)
        if self.inner.gives_number and isinstance(found.value, np.ndarray) and found.value.size == 1:
            found.value = found.value.reshape(())
            found.tangent = None if found.tangent is None else found.tangent.reshape(())
        return found

    def _gradient(self, one: Any, sweep: Sweep) -> GradientPart:
        """The adjoint of a part of an input."""
        if isinstance(one, Field):
            return self._held(one.grad)
        adjoint = sweep.adjoint(one)
        return GradientPart(adjoint.value, adjoint.tangent)

    def _seed(self, given: Any, shape: tuple[int, ...]) -> list[GradientPart]:
        """The parts of a seed."""

        def checked(seed: Any) -> Array:
            return seed_array(seed, shape, "", "the result")

        if isinstance(given, Field):
            if not given.has_grad:
                raise DifferentiationError(
                    f"the seed '{given.name}' has no gradient", self.inner.span, hint="make it with needs_grad=True"
                )
            fields = fields_of(given, self.lifts)
            held = [self._held(field, lambda one: checked(number_or_array(one))) for field in fields]
            return [GradientPart(one.value, one.tangent, field=field) for one, field in zip(held, fields, strict=True)]
        if holds_traced(given):
            items = as_array(given) if type(given) is Traced else np.asarray(given, object)
            several = zip(*[parts_of(one, self.lifts) for one in items.ravel().tolist()], strict=True)
            found = [self._several(parts, items.shape) for parts in several]
            for one in found:
                one.value = checked(one.value[()])
            return found
        first = np.ones(shape) if given is None else checked(given)
        plain = [first, *[np.zeros(shape) for _ in range((1 << len(self.lifts)) - 1)]]
        return [GradientPart(one, given=one) for one in plain]

    # ---- its own derivative

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record: that of the number that is its gradient times the adjoints of that."""
        outer, effects = self.recording, self._effects
        assert outer is not None
        if sweep.gradients.has_tangents and not self.carries:
            refuse_nesting(self.inner.task.what, self.outer, "third derivatives are not computed")
        temporary = [b for b in outer.activity.tangents or () if b in effects.loaded | effects.written]
        if temporary:
            refuse_nesting(self.inner.task.what, outer, f"'{temporary[0].name}', which it uses, has no gradient")
        values, gradients = self._adjoints(sweep)
        for buffer in effects.written:
            sweep.overwriting(buffer)
        self._pull_along(sweep, values, gradients)

    def _adjoints(self, sweep: CustomSweep) -> tuple[list[GradientPart], list[GradientPart]]:
        """Those of the values, and those of the gradients, which become zero."""
        values, gradients = [
            [one.adjoint(sweep, carries=self.carries) for one in parts] for parts in (self._values, self._gradients)
        ]
        return values, gradients

    @contextmanager
    def _once_more(self) -> Iterator[tuple[Journal, Forward]]:
        """A block in which f is done once more: in a journal, and there in a block of pushforwards along a direction.
        At its end memory is as it was.
        """
        depth = 1 + max(self._program.deepest, self.base.next_depth - 1)
        journal, launches = self._journal(self.base.trace), session.launches
        written = self._effects.written if self.carries else ()
        kept = MemoryCopies([memory_of(one.tangent) for one in written if one.tangent is not None])
        top = Forward.within(journal, depth, self.inner.span, place=_Direction(depth, kept))
        try:
            self._effects.start.put_back()
            session.launches = self._launches  # launches have their numbers, custom gradients draw the same
            yield journal, top
        finally:
            top.forget()
            unwinding(kept.put_back)
            journal.forget()
            session.launches = launches

    def _pull_along(self, outer: CustomSweep, value_adjoints: list[GradientPart], adjoints: list[GradientPart]) -> None:
        program, primals = self._program, list[Traced]()
        with self._once_more() as (journal, top):

            def run() -> dict[int, Any]:
                program.initialise(journal)
                given = {**self._taken, **self._pointed(journal, top, adjoints, primals)}
                with recording_as(top):
                    return program.run(top, given)

            def results(known: Mapping[int, Any]) -> list[Any]:
                pairs = [_parts_in(one, [top]) for one in program.results(self._results, known)]
                return [*[first for first, _ in pairs], *[second for _, second in pairs]]

            found = record(journal, self.inner.span, (), run, results)
            sweep = journal.sweep()
            for result, adjoint in zip(found, [*value_adjoints, *self._starts], strict=True):
                _start(sweep, result, adjoint)
            products = [self._value(one) for one in found[len(value_adjoints) :]]
            sweep.run()
            numbers = [part for part in self._given if part.field is None]
            for primal, part in zip(primals, numbers, strict=True):
                outer.adjoints.add(int(part.numbers), sweep.adjoint(primal))
            for number in journal.trace.taken_in:
                if (one := sweep.adjoints.numbers.pop(number, None)) is not None:
                    outer.adjoints.add(number, one)
            self._add_products(outer, products)

    def _add_products(self, outer: CustomSweep, products: Sequence[GradientPart]) -> None:
        """The tangents of results are adjoints of the seeds."""
        for start, product in zip(self._starts, products, strict=True):
            start.add_adjoint(outer, product)

    def _pointed(
        self, journal: Journal, top: Forward, directions: Sequence[GradientPart], primals: list[Traced]
    ) -> dict[int, Traced]:
        """Give the inputs these tangents in a block. Returns the numbers among them as they are there; `primals` gets
        their values.
        """
        found: dict[int, Traced] = {}
        for one, part in zip(self._inputs, directions, strict=True):
            if isinstance(one, Field):
                (_, tangents) = fields_of(one, [top])
                hold(tangents.buffer, part.value)
                if part.tangent is not None:
                    hold(tangents.dual.buffer, part.tangent)
            else:
                primal = journal.trace.new(one, one.tangent)
                found[one.number] = top.number(primal, journal.trace.new(part.dual.value, part.dual.tangent))
                primals.append(primal)
        return found


class _Direction(TangentFields):
    """The tangents along the direction of a sweep. What these fields held is in `kept`: they begin at zero."""

    def __init__(self, depth: int, kept: MemoryCopies) -> None:
        super().__init__(depth)
        self._kept = kept

    def _use(self, layer: Layer, found: Field, of: Field) -> None:
        duals = (found.dual, found.grad.dual) if layer.root.clears_duals else ()
        for one in (found, found.grad, *duals) if found.buffer not in self.used else ():
            self._kept.add(one.memory)
            one.memory.clear()
        super()._use(layer, found, of)


class _Again(Inner):
    """A recorded gradient, to be done once more in another recording. `of`: maps its numbers to those of that one."""

    def __init__(self, first: InnerGradient, of: NumberOf) -> None:
        def now(given: Any) -> Any:
            if isinstance(given, np.ndarray) and given.dtype == object:
                return objects(map_leaves(now, given.ravel().tolist()), given.shape)
            return of(given) if type(given) is Traced else given

        program, results, task = first._program, first._results, first.inner.task
        outside = {number: of(one) for number, one in first._taken.items()}
        inputs = [one for one in first._inputs if type(one) is Traced]
        fields = [one for one in first._inputs if isinstance(one, Field)]
        starts = first._starts

        def function(*again: Any) -> list[Any]:
            present = recorder.get()
            assert present is not None
            given = {one.number: number for one, number in zip(inputs, again, strict=True)}
            program.initialise(present)
            return program.results(results, program.run(present, {**outside, **given}))

        args = [now(part.given) for part in first._given if part.field is None]
        again = DifferentiatedFunction(task.what, function, fields or None, None, range(len(args)) or None)
        super().__init__(again, tuple(args), {})
        self.span = again.span = first.inner.span
        self.gives_number = first.inner.gives_number
        self._name = first.inner.name
        self._seeds = [(now(part.given), np.shape(part.value)) for part in starts]

    @property
    def name(self) -> str:
        return self._name

    @property
    def seeds(self) -> list[tuple[Any, tuple[int, ...]]]:
        return self._seeds

    def results(self, returned: Any, trace: Trace) -> Sequence[Any]:
        return returned


def _blocks_in(journal: Journal, lifts: Sequence[Forward], span: Span) -> list[Forward]:
    """The same blocks of pushforwards, in this journal."""
    found: list[Forward] = []
    below: Recorder = journal
    for one in lifts:
        below = Forward.within(below, one.depth, one.opened or span, one)
        found.append(below)
    return found


def _give(number: Traced, made: Sequence[Traced], blocks: Sequence[Forward]) -> None:
    """The number of an input has these parts."""
    if not blocks:
        number.number, number.tangent = made[0].number, made[0].tangent
    else:
        half, around = len(made) // 2, blocks[:-1]
        blocks[-1].give(number, number_of(made[:half], around), number_of(made[half:], around))


def _parts_in(result: Any, blocks: Sequence[Forward]) -> list[Any]:
    """The parts of a number or a field in blocks of pushforwards."""
    return fields_of(result, blocks) if isinstance(result, Field) else parts_of(result, blocks)
