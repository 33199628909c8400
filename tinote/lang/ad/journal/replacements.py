"""New values that Python gives to fields between launches, on the way back: the gradient of new values is not that of
the old ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.boxes import Box, slices_of
from tinote.source import NOWHERE, Span

__all__ = ["Replacement", "reverse_after"]


class Replacement(NamedTuple):
    """After `position` records, Python gave a field new values: those of `source`, or constants; a `source` at `place`.
    `box`: which elements got them; None for all. `component`: the index of those components that did; () for all.
    """

    position: int
    target: Buffer
    source: Buffer | None
    place: Span = NOWHERE
    box: Box | None = None
    component: tuple[Any, ...] = ()

    def reverse(self) -> None:
        """Move the gradient of the new values to where they came from."""
        adjoint = self.target.adjoint
        if adjoint is None:
            return
        source = None if self.source is None else self.source.adjoint
        place = (*((...,) if self.box is None else slices_of(self.box)), *self.component)
        _move(adjoint, source, place)
        if adjoint.tangent is not None:
            _move(adjoint.tangent, None if source is None else source.tangent, place)

    def sever(self, severed: dict[Buffer, Span]) -> None:
        """What it means for the chain from parameter to loss. `severed`: the fields without a gradient that hold
        varying values. Raises `DifferentiationError` where the chain breaks.
        """
        target, source = self.target, self.source
        if source is None:
            if self.box is None and not self.component:
                severed.pop(target, None)
        elif source in severed:
            if target.adjoint is not None:
                raise DifferentiationError(
                    f"'{source.name}' has no gradient, but values that are differentiated go through it",
                    severed[source],
                    hint=f"make '{source.name}' with needs_grad=True",
                    notes=[Note(f"from there they are copied to '{target.name}'", self.place)],
                )
            severed.setdefault(target, severed[source])
        elif source.adjoint is not None and target.adjoint is None and target.dtype.kind == "f":
            severed.setdefault(target, self.place)


def reverse_after(replacements: list[Replacement], position: int) -> None:
    """Reverse those that came after so many records, the last first, and take them off the list."""
    while replacements and replacements[-1].position >= position:
        replacements.pop().reverse()


def _move(target: Buffer, source: Buffer | None, place: tuple[Any, ...]) -> None:
    values = numbers(target)
    if source is not None:
        numbers(source)[...] += values
    values[place] = 0
