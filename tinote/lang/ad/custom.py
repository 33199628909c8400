"""Custom VJPs, and blocks of a program without a gradient.

    @ti.ad.grad_replaced
    def forward(scale):
        solve(scale)

    @ti.ad.grad_for(forward)
    def backward(scale):
        solve_adjoint(scale)

Under a tape the launches inside of `forward` are not recorded; in the reverse order, at its place, `backward` is called
with the same arguments. There it finds all fields as they were when `forward` returned, and it may overwrite them:
what the tape has computed, or what is needed further back in it, comes back afterwards; what it writes to other
elements stays (`journal/lasting_writes.py`). It takes the gradients of what `forward` wrote and accumulates into those
of what `forward` read; a launch of `kernel.grad` inside of it does that for one kernel.

Where such a gradient is differentiated itself, it is what is launched to compute it that is: the launches of `forward`
and those of `backward`: along a direction, or, in reverse mode around it and in third derivatives, in blocks of
pushforwards (`functional/pushed_custom.py`).

Of a device function, the gradient is a device function:

    @ti.ad.grad_replaced
    @ti.func
    def inverse(A):
        return A.inverse()

    @ti.ad.grad_for(inverse)
    @ti.func
    def inverse_gradient(A, G):
        B = A.inverse()
        return -(B.transpose() @ G @ B.transpose())

Calls of `inverse` in kernels are then differentiated by it: in reverse mode as it stands, in forward mode by its
transpose, for which it has to be linear in the adjoints; second derivatives are its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from types import MethodType
from typing import Any, overload

from tinote.compiler.requests import Request
from tinote.errors import DifferentiationError, Note
from tinote.ir import primitives
from tinote.ir.nodes import Atomic, Buffer
from tinote.ir.query import walk
from tinote.lang.ad.functional.effects import Effects, in_gradient
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.pushed_custom import CustomInBlocks, WithTangents
from tinote.lang.ad.journal.custom_sweep import CustomSweep, InCustom
from tinote.lang.ad.journal.events import Custom, NumberOf
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced, constants, holds_traced, may_be_computed, plain
from tinote.lang.index_regions import IndexRegion, region_at
from tinote.lang.kernels.access_region import BufferRegions, whole_regions
from tinote.lang.kernels.arguments import Arguments, ExternalArray, observed_arguments
from tinote.lang.kernels.func import Func, with_replacement
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, independent_recordings, recorder, recording_as, session
from tinote.source import NOWHERE, Span, caller

Scratch = Field | Sequence[Field] | Callable[..., Field | Sequence[Field]]


class CustomFunction:
    """A function with a custom VJP; `grad`, called with the same arguments, runs that gradient alone."""

    def __init__(self, function: Callable[..., Any], scratch: Scratch = ()) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._scratch = scratch
        self._name = getattr(function, "__name__", "function")
        self.gradient: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = recorder.get()
        if outer is not None and isinstance(outer.root, Journal):
            return self._record(outer, outer.lifts, caller(), args, kwargs)
        if outer is not None and not outer.takes_custom:
            self._require_agreement(outer, caller(), args, kwargs)
        return self._function(*args, **kwargs)

    def _require_agreement(self, outer: Recorder, span: Span, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """In forward mode, whose tangents are those of the launches: raise unless the gradient gives the same."""
        self._required_gradient(span)
        if holds_traced([*args, *kwargs.values()]):
            args, kwargs = _constants(args, kwargs)
        effects, launches = Effects(keeps=True), session.launches
        journal = Journal()
        with independent_recordings(), ShadowsBefore() as before:
            journal.leave_shadows(before)
            try:
                with effects.listening(), journal.recording():
                    found = self._record(journal, [], span, args, kwargs, around=outer.opened_notes())
                found.require_agreement(journal)
            finally:
                journal.forget()
                effects.start.put_back()
                session.launches = launches

    def _record(
        self,
        outer: Recorder,
        lifts: Sequence[Forward],
        span: Span,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        before: CustomInBlocks | None = None,
        around: Sequence[Note] | None = None,
    ) -> Any:
        """Run the function as a record of the tape below `outer`, in these blocks of pushforwards. `before`: the same,
        if it is repeated. `around`: the blocks in forward mode for which it is tried alone; then the trial is returned.
        """
        tape = outer.root
        assert isinstance(tape, Journal)
        gradient = self._required_gradient(span)
        scratch = self._scratch(*args, **kwargs) if callable(self._scratch) else self._scratch
        if holds_traced([*args, *kwargs.values()]):
            _tell_lost(tape, self._name, span)
            args, kwargs = _constants(args, kwargs)
        tries, around = around is not None, outer.opened_notes() if around is None else around

        def following(
            below: InCustom, tangents: dict[Buffer, Buffer], derivative: Request
        ) -> AbstractContextManager[None]:
            """A block in which the function or its gradient runs: with tangents, where the recording has some."""
            if not derivative.has_tangents:
                return recording_as(below)
            note = Note(f"'{self._name}' is differentiated along a direction here", span)
            return WithTangents(below, tape, tangents, [note, *around]).following()

        def pull(sweep: CustomSweep) -> None:
            block = following(sweep, dict(sweep.adjoints.tangents), sweep.gradients)
            with in_gradient(sweep.read), block if blocks is None else blocks.pulling(block, sweep):
                gradient(*args, **kwargs)

        def again(present: Recorder, _: NumberOf) -> dict[int, Any]:
            before, session.launches = session.launches, launches
            try:
                self._record(present, [*present.lifts, *lifts], span, args, kwargs, blocks)
            finally:
                session.launches = before
            return {}  # numbers come in and out as constants

        launches = session.launches  # the same draws
        custom = Custom(
            self._name, span, pull, BlockEffects(follows=True), scratch=_elements(scratch, span), again=again
        )
        custom.is_function = custom.tells_gradients = True
        blocks = CustomInBlocks(custom, lifts, around, before) if lifts or tries else None
        if blocks is not None:
            tape.deepest = max(tape.deepest, blocks.depth)
        tangents = tape.activity.tangents
        block = following(Inside(tape, custom, around), {} if tangents is None else tangents, tape.derivative)
        with block if blocks is None else blocks.running(block):
            result = self._function(*args, **kwargs)
        tape.custom(custom)
        if tries:
            return blocks
        if may_be_computed(result, {}):
            tape.trace.note_taken_out()
        return result

    @property
    def grad(self) -> Callable[..., Any]:
        """The registered gradient. Raises `DifferentiationError` when there is none."""
        return self._required_gradient(caller())

    def _required_gradient(self, span: Span) -> Callable[..., Any]:
        if self.gradient is None:
            raise DifferentiationError(
                f"the gradient of '{self._name}' is replaced, but no function was registered for it",
                span,
                hint=f"decorate one with @ti.ad.grad_for({self._name})",
                notes=[Note("the function", _definition(self._function))],
            )
        return self.gradient

    @overload
    def __get__(self, owner: None, cls: type) -> CustomFunction: ...

    @overload
    def __get__(self, owner: object, cls: type | None = None) -> _BoundCustomFunction: ...

    def __get__(self, owner: Any, cls: type | None = None) -> CustomFunction | _BoundCustomFunction:
        return self if owner is None else _BoundCustomFunction(self, owner)

    def __repr__(self) -> str:
        return f"<{self._name} with a replaced gradient>"


class _BoundCustomFunction:
    """A method with a custom VJP, bound to its object."""

    def __init__(self, function: CustomFunction, owner: Any) -> None:
        self.function = function
        self.owner = owner
        self.__signature__ = inspect.signature(MethodType(function, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.owner, *args, **kwargs)

    @property
    def grad(self) -> Callable[..., Any]:
        """The registered gradient, bound to the same object."""
        return functools.partial(self.function.grad, self.owner)

    def __repr__(self) -> str:
        return f"<bound {self.function!r}>"


def grad_replaced(function: Callable[..., Any] | None = None, *, scratch: Scratch = ()) -> Any:
    """Give a function a gradient of its own, which `ti.ad.grad_for` registers.

    The function launches kernels, or it is a device function: its calls in kernels are then differentiated by that
    gradient.

    What later launches overwrite is kept for that gradient, up to a sixteenth of `ti.init(memory_limit=...)`. Beyond
    that it is *stale* there: the gradient may give it new values, for example by clearing a grid and computing it
    again, and a launch that reads a stale element before is refused with its line.

    Second derivatives are those of what is launched: a gradient to which the function contributes is differentiated
    through the launches of the function and through those of its gradient. Both have to compute in kernels, by traced
    numbers and by derivatives that they take; what goes through NumPy is refused. Forward mode around a gradient
    (`ti.ad.hvp`, `ti.ad.jvp`, `ti.ad.FwdMode`) takes any.

    Forward mode through the function itself follows its launches; reverse mode around a gradient, and third
    derivatives, take these and those of its gradient. All of them need a custom gradient that is the derivative of what
    the function computes; that is tried along a random direction, and refused otherwise. The function runs twice for
    that in forward mode.

    Parameters
    ----------
    function : callable, optional
        The function. Left out, a decorator is returned.
    scratch : Field, sequence of Field, or callable
        Fields that the gradient computes again, so that they need not be kept at all; or a function of the call's
        arguments that gives them. Floats in them are NaN when the gradient starts; integer fields are kept all the
        same.

    Returns
    -------
    callable
        The function with the place for its gradient.

    Raises
    ------
    DifferentiationError
        For what cannot have a gradient of its own.

    Examples
    --------
    >>> @ti.ad.grad_replaced
    ... @ti.func
    ... def absolute(a):
    ...     return ti.abs(a)
    >>> @ti.ad.grad_for(absolute)
    ... @ti.func
    ... def smooth(a, adjoint):
    ...     return adjoint * ti.tanh(10.0 * a)
    >>> @ti.kernel
    ... def f(a: ti.f64) -> ti.f64:
    ...     return absolute(a)
    >>> ti.ad.grad(f, argnums=0)(0.0)
    0.0
    """
    if function is None:
        return functools.partial(grad_replaced, scratch=scratch)
    if isinstance(function, Func):
        return with_replacement(function)
    _require_function(function, "grad_replaced")
    return CustomFunction(function, scratch)


def grad_for(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the gradient of another one, which `ti.ad.grad_replaced` has made.

    What it writes to elements that nothing earlier in the tape uses stays: a counter, a sum of gradients, a step of an
    optimiser. What the tape itself has computed comes back, and so does what is needed further back in it; where that
    undoes a change, a warning names the line.

    It gets the arguments of the call, a method's object included. The gradient of a device function is a device
    function: it gets the arguments and then the adjoint of each result, and returns an adjoint for each argument that
    is not a template (that of an integer is not used).

    Parameters
    ----------
    primal : callable
        The function whose gradient it is.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    DifferentiationError
        For what cannot be a gradient of `primal`.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def copy():
    ...     y[None] += x[None]
    >>> @ti.ad.grad_replaced
    ... def copy_with_clipped_gradient():
    ...     copy()
    >>> @ti.ad.grad_for(copy_with_clipped_gradient)
    ... def clipped():
    ...     x.grad[None] += min(y.grad[None], 0.5)
    >>> with ti.ad.Tape(y):
    ...     copy_with_clipped_gradient()
    >>> x.grad[None]
    0.5
    """
    if isinstance(primal, Func) and primal.__tinote_replacement__ is not None:
        replacement = primal.__tinote_replacement__

        def register_device(gradient: Callable[..., Any]) -> Callable[..., Any]:
            if not isinstance(gradient, Func):
                raise DifferentiationError(
                    f"the gradient of the device function {primal!r} must be one, too",
                    _definition(gradient),
                    hint="decorate it with @ti.func",
                )
            replacement.gradient = gradient
            return gradient

        return register_device
    if not isinstance(primal, CustomFunction):
        raise DifferentiationError(
            f"{primal!r} is not a function with a replaced gradient",
            caller(),
            hint="decorate it with @ti.ad.grad_replaced first; of a method, name the function in the class",
        )

    def register(gradient: Callable[..., Any]) -> Callable[..., Any]:
        _require_function(gradient, "grad_for")
        primal.gradient = gradient
        return gradient

    return register


def no_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude the launches of a function from tapes: what they compute counts as constant.

    Its `grad` does nothing. Under a tape, a launch inside of it is refused when it stores to elements of a field whose
    values so far the tape has computed: their gradient would reach what computed the old ones.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    callable
        The function without a gradient.

    Raises
    ------
    DifferentiationError
        At such a launch.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> n = ti.field(ti.f64, shape=())
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.ad.no_grad
    ... @ti.kernel
    ... def count():
    ...     n[None] += 1.0
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None] * n[None]
    >>> with ti.ad.Tape(y):
    ...     count()
    ...     measure()
    >>> x.grad[None]
    1.0
    """
    _require_function(function, "no_grad")

    @functools.wraps(function)
    def constant(*args: Any, **kwargs: Any) -> Any:
        return _without_gradient(function, args, kwargs)

    constant.grad = lambda *args, **kwargs: None  # type: ignore[attr-defined]
    return constant


def _without_gradient(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outer = recorder.get()
    block = outer if isinstance(outer, Forward) and outer.lifts else None
    base = outer if block is None else block.base
    is_within = isinstance(base, ForwardMode) and not base.lifts and base.takes_blocks
    if isinstance(outer, Forward) and (block is None or not (isinstance(base, Journal) or is_within)):
        raise DifferentiationError(
            f"'{function.__name__}' runs without gradients, which forward mode does not support yet",
            caller(),
            hint="call it outside of the block",
            notes=outer.opened_notes(),
        )
    if not isinstance(base, Journal | ForwardMode):
        return function(*args, **kwargs)
    args, kwargs = _constants(args, kwargs)
    with recording_as(_Constant(base, caller(), block)):
        return function(*args, **kwargs)


class Inside(InCustom):
    """The recorder within a function with a custom VJP: nothing is recorded; the tape is notified of what is
    overwritten.
    """

    def __init__(self, tape: Journal, custom: Custom, around: Sequence[Note] = ()) -> None:
        self._tape = tape
        self._custom = custom
        self.opened_within = around

    def using_gradient(self, arguments: Arguments, values: Sequence[Any]) -> None:
        self._tape.keep_gradients(arguments.gradients)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        if self._tape.trace.holds(values):
            _tell_lost(self._tape, self._custom.name, caller())
            values = constants(values)
        self._tape.took_launch(instance, values)
        arguments = observed_arguments(instance, values)
        arguments.refuse_other_names()
        touched, own = arguments.accesses, self._custom.effects
        own.load([b for b in touched.loaded if b.primal is None])
        own.written.update([b for b in touched.written if isinstance(b, ExternalArray)])
        effects = arguments.effects(values)
        for buffer, region in effects.live_in:
            own.use(buffer, region)
        for buffer, region in effects.written:
            self._wrote(buffer, region)

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        self._tape.took_write(buffer, position, value, source)
        self._wrote(buffer, region_at(buffer, position))
        if self._tape.trace.holds(value):
            _tell_lost(self._tape, self._custom.name, caller())
        if source is not None:
            self._custom.effects.loaded.add(source)
            self._custom.effects.use(source)
        elif position is ...:
            self._custom.effects.filled.add(buffer)

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        self._tape.memory.looked_at.setdefault(buffer, False)
        self._custom.effects.use(buffer, region_at(buffer, position))
        return value

    def taking(self, buffer: Buffer) -> None:
        self._tape.memory.looked_at.setdefault(buffer, False)
        self._custom.effects.use(buffer)

    def sharing(self, buffer: Buffer) -> None:
        self._wrote(buffer)

    def ran_independently(self, loaded: Collection[Buffer], written: Collection[Buffer]) -> None:
        own = self._custom.effects
        own.load(loaded)
        own.written.update(written)
        for buffer in (*loaded, *written):
            own.use(buffer)

    def _wrote(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        self._custom.effects.use(buffer, region)
        if buffer.primal is None:
            self._custom.effects.written.add(buffer)
        self._tape.overwriting(buffer, region)


class _Constant(InCustom):
    """The recorder within a function without gradient. `block`: the block of pushforwards in the recording `base` in
    which it is called, if it is.
    """

    def __init__(self, base: Journal | ForwardMode, span: Span, block: Forward | None) -> None:
        self._base = base
        self._span = span
        self._block = block

    def using_gradient(self, arguments: Arguments, values: Sequence[Any]) -> None:
        self._base.keep_gradients(arguments.gradients)

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        tape = self._base if isinstance(self._base, Journal) else None
        if tape is not None:
            tape.took_launch(instance, values)
        arguments = observed_arguments(instance, values)
        arguments.refuse_other_names()
        touched = instance.specialisation.accesses()
        for formal, buffer in arguments.pairs(touched.written):
            if isinstance(buffer, ExternalArray):
                continue
            if self._was_computed(buffer) and (formal in touched.stored or not _only_adds(instance, formal)):
                self._refuse(instance, buffer)
        if tape is not None:
            for buffer, region in arguments.written(constants(values)):
                tape.overwriting(buffer, region)

    # What Python does is as anywhere else under the tape.

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        (self._block or self._base).writing(buffer, position, value, source)

    def sharing(self, buffer: Buffer) -> None:
        (self._block or self._base).sharing(buffer)

    def ran_independently(self, loaded: Collection[Buffer], written: Collection[Buffer]) -> None:
        for buffer in written:
            if self._was_computed(buffer):
                self._refuse_constants("a derivative", buffer, [])

    def _was_computed(self, buffer: Buffer) -> bool:
        """Whether what is there, or its tangents, were computed of what is differentiated."""
        base = self._base
        own = None if self._block is None else self._block.known_tangents(buffer)
        both = (buffer,) if own is None else (buffer, own.buffer)
        if isinstance(base, Journal):
            return any(base.activity.follows(one) and base.memory.computed_before(one) for one in both)
        tangents = [*both[1:], *[base.tangent(one) for one in both]]
        return any(one is not None and numbers(one).any() for one in tangents)

    def _refuse(self, instance: Instance, buffer: Buffer) -> None:
        notes = [Note("the kernel", instance.specialisation.source.span)]
        self._refuse_constants(f"'{instance.kernel_name}'", buffer, notes)

    def _refuse_constants(self, what: str, buffer: Buffer, notes: list[Note]) -> None:
        raise DifferentiationError(
            f"{what} stores constants to '{buffer.name}', which the tape has computed before: the "
            "gradient of the new values would reach what computed the old ones",
            self._span,
            hint="let it write to a field of its own",
            notes=notes,
        )


def _tell_lost(tape: Journal, name: str, span: Span) -> None:
    """An active number goes into a function with a custom VJP, besides the fields that it reads."""
    why = "whose custom VJP gives no derivative by it"
    tape.trace.tell(f"a number that depends on what is differentiated goes into '{name}', {why}", span)


def _constants(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with constants in place of traced numbers."""

    def constant(value: Any) -> Any:
        return plain(value) if type(value) is Traced else value

    return tuple(map(constant, args)), {name: constant(value) for name, value in kwargs.items()}


def _only_adds(instance: Instance, buffer: Buffer) -> bool:
    """Whether all that the kernel does to the field is to add to it, which passes gradients through."""
    return all(
        op.prim in (primitives.add, primitives.sub)
        for op in walk(instance.specialisation.lowered.function.region)
        if isinstance(op, Atomic) and op.buffer is buffer
    )


def _elements(fields: Any, span: Span) -> BufferRegions:
    found = [fields] if isinstance(fields, Field) else list(fields)
    for field in found:
        if not isinstance(field, Field):
            raise DifferentiationError(f"scratch is made of fields, not {field!r}", span)
    # Integers have no NaN that would betray a stale value: they are kept.
    return whole_regions([field.buffer for field in found if field.dtype.kind == "f"])


def _require_function(function: Any, decorator: str) -> None:
    if isinstance(function, Func):
        raise DifferentiationError(
            f"@ti.ad.{decorator} cannot decorate a device function here",
            _definition(function),
            hint="it is inlined in kernels; decorate a Python function that launches kernels",
        )
    if not callable(function):
        raise DifferentiationError(f"@ti.ad.{decorator} decorates a function, not {function!r}", caller())
    if any(
        is_kind(function)
        for is_kind in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    ):
        raise DifferentiationError(
            f"@ti.ad.{decorator} cannot decorate a generator or a coroutine, whose launches come after the call",
            _definition(function),
        )


def _definition(function: Any) -> Span:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return NOWHERE if code is None else Span(code.co_filename, code.co_firstlineno)
