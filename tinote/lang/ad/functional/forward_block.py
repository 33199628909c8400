"""A forward-mode block inside another recording.

    with ti.ad.Tape(cost):              # or forward mode, or a function that is differentiated
        with ti.ad.FwdMode(loss=y, param=x, seed=s):
            compute_y()                 # y.dual becomes J s
        measure()                       # reads it

The block's operations run with their tangents, as parts of the outer recording (`pushed_mode.py`), where the duals that
the block computes are ordinary values with derivatives. A block in forward mode around, whose tangents are in the duals
of fields, keeps them in fields of their own from where the first block inside of it begins, so that the duals are free
for the results of that block. When the outer block ends, the duals hold its own tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinote.ir.buffers import Buffer
from tinote.lang.ad.functional.directions import SeveralDirections
from tinote.lang.ad.functional.effects import leave_value, note_values
from tinote.lang.ad.functional.forward_mode import ForwardMode, direction_of
from tinote.lang.ad.functional.pushed_mode import PushedMode, Unrecorded
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.session.owners import clear_own_duals
from tinote.lang.session.state import Recorder, recorder, session
from tinote.runtime.seam import active_listener
from tinote.source import caller


def takes_forward_blocks(outer: Recorder | None) -> bool:
    """Whether a forward-mode block inside of `outer` is one of this kind."""
    base = None if outer is None else outer.root
    if isinstance(base, ForwardMode):
        return base.takes_blocks and not isinstance(base, SeveralDirections)
    return isinstance(base, Journal | Unrecorded)


class ForwardBlock:
    """The block, along the directions `seeds` of `params`, inside of `outer`."""

    def __init__(self, outer: Recorder, losses: list[Field], params: list[Field], seeds: Sequence[Any]) -> None:
        self._span = caller()
        self._outer = self._around = outer
        self._losses = losses
        self._params = params
        self._seeds = [direction_of(field, seed) for field, seed in zip(params, seeds, strict=True)]
        self._block: PushedMode | None = None

    def enter(self) -> None:
        """Begin the block."""
        try:
            self._around = around = pushed_from(self._outer)
            self._clear_duals(around)
            self._block = block = PushedMode(around, around.next_depth, self._span)
            block.duals_are_values = isinstance(around.root, Unrecorded)
            for field, direction in zip(self._params, self._seeds, strict=True):
                block.point(field, direction)
            recorder.set(block)
        except BaseException:  # an interrupt
            self.end()
            raise

    def _clear_duals(self, around: Recorder) -> None:
        """The duals that blocks before this one have left are zero."""
        base = around.root
        for buffer in sorted(around.shadows_with_values, key=lambda one: one.name):
            if _is_dual(buffer):
                leave_value(around, buffer, 0.0)
        if isinstance(base, Journal) and base.tangents is None:
            clear_own_duals()

    def leave(self, *, completed: bool) -> None:
        """End the block. Its duals are values of the outer recording."""
        recorder.set(self._around)
        try:
            if completed:
                self._leave_duals()
        finally:
            self.end()

    def _leave_duals(self) -> None:
        block, around = self._block, self._around
        assert block is not None
        found: list[tuple[Field, Field]] = []
        for field in _floats():
            own = block.tangent_field(field) if field in self._losses else block.known_tangents(field.buffer)
            if own is not None and field.has_dual and (field in self._losses or field not in self._params):
                found.append((field.dual, own))
        base = around.root
        if isinstance(base, Journal) and base.is_inner:
            around.keep_gradients_apart()
        note_values(around, [dual.buffer for dual, _ in found], self._span)
        for dual, own in found:
            leave_value(around, dual.buffer, own)

    @property
    def is_innermost(self) -> bool:
        """Whether no block that was opened later in this context is still open."""
        return recorder.get() is self._block

    def end(self) -> None:
        """End the recording of the block."""
        if self._block is None:
            return
        if recorder.get() is self._block:
            recorder.set(self._around)
        self._block.close()
        self._block = None


def _is_dual(buffer: Buffer) -> bool:
    return buffer.primal is not None and buffer.primal.tangent is buffer


def pushed_from(outer: Recorder) -> Recorder:
    """Where `outer` is a forward-mode block, or lies in one: let that go on as one whose tangents are in fields of
    their own. Gives the recorder from now on.
    """
    mode = outer.root
    if not isinstance(mode, ForwardMode):
        return outer
    if (listener := active_listener()) is not None:
        listener.taking("a block in forward mode inside of another one")
    base = Unrecorded(mode.trace)
    base.opened = mode.opened
    block = PushedMode(base, 0, mode.opened)
    block.duals_are_values = True
    block.adopted = mode.trace
    block.values = mode.shadows_with_values
    block.lose(mode.lost)
    for field in _floats():
        tangent = mode.tangent(field.buffer)
        if tangent is not None and numbers(tangent).any():
            own = block.tangent_field(field)
            assert own is not None
            numbers(own.buffer)[...] = numbers(tangent)
    mode.goes_on(_PushedFurther(block))
    around = outer.lifts
    for lift, below in zip(around, [block, *around], strict=False):
        lift.goes_on_over(below)
    found = around[-1] if around else block
    recorder.set(found)
    return found


class _PushedFurther:
    """A forward-mode block continued with shadows."""

    def __init__(self, block: PushedMode) -> None:
        self.recorder: PushedMode = block

    def end(self, mode: ForwardMode, returned: Any) -> Any:
        """The duals of fields are its tangents."""
        block = self.recorder
        if recorder.get() is block:
            recorder.set(mode)
        for field in _floats():
            if field.has_dual:
                own = block.known_tangents(field.buffer)
                numbers(field.dual.buffer)[...] = 0.0 if own is None else numbers(own.buffer)
        if type(returned) is Traced and returned.trace is block.trace:
            returned = mode.trace.new(*block.parts(returned))
        block.close()
        return returned


def _floats() -> list[Field]:
    """The fields whose values have tangents in forward mode, gradients among them."""
    found = [
        field
        for field in list(session.fields)
        if field.buffer.primal is None and field.buffer.dtype.kind == "f" and not field.buffer.no_tangent
    ]
    return [*found, *[field.grad for field in found if field.has_grad]]
