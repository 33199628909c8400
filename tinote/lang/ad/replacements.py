"""What Python does to whole fields between recorded launches (`fill`, `from_numpy`, `copy_from`), and what that means
for their gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.layout import array_over
from tinote.lang.world import memory_of
from tinote.source import Span

__all__ = ["Replacement", "numbers", "replace_back", "sever"]


class Replacement(NamedTuple):
    """After `position` records, Python gave a whole field new values: those of `source`, or constants."""

    position: int
    target: Buffer
    source: Buffer | None
    place: Span


def replace_back(replacements: list[Replacement], position: int) -> None:
    """The reverse of what Python did after so many records: the gradient of new values is not that of the old."""
    while replacements and replacements[-1].position >= position:
        done = replacements.pop()
        if done.target.adjoint is None:
            continue
        source = None if done.source is None else done.source.adjoint
        _move(done.target.adjoint, source)
        if done.target.adjoint.tangent is not None:
            _move(done.target.adjoint.tangent, None if source is None else source.tangent)


def _move(target: Buffer, source: Buffer | None) -> None:
    if source is not None:
        numbers(source)[...] += numbers(target)
    numbers(target)[...] = 0


def sever(severed: dict[Buffer, Span], done: Replacement) -> None:
    """What a copy by Python means for the chain from parameter to loss."""
    target, source = done.target, done.source
    if source is None:
        severed.pop(target, None)
    elif source in severed:
        if target.adjoint is not None:
            raise DifferentiationError(
                f"'{source.name}' has no gradient, but values that are differentiated go through it",
                severed[source],
                hint=f"make '{source.name}' with needs_grad=True",
                notes=[Note(f"from there they are copied to '{target.name}'", done.place)],
            )
        severed.setdefault(target, severed[source])
    elif source.adjoint is not None and target.adjoint is None and target.dtype.kind == "f":
        severed.setdefault(target, done.place)


def numbers(buffer: Buffer) -> np.ndarray[Any, Any]:
    """All numbers of a field, sharing its memory, in the shape of the field with that of its elements behind."""
    return array_over(buffer, memory_of(buffer))
