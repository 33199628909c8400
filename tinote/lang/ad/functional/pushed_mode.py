"""Forward mode inside another derivative: records the block's operations, with tangents, in the enclosing recorder.

    with recording:                 # a journal, forward mode, or this
        f                           ->      pushforward of f, whose launches, numbers and writes are recorded

A launch becomes one of the kernel's pushforward (`compiler/pushed.py`), a kernel like any other. The tangents of a
field are in a field of their own that has a gradient and a dual where the field has them; a number has two
parts, its value and its tangent, which are numbers of the recording around. So the outer derivative differentiates the
tangents, too, and blocks of this kind may be nested: each has shadows of its own `depth`, including shadows of
shadows. Perturbations of different depths are separate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, ref

import numpy as np

from tinote.compiler.launch.native import BoundArray
from tinote.compiler.pushed import PushedSpecialisation
from tinote.errors import DifferentiationError, Note, broken_gradient_path
from tinote.ir.buffers import Buffer, BufferKind
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.temporary_adjoints import copy_tangents
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import element_at, held_now, hold, store
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import StandIn, array_kind, bound_of, formal_array
from tinote.lang.data.traced import Trace, Traced, computed_as, kind_of_dual, objects, stored, traced_array
from tinote.lang.data.traced_derivatives import ConstantDual, Dual, ScalarRule
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, note_launch_outside, note_python_write, recorder, recording_as, session
from tinote.runtime.seam import active_listener, silently
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]

#: The tangents of fields, by depth; they go with their fields.
_tangent_fields: WeakKeyDictionary[Buffer, dict[int, Field]] = WeakKeyDictionary()

#: Of each of them: whose tangents they are, and at which depth.
_origins: WeakKeyDictionary[Buffer, tuple[ref[Buffer], int]] = WeakKeyDictionary()


def tangent_field(field: Field, depth: int) -> Field:
    """The shadow with a field's tangents at this depth: zeros, unless a block of this depth uses it."""
    known = _tangent_fields.setdefault(field.buffer, {})
    found = known.get(depth)
    if found is None or not _lives(found):
        name = f"{field.name}.dual"
        # The shadow of a field stays alive, and is not part of the present block.
        found = known[depth] = field._like(name) if isinstance(field, StandIn) else silently(field._like, name)
        _origins[found.buffer] = ref(field.buffer), depth
    return found


def is_tangent_field(field: Field) -> bool:
    """Whether a field holds tangents of another one."""
    return field.buffer in _origins


def origin_of(tangents: Buffer) -> tuple[Buffer | None, int] | None:
    """What has these tangents, if it is still there, and at which depth; None for other memory."""
    found = _origins.get(tangents)
    return None if found is None else (found[0](), found[1])


def _lives(field: Field) -> bool:
    return field._generation == session.resets


def parts_of(value: Any, lifts: Sequence[PushedMode]) -> list[Any]:
    """The parts that a number has in these blocks: without the mark of the last one, then with it."""
    if not lifts:
        return [value]
    first, second = lifts[-1].parts(value)
    return [*parts_of(first, lifts[:-1]), *parts_of(second, lifts[:-1])]


def number_of(parts: Sequence[Any], lifts: Sequence[PushedMode]) -> Any:
    """The number that has these parts."""
    if not lifts:
        return parts[0]
    half = len(parts) // 2
    return lifts[-1].number(number_of(parts[:half], lifts[:-1]), number_of(parts[half:], lifts[:-1]))


def fields_of(field: Field, lifts: Sequence[PushedMode]) -> list[Field]:
    """The parts of a field. Raises `DifferentiationError` for one that is constant."""
    if not lifts:
        return [field]
    tangents = lifts[-1].tangent_field(field)
    if tangents is None:
        raise DifferentiationError(f"'{field.name}' was declared to be constant", caller())
    return [*fields_of(field, lifts[:-1]), *fields_of(tangents, lifts[:-1])]


class Unrecorded(Recorder):
    """The base of a block of pushforwards outside any recording."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace


class PushedMode(Recorder):
    """The recorder of a block at this `depth` inside of the recording `base`. `again`: a block whose tangents it
    continues in another recording: its numbers and tangent fields are the same.
    """

    gradients = None
    takes_custom = False
    #: whether duals hold ordinary values, the results of an inner block
    duals_are_values = False
    #: a trace in forward mode that this block goes on for
    adopted: Trace | None = None

    def __init__(self, base: Recorder, depth: int, span: Span | None, again: PushedMode | None = None) -> None:
        self.base = base
        self.depth = depth
        self.opened = span
        self.opened_within = base.opened_notes()
        self.again = again
        self.trace = base.trace.inner([])
        self.trace.computes = self
        self.clears_duals = base.clears_duals
        #: gradients and duals that hold the results of finished blocks
        self.values = base.shadows_with_values
        #: memory declared constant that holds varying values, and where these were written
        self.lost: dict[Buffer, Span] = {} if again is None else dict(again.lost)
        self._parts: dict[int, tuple[Any, Any]] = {}
        self.used: dict[Buffer, Field] = {}
        self.root.deepest = max(self.root.deepest, depth)

    @property
    def root(self) -> Recorder:
        return self.base.root

    @property
    def lifts(self) -> list[PushedMode]:
        return [*self.base.lifts, self]

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
        self.lost.update(lost)

    def goes_on_over(self, base: PushedMode) -> None:
        """That is what the recording around is from now on."""
        self.base, self.trace.outer = base, base.trace
        self.duals_are_values = base.duals_are_values

    @contextmanager
    def running(self) -> Iterator[None]:  # type: ignore[override]
        """A block that is followed."""
        around = self.base
        with recording_as(self):
            yield
        if self.base is not around:
            recorder.set(self.base)

    def below(self) -> AbstractContextManager[None]:
        """A block recorded only by the outer recording."""
        return recording_as(self.base)

    def close(self) -> None:
        """Free its numbers and shadows; the latter are set to zero."""
        with self.below():
            for field in list(self.used.values()):
                note_python_write(field.buffer, ..., 0.0)
                field.memory.clear()
                del self.used[field.buffer]
        self.trace.close()
        self.has_ended = True

    def forget(self) -> None:
        """The same where the recording around is over."""
        self.used = {}
        self.trace.close()
        self.has_ended = True

    # ---- numbers and their parts

    def parts(self, value: Any) -> tuple[Any, Any]:
        """The value and the tangent of a number."""
        if type(value) is not Traced or not value.number:
            return value if type(value) is Traced and value.is_captured else stored(value), 0.0
        block: PushedMode | None = self
        while block is not None:
            if value.trace is block.trace:
                return block._parts[value.number]
            block = block.again
        if value.trace is self.adopted:
            return value.value, value.tangent
        return value, 0.0

    def number(self, value: Any, tangent: Any) -> Traced:
        """A number of these parts."""
        found = self.trace.new(value)
        self.give(found, value, tangent)
        return found

    def give(self, number: Traced, value: Any, tangent: Any) -> None:
        """A number gets its parts."""
        self._parts[number.number] = value, tangent

    def computed(self, rule: ScalarRule, value: float, operands: Sequence[Traced | float]) -> Traced:
        parts = [self.parts(one) for one in operands]
        with self.below():
            found = computed_as(rule, value, [primal for primal, _ in parts])
            varying = [type(along) is Traced or along != 0 for _, along in parts]
            kinds = [
                kind_of_dual(one) if varies else ConstantDual for one, varies in zip(operands, varying, strict=True)
            ]
            given = [kind(one) for kind, (one, _) in zip(kinds, parts, strict=True)]
            tangent: Any = 0.0
            for k, (_, along) in enumerate(parts):
                if varying[k]:
                    tangent = tangent + rule.adjoints(Dual(along), Dual(found), *given)[k].value
        made = self.number(found, tangent)
        made.is_sum_of_squares = rule.squares is not None and rule.squares(*operands)
        return made

    # ---- memory

    def tangent_field(self, field: Field) -> Field | None:
        """The shadow with a field's tangents; None for constants."""
        if self._is_constant(field.buffer):
            return None
        found = tangent_field(field, self.depth)
        if found.buffer not in self.used:
            self._use(found, field)
            self.making(found.buffer, field.buffer)
        return found

    @staticmethod
    def _is_constant(buffer: Buffer) -> bool:
        """Whether its contents have no derivative, by type or by the user's declaration."""
        return buffer.dtype.kind != "f" or (buffer.no_adjoint and buffer.no_tangent)

    def _use(self, found: Field, of: Field) -> None:
        """`found` are the tangents `of` a field."""
        if self.again is not None:
            self.again._use(found, of)
        self.used[found.buffer] = found

    def tangents_of(self, buffer: Buffer) -> Field | None:
        """The same of the field with this buffer."""
        if self._is_constant(buffer):
            return None
        if (known := self.known_tangents(buffer)) is not None:
            return known
        field = next((f for f in list(session.fields) if f.buffer is buffer), None)
        return None if field is None else self.tangent_field(field)

    def _tangents_read(self, buffer: Buffer) -> Field | None:
        """The same for memory that is only read: it is constant if it is declared without a shadow and holds no
        varying values.
        """
        if buffer.adjoint is None and buffer.tangent is None and buffer.primal is None:
            return self.known_tangents(buffer)
        return self.tangents_of(buffer)

    def _has_tangents(self, buffer: Buffer) -> bool:
        """Whether it holds a value, not a derivative."""
        primal = buffer.primal
        if primal is None or buffer in self.values:
            return True
        return self.duals_are_values and primal.primal is None and buffer is primal.tangent

    def known_tangents(self, buffer: Buffer) -> Field | None:
        """The same where this block has used it already."""
        known = _tangent_fields.get(buffer, {}).get(self.depth)
        return known if known is not None and self._uses(known) else None

    def _uses(self, found: Field) -> bool:
        return found.buffer in self.used or (self.again is not None and self.again._uses(found))

    def point(self, field: Field, direction: Any) -> None:
        """Set the tangents of a field: an array, or the values of another field."""
        own = self.tangent_field(field)
        if own is None:
            raise DifferentiationError(f"'{field.name}' was declared to be constant", caller())
        with self.below():
            if isinstance(direction, Field):
                note_python_write(own.buffer, ..., None, direction.buffer)
                hold(own.buffer, held_now(direction.buffer))
            else:
                self._store(own, ..., np.reshape(direction, numbers(own.buffer).shape))

    @staticmethod
    def _store(field: Field, position: Any, value: Any) -> None:
        note_python_write(field.buffer, position, value)
        store(field.buffer, position, value)

    # ---- what runs

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        pushforward, given = self.pushed(instance, values)
        with self.below():
            if session.watchers:
                note_launch_outside(pushforward, given)
            native = self.base.launching(pushforward, given) or pushforward.primal
        return _Launch(self, instance, native, given)

    def pushed(self, instance: Instance, values: tuple[Any, ...]) -> tuple[Instance, tuple[Any, ...]]:
        """The pushforward of a kernel that is launched with these values, and what it is launched with."""
        self._refuse_shadows(instance)
        specialisation = instance.specialisation
        count = len(specialisation.arrays)
        arrays: tuple[BoundArray, ...] = values[:count]
        scalars = values[count:]
        self._refuse_lost(instance)
        further = [None if one.buffer is None else self.tangents_of(one.buffer) for one in arrays]
        pushforward = self._pushforward(instance, arrays, further)
        kinds = [t.kind for t in instance.primal.parameters]
        pairs = [self.parts(one) if kind == "f" else (one, 0.0) for kind, one in zip(kinds, scalars, strict=True)]
        tangents = [along for kind, (_, along) in zip(kinds, pairs, strict=True) if kind == "f"]
        bound = [
            bound_of(own, len(formal.shape))
            for formal, own in zip(specialisation.arrays, further, strict=True)
            if own is not None
        ]
        given = (*arrays, *bound, *[primal for primal, _ in pairs], *tangents)
        pushed = pushforward.specialisation
        assert isinstance(pushed, PushedSpecialisation)
        for path in pushed.to_constants:
            self.lost.setdefault(path.buffer, path.span)
        return pushforward, given

    def launched(self) -> None:
        self.base.launched()

    def _refuse_shadows(self, instance: Instance) -> None:
        touched = instance.specialisation.accesses()
        for buffer in touched.loaded | touched.written:
            if not self._has_tangents(buffer):
                raise DifferentiationError(
                    f"'{buffer.name}' is used in a kernel whose derivative is differentiated twice more",
                    instance.specialisation.source.span,
                    hint="copy it into a field of its own before",
                    notes=self.opened_notes(),
                )

    def _refuse_lost(self, instance: Instance) -> None:
        """Raise for a read of varying values in memory that was declared constant."""
        specialisation = instance.specialisation
        for buffer in specialisation.accesses().loaded if self.lost else ():
            if buffer in self.lost:
                self._refuse_reading(buffer, Note("from there this kernel reads them", specialisation.source.span))

    def _pushforward(
        self, instance: Instance, arrays: Sequence[BoundArray], further: Sequence[Field | None]
    ) -> Instance:
        """The pushforward of a kernel, for arrays with these shadows."""
        specialisation = instance.specialisation
        touched = specialisation.accesses()
        fields = sorted(
            [b for b in touched.loaded | touched.written if b.kind is BufferKind.FIELD and b.dtype.kind == "f"],
            key=lambda b: b.name,
        )
        pairs = [(b, self.tangents_of(b) if b in touched.written else self._tangents_read(b)) for b in fields]
        kinds = tuple([None if one is None else (one.has_grad, one.has_dual, _has_second(one)) for one in further])
        key = (self.depth, kinds, *[None if own is None else id(own.buffer) for _, own in pairs])
        known = instance.pushforwards
        found = known.get(key)
        if found is None:
            memory_tangents = {buffer: own.buffer for buffer, own in pairs if own is not None}
            made: list[Buffer] = []
            for formal, own in zip(specialisation.arrays, further, strict=True):
                if own is not None:
                    kind = array_kind(
                        formal.dtype,
                        formal.rank,
                        formal.element,
                        own.has_grad,
                        own.has_dual,
                        _has_second(own),
                        noalias=formal.noalias,
                    )
                    memory_tangents[formal] = formal_array(f"{formal.name}.dual", kind)
                    made.append(memory_tangents[formal])
            found = known[key] = Instance(PushedSpecialisation(specialisation, memory_tangents, made))
        return found

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if source is not None:
            self._base_writes(buffer, position, None, source)
            given = self._tangents_read(source)
            own = self.known_tangents(buffer) if given is None else self.tangents_of(buffer)
            self._note_constants(buffer, source, varies=given is not None, whole=position is ...)
            if own is not None:
                with self.below():
                    held = None if given is None else given.buffer
                    note_python_write(own.buffer, position, 0.0 if held is None else None, held)
                    copy_tangents(own.buffer, position, held)
            return
        values, tangents = self._split(value)
        self._base_writes(buffer, position, values, None)
        varies = self._has_tangents(buffer) and (type(tangents) is not float or tangents != 0)
        self._note_constants(buffer, None, varies=varies, whole=position is ...)
        own = self.tangents_of(buffer) if varies else self.known_tangents(buffer)
        if own is not None:
            with self.below():
                self._store(own, position, tangents)

    def _note_constants(self, buffer: Buffer, source: Buffer | None, *, varies: bool, whole: bool) -> None:
        """Note a write by Python to, or from, memory that may be declared constant."""
        is_constant = buffer.dtype.kind == "f" and self._is_constant(buffer)
        if source in self.lost and not is_constant:
            self._refuse_reading(source, Note(f"from there they are copied to '{buffer.name}'", caller()))
        if is_constant and (varies or source in self.lost):
            self.lost.setdefault(buffer, caller())
        elif whole:
            self.lost.pop(buffer, None)

    def _refuse_reading(self, buffer: Buffer, note: Note) -> NoReturn:
        raise broken_gradient_path(buffer.name, self.lost[buffer], [note], declared=True)

    def _base_writes(self, buffer: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        with self.below():
            self.base.writing(buffer, position, value, source)

    def _split(self, value: Any) -> tuple[Any, Any]:
        """The values and the tangents of a number or of an array of numbers."""
        if not self.trace.holds(value):
            return value, 0.0
        array = traced_array(value)
        pairs = [self.parts(one) for one in array.ravel().tolist()]
        first, second = [objects([pair[k] for pair in pairs], array.shape) for k in (0, 1)]
        return first[()], second[()]

    def number_at(self, buffer: Buffer, position: tuple[int, ...], value: float) -> Any:
        own = self._tangents_taken(buffer)
        with self.below():
            primal = self.base.number_at(buffer, position, value)
            if own is None:
                return primal
            tangent = self.base.number_at(own.buffer, position, element_at(own.buffer, position))
        return self.number(primal, tangent)

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        own = self._tangents_taken(buffer)
        with self.below():
            values = self.base.reading(buffer, position, value)
            if own is None:
                return values
            if not buffer.element:
                tangents = self.base.reading(own.buffer, position, element_at(own.buffer, position))
                return self.number(values, tangents)
            held = [element_at(own.buffer, (*position, *component)) for component in np.ndindex(buffer.element)]
            tangents = self.base.reading(own.buffer, position, objects(held, buffer.element))
        pairs = zip(np.ravel(values).tolist(), np.ravel(tangents).tolist(), strict=True)
        return objects([self.number(*pair) for pair in pairs], buffer.element)

    def _tangents_taken(self, buffer: Buffer) -> Field | None:
        """The shadow of memory that Python reads."""
        if buffer in self.lost:
            self._refuse_reading(buffer, Note("from there Python reads them", caller()))
        return self._tangents_read(buffer) if self._has_tangents(buffer) else None

    def making(self, buffer: Buffer, of: Buffer | None = None) -> None:
        self.base.making(buffer, of)

    def made_by_user(self, field: Field) -> None:
        self.base.made_by_user(field)

    def taking(self, buffer: Buffer) -> None:
        self.base.taking(buffer)
        own = self.known_tangents(buffer)
        if buffer in self.lost or (own is not None and (active_listener() is not None or numbers(own.buffer).any())):
            self.trace.note_taken_out()

    def sharing(self, buffer: Buffer) -> None:
        self.taking(buffer)
        self.base.sharing(buffer)

    def refuse(self, name: str, span: Span) -> NoReturn:
        """Raise for an operation with a custom derivative, whose own derivative is unknown."""
        raise DifferentiationError(
            f"'{name}' cannot run inside of three derivatives: the derivatives of its gradient are not known",
            span,
            notes=self.opened_notes(),
        )

    def computing(self, computation: Computation) -> None:
        with self.below():
            computation.run()
            computation.push_further(self.tangents_of)


class _Launch:
    """The pushforward that runs in place of a kernel."""

    def __init__(self, block: PushedMode, instance: Instance, native: Any, given: tuple[Any, ...]) -> None:
        self._block = block
        self._instance = instance
        self._native = native
        self._given = given

    def launch(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run with these arrays; the floats that the kernel returns come as numbers of the block."""
        count = len(self._instance.specialisation.arrays)
        with self._block.below():
            results = self._native.launch((*values[:count], *self._given[count:]))
        kinds = [t.kind for t in self._instance.primal.results]
        tangents = iter(results[len(kinds) :])
        return tuple(
            [
                self._block.number(value, next(tangents)) if kind == "f" else value
                for kind, value in zip(kinds, results, strict=False)
            ]
        )


def _has_second(field: Field) -> bool:
    return field.has_grad and field.grad.has_dual
