"""Sliders, labels and buttons that a `GUI` keeps for its whole life, in a column on the right."""

from __future__ import annotations

from typing import TypeVar

from tinote.viz.draw.arrays import ViewError
from tinote.viz.window.controls import Box, Panel, PointerState
from tinote.viz.window.events import Event, EventQueue, KeyNames

WIDTH = 180


class Slider:
    """A number that the user drags: `value`, from `minimum` to `maximum` in steps of `step`."""

    def __init__(self, text: str, minimum: float, maximum: float, step: float) -> None:
        if not minimum <= maximum or step < 0:
            raise ViewError(f"a slider from {minimum} to {maximum} in steps of {step}")
        self.text = text
        self.minimum, self.maximum, self.step = minimum, maximum, step
        self.value = minimum

    def show(self, panel: Panel, _events: EventQueue) -> None:
        self.value = panel.slider(self.text, self.value, self.minimum, self.maximum, self.step)


class Label:
    """A number that the program sets: `value`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.value: float | str = 0

    def show(self, panel: Panel, _events: EventQueue) -> None:
        panel.text(f"{self.text}: {self.value if isinstance(self.value, str) else format(self.value, '.6g')}")


class Button:
    """Sends a PRESS event with the key `key`."""

    def __init__(self, text: str, key: str) -> None:
        self.text = text
        self.key = key

    def show(self, panel: Panel, events: EventQueue) -> None:
        if panel.button(self.text):
            events.add(Event(KeyNames.PRESS, self.key, events.cursor))
            events.add(Event(KeyNames.RELEASE, self.key, events.cursor))


Widget = TypeVar("Widget", Slider, Label, Button)


class Widgets:
    """The controls of one window."""

    def __init__(self, pointer: PointerState, events: EventQueue, res: tuple[int, int]) -> None:
        self._pointer = pointer
        self._events = events
        self._res = res
        self._all: list[Slider | Label | Button] = []

    def add(self, widget: Widget) -> Widget:
        self._all.append(widget)
        return widget

    def panel(self) -> Panel:
        """Their panel for the frame that ends, after they took note of the pointer."""
        width = min(WIDTH, self._res[0])
        panel = Panel(self._pointer, Box(self._res[0] - width, 0, width, 0))
        for widget in self._all:
            widget.show(panel, self._events)
        return panel
