"""Keys, mouse and wheel of a `GUI`: the names that programs compare with, and the queue that the page fills."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

QUEUE_LENGTH = 1000
"""Events that wait for a program that does not ask for them; the oldest go first."""


class KeyNames:
    """The names of keys, buttons and kinds of event, as attributes of `GUI`. A letter or digit key is named by itself:
    "a".

    Attributes
    ----------
    SHIFT, ALT, CTRL, ESCAPE, RETURN, TAB, BACKSPACE, SPACE, UP, DOWN, LEFT, RIGHT, CAPSLOCK : str
    LMB, MMB, RMB, EXIT, WHEEL, MOVE, MOTION, PRESS, RELEASE : str
    """

    SHIFT = "Shift"
    ALT = "Alt"
    CTRL = "Control"
    ESCAPE = "Escape"
    RETURN = "Return"
    TAB = "Tab"
    BACKSPACE = "BackSpace"
    SPACE = " "
    UP = "Up"
    DOWN = "Down"
    LEFT = "Left"
    RIGHT = "Right"
    CAPSLOCK = "Caps_Lock"
    LMB = "LMB"
    MMB = "MMB"
    RMB = "RMB"
    EXIT = "WMClose"
    WHEEL = "Wheel"
    MOVE = "Motion"
    MOTION = "Motion"
    PRESS = "Press"
    RELEASE = "Release"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the user did: `type` is PRESS, RELEASE or MOTION, `key` the key or button (MOVE for the pointer,
    WHEEL for the wheel, EXIT for the close button), `pos` where the pointer was, both coordinates in [0, 1] from the
    bottom left, `delta` how far the wheel turned, `modifier` the keys held.
    """

    type: str
    key: str
    pos: tuple[float, float] = (0.0, 0.0)
    delta: tuple[float, float] = (0.0, 0.0)
    modifier: tuple[str, ...] = field(default=())


class EventQueue:
    """Events in order, the keys held down, and the pointer's place. Filled on whichever thread delivers the page's
    messages.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=QUEUE_LENGTH)
        self._lock = threading.Lock()
        self.pressed: frozenset[str] = frozenset()
        self.cursor: tuple[float, float] = (0.0, 0.0)
        self._presses: deque[tuple[float, float]] = deque(maxlen=QUEUE_LENGTH)
        self._release: tuple[float, float] | None = None

    def add(self, event: Event) -> None:
        """Take an event. A motion replaces the motion before it: only the newest place counts."""
        with self._lock:
            self.cursor = event.pos
            if event.type == KeyNames.PRESS and event.key not in (KeyNames.EXIT, KeyNames.WHEEL):
                self.pressed |= {event.key}
                if event.key == KeyNames.LMB:
                    self._presses.append(event.pos)
            elif event.type == KeyNames.RELEASE:
                self.pressed -= {event.key}
                if event.key == KeyNames.LMB:
                    self._release = event.pos
            previous = self._events[-1] if self._events else None
            if event.key == KeyNames.MOVE and previous is not None and previous.key == KeyNames.MOVE:
                self._events.pop()
            self._events.append(event)

    def add_message(self, message: dict[str, Any]) -> None:
        """Take an event as the page sends it."""
        x, y = message.get("pos", (0.0, 0.0))
        dx, dy = message.get("delta", (0.0, 0.0))
        modifier = tuple(str(key) for key in message.get("modifier", ()))
        self.add(
            Event(str(message["type"]), str(message["key"]), (float(x), float(y)), (float(dx), float(dy)), modifier)
        )

    def __len__(self) -> int:
        return len(self._events)

    def release_all(self) -> None:
        """Nothing is held any more: the page has lost the keyboard."""
        with self._lock:
            self.pressed = frozenset()

    def take_presses(self) -> list[tuple[float, float]]:
        """Where the left button went down since the last call. The events stay in the queue."""
        with self._lock:
            found = list(self._presses)
            self._presses.clear()
            return found

    def take_release(self) -> tuple[float, float] | None:
        """Where the left button last went up since the last call, if it did. The events stay in the queue."""
        with self._lock:
            found, self._release = self._release, None
            return found

    def take(self, *wanted: str | tuple[str, str]) -> Iterator[Event]:
        """Remove and yield events in order. With `wanted`, those that match one of its names (a kind or a key) or pairs
        (kind, key); others are dropped.
        """
        while True:
            with self._lock:
                if not self._events:
                    return
                event = self._events.popleft()
            if not wanted or any(matches(event, one) for one in wanted):
                yield event


def matches(event: Event, wanted: str | tuple[str, str]) -> bool:
    """Whether an event is of a kind, of a key, or of a pair of both."""
    if isinstance(wanted, tuple):
        return (event.type, event.key) == wanted
    return wanted in (event.type, event.key)
