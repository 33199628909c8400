"""Forward mode along one direction: launches inside the block compute tangents along with their values
(`fwd_mode.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self

import numpy as np

from tinote.compiler.launch.access_summary import AccessSummary
from tinote.compiler.requests import TANGENT, Derivative, Request
from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer, BufferKind
from tinote.lang.ad.functional.seeds import seed_array, store_seed
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.number_flow import PUSHFORWARD, NumberFlow, look_for_plain
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.temporary_adjoints import (
    NO_ADJOINTS,
    LaunchWithTemporaries,
    SweepAdjoints,
    tangent_of,
    temporary_shadow,
    write_tangents,
)
from tinote.lang.ad.journal.touched_gradients import give_gradients_duals
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import element_at
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, constants, holds_traced, objects, tangents_in, varies
from tinote.lang.kernels.arguments import (
    Arguments,
    ExternalArray,
    arguments_of,
    may_have_temporary,
    request_with_temporaries,
)
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.owners import (
    claim,
    clear_own_duals,
    close_recording,
    open_recording,
    refuse_same_values,
    use,
)
from tinote.lang.session.state import Recorder, memory_of, note_overwriting, recorder, session
from tinote.source import NOWHERE, Span, caller


class Further(Protocol):
    """A recorder that continues with the tangents of a block."""

    @property
    def recorder(self) -> Recorder:
        """It, or what has its place."""
        ...

    def end(self, mode: ForwardMode, returned: Any) -> Any:
        """Return the tangents to the block.

        `returned`: a result; a number of this recorder is converted to one of the block.
        """


class ForwardMode(Recorder):
    """The recorder of a block. At entry the duals of all fields are set to zero and those of `param`, fields, to the
    directions `seed`, one for each; at exit the duals of `loss`, fields, hold the product, and those of `param` are set
    back to zero. Raises `DifferentiationError`.
    """

    #: A write from Python inside of the block stores a number with its tangent, that of a constant is zero.
    clears_duals = True
    #: The gradient of a kernel is one more computation, whose tangents are those of adjoints.
    gradients: Request = Request(Derivative.FORWARD_OVER_REVERSE)
    #: whether tapes and blocks can be opened inside
    takes_blocks = True
    takes_custom = False
    #: whether duals are set to zero at entry
    clears = True

    def __init__(
        self,
        losses: list[Field],
        params: list[Field],
        seeds: Sequence[Any],
        trace: Trace,
        before: ShadowsBefore | None = None,
    ) -> None:
        self._seeds = [direction_of(field, one) for field, one in zip(params, seeds, strict=True)]
        self._follow(losses, params, trace)
        self._before = before
        self.leaves = before is None

    def _follow(self, losses: list[Field], params: list[Field], trace: Trace) -> None:
        self.losses = losses
        self.params = params
        self.trace = trace
        self._is_open = False
        self.opened = caller()
        self._lost = LostValues(tangents=True)
        #: the temporary duals of memory without one that holds values which vary
        self._tangents: dict[Buffer, Buffer] = {}
        self._temporaries = SweepAdjoints((), self._tangents)
        self._further: Further | None = None
        #: saves the duals that it uses, if they are to be restored; else they are results
        self._before: ShadowsBefore | None = None
        #: the duals that it uses
        self.shadows: set[Buffer] = set()
        #: the memory used by launches, once for each access, and by Python: whether it was written
        self._launched: dict[int, AccessSummary] = {}
        self._by_python: dict[Buffer, bool] = {}

    def begin_duals(self, duals: Iterable[Buffer]) -> None:
        """Note that these duals are about to be used: they begin at zero."""
        fresh = [one for one in duals if one not in self.shadows]
        if not fresh:
            return
        self.shadows.update(fresh)
        if self._before is not None:
            self._before.begin_duals(self, fresh)
        else:
            use(self, fresh)
            claim(fresh, clear=self.clears)

    def used(self) -> Mapping[Buffer, bool]:
        found = dict(self._by_python)
        for touched in list(self._launched.values()):
            found = {**dict.fromkeys(touched.loaded, False), **found, **dict.fromkeys(touched.written, True)}
        return found

    def begin_all_duals(self) -> None:
        if self._before is not None:
            self._before.begin_all_duals(self)

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        """These may change."""
        if self._before is not None:
            self._before.keep({gradient: memory_of(gradient) for gradient in gradients})

    def _begin_duals_of(self, *buffers: Buffer | None) -> None:
        for one in buffers:
            if one is not None and one.tangent is not None:
                self.begin_duals([one.tangent])
            if one is not None and one.primal is not None and one.primal.tangent is one:
                self.begin_duals([one])

    @property
    def shadows_with_values(self) -> set[Buffer]:
        # Gradients are values, which have tangents.
        return {field.grad.buffer for field in list(session.fields) if field.buffer.primal is None and field.has_grad}

    @property
    def lost(self) -> Mapping[Buffer, Span]:
        """Memory without a tangent that holds values which vary, and the place where each was written."""
        return self._lost.spans

    def goes_on(self, further: Further) -> None:
        """Another recorder takes its place until the block ends."""
        self._further = further

    @property
    def is_innermost(self) -> bool:
        """Whether no block that was opened later in this context is still open."""
        return recorder.get() is (self if self._further is None else self._further.recorder)

    def put_back(self, returned: Any = None) -> Any:
        """The block's code is over: the duals of fields hold its tangents again, even if another recorder replaced it.
        Returns the function's result, converted to a number of this block if it was one of that recorder.
        """
        further, self._further = self._further, None
        return returned if further is None else further.end(self, returned)

    def nesting(self) -> dict[Buffer, Buffer]:
        """Prepare a reverse sweep with tangents inside this block: fields with a gradient get duals of their own.
        Returns the temporary duals of other memory.
        """
        give_gradients_duals()
        for buffer, temporary in list(self._tangents.items()):
            if buffer.tangent is not None:
                self.begin_duals([buffer.tangent])
                numbers(buffer.tangent)[...] = numbers(temporary)
                del self._tangents[buffer]
        return self._tangents

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A block in which a derivative runs inside of this one."""
        yield

    def __enter__(self) -> Self:
        if recorder.get() is not None:
            refuse_block("forward mode", recorder.get())
        try:
            open_recording(self)
            self._point()
            self._is_open, self.has_ended = True, False
            recorder.set(self)
            return self
        except BaseException:  # an interrupt
            recorder.set(None)
            close_recording(self)
            raise

    def _point(self) -> None:
        """Set all duals."""
        if self._before is not None:
            self._before.hold_for(self)
            self._before.begin_anew()
        elif self.clears:
            clear_own_duals(self.interrupts)
        self.begin_duals([field.dual.buffer for field in (*self.params, *self.losses)])
        for field, direction in zip(self.params, self._seeds, strict=True):
            store_seed(field.dual, direction)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._is_open
        recorder.set(None)
        self._is_open = False
        self.has_ended = True
        self.put_back()
        self.trace.close()
        self._tangents.clear()
        self._temporaries = NO_ADJOINTS
        self._clear_seeds()
        failed = True
        try:
            if error is None:
                refuse_same_values(self)
                failed = False
        finally:
            if self._before is None:
                close_recording(self, failed=failed)

    def _clear_seeds(self) -> None:
        for field in self.params:
            field.dual.fill(0)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The kernel is launched in its version with tangents."""
        takes = bool(values) and Traced in map(type, values)
        active = takes and any(type(value) is Traced and self.trace.is_active(value) for value in values)
        numbers_flow = active or instance.returns_floats
        arguments = arguments_of(instance, values, PUSHFORWARD if numbers_flow else TANGENT)
        arguments.refuse_shared()
        touched = arguments.accesses
        self._launched[id(touched)] = touched
        self.begin_duals(arguments.duals)
        if any(b.primal is not None and b.tangent is None for b in touched.written):
            self._give_gradients_duals(instance)
        arguments = self._with_temporaries(arguments)
        self._lost.launch_forward(arguments, self._tangents, active=active)
        self._lost.stores_to_declared(arguments)
        if self.trace.root.taken_out is not None:
            look_for_plain(self.trace, values, arguments)
        request = arguments.request
        native = LaunchWithTemporaries(self._temporaries, arguments, request) if request.temporaries else None
        if not numbers_flow:
            return native or instance.specialisation.code(TANGENT)
        flow = NumberFlow(self.trace, instance, tangents=True)
        flow.runs = native
        return flow

    def launched(self) -> None:
        if any(isinstance(buffer, ExternalArray) for buffer in self._lost.spans):
            self.trace.note_taken_out()  # an active value is in an array that any code may read

    def _with_temporaries(self, arguments: Arguments) -> Arguments:
        """The launch with temporary duals where varying values pass through memory without one."""
        if not self._tangents and not arguments.stores_to_none:
            return arguments
        request = request_with_temporaries(arguments, self._tangents)
        if request.temporaries:
            arguments = Arguments(arguments.specialisation, arguments.values, request)
            for buffer in arguments.temporaries:
                self._add_temporary(buffer)
        arguments.refuse_broken_paths()
        return arguments

    def _add_temporary(self, buffer: Buffer) -> None:
        if buffer not in self._tangents and may_have_temporary(buffer, tangents=True):
            self._tangents[buffer] = temporary_shadow(buffer, "dual")

    def tangent(self, buffer: Buffer) -> Buffer | None:
        """The dual that a field has in this block, if any."""
        self._begin_duals_of(buffer)
        return tangent_of(buffer, self._tangents)

    def add_temporary(self, buffer: Buffer) -> None:
        """Give a temporary dual to a field that is about to hold varying values."""
        self._add_temporary(buffer)

    def preparing_gradient(self) -> bool:
        missing = [
            f.grad for f in list(session.fields) if f.buffer.primal is None and f.has_grad and not f.grad.has_dual
        ]
        for gradient in missing:
            gradient.ensure_dual()
        return bool(missing)

    def _give_gradients_duals(self, instance: Instance) -> None:
        """A kernel writes to gradients that have no dual. Raises `DifferentiationError` where it is too late."""
        self.preparing_gradient()
        for buffer in instance.specialisation.accesses().written:
            if buffer.primal is not None and buffer.tangent is None and buffer.kind is BufferKind.ARRAY:
                raise DifferentiationError(
                    f"'{buffer.name}', which this kernel writes, has no dual",
                    instance.specialisation.source.span,
                    hint=f"give it one before: {buffer.name}.ensure_dual()",
                )

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The gradient is launched in its version with tangents."""
        arguments = arguments_of(instance, values, self.gradients)
        self._launched[id(arguments.accesses)] = arguments.accesses
        self._lost.launch_gradient_forward(arguments, self._tangents)
        self.begin_duals(arguments.duals)
        self._begin_duals_of(*arguments.gradients)
        self.keep_gradients(arguments.gradients)
        if any(type(value) is Traced and self.trace.is_active(value) for value in values):
            return _GradientOfNumbers(instance, self.trace)
        return instance.specialisation.code(self.gradients)

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        """Write the tangents of the written values to the field's dual."""
        self._by_python[buffer] = True
        if source is not None:
            self._by_python.setdefault(source, False)
        self._begin_duals_of(buffer, source)
        if buffer.primal is not None and buffer.primal.adjoint is buffer:
            self.keep_gradients([buffer])
        if source in self._tangents or (source is not None and source.tangent is not None):
            self._add_temporary(buffer)
        if position is ...:
            self._lost.write(buffer, source, caller() if source is not None else NOWHERE, whole=True)
        if buffer.primal is not None and buffer.tangent is None and buffer is buffer.primal.adjoint:
            self.preparing_gradient()
        elif source is None and buffer.primal is None and buffer.dtype.kind == "f":
            if self.trace.root.taken_out is not None:
                self.trace.note_plain(value, f"'{buffer.name}'")
            if holds_traced(value) and varies(tangents_in(value)):
                self._add_temporary(buffer)
        write_tangents(buffer, position, value, source, self._tangents)

    def computing(self, computation: Computation) -> None:
        """Compute the tangents of its results along with their values."""
        values = computation.values()
        self._by_python = {**dict.fromkeys(computation.inputs, False), **self._by_python}
        self._by_python.update(dict.fromkeys(computation.written, True))
        lost = next((buffer for buffer in computation.inputs if buffer in self._lost.spans), None)
        given = [self.tangent(buffer) for buffer in computation.inputs]
        if any(one is not None for one in given):
            for buffer in computation.outputs:
                self._add_temporary(buffer)
        for buffer in computation.written:
            note_overwriting(buffer)
            self._lost.write(buffer, lost, computation.span, whole=True)
        targets = [self.tangent(buffer) for buffer in computation.outputs]
        computation.push(given, targets)
        for buffer in computation.clears:
            dual = self.tangent(buffer)
            if dual is not None:
                numbers(dual)[...] = 0
        computation.store(values)

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        if buffer in self._lost.spans:
            self.trace.note_taken_out()
        self._by_python.setdefault(buffer, False)
        self._begin_duals_of(buffer)
        tangent = tangent_of(buffer, self._tangents)
        if tangent is None or buffer.dtype.kind != "f":
            return value
        if not buffer.element:
            return self.trace.new(value, element_at(tangent, position))
        tangents = [element_at(tangent, (*position, *component)) for component in np.ndindex(buffer.element)]
        pairs = zip(value.ravel().tolist(), tangents, strict=True)
        return objects([self.trace.new(*pair) for pair in pairs], buffer.element)

    def taking(self, buffer: Buffer) -> None:
        self._by_python.setdefault(buffer, False)
        self._begin_duals_of(buffer)
        tangent = tangent_of(buffer, self._tangents)
        if buffer in self._lost.spans or (tangent is not None and numbers(tangent).any()):
            self.trace.note_taken_out()

    def sharing(self, buffer: Buffer) -> None:
        self.taking(buffer)
        if buffer in self._tangents:
            numbers(self._tangents[buffer])[...] = 0


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


def refuse_block(what: str, outer: Recorder | None) -> NoReturn:
    """Raise for a block that cannot be opened inside of another one, with the lines of both."""
    opened = None if outer is None else outer.opened
    raise DifferentiationError(
        f"{what} cannot be opened inside of this block: it would not be differentiated itself",
        caller(),
        hint="ti.ad.grad, vjp and jvp can be called there",
        notes=[] if opened is None else [Note("inside of this", opened)],
    )


def direction_of(field: Field, seed: Any) -> np.ndarray[Any, Any]:
    """A seed as an array."""
    shape = field.shape + field.element
    if seed is None:
        if math.prod(shape) != 1:
            raise DifferentiationError(
                f"the parameter '{field.name}' has shape {shape}: forward mode needs a seed of that shape", caller()
            )
        seed = np.ones(shape)
    return seed_array(seed, shape, f" of '{field.name}'", "the parameter")
