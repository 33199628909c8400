"""The tangents of a forward layer in fields of their own (`forward.py`), so that a recording below differentiates them.

The tangents of a field are in one that has a gradient and a dual where the field has them. A launch becomes one of the
kernel's pushforward.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, ref

from tinote.compiler.launch.native import BoundArray
from tinote.compiler.pushed import PushedSpecialisation
from tinote.compiler.requests import Request
from tinote.errors import DifferentiationError, Note, broken_gradient_path
from tinote.ir.buffers import Buffer, BufferKind
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.temporary_adjoints import copy_tangents
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import store
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import StandIn, array_kind, bound_of, formal_array
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import note_launch_outside, note_python_write, session
from tinote.runtime.seam import active_listener, silently
from tinote.source import Span, caller

_name = attrgetter("name")

#: The tangents of fields, by depth; they go with their fields.
_tangent_fields: WeakKeyDictionary[Buffer, dict[int, Field]] = WeakKeyDictionary()

#: Of each of them: whose tangents they are, and at which depth.
_origins: WeakKeyDictionary[Buffer, tuple[ref[Buffer], int]] = WeakKeyDictionary()


def tangent_field(field: Field, depth: int) -> Field:
    """The shadow with a field's tangents at this depth: zeros, unless a block of this depth uses it."""
    known = _tangent_fields.setdefault(field.buffer, {})
    found = known.get(depth)
    if found is None or found._generation != session.resets:
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


class TangentFields:
    """Those of this depth, and those of a layer that the present one continues (`Forward.again`)."""

    is_own = False
    #: where it is, in messages
    where = "inside of three derivatives"
    gradients: Request | None = None

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.used: dict[Buffer, Field] = {}
        #: memory declared constant that holds varying values, and where these were written
        self.lost: dict[Buffer, Span] = {}

    def clear(self) -> None:
        """Set those in use to zero."""
        for field in list(self.used.values()):
            note_python_write(field.buffer, ..., 0.0)
            field.memory.clear()
            del self.used[field.buffer]

    def of_field(self, layer: Layer, field: Field) -> Field | None:
        """The shadow with a field's tangents; None for constants."""
        if _is_constant(field.buffer):
            return None
        found = tangent_field(field, self.depth)
        if found.buffer not in self.used:
            self._use(layer, found, field)
            layer.making(found.buffer, field.buffer)
        return found

    def _use(self, layer: Layer, found: Field, of: Field) -> None:
        """`found` are the tangents `of` a field."""
        if layer.again is not None:
            layer.again.fields._use(layer.again, found, of)
        self.used[found.buffer] = found

    def of(self, layer: Layer, buffer: Buffer) -> Field | None:
        """The same of the field with this buffer."""
        if _is_constant(buffer):
            return None
        if (known := self.known(layer, buffer)) is not None:
            return known
        field = next((f for f in list(session.fields) if f.buffer is buffer), None)
        return None if field is None else self.of_field(layer, field)

    def known(self, layer: Layer, buffer: Buffer) -> Field | None:
        """The same where it has been used already."""
        known = _tangent_fields.get(buffer, {}).get(self.depth)
        return known if known is not None and self._uses(layer, known) else None

    def _uses(self, layer: Layer, found: Field) -> bool:
        again = layer.again
        return found.buffer in self.used or (again is not None and again.fields._uses(again, found))

    def _loaded(self, layer: Layer, buffer: Buffer) -> Field | None:
        """The same for memory that is only read: it is constant if it is declared without a shadow and holds no
        varying values.
        """
        if buffer.adjoint is None and buffer.tangent is None and buffer.primal is None:
            return self.known(layer, buffer)
        return self.of(layer, buffer)

    def _holds_values(self, layer: Layer, buffer: Buffer) -> bool:
        """Whether it holds values, not derivatives. Where nothing below has tangents, all duals do."""
        primal = buffer.primal
        if primal is None or buffer in layer.values:
            return True
        return layer.duals_are_values and primal.primal is None and buffer is primal.tangent

    # ---- launches

    def launching(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The kernel's pushforward is launched, in the layer below."""
        pushforward, given = self.pushed(layer, instance, values)
        with layer.below():
            if session.watchers:
                note_launch_outside(pushforward, given)
            native = layer.base.launching(pushforward, given) or pushforward.primal
        return _Launch(layer, instance, native, given)

    def launched(self, layer: Layer) -> None:
        """So it has in the layer below."""
        layer.base.launched()

    def launching_gradient(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        """It is refused before (`Recorder.gradients`)."""
        raise NotImplementedError

    def pushed(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> tuple[Instance, tuple[Any, ...]]:
        """The pushforward of a kernel that is launched with these values, and what it is launched with."""
        specialisation = instance.specialisation
        self._refuse(layer, instance)
        count = len(specialisation.arrays)
        arrays: tuple[BoundArray, ...] = values[:count]
        further = [None if one.buffer is None else self.of(layer, one.buffer) for one in arrays]
        pushforward = self._pushforward(layer, instance, further)
        given: list[Any] = [*arrays]
        for formal, own in zip(specialisation.arrays, further, strict=True):
            if own is not None:
                given.append(bound_of(own, len(formal.shape)))
        tangents: list[Any] = []
        for parameter, one in zip(instance.primal.parameters, values[count:], strict=True):
            if parameter.kind == "f":
                primal, along = layer.parts(one)
                given.append(primal)
                tangents.append(along)
            else:
                given.append(one)
        pushed = pushforward.specialisation
        assert isinstance(pushed, PushedSpecialisation)
        for path in pushed.to_constants:
            self.lost.setdefault(path.buffer, path.span)
        return pushforward, (*given, *tangents)

    def _refuse(self, layer: Layer, instance: Instance) -> None:
        """Raise for a launch on derivatives, and for a read of varying values in memory that was declared constant."""
        touched, span = instance.specialisation.accesses(), instance.specialisation.source.span
        for buffer in touched.loaded | touched.written:
            if not self._holds_values(layer, buffer):
                raise DifferentiationError(
                    f"'{buffer.name}' is used in a kernel whose derivative is differentiated twice more",
                    span,
                    hint="copy it into a field of its own before",
                    notes=layer.opened_notes(),
                )
        for buffer in touched.loaded if self.lost else ():
            if buffer in self.lost:
                self._refuse_reading(buffer, Note("from there this kernel reads them", span))

    def _pushforward(self, layer: Layer, instance: Instance, further: Sequence[Field | None]) -> Instance:
        """The pushforward of a kernel, for arrays with these shadows."""
        specialisation = instance.specialisation
        touched = specialisation.accesses()
        pairs: list[tuple[Buffer, Field | None]] = []
        for b in sorted(touched.loaded | touched.written, key=_name):
            if b.kind is BufferKind.FIELD and b.dtype.kind == "f":
                pairs.append((b, self.of(layer, b) if b in touched.written else self._loaded(layer, b)))
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

    def computing(self, layer: Layer, computation: Computation) -> None:
        """Its tangents are computed by further computations."""
        with layer.below():
            computation.run()
            computation.push_further(layer.tangents_of)

    # ---- Python

    def read(self, layer: Layer, buffer: Buffer) -> Buffer | None:
        """The shadow of memory that Python reads."""
        if buffer in self.lost:
            self._refuse_reading(buffer, Note("from there Python reads them", caller()))
        own = self._loaded(layer, buffer) if self._holds_values(layer, buffer) else None
        return None if own is None else own.buffer

    def written(
        self, layer: Layer, buffer: Buffer, value: Any, along: Any, source: Buffer | None, *, whole: bool
    ) -> tuple[Buffer | None, Buffer | None]:
        """Python writes a value with this tangent, or all that is in `source`. Gives the shadows of both fields."""
        given = None if source is None else self._loaded(layer, source)
        varies = given is not None
        if source is None:
            varies = self._holds_values(layer, buffer) and (type(along) is not float or along != 0)
        self._note_constants(buffer, source, varies=varies, whole=whole)
        own = self.of(layer, buffer) if varies else self.known(layer, buffer)
        return None if own is None else own.buffer, None if given is None else given.buffer

    def put(self, layer: Layer, tangents: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        """A write in the layer below."""
        with layer.below():
            if source is None:
                note_python_write(tangents, position, value)
                store(tangents, position, value)
            else:
                note_python_write(tangents, position, None, source)
                copy_tangents(tangents, position, source)

    def _note_constants(self, buffer: Buffer, source: Buffer | None, *, varies: bool, whole: bool) -> None:
        """Note a write by Python to, or from, memory that may be declared constant."""
        is_constant = buffer.dtype.kind == "f" and _is_constant(buffer)
        if source in self.lost and not is_constant:
            self._refuse_reading(source, Note(f"from there they are copied to '{buffer.name}'", caller()))
        if is_constant and (varies or source in self.lost):
            self.lost.setdefault(buffer, caller())
        elif whole:
            self.lost.pop(buffer, None)

    def _refuse_reading(self, buffer: Buffer, note: Note) -> NoReturn:
        raise broken_gradient_path(buffer.name, self.lost[buffer], [note], declared=True)

    def taken(self, layer: Layer, buffer: Buffer) -> None:
        """Tangents that are not zero are lost."""
        own = self.known(layer, buffer)
        if buffer in self.lost or (own is not None and (active_listener() is not None or numbers(own.buffer).any())):
            layer.trace.note_taken_out()

    def shared(self, buffer: Buffer) -> None:
        """The tangents stay."""


class _Launch:
    """The pushforward that runs in place of a kernel."""

    def __init__(self, layer: Layer, instance: Instance, native: Any, given: tuple[Any, ...]) -> None:
        self._layer = layer
        self._instance = instance
        self._native = native
        self._given = given

    def launch(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run with these arrays; the floats that the kernel returns come as numbers of the layer."""
        count = len(self._instance.specialisation.arrays)
        with self._layer.below():
            results = self._native.launch((*values[:count], *self._given[count:]))
        kinds = self._instance.primal.results
        if not kinds:
            return ()
        tangents = iter(results[len(kinds) :])
        found = zip(kinds, results, strict=False)
        return tuple([self._layer.number(one, next(tangents)) if kind.kind == "f" else one for kind, one in found])


def _is_constant(buffer: Buffer) -> bool:
    """Whether its contents have no derivative, by type or by the user's declaration."""
    return buffer.dtype.kind != "f" or (buffer.no_adjoint and buffer.no_tangent)


def _has_second(field: Field) -> bool:
    return field.has_grad and field.grad.has_dual
