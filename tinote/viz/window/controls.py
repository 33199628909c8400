"""Sliders, buttons, check boxes and lines of text that are drawn into a frame and operated with the pointer.

A program asks for them while it makes a frame (`ti.ui.Gui`) or once (`ti.GUI.slider`); either way a frame paints them
over what was drawn, and the pointer's presses since the frame before decide what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinote.viz.draw.pictures import Picture
from tinote.viz.window.events import EventQueue, KeyNames

ROW = 22
"""Pixels from one control to the next."""

MARGIN = 6
FONT = 12
LIGHT, FACE, MARK = (235, 235, 235), (70, 74, 82), (66, 133, 244)
BACK = (24, 26, 30)

Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle in pixels from the top left."""

    left: float
    top: float
    width: float
    height: float

    def holds(self, point: Point) -> bool:
        return self.left <= point[0] < self.left + self.width and self.top <= point[1] < self.top + self.height


class PointerState:
    """What the pointer did up to the present frame, for all controls of the frame alike: where it is and was pressed,
    in pixels from the top left, whether the left button is down, or was, and which control has hold of it until
    it is released, the place of the release included.
    """

    def __init__(self, events: EventQueue, res: tuple[int, int]) -> None:
        self._events = events
        self._res = res
        self._grabbed: str | None = None
        self.position: Point = (0.0, 0.0)
        self.held = False
        self.presses: list[Point] = []

    def next_frame(self) -> None:
        """A frame has ended: look again. A control loses hold of the pointer in the frame after its release."""
        down = KeyNames.LMB in self._events.pressed
        released = self._events.take_release()
        self.held = down or released is not None
        self.position = self._pixels(self._events.cursor if down or released is None else released)
        self.presses = [self._pixels(position) for position in self._events.take_presses()]
        if self.presses or not self.held:
            self._grabbed = None

    def pressed_in(self, box: Box) -> bool:
        return any(box.holds(position) for position in self.presses)

    def drag(self, key: str, box: Box) -> Point | None:
        """Where the pointer drags the control `key`, which occupies `box`; `None` when it does not."""
        inside = [position for position in self.presses if box.holds(position)]
        if inside and self.held:
            self._grabbed = key
        if self._grabbed == key:
            return self.position
        return inside[-1] if inside else None

    def _pixels(self, position: Point) -> Point:
        return position[0] * self._res[0], (1.0 - position[1]) * self._res[1]


class Panel:
    """Controls below each other in `box`, under a title if there is one. Each call gives what the control says now;
    `paint` draws them all.
    """

    def __init__(self, pointer: PointerState, box: Box, title: str = "") -> None:
        self._pointer = pointer
        self._box = box
        self._title = title
        self._next = box.top + MARGIN
        self._strokes: list[Callable[[Picture], None]] = []
        if title:
            self.text(title)

    def _row(self) -> Box:
        row = Box(self._box.left + MARGIN, self._next, max(self._box.width - 2 * MARGIN, 1), ROW - 4)
        self._next += ROW
        return row

    def _write(self, content: str, box: Box, indent: float = 0.0, color: tuple[int, int, int] = LIGHT) -> None:
        self._strokes.append(lambda picture: picture.text(content, box.left + indent, box.top + 1, FONT, color))

    def _fill(self, box: Box, color: tuple[int, int, int], opacity: float = 1.0) -> None:
        self._strokes.append(lambda picture: shade(picture, box, color, opacity))

    def text(self, content: str, color: tuple[int, int, int] = LIGHT) -> None:
        """A line of text."""
        self._write(content, self._row(), color=color)

    def slider(self, name: str, value: float, lowest: float, highest: float, step: float = 0.0) -> float:
        """A bar from `lowest` to `highest`; gives where it was dragged to, in steps of `step`, or `value`."""
        row = self._row()
        dragged = self._pointer.drag(f"{self._title}/{name}", row)
        if dragged is not None:
            value = lowest + (highest - lowest) * min(max((dragged[0] - row.left) / row.width, 0.0), 1.0)
            value = min(lowest + round((value - lowest) / step) * step, highest) if step else value
        share = min(max((value - lowest) / (highest - lowest), 0.0), 1.0) if highest != lowest else 0.0
        self._fill(row, FACE)
        self._fill(row._replace(width=max(row.width * share, 2.0)), MARK)
        self._write(f"{name}: {value:.4g}", row, MARGIN)
        return value

    def checkbox(self, name: str, value: bool) -> bool:
        """A box to tick; gives whether it is ticked."""
        row = self._row()
        if self._pointer.pressed_in(row):
            value = not value
        square = Box(row.left, row.top + 2, row.height - 4, row.height - 4)
        self._fill(square, FACE)
        if value:
            self._fill(Box(square.left + 3, square.top + 3, square.width - 6, square.height - 6), MARK)
        self._write(name, row, ROW)
        return value

    def button(self, name: str) -> bool:
        """A button; gives whether it was pressed since the frame before."""
        row = self._row()
        pressed = self._pointer.pressed_in(row)
        self._fill(row, MARK if pressed else FACE)
        self._write(name, row, MARGIN)
        return pressed

    def paint(self, picture: Picture) -> None:
        """Draw the controls over a picture."""
        if not self._strokes:
            return
        shade(picture, self._box._replace(height=max(self._box.height, self._next - self._box.top)), BACK, 0.75)
        for stroke in self._strokes:
            stroke(picture)


def shade(picture: Picture, box: Box, color: tuple[int, int, int], opacity: float) -> None:
    """Lay a rectangle of one colour over a picture."""
    left, top = max(round(box.left), 0), max(round(box.top), 0)
    right, bottom = max(round(box.left + box.width), 0), max(round(box.top + box.height), 0)
    part = picture.pixels[top:bottom, left:right]
    part[...] = (part * (1.0 - opacity) + np.asarray(color) * opacity + 0.5).astype(np.uint8)
