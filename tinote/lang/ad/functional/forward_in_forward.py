"""A forward-mode block inside of another one.

    with ti.ad.FwdMode(loss=z, param=w):
        with ti.ad.FwdMode(loss=y, param=x, seed=s):
            compute_y()                 # y.dual becomes J s
        measure()                       # reads it

Each block has tangents of its own. From where the inner one begins, the outer block keeps its tangents in companions
(`pushed_mode.py`), so that the duals of fields are free for what the inner block leaves there: values like any other,
which have tangents along the outer direction. When the outer block ends, the duals are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinote.errors import DifferentiationError
from tinote.lang.ad.functional.directions import SeveralDirections
from tinote.lang.ad.functional.forward_mode import ForwardMode, direction_of
from tinote.lang.ad.functional.pushed_mode import PushedMode, Unrecorded, base_of, next_depth
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import Recorder, note_python_write, recorder, session
from tinote.runtime.seam import heard
from tinote.source import caller


def takes_forward_blocks(outer: Recorder | None) -> bool:
    """Whether a forward-mode block inside of `outer` is one of this kind."""
    if isinstance(outer, ForwardMode):
        return outer.takes_blocks and not isinstance(outer, SeveralDirections)
    return isinstance(outer, PushedMode) and isinstance(base_of(outer), Unrecorded) and outer.duals_are_values


class ForwardInForward:
    """The block, along the directions `seeds` of `params`, inside of `outer`."""

    def __init__(
        self, outer: ForwardMode | PushedMode, losses: list[Field], params: list[Field], seeds: Sequence[Any]
    ) -> None:
        self._span = caller()
        for field in (*losses, *params):
            if field.buffer.dtype.kind != "f" or field.buffer.no_tangent:
                raise DifferentiationError(
                    f"'{field.name}' has no derivative",
                    self._span,
                    notes=outer.opened_notes(),
                )
        self._outer = outer
        self._losses = losses
        self._params = params
        self._seeds = [direction_of(field, seed) for field, seed in zip(params, seeds, strict=True)]

    def enter(self) -> None:
        """The block begins."""
        outer = self._outer
        self._around = around = pushed_from(outer) if isinstance(outer, ForwardMode) else outer
        self._block = PushedMode(around, next_depth(around), self._span)
        self._block.duals_are_values = True
        for field, direction in zip(self._params, self._seeds, strict=True):
            self._block.point(field, direction)
        recorder.set(self._block)

    def leave(self, *, completed: bool) -> None:
        """The block ends. What it leaves in the duals of the losses are values of the block around it."""
        recorder.set(self._around)
        try:
            if completed:
                for field in self._losses:
                    found = self._block.companion(field)
                    assert found is not None
                    _copy(found, field.dual)
        finally:
            self._block.close()

    def end(self) -> None:
        """It is not followed any longer."""
        if recorder.get() is self._block:
            recorder.set(self._around)


def _copy(source: Field, target: Field) -> None:
    """Python writes one field to another one."""
    note_python_write(target.buffer, ..., None, source.buffer)
    numbers(target.buffer)[...] = numbers(source.buffer)


def pushed_from(mode: ForwardMode) -> PushedMode:
    """Go on with a forward-mode block as one whose tangents are in companions: the recorder from now on."""
    if (listener := heard()) is not None:
        listener.taking("a block in forward mode inside of another one")
    base = Unrecorded(mode.trace)
    base.opened = mode.opened
    block = PushedMode(base, 1, mode.opened)
    block.duals_are_values = True
    block.adopted = mode.trace
    fields = _floats()
    block.values.update([field.buffer for field in fields if field.buffer.primal is not None])
    for field in fields:
        tangent = mode.tangent(field.buffer)
        if tangent is not None and numbers(tangent).any():
            own = block.companion(field)
            assert own is not None
            numbers(own.buffer)[...] = numbers(tangent)
    recorder.set(block)
    mode.goes_on(_PushedFurther(block))
    return block


class _PushedFurther:
    """A forward-mode block that goes on as this one."""

    def __init__(self, block: PushedMode) -> None:
        self._block = block

    def end(self, mode: ForwardMode, returned: Any) -> Any:
        """The duals of fields are its tangents."""
        block = self._block
        if recorder.get() is block:
            recorder.set(mode)
        for field in _floats():
            if field.has_dual:
                own = block.known_companion(field.buffer)
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
