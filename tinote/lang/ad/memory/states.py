"""The state of all fields: leaving gradients and duals as they were, and going back to values of an earlier time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tinote.lang.session.state import gradient_memories, world
from tinote.runtime.memory import Memory

__all__ = ["Remembered", "bring_back", "duals_kept", "gradients_kept", "remembered"]


@contextmanager
def gradients_kept() -> Iterator[None]:
    """A block that leaves the gradients of all fields as they were."""
    kept = [(memory, memory.copy()) for memory in gradient_memories()]
    try:
        yield
    finally:
        _put_back(kept)


@contextmanager
def duals_kept() -> Iterator[None]:
    """A block that leaves the duals of all fields as they were."""
    kept = [(f.dual.memory, f.dual.memory.copy()) for f in list(world.fields) if f.has_dual]
    try:
        yield
    finally:
        _put_back(kept)


class Remembered(NamedTuple):
    """The values of all fields at one time, and how many random launches there were."""

    memories: list[tuple[Memory, Memory]]
    launches: int


def remembered() -> Remembered:
    """Copies of all fields, gradients and duals left out, for `bring_back`."""
    fields = [f for f in list(world.fields) if f.buffer.primal is None]
    return Remembered([(f.memory, f.memory.copy()) for f in fields], world.launches)


def bring_back(start: Remembered) -> None:
    """Give all fields the values again that they had; kernels that draw random numbers draw the same again."""
    _put_back(start.memories)
    world.launches = start.launches


def _put_back(kept: list[tuple[Memory, Memory]]) -> None:
    for memory, copy in kept:
        memory.restore(copy)
