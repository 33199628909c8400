"""The forward layer: each operation is done with its tangents, by operations on the layer below.

    with recording:                 # a journal, forward mode, or nothing: `Execute`
        f                           ->      pushforward of f, whose launches, numbers and writes go to the layer below

The place of the tangents is what differs. Where nothing below records, they may be in the fields' own
duals (`own_duals.py`): launches are of a form that has these. Else they are in fields of their own
(`tangent_fields.py`): a launch becomes one of the kernel's pushforward (`compiler/pushed.py`), a kernel like any other,
so that a recording below differentiates tangents, too. Such layers lie on each other, each with shadows of its own
depth, including shadows of shadows. Perturbations of different depths are separate.

A number has two parts, its value and its tangent, which are numbers of the layer below if that has some. A layer can
change the place (`Forward.move`), which leaves the duals free for the results of a block inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn, Self

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.functional.own_duals import OwnDuals
from tinote.lang.ad.functional.tangent_fields import TangentFields
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.memory.values import element_at, held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, objects
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, note_python_write, recording_as
from tinote.source import Span, caller


class Forward(Layer):
    """The layer on `base` with tangents in this place. `again`: a layer whose tangents it continues in another
    recording: its numbers and tangent fields are the same.
    """

    takes_custom = False

    def __init__(self, base: Recorder, place: OwnDuals | TangentFields, trace: Trace, span: Span | None) -> None:
        super().__init__(base, place, trace, span)
        self.move(place)

    @classmethod
    def within(
        cls,
        base: Recorder,
        depth: int,
        span: Span | None,
        again: Forward | None = None,
        place: TangentFields | None = None,
    ) -> Self:
        """The layer of a block inside of the recording `base`, with fields of its own (by default of this depth)."""
        found = cls(base, place or TangentFields(depth), base.trace.inner([]), span)
        found.opened_within = base.opened_notes()
        if again is not None:
            found.again = again
            found.lose(again.fields.lost)
        found.trace.computes = found
        found.values = base.shadows_with_values
        base.root.deepest = max(base.root.deepest, depth)
        return found

    def move(self, place: OwnDuals | TangentFields) -> None:
        """Let its tangents be there from now on."""
        self.place, self.depth = place, place.depth
        self.gradients = place.gradients
        self.clears_duals = place.is_own or self.base.clears_duals

    @property
    def root(self) -> Recorder:
        return self if self.place.is_own else self.base.root

    @property
    def lifts(self) -> list[Forward]:
        return [] if self.place.is_own else [*self.base.lifts, self]

    @property
    def shadows_with_values(self) -> set[Buffer]:
        return self.base.shadows_with_values | self.values

    def keep_gradients_apart(self) -> None:
        self.base.keep_gradients_apart()

    def has_values(self, shadows: Collection[Buffer], span: Span) -> None:
        self.base.has_values(shadows, span)
        self.values.update(shadows)

    def leaving_value(self, buffer: Buffer) -> AbstractContextManager[Buffer]:
        return self.base.leaving_value(buffer)

    def lose(self, lost: Mapping[Buffer, Span]) -> None:
        """This memory, which has no tangent, holds values that vary, since these places."""
        self.fields.lost.update(lost)

    @contextmanager
    def following(self) -> Iterator[None]:
        """A block whose operations it follows."""
        with recording_as(self):
            yield

    def close(self) -> None:
        """Free its numbers and shadows; the latter are set to zero."""
        with self.below():
            self.fields.clear()
        self.forget()

    def forget(self) -> None:
        """The same where the recording around is over."""
        self.fields.used = {}
        self.trace.close()
        self.has_ended = True

    # ---- memory

    def tangent_field(self, field: Field) -> Field | None:
        """The shadow with a field's tangents; None for constants."""
        return self.fields.of_field(self, field)

    def known_tangents(self, buffer: Buffer) -> Field | None:
        """The same where it has been used already."""
        return self.fields.known(self, buffer)

    def point(self, field: Field, direction: Any) -> None:
        """Set the tangents of a field: an array, or the values of another field."""
        own = self.tangent_field(field)
        if own is None:
            raise DifferentiationError(f"'{field.name}' was declared to be constant", caller())
        if not isinstance(direction, Field):
            along = field.by_place(np.reshape(direction, field.shape + field.element))
            self.place.put(self, own.buffer, ..., along, None)
            return
        with self.below():
            note_python_write(own.buffer, ..., None, direction.buffer)
            hold(own.buffer, held_now(direction.buffer))

    # ---- what runs

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        return self.place.launching(self, instance, values)

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        return self.place.launching_gradient(self, instance, values)

    def launched(self) -> None:
        self.place.launched(self)

    def computing(self, computation: Computation) -> None:
        self.place.computing(self, computation)

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        values, along = (None, 0.0) if source is not None else self._split(value)
        with self.below():
            self.base.writing(buffer, position, values, source)
        own, given = self.place.written(self, buffer, value, along, source, whole=position is ...)
        if own is not None:
            self.place.put(self, own, position, along, given)

    def number_at(self, buffer: Buffer, position: tuple[int, ...], value: float) -> Any:
        own = self.place.read(self, buffer)
        with self.below():
            primal = self.base.number_at(buffer, position, value)
            if own is None:
                return primal
            tangent = self.base.number_at(own, position, element_at(own, position))
        return self.number(primal, tangent)

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        own = self.place.read(self, buffer)
        with self.below():
            values = self.base.reading(buffer, position, value)
            if own is None:
                return values
            if not buffer.element:
                return self.number(values, self.base.reading(own, position, element_at(own, position)))
            held = [element_at(own, (*position, *component)) for component in np.ndindex(buffer.element)]
            tangents = self.base.reading(own, position, objects(held, buffer.element))
        pairs = zip(np.ravel(values).tolist(), np.ravel(tangents).tolist(), strict=True)
        return objects([self.number(*pair) for pair in pairs], buffer.element)

    def making(self, buffer: Buffer, of: Buffer | None = None) -> None:
        self.base.making(buffer, of)

    def made_by_user(self, field: Field) -> None:
        self.base.made_by_user(field)

    def taking(self, buffer: Buffer) -> None:
        self.base.taking(buffer)
        self.place.taken(self, buffer)

    def sharing(self, buffer: Buffer) -> None:
        self.taking(buffer)
        self.place.shared(buffer)
        self.base.sharing(buffer)

    def refuse_custom(self, name: str, span: Span) -> NoReturn:
        """Raise for an operation with a custom derivative, whose own derivative is unknown."""
        what = f"'{name}' cannot run {self.fields.where}: the derivatives of its gradient are not known"
        raise DifferentiationError(what, span, notes=self.opened_notes())


def parts_of(value: Any, lifts: Sequence[Forward]) -> list[Any]:
    """The parts that a number has in these layers: without the mark of the last one, then with it."""
    if not lifts:
        return [value]
    first, second = lifts[-1].parts(value)
    return [*parts_of(first, lifts[:-1]), *parts_of(second, lifts[:-1])]


def number_of(parts: Sequence[Any], lifts: Sequence[Forward]) -> Any:
    """The number that has these parts."""
    if not lifts:
        return parts[0]
    half = len(parts) // 2
    return lifts[-1].number(number_of(parts[:half], lifts[:-1]), number_of(parts[half:], lifts[:-1]))


def fields_of(field: Field, lifts: Sequence[Forward]) -> list[Field]:
    """The parts of a field. Raises `DifferentiationError` for one that is constant."""
    if not lifts:
        return [field]
    tangents = lifts[-1].tangent_field(field)
    if tangents is None:
        raise DifferentiationError(f"'{field.name}' was declared to be constant", caller())
    return [*fields_of(field, lifts[:-1]), *fields_of(tangents, lifts[:-1])]
