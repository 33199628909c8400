"""Forward mode at the outside: a block whose operations compute tangents along with their values (`forward.py`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.layer import Execute
from tinote.lang.ad.functional.own_duals import OwnDuals
from tinote.lang.ad.functional.seeds import seed_array, store_seed
from tinote.lang.ad.functional.tangent_fields import TangentFields
from tinote.lang.ad.journal.touched_gradients import fields_with_gradients, give_gradients_duals
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace
from tinote.lang.session.owners import (
    claim,
    clear_own_duals,
    close_recording,
    open_recording,
    refuse_same_values,
    use,
)
from tinote.lang.session.state import Recorder, memory_of, recorder, session
from tinote.runtime.seam import active_listener
from tinote.source import caller


class ForwardMode(Forward):
    """The layer of a block. At entry the duals of all fields are set to zero and those of `param`, fields, to the
    directions `seed`, one for each; at exit the duals of `loss`, fields, hold the product, and those of `param` are set
    back to zero. Raises `DifferentiationError`.
    """

    #: whether tapes and blocks can be opened inside
    takes_blocks = True
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
        self._follow(losses, params, trace, OwnDuals())
        self._before, self.leaves = before, before is None

    def _follow(
        self, losses: list[Field], params: list[Field], trace: Trace, duals: OwnDuals, base: Recorder | None = None
    ) -> None:
        self.losses = losses
        self.params = params
        self.duals = duals
        self._is_open = False
        #: saves the duals that it uses, if they are to be restored; else they are results
        self._before: ShadowsBefore | None = None
        #: the duals that it uses
        self.shadows: set[Buffer] = set()
        Forward.__init__(self, base or Execute(), duals, trace, caller())

    # ---- what it uses

    def begin_duals(self, duals: Collection[Buffer]) -> None:
        """Note that these duals are about to be used: they begin at zero."""
        if self.shadows.issuperset(duals):
            return
        fresh = [one for one in duals if one not in self.shadows]
        self.shadows.update(fresh)
        if self._before is not None:
            self._before.begin_duals(self, fresh)
        else:
            use(self, fresh)
            claim(fresh, clear=self.clears)

    def begin_all_duals(self) -> None:
        if self._before is not None:
            self._before.begin_all_duals(self)

    def used(self) -> Mapping[Buffer, bool]:
        return self.duals.used()

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        if self._before is not None:
            self._before.keep({gradient: memory_of(gradient) for gradient in gradients})

    def preparing_gradient(self) -> bool:
        return self.place.is_own and self.duals.preparing_gradient(self)

    @property
    def shadows_with_values(self) -> set[Buffer]:
        # Gradients are values, which have tangents.
        return (
            {field.grad.buffer for field in fields_with_gradients()}
            if self.place.is_own
            else super().shadows_with_values
        )

    def tangent(self, buffer: Buffer) -> Buffer | None:
        """The dual that a field has in this block, if any."""
        return self.duals.of(self, buffer)

    # ---- derivatives inside

    def nesting(self) -> dict[Buffer, Buffer]:
        """Prepare a reverse sweep with tangents inside this block: fields with a gradient get duals of their own.
        Returns the temporary duals of other memory.
        """
        give_gradients_duals()
        self.duals.take_own(self)
        return self.duals.temporary

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A block in which a derivative runs inside of this one."""
        yield

    def leave_duals(self) -> None:
        """Keep its tangents in fields of their own until it ends, and the duals free for results of blocks inside."""
        if not self.place.is_own:
            return
        if (listener := active_listener()) is not None:
            listener.taking("a block in forward mode inside of another one")
        self.values.update(self.shadows_with_values)
        known = [(field, self.tangent(field.buffer)) for field in floats_with_tangents()]
        self.move(TangentFields(self.depth))
        self.lose(self.duals.lost.spans)
        for field, tangent in known:
            if tangent is not None and numbers(tangent).any():
                own = self.tangent_field(field)
                assert own is not None
                numbers(own.buffer)[...] = numbers(tangent)

    def take_duals_back(self) -> None:
        """The block's code is over: the duals of fields hold its tangents again."""
        if self.place.is_own:
            return
        for field in floats_with_tangents():
            if field.has_dual:
                own = self.known_tangents(field.buffer)
                numbers(field.dual.buffer)[...] = 0.0 if own is None else numbers(own.buffer)
        with self.below():
            self.fields.clear()
        self.move(self.duals)

    # ---- the block

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
        self.take_duals_back()
        self.trace.close()
        self.duals.clear()
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


def floats_with_tangents() -> list[Field]:
    """The fields whose values have tangents in forward mode, gradients among them."""
    found = [
        field
        for field in list(session.fields)
        if field.buffer.primal is None and field.buffer.dtype.kind == "f" and not field.buffer.no_tangent
    ]
    return [*found, *[field.grad for field in found if field.has_grad]]


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
