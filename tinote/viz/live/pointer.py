"""The pointer on a live view: events from the page, and the arguments of the user's function.

The page sends presses, moves and releases as fractions of the stage. They wait in a queue until the worker is between
two steps, so that a function that writes to the simulation never meets one that reads it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

QUEUE_LENGTH = 256
"""Messages that wait for a step that takes long; the oldest go first."""

Picker = Callable[[float, float, bool], tuple[tuple[float, ...], Any]]
"""What a view says of a place on its stage, given as fractions from the bottom left, and whether the button has just
gone down: the position in its own units, and the element there, or None."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The pointer between two frames, while a button is held and once when it is let go.

    In space a place on the screen is a line of sight. `position` is where that meets the plane that is parallel to the
    picture and goes through the particle as it was when it was pressed: what is dragged stays under the pointer, and as
    far from the camera as it was.

    Attributes
    ----------
    position : tuple of float
        In the units of the view (particles: those of the bounds; an image: cells, where cell `i, j` covers [i, i + 1) ×
        [j, j + 1)).
    movement : tuple of float
        How far it has come since the call before.
    element : int, (int, int) or None
        What was pressed: the index of the particle, or of the cell under the pointer.
    pressed : bool
        False in the last call.

    Examples
    --------
    >>> pointer = ti.viz.Pointer(position=(3.5, 2.5), movement=(1.0, 0.0), element=(3, 2), pressed=True)
    >>> pointer.element
    (3, 2)
    """

    position: tuple[float, ...]
    movement: tuple[float, ...]
    element: Any
    pressed: bool


class PointerQueue:
    """Messages of the page in order; of moves that follow each other only the last counts."""

    def __init__(self) -> None:
        self._messages: deque[tuple[str, float, float]] = deque(maxlen=QUEUE_LENGTH)
        self._lock = threading.Lock()
        self._held: Pointer | None = None

    @property
    def waiting(self) -> bool:
        """Whether the page has said something that has not been taken yet."""
        return bool(self._messages)

    def add(self, phase: str, across: float, up: float) -> None:
        """Take a message: `phase` is press, move or release, the place a fraction of the stage from the bottom left."""
        if phase not in ("press", "move", "release"):
            return
        with self._lock:
            if phase == "move" and self._messages and self._messages[-1][0] == "move":
                self._messages.pop()
            self._messages.append((phase, across, up))

    def take(self, pick: Picker) -> list[Pointer]:
        """The events for the user's function, in order: each message, or that a button is still held."""
        with self._lock:
            messages = list(self._messages)
            self._messages.clear()
        events: list[Pointer] = []
        for phase, across, up in messages:
            if self._held is None and phase != "press":
                continue  # Pressed outside of the stage.
            position, element = pick(across, up, phase == "press")
            before = position if self._held is None else self._held.position
            if self._held is not None and element is None:
                element = self._held.element
            movement = tuple(now - was for now, was in zip(position, before, strict=True))
            pointer = Pointer(position, movement, element, phase != "release")
            events.append(pointer)
            self._held = pointer if pointer.pressed else None
        if not events and self._held is not None:
            self._held = Pointer(self._held.position, (0.0,) * len(self._held.position), self._held.element, True)
            events.append(self._held)
        return events
