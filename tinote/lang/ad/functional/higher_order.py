"""Nested derivatives of third and higher order: forward mode inside other derivatives, and derivatives inside
recordings that carry tangents themselves.

Forward mode inside another derivative is one more block of pushforwards (`pushed_mode.py`), which the outer recording
differentiates like other code.

Reverse mode inside of a recording with tangents is one record. Around it may lie blocks of pushforwards, whose numbers
and fields have several parts: x and x' for one, x, x', x* and x'* for two. Let F be the number that f gives, with the
same parts. The gradient of f has such parts too, and they are gradients of the last of these: with one block, dF'/dx'
is the gradient of f, and dF'/dx its tangent along x'. So one sweep through the pushforward of f, which starts at the
last part, gives all of them: the adjoint of a part of x is the part of the gradient with the other marks.

Where adjoints w of these parts come back, the number w · g is the tangent of F' along w in place of the parts of x,
since the order of derivatives does not matter. So f runs again with one more block of pushforwards around it, whose
tangents are w, and a sweep through that gives the adjoints of the inputs. Whether these recordings carry tangents is
that of the recording at the outside: what comes out of the sweep then has tangents as well.

Method: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 5.1; on keeping perturbations of
different derivatives apart: Siskind and Pearlmutter, "Nesting forward-mode AD in a functional framework", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inputs import Array, Bound, number_or_array, shape_of
from tinote.lang.ad.functional.nested import (
    Inner,
    InnerStart,
    Inside,
    add_dual,
    agree,
    changed_gradients_of,
    refuse_nesting,
    refuse_other,
    refuse_written,
)
from tinote.lang.ad.functional.pushed_mode import (
    PushedMode,
    base_of,
    lifts_of,
    next_depth,
    tangent_fields_beyond,
)
from tinote.lang.ad.functional.runs import Run, result_of
from tinote.lang.ad.functional.second_order import SecondOrder, give_gradients_duals, inner_trace
from tinote.lang.ad.functional.seeds import seed_array
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, InnerEvents, NumberOf, RecordedLaunch
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import StandIn, stand_in
from tinote.lang.data.traced import Trace, Traced, holds_traced, stored
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.session.state import Recorder, memory_of, note_making, note_python_write, recording_as, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import unwinding

# ---- forward mode


def pushed(outer: Recorder, inner: Inner, inside: Inside) -> tuple[Any, list[Any]]:
    """The value and the product of an inner derivative in forward mode, as parts of the recording around it. `inside`
    runs it in any recording.
    """
    with _Events(outer, inner, inside) as events:
        value, product = _pushed(outer, inner)
        events.results = [value, product]
        return value, [product]


class _Events:
    """A block whose events in the recording around are those of this derivative, which gives `results`."""

    def __init__(self, outer: Recorder, inner: Inner, inside: Inside) -> None:
        self.results: list[Any] = []
        self._outer = outer
        self._inside = inside
        self._start = InnerStart(inner)

    def __enter__(self) -> _Events:
        self._first = len(self._outer.events) if isinstance(self._outer, Journal) else 0
        return self

    def __exit__(self, *error: object) -> None:
        outer = self._outer
        if isinstance(outer, Journal):
            events = range(self._first, len(outer.events))
            again = self._again if outer.runs_again else None
            outer.inner_events.append(InnerEvents(events, self._start.inner.name, again))

    def _again(self, journal: Journal, of: NumberOf) -> dict[int, Any]:
        places = [(0, one) if isinstance(one, Field) else (getattr(one, "number", 0), None) for one in self.results]
        return self._start.again(self._inside, places, journal, of)


def _pushed(outer: Recorder, inner: Inner) -> tuple[Any, Any]:
    task = inner.task
    block = PushedMode(outer, next_depth(outer), inner.span)
    try:
        bound = _pointed(block, inner)
        with block.running(), bound.running():
            returned = task.f(*bound.args, **inner.kwargs)
        refuse_written(bound, inner)
        value, product = _parts_taken(block, result_of(task, returned, block.trace))
        return value, product
    finally:
        block.close()


def hessian_products(outer: Recorder, inner: Inner) -> tuple[Any, list[Any], list[Any]]:
    """The value, the gradients and the products of the Hessian and the directions, as parts of the recording around:
    the gradient, in a block of pushforwards.
    """
    with _Events(outer, inner, _hessian_inside) as events:
        block = PushedMode(outer, next_depth(outer), inner.span)
        try:
            bound = _pointed(block, inner)
            with block.running(), bound.running():
                value, gradients = record(block, Inner(inner.task, bound.args, inner.kwargs), is_part=True)
            pairs = [_parts_taken(block, one) for one in gradients]
            found = _parts_taken(block, value)[0], [first for first, _ in pairs], [second for _, second in pairs]
            events.results = [found[0], *found[1], *found[2]]
            return found
        finally:
            block.close()


def _hessian_inside(outer: Recorder, inner: Inner) -> tuple[Any, list[Any]]:
    value, gradients, products = hessian_products(outer, inner)
    return value, [*gradients, *products]


def _pointed(block: PushedMode, inner: Inner) -> Bound:
    """The inputs, which have the directions as tangents in `block`."""
    task = inner.task
    bound = task.bound(inner.args, block.trace, duals=True)
    for one in bound.inputs:
        if one.stand_in is not None:
            note_making(one.stand_in.buffer)
    _give_second_duals(bound)
    for k, (one, direction) in enumerate(zip(bound.inputs, task.parts(inner.directions, "seeds"), strict=True)):
        if direction is None and one.shape == ():
            direction = 1.0
        if one.number is not None:
            block.give(one.number, inner.args[task.argnums[k]], _number_given(direction))
        else:
            assert one.field is not None
            block.point(one.field, _array_given(direction, one.shape))
    return bound


def _parts_taken(block: PushedMode, result: Any) -> tuple[Any, Any]:
    """The result of a block of pushforwards and its tangent, as parts of the outer recording."""
    if isinstance(result, Field):
        return _taken(result), _taken(block.tangent_field(result))
    return block.parts(result)


def _give_second_duals(bound: Bound) -> None:
    """The gradients of what is differentiated have duals."""
    for one in bound.inputs:
        if one.field is not None and one.field.has_grad:
            one.field.grad.ensure_dual()


def _number_given(direction: Any) -> Any:
    if type(direction) is Traced:
        return direction
    if holds_traced(direction):
        return np.asarray(direction, object).reshape(()).item()
    return seed_array(stored(direction), (), "", "the input").item()


def _array_given(direction: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(direction, Field) and shape_of(direction) == shape:
        return direction
    if holds_traced(direction):
        return np.asarray(direction, object).reshape(shape)
    return seed_array(stored(direction), shape, "", "the input")


def _taken(field: Field | None) -> Any:
    """The contents of a field, as a number or an array of the recording."""
    if field is None:
        return 0.0
    if shape_of(field) == ():
        return field[None]  # type: ignore[index]
    made = stand_in(np.zeros(shape_of(field), numbers(field.buffer).dtype), needs_dual=True)
    made.grad.ensure_dual()
    note_making(made.buffer)
    note_python_write(made.buffer, ..., None, field.buffer)
    hold(made.buffer, held_now(field.buffer))
    return made


# ---- reverse mode


class _Part:
    """A number or an array: one part of a record's result or input in the outermost recording."""

    def __init__(self, value: Any, tangent: Any, number: int = 0, field: Field | None = None) -> None:
        self.value = np.array(value)
        self.tangent = np.array(tangent, np.float64)
        self.number = number
        self.field = field

    def adjoint(self, sweep: CustomSweep) -> tuple[Array, Array]:
        """Its adjoint and the tangent of that, which become zero."""
        if self.field is None:
            found = sweep.adjoints.pop(self.number, None) if self.number else None
            return (
                (np.zeros(()), np.zeros(())) if found is None else (np.asarray(found.value), np.asarray(found.tangent))
            )
        held = _both(self.field.grad)
        for one in (self.field.grad, self.field.grad.dual):
            numbers(one.buffer)[...] = 0
        return held


def _both(field: Field) -> tuple[Array, Array]:
    """The contents of a field and of its dual."""
    tangent = np.array(numbers(field.dual.buffer), np.float64) if field.has_dual else np.zeros(shape_of(field))
    return np.array(numbers(field.buffer), np.float64), tangent


def record(
    outer: Recorder, inner: Inner, inside: Inside | None = None, *, is_part: bool = False
) -> tuple[Any, list[Any]]:
    """The value and the gradients of an inner derivative in reverse mode, as parts of the recording around it.
    `inside`: runs it in any recording; `is_part`: whether it is a part of a derivative that runs again as a whole.
    """
    return _Record(outer, inner, inside, is_part).run()


class _Record:
    """`lifts`: the blocks of pushforwards around it; `base`: the recording at the outside."""

    def __init__(self, outer: Recorder, inner: Inner, inside: Inside | None, is_part: bool) -> None:
        self.outer = outer
        self.inner = inner
        self._inside = inside
        self._is_part = is_part
        self.lifts = lifts_of(outer)
        self.base = base_of(outer)
        self.start = InnerStart(inner)
        self.effects = Effects(keeps=True, keeps_duals=True)
        self.own: list[StandIn] = []

    # ---- its parts

    def _parts(self, value: Any, lifts: Sequence[PushedMode]) -> list[Any]:
        """Those of a number, for these blocks: without the mark of the last one, then with it."""
        if not lifts:
            return [value]
        first, second = lifts[-1].parts(value)
        return [*self._parts(first, lifts[:-1]), *self._parts(second, lifts[:-1])]

    def _fields(self, field: Field, lifts: Sequence[PushedMode]) -> list[Field]:
        """Those of a field."""
        if not lifts:
            return [field]
        tangents = lifts[-1].tangent_field(field)
        if tangents is None:
            raise DifferentiationError(f"'{field.name}' was declared to be constant", self.inner.span)
        return [*self._fields(field, lifts[:-1]), *self._fields(tangents, lifts[:-1])]

    def _whole(self, parts: Sequence[Any], lifts: Sequence[PushedMode]) -> Any:
        """The number that has these parts."""
        if not lifts:
            return parts[0]
        half = len(parts) // 2
        return lifts[-1].number(self._whole(parts[:half], lifts[:-1]), self._whole(parts[half:], lifts[:-1]))

    # ---- recording

    def run(self) -> tuple[Any, list[Any]]:
        outer, base = self.outer, self.base
        with self.effects.listening():
            journal = self._journal(inner_trace(outer))
            self.results, self.gradients, taken = self._first(journal)
        made: list[Field] = []
        given = [self._result(parts, made) for parts in (self.results, *self.gradients)]
        if isinstance(base, Journal):
            self._add(base, journal, made, taken)
        value, *others = given
        return value, others

    def _add(self, base: Journal, journal: Journal, made: list[Field], taken: set[int]) -> None:
        """Add it as a record of the outermost recording."""
        effects = self.effects
        effects.read_by_python(journal)
        own = {one.buffer for one in self.own}
        effects.loaded -= own
        effects.written -= own
        effects.loaded |= {one.field.buffer for one in self.seeds if one.field is not None}
        taken |= {one.number for one in self.seeds} | {one.number for parts in self.numbers for one in parts}
        buffers = {one.buffer for one in made}
        base.custom(
            Custom(
                self.inner.name,
                self.inner.span,
                self._pull,
                loaded=effects.loaded,
                written=effects.written | buffers,
                fully_overwritten=(effects.filled & effects.written) - own | buffers,
                gradient_tasks=tuple([task for event in journal.records for task in event.gradient_tasks]),
                release=self._release,
                sources=frozenset(taken - {0}),
                kept_bytes=effects.start.nbytes,
                made=frozenset(buffers),
                carries_tangents=True,
                again=self._refuse_again if self._is_part else None if self.lifts else self._run_again,
            )
        )

    def _refuse_again(self, journal: Journal, of: NumberOf) -> NoReturn:
        refuse_nesting(self.inner.task.what, journal, "a part of it cannot be run again")

    def _run_again(self, journal: Journal, of: NumberOf) -> dict[int, Any]:
        """Repeat it in another recording."""
        assert self._inside is not None
        places = [(parts[0].number, parts[0].field) for parts in (self.results, *self.gradients)]
        return self.start.again(self._inside, places, journal, of)

    def _release(self) -> None:
        self.effects.start = MemoryCopies()

    def _result(self, parts: list[_Part], made: list[Field]) -> Any:
        """A result, as a number or an array of the recording around it, from its parts."""
        if not parts[0].value.shape:
            found = []
            for one in parts:
                number = self.base.trace.new(one.value.item(), one.tangent.item())
                one.number = number.number
                found.append(number)
            return self._whole(found, self.lifts)
        array = stand_in(np.ascontiguousarray(parts[0].value), needs_dual=True)
        array.grad.ensure_dual()
        for one, field in zip(parts, self._fields(array, self.lifts), strict=True):
            one.field = field
            numbers(field.buffer)[...] = one.value
            numbers(field.dual.buffer)[...] = one.tangent
            made.append(field)
        return array

    def _journal(self, trace: Trace) -> Journal:
        base = self.base
        carries = isinstance(base, ForwardMode) or (isinstance(base, Journal) and base.derivative.has_tangents)
        journal = SecondOrder(trace=trace) if carries else Journal(trace=trace)
        journal.is_inner = True
        journal.takes_custom = isinstance(base, ForwardMode)
        journal.opened_within = self.outer.opened_notes()
        give_gradients_duals()
        if isinstance(base, ForwardMode):
            journal.take_tangents(base, base.nesting(), self.inner.span)
        elif carries:
            assert isinstance(base, Journal)
            journal.take_tangents(base, base.tangents or {}, self.inner.span)
        journal.starts_as_used()
        return journal

    def _blocks(self, journal: Journal) -> list[PushedMode]:
        """The same blocks of pushforwards, in this journal."""
        found: list[PushedMode] = []
        below: Recorder = journal
        for one in self.lifts:
            below = PushedMode(below, one.depth, one.opened or self.inner.span, one)
            found.append(below)
        return found

    def _run(self, journal: Journal, blocks: list[PushedMode], args: Sequence[Any], *, repeats: bool) -> Run:
        """Run f. The numbers among its inputs get parts in `journal`."""
        task = self.inner.task
        top: Recorder = blocks[-1] if blocks else journal
        bound = task.bound(args, top.trace, duals=True, repeats=repeats)
        _give_second_duals(bound)
        self.own = [one.stand_in for one in bound.inputs if one.stand_in is not None]
        if not repeats:
            self.numbers = [self._number_parts(one.number, k) for k, one in enumerate(bound.inputs)]
        self.inputs = []
        for one, parts in zip(bound.inputs, self.numbers, strict=True):
            made = [journal.trace.new(part.value.item(), part.tangent.item()) for part in parts]
            self.inputs.append(made)
            if one.number is not None:
                self._give(one.number, made, blocks)
        return Run(journal, bound, ())

    def _give(self, number: Traced, made: Sequence[Traced], blocks: Sequence[PushedMode]) -> None:
        own = blocks[: len(self.lifts)]
        if not blocks:
            number.number, number.tangent = made[0].number, made[0].tangent
        elif len(blocks) > len(own):  # its tangent is given by who has added a block
            return
        else:
            half = len(made) // 2
            blocks[-1].give(number, self._whole(made[:half], own[:-1]), self._whole(made[half:], own[:-1]))

    def _number_parts(self, number: Traced | None, position: int) -> list[_Part]:
        if number is None:
            return []
        given = self.inner.args[self.inner.task.argnums[position]]
        return [self._part(one) for one in self._parts(given, self.lifts)]

    def _part(self, one: Any) -> _Part:
        """A number of the recording at the outside."""
        if type(one) is Traced and self.base.trace.is_active(one):
            return _Part(one.value, one.tangent, one.number)
        return _Part(float(stored(one)), 0.0)

    def _called(self, run: Run, blocks: list[PushedMode]) -> list[Any]:
        """Call f, and give its result's parts: numbers and plain floats, or fields."""
        journal, bound, task = run.journal, run.bound, self.inner.task
        journal.opened = task.span
        journal.is_swept = True
        top: Recorder = blocks[-1] if blocks else journal
        fields = [
            part.buffer for one in bound.inputs if one.field is not None for part in self._fields(one.field, blocks)
        ]
        journal.starts_from(fields)
        with journal.recording(), recording_as(top), bound.running():
            returned = task.f(*bound.args, **self.inner.kwargs)
        result = result_of(task, returned, top.trace)
        refuse_written(bound, self.inner)
        lost = journal.lost_values()
        journal.take_gradients_back()
        if isinstance(result, Field):
            return list(self._fields(result, blocks))
        parts = self._parts(result, blocks)
        for one in parts:
            if type(one) is Traced:
                lost.refuse_number(one.number, Note("from there the function returns them", task.span))
        return parts

    def _first(self, journal: Journal) -> tuple[list[_Part], list[list[_Part]], set[int]]:
        blocks = self._blocks(journal)
        self.seeds = self._seeds()
        with ShadowsBefore() as before:
            journal.leave_shadows(before)
            try:
                run = self._run(journal, blocks, self.inner.args, repeats=False)
                results = self._called(run, blocks)
                taken = set(journal.trace.taken_in)
                values = [self._value(one) for one in results]
                inputs = [one.field for one in run.bound.inputs if one.field is not None]
                fields = [part for field in inputs for part in self._fields(field, blocks)]
                fields += [one for one in results if isinstance(one, Field)]
                touched = changed_gradients_of(journal, fields)
                journal.begin_sweep([one for g in touched for one in (g, g.tangent) if one is not None])
                sweep = journal.sweep()
                for result, seed in zip(results, reversed(self.seeds), strict=True):
                    _start(sweep, result, seed.value, seed.tangent)
                sweep.run()
                gradients = [self._gradient(k, run.bound, sweep, blocks) for k in range(len(run.bound.inputs))]
                self.kernels = [launch.kernel_name for launch in _launches(journal)]
            finally:
                for block in blocks:
                    block.forget()
                journal.forget()
        self.values = [np.array(one.value) for one in values]
        return values, gradients, taken

    def _value(self, one: Any) -> _Part:
        """A part of the value."""
        if isinstance(one, Field):
            value = np.asarray(number_or_array(one))
            tangent = np.array(numbers(one.dual.buffer), np.float64) if one.has_dual else np.zeros(value.shape)
            if self.inner.seed is None:
                return _Part(value.reshape(()), tangent.reshape(()))
            return _Part(value, tangent.reshape(value.shape))
        return _Part(stored(one), one.tangent if type(one) is Traced else 0.0)

    def _gradient(self, position: int, bound: Bound, sweep: Sweep, blocks: Sequence[PushedMode]) -> list[_Part]:
        """The parts of the gradient of an input: the adjoints of its parts, the last first."""
        one = bound.inputs[position]
        if one.number is not None:
            adjoints = [sweep.adjoint(part) for part in self.inputs[position]]
            return [_Part(found.value, found.tangent) for found in reversed(adjoints)]
        assert one.field is not None
        found = [_both(part.grad) for part in self._fields(one.field, blocks)]
        return [_Part(*pair) for pair in reversed(found)]

    def _seeds(self) -> list[_Part]:
        """The parts of the seed."""
        task, given = self.inner.task, self.inner.seed
        shape = () if task.loss is None else shape_of(task.loss)
        count = 1 << len(self.lifts)
        if isinstance(given, Field) and shape_of(given) == shape:
            return [_Part(*_both(one), field=one) for one in self._fields(given, self.lifts)]
        if type(given) is Traced or (holds_traced(given) and shape == ()):
            whole = given if type(given) is Traced else np.asarray(given, object).reshape(()).item()
            return [self._part(one) for one in self._parts(whole, self.lifts)]
        if holds_traced(given):
            raise DifferentiationError(
                "a seed of several numbers that are differentiated is an ndarray here",
                self.inner.span,
                hint="put them into a ti.ndarray with needs_grad=True",
            )
        array = np.ones(shape) if given is None else seed_array(stored(given), shape, "", "the result")
        return [_Part(array, np.zeros(shape)), *[_Part(np.zeros(shape), np.zeros(shape)) for _ in range(count - 1)]]

    # ---- its gradient

    def _pull(self, sweep: CustomSweep) -> None:
        """The gradient of the record."""
        adjoints = [[one.adjoint(sweep) for one in parts] for parts in (self.results, *self.gradients)]
        value_adjoints, *others = adjoints
        base, effects = self.base, self.effects
        assert isinstance(base, Journal)
        temporary = [b for b in base.tangents or () if b in effects.loaded | effects.written]
        if temporary:
            refuse_nesting(self.inner.task.what, base, f"'{temporary[0].name}', which it uses, has no gradient")
        give_gradients_duals()
        for buffer in effects.written:
            sweep.overwriting(buffer)
        depth = next_depth(self.outer)
        kept = MemoryCopies()
        for buffer in effects.written:
            if buffer.tangent is not None:
                kept.add(memory_of(buffer.tangent))
        for field in tangent_fields_beyond(depth - 1):
            for one in (field, field.dual, field.grad, field.grad.dual):
                kept.add(one.memory)
                one.memory.clear()
        effects.start.put_back()
        launches = session.launches
        journal = self._journal(Trace(outer=self.outer.trace, family=self.outer.trace.family))
        blocks = self._blocks(journal)
        blocks.append(PushedMode(blocks[-1] if blocks else journal, depth, self.inner.span))
        try:
            session.launches = self.start.launches  # the same draws
            run = self._run(journal, blocks, self.start.args, repeats=True)
            self._point(run, blocks, others)
            with self.start.cells.again():
                results = self._called(run, blocks)
            half = len(results) // 2
            if [launch.kernel_name for launch in _launches(journal)] != self.kernels:
                refuse_other(self.inner)
            for one, before in zip(results, self.values, strict=False):
                if not agree(np.reshape(self._value(one).value, before.shape), before):
                    refuse_other(self.inner)
            second = journal.sweep()
            for result, (value, tangent) in zip(results[:half], value_adjoints, strict=True):
                _start(second, result, value, tangent)
            for result, seed in zip(results[half:], reversed(self.seeds), strict=True):
                _start(second, result, seed.value, seed.tangent)
            products = [self._value(one) for one in results[half:]]
            second.run()
            self._leave(sweep, second, journal, products)
        finally:
            for block in blocks:
                block.forget()
            journal.forget()
            session.launches = launches
            for field in tangent_fields_beyond(depth - 1):
                for one in (field, field.dual, field.grad, field.grad.dual):
                    one.memory.clear()
            unwinding(kept.put_back)

    def _point(self, run: Run, blocks: list[PushedMode], adjoints: list[list[tuple[Array, Array]]]) -> None:
        """The tangents of the last block are the adjoints of the gradient, the last first."""
        top = blocks[-1]
        for one, made, given in zip(run.bound.inputs, self.inputs, adjoints, strict=True):
            directions = list(reversed(given))
            if one.number is not None:
                numbers_along = [run.journal.trace.new(value.item(), tangent.item()) for value, tangent in directions]
                top.give(one.number, self._whole(made, blocks[:-1]), self._whole(numbers_along, blocks[:-1]))
                continue
            assert one.field is not None
            along = top.tangent_field(one.field)
            assert along is not None
            for own, (value, tangent) in zip(self._fields(along, blocks[:-1]), directions, strict=True):
                numbers(own.buffer)[...] = value.reshape(numbers(own.buffer).shape)
                numbers(own.dual.buffer)[...] = tangent.reshape(numbers(own.buffer).shape)

    def _leave(self, sweep: CustomSweep, second: Sweep, journal: Journal, products: list[_Part]) -> None:
        """Pass the results of the sweep on to the adjoints of the outer sweep."""
        for made, parts in zip(self.inputs, self.numbers, strict=True):
            for number, part in zip(made, parts, strict=True):
                if part.number:
                    add_dual(sweep, part.number, second.adjoint(number))
        for number in journal.trace.taken_in:
            found = second.adjoints.pop(number, None)
            if found is not None:
                add_dual(sweep, number, found)
        for part, product in zip(reversed(self.seeds), products, strict=True):
            if part.number:
                add_dual(sweep, part.number, Dual(product.value.item(), product.tangent.item()))
            elif part.field is not None:
                held = part.field.grad
                numbers(held.buffer)[...] += product.value.reshape(numbers(held.buffer).shape)
                if held.has_dual:
                    numbers(held.dual.buffer)[...] += product.tangent.reshape(numbers(held.buffer).shape)


def _launches(journal: Journal) -> list[Any]:
    return [event.instance for event in journal.records if isinstance(event, RecordedLaunch)]


def _start(sweep: Sweep, result: Any, value: Array, tangent: Array) -> None:
    """Add to the adjoint of a part of the result, and to the tangent of that."""
    if isinstance(result, Field):
        for field, amount in ((result.grad, value), (result.grad.dual if result.grad.has_dual else None, tangent)):
            if field is not None:
                held = numbers(field.buffer)
                held[...] += amount.reshape(held.shape)
    elif type(result) is Traced and result.number:
        sweep.add(result.number, Dual(value.item(), tangent.item()))
