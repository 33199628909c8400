"""A forward-mode block inside another recording.

    with ti.ad.Tape(cost):              # or forward mode, or a function that is differentiated
        with ti.ad.FwdMode(loss=y, param=x, seed=s):
            compute_y()                 # y.dual becomes J s
        measure()                       # reads it

The block's operations run with their tangents, as parts of the outer recording (`forward.py`), where the duals that
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
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.forward_mode import ForwardMode, direction_of, floats_with_tangents
from tinote.lang.ad.functional.layer import Execute
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.data.fields import Field
from tinote.lang.session.owners import clear_own_duals
from tinote.lang.session.state import Recorder, recorder
from tinote.source import caller


def takes_forward_blocks(outer: Recorder | None) -> bool:
    """Whether a forward-mode block inside of `outer` is one of this kind."""
    base = None if outer is None else outer.root
    if isinstance(base, ForwardMode):
        return base.takes_blocks and not isinstance(base, SeveralDirections)
    return isinstance(base, Journal | Execute)


class ForwardBlock:
    """The block, along the directions `seeds` of `params`, inside of `outer`."""

    def __init__(self, outer: Recorder, losses: list[Field], params: list[Field], seeds: Sequence[Any]) -> None:
        self._span = caller()
        self._around = outer
        self._losses = losses
        self._params = params
        self._seeds = [direction_of(field, seed) for field, seed in zip(params, seeds, strict=True)]
        self._block: Forward | None = None

    def enter(self) -> None:
        """Begin the block."""
        try:
            around = self._around
            if isinstance(around.root, ForwardMode):
                around.root.leave_duals()
            self._clear_duals(around)
            self._block = block = Forward.within(around, around.next_depth, self._span)
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
        if isinstance(base, Journal) and base.activity.tangents is None:
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
        for field in floats_with_tangents():
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
