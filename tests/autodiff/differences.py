"""Central differences, which derivatives are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["along", "along_field", "by_field", "differences"]

Array = np.ndarray[Any, Any]


def differences(f: Callable[[Array], Any], at: Any, step: float = 1e-6) -> Array:
    """The slopes of `f`, a function of an array, at `at`: an array of its shape followed by that of what `f` gives."""
    at = np.asarray(at, np.float64)
    found: list[Any] = []
    for k in range(at.size):
        unit = np.zeros(at.size)
        unit[k] = 1
        found.append(along(f, at, unit.reshape(at.shape), step))
    return np.array(found).reshape(at.shape + np.shape(found[0]))


def along(f: Callable[[Array], Any], at: Any, direction: Any, step: float = 1e-6) -> Any:
    """The slope of `f` at `at` along a direction."""
    at, direction = np.asarray(at, np.float64), np.asarray(direction, np.float64)
    above = np.array(f(at + step * direction))  # a copy: `f` may give the same array each time
    return (above - np.array(f(at - step * direction))) / (2 * step)


def by_field(run: Callable[[], Any], field: Any, loss: Any, step: float = 1e-6) -> Array:
    """The slopes of what `run` leaves in the field `loss` with respect to a field, which holds afterwards what it held
    before.
    """
    held = field.to_numpy()

    def value(numbers: Array) -> float:
        field.from_numpy(numbers)
        run()
        return float(loss.to_numpy().item())

    try:
        return differences(value, held, step)
    finally:
        field.from_numpy(held)


def along_field(f: Callable[[], Any], field: Any, direction: Any, step: float = 1e-5) -> Any:
    """The slope along a direction of what `f` gives, a function of what a field holds; that is as it was afterwards."""
    held = field.to_numpy()

    def value(numbers: Array) -> Any:
        field.from_numpy(numbers)
        return f()

    try:
        return along(value, held, direction, step)
    finally:
        field.from_numpy(held)
