"""The functions of a view as captured programs of its page.

A capture takes numbers. What the view calls with a `Pointer` becomes a function of its numbers; what it calls for a
field becomes one that returns nothing, since the page knows which field is meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any


def of_numbers(function: Callable[..., object], count: int) -> Callable[..., None]:
    """`function` of that many numbers, `value_0`, …"""

    def call(*values: Any) -> None:
        function(*values)

    return _standing_for(call, function, [f"value_{k}" for k in range(count)])


def with_values(function: Callable[..., object], values: Sequence[Any]) -> Callable[[], None]:
    """`function`, called with these values, which need not be numbers."""

    def call() -> None:
        function(*values)

    return _standing_for(call, function, ())


def of_pointer(
    function: Callable[[Any], object], make: Callable[..., Any], dimensions: int, elements: int
) -> Callable[..., None]:
    """`function` of a pointer as one of its numbers: `position_0`, … and `movement_0`, …, `dimensions` of them each,
    then `elements` of `element_0`, …, and `pressed`. `make(position, movement, element, pressed)` gives the pointer.
    """

    def call(*numbers: Any) -> None:
        *parts, pressed = numbers
        element = tuple(parts[2 * dimensions :])
        pointer = make(
            tuple(parts[:dimensions]),
            tuple(parts[dimensions : 2 * dimensions]),
            None if not element else element[0] if len(element) == 1 else element,
            pressed,
        )
        function(pointer)

    places = [f"{name}_{axis}" for name in ("position", "movement") for axis in range(dimensions)]
    return _standing_for(call, function, (*places, *(f"element_{axis}" for axis in range(elements)), "pressed"))


def _standing_for(call: Any, function: Any, names: Sequence[str]) -> Any:
    """`call`, read as `function` where a capture looks for what it depends on, with parameters of these names."""
    call.__wrapped__ = function
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return call
