"""The tangents of a forward layer in the fields' own duals (`forward.py`), and in temporary ones of memory without."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.compiler.launch.access_summary import AccessSummary
from tinote.compiler.requests import TANGENT, Derivative, Request
from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer, BufferKind
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.number_flow import PUSHFORWARD, NumberFlow, look_for_plain
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.temporary_adjoints import (
    LaunchWithTemporaries,
    SweepAdjoints,
    copy_tangents,
    tangent_of,
    temporary_shadow,
)
from tinote.lang.ad.journal.touched_gradients import fields_with_gradients
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import store
from tinote.lang.data.traced import Trace, Traced, arranged, constants
from tinote.lang.kernels.arguments import (
    Arguments,
    ExternalArray,
    arguments_of,
    may_have_temporary,
    request_with_temporaries,
)
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import note_overwriting
from tinote.source import NOWHERE, caller

_GRADIENT = Request(Derivative.FORWARD_OVER_REVERSE)


class OwnDuals:
    """Those of all fields. `temporary`: the duals of memory without one that holds values which vary."""

    is_own = True
    #: The gradient of a kernel is one more computation, whose tangents are those of adjoints.
    gradients: Request | None = _GRADIENT
    depth = 0

    def __init__(self, temporary: dict[Buffer, Buffer] | None = None) -> None:
        self.temporary = {} if temporary is None else temporary
        self._temporaries = SweepAdjoints((), self.temporary)
        self.lost = LostValues(tangents=True)
        #: launches without arrays that have temporary duals, and how many of these there were
        self._known: dict[tuple[Instance, Request], tuple[int, Arguments]] = {}
        #: the memory used by launches, once for each access, and by Python: whether it was written
        self._launched: dict[int, AccessSummary] = {}
        self._by_python: dict[Buffer, bool] = {}

    def clear(self) -> None:
        """Drop what is temporary."""
        self.temporary.clear()
        self._temporaries = SweepAdjoints((), self.temporary)
        self._known = {}

    def take_own(self, layer: Layer) -> None:
        """Fields have got duals of their own: these hold the tangents from now on."""
        for buffer, held in list(self.temporary.items()):
            if buffer.tangent is not None:
                layer.begin_duals([buffer.tangent])
                numbers(buffer.tangent)[...] = numbers(held)
                del self.temporary[buffer]
        self._known = {}

    def used(self) -> dict[Buffer, bool]:
        """The memory used so far, and whether it was written."""
        found = dict(self._by_python)
        for touched in list(self._launched.values()):
            found = {**dict.fromkeys(touched.loaded, False), **found, **dict.fromkeys(touched.written, True)}
        return found

    def _uses(self, layer: Layer, buffer: Buffer, *, writes: bool = False) -> None:
        """Python uses a field."""
        if writes:
            self._by_python[buffer] = True
        else:
            self._by_python.setdefault(buffer, False)
        begin_duals_of(layer, buffer)

    def of(self, layer: Layer, buffer: Buffer) -> Buffer | None:
        """The dual of a field, if there is one."""
        begin_duals_of(layer, buffer)
        return tangent_of(buffer, self.temporary)

    def add(self, buffer: Buffer) -> None:
        """Give a temporary dual to memory that is about to hold varying values."""
        if buffer not in self.temporary and may_have_temporary(buffer, tangents=True):
            self.temporary[buffer] = temporary_shadow(buffer, "dual")

    # ---- launches

    def launching(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The kernel is launched in its version with tangents."""
        trace = layer.trace
        takes = bool(values) and Traced in map(type, values)
        active = takes and any(type(value) is Traced and trace.is_active(value) for value in values)
        numbers_flow = active or instance.returns_floats
        arguments = arguments_of(instance, values, PUSHFORWARD if numbers_flow else TANGENT)
        arguments.refuse_shared()
        touched = arguments.accesses
        self._launched[id(touched)] = touched
        layer.begin_duals(arguments.duals)
        if touched.written and any(b.primal is not None and b.tangent is None for b in touched.written):
            self._give_gradients_duals(layer, instance)
        arguments = self._with_temporaries(instance, arguments)
        self.lost.launch_forward(arguments, self.temporary, active=active)
        self.lost.stores_to_declared(arguments)
        if trace.root.taken_out is not None:
            look_for_plain(trace, values, arguments)
        request = arguments.request
        native = LaunchWithTemporaries(self._temporaries, arguments, request) if request.temporaries else None
        if not numbers_flow:
            return native or instance.specialisation.code(TANGENT)
        flow = NumberFlow(trace, instance, tangents=True)
        flow.runs = native
        return flow

    def launched(self, layer: Layer) -> None:
        """Active values may be in an array that any code may read."""
        if self.lost.spans and any(isinstance(buffer, ExternalArray) for buffer in self.lost.spans):
            layer.trace.note_taken_out()

    def _with_temporaries(self, instance: Instance, plain: Arguments) -> Arguments:
        """The launch with temporary duals where varying values pass through memory without one."""
        if not self.temporary and not plain.stores_to_none:
            return plain
        known = self._known.get((instance, plain.request))
        if known is not None and known[0] == len(self.temporary):
            return known[1]
        found, request = plain, request_with_temporaries(plain, self.temporary)
        if request.temporaries:
            found = Arguments(plain.specialisation, plain.values, request)
            for buffer in found.temporaries:
                self.add(buffer)
        found.refuse_broken_paths()
        if not found.values:
            self._known[instance, plain.request] = len(self.temporary), found
        return found

    def _give_gradients_duals(self, layer: Layer, instance: Instance) -> None:
        """A kernel writes to gradients that have no dual. Raises `DifferentiationError` where it is too late."""
        self.preparing_gradient(layer)
        for buffer in instance.specialisation.accesses().written:
            if buffer.primal is not None and buffer.tangent is None and buffer.kind is BufferKind.ARRAY:
                raise DifferentiationError(
                    f"'{buffer.name}', which this kernel writes, has no dual",
                    instance.specialisation.source.span,
                    hint=f"give it one before: {buffer.name}.ensure_dual()",
                )

    def preparing_gradient(self, layer: Layer) -> bool:
        """Gradients get duals. Gives whether any had none."""
        missing = [field.grad for field in fields_with_gradients() if not field.grad.has_dual]
        for gradient in missing:
            gradient.ensure_dual()
        return bool(missing)

    def launching_gradient(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The gradient is launched in its version with tangents."""
        arguments = arguments_of(instance, values, _GRADIENT)
        self._launched[id(arguments.accesses)] = arguments.accesses
        self.lost.launch_gradient_forward(arguments, self.temporary)
        layer.begin_duals(arguments.duals)
        begin_duals_of(layer, *arguments.gradients)
        layer.keep_gradients(arguments.gradients)
        if any(type(value) is Traced and layer.trace.is_active(value) for value in values):
            return _GradientOfNumbers(instance, layer.trace)
        return instance.specialisation.code(_GRADIENT)

    def computing(self, layer: Layer, computation: Computation) -> None:
        """The tangents of its results are computed along with their values."""
        values = computation.values()
        for buffer in computation.inputs:
            self._uses(layer, buffer)
        for buffer in computation.written:
            self._uses(layer, buffer, writes=True)
        lost = next((buffer for buffer in computation.inputs if buffer in self.lost.spans), None)
        given = [self.of(layer, buffer) for buffer in computation.inputs]
        if any(one is not None for one in given):
            for buffer in computation.outputs:
                self.add(buffer)
        for buffer in computation.written:
            note_overwriting(buffer)
            self.lost.write(buffer, lost, computation.span, whole=True)
        targets = [self.of(layer, buffer) for buffer in computation.outputs]
        computation.push(given, targets)
        for buffer in computation.clears:
            dual = self.of(layer, buffer)
            if dual is not None:
                numbers(dual)[...] = 0
        computation.store(values)

    # ---- Python

    def read(self, layer: Layer, buffer: Buffer) -> Buffer | None:
        """The dual of memory that Python reads."""
        if buffer in self.lost.spans:
            layer.trace.note_taken_out()
        self._uses(layer, buffer)
        return tangent_of(buffer, self.temporary) if buffer.dtype.kind == "f" else None

    def written(
        self, layer: Layer, buffer: Buffer, value: Any, along: Any, source: Buffer | None, *, whole: bool
    ) -> tuple[Buffer | None, Buffer | None]:
        """Python writes a value with this tangent, or all that is in `source`. Gives the duals of both fields."""
        is_gradient = buffer.primal is not None and buffer.primal.adjoint is buffer
        given = None if source is None else self.of(layer, source)
        if source is not None:
            self._by_python.setdefault(source, False)
        self._uses(layer, buffer, writes=True)
        if is_gradient:
            layer.keep_gradients([buffer])
        if given is not None:
            self.add(buffer)
        if whole:
            self.lost.write(buffer, source, NOWHERE if source is None else caller(), whole=True)
        if is_gradient and buffer.tangent is None:
            self.preparing_gradient(layer)
        elif source is None and buffer.primal is None and buffer.dtype.kind == "f":
            if layer.trace.root.taken_out is not None:
                layer.trace.note_plain(value, f"'{buffer.name}'")
            if _varies(along):
                self.add(buffer)
        return tangent_of(buffer, self.temporary), given

    def put(self, layer: Layer, tangents: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        """They are stored: nothing records that."""
        if source is not None or (type(value) is float and value == 0):
            copy_tangents(tangents, position, source)
        else:
            store(tangents, position, _arranged(value))

    def taken(self, layer: Layer, buffer: Buffer) -> None:
        """Tangents that are not zero are lost."""
        self._uses(layer, buffer)
        tangent = tangent_of(buffer, self.temporary)
        if buffer in self.lost.spans or (tangent is not None and numbers(tangent).any()):
            layer.trace.note_taken_out()

    def shared(self, buffer: Buffer) -> None:
        """Temporary tangents are not known any more."""
        if buffer in self.temporary:
            numbers(self.temporary[buffer])[...] = 0


def begin_duals_of(layer: Layer, *buffers: Buffer) -> None:
    """The duals of these fields are about to be used, and those that are duals themselves."""
    for one in buffers:
        if one.tangent is not None:
            layer.begin_duals([one.tangent])
        if one.primal is not None and one.primal.tangent is one:
            layer.begin_duals([one])


def _arranged(along: Any) -> Any:
    return arranged(along.ravel().tolist(), along.shape) if isinstance(along, np.ndarray) else along


def _varies(along: Any) -> bool:
    """Whether any of these tangents may be other than zero."""
    found = _arranged(along)
    return type(found) is Traced or (isinstance(found, np.ndarray) and found.dtype == object) or bool(np.any(found))


class _GradientOfNumbers:
    """The gradient of a kernel with traced numbers as arguments, in its version with tangents."""

    def __init__(self, instance: Instance, trace: Trace) -> None:
        self._instance = instance
        self._trace = trace

    def launch(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run with the values of the kernel's own launch; results and their adjoints take no part."""
        specialisation = self._instance.specialisation
        kinds = [t.kind for t in self._instance.primal.parameters]
        floats = [v for kind, v in zip(kinds, values[len(specialisation.arrays) :], strict=False) if kind == "f"]
        tangents = [v.tangent if type(v) is Traced and self._trace.is_active(v) else 0.0 for v in floats]
        nothing = [0.0] * self._instance.returns_floats
        code = specialisation.code(Request(Derivative.FORWARD_OVER_REVERSE, arguments=True))
        return code.launch((*constants(values), *nothing, *tangents, *nothing))
