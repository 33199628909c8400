"""Higher derivatives of functions with a custom gradient: by the launches that compute that gradient.

Along one direction, both the function and its gradient run in forward mode: the tangents of the gradient's results are
those of the derivative (`WithTangents`). This takes any gradient. In forward layers with fields of their own
(`forward.py`), so in third derivatives, the gradient has to be that of the function (`CustomInBlocks`).

Let f give y of x, and let V be its custom gradient. In such a block, f gives y and y' = J x' of x and x', and V has
to give the adjoints of both of these. If V is the gradient of f, they are those of V itself, pushed forward along x',
with the adjoints exchanged: of the adjoint of y', whose tangent is the adjoint of y, V makes the adjoint of x', whose
tangent is that of x. With several blocks, all parts of adjoints are exchanged, the first with the last. A launch of
`kernel.grad` in V is that of the gradient of the pushforward, with the adjoints where they were.

A custom gradient need not be the gradient of f. Then derivatives by f's launches and by V's would differ. So this is
tried: f runs in one more block, along a random direction u of all that it reads. The product of its results' tangents
and their adjoints has to be that of u and what V gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinote.compiler.launch.native import BoundCode
from tinote.compiler.requests import Request
from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward import Forward, fields_of
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.layer import Layer
from tinote.lang.ad.functional.own_duals import OwnDuals
from tinote.lang.ad.functional.tangent_fields import TangentFields, origin_of
from tinote.lang.ad.journal.custom_sweep import CustomSweep, InCustom
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.touched_gradients import changed_gradients
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.memory.values import held_now, hold
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace, Traced, constants
from tinote.lang.kernels.arguments import arguments_of
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, recorder, recording_as, session
from tinote.runtime.seam import active_listener
from tinote.source import caller

Array = np.ndarray[Any, Any]

#: Tolerance of the trial, relative to the norm of what V gives: custom gradients may come from solvers.
_TOLERANCE = 1e-3


class WithTangents(ForwardMode):
    """Forward mode in a function with a custom gradient, or in that gradient, in a recording that has tangents. It goes
    on with those of fields, which belong to `journal`, and with `tangents` of memory without a dual. `below`, the
    recorder of either, is notified of all that runs; `notes` are for errors.
    """

    takes_blocks = False
    takes_custom = True

    def __init__(
        self, below: InCustom, journal: Journal, tangents: dict[Buffer, Buffer], notes: Sequence[Note]
    ) -> None:
        self._follow([], [], Trace(refuses=True), OwnDuals(tangents), below)
        self.opened, self.opened_within = None, notes
        self._journal = journal

    @contextmanager
    def following(self) -> Iterator[None]:
        """A block whose operations it follows."""
        try:
            with recording_as(self):
                yield
        except DifferentiationError as error:
            error.notes += tuple([note for note in self.opened_within if note not in error.notes])
            raise
        finally:
            self.trace.close()

    @contextmanager
    def nested(self) -> Iterator[None]:
        effects = Effects(self.base.sharing)
        with effects.listening():
            yield
        self.base.ran_independently(effects.loaded, effects.written)

    def begin_duals(self, duals: Collection[Buffer]) -> None:
        self._journal.begin_duals(duals)

    def begin_all_duals(self) -> None:
        self._journal.begin_all_duals()

    # ---- what runs

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        self.base.launching(instance, self._without(values, own=True))
        return super().launching(instance, self._without(values, own=False))

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        plain = constants(values)
        assert isinstance(self.base, InCustom) and self.gradients is not None
        self.base.using_gradient(arguments_of(instance, plain, self.gradients), plain)
        return super().launching_gradient(instance, self._without(values, own=False))

    def computing(self, computation: Computation) -> None:
        for buffer in computation.inputs:
            self.base.taking(buffer)
        for buffer in computation.written:
            self.base.writing(buffer, ...)
        super().computing(computation)

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if source is None and buffer.primal is not None and self.trace.root.taken_out is not None:
            self.trace.note_plain(value, f"'{buffer.name}'")
        super().writing(buffer, position, value, source)

    def sharing(self, buffer: Buffer) -> None:
        if buffer.dtype.kind == "f":
            raise DifferentiationError(
                f"an array shares the memory of '{buffer.name}': values written through it would be constants",
                caller(),
                hint="compute in kernels, or by elements and copies",
            )
        super().sharing(buffer)

    def _without(self, values: tuple[Any, ...], *, own: bool) -> tuple[Any, ...]:
        """The values of a launch, with constants for numbers of this block, or for those of others: for the gradient of
        a function, these are constant.
        """
        if Traced not in map(type, values):
            return values
        gone = [type(one) is Traced and (one.trace is self.trace) is own for one in values]
        return tuple([p if yes else v for p, v, yes in zip(constants(values), values, gone, strict=True)])


class CustomInBlocks:
    """The record `custom` in these blocks of pushforwards. `around`: what differentiates it; `before`: the same where
    some of these blocks were open, if it is repeated.
    """

    def __init__(
        self, custom: Custom, lifts: Sequence[Forward], around: Sequence[Note], before: CustomInBlocks | None
    ) -> None:
        if (listener := active_listener()) is not None:
            listener.taking("a custom gradient in forward mode or in a third derivative")
        self._custom = custom
        self._lifts = lifts
        self._around = around
        #: all parts of the fields with a gradient that it uses
        self._parts: list[list[Field]] = []
        #: the shadows that each block has used
        self._used: dict[Forward, dict[Buffer, Field]] = {} if before is None else before._used
        #: of these parts: the random direction, and the tangents along it when f has run (None: the same)
        self._trial: list[tuple[Field, Array, Array | None]] = []

    @property
    def depth(self) -> int:
        """That of the trial: no block around has it."""
        return 1 + max([one.depth for one in self._lifts], default=0)

    @contextmanager
    def running(self, below: AbstractContextManager[None]) -> Iterator[None]:
        """A block in which f runs; in the block `below`, its recorder keeps what is overwritten."""
        with below, self._running_over(_present()):
            yield

    @contextmanager
    def _running_over(self, below: Recorder) -> Iterator[None]:
        direction = _RandomDirection(self._custom, self.depth, [one.depth for one in self._lifts])
        trial = _Within.within(below, self.depth, self._custom.span, place=direction)
        blocks: list[Forward] = [trial]
        for one in self._lifts:
            again = None if one.has_ended else one
            blocks.append(_Within.within(blocks[-1], one.depth, one.opened, again))
            blocks[-1].fields.used.update(self._used.get(one, {}))
        try:
            with blocks[-1].following():
                yield
            self._end(trial, direction, blocks[1:])
        finally:
            for block in blocks[1:]:
                block.forget()
            trial.close()
        # What the trial alone needs takes no part in the record.
        self._custom.effects.leave_out(direction.made)

    def _end(self, trial: Forward, direction: _RandomDirection, blocks: Sequence[Forward]) -> None:
        """f has run."""
        self._used = {one: one.fields.used | block.fields.used for one, block in zip(self._lifts, blocks, strict=True)}
        touched = self._custom.loaded | self._custom.written
        shadows = direction.made | {buffer for used in self._used.values() for buffer in used}
        fields = [one for one in list(session.fields) if one.buffer in touched and _has_adjoint(one)]
        self._parts = [
            fields_of(one, blocks) for one in fields if one.buffer not in shadows and direction.was_there(one.buffer)
        ]
        for one, block in zip(self._lifts, blocks, strict=True):
            one.lose(block.fields.lost)
        for parts in self._parts:
            for part in parts:
                start, end = direction.moved(trial, part)
                self._trial.append((part, start, end))
        self._custom.kept_bytes += sum([start.nbytes for _, start, _ in self._trial])

    # ---- in the reverse sweep

    @contextmanager
    def pulling(self, below: AbstractContextManager[None], sweep: CustomSweep) -> Iterator[None]:
        """A block in which V runs."""
        with below:
            base = _present()
            sweep.adjoints.use([part.grad.buffer for parts in self._parts for part in parts])
            before = [held_now(part.grad.buffer) for part, _, _ in self._trial]
            blocks: list[Forward] = []
            for one, used in self._used.items():
                place = _TangentsOfGradients(one.depth, self, used, sweep.gradients)
                blocks.append(Forward.within(blocks[-1] if blocks else base, one.depth, one.opened, place=place))
            self.exchange()
            try:
                with blocks[-1].following() if blocks else nullcontext():
                    yield
            finally:
                self.exchange()
                for block in blocks:
                    block.forget()
            self._require(before)

    def exchange(self) -> None:
        """The adjoints of the parts, the first with the last."""
        for parts in self._parts:
            for one, other in zip(parts[: len(parts) // 2], reversed(parts), strict=False):
                _exchange(one.grad.buffer, other.grad.buffer)
                if one.grad.has_dual:
                    _exchange(one.grad.dual.buffer, other.grad.dual.buffer)

    def has(self, field: Buffer) -> bool:
        """Whether the adjoints of a field are among those exchanged."""
        return any(part.buffer is field for parts in self._parts for part in parts)

    def require_agreement(self, journal: Journal) -> None:
        """Sweep through a journal with this record alone, from random adjoints of several orders of magnitude."""
        random = np.random.default_rng(7)
        gradients = changed_gradients(journal.events).union([part.grad.buffer for part, _, _ in self._trial])
        journal.begin_sweep(gradients)
        for part, _, end in self._trial:
            if end is not None:
                held = numbers(part.buffer)
                seed = random.standard_normal(held.shape) * 10.0 ** random.uniform(-3, 3, held.shape)
                hold(part.grad.buffer, seed)
        journal.sweep().run()

    def _require(self, before: Sequence[Array]) -> None:
        """Raise `DifferentiationError` unless V agrees with f along the random direction."""
        found: list[Array] = []
        ones: list[Array] = []
        others: list[Array] = []
        for (part, start, end), given in zip(self._trial, before, strict=True):
            now = held_now(part.grad.buffer)
            found.append(now - given if end is None else now)
            ones.append(found[-1] * start)
            others.append(np.zeros(()) if end is None else given * end)
        epsilon = max([float(np.finfo(numbers(part.buffer).dtype).eps) for part, _, _ in self._trial], default=0.0)
        apart = abs(sum([float(one.sum()) for one in ones]) - sum([float(one.sum()) for one in others]))
        rounding = np.sqrt(epsilon) * (_length(ones) + _length(others))
        if np.isfinite(apart) and apart > _TOLERANCE * _length(found) + rounding:
            self.refuse()

    def refuse(self) -> None:
        """Raise for a gradient that is not that of f."""
        raise DifferentiationError(
            f"the custom gradient of '{self._custom.name}' is another one than that of what is computed, or does not "
            "compute all of it by launches and traced numbers: its derivative would not be that of the tangents here",
            self._custom.span,
            hint="let it add the derivative of what the function computes, and set the gradients of what that "
            "overwrites to zero",
            notes=self._around,
        )


class _Within(Forward):
    """A layer where f runs: what Python overwrites had tangents before."""

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if buffer.adjoint is not None:
            self.tangents_of(buffer)
        super().writing(buffer, position, value, source)


class _RandomDirection(TangentFields):
    """Tangents that are random at first, in the layer where `custom` is tried. `depths`: of the layers on this one."""

    def __init__(self, custom: Custom, depth: int, depths: Collection[int]) -> None:
        super().__init__(depth)
        self.where = f"in '{custom.name}' here, whose custom gradient is tried along a direction"
        self._random = np.random.default_rng(5)
        self._start: dict[Buffer, Array] = {}
        #: its shadows
        self.made: set[Buffer] = set()
        self._depths = depths
        self._before = {field.buffer for field in list(session.fields)}

    def _use(self, layer: Layer, found: Field, of: Field) -> None:
        super()._use(layer, found, of)
        if found.buffer not in self.made:
            self.made.add(found.buffer)
            if _has_adjoint(of) and self.was_there(of.buffer):
                start = self._start[of.buffer] = self._direction(of)
                self.put(layer, found.buffer, ..., start, None)

    def was_there(self, buffer: Buffer) -> bool:
        """Whether it was there before f ran; tangents of the layers around, whether what has them was."""
        while (origin := origin_of(buffer)) is not None:
            of, depth = origin
            if of is None or depth not in self._depths:
                return False
            buffer = of
        return buffer in self._before

    def _direction(self, field: Field) -> Array:
        held = numbers(field.buffer)
        return self._random.standard_normal(held.shape).astype(held.dtype).astype(np.float64)

    def moved(self, layer: Layer, field: Field) -> tuple[Array, Array | None]:
        """The direction of a field, and its tangents now, if they are others."""
        own = self.known(layer, field.buffer)
        if own is None or field.buffer not in self._start:  # Python has filled it
            return self._direction(field), np.zeros(())
        start, end = self._start[field.buffer], held_now(own.buffer)
        return start, None if np.array_equal(start, end) else end


class _TangentsOfGradients(TangentFields):
    """The tangents where V runs, in the shadows `used` of f. Those of gradients are the gradients of tangents."""

    def __init__(self, depth: int, function: CustomInBlocks, used: dict[Buffer, Field], gradients: Request) -> None:
        super().__init__(depth)
        self.used.update(used)
        self._function = function
        self.gradients: Request | None = gradients

    def of_field(self, layer: Layer, field: Field) -> Field | None:
        if _is_gradient(field.buffer):
            return self._of_gradient(layer, field.buffer)
        return super().of_field(layer, field)

    def known(self, layer: Layer, buffer: Buffer) -> Field | None:
        return self._of_gradient(layer, buffer) if _is_gradient(buffer) else super().known(layer, buffer)

    def _of_gradient(self, layer: Layer, gradient: Buffer) -> Field | None:
        primal = gradient.primal
        assert primal is not None
        if not self._function.has(primal):
            self._function.refuse()
        own = self.of(layer, primal)
        return None if own is None else own.grad

    def _holds_values(self, layer: Layer, buffer: Buffer) -> bool:
        return _is_gradient(buffer) or super()._holds_values(layer, buffer)

    def launching_gradient(self, layer: Layer, instance: Instance, values: tuple[Any, ...]) -> Any:
        """That of the pushforward is launched, with the adjoints where they were."""
        if instance.needs_seed:
            self._function.refuse()
        pushforward, given = self.pushed(layer, instance, values)
        assert self.gradients is not None
        facts = pushforward.specialisation.gradient_facts(self.gradients)
        if facts.old_values or facts.overwritten:
            self._function.refuse()
        base = layer.base
        with layer.below():
            native = base.launching_gradient(pushforward, given)
        is_first = not (isinstance(base, Forward) and base.lifts)
        return _Gradient(self._function if is_first else None, native, given)


class _Gradient:
    """The gradient of a pushforward, which runs in place of that of a kernel. `function`: whose adjoints are exchanged
    meanwhile, if they are to be.
    """

    def __init__(self, function: CustomInBlocks | None, native: BoundCode | _Gradient, given: tuple[Any, ...]) -> None:
        self._function = function
        self._native = native
        self._given = given

    def launch(self, values: tuple[Any, ...]) -> None:
        """Run, with other values than those of the kernel."""
        if self._function is None:
            self._native.launch(self._given)
            return
        self._function.exchange()
        try:
            self._native.launch(self._given)
        finally:
            self._function.exchange()


def _present() -> Recorder:
    """The recorder of a function or of its gradient, with the trace that blocks need: no number is one of its own."""
    below = recorder.get()
    assert below is not None
    if not isinstance(below, ForwardMode):
        below.trace = Trace(refuses=True)
    return below


def _has_adjoint(field: Field) -> bool:
    return field.buffer.primal is None and field.buffer.dtype.kind == "f" and field.has_grad


def _is_gradient(buffer: Buffer) -> bool:
    return buffer.primal is not None and buffer.primal.adjoint is buffer


def _length(parts: Sequence[Array]) -> float:
    return float(np.sqrt(sum([float(np.sum(one * one)) for one in parts])))


def _exchange(one: Buffer, other: Buffer) -> None:
    held = held_now(one)
    hold(one, held_now(other))
    hold(other, held)
