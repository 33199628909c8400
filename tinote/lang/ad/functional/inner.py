"""The request of a derivative inside of another one (`inner_derivative.py`), and what it needs to run again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.inputs import Bound, DifferentiatedFunction
from tinote.lang.ad.journal.events import NumberOf
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.touched_gradients import with_duals
from tinote.lang.ad.memory.values import held_now, hold, plain_array
from tinote.lang.data.fields import Field
from tinote.lang.data.nests import map_leaves
from tinote.lang.data.traced import Traced, objects
from tinote.lang.session.owners import claim, give_back, own_duals
from tinote.lang.session.state import Recorder, independent_recordings, memory_of, note_python_write, session
from tinote.runtime.memory import MemoryCopies
from tinote.runtime.seam import unwinding
from tinote.source import caller


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


def _with_numbers(given: Any, of: NumberOf) -> Any:
    """A seed, or directions, with other numbers."""

    def renumbered(one: Any) -> Any:
        if isinstance(one, np.ndarray) and one.dtype == object:
            return objects(map_leaves(renumbered, one.ravel().tolist()), one.shape)
        return of(one) if type(one) is Traced else one

    return map_leaves(renumbered, given)


def changed_gradients_of(journal: Journal, fields: Iterable[Field]) -> set[Buffer]:
    """The gradients that a sweep through a journal touches that begins and ends at these fields."""
    return journal.changed_gradients() | {field.grad.buffer for field in fields}


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


#: Returns the value of an inner derivative, and its result for each input, in a recording (`inner_derivative.inside`).
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
def duals_apart(buffers: Iterable[Buffer] | None) -> Iterator[None]:
    """A block with its own duals, initially zero: those of these buffers, by default of all fields, and of their
    gradients.
    """
    duals = (
        list(own_duals())
        if buffers is None
        else [
            one
            for b in buffers
            for one in (b.tangent, None if b.adjoint is None else b.adjoint.tangent)
            if one is not None
        ]
    )
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


def give_second_duals(bound: Bound) -> None:
    """The gradients of what is differentiated have duals."""
    for one in bound.inputs:
        if one.field is not None and one.field.has_grad:
            one.field.grad.ensure_dual()


@contextmanager
def swept_apart(journal: Journal, touched: Iterable[Buffer], start: Callable[[Sweep], None]) -> Iterator[Sweep]:
    """A block with the gradients, and their duals, that a sweep leaves which `start` has seeded."""
    kept = MemoryCopies(map(memory_of, with_duals(touched)))
    launches = session.launches
    try:
        journal.begin_sweep(touched)
        sweep = journal.sweep()
        start(sweep)
        sweep.run()
        yield sweep
    finally:
        session.launches = launches
        unwinding(kept.put_back)
