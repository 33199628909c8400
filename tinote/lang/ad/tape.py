"""The tape: record launches, then run their gradients in reverse.

    with ti.ad.Tape(loss=U):
        compute_U()
    # x.grad now holds dU/dx

What is recorded, and how overwritten values come back, stands in `recording.py`. Recording is per context
(`contextvars`): launches of other threads and of other asyncio tasks never land on an open tape.
"""

from __future__ import annotations

from contextvars import Token
from types import TracebackType

from tinote.errors import DifferentiationError, at_users_frames
from tinote.lang.ad.recording import Record, Recording
from tinote.lang.fields import Field
from tinote.lang.world import Recorder, gradient_memories, recorder, take_all_gradients
from tinote.runtime.memory import Memory
from tinote.source import caller

__all__ = ["Record", "Tape", "clear_all_gradients"]


def clear_all_gradients() -> None:
    """Set the gradients of all fields to zero, a live view's too."""
    take_all_gradients()
    _clear(gradient_memories())


def _clear(memories: tuple[Memory, ...]) -> None:
    for memory in memories:
        memory.clear()


class Tape(Recording):
    """Record the launches in a `with` block, and at its end accumulate the derivative of `loss` into the gradients of
    the fields.

    `loss`: a 0-D field with a gradient; it is set to 0 at entry and its gradient to 1 at exit. `clear_gradients`: set
    all gradients to zero at entry. An exception inside of the block leaves everything as it is and no gradient is
    computed. `fill`, `from_numpy` and `copy_from` in the block are differentiated: behind them a field's gradient is
    that of its new values only until the first launch that uses the field; single elements that Python writes are
    constants whose gradient is added to that of the values before. Raises `DifferentiationError` for a loss that cannot
    be differentiated and for what cannot be differentiated right.
    """

    def __init__(self, loss: Field, clear_gradients: bool = True) -> None:
        if not isinstance(loss, Field):
            raise DifferentiationError(f"the loss of a tape must be a field, not {loss!r}", caller())
        if loss.shape != () or loss.element != ():
            elements = f" and elements of shape {loss.element}" if loss.element else ""
            raise DifferentiationError(
                f"the loss of a tape must be a 0-D scalar field, but '{loss.name}' has shape {loss.shape}{elements}",
                caller(),
                hint="sum into a field with shape=(), or call kernel.grad() with gradients of your own",
            )
        if not loss.has_grad:
            raise DifferentiationError(
                f"the loss '{loss.name}' has no gradient", caller(), hint="make it with needs_grad=True"
            )
        super().__init__()
        self.loss = loss
        self.clear_gradients = clear_gradients
        self._token: Token[Recorder | None] | None = None
        self._entered = False

    def __enter__(self) -> Tape:
        if self._entered:
            raise DifferentiationError("a tape records once; make a new one for each block", caller())
        if recorder.get() is not None:
            raise DifferentiationError("a tape cannot be opened inside of another one", caller())
        self._entered = True
        if self.clear_gradients:
            _clear(gradient_memories())
        self.loss.fill(0)
        self._token = recorder.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        recorder.reset(self._token)
        try:
            if kind is None:
                self._differentiate()
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        finally:
            self.forget()

    def _differentiate(self) -> None:
        self.refuse_severed()
        self.claim(clear=self.clear_gradients)
        self.loss.grad.fill(1)
        self.reverse()
        self.loss.grad.fill(1)
