"""Functions with a custom gradient where derivatives are differentiated along a direction.

The gradient of such a function is what its gradient function computes. So the derivative of that gradient is the
derivative of the launches that compute it: those of the function, whose tangents are pushed forward, and those of the
gradient function, whose tangents are the tangents of adjoints. Both run in forward mode, which goes on with the
tangents that the recording around has; a recorder that keeps what is overwritten is notified of all that runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.functional.effects import Effects
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.temporary_adjoints import TemporaryAdjoints
from tinote.lang.data.traced import Trace, Traced, constants, holds_traced
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, recording_as
from tinote.source import Span, caller


class PushedFunction(ForwardMode):
    """What runs in a function with a custom gradient, in forward mode that goes on with the tangents that there are:
    those of fields, and `tangents` of memory without a dual. `outer` is notified of what is done to memory; `journal`
    is the recording whose duals and gradients these are; `name` and `span` are those of the call of the function,
    `around` is what differentiates it.
    """

    takes_blocks = False
    takes_custom = True

    def __init__(
        self,
        outer: Recorder,
        journal: Journal,
        tangents: dict[Buffer, Buffer],
        name: str,
        span: Span,
        around: Sequence[Note],
    ) -> None:
        self._follow([], [], Trace(refuses=True))
        self._tangents = tangents
        self._temporaries = TemporaryAdjoints((), tangents)
        self._outer = outer
        self._journal = journal
        self._notes = [Note(f"'{name}' is differentiated along a direction here", span), *around]

    @contextmanager
    def running(self) -> Iterator[None]:
        """A block that is followed."""
        try:
            with recording_as(self):
                yield
        except DifferentiationError as error:
            error.notes += tuple([note for note in self._notes if note not in error.notes])
            raise
        finally:
            self.put_back()
            self.trace.close()

    def opened_notes(self) -> list[Note]:
        return self._notes

    @contextmanager
    def nested(self) -> Iterator[None]:
        effects = Effects(self._outer.sharing)
        with effects.listening():
            yield
        self._outer.ran_independently(effects.loaded, effects.written)

    def begin_duals(self, duals: Iterable[Buffer]) -> None:
        self._journal.begin_duals(duals)

    def begin_all_duals(self) -> None:
        self._journal.begin_all_duals()

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        self._journal.keep_gradients(gradients)

    # ---- what runs

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        others, own = self._split(values)
        self._outer.launching(instance, others)
        return super().launching(instance, own)

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        _, own = self._split(values)
        return super().launching_gradient(instance, own)

    def computing(self, computation: Computation) -> None:
        for buffer in computation.inputs:
            self._outer.taking(buffer)
        for buffer in computation.written:
            self._outer.writing(buffer, ...)
        super().computing(computation)

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        self._outer.writing(buffer, position, None if holds_traced(value) else value, source)
        if source is None and buffer.primal is not None and self.trace.root.taken_out is not None:
            self.trace.note_plain(value, f"'{buffer.name}'")
        super().writing(buffer, position, value, source)

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        self._outer.reading(buffer, position, value)
        return super().reading(buffer, position, value)

    def taking(self, buffer: Buffer) -> None:
        self._outer.taking(buffer)
        super().taking(buffer)

    def sharing(self, buffer: Buffer) -> None:
        if buffer.dtype.kind == "f":
            raise DifferentiationError(
                f"an array shares the memory of '{buffer.name}': values written through it would be constants",
                caller(),
                hint="compute in kernels, or by elements and copies",
            )
        self._outer.sharing(buffer)
        super().sharing(buffer)

    def _split(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The values of a launch, with numbers of this block as constants, and with those of others as constants, which
        they are for a gradient function.
        """
        if Traced not in map(type, values):
            return values, values
        own = [type(one) is Traced and one.trace is self.trace for one in values]
        plain = constants(values)
        others = tuple([p if yes else v for p, v, yes in zip(plain, values, own, strict=True)])
        return others, tuple([v if yes else p for p, v, yes in zip(plain, values, own, strict=True)])


class PushedGradient(PushedFunction):
    """The same for its gradient function. `outer` is the part of the sweep that it is."""

    _outer: CustomSweep

    def launching_gradient(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        self._outer.refuse_stale_gradient(instance, constants(values))
        return super().launching_gradient(instance, values)

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        self._outer.use_gradients(gradients)
